"""The better direction of every metric that experiments report."""

import pytest

from experiments.run import directions


@pytest.mark.parametrize(
  ("metric", "lower"),
  [
    ("mrr filtered both", False), ("hits@10 raw tail", False),
    ("mean_rank raw head", True), ("recip_rank", False), ("P_10", False),
    ("P@10", False), ("map", False), ("infAP", False), ("Rprec", False),
    ("MAP (all entailed facts)", False), ("micro F1, %", False),
    ("E^rev, % right", False), ("sampled ELBO, nats", False),
    ("perplexity bound", True), ("KL, nats", None), ("epochs", None),
    ("largest rule violation", True), ("seconds per epoch", True),
    ("peak memory, GB", True), ("svd, median s per view", True),
    ("mean relative error of singular values", True), ("loss", True),
    ("p, map", None), ("paired t-test of MAP, p", None), ("p-value", None),
    ("queries skipped", None), ("Spearman x 100", False), ("x 100", None),
    ("", None),
  ],
)  # fmt: skip
def test_directions(metric, lower):
  assert directions.lower_is_better(metric) is lower
