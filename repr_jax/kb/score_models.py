"""The score models of thesis table 5.3, and two more.

A fact is (relation r, (head e, tail f)). With r = (r1; r2) for A, B, C and D,
and norm2 the squared norm:

  A         <r1, e> + <r2, f>
  R         e' R f                                (RESCAL)
  B         <r1, e> + <r2, f> + <e, f>
  C         -norm2(r1 - e) - norm2(r2 - f)
  T         -norm2(r - (e - f))                   (TransE, squared)
  D         -norm2(r1 - e) - norm2(r2 - f) - norm2(e - f)
  distmult  sum_i r_i e_i f_i
  complex   Re sum_i r_i e_i conj(f_i)            (d = 2k: k real, k imaginary)

Each is one object; `rule_conditions` has what rules ask of them.
"""

from collections.abc import Callable, Mapping

import chex
import jax
import jax.numpy as jnp

from repr_jax.errors import InputError
from repr_jax.kb import rule_conditions
from repr_jax.kb.score_model import Query, ScoreModel


def get_model(model: ScoreModel | str) -> ScoreModel:
  """The model itself, or the built-in one of a name.

  Args:
    model: a `ScoreModel` or a key of `MODELS`.

  Returns:
    The model.

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
  lambda near, far, known: Query(far, near @ known),
  0.0,
  rule_conditions.MODEL_A,
)
B = _halves(
  "B",
  lambda near, far, known: Query(far + known, near @ known),
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


def bilinear_queries(
  relations: jax.Array, chosen: jax.Array, heads: jax.Array, tails: jax.Array
) -> tuple[Query, Query]:
  """Queries of model R for both sides, by products with all matrices at once.

  A matrix for each fact of a batch would be B d^2 numbers; this holds B R d,
  in products that run at full speed, and so do their gradients.

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
  lambda relation, head: Query(
    head @ _square_matrix(relation, head), _zero(head)
  ),
  lambda relation, tail: Query(
    _square_matrix(relation, tail) @ tail, _zero(tail)
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


def _diagonal(relation, known):
  return Query(relation * known, _zero(known))


DISTMULT = ScoreModel(
  "distmult",
  _diagonal,
  _diagonal,
  conditions=rule_conditions.MODEL_DISTMULT,
)


def _even(dim: int) -> int:
  if dim % 2:
    raise InputError(
      f"model complex takes an even dim, half of it for the imaginary parts, "
      f"not {dim}"
    )
  return dim


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

MODELS: Mapping[str, ScoreModel] = {
  model.name: model for model in (A, R, B, C, T, D, DISTMULT, COMPLEX)
}
