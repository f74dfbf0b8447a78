"""Logical deduction by embeddings: the puzzle of thesis 5.4.5.

Rules and a few facts are given; all other facts of the universe are ranked
by their score, and those that follow from the rules are the right answers.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from repr_jax.data import rules as rule_files
from repr_jax.kb import negatives, pair_training, rule_projection, scores
from repr_jax.kb.rule_compiler import Constraints


class Puzzle(NamedTuple):
  """A small knowledge base.

  Attributes:
    entities: names.
    relations: names.
    rules: what holds.
    facts: what is known, head, relation, tail, int32 [n, 3].
  """

  entities: list[str]
  relations: list[str]
  rules: list[rule_files.Rule]
  facts: np.ndarray


class Metrics(NamedTuple):
  """How well entailed facts rank among all that are not given, each [runs].

  Attributes:
    precision: share of entailed facts among the first ten.
    reciprocal: mean reciprocal rank over the entailed facts.
    average: average precision over all entailed facts.
    found: average precision over those among the first ten. The thesis'
      figures (P@10 .20, MRR .44, MAP .83 with three entailed facts) fit
      ranks 1, 3 and a large one, and then its MAP is this.
  """

  precision: np.ndarray
  reciprocal: np.ndarray
  average: np.ndarray
  found: np.ndarray


def criminal_puzzle() -> Puzzle:
  """Benedict trades with Nono, which has a weapon (thesis table 5.7)."""
  entities = ["Nono", "WMD", "Benedict", "Enemy", "Criminal"]
  relations = ["Possess", "TradeWith", "TransactWith", "Considered"]
  rules = [
    rule_files.Rule("RelImp", ("TradeWith", "TransactWith")),
    rule_files.Rule("Entail_B", ("Possess", "WMD", "Considered", "Enemy")),
    rule_files.Rule(
      "PropTrans",
      ("TransactWith", "Considered", "Enemy", "Considered", "Criminal"),
    ),
  ]
  facts = np.array([[0, 0, 1], [2, 1, 0]], np.int32)
  return Puzzle(entities, relations, rules, facts)


def entailed(
  facts: np.ndarray,
  indexed: Sequence[tuple[str, tuple[int, ...]]],
) -> np.ndarray:
  """Facts that follow from others, by applying rules until nothing is new.

  Args:
    facts: head, relation, tail, int [n, 3].
    indexed: rules as from `kb.rule_algebra.index_rules`.

  Returns:
    The facts that were not given, int32 [m, 3], sorted.
  """
  given = {tuple(row) for row in np.asarray(facts).tolist()}
  holds = set(given)
  while True:
    new = set()
    for kind, ids in indexed:
      new |= _consequences(kind, ids, holds)
    if new <= holds:
      break
    holds |= new
  return np.array(sorted(holds - given), np.int32).reshape(-1, 3)


def solve(
  options: pair_training.Options,
  constraints: Constraints | None,
  puzzle: Puzzle,
  keys: jax.Array,
  dim: int = 25,
  passes: int = 200,
  eta: float = 0.1,
  alpha: float = 0.001,
  scale: float = 0.1,
) -> tuple[scores.Params, jax.Array]:
  """Trains one knowledge base for each key, all in one program.

  Args:
    options: model, batch and kind of unknown facts.
    constraints: compiled rules, or None for none.
    puzzle: the knowledge base.
    keys: random keys, [runs].
    dim: numbers per entity.
    passes: unknown facts for each fact.
    eta: step size.
    alpha: weight of the squared norms.
    scale: standard deviation of the start.

  Returns:
    Tables with a leading axis of runs, and the scores of all facts by
    relation, head and tail, [runs, R, E, E].
  """
  known = negatives.known_facts(
    puzzle.facts, len(puzzle.entities), len(puzzle.relations)
  )
  return _solve_jit(
    options,
    dim,
    passes,
    constraints,
    known,
    jnp.asarray(puzzle.facts),
    keys,
    pair_training.Rates(eta, alpha),
    scale,
    len(puzzle.entities),
    len(puzzle.relations),
  )


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


def _solve(
  options,
  dim,
  passes,
  constraints,
  known,
  facts,
  keys,
  rates,
  scale,
  num_entities,
  num_relations,
):
  def one(key):
    start, train = jax.random.split(key)
    params = scores.init_params(
      options.model, start, num_entities, num_relations, dim, scale
    )
    if constraints is not None:
      params = rule_projection.feasible_start(
        options.model, constraints, params
      ).params

    def learn(params, item):
      fact, key = item
      return pair_training.train_passes(
        options,
        constraints,
        known,
        fact[None],
        params,
        jax.random.split(key, passes),
        rates,
      )

    # As in algorithm 2: one fact with all its unknown facts, then the next.
    keys = jax.random.split(train, facts.shape[0])
    params, _ = jax.lax.scan(learn, params, (facts, keys))
    every = functools.partial(scores.score, options.model)
    over = jax.vmap(
      jax.vmap(jax.vmap(every, (None, None, 0)), (None, 0, None)),
      (0, None, None),
    )
    return params, over(params.relations, params.entities, params.entities)

  return jax.vmap(one)(keys)


_solve_jit = functools.partial(jax.jit, static_argnums=(0, 1, 2, 9, 10))(_solve)


def _consequences(kind, ids, holds):
  """Facts that one rule adds to those that hold."""
  if kind in ("RelImp", "RevImp", "Symm"):
    turn = kind != "RelImp"
    return {
      (t, ids[-1], h) if turn else (h, ids[-1], t)
      for h, r, t in holds
      if r == ids[0]
    }
  if kind == "Entail_A":
    return {
      (ids[3], ids[2], t) for h, r, t in holds if (h, r) == (ids[1], ids[0])
    }
  if kind == "Entail_B":
    return {
      (h, ids[2], ids[3]) for h, r, t in holds if (r, t) == (ids[0], ids[1])
    }
  if kind == "TypeImp":
    return {(h, ids[2], ids[1]) for h, r, _ in holds if r == ids[0]}
  middle = {h for h, r, t in holds if (r, t) == (ids[1], ids[2])}
  return {
    (h, ids[3], ids[4]) for h, r, t in holds if r == ids[0] and t in middle
  }
