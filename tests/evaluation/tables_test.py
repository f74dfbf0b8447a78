"""Marks of comparison tables against those of the thesis."""

import json
import math

import pytest

from repr_jax.evaluation import tables

_SYSTEMS = ("Glove", "WSG", "G-WSG", "Wiki", "All", "Combined")
# The thesis' comparison: size, kind, figures, which are bold, daggers.
_COMPARISON = {
  "MEN": (3000, "70.4 73.9 76.0* 71.4 71.2 75.8*", "-+"),
  "RW": (2034, "28.1 32.9 37.2 29.0 41.7* 40.5*", "+-"),
  "SCWS": (2003, "54.1 65.6 60.7 61.8 67.3* 66.4*", "+-"),
  "SIMLEX": (999, "33.7 36.7 41.1 34.5 42.4* 43.9*", "+-"),
  "WS": (353, "58.6 70.8* 67.4* 68.0* 70.8* 70.1*", "+-"),
  "MTURK": (287, "61.7* 65.1* 59.8 59.1 59.7 62.9*", "--"),
  "WS-REL": (252, "53.4 63.6* 59.6 60.1 65.1* 63.5*", "+-"),
  "WS-SEM": (203, "69.0 78.4* 76.1* 76.8* 78.8* 79.2*", "--"),
  "RG": (65, "73.8* 78.2* 80.4* 71.2 74.4* 80.8*", "-+"),
  "MC": (30, "70.5* 78.5* 82.7* 76.6* 75.9* 77.7*", "--"),
  "AN-SYN": (10675, "61.8 59.8 51.0 42.7 60.0 64.3*", "++"),
  "AN-SEM": (8869, "80.9* 73.7 73.5 36.2 38.6 77.2", "++"),
  "TOEFL": (80, "83.8* 81.2 86.2* 78.8 87.5* 88.8*", "+-"),
}
_ACCURACY = ("AN-SYN", "AN-SEM", "TOEFL")
_GAINS = (
  tables.Gain("MV Gain", "All", "Wiki"),
  tables.Gain("G-WSG Gain", "Combined", "All"),
)
# Marked there although 2.8 < 3.9 and 6.4 < 9.2, the thesis' own thresholds.
_SLIPS = {("WS", "MV Gain"), ("RG", "G-WSG Gain")}


def _rows():
  rows, bold, daggers = [], set(), set()
  for name, (size, figures, marks) in _COMPARISON.items():
    values = {}
    for system, figure in zip(_SYSTEMS, figures.split()):
      values[system] = float(figure.rstrip("*"))
      if figure.endswith("*"):
        bold.add((name, system))
    for gain, mark in zip(_GAINS, marks):
      if mark == "+":
        daggers.add((name, gain.name))
    kind = "accuracy" if name in _ACCURACY else "correlation"
    rows.append(tables.Row(name, values, size, kind))
  return rows, bold, daggers


def test_winners_are_those_of_the_thesis():
  rows, bold, _ = _rows()
  cells = tables.compare(rows, gains=_GAINS)
  got = {(c["set"], c["system"]) for c in cells if c["winner"]}
  assert got == bold


def test_significant_gains_are_those_of_the_thesis():
  rows, _, daggers = _rows()
  cells = tables.compare(rows, gains=_GAINS)
  got = {(c["set"], c["system"]) for c in cells if c["significant"]}
  assert got == daggers - _SLIPS


def test_stricter_level_has_more_winners():
  rows, bold, _ = _rows()
  cells = tables.compare(rows, p0=0.01, r=0.5)
  got = {(c["set"], c["system"]) for c in cells if c["winner"]}
  assert got > bold


def _small():
  rows = [
    tables.Row(
      "WS|x",
      {"a": 70.0, "b": 60.04},
      353,
      coverage=0.876,
      thesis={"a": 71.26, "b": 70.0},
    ),
    tables.Row("TINY", {"a": 10.0, "b": float("nan")}, 2),
  ]
  return tables.compare(rows, gains=[tables.Gain("gain", "a", "b")])


def test_rows_for_a_report():
  cells = _small()
  assert len(cells) == 6
  assert cells[0] == {
    "set": "WS|x",
    "system": "a",
    "value": 70.0,
    "thesis": 71.26,
    "winner": True,
    "significant": None,
    "mrds": pytest.approx(3.9),
    "coverage": 0.876,
  }
  assert cells[2]["value"] == pytest.approx(9.96)
  assert cells[2]["thesis"] == pytest.approx(1.26)
  assert cells[2]["significant"] is True and cells[2]["winner"] is None
  assert cells[5]["value"] is None and cells[5]["significant"] is False
  assert cells[3]["mrds"] is None
  json.dumps(cells, allow_nan=False)


def test_a_grid_shows_daggers_and_marks_winners():
  header, rows, marked = tables.grid(_small())
  assert header == ["Test set", "a", "b", "gain", "MRDS", "coverage"]
  assert rows == [
    ["WS|x", "70.0 (71.3)", "60.0 (70.0)", "10.0† (1.3)", "3.90", "88%"],
    ["TINY", "10.0", "-", "-", "-", "100%"],
  ]
  assert marked == {(0, 1), (1, 1)}


def test_kind_is_checked():
  with pytest.raises(ValueError, match="kind must be"):
    tables.threshold(100, "f1")
  assert tables.threshold(0, "accuracy") == math.inf
  assert tables.winners({"a": float("nan")}, 1.0) == set()
