"""A chapter of the report as data: figures, claims, tables and charts.

An experiment returns a `Chapter`; `save` and `load` keep it as JSON, and
`report_page.write_report` turns chapters into one page.
"""

import dataclasses
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from repr_jax import errors
from repr_jax.data.io import files, json_files

if TYPE_CHECKING:  # it imports JAX, which a page does not need
  from repr_jax.evaluation.significance import Difference

_DIGEST = "fingerprint"


@dataclasses.dataclass
class Table:
  """A table.

  Attributes:
    title: what the table shows.
    header: names of the columns.
    rows: cells, numbers or text, as many as the header has.
    command: the command that made it, if not the chapter's.
  """

  title: str
  header: Sequence[str]
  rows: Sequence[Sequence[Any]]
  command: str = ""


@dataclasses.dataclass
class Point:
  """One line of a forest plot: a figure and its interval.

  Attributes:
    label: a system, setting or data set.
    value: the figure.
    lower: lower end of its interval, None if it has none.
    upper: upper end of its interval, None if it has none.
    note: a few words for the end of the line.
  """

  label: str
  value: float
  lower: float | None = None
  upper: float | None = None
  note: str = ""

  def __post_init__(self) -> None:
    """Turns an interval that a test could not give (NaN) into none."""
    if self.lower is not None and math.isnan(self.lower):
      self.lower = self.upper = None


@dataclasses.dataclass
class Forest:
  """A forest plot: figures or differences below each other.

  Attributes:
    caption: what the plot shows.
    measure: name of the axis.
    points: the lines, in order.
    limits: range of the measure; intervals are clipped to it.
    sides: words for differences below and above zero, such as ("worse than
      BM25", "better than BM25"). With it the plot has a line at zero.
  """

  caption: str
  measure: str
  points: Sequence[Point]
  limits: tuple[float, float] | None = None
  sides: tuple[str, str] | None = None

  def table(self) -> Table:
    """The same numbers as a table."""
    header = ["", self.measure, "lower", "upper", ""]
    rows = [[p.label, p.value, p.lower, p.upper, p.note] for p in self.points]
    return Table(self.caption, header, rows)


@dataclasses.dataclass
class Series:
  """A line of a chart: its name and its points."""

  name: str
  x: Sequence[float]
  y: Sequence[float]
  dashed: bool = False


@dataclasses.dataclass
class Lines:
  """A line chart.

  Attributes:
    caption: what the chart shows.
    x_label: name of the horizontal axis.
    y_label: name of the vertical axis.
    series: the lines.
    limits: range of the vertical axis; from the data if None.
    log: whether the vertical axis is logarithmic.
  """

  caption: str
  x_label: str
  y_label: str
  series: Sequence[Series]
  limits: tuple[float, float] | None = None
  log: bool = False

  def table(self) -> Table:
    """The same numbers as a table, a column for each line."""
    places = sorted({x for line in self.series for x in line.x})
    known = [dict(zip(line.x, line.y)) for line in self.series]
    rows = [[x, *(line.get(x) for line in known)] for x in places]
    header = [self.x_label, *(line.name for line in self.series)]
    return Table(f"{self.caption} ({self.y_label})", header, rows)


@dataclasses.dataclass
class Claim:
  """A claim of the thesis, and whether the figures of this run support it.

  Attributes:
    sentence: the claim.
    evidence: the figures that it rests on, in words.
    figures: the same figures by name.
    holds: whether they support it.
  """

  sentence: str
  evidence: str
  figures: Mapping[str, float]
  holds: bool


def claim(
  sentence: str,
  evidence: str,
  figures: Mapping[str, float],
  test: Callable[[Mapping[str, float]], bool],
) -> Claim:
  """Tests a claim on the figures of a run.

  Args:
    sentence: the claim, positive, without a full stop.
    evidence: template of the evidence, such as "MAP {ours:.3f}, p {p:.2g}".
    figures: the figures that both templates and the test read.
    test: whether the claim holds, given the figures.

  Returns:
    The claim with its evidence and the outcome of the test.
  """
  plain = {name: _number(value) for name, value in figures.items()}
  said = re.sub(r"e-0(\d)", r"e-\1", evidence.format(**plain))
  said = said.replace("p = ", "p\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
  return Claim(sentence.format(**plain), said, plain, bool(test(plain)))


def is_gain(difference: "Difference") -> bool:
  """Whether a difference is above 0 and significant at .05."""
  return difference.value > 0 and difference.p_value < 0.05


def gain_claim(
  sentence: str,
  evidence: str,
  figures: Mapping[str, float],
  gain: "Difference",
) -> Claim:
  """`claim` that a difference is a gain; templates may have "gain" and "p"."""
  held = is_gain(gain)
  told = {**figures, "gain": gain.value, "p": gain.p_value}
  return claim(sentence, evidence, told, lambda _: held)


@dataclasses.dataclass
class Chapter:
  """The figures of one chapter and what they say.

  Attributes:
    title: short name of the chapter.
    summary: one sentence: what was run, on what.
    rows: figures as `Run.row` returns them: name, metric, value and, where
      known, thesis, lower, upper, tolerance.
    tables: further tables, folded.
    charts: the first is the chapter's picture, the others are folded.
    notes: paragraphs of text, folded.
    command: the command that makes this chapter.
    seconds: time it took, None if unknown.
    error: why the chapter failed, None if it did not.
    question: the question that the chapter answers, its heading.
    answer: the answer in one sentence with its number.
    table: the chapter's table, at most 8 rows; by default its figures.
    claims: claims of the thesis, tested.
  """

  title: str
  summary: str
  rows: Sequence[Mapping[str, Any]] = ()
  tables: Sequence[Table] = ()
  charts: Sequence[Forest | Lines] = ()
  notes: Sequence[str] = ()
  command: str = ""
  seconds: float | None = None
  error: str | None = None
  question: str = ""
  answer: str = ""
  table: Table | None = None
  claims: Sequence[Claim] = ()


def save(path: str | os.PathLike, chapter: Chapter) -> None:
  """Writes a chapter as one JSON object."""
  value = dataclasses.asdict(chapter)
  for held, chart in zip(value["charts"], chapter.charts):
    held["kind"] = type(chart).__name__
  plain = json.loads(json.dumps(value, default=_number))
  with files.atomic_write(path, "w") as out:
    json.dump(
      {_DIGEST: _digest(plain), "chapter": plain},
      out, indent=1, ensure_ascii=False,
    )  # fmt: skip


def load(path: str | os.PathLike) -> Chapter:
  """Reads a chapter that `save` wrote; an `InputError` if it was changed."""
  content = json_files.read_json(path)
  value = content.get("chapter") if isinstance(content, dict) else None
  try:
    if not isinstance(value, dict) or content.get(_DIGEST) != _digest(value):
      raise TypeError
    # Another version of this package may have kept other fields.
    return Chapter(
      **value
      | {
        "tables": [Table(**table) for table in value["tables"]],
        "table": value["table"] and Table(**value["table"]),
        "charts": [_chart(chart) for chart in value["charts"]],
        "claims": [Claim(**held) for held in value["claims"]],
      }
    )
  except (KeyError, TypeError, ValueError):
    raise errors.InputError(
      "is not a stored chapter; --rerun makes it again", path=path
    ) from None


def _chart(value: dict[str, Any]) -> Forest | Lines:
  kind = value.pop("kind")
  if kind == "Forest":
    points = [Point(**point) for point in value.pop("points")]
    return Forest(**value, points=points)
  if kind != "Lines":
    raise ValueError
  series = [Series(**line) for line in value.pop("series")]
  return Lines(**value, series=series)


def _digest(value: Any) -> str:
  text = json.dumps(value, sort_keys=True)
  return hashlib.sha256(text.encode()).hexdigest()


def _number(value: Any) -> Any:
  """A NumPy number as Python's, anything else that JSON lacks as text."""
  if hasattr(value, "item"):
    value = value.item()
  return value if isinstance(value, (int, float, str)) else str(value)
