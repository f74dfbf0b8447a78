"""Conditions on vectors under which rules hold (thesis tables 5.4 to 5.6).

A rule is met when score(consequent) >= min(score(antecedents)) for every
entity of a region, not only for the entities that were trained. For each
built-in model and kind of rule this module has a function of the ids of the
rule's arguments that returns sufficient conditions. They have four forms
over *nodes*, which are halves r1, r2 of relations (A, B, C, D), a matrix and
its transpose (R), real and imaginary parts (complex), the four numbers of
2 x 2 matrices (blocks) or whole vectors (T, distmult):

  tie       node j = ratio * node i, or node = 0
  order     node a <= node b, or a <= b <= -a (two-sided, for C and D)
  linear    sum of factors * nodes and named entities <= bound, elementwise
  bilinear  sum of factors * <node, named entity> <= 0

Conditions that differ from the thesis' text, with the reason:

* RevImp for R compares with the transpose, R'^T >= R.
* RevImp for T is r' = -r: then both scores are equal.
* RelImp for T is the thesis' r' = (4p - 1) / (4p + 1) r with
  norm(r) >= 2p + 1/2, which is not convex; it is met by tying r' to r and a
  floor on the norm.
* Entail_B for T, which the thesis does not have, is r + e = r' + e', and
  Entail_A r - e = r' - e': then both scores are equal for every x.
* PropTrans and TypeImp for B need <x, y> <= <x, a> + <y, b> + c for all
  entities. The thesis takes a = b and entities in a ball that moves with a.
  With entities in the box [0, m]^d the condition is met if and only if
  a >= 0, b >= 0, a + b >= m (each coordinate is bilinear in x_i and y_i, so
  its corners decide) and c >= 0. That is convex in the relations and in the
  entities, and the box is fixed. With `RuleConfig.region` "ball" the thesis'
  form is taken with a fixed ball: entities are nonnegative and lie in B(c,
  norm(c)), c = m/2 in all coordinates, that is norm2(x) <= 2 <c, x>. Then <x,
  y> <= (norm2(x) + norm2(y)) / 2 <= <c, x> + <c, y>, and a >= c, b >= c, which
  need not be equal, suffice as x, y >= 0. The box lies within this region. So
  if other rules need the box, the box serves both.
* RelImp(r, r') for distmult and complex: the scores differ by
  sum_i (r'_i - r_i) x_i y_i (complex: with conj y_i, real part). A number i
  whose signs are free must have r'_i = r_i. Where x_i and y_i are
  nonnegative (complex: real and imaginary part), r'_i >= r_i (complex: real
  parts, and equal imaginary ones) suffices, as Re x_i conj(y_i) =
  Re x_i Re y_i + Im x_i Im y_i >= 0. `order_block` chooses the numbers that
  carry the order; the others keep their signs. All relations that one-way
  rules connect have the same imaginary parts, so that one asymmetry has to
  serve them all.
* RelImp(r, r') for blocks: the matrices of r' are at least those of r in all
  four numbers. complex is blocks with matrices (a, b; -b, a), where b' >= b and
  -b' >= -b leave equality alone. Without that tie each relation keeps an
  asymmetry of its own.
* Path(r, s, t), which the thesis does not have: min of the antecedents is at
  most their mixture, so with a = t1 - lambda r1, b = -(lambda r2 +
  (1 - lambda) s1) and c = t2 - (1 - lambda) s2 model A needs a, b, c >= 0.
  In B also lambda <x, y> + (1 - lambda) <y, z> - <x, z> <= <a, x> + <b, y> +
  <c, z>: on the box the corners of each coordinate decide, and they ask for
  a, b, c >= 0, a + b >= lambda m, b + c >= (1 - lambda) m. Transitivity,
  Path(r, r, r), makes A's r1 and r2 zero: then all scores of r are 0. Models
  whose score is bilinear in y (R, blocks, distmult, complex) cannot hold a path
  without bounds on y: doubling y doubles both antecedents and leaves the
  consequent, so no y may make both positive.
* Inter, Disj and transitivity: see `joint_conditions`.
* Rules that imply one another need equality only, which holds for entities
  of any sign; the sign conditions are for one-way rules.
"""

import functools

from repr_jax.kb import joint_conditions
from repr_jax.kb.condition_forms import Conditions, bound_product


def _order(*parts):
  """Part i of r is at most part parts[i] of r'."""

  def make(ids, config):
    r, s = ids
    return Conditions(order=[((r, i), (s, j)) for i, j in enumerate(parts)])

  return make


_rel_imp, _rev_imp = _order(0, 1), _order(1, 0)


def _two_sided(make):
  """The conditions of another function with two-sided orders."""

  @functools.wraps(make)
  def turned(ids, config):
    conditions = make(ids, config)
    return conditions._replace(order=(), two_sided=conditions.order)

  return turned


def _symm_halves(ids, config):
  (r,) = ids
  return Conditions(ties=[((r, 0), (r, 1), 1.0)])


def _complex_order(ratio):
  """RevImp(r, r') is RelImp(r, conj r'); imaginary parts are tied."""

  def make(ids, config):
    r, s = ids
    return Conditions(order=[((r, 0), (s, 0))], ties=[((r, 1), (s, 1), ratio)])

  return make


def _block_order(*parts):
  """Nodes in two groups: equal where signs are free, `_order` elsewhere."""
  last = len(parts)

  def make(ids, config):
    r, s = ids
    turned = list(enumerate(parts))
    return Conditions(
      order=[((r, last + i), (s, last + j)) for i, j in turned],
      ties=[((r, i), (s, j), 1.0) for i, j in turned],
    )

  return make


def _complex_block(ratio):
  """complex in four parts: free real and imaginary, then ordered ones."""

  def make(ids, config):
    r, s = ids
    ties = [(0, 1.0), (1, ratio), (3, ratio)]
    return Conditions(
      order=[((r, 2), (s, 2))],
      ties=[((r, part), (s, part), factor) for part, factor in ties],
    )

  return make


def _pinned(*parts):
  """Conditions that these parts of a relation are 0."""

  def make(ids, config):
    (r,) = ids
    return Conditions(ties=[((r, part), (r, part), 0.0) for part in parts])

  return make


def _entail_linear(near):
  """A: Entail_B, r(x,e) => s(x,f), with near = 0; Entail_A with near = 1."""

  def make(ids, config):
    r, e, s, f = ids
    far = 1 - near
    return Conditions(
      orthant=True,
      order=[((r, near), (s, near))],
      bilinear=[[(1, (r, far), e), (-1, (s, far), f)]],
    )

  return make


def _entail_product(near):
  """B: the entities are added to their relations."""

  def make(ids, config):
    r, e, s, f = ids
    far = 1 - near
    nodes = [(1, (r, near)), (-1, (s, near))]
    return Conditions(
      orthant=True,
      linear=[(nodes, [(1, e), (-1, f)], 0.0)],
      bilinear=[[(1, (r, far), e), (-1, (s, far), f)]],
    )

  return make


def _entail_distance(near, joined):
  """C, or with `joined` D, which adds -norm2(e - f)."""

  def make(ids, config):
    r, e, s, f = ids
    far = 1 - near
    linear = [
      ([(1, (r, far)), (-1, (s, far))], [(-1, e), (1, f)], 0.0),
      ([(1, (r, far)), (1, (s, far))], [(-1, e), (-1, f)], 0.0),
    ]
    if joined:
      nodes = [(1, (r, near)), (-1, (s, near))]
      linear.insert(0, (nodes, [(1, e), (-1, f)], 0.0))
      linear.append(([], [(-1, e), (1, f)], 0.0))
    return Conditions(
      orthant=True, two_sided=[((r, near), (s, near))], linear=linear
    )

  return make


def _entail_translation(near):
  """T: r + e = r' + e' for Entail_B, r - e = r' - e' for Entail_A."""

  def make(ids, config):
    r, e, s, f = ids
    linear: list = []
    for sign in (1, -1):
      turned = -sign if near else sign
      nodes = [(sign, (r, 0)), (-sign, (s, 0))]
      linear.append((nodes, [(turned, e), (-turned, f)], 0.0))
    return Conditions(linear=linear)

  return make


def _prop_trans(ids, config):
  """A: r(x,y) and s(y,e) => t(x,f)."""
  first, second, conditions = _prop_trans_parts(ids, config)
  linear: list = [
    ([(-value, node) for value, node in nodes], [], 0.0)
    for nodes in (first, second)
  ]
  return conditions._replace(linear=linear)


def _prop_trans_product(ids, config):
  """B: a and b of the module's docstring times lambda."""
  _, _, e, _, f = ids
  mix = config.mixing
  first, second, conditions = _prop_trans_parts(ids, config)
  a, b = (first, [(1, f)]), (second, [(mix - 1, e)])
  rows = bound_product(a, b, mix * config.cap, config.region)
  return conditions._replace(linear=rows, **_limits(config))


def _limits(config):
  """The flag of the region that rules of B need."""
  return {config.region: True}


def _prop_trans_parts(ids, config):
  r, s, e, t, f = ids
  mix = config.mixing
  first = [(1, (t, 0)), (-mix, (r, 0))]
  second = [(-mix, (r, 1)), (mix - 1, (s, 0))]
  bilinear = [[(1 - mix, (s, 1), e), (-1, (t, 1), f)]]
  return first, second, Conditions(orthant=True, bilinear=bilinear)


def _path(ids, config):
  """A: r(x,y) and s(y,z) => t(x,z); a, b and c of the docstring."""
  a, b, c = _path_parts(ids, config)
  linear: list = [
    ([(-value, node) for value, node in nodes], [], 0.0) for nodes in (a, b, c)
  ]
  return Conditions(orthant=True, linear=linear)


def _path_product(ids, config):
  a, b, c = _path_parts(ids, config)
  mix, cap = config.mixing, config.cap
  bounds = [(a, 0.0), (b, 0.0), (c, 0.0)]
  bounds += [(a + b, mix * cap), (b + c, (1 - mix) * cap)]
  linear: list = [
    ([(-value, node) for value, node in nodes], [], -least)
    for nodes, least in bounds
  ]
  return Conditions(orthant=True, box=True, linear=linear)


def _path_parts(ids, config):
  r, s, t = ids
  mix = config.mixing
  a = [(1, (t, 0)), (-mix, (r, 0))]
  b = [(-mix, (r, 1)), (mix - 1, (s, 0))]
  c = [(1, (t, 1)), (mix - 1, (s, 1))]
  return a, b, c


def _type_imp(ids, config):
  """A: r(x,y) => s(x,e)."""
  r, e, s = ids
  return Conditions(
    orthant=True,
    order=[((r, 0), (s, 0))],
    linear=[([(1, (r, 1))], [], 0.0)],
    bilinear=[[(-1, (s, 1), e)]],
  )


def _type_imp_product(ids, config):
  r, e, s = ids
  a = ([(1, (s, 0)), (-1, (r, 0))], [(1, e)])
  return Conditions(
    orthant=True,
    linear=bound_product(a, ([(-1, (r, 1))], []), config.cap, config.region),
    bilinear=[[(-1, (s, 1), e)]],
    **_limits(config),
  )


_LINEAR = {"RelImp": _rel_imp, "RevImp": _rev_imp, "Symm": _symm_halves}
_JOINT = {
  "Inter": joint_conditions.mixture((0, 1)),
  "Disj": joint_conditions.disjoint((0, 1)),
}
MODEL_R = {**_LINEAR, **_JOINT}
MODEL_A = {
  **_LINEAR,
  "Entail_A": _entail_linear(1),
  "Entail_B": _entail_linear(0),
  "PropTrans": _prop_trans,
  "TypeImp": _type_imp,
  "Path": _path,
  **_JOINT,
}
MODEL_B = {
  **_LINEAR,
  "Entail_A": _entail_product(1),
  "Entail_B": _entail_product(0),
  "PropTrans": _prop_trans_product,
  "TypeImp": _type_imp_product,
  "Path": _path_product,
  "Inter": _JOINT["Inter"],
  "Disj": joint_conditions.disjoint_product,
}
_DISTANCES = {
  "RelImp": _two_sided(_rel_imp),
  "RevImp": _two_sided(_rev_imp),
  "Symm": _symm_halves,
  "Inter": joint_conditions.mixture((0, 1), equal=True),
}
MODEL_C = {
  **_DISTANCES,
  "Entail_A": _entail_distance(1, joined=False),
  "Entail_B": _entail_distance(0, joined=False),
}
MODEL_D = {
  **_DISTANCES,
  "Entail_A": _entail_distance(1, joined=True),
  "Entail_B": _entail_distance(0, joined=True),
}
MODEL_T = {
  "RelImp": lambda ids, _: Conditions(scaled=[((ids[0], 0), (ids[1], 0))]),
  "RevImp": lambda ids, _: Conditions(ties=[((ids[0], 0), (ids[1], 0), -1.0)]),
  "Symm": _pinned(0),
  "Entail_A": _entail_translation(1),
  "Entail_B": _entail_translation(0),
  "Inter": joint_conditions.mixture((0,), equal=True),
}
MODEL_DISTMULT = {
  "RelImp": _order(0),
  "RevImp": _order(0),  # every relation is symmetric
  "Symm": lambda ids, _: Conditions(),  # holds for any vectors
  "Inter": joint_conditions.mixture((0,)),
  "Disj": joint_conditions.disjoint((0,)),
}
MODEL_COMPLEX = {
  "RelImp": _complex_order(1.0),
  "RevImp": _complex_order(-1.0),
  "Symm": _pinned(1),
  "Inter": joint_conditions.with_ties(
    joint_conditions.mixture((0,)), (1,), 1.0
  ),
  "Disj": joint_conditions.with_ties(
    joint_conditions.disjoint((0,)), (1,), -1.0
  ),
}
MODEL_BLOCKS = {
  "RelImp": _order(0, 1, 2, 3),
  "RevImp": _order(0, 2, 1, 3),
  "Symm": lambda ids, _: Conditions(ties=[((ids[0], 1), (ids[0], 2), 1.0)]),
  "Inter": joint_conditions.mixture((0, 1, 2, 3)),
  "Disj": joint_conditions.disjoint((0, 1, 2, 3)),
}
BLOCK_DISTMULT = {
  "RelImp": _block_order(0),
  "RevImp": _block_order(0),
  "Symm": lambda ids, _: Conditions(),
  "Inter": joint_conditions.with_ties(
    joint_conditions.mixture((1,)), (0,), 1.0
  ),
  "Disj": joint_conditions.with_ties(
    joint_conditions.disjoint((1,)), (0,), -1.0
  ),
}
BLOCK_BLOCKS = {
  "RelImp": _block_order(0, 1, 2, 3),
  "RevImp": _block_order(0, 2, 1, 3),
  "Symm": lambda ids, _: Conditions(
    ties=[((ids[0], part), (ids[0], part + 1), 1.0) for part in (1, 5)]
  ),
  "Inter": joint_conditions.with_ties(
    joint_conditions.mixture((4, 5, 6, 7)), (0, 1, 2, 3), 1.0
  ),
  "Disj": joint_conditions.with_ties(
    joint_conditions.disjoint((4, 5, 6, 7)), (0, 1, 2, 3), -1.0
  ),
}
BLOCK_COMPLEX = {
  "RelImp": _complex_block(1.0),
  "RevImp": _complex_block(-1.0),
  "Symm": _pinned(1, 3),
  "Inter": joint_conditions.with_ties(
    joint_conditions.mixture((2,)), (0, 1, 3), 1.0
  ),
  "Disj": joint_conditions.with_ties(
    joint_conditions.disjoint((2,)), (0, 1, 3), -1.0
  ),
}
# A vector that is shorter in L2 may be longer in L1, so RelImp is equality.
MODEL_T_L1 = {
  **MODEL_T,
  "RelImp": lambda ids, _: Conditions(ties=[((ids[0], 0), (ids[1], 0), 1.0)]),
}
