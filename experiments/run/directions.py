"""Whether a larger or a smaller value of a metric is better."""

import re

_HIGHER = re.compile(
  "accuracy|ap|auc|correlation|coverage|elbo|f1|hits|infap|likelihood|map|mrr|"
  "ndcg|p|pearson|precision|recall|recip|reciprocal|right|rprec|spearman"
)
_LOWER = re.compile(
  "bytes|errors?|gb|loss|mb|memory|ms|perplexity|rank|s|seconds?|time|"
  "violations?"
)
_P_VALUE = re.compile(r"^p,|, p$|^p$|p.value")


def lower_is_better(metric: str) -> bool | None:
  """Judges a metric by the words of its name.

  Args:
    metric: its name, such as "filtered hits@10" or "mean_rank raw tail".

  Returns:
    True if less is better, False if more is better; None if the name does not
    say, as of a count, a p-value or a KL divergence.
  """
  if _P_VALUE.search(metric.lower()):
    return None
  words = re.findall(r"[a-z]+1?", metric.lower())
  if any(map(_HIGHER.fullmatch, words)):  # first: of reciprocal ranks too
    return False
  return True if any(map(_LOWER.fullmatch, words)) else None
