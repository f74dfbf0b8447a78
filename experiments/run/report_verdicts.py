"""How the figures of chapters compare with those of the thesis."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from experiments.run import report, report_labels


class Counts(NamedTuple):
  """How the figures of a report compare with the thesis.

  Attributes:
    agrees: figures whose interval or tolerance contains the thesis' figure.
    above: figures above the thesis.
    below: figures below the thesis.
    alone: chapters that finished without a comparable figure.
    failed: chapters that failed.
  """

  agrees: int
  above: int
  below: int
  alone: int
  failed: int


def verdict(row: Mapping[str, Any]) -> str | None:
  """Compares a figure with the thesis: "agrees", "above" or "below".

  The interval [lower, upper] decides if the row has one, else the tolerance
  around our value. None if there is no figure of the thesis, or neither
  interval nor tolerance: such figures are not comparable.
  """
  thesis, bounds = row.get("thesis"), interval(row)
  if thesis is None or bounds is None:
    return None
  if bounds[0] <= thesis <= bounds[1]:
    return "agrees"
  return "above" if row["value"] > thesis else "below"


def interval(row: Mapping[str, Any]) -> tuple[float, float] | None:
  """The interval of a figure, or its tolerance; None if it has neither."""
  lower, upper, tolerance = map(row.get, ("lower", "upper", "tolerance"))
  if lower is not None and upper is not None:
    return lower, upper
  if tolerance is not None:
    return row["value"] - tolerance, row["value"] + tolerance
  return None


def comparable(chapter: report.Chapter) -> list[Mapping[str, Any]]:
  """The figures of a chapter that have a verdict."""
  return [row for row in chapter.rows if verdict(row) is not None]


def count(chapters: Sequence[report.Chapter]) -> Counts:
  """Counts verdicts, chapters without any, and failed chapters."""
  rows = [row for chapter in chapters for row in comparable(chapter)]
  verdicts = [verdict(row) for row in rows]
  done = [chapter for chapter in chapters if chapter.error is None]
  agrees, above, below = map(verdicts.count, ("agrees", "above", "below"))
  return Counts(
    agrees,
    above,
    below,
    alone=sum(not comparable(chapter) for chapter in done),
    failed=len(chapters) - len(done),
  )


def outcome(chapter: report.Chapter) -> str:
  """How a chapter's figures compare with the thesis, or why it failed."""
  if chapter.error is not None:
    return f"failed: {(chapter.error.strip() or 'no reason').splitlines()[-1]}"
  counts = count([chapter])
  if counts.alone:
    return "no comparable figure in the thesis"
  compared = len(comparable(chapter))
  parts = [f"{counts.agrees} of {compared} figures agree with the thesis"]
  parts += [f"{counts.above} above"] * (counts.above > 0)
  parts += [f"{counts.below} below"] * (counts.below > 0)
  return ", ".join(parts)


def summary_line(chapter: report.Chapter) -> str:
  """The chapter in one line: what was run, the time and the outcome."""
  if chapter.error is not None:
    return outcome(chapter)
  parts = [chapter.summary.rstrip(". ")] if chapter.summary else []
  if chapter.seconds is not None:
    parts.append(f"{chapter.seconds:,.0f} s")
  return "; ".join([*parts, outcome(chapter)]) + "."


def figures(
  chapter: report.Chapter, most: int | None = None
) -> report.Table | None:
  """The figures of a chapter as a table, with the columns that they fill.

  Args:
    most: number of rows to keep; all if None.

  Returns:
    The table, None if there are no figures. A figure of the thesis stands
    beside ours only if the two can be compared.
  """
  rows = list(chapter.rows)[:most]
  if not rows:
    return None
  bounded = any(_interval(row) for row in rows)
  compared = any(verdict(row) for row in rows)
  header = ["", "measure", "ours"]
  header += ["interval"] * bounded + ["thesis", "verdict"] * compared
  lines = []
  for row in rows:
    told = verdict(row)
    words = report_labels.measure(row["metric"]).text
    line = [row["name"], words, row["value"]]
    line += [_interval(row)] * bounded
    line += [row["thesis"] if told else None, told or ""] * compared
    lines.append(line)
  return report.Table("All figures", header, lines)


def _interval(row: Mapping[str, Any]) -> str:
  if row.get("lower") is not None and row.get("upper") is not None:
    measure = report_labels.measure(row["metric"])
    ends = (report_labels.clip(row[x], measure) for x in ("lower", "upper"))
    return " to ".join(report_labels.number(float(x), 3) for x in ends)
  if row.get("tolerance") is not None:
    return f"± {report_labels.number(row['tolerance'])}"
  return ""
