"""Figures of the cells: rows, a table and a plot."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.rescal import data
from experiments.run import runlib, tables

PARTS = ("E", "E^c", "E^rev")


def rows_of(
  run: runlib.Run, cells: Sequence[data.Cell], figures: np.ndarray
) -> list[dict[str, Any]]:
  """Writes the mean of each cell beside the figure of the thesis."""
  rows = []
  for cell, values_of in zip(cells, figures):
    for part, name in enumerate(PARTS):
      values = values_of[:, part]
      # The thesis rounds to whole points. If absent pairs are drawn at random,
      # the range of the runs decides agreement; otherwise one point.
      limits: dict[str, Any] = {"tolerance": 1.0}
      if cell.setting == "sub":
        lower, upper = values.min() - 0.5, values.max() + 0.5
        limits = {"lower": max(lower, 0.0), "upper": min(upper, 100.0)}
      told = cell.thesis[part] if cell.thesis else None
      rows.append(
        run.row(
          cell.label, f"{name}, % right", values.mean(), thesis=told, **limits
        )
      )
  return rows


def figure(cells: Sequence[data.Cell], figures: np.ndarray) -> Any:
  """Accuracy on the three sets against d, a line for each size and setting."""
  from matplotlib import figure as figures_lib

  picture = figures_lib.Figure(figsize=(11, 3.6))
  axes = picture.subplots(1, 3, sharey=True)
  groups: dict[str, list[int]] = {}
  for index, cell in enumerate(cells):
    group = cell.label.replace(f" d={cell.dim}", "")
    groups.setdefault(group, []).append(index)
  for part, axis in enumerate(axes):
    for color, (group, members) in enumerate(groups.items()):
      dims = [cells[i].dim for i in members]
      values = figures[members, :, part]
      style = {"color": f"C{color % 10}"}
      axis.errorbar(
        dims, values.mean(1), values.std(1), marker="o", label=group, **style
      )
      told = [
        (c.dim, c.thesis[part]) for i in members if (c := cells[i]).thesis
      ]
      if told:
        axis.plot(*zip(*told), "x--", alpha=0.5, **style)
    axis.set(xscale="log", xlabel="d", title=PARTS[part], ylim=(0, 103))
    ticks = sorted({cell.dim for cell in cells})
    axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axis.minorticks_off()
    axis.grid(alpha=0.3)
  axes[0].set_ylabel("% right (crosses: thesis)")
  axes[-1].legend(fontsize="small")
  picture.tight_layout()
  return picture


def table(cells: Sequence[data.Cell], figures: np.ndarray) -> str:
  """Mean and spread of each cell beside the thesis' figures, as text."""
  columns = ["cell", *(f"{part}, % right" for part in PARTS), "thesis"]
  rows = []
  for cell, values in zip(cells, figures):
    ours = [
      f"{mean:.1f} ±{spread:.1f}"
      for mean, spread in zip(values.mean(0)[:3], values.std(0)[:3])
    ]
    told = "/".join(map(str, cell.thesis)) if cell.thesis else None
    rows.append([cell.label, *ours, told, values[:, 4].mean()])
  return tables.to_text([*columns, tables.Column("updates", ".1f")], rows)


def grids(cells: Sequence[data.Cell], figures: np.ndarray) -> str:
  """The thesis' tables 5.1 and 5.2: sizes by d, each cell E/E^c/E^rev.

  Args:
    figures: of each run, [cells, runs, >= 3].

  Returns:
    A Markdown table for each setting; the thesis' figures stand in brackets.
  """
  dims = sorted({cell.dim for cell in cells})
  made: dict[str, dict[str, dict[int, str]]] = {}
  for cell, values in zip(cells, figures):
    shown = "/".join(f"{mean:.0f}" for mean in values.mean(0)[:3])
    if cell.thesis:
      shown += f" ({'/'.join(map(str, cell.thesis))})"
    row = cell.label.replace(f" d={cell.dim}", "").replace(
      f" {cell.setting}", ""
    )
    grid = made.setdefault(cell.setting, {})
    grid.setdefault(row, {})[cell.dim] = shown
  names = {"full": "FullSet", "sub": "SubSet"}
  parts = []
  for setting, grid in made.items():
    rows = [
      [name, *(row.get(dim) for dim in dims)] for name, row in grid.items()
    ]
    columns = [names[setting], *(f"d = {dim}" for dim in dims)]
    parts.append(tables.to_markdown(columns, rows))
  return "\n\n".join(parts)
