"""One answer from two systems: a logistic choice for each query.

The thesis (5.4.6) trains a logistic classifier that says which of two
systems ranks a query better and gives that system's ranking. Features are the
relation of the query and how sure each system is of its first answer. Each side
(head or tail) has its own classifier, fitted on validation queries.
"""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np

from repr_jax.errors import InputError
from repr_jax.kb import scores
from repr_jax.kb.link_prediction import Ranks
from repr_jax.kb.score_model import ScoreModel
from repr_jax.kb.score_models import get_model
from repr_jax.ops.precision import exact_products


@exact_products
def fit_logistic(
  features: jax.Array | np.ndarray,
  labels: jax.Array | np.ndarray,
  weights: jax.Array | np.ndarray,
  ridge: float = 1.0,
  steps: int = 25,
) -> jax.Array:
  """Logistic regression with a ridge, by Newton's method.

  Minimizes sum_i weights_i log(1 + exp(-(2 labels_i - 1) <w, x_i>)) +
  ridge / 2 norm2(w).

  >>> import jax.numpy as jnp
  >>> from repr_jax import kb
  >>> x, y = jnp.array([[1.0], [-1.0]]), jnp.array([1.0, 0.0])
  >>> print(kb.fit_logistic(x, y, jnp.ones(2))[0] > 0)
  True

  Args:
    features: x, [n, f]; w is NaN if one is not finite.
    labels: 0 or 1, [n].
    weights: of the examples, [n].
    ridge: positive.
    steps: Newton steps.

  Returns:
    w, [f].
  """
  chex.assert_rank([features, labels, weights], [2, 1, 1])
  features = jnp.asarray(features)
  eye = ridge * jnp.eye(features.shape[1], dtype=features.dtype)

  def step(w, _):
    chance = jax.nn.sigmoid(features @ w)
    slope = features.T @ (weights * (chance - labels)) + ridge * w
    spread = weights * chance * (1 - chance)
    curve = features.T @ (spread[:, None] * features) + eye
    return w - jnp.linalg.solve(curve, slope), None

  start = jnp.zeros(features.shape[1], features.dtype)
  return jax.lax.scan(step, start, None, length=steps)[0]


def sureness(
  model: ScoreModel | str,
  params: scores.Params,
  facts: np.ndarray,
  side: str,
  block: int = 128,
) -> np.ndarray:
  """How far a system's first two answers to each query stand out.

  >>> import jax, numpy as np
  >>> from repr_jax import kb
  >>> params = kb.init_params("T", jax.random.key(0), 5, 2, 4)
  >>> facts = np.array([[0, 0, 1], [2, 1, 0]])
  >>> kb.sureness("T", params, facts, "tail").shape
  (2, 2)

  Args:
    model: a score model or its name.
    params: the tables, finite.
    facts: head, relation, tail, int [n, 3].
    side: "head" or "tail", the slot that is open.
    block: queries at a time.

  Returns:
    First answer's score and its lead over the second, both in units of the
    spread of all scores of the query, [n, 2]; 0 where all are equal.

  Raises:
    InputError: where a table is not finite.
  """
  scores.check_tables(params)
  count = len(facts)
  padded = np.resize(facts, (-(-count // block) * block, 3))
  blocks = jnp.asarray(padded.reshape(-1, block, 3))
  sure = _sure_blocks(get_model(model), side, params, blocks)
  return np.asarray(sure).reshape(-1, 2)[:count]


def choice_features(
  facts: np.ndarray, num_relations: int, first: np.ndarray, second: np.ndarray
) -> np.ndarray:
  """Features of queries for `fit_logistic`.

  >>> import numpy as np
  >>> from repr_jax import kb
  >>> facts, sure = np.array([[0, 1, 2]]), np.ones((1, 2))
  >>> kb.choice_features(facts, 3, sure, sure).shape
  (1, 8)

  Args:
    facts: head, relation, tail, int [n, 3].
    num_relations: R.
    first: sureness of one system, [n, 2].
    second: of the other, [n, 2].

  Returns:
    Relation indicators, sureness of both and a constant, [n, R + 5].
  """
  if not (np.isfinite(first).all() and np.isfinite(second).all()):
    raise InputError("a system's scores are not finite: it cannot be combined")
  relation = np.eye(num_relations)[np.asarray(facts)[:, 1]]
  constant = np.ones((len(facts), 1))
  parts = [relation, first, second, constant]
  return np.concatenate(parts, axis=1).astype(np.float32)


def better(first: Ranks, second: Ranks, side: str) -> tuple:
  """Labels queries that the first system ranks better; ties weigh 0.

  >>> import jax, numpy as np
  >>> from repr_jax import kb
  >>> params = kb.init_params("T", jax.random.key(0), 5, 2, 4)
  >>> facts = np.array([[0, 0, 1], [2, 1, 0]])
  >>> ranks = kb.rank(*kb.scorers("T", params), facts, known=facts)
  >>> labels, weights = kb.better(ranks, ranks, "tail")
  >>> print(weights)
  [0. 0.]

  Args:
    first: ranks by one system.
    second: ranks of the same facts by the other.
    side: "head" or "tail".

  Returns:
    Labels and weights, float32 [n] each.
  """
  one = getattr(first, side).filtered.realistic
  two = getattr(second, side).filtered.realistic
  return (one < two).astype(np.float32), (one != two).astype(np.float32)


def merge_ranks(
  first: Ranks, second: Ranks, heads: np.ndarray, tails: np.ndarray
) -> Ranks:
  """The ranks of the combination.

  >>> import jax, numpy as np
  >>> from repr_jax import kb
  >>> params = kb.init_params("T", jax.random.key(0), 5, 2, 4)
  >>> facts = np.array([[0, 0, 1], [2, 1, 0]])
  >>> ranks = kb.rank(*kb.scorers("T", params), facts, known=facts)
  >>> chosen = np.array([True, False])
  >>> merged = kb.merge_ranks(ranks, ranks, chosen, ~chosen)
  >>> kb.summary(merged) == kb.summary(ranks)
  True

  Args:
    first: ranks by one system.
    second: ranks of the same facts by the other.
    heads: queries for a head that go to the first system, bool [n].
    tails: queries for a tail that go to the first system, bool [n].

  Returns:
    Ranks of the same facts.
  """
  merged = {
    side: jax.tree.map(
      lambda a, b, chosen=chosen: np.where(chosen, a, b),
      getattr(first, side),
      getattr(second, side),
    )
    for side, chosen in (("head", heads), ("tail", tails))
  }
  return first._replace(**merged)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _sure_blocks(model, side, params, blocks):
  def one(facts):
    head, relation, tail = facts.T
    links = params.relations[relation]
    table = params.entities
    if side == "tail":
      values = scores.score_all_tails(model, links, table[head], table)
    else:
      values = scores.score_all_heads(model, links, table[tail], table)
    # Two maxima; a sort of all entities, or even their first place, would
    # take several times longer.
    top = jnp.max(values, axis=1)
    below = jnp.where(values < top[:, None], values, -jnp.inf)
    alone = jnp.sum(values == top[:, None], axis=1) == 1
    second = jnp.where(alone, jnp.max(below, axis=1), top)
    lead = top - second
    height = top - jnp.mean(values, axis=1)
    differ = jnp.min(values, axis=1) < top
    spread = jnp.where(differ, jnp.std(values, axis=1) + 1e-6, 1)
    both = jnp.stack([height, lead], axis=1) / spread[:, None]
    return jnp.where(differ[:, None], both, 0)

  return jax.lax.map(one, blocks)
