"""Set expansion in one call."""

import json

import jax
import numpy as np
import pytest
import scipy.sparse as sp
from jax.experimental import sparse as jsparse

from repr_jax import ops, setexp
from repr_jax.data import entities, synthetic_corpora
from repr_jax.data.entities import features
from repr_jax.errors import InputError


@pytest.fixture(scope="module")
def world():
  return synthetic_corpora.entity_sets(
    np.random.default_rng(0), clusters=3, members=12, shared_features=20
  )


@pytest.mark.parametrize("score", ["features", "xi"])
def test_members_bring_up_their_set_with_reasons(world, score):
  names = [f"e{i}" for i in range(36)]
  sets = setexp.fit(
    world.counts,
    names=names,
    features=[f"f{i}" for i in range(world.counts.shape[1])],
    config=setexp.Config(dim=6, hidden=(16,), weighting="bm25"),
    hyper=setexp.Hyper(1e-2, beta=0.1),
    ranking=setexp.RankingConfig(score, normalize=score == "xi"),
    key=jax.random.key(0),
  )
  answers = sets.expand(["e0", "e1", "e20"], [1.0, 1.0, -0.2], k=8)
  own = [world.cluster[names.index(x.name)] for x in answers]
  assert np.mean(np.array(own) == world.cluster[0]) >= 0.75
  first = answers[0]
  assert not {"e0", "e1", "e20"} & {x.name for x in answers}
  prefix = "f" if score == "features" else "dimension"
  assert first.reasons and first.reasons[0].name.startswith(prefix)
  row = world.counts[[names.index(first.name)]].indices
  if score == "features":
    assert {int(x.name[1:]) for x in first.reasons} <= set(row.tolist())


def test_a_table_brings_its_names(tmp_path):
  texts = {
    "Bach": ["He wrote fugues.", "A fugue by Bach."],
    "Haydn": ["He wrote symphonies and fugues."],
    "Rhine": ["A river with water."],
    "Nile": ["The water of a river."],
  }
  lines = [
    json.dumps({"id": x.lower(), "name": x, "sentences": y})
    for x, y in texts.items()
  ]
  (tmp_path / "entities.jsonl").write_text("\n".join(lines) + "\n")
  table = features.build_from_entities(
    entities.read_entity_file(tmp_path / "entities.jsonl"),
    drop_most_frequent=0,
    min_count=1,
  )
  sets = setexp.fit(table, config=setexp.Config(dim=2, hidden=(4,)), epochs=1)
  assert sets.expand(["rhine"], k=1)[0].name == "Nile"


@pytest.mark.parametrize("kind", [jsparse.BCOO.fromdense, ops.from_scipy])
def test_sparse_counts_of_jax_are_read(world, kind):
  options = {
    "config": setexp.Config(dim=2, hidden=(4,)), "epochs": 1, "key": np.int64(3)
  }  # fmt: skip
  expected = setexp.fit(world.counts, **options)
  given = world.counts if kind is ops.from_scipy else world.counts.toarray()
  again = setexp.fit(kind(given), **options)
  np.testing.assert_array_equal(
    again.model.entities.xi, expected.model.entities.xi
  )


@pytest.mark.parametrize(
  ("option", "message"),
  [
    ({"batch_size": 0}, "batch_size must be a whole number, 1 or more, not 0"),
    ({"batch_size": 2.5}, "batch_size must be a whole number"),
    ({"epochs": -1}, "epochs must be a whole number, 0 or more, not -1"),
    ({"config": None}, "config must be a Config, not None"),
    ({"hyper": 0.1}, "hyper must be a Hyper"),
    ({"ranking": "xi"}, "ranking must be a RankingConfig"),
    ({"ranking": setexp.RankingConfig("xy")}, "there is no score 'xy'"),
  ],
)
def test_what_no_training_has_is_named_before_it_begins(option, message):
  with pytest.raises(InputError, match=message):
    setexp.fit(None, **option)


@pytest.mark.parametrize(
  "change", [{"dim": 2.5}, {"hidden": 5}, {"hidden": ()}]
)
def test_sizes_that_no_model_has_are_named(change):
  with pytest.raises(InputError, match="must be a"):
    setexp.Config(**change)


def test_dense_counts_make_a_query():
  dense = np.eye(3) + 1
  query = setexp.make_query(dense, [1])
  np.testing.assert_array_equal(query.rows.toarray(), dense[[1]])


def test_named_bags_are_taken():
  bags = {
    "Bach": {"fugue": 3, "organ": 1},
    "Haydn": {"organ": 2, "fugue": 2},
    "Rhine": {"water": 4},
    "Nile": {"water": 2, "delta": 1},
  }
  sets = setexp.fit(bags, config=setexp.Config(dim=2, hidden=(4,)), epochs=1)
  assert sets.features == ["delta", "fugue", "organ", "water"]
  wanted = [[0, 3, 1, 0], [0, 2, 2, 0], [0, 0, 0, 4], [1, 0, 0, 2]]
  np.testing.assert_array_equal(sets.counts.toarray(), wanted)
  assert [x.name for x in sets.expand(["Rhine"], k=1)] == ["Nile"]
  with pytest.raises(InputError, match=r"'Nil' .did you mean 'Nile'"):
    sets.expand(["Nil"])
  with pytest.raises(InputError, match="'Bach' has 3; expected a mapping"):
    setexp.fit({"Bach": 3})
  for count in ("many", float("nan"), -1):
    with pytest.raises(InputError, match="'Bach' has feature 'fugue'"):
      setexp.fit({"Bach": {"fugue": count}})


def test_wrong_names_are_refused(world):
  small = setexp.Config(dim=2, hidden=(4,))
  with pytest.raises(InputError, match="cannot name counts"):
    setexp.fit(world.counts, names=["a"], config=small)
  with pytest.raises(InputError, match="one name"):
    setexp.fit(np.eye(2), names=["a", "a"], config=small)
  sets = setexp.fit(sp.csr_array(np.eye(3) + 1), config=small, epochs=0)
  with pytest.raises(InputError, match="no entity 'x'"):
    sets.expand(["x"])
  with pytest.raises(InputError, match="must be a list of names"):
    sets.expand(None)
  with pytest.raises(InputError, match=r"k must be a whole number.* not 1\.5"):
    sets.expand(["0"], k=1.5)
