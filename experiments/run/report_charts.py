"""Charts of the report as HTML and SVG, in the colors of the page.

Horizontal places are percentages and vertical ones are pixels, so a chart is
as wide as its column and its text keeps its size on a phone and on paper.
"""

import html
import itertools
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.run import report, report_labels, report_verdicts

_MIDDLE = 9
_HEIGHT = 220
_TOP, _BOTTOM = 8, 196
_LINE = 15
_WIDE = 14
_VERDICTS = {
  "agrees": "agrees",
  "above": "above the thesis",
  "below": "below the thesis",
}


def name(code: str) -> str:
  """Words for a code as HTML, with its parameters as a tooltip."""
  words = report_labels.label(code)
  text = html.escape(words.text)
  if not words.details:
    return text
  return f'<abbr title="{html.escape(words.details)}">{text}</abbr>'


def comparison(groups: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
  """All comparable figures, each on the range of its measure.

  Args:
    groups: rows with a verdict by the title of their chapter.

  Returns:
    HTML: a line for each figure with its interval, the thesis' figure and
    the verdict in color and in words.
  """
  parts: list[str] = []
  for title, rows in groups.items():
    items = "".join(_compared(row) for row in rows)
    if len(parts) == len(groups) - 1:
      items += _axis(((0, "0"), (100, "1 or 100 %")))
    heading = f"<h3>{html.escape(title)}</h3>\n"
    parts.append(f'{heading}<ul class="forest">\n{items}</ul>\n')
  return "".join(parts)


def _compared(row: Mapping[str, Any]) -> str:
  measure = report_labels.measure(row["metric"])
  high = measure.high
  if math.isinf(high):
    high = 1.1 * max(row["value"], row["thesis"], row.get("upper") or 0) or 1.0
  low = min(0.0, row["value"], row["thesis"])
  bounds = report_verdicts.interval(row)
  ends = [report_labels.clip(bound, measure) for bound in bounds or ()]
  spots = [_share(x, low, high) for x in (*ends, row["value"], row["thesis"])]
  kind = report_verdicts.verdict(row) or ""
  shown = (report_labels.number(float(row[x]), 3) for x in ("value", "thesis"))
  label = f"{name(row['name'])}, {html.escape(measure.text)}"
  track = _track(spots[2], spots[:2], spots[3])
  return _item(kind, label, track, " / ".join(shown), _VERDICTS[kind])


def forest(chart: report.Forest) -> str:
  """A forest plot; differences are colored by the side of zero they are on."""
  low, high = _span(chart)
  decimals = min(max(3 - math.ceil(math.log10(high - low)), 0), 6)
  zero = None if chart.sides is None else _share(0, low, high)
  items = []
  for point in chart.points:
    ends: list[float] = []
    if point.lower is not None and point.upper is not None:
      ends = [_share(x, low, high) for x in (point.lower, point.upper)]
    kind, words = side(chart, point)
    shown = round(float(point.value), decimals) + 0.0  # no negative zero
    sign = "+" if chart.sides and shown > 0 else ""
    track = _track(_share(point.value, low, high), ends, None, zero)
    value = f"{sign}{shown:.{decimals}f}"
    note = "; ".join(filter(None, (words, point.note)))
    items.append(_item(kind, name(point.label), track, value, note))
  marks = [(_share(x, low, high), _tick(x)) for x in ticks(low, high)]
  return (
    f'<ul class="forest">\n{"".join(items)}{_axis(marks)}</ul>\n'
    f'<p class="measure">{html.escape(chart.measure)}</p>\n'
  )


def side(chart: report.Forest, point: report.Point) -> tuple[str, str]:
  """The side of zero that a difference is on: its color and its word."""
  if chart.sides is None:
    return "plain", ""
  if point.lower is None or point.upper is None:
    return "plain", ""
  if point.lower > 0:
    return "above", chart.sides[1]
  if point.upper < 0:
    return "below", chart.sides[0]
  return "plain", "no clear difference"


def lines(chart: report.Lines) -> str:
  """A line chart with the name of each line at its end."""
  drawn = [line for line in chart.series if len(line.x)]
  if not drawn:
    return ""
  xs = sorted({float(x) for line in drawn for x in line.x})
  low, high = _vertical(chart, drawn)
  scale = math.log10 if chart.log else float
  across = [3 + 0.94 * _share(x, xs[0], xs[-1]) for x in xs]
  place = dict(zip(xs, across))

  def height(y: float) -> float:
    y = min(max(y, low), high)
    return _BOTTOM - (_BOTTOM - _TOP) * _share(
      scale(y), scale(low), scale(high)
    ) / 100  # fmt: skip

  levels = _decades(low, high) if chart.log else ticks(low, high)
  grid = "".join(
    f'<line class="grid" x1="0%" x2="100%" y1="{height(y):.1f}" '
    f'y2="{height(y):.1f}"/>'
    for y in levels
  )
  left = "".join(
    f'<text x="40" y="{height(y) + 4:.1f}" text-anchor="end">{_tick(y)}</text>'
    for y in levels
  )
  shown = xs if len(xs) <= 6 else ticks(xs[0], xs[-1])
  below = "".join(
    f'<text x="{3 + 0.94 * _share(x, xs[0], xs[-1]):.1f}%" y="{_BOTTOM + 18}" '
    f'text-anchor="middle">{_tick(x)}</text>'
    for x in shown
  )
  ends = [height(float(line.y[-1])) for line in drawn]
  names = [report_labels.label(line.name).text for line in drawn]
  tops = _spread(ends, [_LINE * len(textwrap.wrap(x, _WIDE)) for x in names])
  body, labels = [], []
  for i, (line, text) in enumerate(zip(drawn, names)):
    spots = [(place[float(x)], height(float(y)))
             for x, y in zip(line.x, line.y)]  # fmt: skip
    body.append(_series(i, spots, line.dashed, tops[i]))
    labels.append(
      f'<span class="s{i % 6 + 1}" style="top:{tops[i]:.0f}px">'
      f"{html.escape(text)}</span>"
    )
  return (
    f'<p class="measure">{html.escape(chart.y_label)}</p>\n'
    f'<div class="lines" role="img" aria-label="{html.escape(chart.caption)}">'
    f'<svg class="left" height="{_HEIGHT}">{left}</svg>'
    f'<svg class="plot" height="{_HEIGHT}">{grid}{"".join(body)}{below}</svg>'
    f'<div class="names">{"".join(labels)}</div></div>\n'
    f'<p class="measure across">{html.escape(chart.x_label)}</p>\n'
  )


def ticks(low: float, high: float) -> list[float]:
  """Three to six round numbers between two numbers."""
  if not high > low:
    return [low]
  step = 10 ** math.floor(math.log10((high - low) / 2))
  while (high - low) / step > 5.5:
    step *= 2.5 if f"{step:e}"[0] == "2" else 2
  first = math.ceil(low / step - 1e-9)
  count = int((high - low) / step + 1e-9) + 2
  marks = [(first + i) * step for i in range(count)]
  return [round(x, 12) for x in marks if low - 1e-12 <= x <= high + 1e-9 * step]


def _series(
  index: int, spots: Sequence[tuple[float, float]], dashed: bool, label: float
) -> str:
  """Segments, points and the thin line from the last point to the name."""
  kind = f"s{index % 6 + 1}" + (" dashed" if dashed else "")
  parts = [
    f'<line class="curve" x1="{a[0]:.2f}%" y1="{a[1]:.1f}" '
    f'x2="{b[0]:.2f}%" y2="{b[1]:.1f}"/>'
    for a, b in itertools.pairwise(spots)
  ]
  if len(spots) <= 12:
    parts += [f'<circle cx="{x:.2f}%" cy="{y:.1f}" r="3"/>' for x, y in spots]
  x, y = spots[-1]
  parts.append(
    f'<line class="leader" x1="{x:.2f}%" y1="{y:.1f}" x2="100%" '
    f'y2="{label + _LINE / 2:.1f}"/>'
  )
  return f'<g class="{kind}">{"".join(parts)}</g>'


def _track(
  value: float,
  ends: Sequence[float],
  thesis: float | None,
  zero: float | None = None,
) -> str:
  """One line of a forest plot; all places are percentages."""
  parts = [_rule("base", 0, 100, _MIDDLE, _MIDDLE)]
  if zero is not None:
    parts.append(_rule("zero", zero, zero, 0, 2 * _MIDDLE))
  if ends:
    width = max(ends[1] - ends[0], 0.0)
    parts.append(
      f'<rect class="band" x="{ends[0]:.2f}%" y="{_MIDDLE - 4}" '
      f'width="{width:.2f}%" height="8"/>'
    )
  if thesis is not None:
    parts.append(_rule("thesis", thesis, thesis, 2, 2 * _MIDDLE - 2))
  parts.append(f'<circle cx="{value:.2f}%" cy="{_MIDDLE}" r="4"/>')
  return (
    f'<svg class="track" height="{2 * _MIDDLE}" aria-hidden="true">'
    f"{''.join(parts)}</svg>"
  )


def _rule(kind: str, x1: float, x2: float, y1: float, y2: float) -> str:
  return (
    f'<line class="{kind}" x1="{x1:.2f}%" x2="{x2:.2f}%" y1="{y1}" y2="{y2}"/>'
  )


def _item(kind: str, label: str, track: str, value: str, note: str) -> str:
  return (
    f'<li class="{kind}"><span class="name">{label}</span>{track}'
    f'<span class="value">{html.escape(value)}</span>'
    f'<span class="verdict">{html.escape(note)}</span></li>\n'
  )


def _axis(marks: Iterable[tuple[float, str]]) -> str:
  texts = "".join(
    f'<text x="{x:.2f}%" y="12" text-anchor="{_anchor(x)}">{text}</text>'
    for x, text in marks
  )
  return (
    '<li class="axis" aria-hidden="true"><span class="name"></span>'
    f'<svg class="track" height="16">{texts}</svg>'
    '<span class="value"></span><span class="verdict"></span></li>\n'
  )


def _anchor(x: float) -> str:
  return "start" if x < 4 else "end" if x > 96 else "middle"


def _span(chart: report.Forest) -> tuple[float, float]:
  """Ends of the axis: round numbers, within the range of the measure."""
  values = [0.0]
  for point in chart.points:
    values += [point.value, point.lower or 0.0, point.upper or 0.0]
  low, high = min(values), max(values)
  if chart.limits is not None:
    low, high = max(low, chart.limits[0]), min(high, chart.limits[1])
  room = 0.04 * (high - low) or 1.0
  edges = (low - room if low < 0 else low), high + room
  if chart.limits is not None:
    edges = max(edges[0], chart.limits[0]), min(edges[1], chart.limits[1])
  return edges


def _vertical(
  chart: report.Lines, drawn: Sequence[report.Series]
) -> tuple[float, float]:
  if chart.limits is not None:
    return chart.limits
  values = [float(y) for line in drawn for y in line.y]
  if chart.log:
    values = [y for y in values if y > 0] or [1.0]
    return 10 ** math.floor(math.log10(min(values))), max(values)
  low, high = min(values), max(values)
  return (low, high) if high > low else (low - 0.5, high + 0.5)


def _decades(low: float, high: float) -> list[float]:
  first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
  step = max(1, (last - first) // 4)
  return [10.0**power for power in range(first, last + 1, step)]


def _spread(wanted: Sequence[float], sizes: Sequence[int]) -> list[float]:
  """Tops of labels near their lines that do not cover each other."""
  order = sorted(range(len(wanted)), key=lambda i: wanted[i])
  tops = [0.0] * len(wanted)
  free = 0.0
  for i in order:
    tops[i] = max(wanted[i] - _LINE / 2, free)
    free = tops[i] + sizes[i]
  limit = float(_HEIGHT)
  for i in reversed(order):
    tops[i] = max(0.0, min(tops[i], limit - sizes[i]))
    limit = tops[i]
  return tops


def _share(x: float, low: float, high: float) -> float:
  """Place of a number between two others, in percent, kept inside."""
  if not high > low:
    return 50.0
  return 100 * min(max((x - low) / (high - low), 0.0), 1.0)


def _tick(x: float) -> str:
  return report_labels.number(float(x), 3)
