"""The report as one page, `report.html`, that needs no other file.

The first screen has counts, per chapter the first claim that holds and the
first that does not, and one chart of comparable figures. Each chapter has a
question, its answer, a picture and a small table; the rest is folded.
"""

import html
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.run import (
  report,
  report_charts,
  report_labels,
  report_markdown,
  report_style,
  report_verdicts,
)
from repr_jax.data.io import files

TITLE = "The thesis and this run"
_MOST_ROWS = 8
_NUMBER = re.compile(r"[-+]?\d[\d.,]*(e-?\d+)?( ?%)?")
_MOST_COLUMNS = 8
_LEGEND = (
  "Dot: this run. Band: its interval, or the tolerance. Bar: the thesis. "
  "Numbers: this run / thesis. Each line spans the range of its measure."
)


def write_report(
  chapters: Mapping[str, report.Chapter],
  directory: str | os.PathLike,
  about: Sequence[str] = (),
  lead: str = "",
) -> pathlib.Path:
  """Writes `report.html` and `report.md` into a directory.

  Args:
    chapters: the chapters by their short names, in the order of the report.
    directory: where the report goes; made if absent.
    about: lines for the foot of the page: preset, versions, machine.
    lead: the sentence below the title: what was run, on what.

  Returns:
    The path of the page.
  """
  folder = pathlib.Path(directory)
  folder.mkdir(parents=True, exist_ok=True)
  path = folder / "report.html"
  with files.atomic_write(path, "w") as out:
    out.write(page(chapters, about, lead))
  with files.atomic_write(folder / "report.md", "w") as out:
    out.write(report_markdown.text(chapters, about, lead, TITLE))
  return path


def page(
  chapters: Mapping[str, report.Chapter], about: Sequence[str], lead: str
) -> str:
  """The page as text; the arguments are those of `write_report`."""
  body = "".join(_chapter(name, chapter) for name, chapter in chapters.items())
  facts = "".join(f"<p>{_escape(line)}</p>\n" for line in about)
  return report_style.PAGE.format(
    style=report_style.STYLE,
    title=_escape(TITLE),
    lead=f'<p class="lead">{_escape(lead)}</p>\n' if lead else "",
    first=_first_screen(chapters),
    body=body,
    about=f"<footer>\n{facts}</footer>\n" if facts else "",
  )


def _first_screen(chapters: Mapping[str, report.Chapter]) -> str:
  counts = report_verdicts.count(list(chapters.values()))
  tiles = [
    ("agrees", counts.agrees, "figure agrees", "figures agree"),
    ("above", counts.above, *["above the thesis"] * 2),
    ("below", counts.below, *["below the thesis"] * 2),
    (
      "",
      counts.alone,
      "chapter has no figure to compare",
      "chapters have no figure to compare",
    ),
    ("failed", counts.failed, "chapter failed", "chapters failed"),
  ]
  shown = "".join(
    f'<li class="{kind}"><strong>{value}</strong> '
    f"{one if value == 1 else many}</li>\n"
    for kind, value, one, many in tiles
    if value or kind != "failed"
  )
  parts = [f'<ul class="counts">\n{shown}</ul>\n', _failures(chapters)]
  parts.append(_claims(chapters))
  links = "".join(
    f'<li><a href="#{anchor(name)}">{_escape(chapter.title)}</a></li>\n'
    for name, chapter in chapters.items()
  )
  parts.append(f'<nav aria-label="Chapters">\n<ul>\n{links}</ul>\n</nav>\n')
  groups = {
    chapter.title: rows
    for chapter in chapters.values()
    if (rows := report_verdicts.comparable(chapter))
  }
  if groups:
    parts.append(
      '<figure aria-label="All comparable figures">\n'
      f"<figcaption>{_LEGEND}</figcaption>\n"
      f"{report_charts.comparison(groups)}</figure>\n"
    )
  return "".join(parts)


def _failures(chapters: Mapping[str, report.Chapter]) -> str:
  lines = [
    f'<p><a href="#{anchor(name)}">{_escape(chapter.title)}</a> '
    f"{_escape(report_verdicts.outcome(chapter))}</p>\n"
    for name, chapter in chapters.items()
    if chapter.error is not None
  ]
  return f'<div class="error">\n{"".join(lines)}</div>\n' if lines else ""


def _claims(chapters: Mapping[str, report.Chapter]) -> str:
  """The claims under "Holds" and "Does not hold here".

  Each column shows the first claim of each chapter and folds the others.
  """
  columns = []
  for holds, title in ((True, "Holds"), (False, "Does not hold here")):
    first, folded = [], []
    for name, chapter in chapters.items():
      lines = [
        f'<li><a href="#{anchor(name)}">{_escape(claim.sentence)}</a>: '
        f'<span class="evidence">{_escape(claim.evidence)}.</span></li>\n'
        for claim in chapter.claims
        if claim.holds is holds
      ]
      first += lines[:1]
      folded += lines[1:]
    if first:
      kind = "agrees" if holds else "below"
      rest = (
        f"<details><summary>{len(folded)} more</summary>\n"
        f"<ul>\n{''.join(folded)}</ul></details>\n"
      )
      columns.append(
        f'<div class="{kind}"><h2>{title}</h2>\n<ul>\n{"".join(first)}</ul>\n'
        f"{rest * bool(folded)}</div>\n"
      )
  return f'<div class="findings">\n{"".join(columns)}</div>\n' * bool(columns)


def _chapter(name: str, chapter: report.Chapter) -> str:
  parts = [
    f'<section id="{anchor(name)}">\n'
    f"<h2>{_escape(chapter.question or chapter.title)}</h2>\n"
  ]
  if chapter.answer:
    parts.append(f'<p class="answer">{_escape(chapter.answer)}</p>\n')
  line = report_verdicts.summary_line(chapter)
  parts.append(f'<p class="summary">{_escape(line)}</p>\n')
  if chapter.error is not None:
    parts.append(
      '<div class="error"><p><strong>This chapter failed.</strong></p>'
      f"<pre>{_escape(chapter.error)}</pre></div>\n"
    )
  parts += [chart_html(chart) for chart in chapter.charts[:1]]
  table, folded = _tables(chapter)
  if table is not None:
    parts.append(table_html(table))
  rest = [table_html(held, held.command) for held in folded]
  rest += [chart_html(chart) for chart in chapter.charts[1:]]
  rest += [f"<p>{_escape(note)}</p>\n" for note in _notes(chapter)]
  if chapter.command:
    rest.append(_command(chapter.command))
  if rest:
    named = ["tables"] * bool(folded) + ["pictures"] * (len(chapter.charts) > 1)
    named += ["notes"] * bool(_notes(chapter)) + ["command"]
    parts.append(
      f"<details><summary>More: {', '.join(named)}</summary>\n"
      f"{''.join(rest)}</details>\n"
    )
  return "".join(parts) + "</section>\n"


def _tables(
  chapter: report.Chapter,
) -> tuple[report.Table | None, list[report.Table]]:
  """The visible table, of at most 8 rows, and the folded tables."""
  all_figures = report_verdicts.figures(chapter)
  folded = list(chapter.tables)
  seen = chapter.table
  if seen is None and all_figures is not None:
    short = len(all_figures.rows) <= _MOST_ROWS
    title = "Figures" if short else f"The first {_MOST_ROWS} figures"
    seen = report_verdicts.figures(chapter, _MOST_ROWS)
    assert seen is not None
    seen.title = title
    return seen, folded if short else [all_figures, *folded]
  if seen is None and folded and len(folded[0].rows) <= _MOST_ROWS:
    seen = folded.pop(0)
  if seen is not None and len(seen.rows) > _MOST_ROWS:
    folded.insert(0, seen)
    seen = report.Table(
      f"{seen.title}: the first {_MOST_ROWS}",
      seen.header,
      seen.rows[:_MOST_ROWS],
    )
  return seen, ([all_figures] if all_figures else []) + folded


def _notes(chapter: report.Chapter) -> list[str]:
  """The notes, and the figures of the thesis that are not comparable."""
  other = [
    f"{report_labels.label(row['name']).text}, "
    f"{report_labels.measure(row['metric']).text}: "
    f"{report_labels.number(row['thesis'])}"
    for row in chapter.rows
    if row.get("thesis") is not None and report_verdicts.verdict(row) is None
  ]
  told = (
    f"Figures of the thesis that are not compared here: {'; '.join(other)}."
  )
  return [*chapter.notes, *[told] * bool(other)]


def chart_html(chart: report.Forest | report.Lines) -> str:
  """A chart with its caption as HTML."""
  drawn = (
    report_charts.forest(chart)
    if isinstance(chart, report.Forest)
    else report_charts.lines(chart)
  )
  caption = _escape(chart.caption)
  return f"<figure>\n{drawn}<figcaption>{caption}</figcaption></figure>\n"


def table_html(
  table: report.Table, command: str = "", *, codes: bool = True
) -> str:
  """A table as HTML.

  Args:
    table: the table; one with many columns and few rows is turned.
    command: the command that made it, to stand below it.
    codes: whether cells may hold codes, which are replaced by words.
  """
  if len(table.header) > _MOST_COLUMNS > len(table.rows):
    table = _turned(table)
  columns = len(table.header)
  kind = "cards" if columns > _MOST_COLUMNS else "many" if columns > 4 else ""
  head = "".join(
    f'<th scope="col"{_numeric(column)}>{report_charts.name(str(x))}</th>'
    if x
    else "<td></td>"
    for x, column in zip(table.header, [*zip(*table.rows)] or table.header)
  )
  names = [report_labels.label(str(x)).text for x in table.header]
  body = ""
  for row in table.rows:
    cells = (_cell(x, name, codes) for x, name in zip(row, names))
    body += f"<tr>{''.join(cells)}</tr>\n"
  return (
    f'<table class="{kind}"><caption>{_escape(table.title)}</caption>\n'
    f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>\n"
    + (_command(command) if command else "")
  )


def _turned(table: report.Table) -> report.Table:
  """A wide table of a few rows, its columns as rows."""
  header = [table.header[0], *(str(row[0]) for row in table.rows)]
  columns = zip(table.header[1:], *(row[1:] for row in table.rows))
  return report.Table(table.title, header, [list(x) for x in columns])


def _numeric(cells: Sequence[Any]) -> str:
  """The class of a column or cell of numbers."""
  texts = [report_labels.number(cell) for cell in cells]
  numbers = all(_NUMBER.fullmatch(text) for text in texts if text)
  return ' class="number"' if numbers and any(texts) else ""


def _cell(value: Any, column: str, codes: bool) -> str:
  kind = _numeric([value])
  if value in ("agrees", "above", "below"):
    kind = f' class="{value}"'
  named = f' data-name="{_escape(column)}"' if column and value != "" else ""
  text = value if isinstance(value, str) else report_labels.number(value)
  shown = report_charts.name(text) if codes else _escape(text)
  return f"<td{kind}{named}>{shown}</td>"


def _command(command: str) -> str:
  return f'<p class="command">Made by <code>{_escape(command)}</code></p>\n'


def _escape(text: Any) -> str:
  return html.escape(str(text), quote=True)


def anchor(name: str) -> str:
  """The place of a chapter in the page."""
  return "chapter-" + re.sub(r"[^A-Za-z0-9]+", "-", name)
