"""Words for codes, ranges of measures, and numbers of the report."""

import math

import pytest

from experiments.run import report_labels


@pytest.mark.parametrize(
  "code, text, details",
  [
    (
      "vae:decoder=multilabel:epochs=1:latent=40:hidden=80+bm25",
      "BM25 + VAE multilabel",
      "decoder multilabel, epochs 1, dimensions 40, hidden units 80",
    ),
    ("vae:epochs=0:dim=40", "VAE multinomial, untrained", "dimensions 40"),
    ("lsa:k=60", "LSA", "dimensions 60"),
    ("mvlsa:k=60:m=6+bm25 mean", "BM25 + MVLSA, equal weights", "view 6"),
    ("vae:new=1e-3", "VAE multinomial", "new 1e-3"),
    ("!walks", "without walks on the graph", ""),
    ("!walks loss", "loss without walks on the graph", ""),
    ("!unknown", "without unknown", ""),
    ("!walks !synset", "without walks on the graph, synsets", ""),
    ("nvse-members", "NVSE, members' features alone", ""),
    ("tree V=2047 d=50 SubSet", "Tree, d = 50, SubSet", "2,047 vertices"),
    ("wordnet V=16255 d=50 SubSet, two roles", "WordNet, d = 50, SubSet, two "
     "roles", "16,255 vertices"),
    ("puzzle A + rules", "Puzzle A with rules", "score model A"),
    ("WordNet below animal.n.01, B + rules", "WordNet, model B with rules",
     "animal.n.01"),
    ("ComplEx + rules", "ComplEx with rules", ""),
    ("max-margin with U2, global", "max-margin, mention contexts, global", ""),
    ("dump: prior alone", "small Wikipedia, prior alone", ""),
    ("null U1+U2", "untrained VAE, pages and mentions (U1, U2)", ""),
    ("SIMLEX, WordNet alone", "SimLex-999", "WordNet alone"),
    ("_member_holonym", "member holonym", ""),
    ("anything else: x=1", "anything else: x=1", ""),
    ("", "", ""),
  ],
)  # fmt: skip
def test_codes_become_words(code, text, details):
  label = report_labels.label(code)
  assert label.text == text
  assert details in label.details


@pytest.mark.parametrize(
  "metric, low, high",
  [
    ("MRR", 0, 1),
    ("P@10", 0, 1),
    ("MAP", 0, 1),
    ("map", 0, 1),
    ("infAP", 0, 1),
    ("NDCG@5", 0, 1),
    ("filtered hits@10", 0, 1),
    ("filtered mrr", 0, 1),
    ("MAP (entailed facts in the first ten)", 0, 1),
    ("E^rev, % right", 0, 100),
    ("micro F1, %", 0, 100),
    ("accuracy x 100", 0, 100),
    ("Spearman x 100", -100, 100),
    ("Spearman", -1, 1),
    ("largest rule violation", 0, math.inf),
    ("mean relative error of singular values", 0, math.inf),
    ("sampled ELBO, nats", -math.inf, math.inf),
  ],
)
def test_a_measure_has_its_range(metric, low, high):
  measure = report_labels.measure(metric)
  assert (measure.low, measure.high) == (low, high)
  assert report_labels.clip(-1e9, measure) == max(low, -1e9)
  assert report_labels.clip(1e9, measure) == min(high, 1e9)
  assert measure.text


def test_kinds_of_pairs_are_named():
  assert report_labels.measure("E, % right").text == "stored pairs, %"
  assert report_labels.measure("E^c, % right").text == "absent pairs, %"


@pytest.mark.parametrize(
  "value, text",
  [
    (None, ""), (True, "yes"), (3, "3"), (123456, "123,456"), ("a", "a"),
    (0.12345, "0.1235"), (1.848e-07, "1.848e-7"), (-0.0, "0"), (0.0, "0"),
    (123456.7, "123,457"), (1e20, "1e20"), (65.0, "65"),
  ],
)  # fmt: skip
def test_numbers_have_four_digits(value, text):
  assert report_labels.number(value) == text
