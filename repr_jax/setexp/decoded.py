"""Ranking by what the decoder makes of a query: its rationale, searched for.

The scores of `ranking` compare Gaussians, and all that a few dozen numbers
cannot hold about an entity is lost to them. Here the query's concept goes
back to features first, and entities are ranked by theirs:

    score(Q, x) = sum_i p_i(z_Q)^power IDF[i] tf(x, i),

with p the decoder's probabilities, and IDF and tf as in `bm25`: the rationale
of the query is put to BM25 as if it were a text. Features that no member has
count too, if the model expects them in the set; features of one member alone
fade. A power below 1 keeps the likeliest features from drowning the others;
with a power of 1 it is the expected BM25 score of a query drawn from p.

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
from repr_jax.setexp import bm25, expand
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
  """

  model: expand.Model
  lexical: bm25.Index
  table: sp.csr_array
  power: float
  pooling: str


def fit(
  model: expand.Model,
  counts: sp.csr_array,
  power: float = 0.5,
  pooling: str = "mean",
) -> Model:
  """Weighs the entities' features.

  Args:
    model: the autoencoder with its entities.
    counts: features of the same entities, [X, F].
    power: of the probabilities, above 0.
    pooling: one of `POOLINGS`.

  Returns:
    The model.
  """
  if not 0 < power < np.inf:
    raise InputError(f"the power of the rationale must be positive: {power}")
  if pooling not in POOLINGS:
    raise InputError(
      f"there is no pooling {pooling!r}; there are {', '.join(POOLINGS)}"
    )
  index = bm25.fit(counts)
  return Model(model, index, bm25.weigh_rows(index, counts), power, pooling)


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
  return expand.rationale(model.model, query, relative)


def _weights(model: Model, query: Query) -> np.ndarray:
  """Weight of each feature, [F]."""
  power = np.float32(model.power)
  if model.pooling == "product":
    return expand.rationale(model.model, query) ** power
  inner = model.model
  table = np.asarray(inner.params.decoder)
  logits = table[:, :-1] @ _concept(model, query) + table[:, -1]
  if inner.config.decoder == "multilabel":
    return special.expit(logits) ** power
  return special.softmax(logits) ** power


def _concept(model: Model, query: Query) -> np.ndarray:
  """The weighted mean of the members' means, or that of their union, [d]."""
  inner = model.model
  share = query.weights / np.abs(query.weights).sum()
  rows = query.rows
  if model.pooling == "merged":
    # What has a negative weight takes away what is there, and no more.
    total = np.maximum(query.weights @ rows, 0)
    rows, share = sp.csr_array(total[None]), np.ones(1, np.float32)
  natural = expand.encode_rows(inner.config, inner.params, inner.inputs, rows)
  return share @ (natural.xi / natural.precision)
