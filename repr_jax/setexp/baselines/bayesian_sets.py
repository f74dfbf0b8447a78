"""Bayesian Sets in three forms, for sparse counts (thesis 4.3.2 and appendix).

    score(Q, x) = log p(x | Q) / p(x),

with features independent given parameters that have a conjugate prior:

- "bernoulli": f' = [f > mean + spread * deviation]; Beta(c m, c (1 - m)) with
  m the share of entities that have f' = 1;
- "poisson": Gamma(c m, c) with m the mean count;
- "gaussian": Anscombe's square root, standardized; normal-gamma with location
  0, strength 2, shape 2 and rate 1 (two slips of the thesis are corrected: rho,
  not rho~, in the rate's update, and the 1/2 of the density).

For every form the score is a sum over features of h_j(f_x[j]). It is split as
sum_j h_j(0) plus h_j(f) - h_j(0) where f is not zero, so that no [X, F] array
is ever made. Counts take few distinct values, hence h is evaluated once for
each pair of feature and value (a "level"). What absent features add to a score
depends only on the query's total weight and is precomputed for the usual
totals. A query then reads only the postings of its own features.

Weights multiply a member's part in the sufficient statistics (a likelihood
raised to the weight): 2 is the same as naming the entity twice. Members of
negative weight form a second query, and the score is log p(x | Q+) / p(x | Q-):
both are proper posteriors, so no weight leads to the logarithm of a negative
number.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax

from repr_jax.ops.precision import enable_x64
from repr_jax.setexp import feature_scores
from repr_jax.setexp.baselines import conjugate
from repr_jax.setexp.baselines import postings as posting_lib
from repr_jax.setexp.baselines.baseline import (
  Baseline,
  clean_rows,
  of_features,
  read_counts,
)
from repr_jax.setexp.baselines.postings import Postings
from repr_jax.setexp.expansion import PaddedQuery
from repr_jax.setexp.explain import Contributions
from repr_jax.setexp.rows import Rows

_LEVELS = (512, 2)  # Most features have few levels.


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Model:
  """A prior, and the entities by level.

  Attributes:
    prior: the form and its prior, fields [F].
    features: feature of each level, int32 [L], ascending.
    values: transformed count of each level, [L].
    starts: where the levels of each feature start, int32 [F + 1].
    postings: entities of each feature with their levels, [F, X].
    rows: levels of each entity, [X, L].
    totals: total weights with precomputed bases, [m].
    bases: score of each entity as if no member had a feature, [m, X].
    absent: the part of this score from each absent feature, [m, F].
  """

  prior: conjugate.Prior
  features: Any
  values: Any
  starts: Any
  postings: Postings
  rows: Postings
  totals: Any
  bases: Any
  absent: Any


def fit(
  counts: Any,
  form: str = "bernoulli",
  *,
  spread: float = 0.5,
  concentration: float = 2.0,
  totals: Sequence[float] = (1.0, 2.0, 3.0, 4.0, 5.0),
) -> Model:
  """Sets the prior from the counts and arranges them by level, on the host.

  >>> import scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[2.0, 0.0], [0.0, 1.0], [1.0, 3.0]])
  >>> setexp.bayesian_sets_fit(counts, "poisson").values.tolist()
  [1.0, 2.0, 1.0, 3.0]

  Args:
    counts: feature counts, [X, F], not negative.
    form: "bernoulli", "poisson" or "gaussian".
    spread: deviations above the mean that a count must exceed to be 1 in the
      Bernoulli form, 0 or more.
    concentration: strength c of the Bernoulli and Poisson priors.
    totals: total weights of queries to precompute for; a query of another total
      takes one pass over all levels.

  Returns:
    The model.
  """
  read = read_counts(counts, "Bayesian Sets")
  table = sp.csc_array(read, dtype=np.float64)
  prior = conjugate.make_prior(table, form, spread, concentration)
  size, width = table.shape
  columns = np.repeat(np.arange(width), np.diff(table.indptr))
  with enable_x64():
    held = jnp.asarray(columns), jnp.asarray(table.data)
    values = np.asarray(conjugate.transform(prior, *held))
  order = np.lexsort((values, columns))
  new = np.append(
    True, (np.diff(columns[order]) > 0) | (np.diff(values[order]) != 0)
  )
  first = order[np.flatnonzero(new)]
  level = np.empty(table.nnz, np.int32)
  level[order] = np.cumsum(new) - 1
  by_feature = sp.csr_array((level, table.indices, table.indptr), (width, size))
  shape = (size, len(first))
  by_entity = sp.coo_array((level, (table.indices, level)), shape)
  features = columns[first].astype(np.int32)
  starts = np.searchsorted(features, np.arange(width + 1)).astype(np.int32)
  with enable_x64():
    model = Model(
      jax.tree.map(jnp.asarray, prior),
      jnp.asarray(features),
      jnp.asarray(values[first]),
      jnp.asarray(starts),
      posting_lib.from_scipy(by_feature),
      posting_lib.from_scipy(by_entity.tocsr()),
      jnp.asarray(totals, np.float64),
      jnp.zeros((0, size)),
      jnp.zeros((0, width)),
    )
    bases = [np.asarray(_base(model, jnp.float64(x))) for x in totals]
    absent = [np.asarray(_absent(model, jnp.float64(x))) for x in totals]

  def single(x: jax.Array) -> jax.Array:
    return jnp.asarray(
      np.float32(x) if x.dtype == np.float64 else np.asarray(x)
    )

  kept = dataclasses.replace(
    model,
    bases=np.reshape(bases, (len(totals), size)),
    absent=np.reshape(absent, (len(totals), width)),
  )
  return jax.tree.map(single, kept)


def score(model: Model, query: PaddedQuery) -> jax.Array:
  """The log-ratio log p(x | Q) / p(x) of all entities.

  >>> import jax.numpy as jnp, scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
  >>> model = setexp.bayesian_sets_fit(counts)
  >>> rows = setexp.rows_from_dense(counts.toarray())
  >>> query = setexp.query_of_rows(rows, jnp.array([0]), jnp.array([1.0]))
  >>> int(setexp.bayesian_sets_score(model, query).argmax())
  0

  Args:
    model: from `fit`.
    query: members with weights.

  Returns:
    Scores, [X].
  """

  def add_side(scores, sign):
    weights = jnp.maximum(sign * jnp.asarray(query.weights), 0)
    added = lax.cond(
      jnp.any(weights > 0),
      lambda: scores + sign * _score_side(model, query, weights),
      lambda: scores,
    )
    return added, None

  nothing = jnp.zeros(model.bases.shape[1], model.bases.dtype)
  signs = jnp.asarray([1, -1], model.bases.dtype)
  return _finite(lax.scan(add_side, nothing, signs)[0])


def score_rows(model: Model, query: PaddedQuery, rows: Rows) -> jax.Array:
  """The log-ratio of rows that are not in the table, such as sentences, [s]."""
  rows = clean_rows(rows, model.prior.zero.shape[0])
  values = conjugate.transform(model.prior, rows.indices, rows.counts)
  scores = jnp.zeros(rows.indices.shape[0], model.bases.dtype)
  for sign, statistics in _sides(model, query):
    added = conjugate.added(model.prior, statistics, rows.indices, values)
    constant = _at_zero(model, statistics).sum()
    sums = jnp.where(rows.counts > 0, added, 0).sum(axis=-1)
    scores += sign * jnp.where(statistics.total > 0, constant + sums, 0)
  return _finite(scores)


def contributions(
  model: Model, query: PaddedQuery, entity: jax.Array
) -> Contributions:
  """Splits the score of an entity over features, present or absent.

  >>> import jax.numpy as jnp, scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
  >>> model = setexp.bayesian_sets_fit(counts)
  >>> rows = setexp.rows_from_dense(counts.toarray())
  >>> query = setexp.query_of_rows(rows, jnp.array([0]), jnp.array([1.0]))
  >>> parts = setexp.bayesian_sets_contributions(model, query, 2)
  >>> score = setexp.bayesian_sets_score(model, query)[2]
  >>> bool(jnp.isclose(parts.total, score, rtol=1e-4))
  True

  Args:
    model: from `fit`.
    query: the query.
    entity: its row, int32 [].

  Returns:
    h_j(f_x[j]) of all features: a sum over features, [F].
  """
  size = model.prior.zero.shape[0]
  every = jnp.arange(size)
  levels = posting_lib.take_row(model.rows, entity).indices
  inside = jnp.minimum(levels, model.features.shape[0] - 1)
  features, values = model.features[inside], model.values[inside]
  place = jnp.where(levels < model.features.shape[0], features, size)
  parts = jnp.zeros(size, model.bases.dtype)
  for sign, statistics in _sides(model, query):
    own = (
      _at_zero(model, statistics)
      .at[place]
      .add(
        conjugate.added(model.prior, statistics, features, values), mode="drop"
      )
    )
    parts += sign * jnp.where(statistics.total > 0, own, 0)
  return of_features(every, parts)


def rationale(model: Model, query: PaddedQuery) -> jax.Array:
  """Score that each feature adds where it is present, [F].

  Present means a count of 1, or f' = 1 in the Bernoulli form, where this is the
  vector that multiplies the binary features.
  """
  features = jnp.arange(model.prior.zero.shape[0])
  one = jnp.ones(len(features), model.bases.dtype)
  if model.prior.form != "bernoulli":
    one = conjugate.transform(model.prior, features, one)
  weights = jnp.zeros(len(features), model.bases.dtype)
  for sign, statistics in _sides(model, query):
    own = conjugate.added(model.prior, statistics, features, one)
    weights += sign * jnp.where(statistics.total > 0, own, 0)
  return _finite(weights)


def _sides(model, query):
  """Statistics of the members of positive and of negative weight."""
  sides = []
  for sign in (1, -1):
    weights = jnp.maximum(sign * jnp.asarray(query.weights), 0)
    entries = feature_scores.clean_entries(
      query.entries, weights, model.prior.zero.shape[0]
    )
    sides.append((sign, conjugate.statistics(model.prior, entries, weights)))
  return sides


def _score_side(model, query, weights):
  """Scores for members of these weights, 0 or more, [X]."""
  prior, size = model.prior, model.prior.zero.shape[0]
  entries = feature_scores.clean_entries(query.entries, weights, size)
  statistics = conjugate.statistics(prior, entries, weights)
  none = conjugate.empty_statistics(prior, statistics.total)
  base = _kept(_base, model, statistics.total, model.bases)
  own = feature_scores.distinct_features(entries, size)

  def change(function, features, *values):
    with_members = function(prior, statistics, features, *values)
    return with_members - function(prior, none, features, *values)

  def fill(changes, row, level, used):
    del row
    values = change(conjugate.added, model.features[level], model.values[level])
    place = jnp.where(used, level, changes.shape[0])
    return changes.at[place].set(values, mode="drop")

  changes = posting_lib.walk(
    model.starts, own, fill, jnp.zeros_like(model.values), _LEVELS
  )

  def add(scores, row, place, used):
    del row
    entity = jnp.where(used, model.postings.items[place], scores.shape[0])
    level = model.postings.values[place]
    return scores.at[entity].add(changes[level], mode="drop")

  inside = jnp.minimum(own, size - 1)
  at_zero = jnp.where(own < size, change(conjugate.at_zero, inside), 0)
  start = base + at_zero.sum()
  return posting_lib.walk(model.postings.starts, own, add, start)


def _at_zero(model, statistics):
  """Parts of absent features, [F].

  The parts in a query without features (in float64 from `fit` for the kept
  totals) plus the change due to the members.
  """
  prior, every = model.prior, jnp.arange(model.prior.zero.shape[0])
  none = conjugate.empty_statistics(prior, statistics.total)
  with_members = conjugate.at_zero(prior, statistics, every)
  change = with_members - conjugate.at_zero(prior, none, every)
  return _kept(_absent, model, statistics.total, model.absent) + change


def _kept(function, model, total, values):
  """function(model, total), read from `values` if the total is a kept one."""
  if not model.totals.shape[0]:
    return function(model, total)
  same = model.totals == total
  return lax.cond(
    jnp.any(same),
    lambda: values[jnp.argmax(same)],
    lambda: function(model, total),
  )


@jax.jit
def _absent(model, total):
  """Parts of absent features in a query without features, [F]."""
  none = conjugate.empty_statistics(model.prior, total)
  every = jnp.arange(model.prior.zero.shape[0])
  return conjugate.at_zero(model.prior, none, every)


@jax.jit
def _base(model, total):
  """Scores for a query of this total weight without any feature, [X]."""
  none = conjugate.empty_statistics(model.prior, total)
  added = conjugate.added(model.prior, none, model.features, model.values)
  sums = jnp.zeros(model.postings.width, added.dtype)
  sums = sums.at[model.postings.items].add(added[model.postings.values])
  return _absent(model, total).sum() + sums


def _finite(scores):
  limit = np.finfo(scores.dtype).max
  return jnp.clip(scores, -limit, limit)


def _baseline(form: str) -> Baseline:
  return Baseline(
    form,
    lambda counts, seed: fit(counts, form),
    score,
    score_rows,
    contributions,
    rationale,
    batched=False,
  )


BERNOULLI = _baseline("bernoulli")
POISSON = _baseline("poisson")
GAUSSIAN = _baseline("gaussian")
