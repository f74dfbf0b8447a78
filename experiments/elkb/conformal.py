"""Answer sets that hold the right answer with a chosen probability.

Split conformal prediction (Vovk et al. 2005): an answer set has all entities
whose probability reaches a threshold. The threshold is chosen so that right
answers of validation questions reach it with the chosen frequency. If test
questions come from the same distribution, a set holds the right answer with at
least that probability, whatever the model.
"""

import math
from collections.abc import Callable

import numpy as np

from experiments.elkb import answers, data, evaluate
from experiments.elkb.config import Config


def threshold(right: np.ndarray, coverage: float) -> float:
  """The least probability of a member of an answer set.

  Args:
    right: probabilities of right answers of validation questions, [n].
    coverage: chosen probability that a set holds the right answer.

  Returns:
    The k-th largest of them, k = ceil((n + 1) coverage); 0, which lets all
    entities in, where there are too few questions for such a coverage.
  """
  place = math.ceil((len(right) + 1) * coverage - 1e-9)
  if place > len(right):
    return 0.0
  return float(np.sort(right)[::-1][place - 1])


def fitted_threshold(
  kb: data.KnowledgeBase,
  trained: evaluate.Trained,
  config: Config,
  temperature: float,
) -> float:
  """The threshold for `--coverage` by validation facts.

  Args:
    kb: the knowledge base.
    config: gives the coverage and the block.

  Returns:
    The least probability of a member.
  """
  right, _ = _masses(kb, trained, kb.splits.valid.array, config, temperature)
  return threshold(right, config.coverage)


def rows(
  add: Callable[..., object],
  kb: data.KnowledgeBase,
  name: str,
  trained: evaluate.Trained,
  config: Config,
  temperature: float,
) -> None:
  """Writes how often sets of test questions hold the answer, and their size.

  Args:
    add: takes a row, as `runlib.Run.row` does.
    kb: the knowledge base.
    config: gives the coverage and the block.
  """
  least = fitted_threshold(kb, trained, config, temperature)
  right, sizes = _masses(
    kb, trained, kb.splits.test.array, config, temperature, least
  )
  wanted = f"{config.coverage:g}"
  add(name, f"coverage of answer sets for {wanted}", np.mean(right >= least))
  add(name, f"mean size of answer sets for {wanted}", np.mean(sizes))


def _masses(kb, trained, facts, config, temperature, least=1.0):
  """Probabilities of right answers [n], and how many entities reach `least`."""
  right, sizes = [], []
  for values, wanted in answers.filtered_queries(kb, trained, facts, config):
    mass = answers.softmax(values / temperature)
    right.append(mass[np.arange(len(wanted)), wanted])
    sizes.append(np.sum(mass >= least, axis=1))
  return np.concatenate(right), np.concatenate(sizes)
