"""The problems of the spectral chapter, at small size."""

import numpy as np

from experiments.run import report_page
from experiments.spectral import __main__ as spectral


def test_centering_is_exact_where_the_update_is_not():
  errors = spectral.centering(800, 10, seed=0)
  assert errors["implicit centering"] < 1e-4
  assert errors["implicit centering"] < errors["rank-one update"]
  assert errors["rank-one update"] < errors["no centering"]


def test_chapter_can_be_reported(tmp_path, monkeypatch):
  monkeypatch.setattr(
    spectral,
    "missing_rows",
    lambda n, seed: {"shares": [0.0, 0.5], "recovered": {"x": [1.0, 0.9]}},
  )
  chapter = spectral._chapter(600, 5, 0)
  report_page.write_report({"spectral": chapter}, tmp_path)
  page = (tmp_path / "report.html").read_text()
  assert "implicit centering" in page


def test_missing_rows_are_best_left_out():
  found = spectral.missing_rows(500, seed=1)["recovered"]
  assert np.all(np.array(found["left out"]) > 0.9)
  assert found["left out"][-1] > found["as zeros"][-1]
  np.testing.assert_allclose(
    found["left out"], found["left out, streamed"], atol=0.05
  )
