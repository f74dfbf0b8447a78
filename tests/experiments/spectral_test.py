"""The problems of the spectral chapter, at small size."""

import numpy as np
import pytest

from experiments.run import report_page
from experiments.spectral import chapter as chapters
from experiments.spectral import evaluate, findings
from experiments.spectral.config import Config


def test_centering_is_exact_where_the_update_is_not():
  errors = evaluate.centering(800, 10, seed=0)
  assert errors["implicit centering"] < 1e-4
  assert errors["implicit centering"] < errors["rank-one update"]
  assert errors["rank-one update"] < errors["no centering"]


@pytest.mark.long
def test_chapter_can_be_reported(tmp_path, monkeypatch):
  monkeypatch.setattr(
    evaluate,
    "missing_rows",
    lambda n, seed: {
      "shares": [0.0, 0.5],
      "recovered": {
        "left out": [1.0, 0.9],
        "as zeros": [1.0, 0.8],
        "left out, streamed": [1.0, 0.7],
      },
    },
  )
  chapter = chapters.make(Config(rows=600, rank=5))
  report_page.write_report({"spectral": chapter}, tmp_path)
  page = (tmp_path / "report.html").read_text()
  assert "implicit centering" in page
  assert "with 50 % of the rows missing, GCCA still recovers 90 %" in page
  holds = [claim.holds for claim in chapter.claims]
  assert holds == [True, True, False]


def test_a_bound_below_its_error_is_said_to_be_so():
  curve = {"error": np.array([1e-6, 1e-3]), "bound": np.array([1e-7, 1e-2])}
  _, chart = findings.charts(curve, [0.0], {"left out": [1.0]})
  assert "1 of 2 errors are above it" in chart.caption
  assert chart.series[1].name == "bound, without rounding"
  curve["bound"][0] = 1e-5
  _, chart = findings.charts(curve, [0.0], {"left out": [1.0]})
  assert "above it" not in chart.caption and chart.series[1].name == "bound"


@pytest.mark.long
def test_missing_rows_are_best_left_out():
  found = evaluate.missing_rows(500, seed=1)["recovered"]
  assert np.all(np.array(found["left out"]) > 0.9)
  assert found["left out"][-1] > found["as zeros"][-1]
  np.testing.assert_allclose(
    found["left out"], found["left out, streamed"], atol=0.05
  )
