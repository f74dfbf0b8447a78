"""Multiview LSA from text to vectors against gensim's skip-gram.

python -m experiments.bench --suite=mvlsa [--size=full] [--repeats=1]

The cases of the suite `counting`, and the whole pipeline: the vocabulary is
given, 15 word-order views are counted from a text, weighted, decomposed and
combined into 300 dimensions, against skip-gram of 300 dimensions, 5 epochs
and 2 workers on the same text. The text is drawn from Zipf's law; "full" has
5 million tokens, which takes minutes a round.
"""

from typing import Any

import jax
import numpy as np

from experiments.bench import counting as counting_suite
from experiments.bench import harness
from repr_jax import multiview
from repr_jax.data.views import counting, text, vocab

_OFFSETS = range(1, 16)
_DIMENSIONS = {"small": 50, "full": 300}
_RANKS = {"small": 50, "full": 100}


def pipeline(data: counting_suite.Corpus, m: int, k: int) -> np.ndarray:
  """Text on the disk to vectors.

  Args:
    m: rank of each view's SVD.
    k: dimension.

  Returns:
    Vectors, [words, k].
  """
  assert data.path is not None
  names = tuple(f"w{i}" for i in range(data.rows))
  words = vocab.Vocab(names, np.ones(data.rows))
  chunks = text.token_chunks(data.path, words)
  how = multiview.Weighting("power", 0.25, columns=data.columns)
  with counting.count_offsets(
    chunks, data.rows, data.columns, _OFFSETS
  ) as tally:
    fitted = multiview.fit(
      [tally.matrix(offset) for offset in _OFFSETS], k, m=m, weighting=how,
      tolerance=1e-2, max_cycles=1, projections=False,
    )  # fmt: skip
  return jax.block_until_ready(fitted.model.embedding)


def _skip_gram(data: counting_suite.Corpus, k: int) -> Any:
  from gensim.models import word2vec

  assert data.path is not None
  return word2vec.Word2Vec(
    corpus_file=str(data.path), vector_size=k, window=5, sg=1, negative=5,
    min_count=1, epochs=5, workers=2, seed=1,
  ).wv.vectors  # fmt: skip


def cases(size: str) -> list[harness.Case]:
  """The cases of the suite."""
  k, m = _DIMENSIONS[size], _RANKS[size]
  counted = counting_suite.cases(size)
  from_text = next(case for case in counted if "text" in case.name)
  whole = harness.Case(
    f"15 views of text to {k} dimensions",
    from_text.setup,
    {
      "ours": lambda data: pipeline(data, m, k),
      "gensim skip-gram": lambda data: _skip_gram(data, k),
    },
  )
  return [*counted, whole]
