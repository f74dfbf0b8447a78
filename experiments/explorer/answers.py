"""Answers of the API, as values that JSON can hold."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.explorer import reasons
from experiments.explorer.concepts import Concepts
from experiments.explorer.documents import Documents
from experiments.explorer.entities import Entities
from experiments.explorer.ranker import Ranked, Ranker
from repr_jax.data.entities import features
from repr_jax.errors import InputError
from repr_jax.setexp import explain
from repr_jax.setexp.query import Query

MAX_RESULTS = 100
_MARKED_SHARE = 0.5  # marked words make up this share of what raised a score
_OWN_FEATURES, _NEAR = 15, 8  # of an entity's page
_MARKED = 40  # Features of a concept whose words are marked.

_SYSTEM_LABELS = {
  "nvse": "NVSE",
  "nvse+bm25": "NVSE + BM25",
  "bm25": "BM25",
  "lsa": "LSA",
  "gcca": "Generalized CCA",
  "bernoulli": "Bayesian Sets (binary)",
  "poisson": "Bayesian Sets (Poisson)",
  "gaussian": "Bayesian Sets (Gaussian)",
  "word2vecf": "word2vecf",
  "setexpan": "SetExpan",
}
_RANKING_LABELS = {
  "features": "features",
  "xi": "natural parameters",
  "kl_query": "KL from query",
  "kl_entity": "KL from entity",
  "kl_symmetric": "KL, both ways",
  "product_kernel": "product kernel",
  "mean": "means",
  "bayes": "evidence ratio",
  "cosine": "cosine",
}


class Question(NamedTuple):
  """A query of a request: ids with weights, the system, its ranking score."""

  members: tuple[tuple[str, float], ...]
  system: str
  ranking: str


class Answers:
  """Answers about one model.

  Attributes:
    entities: its entities, by name and id.
    documents: the documents behind its sentences.
  """

  def __init__(self, ranker: Ranker):
    """Prepares what all answers share."""
    self._ranker = ranker
    self._table = ranker.table
    self.entities = Entities(ranker.table, ranker.members)
    self.documents = Documents(ranker.table, self.entities)
    used = np.diff(ranker.table.counts.indptr) > 0
    self._concepts = Concepts(ranker.model, ranker.table.features, used)
    self._model = self._describe_model()

  def model(self) -> dict[str, Any]:
    """Systems, ranking scores, limits and two example queries."""
    return self._model

  def question(
    self, members: tuple[tuple[str, float], ...], system: str, ranking: str
  ) -> Question:
    """A question to a system that is fitted here.

    Args:
      members: ids with weights.
      system: one of the model's.
      ranking: of nvse, "" for its usual one; other systems have only one.
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

  def query(self, members: tuple[tuple[str, float], ...]) -> Query:
    """The query of ids with weights; `InputError` if it cannot be asked."""
    rows = [self.entities.row(entity) for entity, _ in members]
    if len(set(rows)) < len(rows):
      raise InputError("the query names an entity twice; raise its weight")
    return self._ranker.query(rows, [weight for _, weight in members])

  def rank(self, questions: Sequence[tuple[Question, Query]]) -> list[Ranked]:
    """The best entities of several questions to the same system."""
    first = questions[0][0]
    queries = [query for _, query in questions]
    return self._ranker.rank(first.system, first.ranking, queries, MAX_RESULTS)

  def expansion(
    self, question: Question, ranked: Ranked, k: int
  ) -> dict[str, Any]:
    """The answer to a question: its k best entities."""
    best = zip(ranked.rows[:k].tolist(), ranked.scores[:k].tolist())
    results = [
      {**self.entities.describe(row), "rank": rank, "score": score}
      for rank, (row, score) in enumerate(best, 1)
    ]
    return {**self._describe_question(question), "results": results}

  def reasons(
    self, question: Question, entities: Sequence[str], count: int
  ) -> dict[str, Any]:
    """The parts that weigh most in the scores of entities, and in their sum.

    Args:
      question: the question that ranked them.
      entities: ids.
    """
    rows = [self.entities.row(entity) for entity in entities]
    contributions = self._contributions(question, rows)
    names = self._ranker.features(question.system)
    return {
      **self._describe_question(question),
      "entities": [
        {"id": entity, **reasons.decompose([one], names, count)}
        for entity, one in zip(entities, contributions)
      ],
      "sum": reasons.decompose(contributions, names, count),
    }

  def concept(
    self, members: tuple[tuple[str, float], ...], count: int, relative: bool
  ) -> dict[str, Any]:
    """The autoencoder's concept of a query (thesis 4.4).

    Args:
      members: ids with weights.
      relative: weigh features against the prior's mean.
    """
    query = self.query(members)
    weights = self._ranker.concept_features(query, relative)
    first = explain.top_features(weights, self._table.features, count)
    return {
      "members": self._describe_members(members),
      "features": [
        {**reasons.split_name(x.name), "weight": x.weight}
        for x in first
        if x.weight
      ],
      "dimensions": self._concepts.active(self._ranker.concept(query)),
    }

  def sentences(
    self, question: Question, entities: Sequence[str], count: int
  ) -> dict[str, Any]:
    """The sentences that support entities most, with words marked.

    Marked are the words of the features that raised the entity's score most.
    A score between Gaussians has no parts by feature: there, the words of the
    query's concept are marked.

    Args:
      question: the question that ranked them.
      entities: ids.
      count: sentences of each.
    """
    rows = [self.entities.row(entity) for entity in entities]
    parts = [self._unique_sentences(row) for row in rows]
    flat = np.array([x for part in parts for x in part], np.int64)
    held = features.sentence_rows(self._table, flat)
    query = self.query(question.members)
    scores = self._ranker.score_rows(
      question.system, question.ranking, query, held
    )
    empty = np.diff(held.indptr) == 0
    names = self._ranker.features(question.system)
    starts = np.cumsum([0, *map(len, parts)])
    answer = []
    for i, one in enumerate(self._contributions(question, rows)):
      own = slice(starts[i], starts[i + 1])
      order = np.lexsort((np.arange(len(parts[i])), -scores[own], empty[own]))
      marked = reasons.supporting_features(one, names, _MARKED_SHARE)
      if not marked and len(one.dimensions):
        marked = self._concept_words(query)
      chosen = [
        {
          "text": self._table.sentences.text(parts[i][place]),
          "doc": self.documents.name(parts[i][place]),
          "score": float(scores[own][place]),
          "marks": self._marks(parts[i][place], marked),
        }
        for place in order[:count].tolist()
      ]
      answer.append({"id": entities[i], "sentences": chosen})
    return {**self._describe_question(question), "entities": answer}

  def chances(
    self, question: Question, entities: Sequence[str]
  ) -> dict[str, Any]:
    """Chances of entities, and how many results make the set.

    Args:
      question: the question that ranked them.
      entities: ids.

    Returns:
      "size" and the "chance" of each entity; null where the model has no
      chances for the system and its ranking.
    """
    rows = [self.entities.row(entity) for entity in entities]
    query = self.query(question.members)
    chances, size = self._ranker.chances(
      question.system, question.ranking, query
    )
    given = [None if chances is None else float(chances[x]) for x in rows]
    return {
      **self._describe_question(question),
      "size": size,
      "entities": [
        {"id": entity, "chance": chance}
        for entity, chance in zip(entities, given)
      ],
    }

  def entity(self, entity: str, sentences: int) -> dict[str, Any]:
    """An entity's page: heaviest features, sentences, nearest entities.

    Args:
      entity: its id.
      sentences: at most.
    """
    row = self.entities.row(entity)
    table = self._table
    heaviest = self._ranker.own_features(row)
    named = explain.top_features(heaviest, table.features, _OWN_FEATURES)
    near: list[dict[str, Any]] = []
    if table.counts.indptr[row + 1] > table.counts.indptr[row]:
      query = self._ranker.query([row], [1.0])
      (ranked,) = self._ranker.rank(
        "nvse", self._ranker.ranking, [query], MAX_RESULTS
      )
      near = [self.entities.describe(x) for x in ranked.rows[:_NEAR].tolist()]
    own = self._unique_sentences(row)
    return {
      **self.entities.describe(row),
      "features": [
        {**reasons.split_name(x.name), "weight": x.weight}
        for x in named
        if x.weight
      ],
      "near": near,
      "texts": [
        {"text": table.sentences.text(x), "doc": self.documents.name(x)}
        for x in own[:sentences]
      ],
    }

  def _contributions(self, question: Question, rows: Sequence[int]):
    query = self.query(question.members)
    return self._ranker.contributions(
      question.system, question.ranking, query, rows
    )

  def _concept_words(self, query: Query) -> set[str]:
    weights = self._ranker.concept_features(query, relative=True)
    first = explain.top_features(weights, self._table.features, _MARKED)
    return {x.name for x in first if x.weight > 0}

  def _unique_sentences(self, row: int) -> list[int]:
    """An entity's sentences, each text once."""
    held = self._table.sentences
    texts: dict[bytes, int] = {}
    for sentence in held.of(row).tolist():
      start, end = held.starts[sentence : sentence + 2]
      texts[held.tokens[start:end].tobytes()] = sentence
    return list(texts.values())

  def _marks(self, sentence: int, marked: set[str]) -> list[list[int]]:
    """Starts and ends of the words of marked features in a sentence."""
    held = self._table.sentences
    start, end = held.starts[sentence : sentence + 2]
    text, at, marks = held.text(sentence), 0, []
    for token in held.tokens[start:end].tolist():
      word = held.vocabulary[token]
      at = text.index(word, at)
      lower = word.lower()
      if f"word:{lower}" in marked or f"link:{lower}" in marked:
        marks.append([at, at + len(word)])
      at += len(word)
    return marks

  def _describe_question(self, question: Question) -> dict[str, Any]:
    return {
      "system": question.system,
      "ranking": question.ranking,
      "members": self._describe_members(question.members),
    }

  def _describe_members(
    self, members: tuple[tuple[str, float], ...]
  ) -> list[dict[str, Any]]:
    return [
      {**self.entities.describe(self.entities.row(entity)), "weight": weight}
      for entity, weight in members
    ]

  def _describe_model(self) -> dict[str, Any]:
    ranker, table = self._ranker, self._table
    return {
      "entities": len(table.entities),
      "features": len(table.features),
      "sentences": len(table.sentences.documents),
      "dimensions": self._concepts.dim,
      "systems": [
        {"id": name, "label": _SYSTEM_LABELS.get(name, name)}
        for name in ranker.systems
      ],
      "rankings": [
        {"id": name, "label": _RANKING_LABELS.get(name, name)}
        for name in ranker.rankings
      ],
      "ranking": ranker.ranking,
      "chances": ranker.with_chances,
      "limits": {"members": ranker.members, "k": MAX_RESULTS},
      "examples": self._examples(),
    }

  def _examples(self) -> list[list[dict[str, Any]]]:
    """Two queries of three: an entity with many features, and its nearest."""
    sizes = np.diff(self._table.counts.indptr)
    rich = np.argsort(-sizes, kind="stable")[:50]
    rich = rich[sizes[rich] > 0]
    second = self._concepts.farthest(rich)
    examples = []
    for start in dict.fromkeys((int(rich[0]), second)):
      query = self._ranker.query([start], [1.0])
      (ranked,) = self._ranker.rank(
        "nvse", self._ranker.ranking, [query], MAX_RESULTS
      )
      rows = [start, *(x for x in ranked.rows.tolist() if sizes[x])]
      examples.append([self.entities.describe(row) for row in rows[:3]])
    return examples
