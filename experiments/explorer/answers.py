"""What the explorer answers, as values that JSON can hold."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.explorer.concepts import Concepts, named
from experiments.explorer.entities import Entities
from experiments.explorer.ranker import Ranker, Top
from repr_jax.data.entities import features
from repr_jax.errors import InputError
from repr_jax.setexp import explain
from repr_jax.setexp.query import Query

MAX_RESULTS = 100
_RELEVANT = 40  # Features whose words are marked in sentences.

_LABELS = {
  "nvse": "NVSE",
  "nvse+bm25": "NVSE + BM25",
  "bm25": "BM25",
  "bernoulli": "Bayesian Sets (binary)",
  "poisson": "Bayesian Sets (Poisson)",
  "gaussian": "Bayesian Sets (Gaussian)",
  "word2vecf": "word2vecf",
  "setexpan": "SetExpan",
}
_RANKINGS = {
  "features": "features",
  "xi": "natural parameters",
  "kl_query": "KL from query",
  "kl_entity": "KL from entity",
  "kl_symmetric": "KL, both ways",
  "product_kernel": "product kernel",
  "mean": "means",
  "bayes": "evidence ratio",
}


class Question(NamedTuple):
  """A query as a request puts it: ids with weights, and whom to ask."""

  members: tuple[tuple[str, float], ...]
  system: str
  ranking: str


class Answers:
  """Answers about one model.

  Attributes:
    entities: its entities, to be found.
  """

  def __init__(self, ranker: Ranker):
    """Prepares what all answers share.

    Args:
      ranker: the systems.
    """
    self._ranker = ranker
    self._table = ranker.table
    self.entities = Entities(ranker.table, ranker.members)
    used = np.diff(ranker.table.counts.indptr) > 0
    self._concepts = Concepts(ranker.model, ranker.table.features, used)
    self._model = self._describe()

  def model(self) -> dict[str, Any]:
    """What there is: systems, ranking scores, limits, two example queries."""
    return self._model

  def question(
    self,
    members: tuple[tuple[str, float], ...],
    system: str,
    ranking: str,
  ) -> Question:
    """A question to a system that is there.

    Args:
      members: ids with weights.
      system: one of the model's.
      ranking: of nvse, "" for its usual one; others have only one.
    """
    if system not in self._ranker.systems:
      raise InputError(
        f"{system} is not fitted here; there are "
        f"{', '.join(self._ranker.systems)}"
      )
    if system != "nvse":
      if ranking:
        raise InputError(f"ranking is for nvse; {system} has only one")
    else:
      ranking = ranking or self._ranker.ranking
      if ranking not in self._ranker.rankings:
        raise InputError(f"nvse does not rank by {ranking} here")
    return Question(members, system, ranking)

  def check(self, question: Question) -> Query:
    """The query of a question; what cannot be asked is an `InputError`."""
    rows = [self.entities.row(entity) for entity, _ in question.members]
    weights = [weight for _, weight in question.members]
    if len(set(rows)) < len(rows):
      raise InputError("the query names an entity twice; raise its weight")
    return self._ranker.ask(rows, weights)

  def tops(self, questions: Sequence[tuple[Question, Query]]) -> list[Top]:
    """The best entities for questions to the same system.

    Args:
      questions: each with its query.

    Returns:
      Those of each question, in order.
    """
    first = questions[0][0]
    asked = [query for _, query in questions]
    return self._ranker.top(first.system, first.ranking, asked, MAX_RESULTS)

  def expansion(self, question: Question, top: Top, k: int) -> dict[str, Any]:
    """The answer to a question, from its best entities.

    Args:
      question: the question.
      top: of `tops`.
      k: entities that are wanted.
    """
    results = [
      {**self.entities.describe(row), "rank": place, "score": score}
      for place, (row, score) in enumerate(
        zip(top.rows[:k].tolist(), top.scores[:k].tolist()), 1
      )
    ]
    return {**self._echo(question), "results": results}

  def rationale(
    self,
    question: Question,
    count: int,
    relative: bool,
    previous: tuple[tuple[str, float], ...],
  ) -> dict[str, Any]:
    """The features that a query stands for.

    Args:
      question: the query.
      count: features.
      relative: leave out what any entity has (the autoencoder alone).
      previous: members of the query before; what entered and left since
        then is told.
    """
    names = self._table.features
    asked = self.check(question)
    way = question.system, question.ranking
    weights = self._ranker.rationale(*way, asked, relative)
    first = explain.top_features(weights, names, count)
    answer = {
      **self._echo(question),
      "rationale": named([x for x in first if x.weight]),
      "entered": [],
      "left": [],
      "concepts": self._concepts.active(self._ranker.concept(asked)),
    }
    if previous:
      before = self.check(question._replace(members=previous))
      old = self._ranker.rationale(*way, before, relative)
      changes = explain.changes(old, weights, names, count)
      answer["entered"] = named(changes.entered)
      answer["left"] = named(changes.left)
    return answer

  def sentences(
    self, question: Question, entities: Sequence[str], count: int
  ) -> dict[str, Any]:
    """The sentences that speak best for entities, words marked.

    Args:
      question: the query.
      entities: ids.
      count: sentences of each.
    """
    asked = self.check(question)
    rows = [self.entities.row(entity) for entity in entities]
    distinct = [self._distinct(row) for row in rows]
    flat = np.array([x for part in distinct for x in part], np.int64)
    found = features.sentence_rows(self._table, flat)
    way = question.system, question.ranking
    scores = self._ranker.score_rows(*way, asked, found)
    empty = np.diff(found.indptr) == 0
    weights = self._ranker.rationale(*way, asked, relative=True)
    marked = {
      x.name
      for x in explain.top_features(weights, self._table.features, _RELEVANT)
      if x.weight > 0
    }
    answer, start = [], 0
    for entity, part in zip(entities, distinct):
      own = slice(start, start + len(part))
      order = np.lexsort((np.arange(len(part)), -scores[own], empty[own]))
      chosen = [
        {
          "text": self._table.sentences.text(part[i]),
          "score": float(scores[own][i]),
          "marks": self._marks(part[i], marked),
        }
        for i in order[:count].tolist()
      ]
      answer.append({"id": entity, "sentences": chosen})
      start += len(part)
    return {**self._echo(question), "entities": answer}

  def _distinct(self, row: int) -> list[int]:
    """An entity's sentences, each text once, as `nvse --mode=query` does."""
    held = self._table.sentences
    texts: dict[bytes, int] = {}
    for sentence in held.of(row).tolist():
      start, end = held.starts[sentence : sentence + 2]
      texts[held.tokens[start:end].tobytes()] = sentence
    return list(texts.values())

  def _marks(self, sentence: int, marked: set[str]) -> list[list[int]]:
    """Where the words of marked features stand in a sentence's text."""
    held = self._table.sentences
    start, end = held.starts[sentence : sentence + 2]
    text, at, found = held.text(sentence), 0, []
    for token in held.tokens[start:end].tolist():
      word = held.vocabulary[token]
      at = text.index(word, at)
      lower = word.lower()
      if f"word:{lower}" in marked or f"link:{lower}" in marked:
        found.append([at, at + len(word)])
      at += len(word)
    return found

  def _echo(self, question: Question) -> dict[str, Any]:
    members = [
      {**self.entities.describe(self.entities.row(entity)), "weight": weight}
      for entity, weight in question.members
    ]
    system, ranking = question.system, question.ranking
    return {"system": system, "ranking": ranking, "members": members}

  def _describe(self) -> dict[str, Any]:
    ranker, table = self._ranker, self._table
    return {
      "entities": len(table.entities),
      "features": len(table.features),
      "sentences": len(table.sentences.documents),
      "dimensions": ranker.model.config.dim,
      "systems": [
        {"id": name, "label": _LABELS[name]} for name in ranker.systems
      ],
      "rankings": [
        {"id": name, "label": _RANKINGS[name]} for name in ranker.rankings
      ],
      "ranking": ranker.ranking,
      "limits": {"members": ranker.members, "k": MAX_RESULTS},
      "examples": self._examples(),
    }

  def _examples(self) -> list[list[dict[str, Any]]]:
    """Two queries of three: an entity with much to say, and its nearest."""
    sizes = np.diff(self._table.counts.indptr)
    rich = np.argsort(-sizes, kind="stable")[:50]
    rich = rich[sizes[rich] > 0]
    xi, precision = (
      np.asarray(x)[:, rich] for x in self._ranker.model.entities
    )
    means = ((xi / precision).T - self._concepts.usual) / self._concepts.spread
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-6)
    # The second is the one that is least like the first.
    starts = [rich[0], rich[int(np.argmin(means @ means[0]))]]
    found = []
    for start in dict.fromkeys(int(x) for x in starts):
      asked = self._ranker.ask([start], [1.0])
      (top,) = self._ranker.top(
        "nvse", self._ranker.ranking, [asked], MAX_RESULTS
      )
      rows = [start, *(x for x in top.rows.tolist() if sizes[x])]
      found.append([self.entities.describe(row) for row in rows[:3]])
    return found
