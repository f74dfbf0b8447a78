"""Queries as people write them."""

import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax.data.entities import features, sentences
from repr_jax.data.entities.query_text import parse_members
from repr_jax.errors import InputError

_NAMES = ["Bach", "Ulm, Danube", "Apollo:13", "Haydn"]


@pytest.fixture(scope="module")
def table():
  none = np.zeros(0, np.int32)
  held = sentences.Sentences(
    none, np.zeros(1, np.int64), np.zeros(0, bool), none,
    np.zeros(5, np.int64), none, [], [],
  )  # fmt: skip
  counts = sp.csr_array(np.ones((4, 1), np.float32))
  ids = ["e:1", "e2", "e3", "e4"]
  return features.FeatureTable(counts, ids, _NAMES, ["word:a"], held)


@pytest.mark.parametrize(
  ("text", "members"),
  [
    ("Bach", [("Bach", 1.0)]),
    (" Bach:2 ,, haydn : -0.5,", [("Bach", 2.0), ("haydn", -0.5)]),
    ('"Ulm, Danube":3, Bach', [("Ulm, Danube", 3.0), ("Bach", 1.0)]),
    ("Apollo:13", [("Apollo:13", 1.0)]),
    ("apollo:13:2", [("apollo:13", 2.0)]),
    ("e:1", [("e:1", 1.0)]),
    ("e:1:4", [("e:1", 4.0)]),
    ("Unknown:x, :3", [("Unknown:x", 1.0), (":3", 1.0)]),
  ],
)
def test_names_and_weights_are_read(table, text, members):
  assert [tuple(x) for x in parse_members(table, text, 5)] == members


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("", "empty"),
    (" , ,", "empty"),
    ("Bach:nan", "nan"),
    ("Bach:-inf", "-inf"),
    ("Bach, Haydn, e2", "3 entities; --max_members allows 2"),
    ("x" * 200_000, "cannot be read"),
  ],
)
def test_bad_queries_are_refused(table, text, message):
  with pytest.raises(InputError, match=message):
    parse_members(table, text, 2)
