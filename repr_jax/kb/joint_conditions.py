"""Conditions of intersections and disjoint relations.

* Inter(r, s, t), r and s imply t: min of the antecedents is at most their
  mixture, so t >= lambda r + (1 - lambda) s suffices where a score is linear in
  its relation and entities are nonnegative (A, B, whose <e, f> cancels, R,
  blocks, distmult, and the real parts of complex, with equal imaginary parts).
  The distances of C, D and T are convex in the relation, so there
  t = lambda r + (1 - lambda) s suffices for entities of any sign.
* Disj(r, s), never both: score(r) + score(s) <= 0, so that at most one is
  positive. A, R, blocks, distmult and complex (real parts; opposite
  imaginary parts) need r + s <= 0 on nonnegative entities. B has 2 <x, y>
  more: with a = -(r1 + s1) and b = -(r2 + s2) the corners of the box ask for
  a, b >= 0 and a + b >= 2m. C, D and T score no fact above 0, so there the rule
  would be trivial.
* Transitivity is Path(r, r, r), and no model here holds it with a nontrivial
  relation. A: score u(x) + v(z) needs u(y) <= u(x) or v(y) <= v(z) for all x,
  y, z, so each y has the least u or the least v of all entities. T: with x - y
  = y - z = r both antecedents are 0, the largest score, so that the consequent
  must be 0 too: r - 2r = 0, and with r = 0 any x - y = y - z = v has the
  consequent -norm2(2v) below the antecedents -norm2(v): all entities are equal.
  Bilinear models: see Path; `kb.violating_triple` constructs the three vectors.
"""

from collections.abc import Callable, Sequence

from repr_jax.kb.condition_forms import Conditions, RuleConfig, bound_product

Make = Callable[[Sequence[int], RuleConfig], Conditions]


def mixture(parts: Sequence[int], equal: bool = False) -> Make:
  """Inter by t >= (or =) the mixture of r and s.

  Args:
    parts: parts of the relations that are mixed.
    equal: whether t equals it; entities then keep their signs.

  Returns:
    The model's function for the kind of rule.
  """

  def make(ids, config):
    r, s, t = ids
    mix = config.mixing
    linear: list = []
    for part in parts:
      terms = [(mix, (r, part)), (1 - mix, (s, part)), (-1, (t, part))]
      linear.append((terms, [], 0.0))
      if equal:
        turned = [(-value, node) for value, node in terms]
        linear.append((turned, [], 0.0))
    return Conditions(orthant=not equal, linear=linear)

  return make


def disjoint(parts: Sequence[int]) -> Make:
  """Disj by r + s <= 0.

  Args:
    parts: parts of the relations that must meet this.

  Returns:
    The model's function for the kind of rule.
  """

  def make(ids, config):
    r, s = ids
    linear: list = [([(1, (r, x)), (1, (s, x))], [], 0.0) for x in parts]
    return Conditions(orthant=True, linear=linear)

  return make


def disjoint_product(ids: Sequence[int], config: RuleConfig) -> Conditions:
  """Disj in B: a and b of the module's docstring.

  Args:
    ids: of r and s.
    config: gives the box.
  """
  r, s = ids
  a: tuple[list, list] = ([(-1, (r, 0)), (-1, (s, 0))], [])
  b: tuple[list, list] = ([(-1, (r, 1)), (-1, (s, 1))], [])
  return Conditions(
    orthant=True, box=True, linear=bound_product(a, b, 2 * config.cap)
  )


def with_ties(make: Make, parts: Sequence[int], ratio: float) -> Make:
  """Adds ties of the first relation with the others.

  Args:
    make: gives the other conditions.
    ratio: ratio of the others to the first.

  Returns:
    The model's function for the kind of rule.
  """

  def tied(ids, config):
    first, *others = ids
    ties = [((first, x), (other, x), ratio) for x in parts for other in others]
    return make(ids, config)._replace(ties=ties)

  return tied
