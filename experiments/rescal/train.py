"""Fits the cells, with a checkpoint after each."""

import pathlib
import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.rescal import data
from experiments.rescal.config import Config
from experiments.run import checkpoints, memory, runlib
from repr_jax.data.io import files
from repr_jax.errors import InputError
from repr_jax.kb import rescal_als, slices, transitivity


def run_cells(
  run: runlib.Run,
  cells: Sequence[data.Cell],
  config: Config,
) -> tuple[np.ndarray, dict[str, list[Any]]]:
  """Fits cells that are not in the last checkpoint.

  Returns:
    The figures [cells, runs, 5], and the wrong reversed pairs of all cells,
    by label.
  """
  figures = np.zeros((len(cells), config.runs, 5))
  done, figures = run.restore(figures) or (-1, figures)
  figures = np.array(figures)
  listed = run.directory / "wrong_edges.tsv"
  for index in run.progress(range(done + 1, len(cells)), "cells"):
    began = time.monotonic()
    cell = cells[index]
    figures[index], wrong = fit_cell(cell, config)
    mean, spread = figures[index].mean(0), figures[index].std(0)
    run.log(
      index,
      cell=cell.label,
      mean=mean,
      spread=spread,
      cell_seconds=time.monotonic() - began,
      peak_mb=memory.peak_bytes() / 1e6,
    )
    _append_wrong(listed, wrong, cell.label)
    run.save(index, figures)
  return figures, _read_wrong(listed)


def fit_cell(cell: data.Cell, config: Config) -> tuple[np.ndarray, list[Any]]:
  """Fits all runs of a cell.

  Returns:
    Figures [runs, 5]: percent right of E, E^c, E^rev, the fit and the updates
    made; and the reversed pairs that the last run got most wrong, as
    (argument 1, argument 2, margin). A model that is not finite is a
    `NonFiniteError`.
  """
  matrices = [data.slices_of(cell, run, config) for run in range(config.runs)]
  ridge = None
  if config.ridge:
    ridge = rescal_als.Ridge(config.ridge, config.ridge)
  models, fits, steps = rescal_als.fit_runs(
    slices.stack(matrices),
    jax.random.split(jax.random.key(config.seed), config.runs),
    rank=cell.dim,
    start=config.start,
    tolerance=(
      config.full_tolerance if cell.setting == "full" else config.tolerance
    ),
    max_steps=config.max_steps,
    roles=cell.roles,
    ridge=ridge,
  )
  if (name := checkpoints.not_finite((models, fits))) is not None:
    raise runlib.NonFiniteError(
      f"{cell.label}: the fitted model{name} is not finite; see --ridge, or "
      "compute with --double"
    )
  pairs = jnp.asarray(cell.relation.pairs)
  figures = []
  for run in range(config.runs):
    model = jax.tree.map(lambda field, run=run: field[run], models)
    right = transitivity.accuracies(model, pairs)
    figures.append([100 * float(x) for x in right])
  turned = cell.relation.pairs[:, ::-1]
  margin = np.asarray(transitivity.margins(model, jnp.asarray(turned)))
  worst = np.argsort(-margin)[: config.listed]
  names = cell.relation.names
  wrong = [
    (names[turned[i, 0]], names[turned[i, 1]], float(margin[i]))
    for i in worst
    if margin[i] > 0
  ]
  return np.column_stack([figures, fits, steps]), wrong


def _append_wrong(
  path: pathlib.Path, wrong: Sequence[tuple[str, str, float]], label: str
) -> None:
  kept = {k: v for k, v in _read_wrong(path).items() if k != label}
  lines = [
    f"{name}\t{first}\t{second}\t{margin:.4f}"
    for name, edges in {**kept, label: wrong}.items()
    for first, second, margin in edges
  ]
  with files.atomic_write(path, "w") as out:
    out.write("\n".join([*lines, ""]))


def _read_wrong(path: pathlib.Path) -> dict[str, list[tuple[str, str, float]]]:
  """The pairs that are listed, also of cells that were fitted before."""
  listed: dict[str, list[tuple[str, str, float]]] = {}
  lines = files.open_text(path) if path.exists() else ()
  for number, line in enumerate(lines, 1):
    if line:
      try:
        label, first, second, margin = line.split("\t")
        listed.setdefault(label, []).append((first, second, float(margin)))
      except ValueError:
        raise InputError(
          "is not as it was kept: give another --workdir, or remove this one",
          path=path,
          line=number,
        ) from None
  return listed
