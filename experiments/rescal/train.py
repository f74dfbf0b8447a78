"""Fits the cells, with a checkpoint after each."""

import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from experiments.rescal import data
from experiments.rescal.config import Config
from experiments.run import checkpoints, memory, progress, runlib, vmapped_runs
from repr_jax.data.io import files
from repr_jax.errors import InputError
from repr_jax.kb import rescal_als, slices, transitivity


class Fitted(NamedTuple):
  """The runs of a cell.

  Attributes:
    models: fields [runs, ...].
    fits: share of the squares that each explains, [runs].
    steps: updates made, [runs].
  """

  models: rescal_als.RescalModel
  fits: jax.Array
  steps: jax.Array


class Cells:
  """Figures of the cells of one work directory, with a checkpoint after each.

  Attributes:
    done: place of the last cell that a checkpoint has, -1 where there is none.
    figures: of all cells, [cells, runs, 5].
  """

  def __init__(
    self, run: runlib.Run, cells: Sequence[data.Cell], config: Config
  ):
    """Restores the run's last checkpoint."""
    self._run, self._cells, self._config = run, cells, config
    figures = np.zeros((len(cells), config.runs, 5))
    self.done, figures = run.restore(figures) or (-1, figures)
    self.figures = np.array(figures)
    self._listed = run.directory / "wrong_edges.tsv"

  def after(self, index: int, fitted: Fitted, seconds: float) -> None:
    """Measures and records what was fitted to a cell.

    Args:
      index: place of the cell.
    """
    began = time.monotonic()
    cell = self._cells[index]
    self.figures[index], wrong = measure(cell, self._config, fitted)
    self._run.log(
      index,
      cell=cell.label,
      mean=self.figures[index].mean(0),
      spread=self.figures[index].std(0),
      cell_seconds=seconds + time.monotonic() - began,
      peak_mb=memory.peak_bytes() / 1e6,
    )
    _append_wrong(self._listed, wrong, cell.label)
    self._run.save(index, self.figures)

  def wrong(self) -> dict[str, list[Any]]:
    """The wrong reversed pairs of all cells, by label."""
    return _read_wrong(self._listed)


def run_cells(
  run: runlib.Run, cells: Sequence[data.Cell], config: Config
) -> tuple[np.ndarray, dict[str, list[Any]]]:
  """Fits cells that are not in the last checkpoint.

  Returns:
    The figures [cells, runs, 5], and the wrong reversed pairs of all cells,
    by label.
  """
  made = Cells(run, cells, config)
  for index in run.progress(range(made.done + 1, len(cells)), "cells"):
    began = time.monotonic()
    (fitted,) = fit_cells(cells[index], [config])
    made.after(index, fitted, time.monotonic() - began)
  return made.figures, made.wrong()


def run_group(
  group: vmapped_runs.Group,
  cells: Sequence[data.Cell],
  configs: Mapping[int, Config],
) -> dict[int, Cells]:
  """`run_cells` of a group: one program fits a cell of all runs.

  Args:
    configs: of each run, by place.

  Returns:
    The figures of the runs that did not fail, by place.
  """
  made: dict[int, Cells] = {}
  for i, config in configs.items():
    opened = group.attempt(i, Cells, group.runs[i], cells, config)
    if opened is not None:
      made[i] = opened
  mesh = vmapped_runs.mesh(max(1, len(made)))
  for index in progress.track(range(len(cells)), f"cells of {len(made)} runs"):
    # Without a ridge the factors are orthonormal, by another program.
    for plain in (False, True):
      due = [
        i
        for i in group.active()
        if made[i].done < index and (configs[i].ridge == 0) == plain
      ]
      if not due:
        continue
      began = time.monotonic()
      fits = fit_cells(cells[index], [configs[i] for i in due], mesh)
      seconds = (time.monotonic() - began) / len(due)
      for i, fitted in zip(due, fits):
        group.attempt(i, made[i].after, index, fitted, seconds)
  return {i: made[i] for i in group.active()}


def fit_cells(
  cell: data.Cell, configs: Sequence[Config], mesh: Mesh | None = None
) -> list[Fitted]:
  """Fits a cell with several configurations, in one program.

  Args:
    configs: may differ in seed, tolerances, maximum updates, and ridge unless
      0.
    mesh: devices that share the runs.
  """
  matrices, keys = [], []
  for config in configs:
    matrices += [
      data.slices_of(cell, run, config) for run in range(config.runs)
    ]
    keys.append(jax.random.split(jax.random.key(config.seed), config.runs))

  def own(name: str) -> np.ndarray:
    """A number of each run."""
    return np.repeat([getattr(x, name) for x in configs], configs[0].runs)

  ridge = None
  if configs[0].ridge:
    penalty = jnp.asarray(own("ridge"))
    ridge = rescal_als.Ridge(penalty, penalty)
  full = cell.setting == "full"
  fitted = rescal_als.fit_runs(
    slices.stack(matrices),
    jnp.concatenate(keys),
    rank=cell.dim,
    start=configs[0].start,
    tolerance=own("full_tolerance" if full else "tolerance"),
    max_steps=own("max_steps"),
    roles=cell.roles,
    ridge=ridge,
    mesh=mesh,
  )
  size = configs[0].runs
  return [
    Fitted(*jax.tree.map(lambda x, i=i: x[i * size : (i + 1) * size], fitted))
    for i in range(len(configs))
  ]


def measure(
  cell: data.Cell, config: Config, fitted: Fitted
) -> tuple[np.ndarray, list[Any]]:
  """Figures of a cell.

  Returns:
    Figures [runs, 5]: percent right of E, E^c, E^rev, the fit and the updates
    made; and the reversed pairs that the last run got most wrong, as
    (argument 1, argument 2, margin). A model that is not finite is a
    `NonFiniteError`.
  """
  models, fits, steps = fitted
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
