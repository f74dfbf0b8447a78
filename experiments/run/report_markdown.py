"""The report as Markdown: the same sentences and numbers, no pictures."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.run import report, report_labels, report_verdicts
from experiments.run import tables as printer


def text(
  chapters: Mapping[str, report.Chapter],
  about: Sequence[str],
  lead: str,
  title: str,
) -> str:
  """The report as Markdown.

  Args:
    lead: the sentence below the title.

  Returns:
    The text; charts are given as tables of their numbers.
  """
  lines = [f"# {title}", ""] + [_plain(lead), ""] * bool(lead)
  for chapter in chapters.values():
    told = report_verdicts.summary_line(chapter)
    lines.append(f"- **{_plain(chapter.title)}**: {_plain(told)}")
  for holds, heading in ((True, "Holds"), (False, "Does not hold here")):
    claims = [
      f"- {_plain(claim.sentence)}: {_plain(claim.evidence)}."
      for chapter in chapters.values()
      for claim in chapter.claims
      if claim.holds is holds
    ]
    lines += ["", f"## {heading}", "", *claims] if claims else []
  for chapter in chapters.values():
    lines += _chapter(chapter)
  lines += [""] + [f"{_plain(line)}  " for line in about]
  return "\n".join(lines) + "\n"


def _chapter(chapter: report.Chapter) -> list[str]:
  lines = ["", f"## {_plain(chapter.question or chapter.title)}", ""]
  lines += [_plain(chapter.answer), ""] * bool(chapter.answer)
  lines.append(_plain(chapter.summary))
  if chapter.error is not None:
    lines += ["", "This chapter failed:", ""]
    lines += [f"    {line}" for line in chapter.error.splitlines()]
  tables = [chapter.table] if chapter.table is not None else []
  tables += [t for t in [report_verdicts.figures(chapter)] if t is not None]
  tables += [*chapter.tables, *(chart.table() for chart in chapter.charts)]
  for table in tables:
    lines += _table(table)
  for note in chapter.notes:
    lines += ["", _plain(note)]
  if chapter.command:
    lines += ["", f"Made by `{chapter.command}`"]
  return lines


def _table(table: report.Table) -> list[str]:
  header = [_cell(name) for name in table.header]
  rows = [[_cell(value) for value in row] for row in table.rows]
  lines = ["", f"**{_plain(table.title)}**", ""]
  lines += [printer.to_markdown(header, rows, missing="")]
  return lines + (["", f"Made by `{table.command}`"] if table.command else [])


def _cell(value: Any) -> str:
  """A cell's text or number; `printer.to_markdown` escapes the bar."""
  if isinstance(value, str):
    return _plain(report_labels.label(value).text)
  return report_labels.number(value)


def _plain(words: str) -> str:
  """Text on one line that Markdown leaves as it is."""
  joined = " ".join(words.split())
  return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", joined)
