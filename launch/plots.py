"""Plots of figures against the flags that a sweep varied."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from experiments.run import workdir
from launch import results

_PANELS = 6
_COLUMNS = 3
# Beyond this ratio of greatest to least an axis is logarithmic.
_WIDE = 30.0


def against_flags(lines: Sequence[results.Line]) -> Iterator[tuple[str, Any]]:
  """A figure for each experiment and swept flag.

  Each panel shows one measured figure: a point for each setting, with its
  spread over seeds, and a line through the means at each value of the flag.
  Shown are the figures that the thesis has too, or else the first ones.

  Yields:
    A name for the file and a matplotlib figure.
  """
  for experiment in dict.fromkeys(line.experiment for line in lines):
    own = [line for line in lines if line.experiment == experiment]
    told = {line.slot for line in own if line.thesis is not None}
    slots = list(dict.fromkeys(line.slot for line in own))
    chosen = [slot for slot in slots if slot in told] or slots
    panels = [
      [line for line in own if line.slot == slot] for slot in chosen[:_PANELS]
    ]
    for flag in own[0].setting:
      yield f"{experiment} against {flag}", _figure(panels, flag)


def _figure(panels: Sequence[Sequence[results.Line]], flag: str) -> Any:
  from matplotlib import figure

  columns = min(_COLUMNS, len(panels))
  rows = -(-len(panels) // columns)
  picture = figure.Figure(figsize=(4 * columns, 3.2 * rows))
  axes = np.atleast_1d(picture.subplots(rows, columns)).ravel()
  for axis in axes[len(panels) :]:
    axis.remove()
  for axis, lines in zip(axes, panels):
    _panel(axis, lines, flag)
  picture.tight_layout()
  return picture


def _panel(axis: Any, lines: Sequence[results.Line], flag: str) -> None:
  given = [line.setting[flag] for line in lines]
  numeric = all(map(workdir.is_number, given))
  labels = [_plain(str(x)) for x in given]
  places = given if numeric else [sorted(set(labels)).index(x) for x in labels]
  means = [line.mean for line in lines]
  spreads = [line.spread or 0.0 for line in lines]
  axis.errorbar(places, means, spreads, fmt="o", capsize=3, alpha=0.7)
  at = sorted(set(places))
  means_at = [np.mean([m for p, m in zip(places, means) if p == x]) for x in at]
  if numeric:
    axis.plot(at, means_at, "-", color="C0", alpha=0.5)
    if at[0] > 0 and at[-1] / at[0] >= _WIDE:
      axis.set_xscale("log")
  else:
    axis.set_xticks(range(len(set(labels))), sorted(set(labels)))
  thesis = {line.thesis for line in lines if line.thesis is not None}
  if len(thesis) == 1:
    axis.axhline(*thesis, color="C1", linestyle="--", label="thesis")
    axis.legend(fontsize="small")
  names = {line.name for line in lines}
  title = f"{names.pop()}\n" if len(names) == 1 else ""
  axis.set_title(_plain(f"{title}{lines[0].metric}"), fontsize="small")
  axis.set_xlabel(_plain(flag))
  axis.grid(alpha=0.3)


def _plain(text: str) -> str:
  """A text in which no formula is looked for."""
  return text.replace("$", r"\$")
