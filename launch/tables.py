"""Tables of collected results: CSV for programs, Markdown for people."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from experiments.run import tables
from launch import results

DAGGER = "†"
_SHOWN = 8  # Figures of the chosen setting that are listed.


def to_csv(lines: Sequence[results.Line]) -> str:
  """All figures, one line each; flags that an experiment lacks are empty.

  Returns:
    The file, with a header.
  """
  names = list(dict.fromkeys(name for line in lines for name in line.setting))
  header = ["experiment", "name", "metric", *names, "thesis", "mean", "sd"]
  header += ["seeds", "least", "greatest", "lower", "upper", "p", "best"]
  out = io.StringIO()
  writer = csv.writer(out, lineterminator="\n")
  writer.writerow(header)
  for line in lines:
    spread = line.spread
    writer.writerow(
      [
        line.experiment,
        line.name,
        line.metric,
        *(_text(line.setting.get(name)) for name in names),
        _text(line.thesis),
        repr(line.mean),
        "" if spread is None else repr(spread),
        len(line.values),
        repr(min(line.values)),
        repr(max(line.values)),
        *(map(repr, line.interval) if line.interval else ("", "")),
        _text(line.p_value),
        "yes" if line.best else "",
      ]
    )
  return out.getvalue()


def to_markdown(lines: Sequence[results.Line]) -> str:
  """One table for each experiment, with a legend if it has marks.

  Returns:
    The text, ending in a newline.
  """
  parts = []
  for experiment in dict.fromkeys(line.experiment for line in lines):
    own = [line for line in lines if line.experiment == experiment]
    parts.append(f"## {experiment}\n\n{_table(own)}")
  text = "\n".join(parts)
  for top, rest in results.selected(lines):
    setting = ", ".join(f"{x}={_text(y)}" for x, y in top.setting.items())
    text += (
      f"\nChosen on validation facts ({top.experiment}, {top.metric} "
      f"{_number(top.mean)}): {setting}. Its other figures: "
      + "; ".join(map(_figure, rest[:_SHOWN]))
      + ". Do not choose by these.\n"
    )
  if any(line.p_value is not None for line in lines):
    text += (
      f"\nBold: the best setting, and those that are not significantly worse. "
      f"{DAGGER}: significantly worse (Welch's t test over seeds, Holm's "
      f"correction, p < {results.LEVEL:g}).\n"
    )
  return text


def _table(lines: Sequence[results.Line]) -> str:
  flags = list(lines[0].setting)
  right = [*flags, "thesis", "ours", "spread", "seeds"]
  columns = [
    tables.Column("figure"),
    tables.Column("metric"),
    *(tables.Column(name, align="right") for name in right),
  ]
  body = [
    [
      line.name,
      line.metric,
      *(_text(line.setting[name]) or "-" for name in flags),
      "-" if line.thesis is None else _number(line.thesis),
      _number(line.mean) + ("" if line.best else _dagger(line)),
      _spread(line),
      len(line.values),
    ]
    for line in lines
  ]
  ours = len(columns) - 3
  marked = [(i, ours) for i, line in enumerate(lines) if line.best]
  return tables.to_markdown(columns, body, marked=marked) + "\n"


def _dagger(line: results.Line) -> str:
  return "" if line.p_value is None else DAGGER


def _spread(line: results.Line) -> str:
  if line.spread is not None:
    return f"± {_number(line.spread)}"
  if line.interval is not None:
    return f"{_number(line.interval[0])} to {_number(line.interval[1])}"
  return "-"


def _figure(line: results.Line) -> str:
  spread = "" if line.spread is None else f" ± {_number(line.spread)}"
  return f"{line.metric} {_number(line.mean)}{spread}"


def _number(value: float) -> str:
  return f"{value:.4g}"


def _text(value: Any) -> str:
  if value is None:
    return ""
  if isinstance(value, list):
    return ",".join(map(_text, value))
  return str(value).lower() if isinstance(value, bool) else str(value)
