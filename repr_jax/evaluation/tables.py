"""Comparison tables that mark winners and significant gains.

As in the thesis' tables: in each row the best system is bold, as are all
systems less than the row's MRDS below it; a gain, the difference of two
systems, gets a dagger if it reaches the MRDS. The MRDS is a bound for all
systems that correlate by r: a smaller difference of two systems that correlate
more may be significant too (`significance.williams_test`). Values are times
100.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from repr_jax.evaluation import significance

DAGGER = "†"

# Differences of figures with one decimal have rounding errors.
_SLACK = 1e-9


class Row(NamedTuple):
  """One test set in a comparison.

  Attributes:
    name: of the set.
    values: figure of each system, times 100; NaN or absent where unknown.
    size: items that were scored, which decides the MRDS.
    kind: "correlation" or "accuracy".
    coverage: share of the set that was scored.
    thesis: the thesis' figure of each system, where it has one.
  """

  name: str
  values: Mapping[str, float]
  size: int
  kind: str = "correlation"
  coverage: float = 1.0
  thesis: Mapping[str, float] = {}


class Gain(NamedTuple):
  """A column that shows how much one system gains over another."""

  name: str
  system: str
  over: str


def threshold(
  size: int, kind: str, *, p0: float = 0.05, r: float = 0.9
) -> float:
  """MRDS of a set, times 100; infinite if the set is too small.

  Args:
    size: items scored.
    kind: "correlation" or "accuracy".
    p0: level.
    r: assumed correlation between systems, for correlations.
  """
  if kind == "correlation":
    if size <= 3:
      return math.inf
    return 100 * significance.mrds_correlation(size, p0, r)
  if kind == "accuracy":
    return 100 * significance.mrds_accuracy(size, p0) if size else math.inf
  raise ValueError(f'kind must be "correlation" or "accuracy", not {kind!r}')


def winners(values: Mapping[str, float], sigma: float) -> set[str]:
  """The systems less than the MRDS below the best.

  Args:
    values: figure of each system; NaN is left out.
  """
  known = {name: v for name, v in values.items() if not math.isnan(v)}
  if not known:
    return set()
  best = max(known.values())
  return {
    name for name, v in known.items() if v == best or best - v < sigma - _SLACK
  }


def compare(
  rows: Sequence[Row],
  *,
  gains: Sequence[Gain] = (),
  p0: float = 0.05,
  r: float = 0.9,
) -> list[dict]:
  """Cells of a comparison, as plain rows for a report.

  Args:
    rows: the test sets.
    gains: columns of differences.
    p0: level of the MRDS.
    r: assumed correlation between systems.

  Returns:
    For each set and system `{"set", "system", "value", "thesis", "winner",
    "significant", "mrds", "coverage"}`; gains are rows of their own whose
    `significant` is whether they reach the MRDS (None for systems, and
    `winner` is None for gains). A figure that does not exist is None.
  """
  cells: list[dict] = []
  for row in rows:
    sigma = threshold(row.size, row.kind, p0=p0, r=r)
    best = winners(row.values, sigma)
    common = {"set": row.name, "mrds": _finite(sigma), "coverage": row.coverage}
    for system, value in row.values.items():
      cells.append(
        {
          **common,
          "system": system,
          "value": _finite(value),
          "thesis": row.thesis.get(system),
          "winner": system in best,
          "significant": None,
        }
      )
    for gain in gains:
      value = _difference(row.values, gain)
      cells.append(
        {
          **common,
          "system": gain.name,
          "value": _finite(value),
          "thesis": _finite(_difference(row.thesis, gain)),
          "winner": None,
          "significant": value >= sigma - _SLACK,
        }
      )
  return cells


def grid(
  cells: Sequence[Mapping], *, digits: int = 1
) -> tuple[list[str], list[list[str]], set[tuple[int, int]]]:
  """Arranges a comparison as a table, to be printed.

  Args:
    cells: what `compare` returned.
    digits: decimals shown.

  Returns:
    The header; a row for each set, with a dagger at significant gains and the
    thesis' figure in brackets; and (row, column) of each winner. Sets and
    systems are in order of appearance.
  """
  systems = list(dict.fromkeys(cell["system"] for cell in cells))
  table: dict[str, dict[str, Mapping]] = {}
  for cell in cells:
    table.setdefault(cell["set"], {})[cell["system"]] = cell
  body, marked = [], set()
  for number, (name, row) in enumerate(table.items()):
    any_cell = next(iter(row.values()))
    body.append(
      [
        name,
        *(_show(row.get(system), digits) for system in systems),
        _number(any_cell["mrds"], 2),
        f"{100 * any_cell['coverage']:.0f}%",
      ]
    )
    for column, system in enumerate(systems, 1):
      cell = row.get(system, {})
      if cell.get("winner") and cell["value"] is not None:
        marked.add((number, column))
  return ["Test set", *systems, "MRDS", "coverage"], body, marked


def _show(cell: Mapping | None, digits: int) -> str:
  if cell is None or cell["value"] is None:
    return "-"
  shown = _number(cell["value"], digits)
  if cell["significant"]:
    shown += DAGGER
  if cell["thesis"] is not None:
    shown += f" ({_number(cell['thesis'], digits)})"
  return shown


def _number(value: float | None, digits: int) -> str:
  return "-" if value is None else f"{value:.{digits}f}"


def _finite(value: float) -> float | None:
  return value if math.isfinite(value) else None


def _difference(values: Mapping[str, float], gain: Gain) -> float:
  nan = float("nan")
  return values.get(gain.system, nan) - values.get(gain.over, nan)
