"""Programs of `ned` and `cmr` as shapes."""

from collections.abc import Iterator, Mapping

import jax
import jax.numpy as jnp
import optax
from jax.sharding import PartitionSpec

from launch.expansion_programs import vae_step
from launch.shapes import Program, Shapes
from repr_jax import linking
from repr_jax.linking import entity_vectors, mention_retrieval
from repr_jax.linking.disambiguation import disambiguate
from repr_jax.ops import mesh as meshes

AXES = ("entities",)
_STEPS = 400  # of max-margin training, for every entity
_CHUNK = 64  # postings of a word side by side
_KEPT = 100  # mentions that a search returns


def ned(size: Mapping[str, int], shape: Shapes) -> Iterator[Program]:
  """Programs of `experiments.ned`.

  Yields:
    The programs.
  """
  n, v, d = (size[x] for x in ("entities", "vocabulary", "dim"))
  if shape.mesh is None:
    yield from _disambiguation(size, shape)
  shards = 1 if shape.mesh is None else shape.mesh.size
  n = meshes.padded_size(n, shards)
  axes = PartitionSpec(AXES)
  bags = entity_vectors.Bag(
    shape.ids(n), shape.ids(n), shape.ids(size["bag"] * n)
  )
  noise = entity_vectors.Noise(shape((v,)), shape.ids(v))
  yield Program(
    f"{_STEPS} steps of max-margin vectors",
    lambda: entity_vectors.fit_bags.lower(
      entity_vectors.MarginConfig(),
      _STEPS,
      size["block"],
      shape((v, d)),
      bags,
      noise,
      shape((n, d), axes=axes),
      shape((n, 2), axes=axes),
      shape.key(n),
      shape.mesh,
    ),
  )


def _disambiguation(
  size: Mapping[str, int], shape: Shapes
) -> Iterator[Program]:
  n, v, d = (size[x] for x in ("entities", "vocabulary", "dim"))
  config = linking.Config()
  init, update = linking.disambiguator(config, optax.adam(1e-4))
  tables = linking.Tables(shape((n, d)), shape((v, d)))
  state = shape.like(jax.eval_shape(init, jax.random.key(0), tables))
  documents, m = size["documents"], size["mentions"]
  batch = linking.Packed(
    shape.ids(documents, m, size["candidates"]),
    shape((documents, m, size["candidates"])),
    shape.ids(documents, m, size["context"]),
    shape.ids(documents, m),
  )
  yield Program(
    "a step of disambiguation",
    lambda: jax.jit(update).lower(state, tables, batch),
    shared=False,
  )
  several = jax.jit(
    jax.vmap(disambiguate, (None, None, None, 0)), static_argnums=0
  )
  yield Program(
    "disambiguate documents",
    lambda: several.lower(config, state.params, tables, batch),
    shared=False,
  )


def cmr(size: Mapping[str, int], shape: Shapes) -> Iterator[Program]:
  """Programs of `experiments.cmr`, as in `ned`."""
  n, q = size["mentions"], size["queries"]
  chunks = -(-size["postings"] // _CHUNK)
  index = linking.Index(
    shape.ids(chunks, _CHUNK), shape((chunks, _CHUNK)), size=n
  )
  asked = [shape.ids(q, size["chunks"]), shape((q, size["chunks"]))]
  yield Program(
    "search by BM25",
    lambda: mention_retrieval.search_all.lower(
      index, asked, shape.ids(q), min(_KEPT, n)
    ),
  )
  yield Program(
    "rank again by cosines",
    lambda: mention_retrieval.rerank_batch.lower(
      shape((n, size["dim"]), jnp.float32),
      shape.ids(q),
      shape.ids(q, min(_KEPT, n)),
    ),
  )
  yield vae_step(size, shape)
