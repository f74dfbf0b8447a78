"""Corpora: chunks agree with a plain loop, never cross a sentence."""

import bz2
import collections
import gzip
import tracemalloc

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from repr_jax import errors
from repr_jax.data.io import files
from repr_jax.data.views import text
from repr_jax.data.views import vocab as vocab_lib

_SETTINGS = hypothesis.settings(
  suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
  deadline=None,
  max_examples=60,
)
_LINES = st.lists(
  st.lists(st.sampled_from(["a", "B", "c", "ä", "\0", "zz"])).map(" ".join)
)


def _corpus(tmp_path, lines):
  half = len(lines) // 2
  first, second = tmp_path / "one.txt", tmp_path / "two.gz"
  first.write_text("".join(line + "\n" for line in lines[:half]))
  second.write_bytes(gzip.compress("\n".join(lines[half:]).encode()))
  return [first, second]


def _plain(lines):
  """Sentences by a plain loop."""
  split = [line.replace("\0", " ").lower().split() for line in lines]
  return [words for words in split if words]


@hypothesis.given(_LINES, st.integers(1, 12), st.integers(1, 50))
@_SETTINGS
def test_chunks_against_a_plain_loop(tmp_path, monkeypatch, lines, size, block):
  monkeypatch.setattr(files, "_BLOCK", block)
  paths = _corpus(tmp_path, lines)
  expected = _plain(lines)
  counts = text.count_words(paths)
  assert counts == collections.Counter(w for s in expected for w in s)
  assert list(text.sentences(paths, lower=True)) == expected
  vocab = vocab_lib.Vocab.from_counts(counts, size=3)
  found = []
  for chunk in text.token_chunks(paths, vocab, size):
    assert chunk.ids.dtype == np.int32
    assert chunk.starts[0] == 0 and chunk.starts[-1] == len(chunk.ids)
    assert len(chunk.ids) <= size or len(chunk.starts) == 2
    cuts = zip(chunk.starts[:-1], chunk.starts[1:])
    found += [chunk.ids[a:b].tolist() for a, b in cuts]
  assert found == [vocab.ids(words).tolist() for words in expected]


@hypothesis.given(_LINES, st.integers(1, 4))
@_SETTINGS
def test_pairs_stay_inside_their_sentence(tmp_path, lines, offset):
  paths = _corpus(tmp_path, lines)
  vocab = vocab_lib.Vocab.from_counts({"a": 3, "b": 2, "ä": 1})
  found = collections.Counter()
  for chunk in text.token_chunks(paths, vocab, 7):
    found.update(zip(*(ids.tolist() for ids in chunk.pairs(offset))))
  expected = collections.Counter()
  for words in _plain(lines):
    ids = vocab.ids(words).tolist()
    pairs = zip(ids[:-offset], ids[offset:])
    expected.update(pair for pair in pairs if min(pair) >= 0)
  assert found == expected
  with pytest.raises(errors.InputError):
    text.TokenChunk(np.zeros(1, np.int32), np.array([0, 1])).pairs(0)


def test_case_is_kept_on_request(tmp_path):
  path = tmp_path / "a"
  path.write_text("The the THE\n")
  assert text.count_words(path, lower=False)["The"] == 1
  vocab = vocab_lib.Vocab.from_counts({"THE": 1})
  (chunk,) = text.token_chunks(path, vocab, lower=False)
  assert chunk.ids.tolist() == [-1, -1, 0]


def test_memory_does_not_grow_with_the_corpus(tmp_path, monkeypatch):
  monkeypatch.setattr(files, "_BLOCK", 1 << 16)
  path = tmp_path / "a.bz2"
  line = " ".join(f"w{i}" for i in range(100)) + "\n"
  vocab = vocab_lib.Vocab.from_counts({"w1": 1})

  def peak(repeats):
    path.write_bytes(bz2.compress(line.encode() * repeats))
    tracemalloc.start()
    total = sum(len(c.ids) for c in text.token_chunks(path, vocab, 10_000))
    assert total == 100 * repeats
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most

  assert peak(4_000) < 1.3 * peak(1_000)


def test_bad_files(tmp_path):
  vocab = vocab_lib.Vocab.from_counts({"a": 1})
  good, bad = tmp_path / "good", tmp_path / "bad"
  good.write_text("a\n")
  bad.write_bytes(b"a\nb\n\xff\n")
  for read in [
    lambda paths: list(text.sentences(paths)),
    text.count_words,
    lambda paths: list(text.token_chunks(paths, vocab)),
  ]:
    with pytest.raises(errors.InputError) as caught:
      read([good, bad])
    assert (caught.value.path, caught.value.line) == (str(bad), 3)
    with pytest.raises(errors.InputError, match="no such file"):
      read(tmp_path / "nothing")
    with pytest.raises(errors.InputError, match="no files"):
      read([])
  with pytest.raises(errors.InputError, match="chunk_tokens"):
    list(text.token_chunks(good, vocab, 0))
