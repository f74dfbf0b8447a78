"""Weights of views: the groups' given weights times learned ones."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from experiments.mvlsa import data
from experiments.mvlsa.config import Config
from repr_jax import multiview
from repr_jax.data import testsets
from repr_jax.errors import InputError
from repr_jax.multiview import agreement
from repr_jax.multiview.gcca import ViewFactor

_ROWS = 300  # words drawn; a held-out view is predicted on their pairs
_AMONG = 3000  # they are drawn from this many words with the most views


class Labels(NamedTuple):
  """Scores by people that weights are fitted to.

  Attributes:
    pairs: rows of two words in each set, int [S, p, 2]; -1 is padding.
    ranks: rank of each pair's score in its set, [S, p].
  """

  pairs: np.ndarray
  ranks: np.ndarray


def labels(
  sets: Sequence[testsets.SimilaritySet], index: Mapping[str, int]
) -> Labels:
  """The known pairs of some sets with the ranks of their scores.

  Args:
    sets: similarity sets that may be tuned on.
    index: row of each word.
  """
  pairs, ranks = [], []
  for one in sets:
    rows = np.array([[index.get(w, -1) for w in pair] for pair in one.pairs])
    known = (rows >= 0).all(axis=1)
    if known.sum() > 3:
      _, inverse, counts = np.unique(
        np.asarray(one.scores)[known], return_inverse=True, return_counts=True
      )
      pairs.append(rows[known])
      ranks.append((np.cumsum(counts) - counts / 2)[inverse] / known.sum())
  if not pairs:
    raise InputError(
      "--view_weights=labels needs pairs of known words in MEN, RW, SCWS, "
      "SIMLEX or MTURK; name a directory with --testsets"
    )
  most = max(map(len, pairs))
  held = Labels(
    np.full((len(pairs), most, 2), -1, np.int32),
    np.zeros((len(pairs), most), np.float32),
  )
  for s, (rows, order) in enumerate(zip(pairs, ranks)):
    held.pairs[s, : len(rows)] = rows
    held.ranks[s, : len(rows)] = order
  return held


def given(names: Sequence[str], config: Config) -> dict[str, float]:
  """Weight of each view: its group's, shared by the group if balanced."""
  groups = [data.group(name) for name in names]
  weights = {}
  for name, group in zip(names, groups):
    weight = config.group_weight(group)
    weights[name] = weight / (groups.count(group) if config.balance else 1)
  return weights


def learned(
  made: Mapping[str, ViewFactor], config: Config, known: Labels | None
) -> dict[str, float]:
  """Factors of the given weights, by the method of --view_weights.

  Args:
    known: for --view_weights=labels.
  """
  factors = list(made.values())
  if config.view_weights == "given" or len(factors) < 2:
    return dict.fromkeys(made, 1.0)
  # Not jitted as a whole: it would compile anew for each number of views.
  if config.view_weights == "agreement":
    by_view = agreement.view_agreement(factors)
    weights = multiview.agreement_weights(by_view, config.agreement_power)
  elif config.view_weights == "energy":
    weights = multiview.energy_weights(
      factors, ridge=config.ridge, relative_ridge=config.relative_ridge
    )
  elif config.view_weights == "heldout":
    names = [data.source(name) for name in made]
    numbers = [sorted(set(names)).index(name) for name in names]
    weights = multiview.heldout_weights(
      factors, np.array(numbers), _common_rows(factors), ridge=config.ridge
    )
  else:
    assert known is not None
    weights = multiview.label_weights(
      factors, known.pairs, known.ranks, ridge=config.ridge
    )
  return dict(zip(made, np.asarray(weights).tolist()))


def remark(names: Sequence[str], values: np.ndarray) -> str:
  """A sentence with the weights of a fit, the largest as 1.

  Args:
    values: their weights, [J].
  """
  order = np.argsort(-values, kind="stable").tolist()
  most = float(np.max(values))
  shown = [f"{names[j]} {values[j] / most:.2g}" for j in order]
  return f"Weights of views: {', '.join(shown)}."


def _common_rows(factors: Sequence[ViewFactor]) -> np.ndarray:
  """Some of the rows that most views observe, the same in every run."""
  support = sum((np.asarray(f.row_weights) > 0).astype(int) for f in factors)
  order = np.argsort(-np.asarray(support), kind="stable")[:_AMONG]
  rng = np.random.default_rng(0)
  return np.sort(rng.permutation(order)[:_ROWS])
