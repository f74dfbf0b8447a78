"""Programs of `mvlsa` and `rescal` as shapes."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax.sharding import PartitionSpec

from launch.shapes import Program, Shapes
from repr_jax import kb, multiview
from repr_jax.evaluation import analogy
from repr_jax.kb import rescal_als
from repr_jax.multiview import gcca, sharding
from repr_jax.ops import mesh as meshes
from repr_jax.ops import sharded, sparse
from repr_jax.ops.svd_updates import IncrementalSVD

_BLOCKS = 16


def mvlsa(size: Mapping[str, int], shape: Shapes) -> Iterator[Program]:
  """Programs of `experiments.mvlsa`.

  Yields:
    The programs.
  """
  n, d, m, k = (size[x] for x in ("words", "columns", "m", "k"))
  gcca.check_rank(k, size["views"] * min(m, d), n)
  mesh = shape.mesh
  shards = 1 if mesh is None else mesh.size
  n = meshes.padded_size(n, shards)
  axes = PartitionSpec(sharding.AXES)
  rows = n // shards
  capacity = sparse.bucket_size(-(-size["entries"] // shards // _BLOCKS))
  lead: tuple[int, ...] = () if mesh is None else (shards,)
  values = shape((*lead, _BLOCKS, capacity), jnp.float32, axes)
  indices = shape((*lead, _BLOCKS, capacity), jnp.int32, axes)
  by_row = shape((*lead, _BLOCKS, -(-rows // _BLOCKS) + 1), jnp.int32, axes)
  by_column = shape((*lead, _BLOCKS, d + 1), jnp.int32, axes)
  view: Any = sparse.Sparse(
    values, indices, by_row, values, indices, by_column, (rows, d)
  )
  if mesh is not None:
    view = sharded.Sharded(view, (n, d), mesh, sharding.AXES)
  weights = shape((n,), jnp.float32, axes)
  yield Program(
    "factor a view",
    lambda: multiview.factor_view.lower(view, m, weights, shape.key()),
  )
  block = shape((n, m), jnp.float32, axes)
  if mesh is None:
    factors = [
      multiview.ViewFactor(
        block, shape((m,)), shape((d, m)), shape((d,)), weights
      )
      for _ in range(size["views"])
    ]
    yield Program(
      "combine the views",
      lambda: multiview.combine.lower(factors, k, shape.key()),
    )
  else:
    whole = shape((n, size["views"] * m), jnp.float32, axes)
    yield Program(
      "combine the views",
      lambda: sharding.combine.lower(mesh, m, k, whole, shape.key()),
    )
  left = shape((n, k), jnp.float32, axes)
  state = IncrementalSVD(left, shape((k,)), shape(()), shape(()))
  yield Program(
    "or merge a view as a stream",
    lambda: multiview.stream_update.lower(state, block),
  )
  words, questions = analogy.block_sizes(shape.device.platform)
  yield Program(
    "answer analogies",
    lambda: analogy.solve_analogies.lower(
      shape((meshes.padded_size(size["vocabulary"], shards), k), axes=axes),
      shape.ids(size["terms"]),
      shape.ids(size["questions"], 3),
      block_words=words,
      block_questions=questions,
      mesh=mesh,
    ),
  )


def rescal(size: Mapping[str, int], shape: Shapes) -> Iterator[Program]:
  """Programs of `experiments.rescal`, as in `mvlsa`."""
  v, d = size["entities"], size["rank"]
  # A tree: each vertex but the root has one parent.
  child = np.arange(1, v)
  edges = sp.csr_array((np.ones(v - 1), (child, (child - 1) // 2)), (v, v))
  slices = kb.make_slices([sp.csr_matrix(edges)])
  start = functools.partial(rescal_als.init, rank=d, start="random")
  state = jax.eval_shape(
    lambda s, key: start(s, key=key), slices, jax.random.key(0)
  )
  yield Program(
    "an update",
    lambda: rescal_als.update.lower(shape.like(slices), shape.like(state)),
  )
