"""Chapters as data: claims, verdicts, counts, and their files."""

import json

import numpy as np
import pytest

from experiments.run import report, report_verdicts
from repr_jax import errors


def _row(value, thesis=None, **more):
  return {
    "name": "x",
    "metric": "MRR",
    "value": value,
    "thesis": thesis,
    **more,
  }


def _chapter() -> report.Chapter:
  return report.Chapter(
    "Words",
    "46 views.",
    [
      _row(0.43, 0.42, lower=0.40, upper=0.46),
      _row(np.float32(0.5), 0.7, tolerance=0.02),
    ],
    [report.Table("Neighbors", ["word", "near"], [["cat", "dog"], ["x", 3]])],
    [
      report.Forest(
        "Gaps", "MAP", [report.Point("a", 0.1, 0.0, 0.2, "note")],
        sides=["worse", "better"],
      ),
      report.Lines(
        "Curve", "k", "MAP", [report.Series("a", [1, 2], [0.1, 0.2])], log=True
      ),
    ],
    ["A note."],
    "python -m experiments.mvlsa",
    seconds=12.3,
    question="Is it so?",
    answer="Yes, 0.43.",
    table=report.Table("Few", ["a"], [[1]]),
    claims=[report.claim("It is", "{x:.1f}", {"x": 0.43}, lambda x: True)],
  )  # fmt: skip


@pytest.mark.parametrize(
  "row, verdict",
  [
    (_row(0.43, 0.42, lower=0.40, upper=0.46), "agrees"),
    (_row(0.43, 0.40, lower=0.40, upper=0.46), "agrees"),
    (_row(0.50, 0.70, lower=0.45, upper=0.55), "below"),
    (_row(0.50, 0.30, lower=0.45, upper=0.55), "above"),
    # The interval decides, not the tolerance.
    (_row(0.50, 0.30, lower=0.45, upper=0.55, tolerance=1.0), "above"),
    (_row(0.70, 0.71, tolerance=0.02), "agrees"),
    (_row(0.70, 0.75, tolerance=0.02), "below"),
    (_row(0.70, 0.65, tolerance=0.02), "above"),
    # Neither interval nor tolerance: not comparable.
    (_row(0.70, 0.70), None),
    (_row(0.70, lower=0.6, upper=0.8), None),
  ],
)
def test_a_verdict_tells_above_from_below(row, verdict):
  assert report_verdicts.verdict(row) == verdict


def test_counts_are_of_figures_and_of_chapters():
  agrees, above, below = (
    _row(0.5, thesis, tolerance=0.1) for thesis in (0.5, 0.1, 0.9)
  )
  chapters = [
    report.Chapter("a", "", [agrees, agrees, above, _row(0.5, 0.5)]),
    report.Chapter("b", "", [below]),
    report.Chapter("c", "", [_row(0.5)]),
    report.Chapter("d", ""),
    report.Chapter("e", "", error="no"),
  ]
  counts = report_verdicts.count(chapters)
  assert counts == report_verdicts.Counts(2, 1, 1, alone=2, failed=1)
  lines = [report_verdicts.outcome(chapter) for chapter in chapters]
  assert lines[0] == "2 of 3 figures agree with the thesis, 1 above"
  assert lines[1] == "0 of 1 figures agree with the thesis, 1 below"
  assert lines[2] == lines[3] == "no comparable figure in the thesis"
  assert lines[4] == "failed: no"


def test_a_chapter_in_one_line():
  line = report_verdicts.summary_line(_chapter())
  said = "46 views; 12 s; 1 of 2 figures agree with the thesis, 1 below."
  assert line == said
  failed = report.Chapter("a", "b", error="Traceback\n\nValueError: x\n")
  assert report_verdicts.summary_line(failed) == "failed: ValueError: x"
  empty = report.Chapter("a", "b", error=" ")
  assert report_verdicts.summary_line(empty) == "failed: no reason"


@pytest.mark.parametrize("p, holds", [(0.01, True), (0.42, False)])
def test_a_claim_is_tested_on_its_figures(p, holds):
  claim = report.claim(
    "A beats B by {gain:+.1f}",
    "MAP {ours:.3f}, violation {v:.0e}, p = {p:.2g}",
    {"ours": np.float32(0.627), "gain": 0.1, "v": 1e-7, "p": p},
    lambda x: x["gain"] > 0 and x["p"] < 0.05,
  )
  assert claim.holds is holds
  assert claim.sentence == "A beats B by +0.1"
  assert claim.evidence == f"MAP 0.627, violation 1e-7, p\xa0=\xa0{p}"
  assert type(claim.figures["ours"]) is float


def test_a_claim_whose_p_is_unknown_does_not_hold():
  nan = float("nan")
  claim = report.claim("It is", "{p}", {"p": nan}, lambda x: x["p"] < 0.05)
  assert not claim.holds


def test_an_interval_that_is_unknown_is_none():
  point = report.Point("a", 1.0, float("nan"), float("nan"))
  assert point.lower is None and point.upper is None


def test_charts_are_tables_too():
  forest, lines = _chapter().charts
  assert forest.table().rows == [["a", 0.1, 0.0, 0.2, "note"]]
  lines.series.append(report.Series("b", [2, 3], [0.3, 0.4]))
  table = lines.table()
  assert table.header == ["k", "a", "b"]
  assert table.rows == [[1, 0.1, None], [2, 0.2, 0.3], [3, None, 0.4]]


def test_a_chapter_comes_back_from_its_file(tmp_path):
  chapter = _chapter()
  report.save(tmp_path / "chapter.json", chapter)
  back = report.load(tmp_path / "chapter.json")
  assert back.rows[1].pop("value") == pytest.approx(0.5)
  chapter.rows[1].pop("value")
  assert back == chapter


def test_a_chapter_of_another_version_is_refused(tmp_path):
  path = tmp_path / "chapter.json"
  report.save(path, _chapter())
  held = json.loads(path.read_text())["chapter"]
  fewer = {k: v for k, v in held.items() if k != "tables"}
  renamed = [{**table, "name": table["title"]} for table in held["tables"]]
  for value in (
    {**held, "color": "red"},
    fewer,
    {**held, "tables": renamed},
    {**held, "charts": [{"caption": "no kind"}]},
    {**held, "charts": [{**held["charts"][0], "kind": "Pie"}]},
    {**held, "charts": None},
    {**held, "claims": [{"sentence": "alone"}]},
    {**held, "table": 3},
  ):
    digest = report._digest(value)
    path.write_text(json.dumps({"fingerprint": digest, "chapter": value}))
    with pytest.raises(errors.InputError, match=r"chapter\.json.*--rerun"):
      report.load(path)
