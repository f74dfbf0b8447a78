"""Whether rules hold: the largest violation over many entities.

The violation of a rule is min(score(antecedents)) - score(consequent) if that
is positive, else 0; a negated consequent counts with the opposite sign. It is
measured on entities sampled from the region of the constraints, to which the
guarantee applies, and on the trained entities. Scores are computed in float64,
so that rounding is not taken for a violation.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from repr_jax.data.rules import Rule
from repr_jax.kb import rule_set, scores
from repr_jax.kb.rule_compiler import Constraints
from repr_jax.kb.score_model import ScoreModel
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
    """The largest violation of any rule."""
    # np.max propagates NaN; Python's max may not.
    return float(np.max(np.concatenate([self.sampled, self.real]), initial=0))


def check_rules(
  model: ScoreModel | str,
  params: scores.Params,
  rules: Sequence[Rule | str],
  relations: rule_set.Names,
  entities: rule_set.Names,
  constraints: Constraints | None = None,
  samples: int = 4096,
  seed: int = 0,
) -> RuleCheck:
  """Measures the violation of rules, min(antecedents) - consequent.

  >>> import jax
  >>> from repr_jax import kb
  >>> params = kb.init_params("A", jax.random.key(0), 3, 2, 4)
  >>> rules = ["RelImp(r, s)", "Symm(s)"]
  >>> kb.check_rules("A", params, rules, ["r", "s"], 3).real.shape
  (2,)

  Args:
    model: a score model or its name.
    params: the tables.
    rules: as for `compile_rules`.
    relations: as for `compile_rules`.
    entities: as for `compile_rules`.
    constraints: gives the region to sample from; without it entities are
      sampled from a normal distribution as wide as the trained ones.
    samples: choices of sampled entities, and at most as many of trained ones.
    seed: of the sampling.

  Returns:
    The violations.

  Raises:
    InputError: a table is not finite.
  """
  scores.check_tables(params)
  indexed = rule_set.index_rules(rules, relations, entities)
  rng = np.random.default_rng(seed)
  table = np.asarray(params.entities, np.float64)
  other = np.asarray(params.relations, np.float64)
  count = max([2, *(len(kind.variables) for kind, _ in indexed)])
  drawn = [
    sample_entities(rng, samples, table, constraints) for _ in range(count)
  ]
  tuples = rng.integers(len(table), size=(count, samples))
  if len(table) ** count <= samples:
    tuples = np.indices((len(table),) * count).reshape(count, -1)
  with precision.enable_x64(True):
    tables = scores.Params(jnp.asarray(table), jnp.asarray(other))
    worst = [
      [
        _worst(model, tables, kind, ids, [jnp.asarray(x) for x in chosen])
        for kind, ids in indexed
      ]
      for chosen in (drawn, table[tuples])
    ]
  return RuleCheck(np.array(worst[0]), np.array(worst[1]))


def sample_entities(
  rng: np.random.Generator,
  count: int,
  table: np.ndarray,
  constraints: Constraints | None,
) -> np.ndarray:
  """Entities from the region that constraints allow.

  Args:
    count: n.
    table: trained entities, [E, d], which give the spread.
    constraints: gives the region; None for an unbounded one.

  Returns:
    Entities, [n, d]. In a box or orthant, a quarter of them lie in corners or
    on faces.
  """
  spread = max(float(np.std(table)), 1e-3)
  drawn = spread * rng.standard_normal((count, table.shape[1])) * 2
  if constraints is None or constraints.region is None:
    return drawn
  region = constraints.region
  if region.center is not None:  # a ball around the center, cut by the orthant
    middle = float(region.center)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    reach = middle * np.sqrt(table.shape[1] * rng.uniform(size=(count, 1)))
    return np.maximum(middle + reach * drawn, 0)
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
    mask = constraints.model.ordered
    kept = np.ones(table.shape[1], bool) if mask is None else mask(len(table.T))
    drawn = np.where(kept, np.abs(drawn), drawn)
    drawn[::4] *= rng.uniform(size=drawn[::4].shape) < 0.1
  return drawn


def _worst(model, params, kind, ids, chosen):
  """The largest violation of one rule over entities [n, d] per variable."""
  body, head = kind.bind(ids)
  given = dict(zip(kind.variables, chosen))

  def value(atom):
    ends = [
      given[x] if x in given else jnp.broadcast_to(params.entities[x], shape)
      for x in (atom.head, atom.tail)
    ]
    relation = params.relations[atom.relation]
    return jax.vmap(lambda e, f: scores.score(model, relation, e, f))(*ends)

  shape = chosen[0].shape
  sign = 1 if kind.negated else -1
  gap = functools.reduce(jnp.minimum, map(value, body)) + sign * value(head)
  # On the host: a compiled maximum of many numbers may drop a NaN.
  return float(np.max(np.asarray(gap), initial=0))
