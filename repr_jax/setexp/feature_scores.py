"""Ranking by what the decoder makes of a query: its rationale, searched for.

The scores of `ranking` compare Gaussians, and all that a few dozen numbers
cannot hold about an entity is lost to them. Here the query's concept goes
back to features first, and entities are ranked by theirs:

    score(Q, x) = sum_i w_i^power IDF[i] tf(x, i),
    w = (1 - own) p(z_Q) + own f_Q / |f_Q|,

with p the decoder's probabilities, f_Q the members' own counts, each times
the share of the members that have the feature, and IDF (the positive form)
and tf as in `bm25`: the rationale of the query is put to BM25 as if it were a
text. Features that
no member has count too, if the model expects them in the set; features of one
member alone fade. The members' own share makes up for what a concept has no
room for: their counts, smoothed by p as language models are. It is 0 for the
decoder alone, 1 for no decoder. A power below 1 keeps the likeliest features
from drowning the others; with a power of 1 it is the expected BM25 score of a
query drawn from w.

z_Q is the mean of the members' product ("product", as elsewhere), of their
means, each counted alike whatever its variance ("mean"), or of the entity
that has all their features ("merged").
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy import special

from repr_jax.errors import InputError
from repr_jax.setexp import expansion
from repr_jax.setexp.baselines import bm25
from repr_jax.setexp.query import Query

POOLINGS = ("mean", "product", "merged")


class Model(NamedTuple):
  """A trained model and the entities' features, weighed.

  Attributes:
    model: the autoencoder.
    lexical: BM25's index, for rows that are not in the table.
    table: what each feature of an entity adds for a unit of weight, [X, F].
    power: of the probabilities.
    pooling: how members make one concept, of `POOLINGS`.
    own: share of the members' own counts.
  """

  model: expansion.Model
  lexical: bm25.Index
  table: sp.csr_array
  power: float
  pooling: str
  own: float


def fit(
  model: expansion.Model,
  counts: sp.csr_array,
  power: float = 0.5,
  pooling: str = "mean",
  own: float = 0.0,
) -> Model:
  """Weighs the entities' features.

  Args:
    model: the autoencoder with its entities.
    counts: features of the same entities, [X, F].
    power: of the probabilities, above 0.
    pooling: one of `POOLINGS`.
    own: share of the members' own counts, in [0, 1].

  Returns:
    The model.
  """
  if not 0 < power < np.inf:
    raise InputError(f"the power of the rationale must be positive: {power}")
  if not 0 <= own <= 1:
    raise InputError(f"the members' own share must be in [0, 1]: {own}")
  if pooling not in POOLINGS:
    raise InputError(
      f"there is no pooling {pooling!r}; there are {', '.join(POOLINGS)}"
    )
  index = bm25.fit(counts, positive=True)
  weighed = bm25.weigh_rows(index, counts)
  return Model(model, index, weighed, power, pooling, own)


def score(model: Model, query: Query) -> np.ndarray:
  """Scores of all entities, the query's own among them.

  Args:
    model: from `fit`.
    query: the query.

  Returns:
    float32 [X], finite, higher is better.
  """
  return np.asarray(model.table @ _weights(model, query), np.float32)


def score_batch(model: Model, queries: Sequence[Query]) -> np.ndarray:
  """`score` of several queries, in one product.

  Args:
    model: from `fit`.
    queries: n queries.

  Returns:
    float32 [n, X].
  """
  weights = [_weights(model, query) for query in queries]
  stacked = np.reshape(weights, (len(queries), model.table.shape[1]))
  return np.asarray((model.table @ stacked.T).T, np.float32)


def score_rows(model: Model, query: Query, rows: sp.csr_array) -> np.ndarray:
  """Scores of entities or sentences that are not in the table.

  Args:
    model: from `fit`.
    query: the query.
    rows: features, [s, F].

  Returns:
    float32 [s], comparable with `score`.
  """
  eager = bm25.weigh_rows(model.lexical, rows)
  return np.asarray(eager @ _weights(model, query), np.float32)


def rationale(model: Model, query: Query, relative: bool = False) -> np.ndarray:
  """As `expand.rationale`: float32 [F].

  Args:
    model: from `fit`.
    query: the query.
    relative: see there.
  """
  return expansion.rationale(model.model, query, relative)


def _weights(model: Model, query: Query) -> np.ndarray:
  """Weight of each feature, [F]."""
  found = _probabilities(model, query)
  if model.own:
    counts = _own(query)
    found = (1 - model.own) * found / found.sum() + model.own * counts
  return np.asarray(found ** np.float32(model.power), np.float32)


def _own(query: Query) -> np.ndarray:
  """The members' counts by how many members share them; sums to 1, [F]."""
  # Doubles hold the product of huge counts and weights.
  weights = query.weights.astype(np.float64)
  # A negative weight takes away what is there, and no more.
  counts = np.maximum(weights @ query.rows, 0)
  present = query.rows.sign()
  counts = counts * (np.maximum(weights, 0) @ present)
  return counts / max(counts.sum(), 1e-300)


def _probabilities(model: Model, query: Query) -> np.ndarray:
  """The decoder's probabilities at the query's concept, [F]."""
  if model.pooling == "product":
    return expansion.rationale(model.model, query)
  inner = model.model
  table = np.asarray(inner.params.decoder)
  logits = table[:, :-1] @ _concept(model, query) + table[:, -1]
  if inner.config.decoder == "multilabel":
    return special.expit(logits)
  return special.softmax(logits)


def _concept(model: Model, query: Query) -> np.ndarray:
  """The weighted mean of the members' means, or that of their union, [d]."""
  inner = model.model
  share = query.weights / np.abs(query.weights).sum()
  rows = query.rows
  if model.pooling == "merged":
    # What has a negative weight takes away what is there, and no more.
    total = np.maximum(query.weights @ rows, 0)
    rows, share = sp.csr_array(total[None]), np.ones(1, np.float32)
  natural = expansion.encode_rows(
    inner.config, inner.params, inner.inputs, rows
  )
  return share @ (natural.xi / natural.precision)
