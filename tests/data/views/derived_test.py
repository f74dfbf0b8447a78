"""Windows and walks against sums and matrix powers written out."""

import numpy as np
import pytest
from scipy.sparse import csr_array as Csr

from repr_jax.data import wordnet
from repr_jax.data.views import derived
from repr_jax.data.views.store import View
from repr_jax.data.wordnet import tables
from repr_jax.errors import InputError


@pytest.fixture(scope="module")
def wn():
  return wordnet.load()


def test_a_window_sums_both_sides_up_to_its_width():
  rng = np.random.default_rng(0)
  names = ["text_behind_01", "text_ahead_01", "text_behind_02", "wordnet_x"]
  views = [
    View(name, Csr(rng.poisson(1, (5, 4)).astype(np.float32)), list("abcd"))
    for name in names
  ]
  found = derived.window(views, 1)
  expected = (views[0].matrix + views[1].matrix).toarray()
  np.testing.assert_array_equal(found.matrix.toarray(), expected)
  assert found.name == "text_window_01"
  with pytest.raises(InputError, match="name a text"):
    derived.window(views[3:], 5)


def test_senses_are_weighted_by_their_rank(wn):
  weights = derived.sense_weights(wn, ["dog", "dogs", "qwrtzp"])
  np.testing.assert_allclose(weights.sum(axis=1), [1, 1, 0], atol=1e-6)
  nouns, verbs = wn.senses("dog", "n"), wn.senses("dog", "v")
  row = weights.toarray()[0]
  np.testing.assert_allclose(row[nouns[2]], row[nouns[0]] / 3, rtol=1e-5)
  np.testing.assert_allclose(row[verbs[0]], row[nouns[0]], rtol=1e-5)


def test_a_walk_along_relations_is_a_sum_of_matrix_powers(wn):
  words = ["dog", "wolf", "idea"]
  view = derived.walks(wn, words, steps=2, damping=0.5, glosses=0, keep=0)
  neighbors: dict[int, set[int]] = {}
  pointers = wn.tables.pointers
  for a, b in zip(pointers.source.tolist(), pointers.target.tolist()):
    neighbors.setdefault(a, set()).add(b)
    neighbors.setdefault(b, set()).add(a)
  edges = {tuple(edge) for edge in wn.edges(*tables.SYMBOLS.values()).tolist()}

  def step(place):
    out: dict[int, float] = {}
    for synset, chance in place.items():
      near = {
        b: ((synset, b) in edges) + ((b, synset) in edges)
        for b in neighbors.get(synset, ())
      }
      total = sum(near.values())
      near = {b: x / total for b, x in near.items() if x / total >= 4e-3}
      total = sum(near.values())
      for b, x in near.items():
        out[b] = out.get(b, 0) + chance * x / total
    return out

  start = derived.sense_weights(wn, words)
  for i in range(len(words)):
    row = start[[i]].tocoo()
    zero = dict(zip(row.coords[1].tolist(), row.data.tolist()))
    one = step(zero)
    two = step(one)
    expected = np.zeros(len(wn))
    for factor, place in ((1, zero), (0.5, one), (0.25, two)):
      for synset, chance in place.items():
        expected[synset] += factor * chance
    found = view.matrix[[i]].toarray()[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_glosses_reach_what_relations_do_not(wn):
  plain = derived.walks(wn, ["doctor"], steps=1, glosses=0).matrix
  with_glosses = derived.walks(wn, ["doctor"], steps=1, glosses=0.5).matrix
  assert with_glosses.nnz > plain.nnz
  total = derived.walks(wn, ["doctor"], steps=1, keep=0, damping=1).matrix.sum()
  np.testing.assert_allclose(total, 2, rtol=1e-3)


def test_bad_walks_are_refused(wn):
  with pytest.raises(InputError, match="damping"):
    derived.walks(wn, ["dog"], damping=0)
