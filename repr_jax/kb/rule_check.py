"""Whether rules hold: the largest violation over many entities.

A rule fails by min(score(antecedents)) - score(consequent) where that is
positive. It is measured on entities sampled from the region the constraints
allow, which is what the guarantee is about, and on the trained entities.
Scores are taken in float64, so that rounding is not read as a violation.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from repr_jax.data import rules as rule_files
from repr_jax.kb import rule_kinds, scores
from repr_jax.kb.rule_compiler import Constraints
from repr_jax.ops import precision


class RuleCheck(NamedTuple):
  """Largest violation of each rule, in the order of the rules.

  Attributes:
    sampled: over entities sampled from the allowed region, float64 [n].
    real: over pairs of trained entities, float64 [n].
  """

  sampled: np.ndarray
  real: np.ndarray

  @property
  def worst(self) -> float:
    """The largest of all."""
    # Of numpy, where a NaN comes first; to Python's max it may be the least.
    return float(np.max(np.concatenate([self.sampled, self.real]), initial=0))


def check_rules(
  model: str,
  params: scores.Params,
  rules: Sequence[rule_files.Rule],
  relations: Sequence[str],
  entities: Sequence[str],
  constraints: Constraints | None = None,
  samples: int = 4096,
  seed: int = 0,
) -> RuleCheck:
  """Measures the violation of rules.

  Args:
    model: one of `kb.scores.SCORES`.
    params: the tables.
    rules: the rules.
    relations: names of the relations in the order of their ids.
    entities: names of the entities in the order of their ids.
    constraints: gives the region to sample from; without it entities are
      sampled from a normal distribution as wide as the trained ones.
    samples: pairs of entities of either sort.
    seed: of the sampling.

  Returns:
    The violations.

  Raises:
    InputError: where a table is not finite, of which nothing could be said.
  """
  scores.check_tables(params)
  indexed = rule_kinds.index_rules(list(rules), list(relations), list(entities))
  rng = np.random.default_rng(seed)
  table = np.asarray(params.entities, np.float64)
  other = np.asarray(params.relations, np.float64)
  drawn = [sample_entities(rng, samples, table, constraints) for _ in range(2)]
  pairs = rng.integers(len(table), size=(2, samples))
  if len(table) ** 2 <= samples:
    pairs = np.indices((len(table), len(table))).reshape(2, -1)
  with precision.enable_x64(True):
    tables = scores.Params(jnp.asarray(table), jnp.asarray(other))
    found = [
      [
        _worst(model, tables, kind, ids, jnp.asarray(x), jnp.asarray(y))
        for kind, ids in indexed
      ]
      for x, y in (drawn, table[pairs])
    ]
  return RuleCheck(np.array(found[0]), np.array(found[1]))


def sample_entities(
  rng: np.random.Generator,
  count: int,
  table: np.ndarray,
  constraints: Constraints | None,
) -> np.ndarray:
  """Entities from the region that constraints allow.

  Args:
    rng: source of randomness.
    count: n.
    table: trained entities, [E, d], which give the spread.
    constraints: the region; anything where None.

  Returns:
    Entities, [n, d]; a quarter of them sparse, so that faces and corners of
    the region are met too.
  """
  spread = max(float(np.std(table)), 1e-3)
  drawn = spread * rng.standard_normal((count, table.shape[1])) * 2
  if constraints is None or constraints.region is None:
    return drawn
  region = constraints.region
  if np.isfinite(region.radius):
    norm = np.linalg.norm(drawn, axis=1, keepdims=True)
    reach = float(region.radius) * np.sqrt(rng.uniform(size=(count, 1)))
    return drawn / norm * reach
  if np.isfinite(region.upper):
    drawn = float(region.upper) * rng.uniform(size=drawn.shape)
    corner = rng.uniform(size=drawn.shape) < 0.5
    drawn[::4] = float(region.upper) * corner[::4]
    return drawn
  if np.isfinite(region.lower):
    drawn = np.abs(drawn)
    drawn[::4] *= rng.uniform(size=drawn[::4].shape) < 0.1
  return drawn


def _worst(model, params, kind, ids, x, y):
  """The largest violation of one rule over pairs x, y [n, d]."""

  def facts(relation, head, tail):
    return jax.vmap(lambda e, f: scores.score(model, relation, e, f))(
      jnp.broadcast_to(head, x.shape), jnp.broadcast_to(tail, x.shape)
    )

  letters = zip(ids, rule_files.SIGNATURES[kind])
  v = [
    params.relations[i] if letter == "r" else params.entities[i]
    for i, letter in letters
  ]
  if kind == "RelImp":
    gap = facts(v[0], x, y) - facts(v[1], x, y)
  elif kind == "RevImp":
    gap = facts(v[0], x, y) - facts(v[1], y, x)
  elif kind == "Symm":
    gap = facts(v[0], x, y) - facts(v[0], y, x)
  elif kind == "Entail_A":
    gap = facts(v[0], v[1], x) - facts(v[2], v[3], x)
  elif kind == "Entail_B":
    gap = facts(v[0], x, v[1]) - facts(v[2], x, v[3])
  elif kind == "TypeImp":
    gap = facts(v[0], x, y) - facts(v[2], x, v[1])
  else:
    both = jnp.minimum(facts(v[0], x, y), facts(v[1], y, v[2]))
    gap = both - facts(v[3], x, v[4])
  # On the host: a compiled maximum of many numbers passes over a NaN.
  return float(np.max(np.asarray(gap), initial=0))
