"""Retrieval measures against trec_eval and by hand."""

import numpy as np
import pytest

from repr_jax.evaluation import retrieval

_MEASURES = [
  "map",
  "infAP",
  "ndcg",
  "ndcg_cut_5",
  "ndcg_cut_10",
  "recip_rank",
  "P_5",
  "P_10",
  "Rprec",
  "success_1",
  "success_5",
  "success_10",
  "recall_5",
  "recall_100",
]


def _peer(run, judgments):
  pytrec_eval = pytest.importorskip(
    "pytrec_eval", reason="pytrec-eval-terrier is not installed"
  )
  families = {"P.5,10", "ndcg_cut.5,10", "success.1,5,10", "recall.5,100"}
  families |= {"map", "infAP", "ndcg", "recip_rank", "Rprec"}
  return pytrec_eval.RelevanceEvaluator(judgments, families).evaluate(run)


def _random_case(seed, ties):
  rng = np.random.default_rng(seed)
  run, judgments = {}, {}
  for query in range(12):
    pool = [f"d{i}" for i in rng.permutation(60)]
    found = rng.integers(1, 40)
    scores = rng.integers(0, 5 if ties else 10**6, found)
    run[f"q{query}"] = dict(zip(pool, scores.astype(float).tolist()))
    judged = rng.choice(pool, rng.integers(1, 50), replace=False).tolist()
    low = 0 if query % 4 == 0 else -1
    values = rng.integers(low, 1 if query % 5 == 0 else 4, len(judged))
    judgments[f"q{query}"] = dict(zip(judged, values.tolist()))
  return run, judgments


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_equals_trec_eval(seed, ties):
  run, judgments = _random_case(seed, ties)
  expected = _peer(run, judgments)
  got = retrieval.evaluate_run(run, judgments, _MEASURES)
  assert got.keys() == expected.keys()
  for query, row in expected.items():
    for name in _MEASURES:
      assert got[query][name] == pytest.approx(row[name], abs=1e-9), (
        query,
        name,
      )


def test_same_ties_and_precision_as_trec_eval():
  scores = {"a": 1.0, "é": 1.0, "z": 1.0, "Z": 1.0, "b": 1 + 1e-12, "c10": 1.0}
  run = {"q": scores}
  for document in scores:
    judgments = {"q": {document: 1}}
    expected = _peer(run, judgments)["q"]["recip_rank"]
    got = retrieval.evaluate_run(run, judgments, ["recip_rank"])
    assert got["q"]["recip_rank"] == pytest.approx(expected), document


def test_queries_without_judgments_or_results():
  run = {"a": {"d": 1.0}, "unjudged": {"d": 1.0}, "none": {"d": 1.0}}
  judgments = {"a": {"d": 1}, "lost": {"d": 1}, "none": {}}
  judgments_full = {k: v for k, v in judgments.items() if v}
  assert _peer(run, judgments_full).keys() == {"a"}
  got = retrieval.evaluate_run(run, judgments, ["map"])
  assert got == {"a": {"map": 1.0}}
  full = retrieval.evaluate_run(run, judgments, ["map"], complete=True)
  assert full == {"a": {"map": 1.0}, "lost": {"map": 0.0}}
  assert retrieval.mean_measures(full) == {"map": 0.5}


def test_nothing_relevant_is_zero():
  judgments = {"q": {"d": 0, "e": -1}}
  got = retrieval.evaluate_run({"q": {"d": 2.0}}, judgments, _MEASURES)
  assert set(got["q"].values()) == {0.0}


def test_by_hand():
  ranked = np.array([1, 0, 2, 0, 0])
  assert retrieval.average_precision(ranked, 3) == pytest.approx(
    (1 + 2 / 3) / 3
  )
  assert retrieval.reciprocal_rank(ranked[1:]) == 0.5
  assert retrieval.precision(ranked, 10) == 0.2
  assert retrieval.r_precision(ranked, 3) == pytest.approx(2 / 3)
  assert retrieval.recall(ranked, 4, 2) == 0.25
  assert retrieval.hits(ranked[1:], 1) == 0.0
  assert retrieval.hits(ranked[1:], 2) == 1.0
  expected = (1 + 2 / 2) / (2 + 1 / np.log2(3))
  assert retrieval.ndcg(ranked, ranked) == pytest.approx(expected)


def test_inferred_ap_is_average_precision_under_full_judgment():
  ranked = np.array([0, 1, 1, 0, 1, 0, 0, 1])
  assert retrieval.inferred_ap(ranked, 5) == pytest.approx(
    retrieval.average_precision(ranked, 5), abs=1e-4
  )


def test_inferred_ap_estimates_average_precision():
  rng = np.random.default_rng(0)
  full = (rng.random(400) < np.linspace(0.6, 0.1, 400)).astype(int)
  estimates = []
  for _ in range(200):
    sampled = np.where(rng.random(400) < 0.3, full, retrieval.UNJUDGED)
    estimates.append(retrieval.inferred_ap(sampled, (sampled > 0).sum()))
  exact = retrieval.average_precision(full, full.sum())
  assert np.mean(estimates) == pytest.approx(exact, abs=0.02)


def test_bad_arguments_are_refused():
  with pytest.raises(ValueError, match="cut-off"):
    retrieval.precision(np.ones(3), 0)
  with pytest.raises(ValueError, match="cut-off"):
    retrieval.ndcg(np.ones(3), np.ones(3), 0)
  for name in ("bpref", "P_0", "P", "map_5"):
    with pytest.raises(ValueError, match="unknown measure"):
      retrieval.evaluate_run({"q": {"d": 1.0}}, {"q": {"d": 1}}, [name])
  with pytest.raises(ValueError, match="not finite"):
    retrieval.rank_documents({"d": float("nan")})
  with pytest.raises(ValueError, match="no query"):
    retrieval.mean_measures({})
