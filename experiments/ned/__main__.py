"""Which entity a mention means: priors, context, coherence (thesis 6.3).

python -m experiments.ned
python -m experiments.ned --data=DIRECTORY
python -m experiments.ned --preset=ned_thesis

The default corpus is the small Wikipedia dump that comes with gensim, parted
into training, validation and test; it takes about a minute on two cores.
--data names a directory with elevant/ and entity-fishing/ documents: prior,
word vectors and entity vectors then come from its training documents, and
AIDA, MSNBC, AQUAINT and ACE04 are the tests. The thesis had a whole dump of
Wikipedia and its p(e|m); --dump and --prior read them, streamed.

The work directory gets `results.json`, `report.html` and the answers of each
system; a run that was stopped goes on where it was.
"""

import dataclasses
from typing import Any

from absl import flags

from experiments.ned import chapter, data, reporting, systems
from experiments.ned.config import CONTEXTS, OBJECTIVES, Options
from experiments.run import report, report_page, runlib

_LISTS = {
  "train": "Training documents: JSON lines, AIDA's .tsv, Ganea's .csv. Of "
  "AIDA's public table, which has all in one file, name a part: PATH#train, "
  "PATH#testa or PATH#testb; so too for --validation and --tests.",
  "validation": "Documents that decide when to stop; part of --train if none.",
  "tests": "Test documents as NAME=PATH, or PATH alone for the file's name.",
  "objectives": f"Of entity vectors: {', '.join(OBJECTIVES)}.",
  "contexts": f"{', '.join(CONTEXTS)}: pages alone, or mentions too.",
  "widths": "Numbers of mentions that documents are padded to.",
}
_STRINGS = {
  "data": "Directory with elevant/ and entity-fishing/; files of --train, "
  "--validation and --tests are looked for in it.",
  "dump": "Wikipedia dump, for links, pages and contexts; .bz2 or .gz.",
  "prior": "p(e|m) in the public text format; counted from links if none.",
  "word_vectors": "File of word vectors; MVLSA's of the training text if none.",
}
_INTEGERS = {
  "max_documents": "Training documents at most; a dump's others still count "
  "in prior and vectors.",
  "top": "Candidates of a mention (thesis: 30).",
  "train_top": "Candidates of a mention in training, the likeliest; the time "
  "of a global step grows with the square (Ganea and Hofmann: 7).",
  "dim": "Numbers in MVLSA's word vectors and in VAE's (thesis: 300).",
  "vocabulary": "Words at most (thesis: 50,000).",
  "min_count": "Rarer words are dropped.",
  "drop_most_frequent": "Words too frequent to tell anything.",
  "window": "Words around a mention in U2 (thesis: 20).",
  "bag": "Words of an entity, at most, from U1 and from U2 each.",
  "vector_steps": "Steps of max-margin vectors, on U1 and on U2 each.",
  "vae_epochs": "Passes of the autoencoder over the entities.",
  "folds": "Parts of the training documents; a part is trained on with "
  "vectors of the others.",
  "context": "K, words around a mention (thesis: 100).",
  "keep": "R, words that attention keeps (thesis: 25).",
  "epochs": "Passes over the training documents, at most.",
  "patience": "Epochs without gain before the rate falls, then before the end.",
  "cells": "Mentions in a batch, padding included.",
}
_FLOATS = {
  "margin": "gamma of the loss (thesis: 0.01).",
  "rate": "Step size of Adam (thesis: 1e-4).",
  "lower_rate": "Step size once validation passes --threshold (thesis: 1e-5).",
  "threshold": "Share of validation right at which the rate falls.",
}


def _define() -> None:
  defaults: dict[str, Any] = dataclasses.asdict(Options())
  for name, text in _LISTS.items():
    flags.DEFINE_list(name, [str(x) for x in defaults[name]], text)
  for name, text in _STRINGS.items():
    flags.DEFINE_string(name, defaults[name], text)
  for name, text in _INTEGERS.items():
    flags.DEFINE_integer(name, defaults[name], text)
  for name, text in _FLOATS.items():
    flags.DEFINE_float(name, defaults[name], text)
  flags.DEFINE_bool(
    "field_prior",
    defaults["field_prior"],
    "Whether the random field knows the prior (thesis: no).",
  )
  flags.DEFINE_bool(
    "join_context",
    defaults["join_context"],
    "Whether what decides after the field sees the context too (thesis: no).",
  )


_define()


def _options() -> Options:
  names = [field.name for field in dataclasses.fields(Options)]
  given: dict[str, Any] = {name: flags.FLAGS[name].value for name in names}
  return Options(**given)


def main(argv: list[str]) -> None:
  """Trains and tests the systems that the flags name."""
  del argv
  options = _options()
  with runlib.Run("ned", volatile=("data",)) as run:
    results = systems.run_all(run, options)
    rows = reporting.rows(run, results, options)
    tables = chapter.tables(results, options)
    notes = chapter.notes(results, options)
    found = report.Chapter(
      "Entity disambiguation", "", rows, tables, notes=notes
    )
    report_page.write_report({"ned": found}, run.directory)
  print("\n\n".join(map(reporting.text, tables)))
  print("\n".join(["", *data.describe(results.corpus)]))


if __name__ == "__main__":
  runlib.launch(main)
