"""All systems of a model, ready to answer many queries at once.

Whatever JAX compiles has one of few shapes: queries are padded to one number
of members, and to few numbers of queries and one of sentences. `warm` runs each
of them once, and from then on no query compiles anything.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from experiments.run.expander import Expander
from repr_jax.errors import InputError
from repr_jax.setexp import (
  batches,
  expansion,
  feature_scores,
  feature_scores_batch,
  systems,
)
from repr_jax.setexp.query import Query, best, exclude, make_query

LARGEST = 64  # Queries that are answered at once.
_SIZES = (1, 8, LARGEST)
_ROWS = 256  # Sentences that are scored at once.
_OWN = "nvse"
_FUSED = "nvse+bm25"


class Asked(NamedTuple):
  """A query as it is; `width` is the number of members to pad it to."""

  plain: Query
  width: int

  def padded(self) -> Query:
    """The query with members of weight 0 up to its width."""
    return _pad(self.plain, self.width)


class Top(NamedTuple):
  """The best entities of a query: rows [k] and scores [k], best first."""

  rows: np.ndarray
  scores: np.ndarray


class Ranker:
  """The systems that a model directory has, each under one name.

  Attributes:
    table: features, names and sentences of the entities.
    model: the autoencoder.
    systems: names of the systems, the autoencoder first.
    rankings: scores that the autoencoder can rank by.
    ranking: the one that it ranks by unless told.
    members: most entities in a query.
  """

  def __init__(
    self,
    opened: Expander,
    baselines: Sequence[str] = systems.BASELINES,
    members: int = 100,
    rankings: Sequence[str] = systems.RANKINGS,
    say: Callable[[str], None] = lambda text: None,
  ):
    """Fits the systems.

    Args:
      opened: the model.
      baselines: those to fit; word2vecf only where the model directory has
        its vectors, since they take long to train.
      members: most entities in a query.
      rankings: scores that the autoencoder can rank by, its usual one among
        them.
      say: called with a line of text when something was done.
    """
    for name in baselines:
      if name not in systems.BASELINES:
        raise InputError(
          f"--baselines: there is no {name!r}; there are "
          f"{', '.join(systems.BASELINES)}"
        )
    self.table = opened.table
    self.model = opened.model
    self.members = members
    self.ranking = opened.ranking.score
    self.rankings = tuple(rankings)
    self._how = opened.ranking
    self._width = batches.padded_length(members, 4)
    self._own: dict[str, systems.System] = {}
    self._tops: dict[str, Callable[[Sequence[Asked], int], list]] = {}
    for ranking in self.rankings:
      self._fit_own(ranking)
    self._others: dict[str, systems.System] = {}
    for name in baselines:
      if name == "word2vecf" and opened.vectors is None:
        say("word2vecf has no vectors in the model directory: left out")
        continue
      self._others[name] = opened.system(name)
      say(f"{name} is fitted")
    if "bm25" in self._others:
      self._others[_FUSED] = systems.fuse(
        self._own[self.ranking], self._others["bm25"], opened.fusion
      )
    self.systems = (_OWN, *self._others)

  def _fit_own(self, ranking: str) -> None:
    """Fits the autoencoder with one of its ranking scores."""
    how = dataclasses.replace(self._how, score=ranking)
    if ranking == "decoded":
      fitted = feature_scores.fit(
        self.model, self.table.counts, how.power, how.pooling, how.own
      )
      batch = feature_scores_batch.prepare(fitted, self._width)
      self._tops[ranking] = functools.partial(_decoded, batch)
      self._own[ranking] = systems.System(
        _OWN,
        functools.partial(feature_scores.score_batch, fitted),
        functools.partial(feature_scores.score_rows, fitted),
        functools.partial(expansion.rationale, self.model),
      )
    else:
      model = expansion.with_ranking(self.model, ranking, how.normalize)
      system = systems.nvse(model, self.table.counts, how)
      self._own[ranking] = system
      self._tops[ranking] = functools.partial(_nearest, model)

  def ask(self, rows: Sequence[int], weights: Sequence[float]) -> Asked:
    """A query of entities of the table.

    Args:
      rows: its members.
      weights: of each.

    Returns:
      The query; what cannot be asked is an `InputError`.
    """
    if len(rows) > self.members:
      raise InputError(
        f"the query has {len(rows)} entities, {self.members} are allowed"
      )
    table = self.table
    for row in rows:
      if table.counts.indptr[row] == table.counts.indptr[row + 1]:
        raise InputError(
          f"{table.names[row]} has no features in this model: leave it out"
        )
    plain = make_query(table.counts, np.asarray(rows, np.int32), weights)
    return Asked(plain, self._width)

  def top(
    self, system: str, ranking: str, asked: Sequence[Asked], k: int
  ) -> list[Top]:
    """The best entities of several queries of one system.

    Args:
      system: one of `systems`.
      ranking: one of `rankings`; only the autoencoder has several.
      asked: the queries, at most `LARGEST`.
      k: entities for each.

    Returns:
      The entities of each query; its members are never among them.
    """
    if system == _OWN:
      return [
        Top(found.ids[:k], found.scores[:k])
        for found in self._tops[ranking](asked, k)
      ]
    found = []
    for query in asked:
      chosen = self._shape(system, query)
      scores = np.asarray(self._others[system].score_batch([chosen])[0])
      rows = best(exclude(scores, chosen), k)
      found.append(Top(rows, scores[rows]))
    return found

  def rationale(
    self, system: str, ranking: str, asked: Asked, relative: bool
  ) -> np.ndarray:
    """Weights of all features for a query, [F]; see `expand.rationale`."""
    query = self._shape(system, asked)
    if system in (_OWN, _FUSED):
      return expansion.rationale(self.model, query, relative)
    return self._others[system].rationale(query)

  def score_rows(
    self, system: str, ranking: str, asked: Asked, rows: sp.csr_array
  ) -> np.ndarray:
    """Scores [s] of sentences by their features [s, F]."""
    own = system == _OWN
    found = self._own[ranking] if own else self._others[system]
    query = self._shape(system, asked)
    scores = [np.zeros(0, np.float32)]
    for start in range(0, rows.shape[0], _ROWS):
      part = sp.csr_array(rows[start : start + _ROWS])
      count = part.shape[0]
      scores.append(found.score_rows(query, _pad_rows(part, _ROWS))[:count])
    return np.concatenate(scores)

  def concept(self, asked: Asked) -> np.ndarray:
    """The mean of the query's product of Gaussians, [d]."""
    query = asked.plain
    xi, precision = (np.asarray(x)[:, query.ids] for x in self.model.entities)
    return (xi @ query.weights) / (precision @ np.abs(query.weights))

  def warm(self, k: int) -> None:
    """Runs every program once.

    Args:
      k: entities of an answer, the same in all of them.
    """
    rows = np.flatnonzero(np.diff(self.table.counts.indptr))[:2]
    if not rows.size:
      raise InputError("no entity of the model has a feature")
    asked = self.ask(rows.tolist(), [1.0] * len(rows))
    for relative in (False, True):
      self.rationale(_OWN, self.ranking, asked, relative)
    ways = [(_OWN, ranking) for ranking in self.rankings]
    ways += [(system, "") for system in self.systems if system != _OWN]

    def run(way: tuple[str, str]) -> None:
      sizes: Sequence[int] = _SIZES if way[0] == _OWN else (1,)
      if way[1] == "decoded":
        sizes = (1, *feature_scores_batch.SIZES)
      for size in sizes:
        self.top(*way, [asked] * size, k)
      self.score_rows(*way, asked, self.table.counts[rows[:1]])

    # A program is compiled by one thread: two cores take half the time.
    with futures.ThreadPoolExecutor(2) as pool:
      list(pool.map(run, ways))

  def _shape(self, system: str, asked: Asked) -> Query:
    return asked.padded() if system in (_OWN, _FUSED) else asked.plain


def _decoded(
  batch: feature_scores_batch.Batch, asked: Sequence[Asked], k: int
) -> list[expansion.Answer]:
  """Answers by decoded features; a call for many pads what it needs."""
  many = len(asked) >= feature_scores_batch.LEAST
  queries = [query.plain if many else query.padded() for query in asked]
  return feature_scores_batch.expand_batch(batch, queries, k)


def _nearest(
  model: expansion.Model, asked: Sequence[Asked], k: int
) -> list[expansion.Answer]:
  """Answers by a score between Gaussians, padded to a size of `_SIZES`."""
  size = next(n for n in _SIZES if n >= len(asked))
  queries = [query.padded() for query in asked]
  padded = [*queries, *[queries[-1]] * (size - len(queries))]
  return expansion.expand_batch(model, padded, k)[: len(queries)]


def _pad(query: Query, width: int) -> Query:
  """The first member again and again, with weight 0 and no features."""
  more = width - len(query.weights)
  return Query(
    _pad_rows(query.rows, width),
    np.pad(query.weights, (0, more)),
    np.append(query.ids, np.repeat(query.ids[:1], more)),
  )


def _pad_rows(rows: sp.csr_array, size: int) -> sp.csr_array:
  """The same rows and empty ones after them."""
  starts = np.pad(rows.indptr, (0, size - rows.shape[0]), mode="edge")
  return sp.csr_array((rows.data, rows.indices, starts), (size, rows.shape[1]))
