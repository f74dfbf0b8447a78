"""Counting against a plain dictionary; streaming against one piece."""

import collections
import os
import tempfile

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from repr_jax import errors
from repr_jax.data.views import counting

_SENTENCES = st.lists(
  st.lists(st.integers(-1, 6), max_size=9), min_size=0, max_size=8
)


def _chunks(sentences, per_chunk):
  for i in range(0, len(sentences), per_chunk):
    group = sentences[i : i + per_chunk]
    lengths = [len(s) for s in group]
    starts = np.cumsum([0, *lengths[:-1]])
    yield np.array([w for s in group for w in s], np.int32), starts


def _brute(sentences, rows, columns, offset):
  counts = np.zeros((rows, columns), np.float32)
  for sentence in sentences:
    for p, word in enumerate(sentence):
      q = p - offset
      if word < 0 or not 0 <= q < len(sentence):
        continue
      if 0 <= sentence[q] < columns:
        counts[word, sentence[q]] += 1
  return counts


@settings(max_examples=60, deadline=None)
@given(
  sentences=_SENTENCES,
  per_chunk=st.integers(1, 4),
  columns=st.integers(1, 7),
  piece=st.integers(1, 12),
  limit=st.integers(1, 40),
)
def test_offsets_equal_brute_force_however_streamed(
  sentences, per_chunk, columns, piece, limit
):
  offsets = (1, 2, 5, -1, -3)
  with counting.count_offsets(
    _chunks(sentences, per_chunk),
    7,
    columns,
    offsets,
    piece=piece,
    limit=limit,
    workers=2,
  ) as tally:
    for offset in offsets:
      got = tally.matrix(offset)
      assert got.dtype == np.float32 and got.shape == (7, columns)
      assert got.has_sorted_indices
      np.testing.assert_array_equal(
        got.toarray(), _brute(sentences, 7, columns, offset)
      )


def test_following_words_are_the_transpose_of_preceding_words():
  rng = np.random.default_rng(0)
  ids = rng.integers(-1, 30, 2000).astype(np.int32)
  chunk = (ids, np.arange(0, 2000, 17))
  with counting.count_offsets([chunk], 30, 30, (2, -2)) as tally:
    np.testing.assert_array_equal(
      tally.matrix(2).toarray(), tally.matrix(-2).T.toarray()
    )


def test_held_entries_stay_within_the_limit():
  rng = np.random.default_rng(1)
  limit, offsets = 3000, tuple(range(1, 6))
  ids = rng.integers(0, 500, 40_000).astype(np.int32)

  def chunks():
    for i in range(0, len(ids), 4000):
      yield ids[i : i + 4000], np.arange(0, 4000, 25)

  with tempfile.TemporaryDirectory() as folder:
    with counting.count_offsets(
      chunks(), 500, 500, offsets, limit=limit, spill=folder
    ) as tally:
      assert tally.spilled > len(offsets)
      assert 0 < tally.peak <= limit
      sizes = [block.nnz for block in tally.blocks(1)]
      assert len(sizes) > 1
      assert max(sizes) <= limit // 4
      total = sum(b.sum() for b in tally.blocks(2))
      assert total == 40_000 // 25 * 23
    assert os.listdir(folder) == []


def test_wide_keys_and_narrow_keys_agree():
  rng = np.random.default_rng(2)
  rows, columns = rng.integers(-1, 50, (2, 4000))
  narrow = counting.count_pairs(rows, columns, (50, 50))
  wide = counting.count_pairs(rows, columns, (50, 2**31 - 1))
  expected = collections.Counter(
    (r, c) for r, c in zip(rows.tolist(), columns.tolist()) if min(r, c) >= 0
  )
  got = {(r, c): n for r, c, n in zip(*wide.tocoo().coords, wide.tocoo().data)}
  assert got == expected
  np.testing.assert_array_equal(wide.data, narrow.data)
  np.testing.assert_array_equal(wide.indices, narrow.indices)


def test_counts_beyond_int32_are_kept():
  big = scipy.sparse.csr_array(np.array([[2**30, 0]], np.int32))
  with counting.Tally(["a"], (1, 2)) as tally:
    for _ in range(5):
      tally.add("a", big)
    assert tally.matrix("a")[0, 0] == 5 * 2**30


def test_an_empty_corpus_gives_empty_views():
  with counting.count_offsets([], 4, 3, (1,)) as tally:
    assert tally.matrix(1).shape == (4, 3)
    assert tally.matrix(1).nnz == 0


@pytest.mark.parametrize("offsets", [(), (0,), (1, 1)])
def test_bad_offsets_are_refused(offsets):
  with pytest.raises(errors.InputError, match="offsets"):
    counting.count_offsets([], 4, 3, offsets)


@pytest.mark.parametrize(
  "ids, starts", [([5], [0]), ([1, 2], []), ([1, 2], [1]), ([1, 2], [0, 7])]
)
def test_bad_chunks_are_refused(ids, starts):
  chunk = (np.array(ids, np.int32), np.array(starts, np.int64))
  with pytest.raises(errors.InputError):
    counting.count_offsets([chunk], 4, 3, (1,))
