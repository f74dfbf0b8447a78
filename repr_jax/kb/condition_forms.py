"""Forms of conditions on vectors, and the numbers that they depend on."""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

from repr_jax import errors

Node = tuple[int, int]  # a relation and which part of it


@dataclasses.dataclass(frozen=True)
class RuleConfig:
  """Numbers that some conditions depend on.

  Attributes:
    mixing: lambda of PropTrans, in (0, 1): weight of the first antecedent.
    cap: m, the upper end of the box of B's PropTrans and TypeImp; finite.
    radius: p, the radius of the ball of T's RelImp; above 1/4, finite.
    slack: how far a number of the antecedent may exceed the consequent's in
      a one-way rule; 0 holds rules exactly. Entities then lie in the box
      [0, m] where rules are ordered, so that `violation_bound` holds.
    region: where B's PropTrans and TypeImp keep entities: "box", [0, m]^d, or
      "ball", nonnegative and no farther from (m/2, ..., m/2) than 0 is.
  """

  mixing: float = 0.5
  cap: float = 1.0
  radius: float = 1.0
  slack: float = 0.0
  region: str = "box"

  def __post_init__(self):
    if not 0 < self.mixing < 1:
      raise errors.InputError(f"mixing {self.mixing} is not within (0, 1)")
    if not 0 < self.cap < math.inf:
      raise errors.InputError(f"cap {self.cap} is not positive and finite")
    if not 0.25 < self.radius < math.inf:
      raise errors.InputError(f"radius {self.radius} is not in (1/4, inf)")
    if not 0 <= self.slack < math.inf:
      raise errors.InputError(f"slack {self.slack} is not in [0, inf)")
    if self.region not in ("box", "ball"):
      raise errors.InputError(f"region {self.region!r} is not box or ball")

  @property
  def shrink(self) -> float:
    """The ratio of T's RelImp, (4p - 1) / (4p + 1)."""
    return (4 * self.radius - 1) / (4 * self.radius + 1)

  def violation_bound(self, numbers: int, products: bool) -> float:
    """Bound on the violation of a one-way rule by entities of the box.

    The scores of antecedent and consequent differ by a sum over ordered
    numbers i of (r_i - r'_i) p_i. The slack bounds r_i - r'_i. The product
    p_i is x_i y_i or x_i y_j, in [0, m^2]; in A and B it is x_i, in [0, m].

    Args:
      numbers: ordered numbers of a relation.
      products: whether they multiply products of two entities' numbers.

    Returns:
      slack * numbers * m^2, or m in place of m^2.
    """
    return self.slack * numbers * self.cap ** (2 if products else 1)

  @property
  def floor(self) -> float:
    """The least norm of the antecedent of T's RelImp, 2p + 1/2."""
    return 2 * self.radius + 0.5


class Conditions(NamedTuple):
  """Conditions of a rule or of a rule set.

  A node is (relation, part) and an entity an id. Relations that rules order in
  a cycle become equal.

  Attributes:
    ties: (node, node, ratio): the second is ratio times the first; a ratio
      of 0. pins the second to 0.
    order: (antecedent, consequent): a <= b. Entities become nonnegative.
    two_sided: (antecedent, consequent): a <= b <= -a. Entities as for `order`.
    scaled: (antecedent, consequent): equal, or b = `RuleConfig.shrink` * a
      where norm(a) >= `RuleConfig.floor` and entities lie in the ball of
      `RuleConfig.radius`.
    linear: (factors of nodes, factors of entities, bound); factors are
      (number, node or entity) pairs, and their sum is at most the bound.
    bilinear: up to two (factor, node, entity) terms: the sum of factor *
      <node, entity> is at most 0.
    box: whether entities must lie in [0, `RuleConfig.cap`].
    orthant: whether entities are nonnegative even without `order`.
    ball: whether entities must be nonnegative and in the ball around
      (m/2, ..., m/2), m the cap, through 0.
  """

  ties: Sequence[tuple[Node, Node, float]] = ()
  order: Sequence[tuple[Node, Node]] = ()
  two_sided: Sequence[tuple[Node, Node]] = ()
  scaled: Sequence[tuple[Node, Node]] = ()
  linear: Sequence[tuple[Sequence, Sequence, float]] = ()
  bilinear: Sequence[Sequence[tuple[float, Node, int]]] = ()
  box: bool = False
  orthant: bool = False
  ball: bool = False


def bound_product(
  a: tuple[list, list], b: tuple[list, list], cap: float, region: str = "box"
) -> list[tuple[Sequence, Sequence, float]]:
  """Linear conditions a >= 0, b >= 0, a + b >= cap; or a, b >= cap / 2.

  Args:
    a: factors of nodes and of entities.
    b: factors of nodes and of entities.
    region: "box" for the first, "ball" for the second.

  Returns:
    Rows as `Conditions.linear` has them.
  """

  def negative(factors):
    return [(-value, item) for value, item in factors]

  least = 0.0 if region == "box" else cap / 2
  pairs = [(a, least), (b, least)]
  if region == "box":
    pairs.append(((a[0] + b[0], a[1] + b[1]), cap))
  return [
    (negative(nodes), negative(entities), -least)
    for (nodes, entities), least in pairs
  ]
