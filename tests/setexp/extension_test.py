"""A baseline from a file of its own, beside those of the package."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax.errors import InputError
from repr_jax.setexp import systems
from repr_jax.setexp.query import make_query

_FILE = """
import jax.numpy as jnp

from repr_jax.setexp.baselines import baseline


def fit(counts, seed):
  return jnp.asarray(counts.toarray())


def weights(model, query):
  return baseline.query_counts(query, model.shape[1])[1]


def score(model, query):
  return model @ weights(model, query)


def score_rows(model, query, rows):
  rows = baseline.clean_rows(rows, model.shape[1])
  return (rows.counts * weights(model, query)[rows.indices]).sum(axis=-1)


def contributions(model, query, entity):
  parts = model[entity] * weights(model, query)
  return baseline.of_features(jnp.arange(len(parts)), parts)


COUNTING = baseline.Baseline(
  "counting", fit, score, score_rows, contributions, weights
)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
  (tmp_path / "counting_baseline.py").write_text(_FILE)
  monkeypatch.syspath_prepend(str(tmp_path))
  yield "counting_baseline"
  sys.modules.pop("counting_baseline", None)


def test_a_baseline_from_elsewhere_scores_and_explains(module):
  dense = np.array([[2, 0, 1], [1, 1, 0], [0, 3, 1]], np.float32)
  counts = sp.csr_array(dense)
  system = systems.baseline(f"{module}:COUNTING", counts)
  query = make_query(counts, [0], [2.0])
  np.testing.assert_array_equal(
    system.score_batch([query])[0], 2 * dense @ dense[0]
  )
  (parts,) = system.contributions(query, [2])
  assert system.name == "counting" and parts.total == 2


@pytest.mark.parametrize(
  ("name", "message"),
  [
    ("cosine", "there are bm25"),
    ("no_such_module:X", "no_such_module"),
    ("counting_baseline:NOTHING", "NOTHING"),
    ("counting_baseline:fit", "no Baseline"),
  ],
)
def test_what_is_no_baseline_is_refused(module, name, message):
  with pytest.raises(InputError, match=message):
    systems.find_baseline(name)
