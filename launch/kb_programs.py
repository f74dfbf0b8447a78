"""Programs of `elkb` as shapes."""

import functools
from collections.abc import Iterator, Mapping

import jax
import jax.numpy as jnp
import optax
from jax.sharding import PartitionSpec

from launch.shapes import WHOLE, Program, Shapes
from repr_jax import kb
from repr_jax.kb import candidate_training, link_prediction, pair_training
from repr_jax.kb.negatives import Known
from repr_jax.kb.score_models import get_model
from repr_jax.ops import mesh as meshes

AXES = ("batch",)
_KNOWN = 64  # known answers of a query that is ranked


def elkb(size: Mapping[str, int], shape: Shapes) -> Iterator[Program]:
  """Programs of `experiments.elkb`: steps of training, a block of ranks.

  Yields:
    The programs. A training program takes one step on one batch.
  """
  e, r, d, b = (size[x] for x in ("entities", "relations", "dim", "batch_size"))
  mesh = shape.mesh
  rows = e if mesh is None else meshes.padded_size(e, mesh.size)
  over = WHOLE if mesh is None else PartitionSpec(mesh.axis_names)

  def tables(model):
    small = jax.eval_shape(
      lambda key: kb.init_params(model, key, 2, r, d), shape.key()
    )
    return kb.Params(
      shape((rows, small.entities.shape[1]), jnp.float32, over),
      shape(small.relations.shape),
    )

  words = shape((1 << max(0, (2 * size["facts"] - 1).bit_length()),), "uint32")
  known = Known(words, shape.ids(), shape.ids())
  facts = shape.ids(b, 3)
  pairs = pair_training.SGDConfig(e, r, "B", d, batch_size=b, mesh=mesh)
  state = pair_training.SGDState(tables("B"), shape(()), shape(()))
  yield Program(
    "a step on pairs",
    lambda: pair_training.train.lower(
      pairs, None, known, facts, state, shape.key(1)
    ),
  )
  optimizer = optax.adagrad(0.1)
  for name, count in (
    ("a step on sampled candidates", size["candidates"]),
    ("a step on all candidates", 0),
  ):
    config = kb.CandidateConfig(
      e, r, "complex", d, batch_size=b, num_candidates=count, mesh=mesh
    )
    params = tables("complex")
    memory = jax.tree.map(
      lambda x, params=params: shape(
        x.shape, x.dtype, over if x.shape[:1] == (rows,) else WHOLE
      ),
      jax.eval_shape(optimizer.init, params),
    )
    start = candidate_training.CandidateState(
      params, memory, *(shape(()) for _ in range(4))
    )
    train = functools.partial(
      candidate_training.train.lower,
      config, optimizer, None, known, facts, start, shape.key(),
    )  # fmt: skip
    yield Program(name, train)
  block = size["block"]
  _, tails = link_prediction.slot_scores(
    get_model("complex"), None if rows == e else e
  )
  score = jax.tree_util.Partial(
    tails, tables("complex"), shape((rows,), jnp.float32, over)
  )
  yield Program(
    "rank a block",
    lambda: link_prediction.rank_block.lower(
      score,
      *(shape.ids(block) for _ in range(3)),
      shape.ids(_KNOWN * block),
      shape.ids(block + 1),
      flip=False,
    ),
  )
