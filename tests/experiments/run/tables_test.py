"""The table printer: alignment, formats, winners, remarks, Markdown."""

import math

import numpy as np
import pytest

from experiments.run import tables
from experiments.run.tables import Column

_COLUMNS = ("system", Column("MAP", ".3f"), Column("n"))
_ROWS = [["BM25", 0.21, 12], ["a longer name", 0.3456, 1200]]


def test_text_aligns_names_left_and_numbers_right():
  assert tables.to_text(_COLUMNS, _ROWS).split("\n") == [
    "system           MAP      n",
    "BM25           0.210     12",
    "a longer name  0.346  1,200",
  ]


def test_markdown_has_bold_winners_and_escapes_bars():
  rows = [["a|b", 1.0, None], ["c", 2.0, 3]]
  text = tables.to_markdown(_COLUMNS, rows, marked=[(1, 1)])
  assert text.split("\n") == [
    "| system | MAP | n |",
    "| --- | ---: | ---: |",
    "| a\\|b | 1.000 | - |",
    "| c | **2.000** | 3 |",
  ]


def test_marks_of_the_caller_are_kept():
  text = tables.to_text(["a", "b"], [["x", 1]], marked=[(0, 1)])
  assert text.split("\n")[1].endswith("1*")


def test_a_short_row_ends_in_a_remark_that_widens_nothing():
  rows = [["case", "ours", 1.0], ["case", "failed: " + "x" * 60]]
  first, one, remark = tables.to_text(["a", "b", "c"], rows).split("\n")
  assert len(first) == len(one) < 30
  assert remark == "case  failed: " + "x" * 60


def test_a_table_without_rows_is_its_header():
  assert tables.to_text(["a", "b"], []) == "a  b"
  assert tables.to_markdown(["a"], []) == "| a |\n| --- |"


@pytest.mark.parametrize(
  ("value", "text"),
  [
    (None, ""), (True, "yes"), (12345, "12,345"), (0.123456, "0.1235"),
    (123456.0, "123,456"), (np.float32(0.5), "0.5"), ("as is", "as is"),
    (math.inf, "inf"),
  ],
)  # fmt: skip
def test_values_are_shown_as_a_reader_compares_them(value, text):
  assert tables.format_value(value) == text
