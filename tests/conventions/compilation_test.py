"""A second call of the same shapes does not compile again."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from repr_jax import linking, multiview, setexp
from repr_jax.linking import entity_vectors, mention_retrieval
from repr_jax.setexp import fitting


def _gcca_exact(seed: int) -> Any:
  keys = jax.random.split(jax.random.key(seed), 2)
  return multiview.gcca_exact([jax.random.normal(k, (40, 6)) for k in keys], 2)


def _mvlsa_fit(seed: int) -> Any:
  rng = np.random.default_rng(seed)
  views = [rng.random((50, 7)).astype(np.float32) for _ in range(3)]
  return multiview.fit(views, 2, m=4, key=seed).model


def _setexp_fit(seed: int) -> Any:
  rng = np.random.default_rng(seed)
  counts = scipy.sparse.csr_array(rng.poisson(1, (20, 30)) + 1.0)
  config = setexp.Config(dim=2, hidden=(4,))
  key = jax.random.key(seed)
  return fitting.fit(counts, config, key, epochs=1, batch_size=10).params


def _setexp_expand(seed: int) -> Any:
  rng = np.random.default_rng(seed)
  counts = scipy.sparse.csr_array(rng.poisson(1, (20, 30)) + 1.0)
  config = setexp.Config(dim=2, hidden=(4,))
  statistics = setexp.statistics_from_scipy(config, counts)
  params = setexp.init(config, jax.random.key(seed), statistics)
  model = setexp.model_from_scipy(config, params, statistics.inputs, counts)
  query = setexp.make_query(counts, [seed, seed + 1])
  padded = setexp.pad_queries(model, [query])
  return setexp.expand(model, padded, setexp.make_ranking(), 5)


def _max_margin(seed: int) -> Any:
  rng = np.random.default_rng(seed)
  words = rng.integers(0, 30, 12).astype(np.int32)
  return entity_vectors.fit_max_margin(
    rng.normal(size=(30, 4)).astype(np.float32),
    np.array([0, 5, 12]),
    words,
    np.ones(30),
    key=jax.random.key(seed),
    steps=3,
    block=2,
  )


def _retrieval(seed: int) -> Any:
  rng = np.random.default_rng(seed)
  ids = rng.integers(0, 21, (9, 4)).astype(np.int32)
  index = linking.Index(ids, rng.random((9, 4)).astype(np.float32), 20)
  chunks = rng.integers(0, 9, (2, 3)).astype(np.int32)
  query = linking.Query(chunks, np.ones((2, 3), np.float32))
  rows = np.array([seed, 3])
  ranking = mention_retrieval.search_batch(index, query, rows, 5)
  vectors = rng.normal(size=(20, 4)).astype(np.float32)
  return mention_retrieval.rerank_batch(vectors, rows, ranking.ids)


# Drivers on the host: functions of a seed, which changes values, not shapes.
# `tests/api_test.py` checks the doors.
_ENTRIES: dict[str, Callable[[int], Any]] = {
  "linking.fit_max_margin": _max_margin,
  "linking.retrieval": _retrieval,
  "multiview.fit": _mvlsa_fit,
  "multiview.gcca_exact": _gcca_exact,
  "setexp.expand": _setexp_expand,
  "setexp.fit": _setexp_fit,
}


@pytest.mark.parametrize("name", _ENTRIES)
def test_entry_point_compiles_once(name, compilations):
  entry = _ENTRIES[name]
  jax.block_until_ready(entry(0))
  assert compilations.during(lambda: entry(1)) == 0


def test_compilations_are_counted(compilations):
  double = jax.jit(lambda x: 2 * x)
  three, four = jnp.ones(3), jnp.ones(4)
  assert compilations.during(lambda: double(three)) == 1
  assert compilations.during(lambda: double(three)) == 0
  assert compilations.during(lambda: double(four)) == 1
  assert compilations.during(lambda: jax.jit(lambda x: x + 1)(four)) == 1
  assert compilations.during(lambda: jax.jit(lambda x: x + 1)(four)) == 1
