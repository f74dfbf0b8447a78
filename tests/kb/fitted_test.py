"""The one call: names in, predictions by name out."""

import jax
import numpy as np
import pytest

from repr_jax import kb
from repr_jax.data import triples
from repr_jax.errors import InputError

_FACTS = [
  ("oak", "is_a", "tree"),
  ("elm", "is_a", "tree"),
  ("rose", "is_a", "flower"),
  ("tree", "has_kind", "oak"),
]
_RULES = ["RevImp(is_a, has_kind)"]


@pytest.fixture(scope="module")
def fitted():
  return kb.fit(_FACTS, _RULES, dim=16, epochs=60, penalty=0.001)


def test_rules_answer_what_no_fact_says(fitted):
  best = fitted.predict("has_kind", head="tree", top=2)
  assert {x.entity for x in best} == {"oak", "elm"}
  heads = fitted.predict("is_a", tail="flower", top=1)
  assert heads[0].entity == "rose"
  assert fitted.violations().keys() == {"RevImp(is_a, has_kind)"}
  assert max(fitted.violations().values()) <= 1e-5


def test_scores_are_those_of_predictions(fitted):
  for answer in fitted.predict("is_a", head="oak"):
    score = fitted.score("oak", "is_a", answer.entity)
    assert score == pytest.approx(answer.score, rel=1e-4, abs=1e-5)
  assert len(fitted.predict("is_a", head="oak", top=100)) == 5


def test_triples_of_a_file_are_taken():
  listed = triples.from_named(_FACTS)
  fitted = kb.fit(listed, model=kb.DISTMULT, dim=4, epochs=1)
  assert fitted.entities == listed.entities and not fitted.violations()


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"model": "Z"}, "unknown score model 'Z'"),
    ({"rules": ["RelImp(is_a, part_of)"]}, "unknown relation 'part_of'"),
    ({"rules": "Symm(is_a)"}, "must be a list"),
    ({"rules": ["Symmetric(is_a)"]}, "unknown kind of rule"),
    ({"rules": [3]}, "not 3"),
    ({"rules": None}, "must be a list"),
    ({"triples": []}, "no triples"),
    ({"triples": None}, "triples must be"),
    ({"triples": ["abc"]}, "triple 0 is 'abc'; expected three names"),
    ({"triples": [("oak", "is_a")]}, "triple 0 is .'oak', 'is_a'.; expected"),
    ({"dim": 3}, "even"),
    ({"dim": 0}, "dim must be a whole number, 1 or more"),
    ({"batch_size": 0}, "batch_size must be a whole"),
    ({"num_candidates": -1}, "num_candidates must be a whole"),
    ({"epochs": -1}, "epochs must be a whole number, 0 or more"),
    ({"epochs": 1.5}, "epochs must be a whole number, .* not 1.5"),
    ({"learning_rate": float("nan")}, "learning_rate > 0"),
    ({"penalty": -1.0}, "penalty >= 0"),
    ({"key": "0"}, "whole number"),
  ],
)
def test_bad_input_is_named(change, message):
  with pytest.raises(InputError, match=message):
    kb.fit(**{"triples": _FACTS, "epochs": 1, **change})


def test_fits_of_equal_shapes_compile_once(compilations):
  options = {"rules": _RULES, "dim": 8, "epochs": 2}
  first = kb.fit(_FACTS, **options)
  other = [(t, r, h) for h, r, t in _FACTS]
  rates = {"learning_rate": 0.2, "penalty": 0.3, "scale": 0.2, "key": 7}
  again = compilations.during(lambda: kb.fit(other, **options, **rates).params)
  assert again == 0
  seeded = kb.fit(_FACTS, **options, key=jax.random.key(0))
  np.testing.assert_array_equal(first.params.entities, seeded.params.entities)
  faster = kb.fit(_FACTS, **options, learning_rate=0.2)
  assert not np.allclose(faster.params.entities, first.params.entities)


def test_bad_questions_are_named(fitted):
  with pytest.raises(InputError, match="head or tail"):
    fitted.predict("is_a")
  with pytest.raises(InputError, match="top must be a whole number"):
    fitted.predict("is_a", head="oak", top=-1)
  with pytest.raises(InputError, match="no relation 'kind_of'"):
    fitted.predict("kind_of", head="oak")
  with pytest.raises(InputError, match=r"no entity 'oka' .did you mean 'oak'"):
    fitted.score("oka", "is_a", "tree")
