"""The score models of thesis table 5.3, and five more.

A fact is (relation r, (head e, tail f)). With r = (r1; r2) for A, B, C and D,
and norm2 the squared norm:

  A         <r1, e> + <r2, f>
  R         e' R f                                (RESCAL)
  B         <r1, e> + <r2, f> + <e, f>
  C         -norm2(r1 - e) - norm2(r2 - f)
  T         -norm2(r - (e - f))                   (TransE, squared)
  T_L1      -|r - (e - f)|_1                      (TransE)
  T_L2      -|r - (e - f)|_2                      (TransE)
  D         -norm2(r1 - e) - norm2(r2 - f) - norm2(e - f)
  distmult  sum_i r_i e_i f_i
  complex   Re sum_i r_i e_i conj(f_i)            (d = 2k: k real, k imaginary)
  blocks    sum_i (e_i, e_k+i) R_i (f_i, f_k+i)'  (d = 2k, R_i of 2 x 2)

complex is blocks with R_i = (a, b; -b, a), and blocks is R with a matrix of
2 x 2 blocks.

Each is one object; `rule_conditions` has their conditions of rules.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping

import chex
import jax
import jax.numpy as jnp
import numpy as np

from repr_jax.errors import InputError
from repr_jax.kb import rule_conditions
from repr_jax.kb.score_model import Query, ScoreModel
from repr_jax.ops.precision import chosen_products


def get_model(model: ScoreModel | str) -> ScoreModel:
  """The model itself, or the built-in one of a name.

  Args:
    model: a `ScoreModel` or a key of `MODELS`.

  Raises:
    InputError: no model has this name; the message lists them.
  """
  if isinstance(model, ScoreModel):
    return model
  if not isinstance(model, str) or model not in MODELS:
    raise InputError(
      f"unknown score model {model!r}; there are {', '.join(MODELS)}, or give "
      "a kb.ScoreModel"
    )
  return MODELS[model]


def _norm2(x):
  return jnp.sum(x * x)


def _zero(like):
  return jnp.zeros((), like.dtype)


def _double(dim: int) -> int:
  return 2 * dim


def _halves(
  name: str, slot: Callable[..., Query], weight: float, conditions: Mapping
) -> ScoreModel:
  """A model with r = (r1; r2) and one query of both sides.

  `slot(near, far, known)`: `near` meets the known entity, `far` the open slot.
  """

  def tail_query(relation, head):
    first, second = jnp.split(relation, 2)
    return slot(first, second, head)

  def head_query(relation, tail):
    first, second = jnp.split(relation, 2)
    return slot(second, first, tail)

  def distance(relation, head, tail):
    first, second = jnp.split(relation, 2)
    apart = _norm2(head - tail) if weight == 2 else 0.0
    return -_norm2(first - head) - _norm2(second - tail) - apart

  return ScoreModel(
    name,
    tail_query,
    head_query,
    norm_weight=weight,
    relation_size=_double,
    exact_score=distance if weight else None,
    parts=2,
    conditions=conditions,
  )


A = _halves(
  "A",
  chosen_products(lambda near, far, known: Query(far, near @ known)),
  0.0,
  rule_conditions.MODEL_A,
)
B = _halves(
  "B",
  chosen_products(lambda near, far, known: Query(far + known, near @ known)),
  0.0,
  rule_conditions.MODEL_B,
)
C = _halves(
  "C",
  lambda near, far, known: Query(2 * far, -_norm2(near - known) - _norm2(far)),
  1.0,
  rule_conditions.MODEL_C,
)
D = _halves(
  "D",
  lambda near, far, known: Query(
    2 * (far + known), -_norm2(near - known) - _norm2(far) - _norm2(known)
  ),
  2.0,
  rule_conditions.MODEL_D,
)


def _square_matrix(relation, entity):
  return relation.reshape(entity.size, entity.size)


def _both_ways(relations):
  dim = round(relations.shape[1] ** 0.5)
  matrices = relations.reshape(-1, dim, dim)
  both = jnp.stack([matrices, matrices.swapaxes(1, 2)], axis=1)
  return both.reshape(2 * relations.shape[0], -1)


@chosen_products
def bilinear_queries(
  relations: jax.Array, chosen: jax.Array, heads: jax.Array, tails: jax.Array
) -> tuple[Query, Query]:
  """Queries of model R for both sides, by products with all matrices at once.

  A matrix for each fact of a batch would take B d^2 numbers. This takes B R d,
  in dense products, as are their gradients.

  Args:
    relations: all of them, [R, d * d].
    chosen: which relation each fact has, one-hot [B, R].
    heads: [B, d].
    tails: [B, d].

  Returns:
    Queries for heads and for tails, vectors [B, d], constants [B].
  """
  chex.assert_rank([relations, chosen, heads, tails], 2)
  size = heads.shape[1]
  matrices = relations.reshape(-1, size, size)
  zero = jnp.zeros(heads.shape[:1], heads.dtype)

  def ask(each):  # [B, R, d] -> [B, d]
    return Query(jnp.einsum("br,brd->bd", chosen, each), zero)

  return (
    ask(jnp.einsum("bj,rij->bri", tails, matrices)),
    ask(jnp.einsum("bi,rij->brj", heads, matrices)),
  )


R = ScoreModel(
  "R",
  chosen_products(
    lambda relation, head: Query(
      head @ _square_matrix(relation, head), _zero(head)
    )
  ),
  chosen_products(
    lambda relation, tail: Query(
      _square_matrix(relation, tail) @ tail, _zero(tail)
    )
  ),
  relation_size=lambda dim: dim * dim,
  batch_queries=bilinear_queries,
  parts=2,
  to_nodes=_both_ways,
  # The transposes move as the matrices do: the conditions are the same when
  # all matrices are transposed, so the projection is too.
  from_nodes=lambda nodes: nodes[::2],
  conditions=rule_conditions.MODEL_R,
)

T = ScoreModel(
  "T",
  lambda relation, head: Query(2 * (head - relation), -_norm2(head - relation)),
  lambda relation, tail: Query(2 * (tail + relation), -_norm2(tail + relation)),
  norm_weight=1.0,
  exact_score=lambda relation, head, tail: -_norm2(relation - (head - tail)),
  signed=True,
  conditions=rule_conditions.MODEL_T,
)


def _translation(name, distance, length, conditions) -> ScoreModel:
  """TransE with a distance that is not squared."""
  return ScoreModel(
    name,
    lambda relation, head: Query(head - relation, _zero(head)),
    lambda relation, tail: Query(tail + relation, _zero(tail)),
    distance=distance,
    exact_score=lambda relation, head, tail: -length(relation - head + tail),
    signed=True,
    conditions=conditions,
  )


def _norm(x):
  # The floor keeps the root's slope finite at 0.
  return jnp.sqrt(jnp.maximum(_norm2(x), 1e-12))


T_L1 = _translation(
  "T_L1", "l1", lambda x: jnp.abs(x).sum(), rule_conditions.MODEL_T_L1
)
# The order of lengths is that of their squares, so T's conditions serve.
T_L2 = _translation("T_L2", "l2", _norm, rule_conditions.MODEL_T)


def _diagonal(relation, known):
  return Query(relation * known, _zero(known))


DISTMULT = ScoreModel(
  "distmult", _diagonal, _diagonal, conditions=rule_conditions.MODEL_DISTMULT
)


def _even(dim: int) -> int:
  if dim % 2:
    raise InputError(
      f"model complex takes an even dim, half of it for the imaginary parts, "
      f"not {dim}"
    )
  return dim


def _pairs(dim: int) -> int:
  if dim % 2:
    raise InputError(f"model blocks takes an even dim, not {dim}")
  return 2 * dim


def _times(x, y):
  a, b = jnp.split(x, 2)
  c, d = jnp.split(y, 2)
  return jnp.concatenate([a * c - b * d, a * d + b * c])


def _conjugate(x):
  real, imaginary = jnp.split(x, 2)
  return jnp.concatenate([real, -imaginary])


def _moduli(rows):
  real, imaginary = jnp.split(rows * rows, 2, axis=-1)
  return real + imaginary


COMPLEX = ScoreModel(
  "complex",
  lambda relation, head: Query(_times(relation, head), _zero(head)),
  lambda relation, tail: Query(_times(_conjugate(relation), tail), _zero(tail)),
  relation_size=_even,
  moduli=_moduli,
  parts=2,
  conditions=rule_conditions.MODEL_COMPLEX,
)


def _meet(matrices, known):
  """(p, q) (a, b; c, d) of each pair of numbers."""
  a, b, c, d = matrices
  p, q = jnp.split(known, 2)
  return Query(jnp.concatenate([a * p + c * q, b * p + d * q]), _zero(known))


def _meet_turned(relation, tail):
  a, b, c, d = jnp.split(relation, 4)
  return _meet((a, c, b, d), tail)


BLOCKS = ScoreModel(
  "blocks",
  lambda relation, head: _meet(jnp.split(relation, 4), head),
  _meet_turned,
  relation_size=_pairs,
  moduli=_moduli,
  parts=4,
  conditions=rule_conditions.MODEL_BLOCKS,
)


@functools.cache
def order_block(model: ScoreModel | str, share: float) -> ScoreModel:
  """A model in which a share of the numbers carries the order of relations.

  One-way rules need nonnegative entities only there: relations r => r' are
  ordered on these numbers and equal on the others, whose entities keep their
  signs (derivation in `rule_conditions`). Without one-way rules nothing
  changes.

  >>> from repr_jax import kb
  >>> half = kb.order_block("complex", 0.5)
  >>> kb.order_block("complex", 1.0) is kb.COMPLEX
  True

  Args:
    model: "distmult", "complex" or "blocks".
    share: of the numbers, in (0, 1]; 1 for all of them.

  Returns:
    The model; the same object for the same arguments.
  """
  model = get_model(model)
  blocks = {
    DISTMULT: rule_conditions.BLOCK_DISTMULT,
    COMPLEX: rule_conditions.BLOCK_COMPLEX,
    BLOCKS: rule_conditions.BLOCK_BLOCKS,
  }
  if model not in blocks:
    raise InputError(
      f"model {model.name} has no block of ordered numbers; distmult, complex "
      "and blocks have"
    )
  if not 0 < share <= 1:
    raise InputError(f"the share of ordered numbers is {share}, not in (0, 1]")
  if share == 1:
    return model
  cuts, halves = model.parts, min(model.parts, 2)

  def mask(size):
    return np.arange(size) >= size - max(1, round(share * size))

  def to_nodes(relations):
    parts = relations.reshape(relations.shape[0], cuts, -1)
    last = mask(parts.shape[-1])
    both = [jnp.where(last, 0, parts), jnp.where(last, parts, 0)]
    nodes = jnp.concatenate(both, axis=1)
    return nodes.reshape(-1, parts.shape[-1])

  def from_nodes(nodes):
    both = nodes.reshape(-1, 2, cuts, nodes.shape[-1])
    return both.sum(axis=1).reshape(both.shape[0], -1)

  return dataclasses.replace(
    model,
    parts=2 * cuts,
    to_nodes=to_nodes,
    from_nodes=from_nodes,
    ordered=lambda dim: np.tile(mask(dim // halves), halves),
    conditions=blocks[model],
  )


# Kinds of rules that keep their form if heads and tails swap in all facts.
_TURNABLE = ("RelImp", "RevImp", "Symm", "Inter", "Disj")


@functools.cache
def reciprocal(model: ScoreModel | str) -> ScoreModel:
  """A model with two rows for each relation: one for tails, one for heads.

  (r, (e, ?)) is asked with the first row and (r, (?, f)) with the second,
  which is that of the inverse relation (Lacroix et al. 2018). The score of a
  fact is the mean of both. A rule holds if it holds for both rows, so each
  condition applies to both.

  >>> from repr_jax import kb
  >>> model = kb.reciprocal("complex")
  >>> model.relation_size(6)
  12

  Args:
    model: a score model or its name.

  Returns:
    The model; the same object for the same argument.
  """
  base = get_model(model)
  if base.base is not None:
    raise InputError(f"model {base.name} is reciprocal already")

  def score(relation, head, tail):
    first, second = jnp.split(relation, 2)
    there = base.score(first, head, tail)
    return (there + base.score(second, tail, head)) / 2

  def twice(make):
    def both(ids, config):
      once = make(ids, config)
      if once.bilinear or any(entities for _, entities, _ in once.linear):
        raise InputError(f"model {base.name} cannot hold this rule both ways")
      return once._replace(
        ties=[
          (_turn(a, k), _turn(b, k), x) for k in (0, 1) for a, b, x in once.ties
        ],
        linear=[
          ([(value, _turn(node, k)) for value, node in nodes], [], bound)
          for k in (0, 1)
          for nodes, _, bound in once.linear
        ],
        **{
          name: [
            (_turn(a, k), _turn(b, k))
            for k in (0, 1)
            for a, b in getattr(once, name)
          ]
          for name in ("order", "two_sided", "scaled")
        },
      )

    return both

  def _turn(node, direction):
    return node[0], node[1] + direction * base.parts

  return ScoreModel(
    f"{base.name} reciprocal",
    lambda relation, head: base.tail_query(jnp.split(relation, 2)[0], head),
    lambda relation, tail: base.tail_query(jnp.split(relation, 2)[1], tail),
    norm_weight=base.norm_weight,
    distance=base.distance,
    relation_size=lambda dim: 2 * base.relation_size(dim),
    exact_score=score,
    moduli=base.moduli,
    parts=2 * base.parts,
    to_nodes=lambda x: base.nodes(x.reshape(2 * x.shape[0], -1)),
    from_nodes=lambda x: _join_rows(base.relations(x)),
    signed=base.signed,
    ordered=base.ordered,
    base=base,
    conditions={
      name: twice(base.conditions[name])
      for name in _TURNABLE
      if name in base.conditions
    },
  )


def _join_rows(rows):
  return rows.reshape(rows.shape[0] // 2, -1)


MODELS: Mapping[str, ScoreModel] = {
  model.name: model
  for model in (A, R, B, C, T, T_L1, T_L2, D, DISTMULT, COMPLEX, BLOCKS)
}
