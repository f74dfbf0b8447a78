"""Whether a triple is a fact: a threshold of the score for each relation."""

from collections.abc import Callable

import jax
import numpy as np

from experiments.elkb import data, evaluate
from experiments.elkb.config import Config, load_model
from repr_jax import errors
from repr_jax.data import triples
from repr_jax.kb import scores

_score = jax.jit(jax.vmap(scores.score, (None, 0, 0, 0)), static_argnums=0)


def read_negatives(
  kb: data.KnowledgeBase, config: Config
) -> tuple[np.ndarray, np.ndarray] | None:
  """Reads the false triples of validation and test.

  Args:
    kb: gives the ids; a name that it lacks is an error.

  Returns:
    Head, relation, tail of both, int [n, 3]; None where no file is given.
  """
  paths = config.valid_negatives, config.test_negatives
  if not any(paths):
    return None
  if not all(paths):
    raise errors.InputError(
      "--valid_negatives and --test_negatives go together"
    )
  entities = {name: i for i, name in enumerate(kb.entities)}
  relations = {name: i for i, name in enumerate(kb.relations)}
  parts = []
  for path in paths:
    read = triples.read_triples(str(path), config.columns, config.duplicates)
    rows = []
    for row, (h, r, t) in enumerate(read.named()):
      line = None if read.lines is None else int(read.lines[row])
      for name, table in ((h, entities), (r, relations), (t, entities)):
        if name not in table:
          raise errors.InputError(
            f"the facts have no {name!r}", path=path, line=line
          )
      rows.append((entities[h], relations[r], entities[t]))
    parts.append(np.array(rows))
  return parts[0], parts[1]


def thresholds(
  values: np.ndarray, relations: np.ndarray, right: np.ndarray, count: int
) -> np.ndarray:
  """The threshold of each relation with the most right decisions.

  Args:
    values: scores, [n].
    relations: ids, [n].
    right: which are facts, bool [n].
    count: number of relations, R.

  Returns:
    Thresholds, [R]; relations without triples get the overall one.
  """

  def best(scores_of, facts):
    order = np.argsort(scores_of)
    ranked, facts = scores_of[order], facts[order]
    # With the threshold after i triples: facts above it, others below.
    above = facts.sum() - np.concatenate([[0], np.cumsum(facts)])
    below = np.concatenate([[0], np.cumsum(~facts)])
    ends = np.concatenate([[ranked[0] - 1], ranked, [ranked[-1] + 1]])
    middle = (ends[1:] + ends[:-1]) / 2
    return middle[int(np.argmax(above + below))]

  chosen = np.full(count, best(values, right))
  for relation in np.unique(relations).tolist():
    here = relations == relation
    chosen[relation] = best(values[here], right[here])
  return chosen


def classification_rows(
  add: Callable[..., object],
  kb: data.KnowledgeBase,
  name: str,
  trained: evaluate.Trained,
  negatives: tuple[np.ndarray, np.ndarray],
) -> None:
  """Writes accuracy and F1 of test triples; thresholds are of validation.

  Args:
    add: takes a row, as `runlib.Run.row` does.
    kb: the knowledge base.
  """
  model, params = load_model(trained.model), trained.params
  made = []
  for part, false in zip((kb.splits.valid, kb.splits.test), negatives):
    facts = np.concatenate([part.array, false])
    head, relation, tail = facts.T
    values = _score(
      model,
      params.relations[relation],
      params.entities[head],
      params.entities[tail],
    )
    right = np.arange(len(facts)) < len(part.array)
    made.append((np.asarray(values, np.float64), relation, right))
  limits = thresholds(*made[0], len(kb.relations))
  values, relation, right = made[1]
  said = values > limits[relation]
  both = np.sum(said & right)
  add(name, "classification accuracy", float(np.mean(said == right)))
  add(name, "classification F1", float(2 * both / (said.sum() + right.sum())))
