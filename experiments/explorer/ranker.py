"""All systems of a model, ready to answer many queries at once.

Whatever JAX compiles has one of few shapes: queries are padded to one number
of members, and to few numbers of queries and one of sentences. `warm` runs each
of them once, and from then on no query compiles anything.
"""

import dataclasses
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import NamedTuple

import jax
import numpy as np
import scipy.sparse as sp

from experiments.run.expander import Expander
from repr_jax import setexp
from repr_jax.errors import InputError
from repr_jax.setexp import systems
from repr_jax.setexp.query import Query, best, exclude, make_query
from repr_jax.setexp.rows import padded_length

LARGEST = 64  # Queries that are answered at once.
_SIZES = (1, 8, 32, LARGEST)
_ROWS = 256  # Sentences that are scored at once.
_ROW_WIDTH = 128  # Features of a sentence; longer ones are rare.
_ENTRIES = 2048  # Feature counts of a query's members; larger ones are rare.
_OWN = "nvse"
_FUSED = "nvse+bm25"


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
    rankings: Sequence[str] = setexp.SCORES,
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
    self._width = padded_length(members, 4)
    self._rankings = {
      name: dataclasses.replace(self._how, score=name) for name in self.rankings
    }
    self._own = {
      name: systems.nvse(
        self.model, ranking, members=self._width, entries=_ENTRIES,
        row_width=_ROW_WIDTH,
      )
      for name, ranking in self._rankings.items()
    }  # fmt: skip
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

  def ask(self, rows: Sequence[int], weights: Sequence[float]) -> Query:
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
    return make_query(table.counts, np.asarray(rows, np.int32), weights)

  def top(
    self, system: str, ranking: str, asked: Sequence[Query], k: int
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
      return self._top_own(self._rankings[ranking], asked, k)
    answers = []
    for query in asked:
      scores = np.asarray(self._others[system].score_batch([query])[0])
      rows = best(exclude(scores, query), k)
      answers.append(Top(rows, scores[rows]))
    return answers

  def _top_own(
    self, ranking: systems.RankingConfig, asked: Sequence[Query], k: int
  ) -> list[Top]:
    """The autoencoder's answers, padded to a number of `_SIZES`."""
    padded = setexp.pad_queries(
      self.model,
      asked,
      size=next(n for n in _SIZES if n >= len(asked)),
      members=self._width,
      entries=_ENTRIES,
    )
    k = min(k, len(self.table.entities))
    best_ones = setexp.expand(self.model, padded, ranking.traced(), k)
    ids, scores = map(np.asarray, best_ones)
    there = scores > -np.inf
    return [
      Top(ids[i][there[i]], scores[i][there[i]]) for i in range(len(asked))
    ]

  def rationale(
    self, system: str, ranking: str, asked: Query, relative: bool
  ) -> np.ndarray:
    """Weights of all features for a query, [F]."""
    if system in (_OWN, _FUSED):
      return np.asarray(
        setexp.decoder_rationale(self.model, self._padded(asked), relative)
      )
    return self._others[system].rationale(asked)

  def contributions(
    self, system: str, ranking: str, asked: Query, row: int
  ) -> setexp.Contributions:
    """Parts that sum to the score of an entity; see `System`."""
    own = self._own[ranking] if system == _OWN else self._others[system]
    return own.contributions(asked, row)

  def score_rows(
    self, system: str, ranking: str, asked: Query, rows: sp.csr_array
  ) -> np.ndarray:
    """Scores [s] of sentences by their features [s, F]."""
    own = self._own[ranking] if system == _OWN else self._others[system]
    scores = [np.zeros(0, np.float32)]
    for start in range(0, rows.shape[0], _ROWS):
      part = sp.csr_array(rows[start : start + _ROWS])
      count = part.shape[0]
      scores.append(own.score_rows(asked, _pad_rows(part, _ROWS))[:count])
    return np.concatenate(scores)

  def concept(self, asked: Query) -> np.ndarray:
    """The mean of the query's product of Gaussians, [d]."""
    posterior = setexp.query_posterior(self.model, self._padded(asked))
    return np.asarray(posterior.xi / posterior.precision)

  def warm(self, k: int) -> None:
    """Runs every program once.

    Args:
      k: entities of an answer, the same in all of them.
    """
    rows = np.flatnonzero(np.diff(self.table.counts.indptr))[:2]
    if not rows.size:
      raise InputError("no entity of the model has a feature")
    asked = self.ask(rows.tolist(), [1.0] * len(rows))
    self.rationale(_OWN, self.ranking, asked, False)
    self.concept(asked)
    ways = [(_OWN, ranking) for ranking in self.rankings]
    ways += [(system, "") for system in self.systems if system != _OWN]

    def run(way: tuple[str, str]) -> None:
      # All rankings of the autoencoder share their programs.
      first = way == (_OWN, self.rankings[0])
      for size in _SIZES if first else (1,):
        self.top(*way, [asked] * size, k)
      self.score_rows(*way, asked, self.table.counts[rows[:1]])

    # A program is compiled by one thread: two cores take half the time.
    with futures.ThreadPoolExecutor(2) as pool:
      list(pool.map(run, ways))

  def _padded(self, query: Query) -> setexp.PaddedQuery:
    padded = setexp.pad_queries(
      self.model, [query], members=self._width, entries=_ENTRIES
    )
    return jax.tree.map(lambda x: x[0], padded)


def _pad_rows(rows: sp.csr_array, size: int) -> sp.csr_array:
  """The same rows and empty ones after them."""
  starts = np.pad(rows.indptr, (0, size - rows.shape[0]), mode="edge")
  return sp.csr_array((rows.data, rows.indices, starts), (size, rows.shape[1]))
