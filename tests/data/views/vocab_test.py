"""Vocabularies: canonical order, look-up, the thesis' filter, files."""

import collections

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from repr_jax import errors
from repr_jax.data.views import vocab

_FIXTURE = [hypothesis.HealthCheck.function_scoped_fixture]


def test_order_and_cut_do_not_depend_on_insertion():
  counts = {"b": 2, "a": 2, "c": 5, "d": 1, "e": 2}
  backwards = dict(reversed(counts.items()))
  one = vocab.Vocab.from_counts(counts, size=3)
  assert one == vocab.Vocab.from_counts(backwards, size=3)
  assert one.words == ("c", "a", "b")
  assert one.counts.tolist() == [5, 2, 2]
  assert vocab.Vocab.from_counts(counts, min_count=2).words == tuple("cabe")
  assert len(vocab.Vocab.from_counts(counts, size=0)) == 0


@hypothesis.given(
  st.dictionaries(st.text(), st.integers(1, 9)), st.lists(st.text())
)
def test_ids_agree_with_position(counts, others):
  found = vocab.Vocab.from_counts(counts)
  ids = found.ids([*found.words, *others])
  assert ids.dtype == np.int32
  expected = [
    found.words.index(word) if word in found.words else -1 for word in others
  ]
  assert ids.tolist() == [*range(len(found)), *expected]


def test_thesis_filter():
  # Over five characters with over three that are not letters: out.
  kept = ["the", "12345", "abc123", "a1b2c3", "naïveté"]
  assert all(map(vocab.keep_word, kept))
  assert not any(map(vocab.keep_word, ["123456", "ab1234", "a.b.c.d."]))
  counts = collections.Counter({"The": 2, "the": 3, "1234567": 9})
  assert vocab.filter_counts(counts) == {"the": 5}


def test_constructor_refuses_bad_shapes_and_repeats():
  with pytest.raises(errors.InputError):
    vocab.Vocab(("a",), np.array([1, 2]))
  with pytest.raises(errors.InputError):
    vocab.Vocab(("a", "a"), np.array([1, 2]))
  with pytest.raises(errors.InputError):
    vocab.Vocab.from_counts({"a": 1}, size=-1)


@hypothesis.given(
  st.dictionaries(
    st.text(
      st.characters(codec="utf-8", exclude_characters="\n\r\ufeff"), min_size=1
    ).filter(str.strip),
    st.integers(0, 10**17),
  )
)
@hypothesis.settings(
  suppress_health_check=_FIXTURE, deadline=None, max_examples=50
)
def test_file_round_trip(tmp_path, counts):
  path = tmp_path / "v.tsv"
  before = vocab.Vocab.from_counts(counts, min_count=0)
  vocab.write_vocab(path, before)
  assert vocab.read_vocab(path) == before


@pytest.mark.parametrize(
  ("text", "line"),
  [
    ("a\t1\nb\n", 2),
    ("a\nb\t1\n", 2),
    ("a\nb\na\n", 3),
    ("a\t1\nb\tx\n", 2),
    ("a\t1\n\nb\t2\na\t3\n", 4),
    ("a\t-1\n", 1),
    ("a\t9999999999999999999\n", 1),
    ("\t1\n", 1),
  ],
)
def test_bad_lines(tmp_path, text, line):
  path = tmp_path / "v.tsv"
  path.write_text(text)
  with pytest.raises(errors.InputError) as caught:
    vocab.read_vocab(path)
  assert caught.value.line == line


def test_words_without_counts_are_in_order(tmp_path):
  path = tmp_path / "v.txt"
  path.write_text("b\na\n\nnew york\n")
  read = vocab.read_vocab(path)
  assert read.words == ("b", "a", "new york")
  assert read.counts.tolist() == [3, 2, 1]


@hypothesis.given(st.binary())
@hypothesis.settings(
  suppress_health_check=_FIXTURE, deadline=None, max_examples=50
)
def test_any_bytes_give_a_vocabulary_or_an_input_error(tmp_path, data):
  path = tmp_path / "v.tsv"
  path.write_bytes(data)
  try:
    vocab.read_vocab(path)
  except errors.InputError as error:
    assert error.path == str(path)


def test_words_that_do_not_fit_a_line_are_refused(tmp_path):
  for word in ["a\nb", " ", "", "a\r"]:
    with pytest.raises(errors.InputError):
      vocab.write_vocab(tmp_path / "v", vocab.Vocab((word,), np.array([1])))
    assert not (tmp_path / "v").exists()
