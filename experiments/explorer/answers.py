"""What the explorer answers, as values that JSON can hold."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from experiments.explorer.ranker import Asked, Ranker
from experiments.nvse import querying
from repr_jax.errors import InputError
from repr_jax.setexp import explain, features

MOST_RESULTS = 100
_RELEVANT = 40  # Features whose words are marked in sentences.
_DIMENSIONS, _EACH = 5, 6  # Dimensions of a concept, and features of each.
_NEAREST = 3  # Names that stand in for an unknown one.

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
  "decoded": "decoded features",
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
  """Answers about one model."""

  def __init__(self, ranker: Ranker):
    """Prepares what all answers share.

    Args:
      ranker: the systems.
    """
    self._ranker = ranker
    self._table = ranker.table
    self._table.name_index.prepare()
    self._decoder = np.asarray(ranker.model.params.decoder)
    xi, precision = (np.asarray(x) for x in ranker.model.entities)
    means = (xi / precision)[:, np.diff(self._table.counts.indptr) > 0]
    self._usual = means.mean(axis=1)
    self._spread = np.maximum(means.std(axis=1), 1e-6)
    weights, bias = self._decoder[:, :-1], self._decoder[:, -1]
    self._usual_logits = weights @ self._usual + bias
    self._usual_logs = self._logs(self._usual_logits)
    self._model = self._describe()

  def model(self) -> dict[str, Any]:
    """What there is: systems, ranking scores, limits, two example queries."""
    return self._model

  def entities(self, text: str, limit: int) -> dict[str, Any]:
    """Entities by the beginning of their names, then by likeness.

    Args:
      text: what was typed.
      limit: entities at most.
    """
    text = text.strip()
    index = self._table.name_index
    rows = [self._table.rows[text]] if text in self._table.rows else []
    rows += [x for x in index.begin(text, limit) if x not in rows]
    near = []
    if len(rows) < limit and len(text) > 2:
      near = [x for x in index.suggest(text, limit) if x not in rows]
    found = [{**self._entity(row), "match": "prefix"} for row in rows]
    found += [{**self._entity(row), "match": "similar"} for row in near]
    return {"entities": found[:limit]}

  def resolve(self, text: str) -> dict[str, Any]:
    """Entities that a pasted list names.

    Args:
      text: names or ids, one on each line or between commas, with weights
        as in "Bach:2".
    """
    found, unknown = [], []
    for line in text.splitlines():
      if not line.strip():
        continue
      for member in self._members(line):
        row = self._row(member.name)
        if row is None:
          near = self._table.name_index.suggest(member.name, _NEAREST)
          unknown.append(
            {"name": member.name, "nearest": [self._entity(x) for x in near]}
          )
        else:
          found.append({**self._entity(row), "weight": member.weight})
    return {"found": found, "unknown": unknown}

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
    return Question(members, system, ranking)

  def check(self, question: Question) -> Asked:
    """The query of a question; what cannot be asked is an `InputError`."""
    rows = [self.known(entity) for entity, _ in question.members]
    weights = [weight for _, weight in question.members]
    if len(set(rows)) < len(rows):
      raise InputError("the query names an entity twice; raise its weight")
    return self._ranker.ask(rows, weights)

  def expand(
    self, questions: Sequence[tuple[Question, Asked, int]]
  ) -> list[dict[str, Any]]:
    """The best entities for questions to the same system.

    Args:
      questions: each with its query and the number of entities wanted.

    Returns:
      The answers in order.
    """
    first = questions[0][0]
    asked = [query for _, query, _ in questions]
    tops = self._ranker.top(first.system, first.ranking, asked, MOST_RESULTS)
    answers = []
    for (question, _, wanted), top in zip(questions, tops):
      results = [
        {**self._entity(row), "rank": place, "score": score}
        for place, (row, score) in enumerate(
          zip(top.rows[:wanted].tolist(), top.scores.tolist()), 1
        )
      ]
      answers.append({**self._echo(question), "results": results})
    return answers

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
      "rationale": _named([x for x in first if x.weight]),
      "entered": [],
      "left": [],
      "concepts": self._active(asked),
    }
    if previous:
      before = self.check(question._replace(members=previous))
      old = self._ranker.rationale(*way, before, relative)
      changes = explain.changes(old, weights, names, count)
      answer["entered"] = _named(changes.entered)
      answer["left"] = _named(changes.left)
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
    rows = [self.known(entity) for entity in entities]
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

  def _active(self, asked: Asked) -> list[dict[str, Any]]:
    """Dimensions in which the query's concept differs from the usual one.

    The features of a dimension are those that become likelier when the usual
    concept moves to the query's in this dimension alone: by p log(p / p0), as
    a relative rationale.
    """
    difference = self._ranker.concept(asked) - self._usual
    level = difference / self._spread
    chosen = np.argsort(-np.abs(level), kind="stable")[:_DIMENSIONS]
    moves = self._decoder[:, chosen] * difference[chosen]
    logs = self._logs(self._usual_logits[:, None] + moves)
    gains = np.exp(logs) * (logs - self._usual_logs[:, None])
    names = self._table.features
    return [
      {
        "dimension": dimension,
        "level": float(level[dimension]),
        "features": _named(explain.top_features(gain, names, _EACH)),
      }
      for dimension, gain in zip(chosen.tolist(), gains.T)
    ]

  def _logs(self, logits: np.ndarray) -> np.ndarray:
    """Log-probabilities of features, [F, ...]."""
    if self._ranker.model.config.decoder == "multilabel":
      return special.log_expit(logits)
    return special.log_softmax(logits, axis=0)

  def _members(self, line: str) -> list[querying.Member]:
    """Members of a line, which may be a name that has commas itself."""
    if self._row(line.strip()) is not None:
      return [querying.Member(line.strip(), 1.0)]
    return querying.parse(self._table, line, self._ranker.members)

  def _row(self, name: str) -> int | None:
    """The entity of an id or a name; of several, the one told of most."""
    if name in self._table.rows:
      return self._table.rows[name]
    found = self._table.name_index.find(name)
    return max(found, key=self._size, default=None)

  def _size(self, row: int) -> int:
    starts = self._table.counts.indptr
    return int(starts[row + 1] - starts[row])

  def known(self, entity: str) -> int:
    """The row of an entity's id; `InputError` where there is none."""
    row = self._table.rows.get(entity)
    if row is None:
      raise InputError(
        f"there is no entity with the id {entity[:100]!r}: look ids up at "
        "/api/entities"
      )
    return row

  def _entity(self, row: int) -> dict[str, Any]:
    return {
      "id": self._table.entities[row],
      "name": self._table.names[row],
      "sentences": len(self._table.sentences.of(row)),
      "usable": self._size(row) > 0,
    }

  def _echo(self, question: Question) -> dict[str, Any]:
    members = [
      {**self._entity(self.known(entity)), "weight": weight}
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
      "dimensions": ranker.model.config.latent,
      "systems": [
        {"id": name, "label": _LABELS[name]} for name in ranker.systems
      ],
      "rankings": [
        {"id": name, "label": _RANKINGS[name]} for name in ranker.rankings
      ],
      "ranking": ranker.ranking,
      "limits": {"members": ranker.members, "k": MOST_RESULTS},
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
    means = ((xi / precision).T - self._usual) / self._spread
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-6)
    # The second is the one that is least like the first.
    starts = [rich[0], rich[int(np.argmin(means @ means[0]))]]
    found = []
    for start in dict.fromkeys(int(x) for x in starts):
      asked = self._ranker.ask([start], [1.0])
      (top,) = self._ranker.top(
        "nvse", self._ranker.ranking, [asked], MOST_RESULTS
      )
      rows = [start, *(x for x in top.rows.tolist() if sizes[x])]
      found.append([self._entity(row) for row in rows[:3]])
    return found


def _named(chosen: Sequence[explain.Named]) -> list[dict[str, Any]]:
  found = []
  for name, weight in chosen:
    block, _, word = name.partition(":")
    found.append({"block": block, "word": word, "weight": weight})
  return found
