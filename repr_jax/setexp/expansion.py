"""Set expansion by the autoencoder: scores of entities for queries.

A query's Gaussian is the product of its members' (thesis 4.5, 4.6). Entities
are ranked by a score between Gaussians or by the features that the concept
decodes to. `Ranking` selects the score by traced numbers, so that one program
serves every score. `contributions` splits the score of an entity.
Functions take one query; `expand` takes a batch.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from repr_jax import errors
from repr_jax.ops import gaussian, topk
from repr_jax.setexp import (
  autoencoder,
  cosine_scores,
  feature_scores,
  gaussian_scores,
)
from repr_jax.setexp import rows as row_lib
from repr_jax.setexp.explain import Contributions
from repr_jax.setexp.feature_scores import POOLINGS, Entries
from repr_jax.setexp.rows import Rows

SCORES = ("features", *gaussian_scores.SCORES, "cosine")
GAUSSIAN = slice(1, 1 + len(gaussian_scores.SCORES))  # their place in SCORES


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Model:
  """A trained model with its entities.

  Attributes:
    params: the parameters.
    inputs: statistics that weigh the encoder's inputs.
    side: Gaussians of the X entities, in the form that scores read.
    features: BM25 weights of the entities' features.
    lexical: statistics of the entities' counts, for those weights.
    config: the configuration, static.
    cosine: the entities' side of the cosine score; None computes it for each
      query.
  """

  params: autoencoder.Params
  inputs: autoencoder.Inputs
  side: gaussian_scores.Side
  features: row_lib.Table
  lexical: autoencoder.Inputs
  config: autoencoder.Config = dataclasses.field(metadata={"static": True})
  cosine: cosine_scores.Side | None = None

  @property
  def entities(self) -> gaussian.Natural:
    """Natural parameters of the entities, fields [d, X]."""
    return gaussian.Natural(self.side.xi, self.side.precision)


class PaddedQuery(NamedTuple):
  """A query in fixed shapes, or with a leading axis several.

  Attributes:
    ids: row of each member among the entities, int32 [q]; -1 for a new one
      and for padding.
    weights: signed influence of each member, [q]; 0 for padding.
    entries: the members' counts, fields [n].
    encoded: natural parameters of members that are new, fields [q, d]; None
      where all members are among the entities.
  """

  ids: Any
  weights: Any
  entries: Entries
  encoded: gaussian.Natural | None


class Ranking(NamedTuple):
  """Weights of the scores that rank entities; all fields are traced.

  Attributes:
    scores: weight of each of `SCORES`, [9].
    power: "features": exponent of the features' weights, [].
    member_share: "features": share of the members' own counts, [].
    pooling: "features" and "cosine": index into `POOLINGS`, int32 [].
    normalize: Gaussian scores: divide a query's weights by the sum of their
      absolute values, bool []. xi_Q becomes a mean, whose length does not grow
      with the query, and q_Q the geometric mean of the members' densities.
  """

  scores: Any
  power: Any
  member_share: Any
  pooling: Any
  normalize: Any


class Expansion(NamedTuple):
  """Best entities of n queries, best first.

  Attributes:
    ids: rows of the entities, int32 [n, k]; never the query's own.
    scores: [n, k]; -inf where there are fewer than k.
  """

  ids: jax.Array
  scores: jax.Array


def make_ranking(
  score: str = "features",
  *,
  power: float = 0.75,
  member_share: float = 0.5,
  pooling: str = "mean",
  normalize: bool = False,
) -> Ranking:
  """A ranking by one score.

  >>> from repr_jax import setexp
  >>> setexp.make_ranking("xi").scores.tolist()
  [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]

  Args:
    score: one of `SCORES`.
    power: see `Ranking`; above 0.
    member_share: see `Ranking`; 0 to 1.
    pooling: one of `POOLINGS`.
    normalize: see `Ranking`.

  Returns:
    The ranking, on the host.
  """
  if score not in SCORES:
    raise errors.InputError(
      f"there is no score {score!r}; there are {', '.join(SCORES)}"
    )
  if pooling not in POOLINGS:
    raise errors.InputError(
      f"there is no pooling {pooling!r}; there are {', '.join(POOLINGS)}"
    )
  if not 0 < power < np.inf:
    raise errors.InputError(f"the power must be positive, not {power}")
  if not 0 <= member_share <= 1:
    raise errors.InputError(
      f"the members' share must be in [0, 1], not {member_share}"
    )
  chosen = np.array([float(score == name) for name in SCORES], np.float32)
  return Ranking(
    chosen,
    np.float32(power),
    np.float32(member_share),
    np.int32(POOLINGS.index(pooling)),
    np.bool_(normalize),
  )


def query_members(model: Model, query: PaddedQuery) -> gaussian.Natural:
  """Natural parameters of a query's members, fields [q, d]."""
  place = jnp.maximum(query.ids, 0)
  known = gaussian.Natural(*(x[:, place].T for x in model.entities))
  if query.encoded is None:
    return known
  new = (query.ids < 0)[:, None]
  return gaussian.Natural(
    *(jnp.where(new, x, y) for x, y in zip(query.encoded, known))
  )


def query_posterior(
  model: Model, query: PaddedQuery, normalize: Any = False
) -> gaussian.Natural:
  """The product of the members' Gaussians (thesis eq. 4.12).

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> counts = jnp.array([[3.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> statistics = setexp.statistics(config, counts)
  >>> params = setexp.init(config, jax.random.key(0), statistics)
  >>> rows = setexp.rows_from_dense(counts)
  >>> model = setexp.make_model(config, params, statistics.inputs, rows)
  >>> query = setexp.query_of_rows(rows, jnp.array([0]), jnp.array([1.0]))
  >>> setexp.query_posterior(model, query).xi.shape
  (2,)

  Args:
    model: the model.
    query: the query.
    normalize: see `Ranking`.

  Returns:
    Natural parameters, fields [d].
  """
  members, weights = query_members(model, query), jnp.asarray(query.weights)
  # Devices may flush the smallest numbers to zero, so the sum is checked.
  total = jnp.sum(jnp.abs(weights))
  total = jnp.where(jnp.logical_and(normalize, total > 0), total, 1)
  return gaussian.product_of_experts(members, weights / total)


def score_entities(
  model: Model, query: PaddedQuery, ranking: Ranking
) -> jax.Array:
  """Scores of all entities, the query's members included.

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> counts = jnp.array([[3.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> statistics = setexp.statistics(config, counts)
  >>> params = setexp.init(config, jax.random.key(0), statistics)
  >>> rows = setexp.rows_from_dense(counts)
  >>> model = setexp.make_model(config, params, statistics.inputs, rows)
  >>> query = setexp.query_of_rows(rows, jnp.array([0]), jnp.array([1.0]))
  >>> scores = setexp.score_entities(model, query, setexp.make_ranking("xi"))
  >>> int(jnp.argmax(scores))
  0

  Args:
    model: the model.
    query: the query; vmap over queries.
    ranking: weights of the scores.

  Returns:
    Higher is better, [X], finite.
  """

  def by_features():
    weights = _weights(model, query, ranking)
    return ranking.scores[0] * row_lib.product(model.features, weights)

  def by_gaussian():
    return _gaussian_scores(model, query, ranking, model.side)

  def by_cosine():
    return ranking.scores[-1] * cosine_scores.scores(
      cosine_side(model), model.side.mean, _direction(model, query, ranking)
    )

  kinds = [by_features, by_gaussian, by_cosine]
  some = ranking.scores != 0
  used = jnp.stack([some[0], some[GAUSSIAN].any(), some[-1]])

  def mixed():
    nothing = jnp.zeros(model.side.constants.shape[1], model.side.xi.dtype)
    return sum(
      lax.cond(used[i], kind, lambda: nothing) for i, kind in enumerate(kinds)
    )

  # One kind alone needs no sum with zeros, which takes longer than a product.
  alone = jnp.sum(used) == 1
  return lax.switch(
    jnp.where(alone, jnp.argmax(used), len(kinds)), [*kinds, mixed]
  )


def score_rows(
  model: Model, query: PaddedQuery, ranking: Ranking, rows: Rows
) -> jax.Array:
  """Scores of entities or sentences that are not among the entities.

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> counts = jnp.array([[3.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> statistics = setexp.statistics(config, counts)
  >>> params = setexp.init(config, jax.random.key(0), statistics)
  >>> rows = setexp.rows_from_dense(counts)
  >>> model = setexp.make_model(config, params, statistics.inputs, rows)
  >>> query = setexp.query_of_rows(rows, jnp.array([0]), jnp.array([1.0]))
  >>> setexp.score_rows(model, query, setexp.make_ranking(), rows).shape
  (2,)

  Args:
    model: the model.
    query: the query.
    ranking: weights of the scores.
    rows: their features, fields [s, m].

  Returns:
    [s], comparable with `score_entities`.
  """
  nothing = jnp.zeros(rows.counts.shape[0], model.side.xi.dtype)

  def by_features():
    weights = _weights(model, query, ranking)

    def one(row):
      row = lexical_row(model.lexical, row)
      place = jnp.clip(row.indices, 0, weights.shape[0] - 1)
      return jnp.sum(row.counts * weights[place])

    return ranking.scores[0] * jax.vmap(one)(rows)

  def by_concept():
    def natural(row):
      posterior = autoencoder.encode(
        model.config, model.params, model.inputs, row
      )
      return autoencoder.natural_parameters(posterior)

    encoded = gaussian.Natural(*(x.T for x in jax.vmap(natural)(rows)))
    side = gaussian_scores.entity_side(encoded)
    cosines = cosine_scores.scores(
      cosine_scores.of_rows(cosine_side(model), model.side, side.mean),
      side.mean,
      _direction(model, query, ranking),
    )
    cosines = jnp.where(ranking.scores[-1] != 0, cosines, 0)
    return (
      _gaussian_scores(model, query, ranking, side)
      + ranking.scores[-1] * cosines
    )

  return lax.cond(
    ranking.scores[0] != 0, by_features, lambda: nothing
  ) + lax.cond(jnp.any(ranking.scores[1:] != 0), by_concept, lambda: nothing)


def contributions(
  model: Model, query: PaddedQuery, entity: jax.Array, ranking: Ranking
) -> Contributions:
  """Splits the score of an entity into parts.

  The feature score is a sum over the entity's features, and so is the cosine
  of a linear encoder. A Gaussian score, or a cosine of another encoder, is a
  sum over latent dimensions. Parts sum to `score_entities` up to rounding.

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> counts = jnp.array([[3.0, 1.0, 0.0], [1.0, 0.0, 2.0]])
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> statistics = setexp.statistics(config, counts)
  >>> params = setexp.init(config, jax.random.key(0), statistics)
  >>> rows = setexp.rows_from_dense(counts)
  >>> model = setexp.make_model(config, params, statistics.inputs, rows)
  >>> query = setexp.query_of_rows(rows, jnp.array([0]), jnp.array([1.0]))
  >>> ranking = setexp.make_ranking("features")
  >>> parts = setexp.contributions(model, query, 1, ranking)
  >>> score = setexp.score_entities(model, query, ranking)[1]
  >>> bool(jnp.allclose(parts.total, score))
  True

  Args:
    model: the model.
    query: the query.
    entity: its row, int32 [].
    ranking: the ranking that gave the score.

  Returns:
    The parts.
  """
  row = row_lib.take_row(model.features, entity)
  weights = _weights(model, query, ranking)
  own = ranking.scores[0] * row.counts * weights[row.indices]
  dimensions = gaussian_scores.parts(
    ranking.scores[GAUSSIAN],
    model.config.prior_variance,
    query_posterior(model, query, ranking.normalize),
    gaussian.Natural(*(x[:, entity] for x in model.entities)),
  )
  chosen = jnp.where(ranking.scores[0] != 0, own, 0)
  side, toward = cosine_side(model), _direction(model, query, ranking)
  weight = ranking.scores[-1]
  if side.inputs is None:
    apart = (model.side.mean[:, entity] - side.center) * side.scale
    terms = apart * toward / side.lengths[entity]
    dimensions += jnp.where(weight != 0, weight * terms, 0)
    rest = -side.hubness * side.crowding[entity]
    constant = jnp.where(weight != 0, weight * rest, 0).astype(chosen.dtype)
    return Contributions(row.indices, chosen, dimensions, constant)
  inputs = row_lib.take_row(side.inputs, entity)
  parts, rest = cosine_scores.feature_parts(
    model.params, side, toward, inputs, entity
  )
  return Contributions(
    jnp.concatenate([row.indices, inputs.indices]),
    jnp.concatenate([chosen, jnp.where(weight != 0, weight * parts, 0)]),
    dimensions,
    jnp.where(weight != 0, weight * rest, 0),
  )


def expand(
  model: Model, queries: PaddedQuery, ranking: Ranking, k: int
) -> Expansion:
  """The best entities of a batch of queries.

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> counts = jnp.array([[3.0, 1.0, 0.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]])
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> statistics = setexp.statistics(config, counts)
  >>> params = setexp.init(config, jax.random.key(0), statistics)
  >>> rows = setexp.rows_from_dense(counts)
  >>> model = setexp.make_model(config, params, statistics.inputs, rows)
  >>> query = setexp.query_of_rows(rows, jnp.array([0]), jnp.array([1.0]))
  >>> queries = jax.tree.map(lambda x: x[None], query)
  >>> setexp.expand(model, queries, setexp.make_ranking(), 2).ids.tolist()
  [[2, 1]]

  Args:
    model: the model.
    queries: n queries, fields with a leading axis; members of weight 0 are
      padding.
    ranking: weights of the scores.
    k: entities for each, at most X (static).

  Returns:
    The entities; a query's members never return.
  """

  def one(query):
    scores = score_entities(model, query, ranking)
    return topk.top_k(_without(scores, query), k)

  values, ids = jax.vmap(one)(queries)
  return Expansion(ids, values)


def _weights(model, query, ranking):
  """Weights of the features in the feature score, [F]."""
  return feature_scores.feature_weights(
    model.config, model.params, model.inputs, query_members(model, query),
    query.weights, query.entries, ranking.power, ranking.member_share,
    ranking.pooling,
  )  # fmt: skip


def cosine_side(model: Model) -> cosine_scores.Side:
  """The entities' side of the cosine score."""
  if model.cosine is not None:
    return model.cosine
  return cosine_scores.prepare(model.side.mean)


def _direction(model, query, ranking):
  """The query of the cosine score, of length 1, [d]."""
  side, weights = cosine_side(model), jnp.asarray(query.weights)
  members = query_members(model, query)
  means = gaussian.to_moments(members)[0]

  def product():
    mean = gaussian.to_moments(query_posterior(model, query))[0]
    return cosine_scores.toward(side, mean)

  def merged():
    features = model.params.decoder.shape[0]
    entries = feature_scores.clean_entries(query.entries, weights, features)
    mean = feature_scores.merged_mean(
      model.config, model.params, model.inputs, entries, weights
    )
    return cosine_scores.toward(side, mean)

  return lax.switch(
    ranking.pooling,
    [lambda: cosine_scores.direction(side, means, weights), product, merged],
  )


def _gaussian_scores(model, query, ranking, side):
  return gaussian_scores.scores(
    ranking.scores[GAUSSIAN],
    model.config.prior_variance,
    query_posterior(model, query, ranking.normalize),
    side,
  )


def lexical_row(lexical: autoencoder.Inputs, row: Rows) -> Rows:
  """BM25 weights of one entity's features, fields [m]; padding has 0."""
  features = jnp.shape(lexical.idf)[0]
  valid = (row.indices >= 0) & (row.indices < features)
  idf = jnp.asarray(lexical.idf)
  counts = jnp.where(valid, row.counts, 0).astype(idf.dtype)
  place = jnp.where(valid, row.indices, 0)
  weights = autoencoder.bm25_weights(
    counts, idf[place], counts.sum(), lexical.mean_length
  )
  return Rows(row.indices, weights)


def _without(scores, query):
  """Scores in which the query's members are -inf."""
  own = jnp.where(query.ids >= 0, query.ids, scores.shape[0])
  return scores.at[own].set(-jnp.inf, mode="drop")
