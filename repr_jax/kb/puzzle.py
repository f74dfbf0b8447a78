"""Logical deduction by embeddings: the puzzle of thesis 5.4.5.

Rules and a few facts are given; all other facts of the universe are ranked
by their score, and those that follow from the rules are the right answers.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from repr_jax.data.rules import Rule
from repr_jax.kb import negatives, pair_training, scores
from repr_jax.kb.rule_compiler import Constraints

# Settings of the thesis' runs.
_NUM_NEGATIVES, _LEARNING_RATE, _PENALTY = 200, 0.1, 0.001


class Puzzle(NamedTuple):
  """A small knowledge base.

  Attributes:
    entities: names.
    relations: names.
    rules: the rules.
    facts: known facts as head, relation, tail, int32 [n, 3].
  """

  entities: list[str]
  relations: list[str]
  rules: list[Rule]
  facts: np.ndarray


class Metrics(NamedTuple):
  """How well entailed facts rank among all that are not given, each [runs].

  Attributes:
    precision: share of entailed facts among the first ten.
    reciprocal: mean reciprocal rank over the entailed facts.
    average: average precision over all entailed facts.
    average_at_10: average precision over the entailed facts among the first
      ten. The thesis' figures (P@10 .20, MRR .44, MAP .83 with three entailed
      facts) fit ranks 1, 3 and a large one; its MAP is then this number.
  """

  precision: np.ndarray
  reciprocal: np.ndarray
  average: np.ndarray
  average_at_10: np.ndarray


def criminal_puzzle() -> Puzzle:
  """Benedict trades with Nono, which has a weapon (thesis table 5.7)."""
  entities = ["Nono", "WMD", "Benedict", "Enemy", "Criminal"]
  relations = ["Possess", "TradeWith", "TransactWith", "Considered"]
  rules = [
    Rule("RelImp", ("TradeWith", "TransactWith")),
    Rule("Entail_B", ("Possess", "WMD", "Considered", "Enemy")),
    Rule(
      "PropTrans",
      ("TransactWith", "Considered", "Enemy", "Considered", "Criminal"),
    ),
  ]
  facts = np.array([[0, 0, 1], [2, 1, 0]], np.int32)
  return Puzzle(entities, relations, rules, facts)


def solve(
  config: pair_training.SGDConfig,
  constraints: Constraints | None,
  puzzle: Puzzle,
  keys: jax.Array,
  scale: float = 0.1,
) -> tuple[scores.Params, jax.Array]:
  """Trains one knowledge base for each key, all in one program.

  Args:
    config: of projected SGD.
    constraints: compiled rules, or None for none.
    keys: random keys, [runs].
    scale: standard deviation of the start.

  Returns:
    Tables with a leading axis of runs, and the scores of all facts by
    relation, head and tail, [runs, R, E, E].
  """
  known = negatives.known_facts(
    puzzle.facts, config.num_entities, config.num_relations
  )
  rates = jnp.array([_LEARNING_RATE, _PENALTY, scale], config.dtype)
  facts = jnp.asarray(puzzle.facts)
  return _solve_jit(config, constraints, known, facts, keys, rates)


def rank_metrics(
  fact_scores: np.ndarray, facts: np.ndarray, entailed_facts: np.ndarray
) -> Metrics:
  """Ranks all facts that are not given and looks for the entailed ones.

  Args:
    fact_scores: by relation, head and tail, [runs, R, E, E].
    facts: given facts, int [n, 3].
    entailed_facts: right answers, int [m, 3].

  Returns:
    The metrics of each run; ties count half.
  """
  runs = fact_scores.shape[0]
  flat = np.asarray(fact_scores, np.float64).reshape(runs, -1)
  shape = fact_scores.shape[1:]

  def places(rows):
    head, relation, tail = np.asarray(rows).T
    return np.ravel_multi_index((relation, head, tail), shape)

  rest = np.setdiff1d(np.arange(flat.shape[1]), places(facts))
  right = places(entailed_facts)
  above = np.sum(flat[:, None, rest] > flat[:, right, None], axis=2)
  level = np.sum(flat[:, None, rest] == flat[:, right, None], axis=2)
  ranks = np.sort(above + (level + 1) / 2, axis=1)
  order = np.arange(1, len(right) + 1)
  near = ranks <= 10
  return Metrics(
    np.mean(near, axis=1) * len(right) / 10,
    np.mean(1 / ranks, axis=1),
    np.mean(order / ranks, axis=1),
    np.sum(near * order / ranks, axis=1) / np.maximum(near.sum(axis=1), 1),
  )


def _solve(config, constraints, known, facts, keys, rates):
  def one(key):
    start, train = jax.random.split(key)
    state = pair_training.init(config, constraints, start, *rates)

    def learn(state, item):
      fact, key = item
      draws = jax.random.split(key, _NUM_NEGATIVES)
      return pair_training.train_passes(
        config, constraints, known, fact[None], state, draws
      )

    # As in algorithm 2: one fact with all its unknown facts, then the next.
    keys = jax.random.split(train, facts.shape[0])
    (params, *_), _ = jax.lax.scan(learn, state, (facts, keys))
    every = functools.partial(scores.score, config.model)
    over = jax.vmap(
      jax.vmap(jax.vmap(every, (None, None, 0)), (None, 0, None)),
      (0, None, None),
    )
    return params, over(params.relations, params.entities, params.entities)

  return jax.vmap(one)(keys)


_solve_jit = jax.jit(_solve, static_argnums=0)
