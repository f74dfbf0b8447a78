"""Parts of scores by name, with shares that add up."""

import numpy as np
import pytest

from experiments.explorer import reasons
from repr_jax.setexp import Contributions

_NAMES = ["word:music", "link:opera", "word:a:b", "doc:d1"]


def _parts(indices, values, dimensions=(), constant=0.0):
  return Contributions(
    np.array(indices, np.int32),
    np.array(values),
    np.array(dimensions),
    constant,
  )


def test_parts_and_rest_are_the_score():
  one = _parts([0, 2, 1, 0], [4.0, -3.0, 2.0, 1.0], [0.5], 0.5)
  found = reasons.decompose([one], _NAMES, 2)
  assert found["score"] == 5.0
  assert found["parts"] == [
    {"block": "word", "word": "music", "value": 5.0, "share": 1.0},
    {"block": "word", "word": "a:b", "value": -3.0, "share": -0.6},
  ]
  assert found["rest"] == pytest.approx({"value": 3.0, "share": 0.6})


def test_scores_are_summed_feature_by_feature():
  one, other = _parts([0, 1], [1.0, 2.0]), _parts([1, 3], [3.0, 4.0], [-8.0])
  found = reasons.decompose([one, other], _NAMES, 9)
  values = {f"{x['block']}:{x['word']}": x["value"] for x in found["parts"]}
  assert values == {
    "dimension:1": -8.0, "link:opera": 5.0, "doc:d1": 4.0, "word:music": 1.0,
  }  # fmt: skip
  assert (found["score"], found["rest"]["value"]) == (2.0, 0.0)


def test_a_distance_has_shares_and_a_score_of_zero_has_none():
  far = reasons.decompose([_parts([], [], [-3.0, -1.0])], _NAMES, 1)
  assert far["parts"][0]["share"] == 0.75 and far["rest"]["share"] == 0.25
  zero = reasons.decompose([_parts([0, 1], [1.0, -1.0])], _NAMES, 1)
  assert zero["parts"][0]["share"] == zero["rest"]["share"] == 0.0


def test_only_features_that_raised_a_score_support_it():
  one = _parts([0, 1, 2, 3], [1.0, -5.0, 3.0, 0.0])
  both = {"word:music", "word:a:b"}
  assert reasons.supporting_features(one, _NAMES, 1.0) == both
  assert reasons.supporting_features(one, _NAMES, 0.8) == both
  assert reasons.supporting_features(one, _NAMES, 0.75) == {"word:a:b"}
  nothing = _parts([1], [-1.0])
  assert reasons.supporting_features(nothing, _NAMES, 0.8) == set()
