"""Relatedness of vectors: learned, written and measured one by one."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from experiments.relatedness import data, train
from experiments.relatedness.config import Config
from experiments.run import runlib, word_vectors
from repr_jax.data import entities, relatedness, wordnet
from repr_jax.data import vectors as vectors_lib
from repr_jax.data.documents.linked_documents import LinkedDocument
from repr_jax.data.entities import bags as bags_lib
from repr_jax.evaluation import relatedness as measures


class Line(NamedTuple):
  """Figures of one kind of vectors on one file of queries.

  Attributes:
    vectors: objective and bags of words, as "vae U1+U2".
    queries: name of the queries.
    figures: the measures.
  """

  vectors: str
  queries: str
  figures: measures.Relatedness


def evaluate(
  run: runlib.Run, config: Config, say: Callable[[str], None]
) -> list[Line]:
  """Learns all vectors, writes them, and measures each.

  Returns:
    The figures, in the order of the objectives.
  """

  def sentences() -> Iterator[entities.Sentence]:
    return data.stream(list(config.corpus), config.form, config.wordnet_path)

  named = {
    name: relatedness.read_relatedness(path)
    for name, path in data.query_names(config.queries).items()
  }
  classes = {}
  if not named:
    opened = wordnet.load(config.wordnet_path)
    classes["classes"] = data.class_queries(opened, config.seed)
  known = word_vectors.fit(
    (LinkedDocument(x.doc, x.tokens, ()) for x in sentences()),
    config.words(),
    run.directory / "words",
  )
  size = len(known.vocabulary)
  bags = bags_lib.from_sentences(
    sentences(), known.vocabulary, window=config.window,
    most_page=config.most_words, most_context=config.most_words,
    skip_most_frequent=min(config.drop_most_frequent, size // 10),
  )  # fmt: skip
  say(
    f"{len(bags.entities):,} entities, {bags.without_page:,} of them without "
    f"a page; {size:,} words"
  )
  train.say_missing(bags, config, say)
  rows = {name: i for i, name in enumerate(bags.entities)}
  asked = {
    name: data.rename(read, list(config.corpus), set(rows))
    for name, read in named.items()
  } or classes
  lines = []
  for objective in config.objectives:
    for contexts, vectors in train.learn(objective, bags, known, config):
      label = f"{objective}-{contexts}.npz"
      learned = vectors_lib.Vectors(bags.entities, vectors)
      vectors_lib.write_vectors(run.directory / label, learned, "npz")
      if objective == config.objectives[0]:
        run.vectors(bags.entities, vectors)
      for name, queries in asked.items():
        figures = measures.evaluate_relatedness(
          queries, vectors, rows, missing=config.missing
        )
        lines.append(Line(f"{objective} {contexts}", name, figures))
        say(_text(lines[-1]))
  return lines


def _text(line: Line) -> str:
  figures = line.figures
  values = ", ".join(f"{k} {v:.3f}" for k, v in figures.means.items())
  return (
    f"{line.queries}: {line.vectors}: "
    f"{values or 'no query could be scored'} "
    f"({len(figures.queries)} queries, {len(figures.skipped)} skipped, "
    f"{figures.coverage:.0%} of candidates covered)"
  )
