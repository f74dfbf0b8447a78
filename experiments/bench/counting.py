"""Counting the 15 word-order views of a corpus (thesis 3.4).

python -m experiments.bench --suite=counting [--size=full]

`ids` starts from word numbers in memory, `text` from a file on the disk. The
corpus is drawn from Zipf's law over a fixed vocabulary, in sentences of 5 to
44 words; "full" has 5 million tokens. On two cores a full run of one round
takes about three minutes.

gensim does not count by offset; its contender is `Phrases`, which counts
adjacent pairs, one offset of the fifteen. GloVe's `cooccur` (the 15 words
before, unweighted, all offsets in one matrix) takes part if the environment
variable GLOVE_COOCCUR holds the path of the program.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from experiments.bench import harness
from repr_jax.data.io import files
from repr_jax.data.views import counting, text, vocab

_OFFSETS = range(1, 16)
_TOKENS = {"small": 200_000, "full": 5_000_000}
_WORDS = {"small": 20_000, "full": 100_000}
_COLUMNS = 12_500


class Corpus(NamedTuple):
  """Word ids one after the other, where sentences start, and sizes."""

  ids: np.ndarray
  starts: np.ndarray
  rows: int
  columns: int
  path: pathlib.Path | None = None


def corpus(tokens: int, words: int) -> Corpus:
  """Draws a corpus from Zipf's law.

  Args:
    words: size of the vocabulary.

  Returns:
    The corpus; smaller word ids are more frequent.
  """
  rng = np.random.default_rng(0)
  chance = 1 / np.arange(1, words + 1)
  ids = rng.choice(words, tokens, p=chance / chance.sum()).astype(np.int32)
  starts = np.cumsum(rng.integers(5, 45, tokens // 5)) - 5
  starts = np.concatenate([[0], starts[(starts > 0) & (starts < tokens)]])
  return Corpus(ids, starts, words, min(words, _COLUMNS))


def _on_disk(tokens: int, words: int) -> Corpus:
  """Writes the corpus once per user and size; it is left on the disk."""
  data = corpus(tokens, words)
  folder = pathlib.Path(tempfile.gettempdir())
  folder /= f"repr_jax-counting-{os.getuid()}-{tokens}-{words}"
  folder.mkdir(exist_ok=True)
  path = folder / "corpus.txt"
  if path.exists():
    return data._replace(path=path)
  names = np.array([f"w{i}" for i in range(words)])
  ends = np.append(data.starts[1:], tokens)
  with files.atomic_write(folder / "vocabulary.txt") as stream:
    stream.writelines(f"{name} 1\n" for name in names)
  with files.atomic_write(path) as stream:
    for start, end in zip(data.starts, ends):
      stream.write(" ".join(names[data.ids[start:end]]) + "\n")
  return data._replace(path=path)


def _ours(data: Corpus) -> list[Any]:
  chunk = (data.ids, data.starts)
  with counting.count_offsets(
    [chunk], data.rows, data.columns, _OFFSETS
  ) as tally:
    return [tally.matrix(offset) for offset in _OFFSETS]


def _python_loop(data: Corpus) -> list[Any]:
  """A dictionary of pairs for each offset, then scipy."""
  ends = np.append(data.starts[1:], len(data.ids)).tolist()
  ids, columns = data.ids.tolist(), data.columns
  spans = list(zip(data.starts.tolist(), ends))
  matrices = []
  for offset in _OFFSETS:
    counts: dict[tuple[int, int], int] = {}
    for start, end in spans:
      for p in range(start + offset, end):
        column = ids[p - offset]
        if column < columns:
          key = (ids[p], column)
          counts[key] = counts.get(key, 0) + 1
    places = np.array(list(counts), np.int64).reshape(-1, 2).T
    values = np.fromiter(counts.values(), np.float32)
    shape = (data.rows, columns)
    matrices.append(
      scipy.sparse.csr_array((values, (places[0], places[1])), shape=shape)
    )
  return matrices


def _scipy_loop(data: Corpus) -> list[Any]:
  """Pairs of one offset at a time, summed by scipy's conversion to CSR."""
  ends = np.append(data.starts[1:], len(data.ids))
  sentence = np.repeat(np.arange(len(ends)), ends - data.starts)
  matrices = []
  for offset in _OFFSETS:
    row, column = data.ids[offset:], data.ids[:-offset]
    kept = sentence[offset:] == sentence[:-offset]
    kept &= column < data.columns
    ones = np.ones(int(kept.sum()), np.float32)
    pairs = (ones, (row[kept], column[kept]))
    shape = (data.rows, data.columns)
    matrices.append(scipy.sparse.coo_array(pairs, shape=shape).tocsr())
  return matrices


def _ours_text(data: Corpus) -> list[Any]:
  names = tuple(f"w{i}" for i in range(data.rows))
  words = vocab.Vocab(names, np.ones(data.rows))
  chunks = text.token_chunks(str(data.path), words, lower=False)
  with counting.count_offsets(
    chunks, data.rows, data.columns, _OFFSETS
  ) as tally:
    return [tally.matrix(offset) for offset in _OFFSETS]


def _gensim_phrases(data: Corpus) -> Any:
  from gensim.models import phrases, word2vec

  lines = word2vec.LineSentence(str(data.path))
  return phrases.Phrases(lines, max_vocab_size=1 << 30).vocab


def _glove(data: Corpus) -> int:
  program = os.environ.get("GLOVE_COOCCUR") or shutil.which("cooccur")
  if not program:
    raise ImportError("set GLOVE_COOCCUR to the program cooccur of GloVe")
  assert data.path is not None
  options = ["-window-size", "15", "-symmetric", "0", "-memory", "4"]
  options += ["-distance-weighting", "0", "-verbose", "0"]
  options += ["-vocab-file", str(data.path.with_name("vocabulary.txt"))]
  options += ["-overflow-file", str(data.path.with_name("overflow"))]
  with open(data.path) as stream, open(os.devnull, "wb") as out:
    subprocess.run(
      [program, *options], stdin=stream, stdout=out, stderr=out, check=True
    )
  return 0


def _quality(data: Corpus, result: Any) -> dict[str, float]:
  """Pairs counted and distinct pairs; contenders that agree have the same."""
  del data
  if not isinstance(result, list):
    return {}
  return {
    "pairs": float(sum(view.sum(dtype=np.float64) for view in result)),
    "distinct": float(sum(view.nnz for view in result)),
  }


def cases(size: str) -> list[harness.Case]:
  """The cases of the suite."""
  tokens, words = _TOKENS[size], _WORDS[size]
  return [
    harness.Case(
      "counting 15 offsets, ids",
      lambda: corpus(tokens, words),
      {"ours": _ours, "python": _python_loop, "scipy": _scipy_loop},
      _quality,
    ),
    harness.Case(
      "counting 15 offsets, text",
      lambda: _on_disk(tokens, words),
      {
        "ours": _ours_text,
        "gensim Phrases, 1 offset": _gensim_phrases,
        "GloVe cooccur": _glove,
      },
      _quality,
    ),
  ]
