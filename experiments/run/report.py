"""The report of the main job: every figure beside the thesis' own.

A chapter is data (`Chapter`); `write_report` turns chapters into one page,
`report.html`, that needs nothing else to be read, and into `report.md`.
"""

import base64
import dataclasses
import hashlib
import html
import json
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.run import report_style, runlib
from experiments.run.tables import format_value
from repr_jax import errors
from repr_jax.data.io import files, json_files

_DIGEST = "fingerprint"


@dataclasses.dataclass
class Table:
  """A table of its own beside the rows of figures.

  Attributes:
    title: what the table shows.
    header: names of the columns.
    rows: cells, numbers or text, as many as the header has.
    command: what made it, where that differs from the chapter's command.
    marked: row and column of cells that differ from what they stand beside.
  """

  title: str
  header: Sequence[str]
  rows: Sequence[Sequence[Any]]
  command: str = ""
  marked: Sequence[Sequence[int]] = ()


@dataclasses.dataclass
class Plot:
  """A picture: PNG bytes or a matplotlib figure, and what one sees in it."""

  caption: str
  image: Any

  def png(self) -> bytes:
    """The picture as PNG bytes."""
    if isinstance(self.image, bytes):
      return self.image
    return runlib.figure_png(self.image)


@dataclasses.dataclass
class Chapter:
  """The results of one chapter.

  Attributes:
    title: name of the chapter.
    summary: one sentence: what was run, on what.
    rows: figures as `Run.row` returns them: name, metric, value and, where
      known, thesis, lower, upper, tolerance.
    tables: further tables.
    plots: pictures.
    notes: paragraphs of text.
    command: the command that makes this chapter.
    seconds: time it took, None where it is not known.
    error: why the chapter failed, None where it did not.
  """

  title: str
  summary: str
  rows: Sequence[Mapping[str, Any]] = ()
  tables: Sequence[Table] = ()
  plots: Sequence[Plot] = ()
  notes: Sequence[str] = ()
  command: str = ""
  seconds: float | None = None
  error: str | None = None


def agrees(row: Mapping[str, Any]) -> bool | None:
  """Whether the thesis' figure lies within ours, None where nothing says so.

  The interval [lower, upper] decides where the row has one, else its
  tolerance around our value.
  """
  thesis = row.get("thesis")
  if thesis is None:
    return None
  if row.get("lower") is not None and row.get("upper") is not None:
    return row["lower"] <= thesis <= row["upper"]
  if row.get("tolerance") is not None:
    return abs(row["value"] - thesis) <= row["tolerance"]
  return None


def save(path: str | os.PathLike, chapter: Chapter) -> None:
  """Writes a chapter as one JSON object, pictures and all."""
  plots = [
    {"caption": plot.caption, "image": base64.b64encode(plot.png()).decode()}
    for plot in chapter.plots
  ]
  value = dataclasses.asdict(dataclasses.replace(chapter, plots=()))
  rows = json.loads(json.dumps(value, default=_number))
  held = {**rows, "plots": plots}
  with files.atomic_write(path, "w") as out:
    json.dump(
      {_DIGEST: _digest(held), "chapter": held},
      out, indent=1, ensure_ascii=False,
    )  # fmt: skip


def load(path: str | os.PathLike) -> Chapter:
  """The chapter that `save` wrote.

  Args:
    path: the file.

  Returns:
    The chapter. What is not just as it was written is an `InputError`.
  """
  record = json_files.read_json(path)
  value = record.get("chapter") if isinstance(record, dict) else None
  try:
    if not isinstance(value, dict) or record.get(_DIGEST) != _digest(value):
      raise TypeError
    # Another version of this package may have kept other fields.
    tables = [Table(**table) for table in value.pop("tables")]
    plots = [
      Plot(plot["caption"], base64.b64decode(plot["image"]))
      for plot in value.pop("plots")
    ]
    return Chapter(**value, tables=tables, plots=plots)
  except (KeyError, TypeError, ValueError):
    raise errors.InputError(
      "is not a chapter as it was kept; --rerun makes it anew", path=path
    ) from None


def _digest(value: Any) -> str:
  text = json.dumps(value, sort_keys=True)
  return hashlib.sha256(text.encode()).hexdigest()


def _number(value: Any) -> Any:
  return value.item() if hasattr(value, "item") else str(value)


def write_report(
  chapters: Mapping[str, Chapter],
  directory: str | os.PathLike,
  about: Sequence[str] = (),
) -> pathlib.Path:
  """Writes `report.html` and `report.md` into a directory.

  Args:
    chapters: the chapters by their short names, in the order of the report.
    directory: where the report goes; made if absent.
    about: lines for the top: preset, versions, machine.

  Returns:
    The path of the page.
  """
  folder = pathlib.Path(directory)
  folder.mkdir(parents=True, exist_ok=True)
  page = folder / "report.html"
  with files.atomic_write(page, "w") as out:
    out.write(_html(chapters, about))
  with files.atomic_write(folder / "report.md", "w") as out:
    out.write(_markdown(chapters, about, folder))
  return page


def summary_line(chapter: Chapter) -> str:
  """What was run, the time, and how many figures agree with the thesis."""
  if chapter.error is not None:
    return outcome(chapter)
  return f"{chapter.summary.rstrip('. ')}; {outcome(chapter)}."


def outcome(chapter: Chapter) -> str:
  """The time and how many figures agree with the thesis, or what failed."""
  if chapter.error is not None:
    return f"failed: {chapter.error.strip().splitlines()[-1]}"
  parts = []
  if chapter.seconds is not None:
    parts.append(f"{chapter.seconds:,.0f} s")
  verdicts = [agrees(row) for row in chapter.rows if "thesis" in row]
  judged = [verdict for verdict in verdicts if verdict is not None]
  if judged:
    parts.append(
      f"{sum(judged)} of {len(judged)} figures agree with the thesis"
    )
  if len(judged) < len(verdicts):
    parts.append(f"{len(verdicts) - len(judged)} without an interval to judge")
  if not verdicts:
    parts.append("no figure of the thesis to compare with")
  return "; ".join(parts)


def _figures(chapter: Chapter) -> Table | None:
  """The chapter's rows as a table, with the columns that they fill."""
  if not chapter.rows:
    return None
  header = ["", "measure", "ours"]
  bounded = any("lower" in row or "tolerance" in row for row in chapter.rows)
  compared = any("thesis" in row for row in chapter.rows)
  header += ["interval"] * bounded + ["thesis", "verdict"] * compared
  words = {True: "agrees", False: "differs", None: ""}
  lines = []
  for row in chapter.rows:
    line = [row["name"], row["metric"], row["value"]]
    line += [_interval(row)] * bounded
    line += [row.get("thesis"), words[agrees(row)]] * compared
    lines.append(line)
  marked = [
    (place, 2) for place, row in enumerate(chapter.rows) if agrees(row) is False
  ]
  return Table("Figures", header, lines, marked=marked)


def _interval(row: Mapping[str, Any]) -> str:
  if row.get("lower") is not None and row.get("upper") is not None:
    return f"{format_value(row['lower'])} to {format_value(row['upper'])}"
  if row.get("tolerance") is not None:
    return f"± {format_value(row['tolerance'])}"
  return ""


def _html(chapters: Mapping[str, Chapter], about: Sequence[str]) -> str:
  lines = [_html_line(name, chapter) for name, chapter in chapters.items()]
  body = "".join(
    _html_chapter(name, chapter) for name, chapter in chapters.items()
  )
  facts = "".join(f"<p>{_escape(line)}</p>" for line in about)
  return report_style.PAGE.format(
    style=report_style.STYLE,
    title="Representation learning: the thesis and this run",
    about=facts,
    lines="\n".join(lines),
    body=body,
  )


def _html_line(name: str, chapter: Chapter) -> str:
  """The chapter in one line at the top of the page."""
  kind = "outcome" if chapter.error is None else "outcome failed"
  return (
    f'<li><a href="#{_anchor(name)}">{_escape(chapter.title)}</a>'
    f"<span>{_escape(chapter.summary)}</span>"
    f'<span class="{kind}">{_escape(outcome(chapter))}</span></li>'
  )


def _html_chapter(name: str, chapter: Chapter) -> str:
  parts = [
    f'<section id="{_anchor(name)}">\n<h2>{_escape(chapter.title)}</h2>\n',
    f"<p>{_escape(chapter.summary)}</p>\n",
  ]
  if chapter.error is not None:
    parts.append(
      '<div class="error"><strong>This chapter failed.</strong>'
      f"<pre>{_escape(chapter.error)}</pre></div>\n"
    )
  figures = _figures(chapter)
  for table in ([figures] if figures else []) + list(chapter.tables):
    parts.append(_html_table(table, table.command or chapter.command))
  for plot in chapter.plots:
    data = base64.b64encode(plot.png()).decode()
    caption = _escape(plot.caption)
    parts.append(
      f'<figure><img src="data:image/png;base64,{data}" alt="{caption}">'
      f"<figcaption>{caption}</figcaption></figure>\n"
    )
  parts += [f"<p>{_escape(note)}</p>\n" for note in chapter.notes]
  if chapter.command and not figures and not chapter.tables:
    parts.append(_html_command(chapter.command))
  return "".join(parts) + "</section>\n"


def _html_table(table: Table, command: str) -> str:
  title = _escape(table.title)
  head = "".join(f'<th scope="col">{_escape(x)}</th>' for x in table.header)
  marked = {tuple(place) for place in table.marked}
  body = "".join(
    f"<tr>{_html_row(row, i, marked)}</tr>\n"
    for i, row in enumerate(table.rows)
  )
  return (
    f'<div class="scroll" role="region" tabindex="0" aria-label="{title}">\n'
    f"<table><caption>{title}</caption>\n"
    f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    + _html_command(command)
  )


def _html_row(row: Sequence[Any], index: int, marked: set) -> str:
  return "".join(
    _html_cell(value, (index, column) in marked)
    for column, value in enumerate(row)
  )


def _html_cell(value: Any, marked: bool = False) -> str:
  kinds = []
  if isinstance(value, (int, float)) or hasattr(value, "item"):
    kinds.append("number")
  if isinstance(value, str) and value in ("agrees", "differs"):
    kinds.append(value)
  if marked:
    kinds.append("differs")
  kind = f' class="{" ".join(kinds)}"' if kinds else ""
  return f"<td{kind}>{_escape(format_value(value))}</td>"


def _html_command(command: str) -> str:
  if not command:
    return ""
  return f'<p class="command">Made by <code>{_escape(command)}</code></p>\n'


def _escape(text: Any) -> str:
  return html.escape(str(text), quote=True)


def _anchor(name: str) -> str:
  return "chapter-" + re.sub(r"[^A-Za-z0-9]+", "-", name)


def _markdown(
  chapters: Mapping[str, Chapter],
  about: Sequence[str],
  folder: pathlib.Path,
) -> str:
  lines = ["# Representation learning: the thesis and this run", ""]
  lines += [f"{_plain(line)}  " for line in about] + [""]
  for chapter in chapters.values():
    lines.append(
      f"- **{_plain(chapter.title)}**: {_plain(summary_line(chapter))}"
    )
  for name, chapter in chapters.items():
    lines += ["", f"## {_plain(chapter.title)}", "", _plain(chapter.summary)]
    if chapter.error is not None:
      lines += ["", "This chapter failed:", ""]
      lines += [f"    {line}" for line in chapter.error.splitlines()]
    figures = _figures(chapter)
    for table in ([figures] if figures else []) + list(chapter.tables):
      lines += _markdown_table(table, table.command or chapter.command)
    for index, plot in enumerate(chapter.plots):
      path = pathlib.PurePosixPath("plots") / f"{_anchor(name)}-{index}.png"
      (folder / path).parent.mkdir(exist_ok=True)
      with files.atomic_write(folder / path, "wb") as out:
        out.write(plot.png())
      lines += ["", f"![{_plain(plot.caption)}]({path})", ""]
      lines += [f"*{_plain(plot.caption)}*"]
    for note in chapter.notes:
      lines += ["", _plain(note)]
  return "\n".join(lines) + "\n"


def _markdown_table(table: Table, command: str) -> list[str]:
  lines = ["", f"**{_plain(table.title)}**", ""]
  for cells in (table.header, ["---"] * len(table.header), *table.rows):
    lines.append(
      "| " + " | ".join(_plain(format_value(x)) for x in cells) + " |"
    )
  return lines + (["", f"Made by `{command}`"] if command else [])


def _plain(text: str) -> str:
  """Text on one line that Markdown leaves as it is."""
  joined = " ".join(text.split())
  return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", joined)
