"""Linking with looked-up candidates: coverage, NIL, and the linker's model."""

import functools
import pathlib
from typing import Any, NamedTuple

import numpy as np

from experiments.ned import ladder, link_model
from experiments.ned.config import Config
from experiments.ned.link_model import LinkModel
from experiments.run import progress, report, runlib
from repr_jax.data.documents import (
  candidate_features,
  candidate_files,
  corpus_files,
  entity_base,
  title_files,
)
from repr_jax.data.documents.candidate_files import Document
from repr_jax.errors import InputError
from repr_jax.evaluation import calibration

_FOLDS = 6  # of training documents, linked with titles of the others
_SLACK = 0.003  # of F1
_THRESHOLDS = tuple(np.round(np.arange(0, 1, 0.05), 2).tolist())


class OpenTests(NamedTuple):
  """Documents whose candidates are looked up.

  Attributes:
    tests: by name.
    training: those of train, with their NIL mentions.
    tuning: those of testa, on which the NIL threshold is chosen.
    titles: further titles of the knowledge base.
  """

  tests: dict[str, list[Document]]
  training: list[Document]
  tuning: list[Document]
  titles: list[title_files.Titles]


def read(config: Config) -> OpenTests:
  """Reads --open_tests, --titles, and testa and testb with NIL mentions.

  Returns:
    The documents. A missing file, one of another form, and tests of one name
    or without a linked mention are `InputError`s.
  """
  tests = {"testb": _with_nil(config, "testb")}
  for entry in config.open_tests:
    name, equals, path = entry.partition("=")
    if not equals or not name or name in tests:
      raise InputError(
        f"--open_tests: expected NAME=PATH with names of their own, not "
        f"{entry!r}"
      )
    tests[name] = candidate_files.read_gold_documents(path)
    if all(m.entity is None for d in tests[name] for m in d.mentions):
      raise InputError(
        "--open_tests: no mention has an entity, so accuracy cannot be "
        "measured",
        path=path,
      )
  titles = [
    title_files.read_titles(
      corpus_files.gensim_dump() if path == "wikipedia" else path
    )
    for path in config.titles
  ]
  training, tuning = (_with_nil(config, name) for name in ("train", "testa"))
  return OpenTests(tests, training, tuning, titles)


def evaluate(
  run: runlib.Run,
  given: OpenTests,
  answered: ladder.Ladder,
  source: ladder.Source,
) -> list[report.Table]:
  """Links all mentions with looked-up candidates; saves the linker.

  Whether the entity is a candidate is learned on train: each fold is linked
  with candidates of the others. The NIL threshold is chosen on
  testa with a knowledge base of train's candidates; the knowledge base of testb
  also has testa's candidates, and that of other tests has all candidates. Each
  has the titles of --titles.

  Args:
    run: gets figures and `linker/`.
    given: documents and titles.
    source: training links and popularity.

  Returns:
    The table of figures, and that of errors by kind.
  """
  splits = {name: answered.splits[name].documents for name in ladder.SPLITS}
  fitted = _fit_known(answered, given, source)
  make = functools.partial(_model, answered, source, given.titles, fitted)
  small = make(splits["train"])
  chosen, *_ = _scores(small, given.tuning)
  threshold = choose_threshold(chosen)
  progress.say(f"ned: answers below {threshold} are NIL (chosen on testa)")
  base = make(splits["train"] + splits["testa"])
  whole = make([x for name in ladder.SPLITS for x in splits[name]])
  lines: list[list[Any]] = []
  errors: list[list[Any]] = []
  for name, documents in given.tests.items():
    model = base if name == "testb" else whole
    scores, covered, _ = _scores(model, documents)
    known = [
      mention.entity in model.base.entities
      for document in documents
      for mention in document.mentions
      if mention.entity is not None
    ]
    errors.append([name, *error_counts(scores, threshold).values()])
    linked = scores[scores[:, 2] > 0]
    figures = {
      "mentions": len(scores),
      "of them NIL": int((scores[:, 2] == 0).sum()),
      "entity in the knowledge base, %": 100 * float(np.mean(known)),
      "entity a candidate, %": 100 * covered,
      "micro F1 of linked mentions, %": 100 * float(linked[:, 1].mean()),
      "right if the entity is a candidate, %": 100
      * float(linked[:, 1].sum() / max(covered * len(linked), 1)),
      "F1 with NIL, %": 100 * _f1(scores, threshold)[0],
      "right with NIL as an answer, %": 100 * _f1(scores, threshold)[1],
      "calibration error, %": 100
      * calibration.reliability(scores[:, 0], scores[:, 1]).error,
    }
    for metric, value in list(figures.items())[2:]:
      run.row(f"{name}: looked-up candidates", metric, value)
    lines.append(
      [name, *(x if isinstance(x, int) else round(x, 1)
               for x in figures.values())]
    )  # fmt: skip
  link_model.save(
    pathlib.Path(run.directory) / "linker", whole._replace(threshold=threshold)
  )
  return [
    report.Table(
      "Candidates looked up in the knowledge base; answers below probability "
      f"{threshold} are NIL",
      ["test", *figures], lines,
    ),
    report.Table(
      "Errors with these candidates by kind",
      ["test", *error_counts(np.zeros((0, 4)), 0.0)], errors,
    ),
  ]  # fmt: skip


def choose_threshold(scores: np.ndarray) -> float:
  """The smallest threshold whose F1 is close to the best.

  The best threshold of calibrated probabilities is half of the F1 that is
  reached, so that texts with less coverage need a smaller one.

  Args:
    scores: as for `error_counts`.
  """
  values = [_f1(scores, t)[0] for t in _THRESHOLDS]
  close = max(values) - _SLACK
  return next(t for t, f1 in zip(_THRESHOLDS, values) if f1 >= close)


def error_counts(scores: np.ndarray, threshold: float) -> dict[str, int]:
  """Numbers of errors by kind.

  Args:
    scores: for each mention the probability of its answer, whether it is
      right, whether it has an entity, and whether that is a candidate, [n, 4].
    threshold: answers with a smaller probability are NIL.

  Returns:
    Errors by kind; each mention is in one at most.
  """
  p, right, linked, covered = np.asarray(scores, float).T
  given = (p >= threshold) & (p > 0)
  has = linked > 0
  return {
    "linked, but is NIL": int((given & ~has).sum()),
    "entity is no candidate": int((has & (covered == 0)).sum()),
    "NIL, but has an entity": int((has & (covered > 0) & ~given).sum()),
    "another entity": int((has & (covered > 0) & given & (right == 0)).sum()),
  }


def _with_nil(config: Config, name: str) -> list[Document]:
  path = ladder.directory(config) / f"{name}.jsonl.gz"
  return candidate_files.read_gold_documents(path)


def _fit_known(
  answered: ladder.Ladder, given: OpenTests, source: ladder.Source
) -> link_model.Known:
  """Learns on train when a mention's entity is among its candidates.

  Args:
    given: documents with NIL mentions, and titles.
    source: training links, which are counted anew, and popularity.
  """
  train = answered.splits["train"].documents
  parts = min(_FOLDS, len(train))
  folds = np.arange(len(train)) * parts // len(train)
  inputs, covered = [], []
  for fold in range(parts):
    rest = [d for d, f in zip(train, folds) if f != fold]
    left = {d.id for d, f in zip(train, folds) if f == fold}
    others = source._replace(links=candidate_features.count_links(rest))
    model = _model(answered, others, given.titles, None, rest)
    own = [d for d in given.training if d.id in left]
    scores, _, linked = _scores(model, own)
    there = linked.best >= 0
    inputs.append(linked.inputs[there])
    covered.append(scores[there, 3] * scores[there, 2] > 0)
  return link_model.fit_known(np.concatenate(inputs), np.concatenate(covered))


def _model(answered, source, titles, known, documents) -> LinkModel:
  entities = entity_base.collect_entities(documents, source.popularity)
  links = source.links
  for more in titles:
    entities = title_files.join_entities(entities, more)
    links = title_files.join_links(links, more.links)
  base = entity_base.build_base(entities, links)
  return LinkModel(
    answered.rankers, answered.contexts, base, 0.0, answered.by_links, known
  )


def _scores(
  model: LinkModel, documents: list[Document]
) -> tuple[np.ndarray, float, link_model.Linked]:
  """Probability, right, linked, covered [n, 4]; coverage; the answers."""
  looked_up = [
    entity_base.base_document(
      model.base, d.id, d.text,
      [(m.start, m.end, m.entity) for m in d.mentions], link_model.TOP,
    )
    for d in documents
  ]  # fmt: skip
  linked = link_model.link(model, looked_up)
  rows, covered = [], []
  mentions = [m for d in looked_up for m in d.mentions]
  for mention, best, p in zip(
    mentions, linked.best.tolist(),
    linked.known * linked.probabilities.max(axis=1),
  ):  # fmt: skip
    titles = [x.title for x in mention.candidates]
    right = best >= 0 and titles[best] == mention.entity
    linked_to = mention.entity is not None
    rows.append((p, right, linked_to, mention.entity in titles))
    if linked_to:
      covered.append(mention.entity in titles)
  return np.asarray(rows, float), float(np.mean(covered)), linked


def _f1(scores: np.ndarray, threshold: float) -> tuple[float, float]:
  """F1 of links, and the share right where NIL is an answer too."""
  p, right, linked = scores.T[:3]
  given = (p >= threshold) & (p > 0)
  hits = (given & (right > 0)).sum()
  f1 = 2 * hits / max(given.sum() + linked.sum(), 1)
  nil = (~given & (linked == 0)).sum()
  return float(f1), float((hits + nil) / len(scores))
