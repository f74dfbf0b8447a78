"""All systems of a model, ready to answer many queries at once.

Compiled programs have few shapes: queries are padded to one number of members
and one or two numbers of feature counts, calls to few numbers of queries, and
sentences to two lengths. `warm_up` runs each shape once; afterwards no query
compiles a program.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse as sp

from experiments.run.expander import Expander, set_chances
from repr_jax import setexp
from repr_jax.errors import InputError
from repr_jax.setexp import systems
from repr_jax.setexp.autoencoder import bm25_weights
from repr_jax.setexp.query import Query, best, exclude
from repr_jax.setexp.rows import padded_length

# Queries in one call. With 64, weights of 100,000 features outgrow the cache,
# and each query takes a third longer.
MAX_BATCH = 32
_BATCHES = (1, 8, MAX_BATCH)
_ENTRIES = 2048  # Feature counts of a query; larger queries are ranked alone.
_WIDTH = 128  # Features of a sentence; longer ones are scored apart.
_CELLS = 32768  # Sentences in one call times their width.
_LINES = 5  # lines on the progress of the warm-up
_OWN, _FUSED = "nvse", "nvse+bm25"


class Ranked(NamedTuple):
  """The best entities of a query: rows [k] and scores [k], best first."""

  rows: np.ndarray
  scores: np.ndarray


class Ranker:
  """The systems of a model, by name.

  Attributes:
    table: features, names and sentences of the entities.
    model: the autoencoder.
    systems: names of the systems, the autoencoder first.
    rankings: scores that the autoencoder can rank by.
    ranking: the one that it ranks by unless a request names another.
    members: most entities in a query.
  """

  def __init__(
    self,
    opened: Expander,
    baselines: Sequence[str] = systems.BASELINES,
    members: int = 100,
    say: Callable[[str], None] = lambda text: None,
  ):
    """Fits the systems.

    Args:
      baselines: names of those to fit; word2vecf only if the model's
        directory has its vectors, since they take long to train.
      members: most entities in a query.
    """
    self.table = opened.table
    self.model = opened.model
    self.members = members
    self.ranking = opened.ranking.score
    self._chances = dict(opened.chances)
    self.rankings = setexp.SCORES
    self._rankings = {
      score: dataclasses.replace(opened.ranking, score=score).traced()
      for score in self.rankings
    }
    self._width = padded_length(members, 4)
    sizes = np.sort(np.diff(self.table.counts.indptr))
    self._entries = padded_length(int(sizes[-members:].sum()), _ENTRIES)
    opened.shape = systems.Shape(self._width, _ENTRIES, _WIDTH)
    fitted: dict[str, systems.System] = {}
    for name in baselines:
      if name == "word2vecf" and opened.vectors is None:
        say("word2vecf has no vectors in the model's directory: left out")
        continue
      fitted[name] = opened.system(name)
      say(f"{name} is fitted")
    tokens = int(np.diff(self.table.sentences.starts).max(initial=0))
    # Two features for each token at most, and the document.
    self._longest = padded_length(2 * tokens + 1, 2 * _WIDTH)
    self._systems = self._all_systems(opened, fitted, _WIDTH)
    self._for_long_rows = self._all_systems(opened, fitted, self._longest)
    self.systems = tuple(dict.fromkeys(name for name, _ in self._systems))

  def _all_systems(
    self, opened: Expander, fitted: dict[str, systems.System], row_width: int
  ) -> dict[tuple[str, str], systems.System]:
    """Systems by name and ranking, whose rows are padded to one width."""
    own = {
      score: systems.nvse(
        self.model,
        dataclasses.replace(opened.ranking, score=score),
        shape=systems.Shape(self._width, self._entries, row_width),
      )
      for score in self.rankings
    }
    bound = {(_OWN, score): own[score] for score in self.rankings}
    bound |= {(name, ""): system for name, system in fitted.items()}
    if "bm25" in fitted:
      bound[_FUSED, ""] = systems.fuse(
        own[self.ranking], fitted["bm25"], opened.fusion
      )
    return bound

  def query(self, rows: Sequence[int], weights: Sequence[float]) -> Query:
    """A query of entities of the table.

    Raises:
      InputError: the query cannot be asked.
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
    return setexp.make_query(table.counts, np.asarray(rows, np.int32), weights)

  def rank(
    self, system: str, ranking: str, queries: Sequence[Query], k: int
  ) -> list[Ranked]:
    """The best entities of several queries of one system.

    Args:
      system: one of `systems`.
      ranking: one of `rankings` for the autoencoder, "" for others.
      queries: at most `MAX_BATCH`.
      k: entities for each.

    Returns:
      The entities of each query; its members are never among them.
    """
    if system == _OWN:
      return self._rank_own(ranking, queries, k)
    ranked = []
    for query in queries:
      scores = self._systems[system, ranking].score_batch([query])[0]
      rows = best(exclude(np.asarray(scores), query), k)
      ranked.append(Ranked(rows, scores[rows]))
    return ranked

  def contributions(
    self, system: str, ranking: str, query: Query, rows: Sequence[int]
  ) -> list[setexp.Contributions]:
    """Parts that sum to the score of each entity of `rows`."""
    return self._systems[system, ranking].contributions(query, rows)

  def features(self, system: str) -> Sequence[str]:
    """Names of the features that the parts of a system's scores belong to."""
    ranking = self.ranking if system == _OWN else ""
    own = self._systems[system, ranking].features
    return self.table.features if own is None else own

  def score_rows(
    self, system: str, ranking: str, query: Query, rows: sp.csr_array
  ) -> np.ndarray:
    """Scores [s] of sentences by their features [s, F]."""
    scores = np.zeros(rows.shape[0], np.float32)
    long = np.diff(rows.indptr) > _WIDTH
    for chosen, width, bound in (
      (~long, _WIDTH, self._systems),
      (long, self._longest, self._for_long_rows),
    ):
      places = np.flatnonzero(chosen)
      size = max(1, _CELLS // width)
      for start in range(0, len(places), size):
        block = places[start : start + size]
        part = _pad_rows(rows[block], size)
        values = bound[system, ranking].score_rows(query, part)
        scores[block] = values[: len(block)]
    return scores

  def chances(
    self, system: str, ranking: str, query: Query
  ) -> tuple[np.ndarray | None, int | None]:
    """Chances [X] of all entities and the size of the set.

    None and None for a system, or a ranking of the autoencoder, that no
    chances were fitted for.
    """
    usual = ranking == self.ranking if system == _OWN else True
    weights = self._chances.get(system) if usual else None
    if weights is None:
      return None, None
    scores = self._systems[system, ranking].score_batch([query])[0]
    return set_chances(weights, np.asarray(scores), query)

  @property
  def with_chances(self) -> list[str]:
    """Systems that chances were fitted for."""
    return [name for name in self.systems if name in self._chances]

  def own_features(self, row: int) -> np.ndarray:
    """Weights [F] of an entity's own features, as in BM25."""
    counts = self.table.counts
    start, end = counts.indptr[row : row + 2]
    places = counts.indices[start:end]
    weights = np.zeros(counts.shape[1], np.float32)
    inputs = self.model.lexical
    values = np.asarray(counts.data[start:end], np.float32)
    weights[places] = bm25_weights(
      values, np.asarray(inputs.idf)[places], values.sum(),
      float(inputs.mean_length),
    )  # fmt: skip
    return weights

  def concept(self, query: Query) -> np.ndarray:
    """The mean of the query's product of Gaussians, [d]."""
    posterior = setexp.query_posterior(self.model, self._pad_one(query))
    return np.asarray(posterior.xi / posterior.precision)

  def concept_features(self, query: Query, relative: bool) -> np.ndarray:
    """The decoder at the query's concept, [F]; see `decoder_rationale`."""
    padded = self._pad_one(query)
    return np.asarray(setexp.decoder_rationale(self.model, padded, relative))

  def warm_up(
    self, k: int, say: Callable[[str], None] = lambda text: None
  ) -> None:
    """Runs every shape of every program once.

    Args:
      k: entities of an answer, the same in all calls.
    """
    sizes = np.diff(self.table.counts.indptr)
    if not sizes.any():
      raise InputError("no entity of the model has a feature")
    row = int(np.argmax(sizes))
    query = self.query([row], [1.0])
    partial = functools.partial
    tasks: list[Callable[[], Any]] = [
      partial(self._expand, self.ranking, [query] * size, _ENTRIES, k)
      for size in _BATCHES
    ]
    tasks += [
      partial(self._expand, self.ranking, [query], self._entries, k),
      partial(self.concept, query),
      partial(self.concept_features, query, relative=True),
      partial(self.contributions, _OWN, self.ranking, query, [row]),
    ]
    # The autoencoder's rankings share their programs.
    others = [x for x in self.systems if x not in (_OWN, _FUSED)]
    for system in others:
      tasks += [
        partial(self.rank, system, "", [query], k),
        partial(self.contributions, system, "", query, [row]),
      ]
    if _FUSED in self.systems:
      tasks.append(partial(self.rank, _FUSED, "", [query], k))
    shape = 1, len(self.table.features)
    for width in (1, self._longest):
      data, columns = np.ones(width, np.float32), np.arange(width) % shape[1]
      rows = sp.csr_array((data, columns, [0, width]), shape)
      tasks.append(partial(self.score_rows, _OWN, self.ranking, query, rows))
      tasks += [
        partial(self.score_rows, system, "", query, rows) for system in others
      ]
    for system in self._chances:
      if system in self.systems:
        ranking = self.ranking if system == _OWN else ""
        tasks.append(partial(self.chances, system, ranking, query))
    # One thread compiles one program: two cores take half the time.
    step = -(-len(tasks) // _LINES)
    with futures.ThreadPoolExecutor(2) as pool:
      running = [pool.submit(task) for task in tasks]
      for done, each in enumerate(futures.as_completed(running), 1):
        each.result()
        if done % step == 0 or done == len(tasks):
          say(f"{done} of {len(tasks)} programs are ready")

  def _rank_own(
    self, ranking: str, queries: Sequence[Query], k: int
  ) -> list[Ranked]:
    small = [i for i, x in enumerate(queries) if x.rows.nnz <= _ENTRIES]
    ranked: dict[int, Ranked] = {}
    if small:
      batch = [queries[i] for i in small]
      ranked |= dict(zip(small, self._expand(ranking, batch, _ENTRIES, k)))
    for i, query in enumerate(queries):
      if i not in ranked:
        (ranked[i],) = self._expand(ranking, [query], self._entries, k)
    return [ranked[i] for i in range(len(queries))]

  def _expand(
    self, ranking: str, queries: Sequence[Query], entries: int, k: int
  ) -> list[Ranked]:
    padded = setexp.pad_queries(
      self.model,
      queries,
      size=next(n for n in _BATCHES if n >= len(queries)),
      members=self._width,
      entries=entries,
    )
    k = min(k, len(self.table.entities))
    expanded = setexp.expand(self.model, padded, self._rankings[ranking], k)
    ids, scores = map(np.asarray, expanded)
    valid = scores > -np.inf
    return [
      Ranked(ids[i][valid[i]], scores[i][valid[i]]) for i in range(len(queries))
    ]

  def _pad_one(self, query: Query) -> setexp.PaddedQuery:
    padded = setexp.pad_queries(
      self.model, [query], members=self._width, entries=self._entries
    )
    return jax.tree.map(lambda x: x[0], padded)


def _pad_rows(rows: sp.csr_array, size: int) -> sp.csr_array:
  """The same rows, and empty ones after them."""
  starts = np.pad(rows.indptr, (0, size - rows.shape[0]), mode="edge")
  return sp.csr_array((rows.data, rows.indices, starts), (size, rows.shape[1]))
