"""Claims of the chapters: each holds or does not as its figures say."""

import pytest

from experiments.cmr import findings as cmr
from experiments.elkb import findings as elkb
from experiments.mvlsa import findings as mvlsa
from experiments.ned import findings as ned
from experiments.nvse import findings as nvse
from experiments.rescal import findings as rescal
from repr_jax.evaluation.significance import Difference


def _holds(claims) -> dict[str, bool]:
  return {claim.sentence: claim.holds for claim in claims}


def _row(name, metric, value, **more):
  return {"name": name, "metric": metric, "value": value, **more}


def _gap(value, p):
  return Difference(value, value - 0.01, value + 0.01, p)


@pytest.mark.parametrize("thesis, holds", [(43.9, True), (60.0, False)])
def test_word_vectors_reach_the_thesis_or_do_not(thesis, holds):
  rows = [
    _row("SIMLEX, WordNet alone", "Spearman x 100", 47.0, thesis=thesis,
         lower=41.0, upper=52.0),
    _row("RW, WordNet alone", "Spearman x 100", 20.0, lower=1.0, upper=2.0),
  ]  # fmt: skip
  (claim,) = mvlsa.claims(rows)
  assert claim.holds is holds
  assert claim.evidence == f"SimLex-999 47.0 (thesis {thesis})"
  assert f"47.0 on SimLex-999 (thesis: {thesis})" in mvlsa.answer(rows)
  assert mvlsa.claims(rows[1:]) == []


def test_the_ablation_is_a_table_and_a_chart_of_differences():
  cells = [_cell("all views", 47.0)]
  for i in range(9):
    cells += [_cell(f"!g{i}", 47.0 - i), _cell(f"!g{i} loss", float(i))]
  cells.append(_cell("!none loss", None))
  table = mvlsa.table(cells)
  assert len(table.rows) == 10
  assert table.rows[0] == ["all views", "47.0"]
  assert table.rows[1] == ["!g8", "39.0"]
  (chart,) = mvlsa.charts(cells)
  assert [point.label for point in chart.points][:2] == ["!g8", "!g7"]
  first = chart.points[0]
  assert (first.value, first.lower, first.upper) == (-8.0, -10.0, -6.0)


def test_sweeps_and_shares_are_charts():
  chart = mvlsa.sweep("k", [10, 20], {"WS": [50.0, 60.0]})
  assert "the number of dimensions" in chart.caption
  assert chart.series[0].y == [50.0, 60.0]
  chart = mvlsa.shares({"a": 0.1, "b": 0.3})
  assert [point.label for point in chart.points] == ["b", "a"]


def _cell(system, value):
  return {"set": "WS", "system": system, "value": value, "mrds": 2.0}


def _cells(reversed_right):
  rows = []
  for dim in (50, 100):
    for part, value in (("E", 100.0), ("E^c", 97.0), ("E^rev", reversed_right)):
      name = f"tree V=2047 d={dim} SubSet"
      rows.append(
        _row(name, f"{part}, % right", value, thesis=value, tolerance=1.0)
      )
  return rows


@pytest.mark.parametrize("right, holds", [(52.0, True), (98.0, False)])
def test_rescal_stores_a_tree_or_does_not(right, holds):
  rows = _cells(right)
  claims = rescal.claims(rows)
  assert [claim.holds for claim in claims] == [holds, holds]
  assert "6 of 6 figures agree" in claims[0].evidence
  start, wrong = ("No", "48 %") if holds else ("Yes", "only 3 %")
  assert rescal.answer(rows).startswith(f"{start}: the best setting")
  assert f"{wrong} of the" in rescal.answer(rows)
  cells = [(f"tree V=2047 d={dim} SubSet", dim) for dim in (50, 100)]
  charts = rescal.charts(cells, rows)
  assert len(charts) == holds
  if holds:
    (line,) = charts[0].series
    assert line.name == "SubSet: reversed pairs"
    assert (line.x, line.y) == ([50, 100], [52.0, 52.0])
  assert rescal.table(rows).rows[0][1:] == ["100.0", "97.0", f"{right}"]


def _rules(plain, ruled, b, violation, link):
  rows = []
  for name, mrr in (("A", plain), ("A + rules", ruled), ("B", 0.02),
                    ("B + rules", b)):  # fmt: skip
    worst = violation if name.endswith("rules") else 19.0
    more = {"lower": mrr - 0.05, "upper": mrr + 0.6, "thesis": 0.4}
    rows += [
      _row(f"puzzle {name}", "MRR", mrr, **more),
      _row(f"puzzle {name}", "MAP (all entailed facts)", mrr, **more),
      _row(f"puzzle {name}", "largest rule violation", worst),
    ]
  for name, mrr in (("T", 0.5), ("T + rules", link)):
    rows += [
      _row(f"WordNet below x.n.01, {name}", "filtered mrr", mrr),
      _row(f"WordNet below x.n.01, {name}", "largest rule violation", 0.0),
    ]
  return rows


def test_rules_help_or_do_not():
  good = elkb.claims(_rules(0.02, 0.49, 0.26, 1e-7, 0.6))
  bad = elkb.claims(_rules(0.45, 0.49, 0.47, 1e-2, 0.4))
  assert len(good) == 4 and all(_holds(good).values())
  assert not any(_holds(bad).values())
  rows = _rules(0.02, 0.49, 0.26, 1e-7, 0.6)
  assert elkb.answer(rows).startswith("Yes, in the puzzle")
  assert "0.02 without and 0.49 with rules" in elkb.answer(rows)
  other = _rules(0.45, 0.49, 0.26, 1e-7, 0.6)
  assert elkb.answer(other).startswith("Not clearly")
  assert len(elkb.table(rows).rows) == 3
  forest, lines = elkb.charts(rows, {"T": [(1, 0.2), (2, 0.3)], "B": []})
  assert all(0 <= x.lower <= x.upper <= 1 for x in forest.points)
  assert [line.name for line in lines.series] == ["T"]


def test_the_autoencoder_adds_or_does_not():
  names = ("nvse", "bm25", "nvse-members", "nvse-xi", "setexpan")
  means = dict.fromkeys(names, (0.6, 0.58, 0.62))
  gaps = {name: _gap(0.03, 0.001) for name in names[1:]}
  means["nvse-xi"] = (0.7, 0.65, 0.75)
  assert all(_holds(nvse.claims(means, gaps)).values())
  gaps = {
    "bm25": _gap(-0.03, 0.001),
    "nvse-members": _gap(0.003, 0.42),
    "setexpan": _gap(0.03, 0.2),
  }
  means["nvse-xi"] = (0.3, 0.2, 0.4)
  claims = nvse.claims(means, gaps)
  assert len(claims) == 4 and not any(_holds(claims).values())
  assert nvse.answer(means, gaps).startswith("MAP 0.600: -0.030 against BM25")
  gaps["bm25"] = _gap(0.028, 0.0002)
  assert nvse.answer(means, gaps).startswith("Better than BM25 by +0.028")
  assert len(nvse.table(means, means).rows) == 5
  charts = nvse.charts(gaps, {}, ([], []))
  assert [x.label for x in charts[0].points] == [
    "nvse-members", "bm25", "setexpan",
  ]  # fmt: skip


_VAE, _UNTRAINED = "vae:epochs=1:dim=40", "vae:epochs=0:dim=40"
_LABELS = "vae:decoder=multilabel:epochs=1:dim=40"


def test_pairs_of_systems_are_asked_for():
  names = ["bm25", _VAE, _UNTRAINED, _LABELS, f"{_VAE}+bm25", "lsa:k=60"]
  assert cmr.asked(names) == [(_VAE, _UNTRAINED), (_VAE, _LABELS)]


@pytest.mark.parametrize(
  "gain, p, holds", [(0.02, 0.001, True), (0.02, 0.4, False),
                     (-0.02, 0.001, False), (0.02, float("nan"), False)]
)  # fmt: skip
def test_training_helps_mention_retrieval_or_does_not(gain, p, holds):
  means = {"bm25": 0.61, f"{_VAE}+bm25": 0.63, _VAE: 0.41, _UNTRAINED: 0.4}
  gaps = {f"{_VAE}+bm25": _gap(gain, p), _VAE: _gap(-0.2, 0.001)}
  pairs = {(_VAE, _UNTRAINED): _gap(gain, p)}
  claims = cmr.claims(means, gaps, pairs)
  assert [claim.holds for claim in claims] == [holds, holds]
  assert cmr.answer(means, gaps).startswith("Yes" if holds else "Not clearly")
  both = {(_VAE, _LABELS): _gap(gain, p), **pairs}
  told = cmr.claims({**means, _LABELS: 0.4}, {}, both)
  assert ["Training" in claim.sentence for claim in told] == [True, False]
  table = cmr.table(means, gaps)
  assert table.rows[1] == ["bm25", 0.61, "", "", ""]
  assert len(cmr.charts(gaps)) == 2
  assert cmr.answer(means, {}) == "BM25 alone reaches 0.610 AP."


@pytest.mark.parametrize("p, holds", [(0.001, True), (0.51, False)])
def test_disambiguation_beats_the_prior_or_does_not(p, holds):
  local = "max-margin with U2, local"
  gains = {
    ("dump", local, "prior alone"): _gap(0.3, p),
    ("dump", "max-margin with U2, global", local): _gap(0.1, p),
  }
  claims = ned.claims(gains)
  assert [claim.holds for claim in claims] == [holds, holds]
  assert "Disambiguation by context beats the prior" in claims[0].sentence
  assert claims[1].sentence.startswith("Coherence")
  names = "max-margin with U2, global", "VAE with U2, global"
  (vectors,) = ned.claims({("dump", *names): _gap(0.3, p)})
  assert vectors.sentence.startswith("Max-margin vectors beat VAE vectors")
  start = "Yes: +0.3" if holds else "Not here: +0.3"
  assert ned.answer(gains).startswith(start)
  assert ned.charts({}) == [] and len(ned.charts(gains)[0].points) == 2
  assert ned.table({"a": 97.0}, {"a": 36.0}).rows == [["a", "97.0", "36.0"]]
  assert "No mention" in ned.answer({})
