"""Doors of the baselines in `repr_jax.setexp`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from doors.door import Door

from repr_jax import setexp
from repr_jax.setexp.baselines import setexpan

_LOOP = "loops over postings; `contributions` are the slopes"
_FIXED = np.array(
  [[1, 0, 2, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 1, 0],
   [0, 0, 0, 1, 2], [0, 1, 0, 0, 1], [1, 0, 0, 0, 0]], np.float32
)  # fmt: skip


def _counts(seed):
  """Another order of the entities: shapes stay the same."""
  return _FIXED[np.random.default_rng(seed).permutation(6)]


def _cast(tree, dtype):
  def put(x):
    x = jnp.asarray(x)
    floating = jnp.issubdtype(x.dtype, jnp.floating)
    return x.astype(dtype) if floating else x

  return jax.tree.map(put, tree)


def _query(seed, dtype):
  """Two members and padding."""
  rows = setexp.rows_from_dense(jnp.asarray(_counts(seed), dtype))
  weights = jnp.asarray([1, -0.4, 0], dtype)
  return setexp.query_of_rows(rows, jnp.array([seed % 3, 4, 1]), weights)


def _spoiled(query):
  padding = query.weights == 0
  owner = padding[query.entries.member]
  count = jnp.where(owner, jnp.nan, query.entries.count)
  return query._replace(entries=query.entries._replace(count=count))


def _word2vecf(counts):
  rng = np.random.default_rng(int(counts[0] @ np.arange(5)))
  vectors, contexts = rng.normal(size=(6, 3)), rng.normal(size=(5, 3))
  return setexp.Word2vecf(vectors, contexts, contexts[:4], 5)


_FITS = {
  "bm25": lambda x: setexp.bm25_fit(sp.csr_array(x), positive=True),
  "bayesian_sets": lambda x: setexp.bayesian_sets_fit(
    sp.csr_array(x), "poisson"
  ),
  "lsa": lambda x: setexp.lsa_fit(sp.csr_array(x), rank=2),
  "word2vecf": _word2vecf,
  "setexpan": lambda x: setexp.setexpan_fit(
    sp.csr_array(x), setexpan.Config(features=4, samples=3)
  ),
}
_SMOOTH = ("lsa", "word2vecf")


def _asked(name, seed, dtype):
  model = _cast(_FITS[name](_counts(seed)), dtype)
  return model, _query(seed, dtype)


def _explained(name, seed, dtype):
  return *_asked(name, seed, dtype), jnp.int32(5)


def _rows(name):
  grad = (0,) if name in _SMOOTH else _LOOP
  return [
    Door(f"setexp.{name}_fit", host="arranges or trains on host data"),
    Door(
      f"setexp.{name}_score",
      functools.partial(_asked, name),
      grad=grad,
      mask=lambda model, query: (model, _spoiled(query)),
      absolute=1e-5,
    ),
    Door(
      f"setexp.{name}_contributions",
      functools.partial(_explained, name),
      grad=grad,
      mask=lambda model, query, entity: (model, _spoiled(query), entity),
      absolute=1e-5,
    ),
  ]


DOORS = [door for name in _FITS for door in _rows(name)]
