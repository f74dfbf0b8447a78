"""SetExpan: context features chosen again as the set grows (thesis 4.3.4).

Shen et al. 2017, three steps in each of at most `iterations` rounds:

1. Strength of a feature = sum of f_ec over the current set, with
   f_ec = log(1 + count) (log X - log sum_x count); the strongest `features`
   that at least two entities have are kept.
2. `samples` random subsets of the kept features, each a share `ratio` of
   them; in each, candidates (the most similar on all kept features) are
   ranked by their mean similarity to the set,
   sum_c min(f_xc, f_ec) / sum_c max(f_xc, f_ec).
3. The mean reciprocal rank over the subsets; a candidate whose value exceeds
   1 / `rank` joins the set. A round that adds nobody is the last.

Entities that joined earlier score higher. Then come entities with a reciprocal
rank, then all others by their similarity in the last round.

Weights multiply a member's part in the strengths and in the mean similarity
(over the sum of absolute weights); entities that join have weight 1. If no
feature has a positive strength, as in a query of negative weights alone, the
largest strengths by magnitude are kept.

Features can be any columns of counts; `repr_jax.data.entities.skip_grams`
makes the original ones. Rounds run in one program: the number of entities that
can join has a bound, as reciprocal ranks of a subset sum to a harmonic number.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax

from repr_jax.errors import InputError
from repr_jax.setexp import feature_scores
from repr_jax.setexp.baselines import postings as posting_lib
from repr_jax.setexp.baselines import setexpan_round as rounds
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


class Config(NamedTuple):
  """Settings, with the values of Shen et al.

  Attributes:
    features: context features kept in a round.
    samples: subsets T.
    ratio: share of the kept features in a subset, 0 to 1.
    rank: mean rank that an entity must beat to join.
    iterations: rounds at most.
    candidates: entities that are ranked in a round, the most similar on all
      kept features.
    seed: of the subsets.
  """

  features: int = 150
  samples: int = 60
  ratio: float = 0.6
  rank: float = 5.0
  iterations: int = 3
  candidates: int = 1000
  seed: int = 0


_DEFAULT = Config()


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Model:
  """Weighted features by entity and by feature.

  Attributes:
    rows: f_ec, [X, F].
    postings: the same by feature, [F, X].
    idf: log X - log of a feature's total count, 0 or more, [F].
    subset: size of a subset if 0 to k features are kept, int32 [k + 1].
    key: random key of the subsets.
    config: settings, static.
  """

  rows: Postings
  postings: Postings
  idf: Any
  subset: Any
  key: jax.Array
  config: Config = dataclasses.field(metadata={"static": True})

  @property
  def newcomers(self) -> int:
    """Entities that can join in a round, at most."""
    depth = min(rounds.DEPTH, self.config.candidates, self.postings.width)
    harmonic = float((1 / np.arange(1, depth + 1)).sum())
    most = int(self.config.rank * harmonic)
    return max(1, min(most, self.config.candidates, self.postings.width))


class _State(NamedTuple):
  """A set that grows, and the last round."""

  turn: jax.Array  # rounds so far
  done: jax.Array
  joined: jax.Array  # scores of entities that joined, 0 for others [X]
  outside: jax.Array  # whether an entity is not in the set [X]
  new: jax.Array  # entities that joined, -1 for none [c]
  ranks: jax.Array  # mean reciprocal ranks [X]
  similar: jax.Array  # similarity on all kept features [X]
  kept: jax.Array  # features, F for none [k]
  strengths: jax.Array  # of these [k]
  members: jax.Array  # weighted kept features of the set [m, k]
  trust: jax.Array  # weights of the set [m]
  part_features: jax.Array  # features of the watched entity's parts [k]
  parts: jax.Array  # parts of its score [k]
  constant: jax.Array  # part of its round


def fit(counts: Any, config: Config = _DEFAULT) -> Model:
  """Weighs the features, on the host.

  >>> import scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
  >>> setexp.setexpan_fit(counts).idf.round(2).tolist()
  [0.40..., 0.0]

  Args:
    counts: context counts, [X, F], not negative.
    config: settings.

  Returns:
    The model.
  """
  counts = read_counts(counts, "SetExpan")
  check(config)
  total = counts.sum(axis=0, dtype=np.float64)
  idf = np.log(counts.shape[0]) - np.log(np.maximum(total, 1e-30))
  shared = np.bincount(counts.indices, minlength=counts.shape[1]) >= 2
  # min / max needs nonnegative weights: a negative idf drops the feature.
  idf = (np.maximum(idf, 0) * shared * (total > 0)).astype(np.float32)
  values = np.log1p(counts.data) * idf[counts.indices]
  weights = sp.csr_array(
    (values, counts.indices, counts.indptr), counts.shape, copy=True
  )
  weights.eliminate_zeros()
  if not weights.nnz:
    # No feature tells entities apart; postings need at least one entry.
    weights = sp.csr_array(([0.0], ([0], [0])), counts.shape, np.float32)
  size = min(config.features, counts.shape[1])
  subset = np.ceil(config.ratio * np.arange(size + 1)).astype(np.int32)
  return Model(
    posting_lib.from_scipy(weights),
    posting_lib.from_scipy(sp.csr_array(weights.T)),
    jnp.asarray(idf),
    jnp.asarray(subset),
    jax.random.key(config.seed),
    config._replace(seed=0, ratio=0.0),
  )


def check(config: Config) -> None:
  """Raises `InputError` for invalid settings."""
  whole = (
    config.features, config.samples, config.iterations, config.candidates
  )  # fmt: skip
  if min(whole) < 1 or not 0 < config.ratio <= 1 or not config.rank >= 1:
    raise InputError(f"SetExpan cannot work with {config}")


def score(model: Model, query: PaddedQuery) -> jax.Array:
  """Scores all entities by the round they joined in and reciprocal rank.

  >>> import jax.numpy as jnp, scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
  >>> model = setexp.setexpan_fit(counts)
  >>> rows = setexp.rows_from_dense(counts.toarray())
  >>> query = setexp.query_of_rows(rows, jnp.array([0]), jnp.array([1.0]))
  >>> setexp.setexpan_score(model, query).tolist()
  [5.0, 4.0, -1.0]

  Args:
    model: from `fit`.
    query: members with weights.

  Returns:
    Scores, [X]: above 1 for entities that joined the set, in (0, 1] for
    ranked ones, in [-2, 0] for others; members of the query lead.
  """
  last = _expand(model, query, jnp.int32(-1))
  scores = jnp.where(last.ranks > 0, last.ranks, last.similar - 1)
  scores = jnp.where(last.joined > 0, last.joined, scores)
  return _put_members(scores, query, model.config.iterations + 2)


def score_rows(model: Model, query: PaddedQuery, rows: Rows) -> jax.Array:
  """Mean similarities [s] of rows to the set that the query grew to.

  They are computed on the features that the last round kept.
  """
  last = _expand(model, query, jnp.int32(-1))
  rows = clean_rows(rows, model.idf.shape[0])
  values = jnp.log1p(rows.counts) * model.idf[rows.indices]
  slot = rounds.slots(last.kept, model.idf.shape[0])[rows.indices]
  place = jnp.where(values > 0, slot, len(last.kept))
  table = jnp.zeros((len(values), len(last.kept)), model.idf.dtype)
  table = table.at[jnp.arange(len(values))[:, None], place].add(
    values.astype(table.dtype), mode="drop"
  )
  every = (last.kept < model.idf.shape[0]).astype(table.dtype)[:, None]
  return rounds.similarity(table, last.members, last.trust, every)[:, 0]


def contributions(
  model: Model, query: PaddedQuery, entity: jax.Array
) -> Contributions:
  """Splits the score of an entity over features.

  >>> import jax.numpy as jnp, scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
  >>> model = setexp.setexpan_fit(counts)
  >>> rows = setexp.rows_from_dense(counts.toarray())
  >>> query = setexp.query_of_rows(rows, jnp.array([0]), jnp.array([1.0]))
  >>> float(setexp.setexpan_contributions(model, query, 1).total)
  4.0

  Args:
    model: from `fit`.
    query: the query.
    entity: its row, int32 [].

  Returns:
    The reciprocal rank in each subset, divided among the subset's features in
    proportion to their parts of the similarity. An entity without a rank has
    parts of its similarity and the constant -1; one that joined has the number
    of rounds left.
  """
  last = _expand(model, query, jnp.asarray(entity))
  return of_features(last.part_features, last.parts)._replace(
    constant=last.constant
  )


def rationale(model: Model, query: PaddedQuery) -> jax.Array:
  """Strengths of the features that the last round kept, 0 elsewhere, [F]."""
  last = _expand(model, query, jnp.int32(-1))
  weights = jnp.zeros_like(model.idf)
  return weights.at[last.kept].set(last.strengths, mode="drop")


def _put_members(values, query, value):
  """The values [X] with another value for the query's members."""
  ids, weights = jnp.asarray(query.ids), jnp.asarray(query.weights)
  own = jnp.where((ids >= 0) & (weights != 0), ids, values.shape[0])
  return values.at[own].set(value, mode="drop")


def _expand(model: Model, query: PaddedQuery, watched: jax.Array) -> _State:
  """Runs all rounds and splits the watched entity's score; -1 for none."""
  config, size = model.config, model.postings.width
  features, dtype = model.idf.shape[0], model.idf.dtype
  weights = jnp.asarray(query.weights).astype(dtype)
  entries = feature_scores.clean_entries(query.entries, weights, features)
  inside = jnp.minimum(entries.feature, features - 1)
  values = jnp.log1p(entries.count.astype(dtype)) * model.idf[inside]
  k = model.subset.shape[0] - 1
  turns = config.iterations
  capacity = model.newcomers * max(turns - 1, 1)
  outside = _put_members(jnp.ones(size, bool), query, False)
  zeros = jnp.zeros(size, dtype)
  state = _State(
    jnp.int32(0), jnp.bool_(False), zeros, outside,
    jnp.full(capacity, -1, jnp.int32), zeros, zeros,
    jnp.full(k, features, jnp.int32), jnp.zeros(k, dtype),
    jnp.zeros((len(weights) + capacity, k), dtype),
    jnp.zeros(len(weights) + capacity, dtype),
    jnp.full(k, features, jnp.int32), jnp.zeros(k, dtype),
    jnp.asarray(turns + 2, dtype),
  )  # fmt: skip

  def one_round(state: _State) -> _State:
    joined = (state.new >= 0).astype(dtype)
    trust = jnp.concatenate([weights, joined])
    kept, strengths = rounds.select(
      model, entries, weights[entries.member] * values, state.new
    )
    slots = rounds.slots(kept, features)
    members = jnp.zeros_like(state.members)
    members = members.at[entries.member, slots[inside]].add(
      jnp.where(entries.feature < features, values, 0), mode="drop"
    )

    def place_row(members, row, place, used):
      slot = jnp.where(used, slots[model.rows.items[place]], k)
      return members.at[len(weights) + row, slot].set(
        model.rows.values[place], mode="drop"
      )

    members = posting_lib.walk(model.rows.starts, state.new, place_row, members)
    key = jax.random.fold_in(model.key, state.turn)
    ranks, similar, parts = rounds.rank(
      model, kept, members, trust, state.outside, key, watched
    )
    looking = (watched >= 0) & state.outside[watched]
    new = ranks > 1 / config.rank
    stop = (state.turn + 1 == turns) | ~jnp.any(new)
    left = (turns - state.turn).astype(dtype)
    joins = new & ~stop
    rank = jnp.where(ranks[watched] > 0, 0, -1)
    constant = jnp.where(joins[watched], left, rank).astype(dtype)
    chosen = jnp.nonzero(joins, size=model.newcomers, fill_value=-1)[0]
    start = jnp.minimum(state.turn * model.newcomers, capacity)
    more = lax.dynamic_update_slice(
      state.new, chosen.astype(jnp.int32), (start,)
    )
    return _State(
      state.turn + 1,
      stop,
      jnp.where(joins, left + ranks, state.joined),
      state.outside & ~joins,
      jnp.where(stop, state.new, more),
      ranks,
      similar,
      kept,
      strengths,
      members,
      trust,
      jnp.where(looking, kept, state.part_features),
      jnp.where(looking, parts, state.parts),
      jnp.where(looking, constant, state.constant),
    )

  return lax.while_loop(lambda state: ~state.done, one_round, state)


SETEXPAN = Baseline(
  "setexpan",
  lambda counts, seed: fit(counts, Config(seed=seed)),
  score,
  score_rows,
  contributions,
  rationale,
  batched=False,
)
