"""The stops of the tour: each fits a model, asks it and draws the answer."""

import inspect
from typing import Any, NamedTuple

import numpy as np

from experiments.run import report, word_map
from experiments.tour import methods
from experiments.tour.config import Config
from repr_jax import data, evaluation, kb, ops
from repr_jax.data import testsets
from repr_jax.data.documents import candidates

_ASKED = ("dog", "music", "river", "doctor", "angry")
_COMPOSERS = ("Johannes Brahms", "Franz Schubert")
_SHOWN = 6  # neighbors of a word on the map
_FACTS = 200  # held-out facts that are ranked, about


class Stop(NamedTuple):
  """One section of the page.

  Attributes:
    title: the question.
    answer: one sentence with its number.
    code: the function that was run.
    chart: a chart; None if there is a picture.
    picture: an SVG; "" if there is a chart.
    table: a few rows.
    metric: the measure of the answer's number.
    value: the number.
  """

  title: str
  answer: str
  code: str
  chart: report.Forest | report.Lines | None
  picture: str
  table: report.Table
  metric: str
  value: float


class Words(NamedTuple):
  """Words and their vectors, [n, d], which the last stop uses too."""

  words: list[str]
  vectors: np.ndarray


def words_stop(wordnet: data.WordNet, config: Config) -> tuple[Stop, Words]:
  """Word vectors by multiview LSA: neighbors, a map, and a score."""
  words, vectors = methods.word_vectors(wordnet, config)
  index = {word: row for row, word in enumerate(words)}
  human = testsets.read_similarity(testsets.bundled("wordsim353.tsv"))
  scored = evaluation.similarity.evaluate_similarity(
    vectors, index, human, empty="warn"
  )
  unit = np.asarray(ops.unit_rows(vectors))
  asked = [word for word in _ASKED if word in index] or words[:2]
  near = {}
  for word in asked:
    order = np.argsort(-(unit @ unit[index[word]]), kind="stable")
    near[word] = [words[i] for i in order[1:9].tolist()]
  shown = dict.fromkeys(
    [*asked, *(x for own in near.values() for x in own[:_SHOWN])]
  )
  rows = [index[word] for word in shown]
  stop = Stop(
    "Which words are alike?",
    f"Vectors of {len(words):,} words from WordNet's synsets, hypernyms and "
    f"glosses. On the {scored.scored} known pairs of WordSim-353 Spearman's "
    f"correlation with human scores is {scored.value / 100:.2f}.",
    inspect.getsource(methods.word_vectors),
    None,
    word_map.draw(list(shown), vectors[rows], asked, paper=None, side=460),
    report.Table(
      "Nearest words", ["word", "nearest first"],
      [[word, ", ".join(own)] for word, own in near.items()],
    ),
    "Spearman x 100", scored.value,
  )  # fmt: skip
  return stop, Words(words, vectors)


def sets_stop(wordnet: data.WordNet, config: Config) -> Stop:
  """Set expansion: two composers in, the others out, with reasons."""
  sets = methods.set_expander(wordnet, config)
  answers = sets.expand(_COMPOSERS, k=8, reasons=4)
  classes = data.wordnet_instance_sets(wordnet)
  assert sets.table is not None
  ids = dict(zip(sets.table.names, sets.table.entities))
  composers = set(classes["composer.n.01"])
  right = sum(ids[x.name] in composers for x in answers)
  return Stop(
    "Who else belongs to the set?",
    f"Asked with {' and '.join(_COMPOSERS)}, the model names {right} composers "
    f"among its first {len(answers)} of {len(sets.names):,} people, places and "
    "events. It has read their glosses, not their classes.",
    inspect.getsource(methods.set_expander),
    report.Forest(
      "A score is the sum of what the features add.",
      "score",
      [report.Point(x.name, x.score) for x in answers],
    ),
    "",
    report.Table(
      "Why: the four features that add most to each score",
      ["answer", "features and what they add"],
      [
        [
          x.name,
          ", ".join(f"{_feature(r.name)} {r.weight:.2g}" for r in x.reasons),
        ]
        for x in answers
      ],
    ),
    f"composers among {len(answers)}",
    right,
  )


def rules_stop(wordnet: data.WordNet, config: Config) -> Stop:
  """Knowledge bases: facts that only a rule can tell."""
  held, training, fits = methods.knowledge_bases(wordnet, config)
  tails: dict[str, set[str]] = {}
  for head, relation, tail in [*held, *training]:
    if relation == "_hyponym":
      tails.setdefault(head, set()).add(tail)
  sample = held[:: max(1, len(held) // _FACTS)]
  points, rows = [], []
  for label, fitted in fits.items():
    ranks = np.array([_rank(fitted, h, t, tails[h]) for h, _, t in sample])
    mean = float(np.mean(1 / ranks))
    spread = float(np.std(1 / ranks) / np.sqrt(len(ranks)))
    points.append(
      report.Point(label, mean, mean - 1.96 * spread, mean + 1.96 * spread)
    )
    best = fitted.predict("_hyponym", head="horse.n.01", top=4)
    checked = kb.check_rules(
      fitted.model, fitted.params, methods.RULES, fitted.relations,
      fitted.entities, fitted.constraints,
    )  # fmt: skip
    rows.append(
      [label, float(checked.real.max()), ", ".join(x.entity for x in best)]
    )
  return Stop(
    "Do rules hold in the vectors?",
    "Two rules say that hyponyms are the inverse of hypernyms. Training has "
    "all hypernyms of animals but only one in twenty hyponyms. On "
    f"{len(sample)} held-out hyponyms the mean reciprocal rank is "
    f"{points[0].value:.3f} without and {points[1].value:.3f} with the rules.",
    inspect.getsource(methods.knowledge_bases),
    report.Forest(
      "Held-out hyponyms, with 95 % intervals over facts.",
      "mean reciprocal rank",
      points,
      limits=(0, 1),
    ),
    "",
    report.Table(
      "The rules in both models",
      ["model", "largest violation", "kinds of horse, best first"],
      rows,
    ),
    "MRR with rules",
    points[1].value,
  )


def links_stop(known: Words, config: Config) -> Stop:
  """Linking: the entity of each mention, by prior, context and coherence."""
  vectors = data.Vectors(known.words, known.vectors.astype(np.float32))
  linker, documents = methods.linker(vectors, config)
  total = right = prior = 0
  rows: dict[str, list[Any]] = {}
  for document in documents:
    lists = candidates.document_candidates(linker.index, document, linker.top)
    linked = linker.link(document)
    for mention, own, likely in zip(document.mentions, linked, lists):
      if len(own) < 2 or mention.entity is None:
        continue
      total += 1
      right += own[0].entity == mention.entity
      prior += likely[0][0] == mention.entity
      if own[0].entity == mention.entity:
        _, *parts = own[0][1:]
        rows.setdefault(mention.surface, [own[0].entity, *parts])
  return Stop(
    "Which entity does a mention mean?",
    f"Of {total} ambiguous mentions in held-out texts, {right} are linked "
    f"right; always choosing the most frequent entity gets {prior} right. The "
    "score of an answer is the sum of three parts.",
    inspect.getsource(methods.linker),
    report.Forest(
      "Mentions with two candidates or more.",
      "right",
      [
        report.Point("prior, context and coherence", float(right)),
        report.Point("most frequent entity", float(prior)),
      ],
      limits=(0, max(total, 1)),
    ),
    "",
    report.Table(
      "Mentions that were linked right, and why",
      ["mention", "entity", "prior", "context", "coherence"],
      [[surface, *rest] for surface, rest in list(rows.items())[:8]],
    ),
    f"right of {total}",
    right,
  )


def _rank(fitted: kb.Fitted, head: str, tail: str, known: set[str]) -> int:
  """Rank of a tail among the entities that are no other hyponym of the head."""
  best = fitted.predict("_hyponym", head=head, top=len(fitted.entities))
  names = [x.entity for x in best if x.entity == tail or x.entity not in known]
  return 1 + names.index(tail)


def _feature(name: str) -> str:
  return name.removeprefix("word:")
