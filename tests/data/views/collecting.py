"""Small inputs of views, and what is collected of them."""

import gzip
import warnings

import numpy as np

from repr_jax.data.views import collection, sources, table_sources, vocab
from repr_jax.data.views.dependencies import RELATIONS

TEXT = "the cat sees the dog\nthe dog runs\nA Cat\n"
VOCAB = vocab.Vocab(("the", "dog", "cat", "runs"), [4, 3, 2, 1])


def collect(tmp_path, words=VOCAB, **options):
  """Views by name, and the warnings."""
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    found = collection.collect(words, sources_of(**options), tmp_path / "store")
  texts = [str(w.message) for w in caught]
  return {view.name: view for view in found}, texts


def sources_of(
  text=(), bitext=(), dependencies=(), wordnet=(), counts=(), matrices=(),
  vectors=(), relations=RELATIONS, layout="conllu", limit=sources.LIMIT,
  **offsets,
):  # fmt: skip
  """Sources of each kind, as the experiment makes them."""
  made = []
  if text:
    made.append(sources.text_source(text, limit=limit, **offsets))
  for entry in bitext:
    paths = entry.split(":")
    made.append(sources.bitext_source(paths, align=_by_place))
  if dependencies:
    made.append(
      sources.dependency_source(
        dependencies, relations=relations, layout=layout
      )
    )
  if wordnet:
    made.append(sources.wordnet_source(wordnet))
  made += [table_sources.counts_source(p, limit=limit) for p in counts]
  made += [table_sources.matrix_source(m.split(":")) for m in matrices]
  return [*made, *(table_sources.vectors_source(p) for p in vectors)]


def _by_place(source, target):
  """An aligner: words of one place belong together."""
  links = [
    (k, i, i)
    for k, (one, other) in enumerate(zip(source, target))
    for i in range(min(len(one), len(other)))
  ]
  return np.array(links), 3


def cell(view, word, column):
  row = VOCAB.words.index(word)
  return view.matrix[row, list(view.columns).index(column)]


def write(tmp_path, name, text):
  path = tmp_path / name
  if name.endswith(".gz"):
    path.write_bytes(gzip.compress(text.encode()))
  else:
    path.write_text(text)
  return str(path)


def tree(*rows):
  lines = [
    "\t".join([str(i), word, "_", "_", "_", "_", str(head), rel, "_", "_"])
    for i, (word, head, rel) in enumerate(rows, 1)
  ]
  return "\n".join(lines) + "\n\n"
