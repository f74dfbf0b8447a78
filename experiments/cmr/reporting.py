"""Figures of all systems as tables for people and rows for results.json."""

import math
from collections.abc import Mapping, Sequence

from experiments.cmr import data as task_lib
from experiments.cmr.evaluate import MEASURES, Line, Scored
from experiments.run import report
from repr_jax.evaluation import significance


def table(lines: Sequence[Line], top: int) -> report.Table:
  """All lines as one table, with intervals of the difference to BM25.

  Args:
    lines: from `evaluate.evaluate`.
    top: mentions that were ranked again.
  """
  rows = []
  for line in lines:
    cells: list = [line.name, "" if line.weight is None else line.weight]
    for name in MEASURES:  # a pool may have none of these queries
      cells.append(round(line.means[name], 4) if name in line.means else "")
    cells += [measured(line, name) for name in ("map", "infAP")]
    for name in ("map", "infAP"):
      gap = line.differences.get(name)
      cells.append("" if gap is None or line is lines[0] else show(gap))
    rows.append(cells)
  header = ["system", "weight", "AP", "infAP", "NDCG", "MRR", "P@5", "P@10",
            "queries", "with infAP", "AP minus BM25's",
            "infAP minus BM25's"]  # fmt: skip
  title = f"Re-ranking the best {top:,} of two-field BM25"
  return report.Table(title, header, rows)


def show(gap: significance.Difference) -> str:
  """A difference with its interval and p."""
  if math.isnan(gap.p_value):
    return f"{gap.value:+.4f} (one query, no p)"
  text = f"{gap.value:+.4f} [{gap.lower:+.4f}, {gap.upper:+.4f}]"
  return f"{text} p={gap.p_value:.4f}"


def measured(line: Line, name: str) -> int:
  """How many queries a measure of a line is the mean of."""
  return sum(name in row for row in line.values.values())


def rows(lines: Sequence[Line]) -> list[Mapping[str, object]]:
  """Figures of all lines, in the form of `Run.row`'s arguments."""
  listed: list[Mapping[str, object]] = []
  for line in lines:
    for name, value in line.means.items():
      row: dict[str, object] = {
        "name": line.name,
        "metric": name,
        "value": value,
      }
      if name == "infAP" and line.thesis is not None:
        row["thesis"] = line.thesis
      listed.append(row)
  return listed


def count_rows(
  task: task_lib.Task, scored: Scored, lines: Sequence[Line]
) -> list[Mapping[str, object]]:
  """How many queries there are, and what was left out of which measure.

  Args:
    task: the task.
    scored: the scores of the systems.
    lines: from `evaluate.evaluate`; they have the same queries.

  Returns:
    Counts named "queries", in the form of `Run.row`'s arguments.
  """
  held = measured(lines[0], "map")
  counts = {
    "all": len(task.queries),
    "a weight was chosen on": len(task.queries) - held,
    **{f"in {name}": measured(lines[0], name) for name in MEASURES},
    "left out of infAP: none judged relevant": len(task.queries)
    - len(scored.pool),
    **{f"left out: {reason}": n for reason, n in task.excluded.items()},
  }
  return [
    {"name": "queries", "metric": metric, "value": count}
    for metric, count in counts.items()
  ]
