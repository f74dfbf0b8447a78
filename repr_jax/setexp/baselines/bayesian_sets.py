"""Bayesian Sets in three forms, for sparse counts (thesis 4.3.2 and appendix).

    score(Q, x) = log p(x | Q) / p(x),

with features independent given parameters that have a conjugate prior:

- "bernoulli": f' = [f > mean + spread * deviation]; Beta(c m, c (1 - m)) with
  m the share of entities that have f' = 1;
- "poisson": Gamma(c m, c) with m the mean count;
- "gaussian": Anscombe's square root, standardized; normal-gamma with location
  0, strength 2, shape 2 and rate 1 (the slips of the text corrected: rho, not
  rho~, in the rate's update, and the 1/2 of the density).

For every form the score is a sum over features of h_j(f_x[j]). It is split as
sum_j h_j(0) plus h_j(f) - h_j(0) where f is not zero, so that no [X, F] array
is ever made. Counts take few distinct values, hence h is evaluated once for
each pair of feature and value (a "level"). What features that no member has
contribute depends on the query's total weight alone; it is kept for the usual
totals, and a query then reads only the postings of its own features.

Weights multiply a member's part in the sufficient statistics (a likelihood
raised to the weight): 2 is the same as naming the entity twice. Members of
negative weight form a second query, and the score is log p(x | Q+) / p(x | Q-):
each is a proper posterior, so that no weight can give a logarithm of a
negative number.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from repr_jax.errors import InputError
from repr_jax.setexp.baselines import conjugate
from repr_jax.setexp.baselines.baseline import Baseline, of_features
from repr_jax.setexp.explain import Contributions
from repr_jax.setexp.query import Query


class Model(NamedTuple):
  """What a query needs.

  Attributes:
    prior: the form and its prior, fields [F].
    features: feature of each level, int32 [L], sorted.
    values: transformed count of each level, float64 [L].
    postings: which entities are at a level, ones, float32 [L, X].
    starts: where the levels of each feature start, int64 [F + 1].
    totals: total weights whose base is kept, [m].
    bases: score of each entity as if no member had a feature, [m, X].
  """

  prior: conjugate.Prior
  features: np.ndarray
  values: np.ndarray
  postings: sp.csr_array
  starts: np.ndarray
  totals: np.ndarray
  bases: np.ndarray


def fit(
  counts: sp.csr_array,
  form: str = "bernoulli",
  *,
  spread: float = 0.5,
  concentration: float = 2.0,
  totals: Sequence[float] = (1.0, 2.0, 3.0, 4.0, 5.0),
) -> Model:
  """Sets the prior from the counts and arranges them by level.

  Args:
    counts: feature counts, [X, F], not negative.
    form: "bernoulli", "poisson" or "gaussian".
    spread: deviations above the mean that a count must exceed to be 1 in the
      Bernoulli form, 0 or more.
    concentration: strength c of the prior in the other two forms.
    totals: total weights of queries that must be fast; others are answered
      too, at the price of one pass over all levels.

  Returns:
    The model.
  """
  table = sp.csc_array(counts, dtype=np.float64)
  table.sum_duplicates()
  table.eliminate_zeros()
  if not np.isfinite(table.data).all() or (table.data < 0).any():
    raise InputError("Bayesian Sets need counts that are finite, 0 or more")
  if table.nnz == 0:
    raise InputError("no entity has any feature: there is nothing to score")
  prior = conjugate.make_prior(table, form, spread, concentration)
  size, width = table.shape
  columns = np.repeat(np.arange(width), np.diff(table.indptr))
  values = conjugate.transform(prior, columns, table.data)
  order = np.lexsort((values, columns))
  columns, values = columns[order], values[order]
  new = np.append(True, (np.diff(columns) > 0) | (np.diff(values) != 0))
  first = np.flatnonzero(new)
  postings = sp.csr_array(
    (
      np.ones(table.nnz, np.float32),
      table.indices[order].astype(np.int32),
      np.append(first, table.nnz),
    ),
    (len(first), size),
  )
  features = columns[first].astype(np.int32)
  model = Model(
    prior,
    features,
    values[first],
    postings,
    np.searchsorted(features, np.arange(width + 1)),
    np.asarray(totals, np.float64),
    np.zeros((0, size)),
  )
  bases = [_base(model, float(total)) for total in totals]
  return model._replace(bases=np.reshape(bases, (len(totals), size)))


def score(model: Model, query: Query) -> np.ndarray:
  """The log-ratio log p(x | Q) / p(x) of all entities.

  Args:
    model: from `fit`.
    query: members with weights.

  Returns:
    Scores, float32 [X].
  """
  scores = np.zeros(model.postings.shape[1])
  for sign, statistics in _sides(model.prior, query):
    kept = np.flatnonzero(model.totals == statistics.total)
    base = model.bases[kept[0]] if kept.size else _base(model, statistics.total)
    scores += sign * (base + _own_features(model, statistics))
  return _finite(scores)


def score_rows(model: Model, query: Query, rows: sp.csr_array) -> np.ndarray:
  """The log-ratio of rows that are not in the table, such as sentences.

  Args:
    model: from `fit`.
    query: the query.
    rows: feature counts, [s, F].

  Returns:
    Scores, float32 [s].
  """
  rows = sp.csr_array(rows, dtype=np.float64)
  values = conjugate.transform(model.prior, rows.indices, rows.data)
  scores = np.zeros(rows.shape[0])
  for sign, statistics in _sides(model.prior, query):
    added = conjugate.added(model.prior, statistics, rows.indices, values)
    each = sp.csr_array((added, rows.indices, rows.indptr), rows.shape)
    constant = conjugate.at_zero(model.prior, statistics).sum()
    scores += sign * (constant + each.sum(axis=1))
  return _finite(scores)


def contributions(model: Model, query: Query, entity: int) -> Contributions:
  """What each feature, present or absent, added to the score of an entity.

  Args:
    model: from `fit`.
    query: the query.
    entity: its row.

  Returns:
    h_j(f_x[j]) of all features: a sum over features, [F].
  """
  places = np.flatnonzero(model.postings.indices == entity)
  levels = np.searchsorted(model.postings.indptr, places, side="right") - 1
  features, values = model.features[levels], model.values[levels]
  parts = np.zeros(len(model.starts) - 1)
  for sign, statistics in _sides(model.prior, query):
    parts += sign * conjugate.at_zero(model.prior, statistics)
    parts[features] += sign * conjugate.added(
      model.prior, statistics, features, values
    )
  return of_features(np.arange(len(parts)), parts)


def rationale(model: Model, query: Query) -> np.ndarray:
  """What having each feature (once, unless binary) adds to the score.

  Args:
    model: from `fit`.
    query: the query.

  Returns:
    Weights, float32 [F]; in the Bernoulli form the vector that the binary
    features are multiplied with.
  """
  features = np.arange(len(model.starts) - 1)
  one = conjugate.transform(model.prior, features, np.ones(len(features)))
  if model.prior.form == "bernoulli":
    one = np.ones(len(features))
  weights = np.zeros(len(features))
  for sign, statistics in _sides(model.prior, query):
    weights += sign * conjugate.added(model.prior, statistics, features, one)
  return _finite(weights)


def _sides(
  prior: conjugate.Prior, query: Query
) -> list[tuple[float, conjugate.Statistics]]:
  """Statistics of the members of positive and of negative weight."""
  sides = []
  for sign in (1.0, -1.0):
    chosen = np.flatnonzero(query.weights * sign > 0)
    if chosen.size:
      weights = np.abs(query.weights[chosen]).astype(np.float64)
      rows = sp.csr_array(query.rows[chosen], dtype=np.float64)
      sides.append((sign, conjugate.statistics(prior, rows, weights)))
  return sides


def _base(model: Model, total: float) -> np.ndarray:
  """Scores for a query of this total weight without any feature, [X]."""
  none = conjugate.empty_statistics(total)
  added = conjugate.added(model.prior, none, model.features, model.values)
  # Summed in double precision: it is the larger part of the score.
  each = np.repeat(added, np.diff(model.postings.indptr))
  sums = np.bincount(model.postings.indices, each, model.postings.shape[1])
  return conjugate.at_zero(model.prior, none).sum() + sums


def _own_features(
  model: Model, statistics: conjugate.Statistics
) -> np.ndarray | float:
  """What the features that members have change in the base, [X]."""
  if statistics.features.size == 0:
    return 0.0
  none = conjugate.empty_statistics(statistics.total)
  own = statistics.features
  change = conjugate.at_zero(model.prior, statistics, own)
  change -= conjugate.at_zero(model.prior, none, own)
  lo, hi = model.starts[own], model.starts[own + 1]
  rows = np.concatenate([np.arange(a, b) for a, b in zip(lo, hi)])
  features, values = model.features[rows], model.values[rows]
  added = conjugate.added(model.prior, statistics, features, values)
  added -= conjugate.added(model.prior, none, features, values)
  chosen = model.postings[rows]
  return change.sum() + chosen.T @ added.astype(np.float32)


def _finite(scores: np.ndarray) -> np.ndarray:
  limit = np.finfo(np.float32).max
  return np.clip(scores, -limit, limit).astype(np.float32)


def _baseline(form: str) -> Baseline:
  return Baseline(
    form,
    lambda counts, seed: fit(counts, form),
    score,
    score_rows,
    contributions,
    rationale,
  )


BERNOULLI = _baseline("bernoulli")
POISSON = _baseline("poisson")
GAUSSIAN = _baseline("gaussian")
