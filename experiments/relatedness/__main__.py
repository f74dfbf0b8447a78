"""Vectors of entities, and how well their cosines tell related ones.

python -m experiments.relatedness                 (WordNet, about two minutes)
python -m experiments.relatedness --corpus=enwiki-pages-articles.xml.bz2 \
    --queries=relatedness/test.svm --workdir=runs/relatedness

Max-margin vectors on pages (U1) and then on contexts of mentions (U2),
posterior means of an autoencoder, and the same untrained (thesis 6.2).
--corpus is streamed, so that a whole dump of Wikipedia, which the thesis
used, needs memory for its entities alone. --queries are SVMlight files of
Ceccarelli et al. (NDCG@1, 5, 10 and MAP; the thesis' best: .646, .611, .639
and .576) or KORE (Spearman's correlation for each seed); by default they are
made of WordNet's classes: a seed, five of its class and twenty of others.
--workdir gets the figures as report.html, the vectors of each objective, and
those of the first one, with contexts, as vectors.npz and in word2vec's format.
"""

import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from absl import flags

from experiments.ned import config as ned_options
from experiments.ned import words as words_lib
from experiments.relatedness import data
from experiments.run import progress, report, report_page, runlib
from repr_jax.data import entities, relatedness, wordnet
from repr_jax.data import vectors as vectors_lib
from repr_jax.data.documents.corpus_files import FORMS
from repr_jax.data.documents.linked_documents import LinkedDocument
from repr_jax.data.entities import bags as entity_bags
from repr_jax.errors import InputError
from repr_jax.evaluation import relatedness as measures
from repr_jax.linking import entity_vectors
from repr_jax.setexp import autoencoder

OBJECTIVES = ("max_margin", "vae", "null")
_THESIS = {
  ("max_margin", "U1"): (0.616, 0.590, 0.616, 0.549),
  ("max_margin", "U1+U2"): (0.646, 0.611, 0.639, 0.576),
  ("vae", "U1"): (0.592, 0.559, 0.578, 0.514),
  ("vae", "U1+U2"): (0.615, 0.571, 0.596, 0.542),
  ("null", "U1"): (0.577, 0.537, 0.563, 0.503),
  ("null", "U1+U2"): (0.615, 0.571, 0.596, 0.542),
}

_NOTE = (
  "The thesis learned from a whole dump of Wikipedia and asked the queries of "
  "Ceccarelli et al.; figures of other text or queries are not comparable. "
  "With both: python -m experiments.relatedness "
  "--preset=relatedness_thesis "
  "--corpus=enwiki-pages-articles.xml.bz2 --queries=relatedness/test.svm"
)

_CORPUS = flags.DEFINE_list(
  "corpus",
  ["wordnet"],
  "wordnet, wikipedia (the small dump in gensim's wheel), or files: dumps of "
  "Wikipedia, JSON lines of sentences, of entities or of linked documents.",
)
_FORM = flags.DEFINE_enum("form", "auto", list(FORMS), "Form of the files.")
_WORDNET = flags.DEFINE_string(
  "wordnet_path", None, "Folder of WordNet; by default the usual places."
)
_QUERIES = flags.DEFINE_list(
  "queries", [], "Files of relatedness queries; by default WordNet's classes."
)
_OBJECTIVES = flags.DEFINE_list(
  "objectives", list(OBJECTIVES), "Which vectors to learn."
)
_VECTORS = flags.DEFINE_string(
  "word_vectors", None, "File of word vectors; by default MVLSA's of the text."
)
_DIM = flags.DEFINE_integer("dim", 100, "Numbers in a vector (thesis: 300).", 1)
_VOCABULARY = flags.DEFINE_integer(
  "vocabulary", 50_000, "Words that count, at most (thesis: 50,000).", 2
)
_MIN_COUNT = flags.DEFINE_integer(
  "min_count", 3, "Rarer words are left out.", 1
)
_FREQUENT = flags.DEFINE_integer(
  "drop_most_frequent", 100, "The most frequent words are in no bag.", 0
)
_WINDOW = flags.DEFINE_integer("window", 20, "Words around a mention.", 1)
_MOST = flags.DEFINE_integer(
  "most_words", 1000, "Words kept of a page, and of an entity's contexts.", 1
)
_STEPS = flags.DEFINE_integer("steps", 400, "Steps of max-margin vectors.", 0)
_EPOCHS = flags.DEFINE_integer("epochs", 10, "Epochs of the autoencoder.", 1)
_MISSING = flags.DEFINE_enum(
  "missing",
  "last",
  ["last", "skip"],
  "Candidates without a vector: ranked last, or left out of the query.",
)


def learn(
  objective: str, bags: entity_bags.Bags, known: words_lib.Words, seed: int
) -> Iterator[tuple[str, np.ndarray]]:
  """Vectors of one objective, on pages and on pages with contexts.

  Args:
    objective: one of `OBJECTIVES`.
    bags: words of n entities.
    known: words with vectors.
    seed: of starts, draws and training.

  Yields:
    "U1" and "U1+U2", each with vectors [n, d]; without what has no word, the
    pages or the contexts.
  """
  pages, contexts = len(bags.page_words) > 0, len(bags.context_words) > 0
  key = jax.random.key(seed)
  page = (bags.page_offsets, bags.page_words)
  context = (bags.context_offsets, bags.context_words)
  counts = known.vocabulary.counts
  if objective == "max_margin":
    first = entity_vectors.fit_max_margin(
      known.vectors, *page, counts, key=key, steps=_STEPS.value
    )
    if pages:
      yield "U1", np.asarray(first)
    if not contexts:
      return
    second = entity_vectors.fit_max_margin(
      known.vectors, *context, counts, key=key, steps=_STEPS.value, start=first
    )
    yield "U1+U2", np.asarray(second)
    return
  size, width = known.vectors.shape
  config = autoencoder.Config(
    dim=width, hidden=(150,), weighting="bm25", lower_bounded_variance=True
  )
  epochs = _EPOCHS.value if objective == "vae" else 0
  alone = entity_vectors.bag_counts(*page, size)
  both = alone + entity_vectors.bag_counts(*context, size)
  for name, table, any_word in (
    ("U1", alone, pages), ("U1+U2", both, contexts)
  ):  # fmt: skip
    if not any_word:
      continue
    yield (
      name,
      entity_vectors.posterior_means(
        table, key=key, config=config, epochs=epochs
      ),
    )


def evaluate(
  run: runlib.Run, say: Callable[[str], None]
) -> list[tuple[str, str, measures.Relatedness]]:
  """Learns all vectors, writes them, and measures each.

  Args:
    run: the run.
    say: called with a line of text when something was done.
  """

  def sentences() -> Iterator[entities.Sentence]:
    return data.stream(_CORPUS.value, _FORM.value, _WORDNET.value)

  named = {
    name: relatedness.read_relatedness(path)
    for name, path in data.query_names(_QUERIES.value).items()
  }
  known = _words(sentences(), run.directory)
  size = len(known.vocabulary)
  bags = entity_bags.collect(
    sentences(), known.vocabulary, window=_WINDOW.value, most_page=_MOST.value,
    most_context=_MOST.value,
    skip_most_frequent=min(_FREQUENT.value, size // 10),
  )  # fmt: skip
  say(
    f"{len(bags.entities):,} entities, {bags.without_page:,} of them without "
    f"a page; {size:,} words"
  )
  _say_missing(bags, say)
  rows = {name: i for i, name in enumerate(bags.entities)}
  asked = {
    name: data.rename(read, _CORPUS.value, set(rows))
    for name, read in named.items()
  } or {
    "classes": data.class_queries(
      wordnet.load(_WORDNET.value), runlib.SEED.value
    )
  }
  found = []
  for objective in _OBJECTIVES.value:
    for contexts, vectors in learn(objective, bags, known, runlib.SEED.value):
      label = f"{objective}-{contexts}.npz"
      learned = vectors_lib.Vectors(bags.entities, vectors)
      vectors_lib.write_vectors(run.directory / label, learned, "npz")
      if objective == _OBJECTIVES.value[0]:
        run.vectors(bags.entities, vectors)
      for name, queries in asked.items():
        figures = measures.evaluate_relatedness(
          queries, vectors, rows, missing=_MISSING.value
        )
        found.append((f"{objective} {contexts}", name, figures))
        say(_line(found[-1]))
  return found


def tables(
  found: Sequence[tuple[str, str, measures.Relatedness]],
) -> list[report.Table]:
  """A table for each file of queries, a line for each kind of vectors.

  Args:
    found: from `evaluate`.

  Returns:
    The tables; a measure that the thesis has is followed by its figure.
  """
  made = []
  for name in dict.fromkeys(name for _, name, _ in found):
    own = [(label, x) for label, other, x in found if other == name]
    measured = list(next((x.means for _, x in own if x.means), {}))
    rows: list[list[Any]] = []
    for label, figures in own:
      cells: list[Any] = [label]
      for metric in measured:
        value = figures.means.get(metric)
        cells.append("" if value is None else round(value, 3))
        cells += [x for k, x in _thesis(label, name).items() if k == metric]
      counts = [len(figures.queries), len(figures.skipped)]
      rows.append([*cells, *counts, f"{figures.coverage:.0%}"])
    header = ["vectors"]
    for metric in measured:
      header += [metric] + ["thesis"] * (metric in _thesis(own[0][0], name))
    header += ["queries", "skipped", "candidates with a vector"]
    made.append(report.Table(name, header, rows))
  return made


def _thesis(label: str, name: str) -> dict[str, float]:
  """The thesis' figures of vectors, on queries in Ceccarelli's format."""
  if not name.endswith((".svm", ".svm.gz")):
    return {}
  objective, contexts = label.split()
  names = ("NDCG@1", "NDCG@5", "NDCG@10", "MAP")
  return dict(zip(names, _THESIS[objective, contexts]))


def main(argv: list[str]) -> None:
  """Learns and measures what the flags name."""
  del argv
  for name in _OBJECTIVES.value:
    if name not in OBJECTIVES:
      raise InputError(f"--objectives: {name!r} is none of {OBJECTIVES}")
  with runlib.Run("relatedness") as run:
    if run.finished:
      progress.say(f"relatedness: finished before; see {run.directory}")
      return
    found = evaluate(run, progress.say)
    page = report.Chapter(
      "Entity relatedness",
      "Cosines of entities' vectors, learned from pages (U1) and contexts of "
      "mentions (U2).",
      tables=tables(found),
      notes=[_NOTE],
    )
    report_page.write_report({"relatedness": page}, run.directory)
    for label, name, figures in found:
      thesis = _thesis(label, name)
      for metric, value in figures.means.items():
        run.row(f"{name}: {label}", metric, value, thesis=thesis.get(metric))
      run.row(f"{name}: {label}", "coverage", figures.coverage)
      run.row(f"{name}: {label}", "queries skipped", len(figures.skipped))
      if "Spearman" in figures.means:
        for seed, row in figures.queries.items():
          run.row(f"{name}: {label}: {seed}", "Spearman", row["Spearman"])


def _say_missing(bags: entity_bags.Bags, say: Callable[[str], None]) -> None:
  """Says what cannot be learned; InputError where nothing can."""
  pages, contexts = len(bags.page_words), len(bags.context_words)
  if not pages and not contexts:
    raise InputError(
      f"--corpus={','.join(_CORPUS.value)}: no entity has a word on its page "
      "or around a mention; give more text, or lower --min_count and "
      "--drop_most_frequent"
    )
  if not pages:
    say("no entity has a page with words: there is no U1, U1+U2 is U2 alone")
  if not contexts:
    say("no mention has words around it: there is no U1+U2")


def _line(item: tuple[str, str, measures.Relatedness]) -> str:
  label, name, figures = item
  values = ", ".join(f"{k} {v:.3f}" for k, v in figures.means.items())
  return (
    f"{name}: {label}: {values or 'no query could be scored'} "
    f"({len(figures.queries)} queries, {len(figures.skipped)} skipped, "
    f"{figures.coverage:.0%} of candidates covered)"
  )


def _words(
  sentences: Iterator[entities.Sentence], folder: pathlib.Path
) -> words_lib.Words:
  settings: dict[str, Any] = {
    "word_vectors": _VECTORS.value,
    "dim": _DIM.value,
    "vocabulary": _VOCABULARY.value,
    "min_count": _MIN_COUNT.value,
    "seed": runlib.SEED.value,
  }
  documents = (LinkedDocument(x.doc, x.tokens, ()) for x in sentences)
  chosen = ned_options.Options(**settings)
  return words_lib.fit(documents, chosen, folder / "words")


if __name__ == "__main__":
  runlib.launch(main)
