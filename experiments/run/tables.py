"""Tables of results as aligned text and as Markdown.

```python
columns = ("system", Column("MAP", ".3f"))
print(to_text(columns, [["BM25", 0.21], ["NVSE", 0.34]]))
```
"""

import dataclasses
import math
from collections.abc import Collection, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Column:
  """A column of a table.

  Attributes:
    name: its header.
    format: format of its numbers, as `".3f"`; by default four digits.
    align: "left" or "right"; by default numbers and their header stand on the
      right.
  """

  name: str
  format: str = ""
  align: str = ""


Columns = Sequence[str | Column]
Rows = Sequence[Sequence[Any]]
Marks = Collection[tuple[int, int]]


def to_text(columns: Columns, rows: Rows, *, marked: Marks = ()) -> str:
  """Aligns a table for a terminal; "-" stands for None and NaN.

  Args:
    columns: the columns, or their names.
    rows: cells of each row: numbers, text or None. A row may be shorter than
      the header; its last cell is then a remark of any length.
    marked: (row, column) of winners, which get a star.

  Returns:
    The lines, without a final newline.
  """
  layout = _columns(columns)
  right = _right(layout, rows)
  body = [
    [
      _cell(value, column, "-") + "*" * ((i, j) in marked)
      for j, (value, column) in enumerate(zip(row, layout))
    ]
    for i, row in enumerate(rows)
  ]
  lines = [[column.name for column in layout], *body]
  whole = [line for line in lines if len(line) == len(layout)]
  whole += [line[:-1] for line in lines if len(line) < len(layout)]
  widths = [
    max(len(line[j]) for line in whole if j < len(line))
    for j in range(len(layout))
  ]
  text = []
  for line in lines:
    padded = [
      cell.rjust(width) if on_right else cell.ljust(width)
      for cell, width, on_right in zip(line, widths, right)
    ]
    if len(line) < len(layout):
      padded[-1] = line[-1]
    text.append("  ".join(padded).rstrip())
  return "\n".join(text)


def to_markdown(
  columns: Columns, rows: Rows, *, marked: Marks = (), missing: str = "-"
) -> str:
  """Writes a table in Markdown; winners are bold.

  Args:
    columns: the columns, or their names.
    rows: cells of each row: numbers, text or None.
    marked: (row, column) of winners.
    missing: text of a cell that is None or NaN.

  Returns:
    The lines, without a final newline.
  """
  layout = _columns(columns)
  rule = ["---:" if right else "---" for right in _right(layout, rows)]
  body = []
  for i, row in enumerate(rows):
    cells = []
    for j, (value, column) in enumerate(zip(row, layout)):
      text = _escape(_cell(value, column, missing))
      cells.append(f"**{text}**" if (i, j) in marked else text)
    body.append(cells)
  lines = [[_escape(column.name) for column in layout], rule, *body]
  return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def format_value(value: Any) -> str:
  """Formats a cell; numbers have four digits.

  Args:
    value: a number, a truth value, text or None.

  Returns:
    The text; "" for None.
  """
  if value is None:
    return ""
  if hasattr(value, "item"):
    value = value.item()
  if isinstance(value, bool):
    return "yes" if value else "no"
  if isinstance(value, int):
    return f"{value:,}"
  if isinstance(value, float):
    if value == round(value, 0) and 1e4 <= abs(value) < 1e15:
      return f"{value:,.0f}"
    return f"{value:.4g}"
  return str(value)


def _columns(columns: Columns) -> list[Column]:
  return [x if isinstance(x, Column) else Column(x) for x in columns]


def _right(columns: Sequence[Column], rows: Rows) -> list[bool]:
  """Whether each column is aligned on the right."""
  right = []
  for j, column in enumerate(columns):
    values = [row[j] for row in rows if len(row) == len(columns)]
    numbers = [_is_numeric(x) for x in values if x is not None]
    right.append(
      column.align == "right" if column.align else any(numbers) and all(numbers)
    )
  return right


def _cell(value: Any, column: Column, missing: str) -> str:
  if value is None or (_is_numeric(value) and math.isnan(value)):
    return missing
  if column.format and _is_numeric(value):
    return format(value, column.format)
  return format_value(value)


def _is_numeric(value: Any) -> bool:
  value = value.item() if hasattr(value, "item") else value
  return isinstance(value, (int, float)) and not isinstance(value, bool)


def _escape(text: str) -> str:
  return text.replace("|", "\\|").replace("\n", " ")
