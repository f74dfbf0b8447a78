"""Generated worlds have the answers that they promise."""

import numpy as np
import pytest

from repr_jax import errors
from repr_jax.data import rules, triples
from repr_jax.data import synthetic_corpora as worlds


def test_entity_sets_lean_to_their_own_features():
  got = worlds.entity_sets(np.random.default_rng(0), signal=0.5, tokens=400)
  dense = got.counts.toarray()
  assert dense.shape == (100, 250)
  np.testing.assert_array_equal(dense.sum(axis=1), 400)
  own = dense * (got.feature_cluster == got.cluster[:, None])
  shared = dense * (got.feature_cluster == -1)
  np.testing.assert_array_equal(own + shared, dense)
  assert abs(own.sum() / dense.sum() - 0.5) < 0.02
  alone = worlds.entity_sets(np.random.default_rng(0), shared_features=0)
  assert (alone.feature_cluster >= 0).all()


def test_entity_corpus_is_sparse_skewed_and_clustered():
  rng = np.random.default_rng(1)
  got = worlds.entity_corpus(rng, 3_000, 8_000, clusters=10)
  assert got.counts.shape == (3_000, 8_000)
  assert got.counts.has_canonical_format and got.counts.dtype == np.float32
  per_entity = np.diff(got.counts.indptr)
  assert per_entity.min() >= 1
  assert 45 < per_entity.mean() < 80
  totals = np.sort(np.asarray(got.counts.sum(axis=0)))[::-1]
  assert totals[:800].sum() > 0.4 * totals.sum()
  entry = got.counts.tocoo()
  owner = got.feature_cluster[entry.col]
  own = owner == got.cluster[entry.row]
  assert (own | (owner == -1)).all()
  assert abs(entry.data[own].sum() / entry.data.sum() - 0.5) < 0.02
  again = worlds.entity_corpus(
    np.random.default_rng(1), 3_000, 8_000, clusters=10
  )
  assert (again.counts != got.counts).nnz == 0
  with pytest.raises(errors.InputError):
    worlds.entity_corpus(rng, 10, 10, clusters=10)


@pytest.mark.parametrize("depth", [1, 2, 3, 6])
def test_binary_tree_is_the_closure_of_its_edges(depth):
  n = 2**depth - 1
  children = np.arange(1, n)
  edges = np.stack([(children - 1) // 2, children], axis=1)
  expected = triples.transitive_closure(edges, n)
  np.testing.assert_array_equal(worlds.binary_tree(depth), expected)


def test_binary_tree_of_the_thesis():
  pairs = worlds.binary_tree(11)
  assert len(pairs) == 18_434
  assert pairs.max() == 2_046
  assert 2_047**2 - len(pairs) == 4_171_775
  with pytest.raises(errors.InputError):
    worlds.binary_tree(0)


def _forward_chain(facts, laws):
  """Facts and all that follows from them by the rules' kinds."""
  every = set(facts)
  while True:
    new = {
      fact
      for law in laws
      for fact in law.kind.consequences(law.arguments, every)
    }
    if new <= every:
      return every
    every |= new


def test_forward_chaining_solves_the_puzzle_of_the_thesis():
  known = [("Nono", "Possess", "WMD"), ("Benedict", "TradeWith", "Nono")]
  laws = [
    rules.Rule("RelImp", ("TradeWith", "TransactWith")),
    rules.Rule("Entail_B", ("Possess", "WMD", "Considered", "Enemy")),
    rules.Rule(
      "PropTrans",
      ("TransactWith", "Considered", "Enemy", "Considered", "Criminal"),
    ),
  ]
  assert _forward_chain(known, laws) - set(known) == {
    ("Benedict", "TransactWith", "Nono"),
    ("Nono", "Considered", "Enemy"),
    ("Benedict", "Considered", "Criminal"),
  }


def test_every_kind_of_rule_holds():
  laws = [
    rules.parse_rule(text)
    for text in [
      "a(x,y)==>b(x,y)",
      "b(x,y)==>c(y,x)",
      "d(x,y)==>d(y,x)",
      "a(C,x)==>d(D,x)",
      "b(x,C)==>e(x,D)",
      "c(x,y)&e(y,D)==>f(x,F)",
      "f(x,y)==>g(x,T)",
      "d(x,y)&e(y,z)==>h(x,z)",
      "c(x,y)&d(x,y)==>i(x,y)",
    ]
  ]
  # Disj derives nothing.
  assert {law.kind.name for law in laws} == set(rules.KINDS) - {"Disj"}
  names = [*"CDFT", *map(str, range(6))]
  rng = np.random.default_rng(1)
  given = set(
    zip(*(rng.choice(x, 80).tolist() for x in (names, [*"abcde"], names)))
  )
  facts = _forward_chain(given, laws)
  assert given < facts
  has = {r: {(h, t) for h, s, t in facts if s == r} for r in "abcdefghi"}
  assert has["a"] <= has["b"]
  assert {(t, h) for h, t in has["b"]} <= has["c"]
  assert {(t, h) for h, t in has["d"]} == has["d"]
  assert all(("D", t) in has["d"] for h, t in has["a"] if h == "C")
  assert all((h, "D") in has["e"] for h, t in has["b"] if t == "C")
  links = [(h, t) for h, t in has["c"] if (t, "D") in has["e"]]
  assert links and all((h, "F") in has["f"] for h, _ in links)
  assert all((h, "T") in has["g"] for h, _ in has["f"])
  paths = {(h, t) for h, y in has["d"] for z, t in has["e"] if y == z}
  assert paths and paths <= has["h"]
  assert has["c"] & has["d"] and has["c"] & has["d"] == has["i"]
  assert _forward_chain(facts, laws) == facts
