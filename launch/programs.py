"""The programs of experiments as shapes: what `launch.compile` compiles.

No array is made, and no data is read: sizes come as flags. Defaults are those
of the thesis, or of the field's data sets where it names none.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from launch import (
  expansion_programs,
  kb_programs,
  linking_programs,
  spectral_programs,
)
from launch.shapes import Program, Shapes
from repr_jax.errors import InputError
from repr_jax.multiview import sharding
from repr_jax.ops import mesh as meshes
from repr_jax.setexp import sharding as vae_placement

TEXTS = {
  "words": "Words, N.",
  "columns": "Columns of a view.",
  "entries": "Nonzero counts of a view.",
  "views": "Views that are combined.",
  "m": "Rank of each view's SVD.",
  "k": "Dimension of the vectors.",
  "vocabulary": "Words with vectors.",
  "terms": "Distinct words of analogy questions.",
  "questions": "Analogy questions.",
  "features": "Features, F.",
  "hidden": "Width of the first layer.",
  "dim": "Numbers in a vector.",
  "batch_size": "Entities or facts in a step.",
  "touched": "Distinct features of a batch.",
  "entities": "Entities.",
  "row": "Features of an entity.",
  "queries": "Queries at once.",
  "rank": "Numbers per entity.",
  "relations": "Relations.",
  "facts": "Known facts.",
  "candidates": "Candidates of a fact or of a mention.",
  "block": "Queries ranked, or entities trained, side by side.",
  "documents": "Documents in a step.",
  "mentions": "Mentions of a document, or of the collection.",
  "context": "Words around a mention.",
  "bag": "Words of an entity.",
  "postings": "Words of all mentions, in both fields.",
  "chunks": "Chunks of 64 postings that a query adds up.",
}


class _Experiment(NamedTuple):
  """Programs of an experiment, axes of its mesh and default sizes."""

  programs: Callable[[Mapping[str, int], Shapes], Iterator[Program]]
  axes: tuple[str, ...]
  sizes: dict[str, int]


EXPERIMENTS = {
  "mvlsa": _Experiment(
    spectral_programs.mvlsa,
    sharding.AXES,
    {
      "words": 100_000, "columns": 14_336, "entries": 9_000_000, "views": 8,
      "m": 300, "k": 300, "vocabulary": 500_000, "terms": 905,
      "questions": 19_544,
    },
  ),
  "nvse": _Experiment(
    expansion_programs.nvse,
    vae_placement.AXES,
    {
      "features": 105_448, "hidden": 500, "dim": 50, "batch_size": 64,
      "touched": 8192, "entities": 80_000, "row": 64, "queries": 16,
    },
  ),
  "elkb": _Experiment(
    kb_programs.elkb,
    kb_programs.AXES,
    {
      "entities": 40_943, "relations": 18, "facts": 141_442, "dim": 100,
      "batch_size": 1024, "candidates": 1000, "block": 128,
    },
  ),
  "rescal": _Experiment(
    spectral_programs.rescal, (), {"entities": 16_255, "rank": 400}
  ),
  "ned": _Experiment(
    linking_programs.ned,
    linking_programs.AXES,
    {
      "entities": 50_000, "vocabulary": 50_000, "dim": 300, "documents": 8,
      "mentions": 32, "candidates": 30, "context": 100, "bag": 200,
      "block": 1024,
    },
  ),
  "cmr": _Experiment(
    linking_programs.cmr,
    (),
    {
      "mentions": 51_890, "queries": 64, "postings": 2_000_000, "chunks": 64,
      "dim": 50, "features": 60_000, "hidden": 100, "batch_size": 64,
      "touched": 4096,
    },
  ),
}  # fmt: skip


def programs(
  experiment: str,
  sizes: Mapping[str, int | None],
  mesh: str | None,
  devices: list[Any],
) -> Iterator[Program]:
  """The programs of one experiment.

  Args:
    experiment: one of `EXPERIMENTS`.
    sizes: by name, of `TEXTS`; None and what is left out for the default.
    mesh: as the experiment's --mesh; None for one device.

  Returns:
    The programs. Raises `InputError` for sizes that the experiment does not
    have, or for a mesh that does not fit the devices.
  """
  chosen = EXPERIMENTS[experiment]
  given = {name: value for name, value in sizes.items() if value is not None}
  unread = [name for name in given if name not in chosen.sizes]
  if unread:
    raise InputError(
      f"--{unread[0]} is not a size of {experiment}; its sizes are "
      + ", ".join(f"--{name}" for name in chosen.sizes)
    )
  if mesh and not chosen.axes:
    raise InputError(
      f"--mesh: {experiment} runs on one device; leave --mesh out"
    )
  made = meshes.make_mesh(mesh, chosen.axes, devices)
  size, shapes = {**chosen.sizes, **given}, Shapes(made, devices[0])
  return (
    program._replace(shared=program.shared and bool(chosen.axes))
    for program in chosen.programs(size, shapes)
  )
