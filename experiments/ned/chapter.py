"""Chapter 6 in the main job: the links of a small Wikipedia, disambiguated."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.ned import data, findings, reporting, systems
from experiments.ned.config import Config
from experiments.ned.systems import Results
from experiments.run import report, runlib

_QUICK = Config(
  dim=50, vector_steps=40, vae_epochs=1, epochs=2, patience=2, context=40,
  min_count=3, widths=(16,), batch_size=256,
)  # fmt: skip
_FULL = Config()
_THESIS = (
  "python -m experiments.ned --preset=ned_thesis "
  "--dump=enwiki-pages-articles.xml.bz2 --prior=p_e_m.txt "
  "--word_vectors=GoogleNews-vectors-negative300.bin "
  "--train=aida_train.csv --validation=aida_testA.csv "
  "--tests=AIDA=aida_testB.csv,MSNBC=wned-msnbc.csv,AQUAINT=wned-aquaint.csv,"
  "ACE04=wned-ace2004.csv"
)


def chapter(size: str, workdir: pathlib.Path) -> report.Chapter:
  """Trains and tests all systems on the dump that comes with gensim."""
  config = _QUICK if size == "quick" else _FULL
  identity = {"size": size, **dataclasses.asdict(config)}
  with runlib.Run("ned", directory=workdir, config=identity) as run:
    results = systems.run_all(run, config)
    rows = reporting.rows(run, results, config)
  return make(rows, results, config)


def make(
  rows: Sequence[Mapping[str, Any]], results: Results, config: Config
) -> report.Chapter:
  """The report's chapter of a run on any corpus.

  Args:
    results: the answers of all systems.
  """
  gains = reporting.gains(results, config)
  first = next(iter(results.corpus.tests))
  outcomes = {name: results.result(name, first) for name in results.answers}
  right = {name: 100 * x.in_candidates for name, x in outcomes.items()}
  f1 = {name: 100 * x.f1 for name, x in outcomes.items()}
  return report.Chapter(
    title="Entity disambiguation",
    summary=_summary(results, config),
    rows=rows,
    tables=tables(results, config),
    charts=findings.charts(gains),
    notes=notes(results, config),
    question=findings.QUESTION,
    answer=findings.answer(gains),
    table=findings.table(right, f1),
    claims=findings.claims(gains),
  )


def _summary(results: Results, config: Config) -> str:
  corpus = results.corpus
  given = config.train or config.data or config.dump
  where = "the given documents" if given else "a small Wikipedia dump"
  mentions = sum(corpus.tests[test].recall.mentions for test in corpus.tests)
  return (
    f"Links of {where}: {len(corpus.train.documents):,} training "
    f"documents, {len(corpus.entities):,} entities, {mentions:,} mentions in "
    f"the tests; the model of Ganea and Hofmann with vectors of three kinds."
  )


def tables(results: Results, config: Config) -> list[report.Table]:
  """All tables of a run; errors are shown for the first test set."""
  made = [
    reporting.thesis_table(results, config),
    reporting.steps_table(results),
    reporting.gains_table(reporting.gains(results, config)),
  ]
  first = next(iter(results.corpus.tests))
  return made + reporting.error_tables(results, first)


def notes(results: Results, config: Config) -> list[str]:
  """Origin of the figures, and the command for the thesis' own."""
  own_votes = (
    "Training documents do not count in the prior of their own mentions, nor "
    "in the U2 vectors"
    if config.prior is None
    else "Training documents do not count in the U2 vectors"
  )
  return [
    _origin(config),
    "Coverage. " + "; ".join(data.describe(results.corpus)) + ".",
    f"{own_votes} that they are trained with. Words are put into the "
    "space of VAE and null vectors by the same encoder.",
  ]


def _origin(config: Config) -> str:
  """Where pages, contexts, prior and word vectors come from."""
  named = bool(config.train or config.data)
  text = "the training documents"
  if config.dump is not None:
    text += " and the articles of --dump" if named else " of --dump"
  parts = [f"pages and mention contexts come from {text}"]
  parts.append(
    f"p(e|m) is counted from the links of {text}"
    if config.prior is None
    else "p(e|m) is that of --prior"
  )
  parts.append(
    f"word vectors are MVLSA's of {text}"
    if config.word_vectors is None
    else "word vectors are those of --word_vectors"
  )
  told = (
    "The thesis used a full Wikipedia dump for pages, mention contexts and "
    f"p(e|m), and word2vec of Google News. Here {'; '.join(parts)}. A mention "
    "without candidates counts as an error in F1."
  )
  if None in (config.dump, config.prior, config.word_vectors):
    told += (
      " Fewer entities are among the candidates than in the thesis where less "
      f"text is linked. With the thesis' inputs: {_THESIS}"
    )
  return told
