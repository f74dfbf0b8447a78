"""Rule sets compiled into arrays that a projection can use.

`compile_rules` turns rules into `Constraints`. Rules that share relations
are treated as one system. Implications that form a cycle become ties: their
members share one value, the mean. The remaining inequalities have no cycles,
and `rule_projection` projects onto all of them jointly.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from repr_jax.data.rules import Rule
from repr_jax.errors import InputError
from repr_jax.kb import rule_set
from repr_jax.kb.condition_forms import RuleConfig
from repr_jax.kb.score_model import ScoreModel
from repr_jax.kb.score_models import get_model


class System(NamedTuple):
  """Rows sum(coef * free) + sum(other_coef * fixed) <= bound, elementwise.

  Attributes:
    index: places among the vectors being projected, [m, k].
    coef: 0. for padding, [m, k].
    other: places among the vectors held fixed, [m, l].
    other_coef: 0. for padding, [m, l].
    bound: [m].
  """

  index: jax.Array  # type: ignore[assignment]
  coef: jax.Array
  other: jax.Array
  other_coef: jax.Array
  bound: jax.Array


class Region(NamedTuple):
  """A box, a ball, or a part of a ball; infinite where not bounded.

  Attributes:
    lower: least value of an entity's coordinates, scalar.
    upper: largest value, scalar.
    radius: largest norm of an entity, scalar.
    center: c, scalar: entities lie in the ball around (c, ..., c) with 0 on its
      surface; None for no such ball.
  """

  lower: jax.Array
  upper: jax.Array
  radius: jax.Array
  center: jax.Array | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Constraints:
  """A rule set compiled for a model; a pytree, so an argument of a jit.

  Attributes:
    model: the score model, static.
    class_of: class of each node, [n].
    factor: node = factor * class value, [n].
    floor: least norm of each class value, [C]; None where there is none.
    order: rows that a last pass meets exactly, consequents first: the order
      rows and, without bilinear conditions, linear rows of relations alone.
    margin: how far that pass goes beyond them, in units of rounding, scalar.
    relation_rows: rows of the relation step, over classes; `other` are
      places in `named`.
    entity_rows: rows of the entity step, over `named`; `other` are classes.
    joint_rows: all of these over classes, then `named`; for the start.
    plane_class: classes of each bilinear condition, [h, 2].
    plane_named: entities of each, as places in `named`, [h, 2].
    plane_coef: factors, 0. for padding, [h, 2].
    named: entities that a rule names, [M].
    region: allowed region of all entities; None if unbounded.
  """

  model: ScoreModel = dataclasses.field(metadata={"static": True})
  class_of: jax.Array
  factor: jax.Array
  floor: jax.Array | None
  order: System
  margin: jax.Array
  relation_rows: System
  entity_rows: System
  joint_rows: System
  plane_class: jax.Array
  plane_named: jax.Array
  plane_coef: jax.Array
  named: jax.Array
  region: Region | None


def compile_rules(
  model: ScoreModel | str,
  rules: Sequence[Rule | str],
  relations: rule_set.Names,
  entities: rule_set.Names,
  config: RuleConfig | None = None,
  nonnegative: bool = False,
  dtype: Any = jnp.float32,
) -> Constraints:
  """Compiles rules for a model; unknown names or kinds are errors.

  >>> from repr_jax import kb
  >>> rules = ["RevImp(hypernym, hyponym)", kb.Rule("Symm", ["similar_to"])]
  >>> names = ["hypernym", "hyponym", "similar_to"]
  >>> kb.compile_rules("B", rules, names, entities=100).model
  ScoreModel('B')

  Args:
    model: a score model or its name.
    rules: `Rule` objects, or text as in rule files; arguments are names or,
      as integers, ids.
    relations: names of the relations in the order of their ids, or their
      number.
    entities: names of the entities in the order of their ids, or their
      number.
    config: numbers of some conditions; the defaults where None.
    nonnegative: keep entities nonnegative even where the rules do not need
      it (the thesis does, in all models but T).
    dtype: float type of the tables that will meet the rules.

  Returns:
    The constraints.
  """
  config = config or RuleConfig()
  indexed = rule_set.index_rules(rules, relations, entities)
  count = relations if isinstance(relations, int) else len(relations)
  build = _Builder(get_model(model), count, config)
  built = build.constraints(indexed, nonnegative)

  def cast(x):
    floating = np.issubdtype(x.dtype, np.floating)
    return jnp.asarray(x, dtype if floating else jnp.int32)

  return jax.tree.map(cast, built)


def conflict(
  rules: Sequence[Rule], possible: Callable[[list[int]], bool]
) -> str:
  """A minimal set of rules that conflict, by leaving out one rule at a time.

  Args:
    possible: whether the rules with these indices can hold together.
  """
  kept = list(range(len(rules)))
  for i in list(kept):
    fewer = [j for j in kept if j != i]
    if not possible(fewer):
      kept = fewer
  return "; ".join(str(rules[i]) for i in kept)


class _Builder:
  """Compiles conditions for one model."""

  def __init__(self, model: ScoreModel, relations: int, config: RuleConfig):
    self.model = model
    self.config = config
    self.parts = model.parts
    self.nodes = relations * self.parts

  def constraints(self, indexed, nonnegative) -> Constraints:
    """The arrays of a rule set.

    Ties, floors and linear conditions are always feasible: all relation
    parts at -m and all entities at m (0 in models without a box) meet every
    linear condition. `checked_start` tests the bilinear ones.
    """
    conditions, ties, edges, floors = self._reduce(indexed)
    named = _named(conditions)
    place = {entity: i for i, entity in enumerate(named)}
    two_sided = {
      (ties.root[self._node(a)], ties.root[self._node(b)])
      for a, b in conditions.two_sided
    }
    order: list = []
    slack = self.config.slack
    if slack and (conditions.two_sided or conditions.scaled):
      raise InputError(
        f"model {self.model.name} holds one-way rules without slack alone; the "
        "models with slack are A, B, R, distmult, complex and blocks"
      )
    for a, b in edges:
      order.append(([(1, a), (-1, b)], [], slack))
      if (a, b) in two_sided:
        order.append(([(1, a), (1, b)], [], 0.0))
    linear = [
      (ties.classes(self._flat(nodes)), _merge(entities, place), bound)
      for nodes, entities, bound in conditions.linear
    ]
    floor: Any = np.zeros(self.nodes, np.float64)
    for r in floors:
      least = self.config.floor / abs(ties.factor[r])
      floor[ties.root[r]] = max(floor[ties.root[r]], least)
    needs = conditions.orthant or bool(edges) or conditions.box
    kept = nonnegative and not self.model.signed
    lower = 0.0 if needs or kept else -np.inf
    boxed = conditions.box or bool(slack and edges)
    upper = self.config.cap if boxed else np.inf
    radius = self.config.radius if floors else np.inf
    region: Any = None
    if np.isfinite(lower) or np.isfinite(radius):
      limits: Any = [np.float64(x) for x in (lower, upper, radius)]
      if conditions.ball and not boxed:  # the box lies within the ball
        limits.append(np.float64(self.config.cap / 2))
      region = Region(*limits)
    planes = self._planes(conditions, ties, place)
    bounds: list = []
    if lower == 0:
      bounds += [([], [(-1, i)], 0.0) for i in range(len(named))]
    if boxed:
      bounds += [([], [(1, i)], upper) for i in range(len(named))]
    rows = [row for row in linear if row[0]]
    last = order
    if not conditions.bilinear:
      last = _consequents_first(order, rows)
    margin: Any = np.float64(0 if last is order else 8)
    turned = [(b, a, c) for a, b, c in linear + bounds if b]
    return Constraints(
      model=self.model,
      class_of=ties.root,
      factor=ties.factor,
      floor=floor if floors else None,
      order=_system(last),
      margin=margin,
      relation_rows=_system(order + rows),
      entity_rows=_system(turned),
      joint_rows=_system(order + self._joint(linear) + self._joint(bounds)),
      plane_class=planes[0],
      plane_named=planes[1],
      plane_coef=planes[2],
      named=_ids(named),
      region=region,
    )

  def _reduce(self, indexed):
    """Conditions; ties with cycles contracted; edges of classes; floors."""
    conditions = rule_set.collect(self.model, indexed, self.config)
    ties, floors = _Ties(self.nodes), []
    for first, second, ratio in conditions.ties:
      ties.join(self._node(first), self._node(second), ratio)
    edges = [
      (self._node(a), self._node(b))
      for a, b in (*conditions.order, *conditions.two_sided)
    ]
    ordered = sorted({node for edge in edges for node in edge})
    edges = ties.contract(edges)
    for node in ordered:
      if not np.isclose(ties.factor[node], 1):
        raise InputError(
          f"model {self.model.name}: rules order a part of relation "
          f"{node // self.parts} and tie it with a ratio other than 1; no "
          "projection here meets both"
        )
    if conditions.scaled:
      ties, floors = self._scaled(conditions, ties)
    return conditions, ties, edges, floors

  def _scaled(self, conditions, ties):
    """Scaled implications as ties with a floor, unless others imply them.

    Equal vectors also meet a scaled implication, without a floor. So connected
    rules that no ratios and floors satisfy become equalities. With linear
    conditions, which cannot be combined with a floor, all scaled rules do.
    """
    scaled = [(self._node(a), self._node(b)) for a, b in conditions.scaled]
    turned = [(s, r) for r, s in scaled]
    label = _circles(scaled, self.nodes)
    group = _circles(scaled + turned, self.nodes)
    apart = {
      (label[r], label[s]): (r, s) for r, s in scaled if label[r] != label[s]
    }
    one_way = [apart[edge] for edge in _reduction(list(apart))]
    equal = set(group) if conditions.linear else set()
    while True:
      tried, floors = ties.copy(), []
      for r, s in scaled:
        if label[r] == label[s] or group[r] in equal:
          tried.join(r, s, 1.0)
      for r, s in one_way:
        if group[r] not in equal and not tried.equal(r, s):
          tried.join(r, s, self.config.shrink)
          floors.append(r)
      pinned = {group[r] for r in floors if tried.factor[r] == 0}
      if not pinned:
        return tried, floors
      equal |= pinned

  def _joint(self, rows):
    return [
      (nodes + [(value, self.nodes + i) for value, i in others], [], bound)
      for nodes, others, bound in rows
    ]

  def _node(self, node):
    return node[0] * self.parts + node[1]

  def _flat(self, nodes):
    return [(value, self._node(node)) for value, node in nodes]

  def _planes(self, conditions, ties, place):
    shape = (len(conditions.bilinear), 2)
    classes, named = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    coef = np.zeros(shape, np.float64)
    for i, terms in enumerate(conditions.bilinear):
      for j, (value, node, entity) in enumerate(terms):
        flat = self._node(node)
        classes[i, j], named[i, j] = ties.root[flat], place[entity]
        coef[i, j] = value * ties.factor[flat]
    return classes, named, coef


class _Ties:
  """Nodes that are multiples of one another, by union-find with ratios."""

  def __init__(self, nodes: int):
    self.root = np.arange(nodes)
    self.factor = np.ones(nodes)

  def join(self, i: int, j: int, ratio: float) -> None:
    """Makes node j = ratio * node i; 0 where no other value fits."""
    a, b = self.root[i], self.root[j]
    if a == b:
      if not np.isclose(self.factor[j], ratio * self.factor[i]):
        self.factor[self.root == a] = 0.0
      return
    members = self.root == b
    zero = 0.0 in (self.factor[i], self.factor[j])
    if not zero:
      self.factor[members] *= ratio * self.factor[i] / self.factor[j]
    self.root[members] = a
    if zero:
      self.factor[self.root == a] = 0.0

  def equal(self, i: int, j: int) -> bool:
    """Whether the two nodes always have the same value."""
    if not (self.factor[i] or self.factor[j]):
      return True
    same = self.root[i] == self.root[j]
    return bool(same and np.isclose(self.factor[i], self.factor[j]))

  def copy(self) -> "_Ties":
    """The same ties, to be changed on their own."""
    other = _Ties(len(self.root))
    other.root, other.factor = self.root.copy(), self.factor.copy()
    return other

  def classes(self, terms):
    """Factors of nodes as factors of classes, each class once."""
    return _merge(
      [(value * self.factor[node], self.root[node]) for value, node in terms]
    )

  def contract(self, edges):
    """Ties cycles of a <= b; returns edges of classes, consequents first."""
    n = len(self.root)
    while True:
      flat = [(self.root[a], self.root[b]) for a, b in edges]
      label = _circles(flat, n)
      joined = [
        (a, b) for a, b in edges if label[self.root[a]] == label[self.root[b]]
      ]
      new = [(a, b) for a, b in joined if not self.equal(a, b)]
      for a, b in new:
        self.join(a, b, 1.0)
      if not new:
        break
    apart = {(int(a), int(b)) for a, b in flat if a != b}
    depth = _depths(apart)
    return sorted(apart, key=lambda edge: (depth[edge[0]], edge))


def _consequents_first(order, rows):
  """Order rows and those of relations alone, for `projections.lower_first`.

  `lower_first` lowers the first vector of a row, so its factor is positive.
  Rows in which that vector has a negative factor come later. If rows form a
  cycle, or lowering cannot meet one, only the order rows are returned.
  """
  alone = [row for row in rows if not row[1]]
  if not alone:
    return order
  turned: list = []
  for terms, _, bound in order + alone:
    terms = sorted(terms, key=lambda term: -term[0])
    if terms[0][0] <= 0:
      return order
    turned.append((terms, [], bound))
  edges = {
    (a, b)
    for terms, _, _ in turned
    for x, a in terms
    for y, b in terms
    if x > 0 > y
  }
  nodes = 1 + max((x for edge in edges for x in edge), default=0)
  label = _circles(sorted(edges), nodes)
  if len(set(label)) < nodes:
    return order
  depth = _depths(edges)
  return sorted(turned, key=lambda row: depth.get(row[0][0][1], 0))


def _circles(edges, nodes):
  """Labels of strongly connected components."""
  ends = np.array(edges, int).reshape(-1, 2).T
  graph = sparse.coo_matrix((np.ones(len(edges)), tuple(ends)), (nodes, nodes))
  return sparse.csgraph.connected_components(graph, connection="strong")[1]


def _depths(edges):
  """Length of the longest path from each node of an acyclic graph."""
  depth = {node: 0 for edge in edges for node in edge}
  for _ in range(len(depth)):
    changed = False
    for a, b in edges:
      if depth[a] < depth[b] + 1:
        depth[a], changed = depth[b] + 1, True
    if not changed:
      break
  return depth


def _reduction(edges):
  """Transitive reduction: edges that no longer path implies."""
  follow: dict[int, set[int]] = {}
  for a, b in edges:
    follow.setdefault(a, set()).add(b)

  def reach(node):
    reached, stack = set(), [node]
    while stack:
      for other in follow.get(stack.pop(), ()):
        if other not in reached:
          reached.add(other)
          stack.append(other)
    return reached

  return [
    (a, b)
    for a, b in edges
    if not any(b in reach(c) for c in follow[a] if c != b)
  ]


def _merge(terms, place=None):
  """Sums the terms of equal items; sums of zero are left out."""
  total: dict[int, float] = {}
  for value, item in terms:
    key = int(item) if place is None else place[item]
    total[key] = total.get(key, 0.0) + value
  return [(value, key) for key, value in total.items() if abs(value) > 1e-12]


def _ids(numbers) -> Any:
  return np.array(numbers, np.int32)


def _named(conditions):
  named = {e for _, entities, _ in conditions.linear for _, e in entities}
  named |= {e for terms in conditions.bilinear for _, _, e in terms}
  return sorted(named)


def _system(rows) -> System:
  """Pads rows of (terms, other terms, bound) to arrays."""

  def pad(lists):
    width = max([len(terms) for terms in lists], default=1) or 1
    index = np.zeros((len(lists), width), np.int32)
    coef = np.zeros((len(lists), width), np.float64)
    for i, terms in enumerate(lists):
      for j, (value, item) in enumerate(terms):
        index[i, j], coef[i, j] = item, value
    return index, coef

  index, coef = pad([row[0] for row in rows])
  other, other_coef = pad([row[1] for row in rows])
  bound: Any = np.array([row[2] for row in rows], np.float64)
  return System(index, coef, other, other_coef, bound)
