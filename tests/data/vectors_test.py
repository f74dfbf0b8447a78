"""Word vectors: exact round trips, gensim's word, and bad files."""

import gzip

import gensim.models
import numpy as np
import pytest

from repr_jax import errors
from repr_jax.data import vectors

_WORDS = ["the", "Zürich", "漢字", "3", "a_b", "1e5"]


def _example(n=6, d=4, seed=0):
  rng = np.random.default_rng(seed)
  array = rng.standard_normal((n, d)).astype(np.float32)
  array *= np.float32(10.0) ** rng.integers(-9, 9, (n, 1)).astype(np.float32)
  return vectors.Vectors((_WORDS + [f"w{i}" for i in range(n)])[:n], array)


def _same(one, other):
  assert one.words == other.words
  assert one.array.dtype == other.array.dtype == np.float32
  np.testing.assert_array_equal(
    one.array.view(np.uint32), other.array.view(np.uint32)
  )


@pytest.mark.parametrize("layout", vectors.LAYOUTS)
@pytest.mark.parametrize("name", ["v", "v.gz", "v.bz2"])
def test_round_trip_and_detection(tmp_path, layout, name):
  before = _example()
  if layout == "npz" and name != "v":
    with pytest.raises(errors.InputError, match="compressed already"):
      vectors.write_vectors(tmp_path / name, before, layout)
    return
  vectors.write_vectors(tmp_path / name, before, layout)
  _same(vectors.read_vectors(tmp_path / name), before)
  _same(vectors.read_vectors(tmp_path / name, layout), before)


def test_bit_patterns_of_all_sizes_come_back_from_text(tmp_path):
  bits = np.random.default_rng(0).integers(0, 2**32, 60_000, dtype=np.uint32)
  array = bits.view(np.float32)
  array = array[np.isfinite(array)][:50_000].reshape(-1, 10)
  before = vectors.Vectors([f"w{i}" for i in range(len(array))], array)
  vectors.write_vectors(tmp_path / "v", before, "glove")
  _same(vectors.read_vectors(tmp_path / "v"), before)


@pytest.mark.parametrize("layout", ["word2vec", "word2vec-binary", "glove"])
def test_gensim_reads_ours(tmp_path, layout):
  before = _example(40, 5)
  path = str(tmp_path / "v")
  vectors.write_vectors(path, before, layout)
  got = gensim.models.KeyedVectors.load_word2vec_format(
    path, binary=layout == "word2vec-binary", no_header=layout == "glove"
  )
  assert got.index_to_key == before.words
  np.testing.assert_array_equal(got.vectors, before.array)


@pytest.mark.parametrize(
  ("binary", "header"), [(False, False), (False, True), (True, True)]
)
def test_we_read_gensim(tmp_path, binary, header):
  before = _example(40, 5)
  keyed = gensim.models.KeyedVectors(5)
  keyed.add_vectors(before.words, before.array)
  path = str(tmp_path / "v")
  keyed.save_word2vec_format(
    path, binary=binary, write_header=header, sort_attr="index"
  )
  got = vectors.read_vectors(path)
  assert got.words == before.words
  np.testing.assert_array_equal(got.array, before.array)


def test_reads_the_original_tools_habits(tmp_path):
  # The C tool ends text lines with a blank and binary rows with a newline.
  path = tmp_path / "v"
  path.write_text("2 2\nthe 0.5 -1 \nof 1e-3 2 \n")
  np.testing.assert_array_equal(
    vectors.read_vectors(path).array, np.float32([[0.5, -1], [1e-3, 2]])
  )
  array = np.float32([[0.5, -1], [1e-3, 2]])
  rows = zip([b"the", b"of"], array)
  path.write_bytes(
    b"2 2\n" + b"".join(w + b" " + r.tobytes() + b"\n" for w, r in rows)
  )
  got = vectors.read_vectors(path)
  assert got.words == ["the", "of"]
  np.testing.assert_array_equal(got.array, array)


def test_words_with_spaces_and_odd_blanks(tmp_path):
  path = tmp_path / "v"
  path.write_text(". . . 1 2\nat a@b.c 3 4\nx\u00a0y\t5  6\n")
  got = vectors.read_vectors(path)
  assert got.words == [". . .", "at a@b.c", "x\u00a0y"]
  np.testing.assert_array_equal(got.array, [[1, 2], [3, 4], [5, 6]])


def test_limit_and_select(tmp_path):
  before = _example(40, 5)
  for layout in vectors.LAYOUTS:
    vectors.write_vectors(tmp_path / "v", before, layout)
    got = vectors.read_vectors(tmp_path / "v", limit=7)
    np.testing.assert_array_equal(got.array, before.array[:7])
  array, found = before.select(["nope", before.words[3]])
  assert found.tolist() == [False, True]
  np.testing.assert_array_equal(
    array, [np.zeros(5, np.float32), before.array[3]]
  )


@pytest.mark.parametrize(
  ("text", "line", "message"),
  [
    ("2 2\na 1 2\nb 1\n", 3, "expected 2 values"),
    ("2 2\na 1 2\nb 1 2 3\n", 3, "expected 2 values"),
    ("a 1 2\nb 1 2 3\n", 2, "expected 2 values"),
    ("a 1 2\nb 1  3 4\nc 1\t\n", 2, "expected 2 values"),
    ("a 1 2\nb 1 x\n", 2, "not a number"),
    ("a 1 2\nb 1 nan\n", 2, "not finite"),
    ("a 1 2\nb 1 1e60\n", 2, "not finite"),
    ("a 1 2\nb 1 2\na 3 4\n", 3, "repeats line 1"),
    ("a 1 2\n 1 2\n", 2, "no word"),
    ("a\nb\n", 1, "expected values"),
    ("a x\n", 1, "expected values"),
    ("3 2\na 1 2\n", 1, "claims 3 rows"),
    ("9999999999 9999999\na 1 2\n", 2, "expected 9999999 values"),
    ("5 99999999999\na 1 2\n", 1, "dimension"),
    ("", None, "no vectors"),
    ("0 2\n", None, "no vectors"),
  ],
)
def test_bad_text(tmp_path, text, line, message):
  path = tmp_path / "v"
  path.write_text(text)
  with pytest.raises(errors.InputError, match=message) as caught:
    vectors.read_vectors(path)
  assert caught.value.line == line


def test_text_that_is_not_utf8(tmp_path):
  path = tmp_path / "v"
  path.write_bytes(b"2 2\na 1 2\n\xff 1 2\n")
  with pytest.raises(errors.InputError, match="UTF-8") as caught:
    vectors.read_vectors(path)
  assert caught.value.line == 3


@pytest.mark.parametrize(
  ("data", "message"),
  [
    (b"2 2\na " + b"\0" * 8 + b"b \0\0", "row 1: expected 2 rows"),
    (b"99999999999 2\na " + b"\0" * 8, "row 1: expected"),
    (b"1 9999999\na \0\0\0", "row 0: expected"),
    (b"2 2\na " + b"\0" * 8 + b"\xff " + b"\0" * 8, "row 1: .*UTF-8"),
    (b"2 2\na " + b"\0" * 8 + b"a " + b"\0" * 8, "row 1: .*repeats row 0"),
    (b"1 1\na \0\0\x80\x7f", "row 0: .*not finite"),
    (b"1 1\na " + b"\0" * 4 + b"zz", "follow the last row"),
    (b"1 1\n " + b"\0" * 4, "empty"),
  ],
)
def test_bad_binary(tmp_path, data, message):
  path = tmp_path / "v"
  path.write_bytes(data)
  with pytest.raises(errors.InputError, match=message):
    vectors.read_vectors(path, "word2vec-binary")


def test_refuses_to_write_what_cannot_be_read(tmp_path):
  path = tmp_path / "v"
  one = np.ones((1, 2), np.float32)
  for bad in [
    vectors.Vectors(["a b"], one),
    vectors.Vectors([""], one),
    vectors.Vectors(["a\n"], one),
    vectors.Vectors(["\ud800"], one),
    vectors.Vectors(["a"], one * np.nan),
    vectors.Vectors([], np.ones((0, 2))),
  ]:
    with pytest.raises(errors.InputError):
      vectors.write_vectors(path, bad)
    assert not path.exists()
  with pytest.raises(errors.InputError, match="layout"):
    vectors.write_vectors(path, _example(), "text")
  with pytest.raises(errors.InputError, match="layout"):
    vectors.read_vectors(path, "text")
  for words in (["a"], ["a", "a"]):
    with pytest.raises(errors.InputError):
      vectors.Vectors(words, np.ones((2, 2)))


def test_truncated_gz(tmp_path):
  path = tmp_path / "v.gz"
  text = "".join(f"w{i} {i} 1\n" for i in range(5000)).encode()
  path.write_bytes(gzip.compress(text)[:-20])
  with pytest.raises(errors.InputError, match="truncated"):
    vectors.read_vectors(path)


def test_halves_of_characters_are_refused_before_a_file_is_there(tmp_path):
  value = vectors.Vectors(["a", "b\ud800"], np.zeros((2, 1), np.float32))
  with pytest.raises(errors.InputError, match="no character"):
    vectors.write_vectors(tmp_path / "v.npz", value, "npz")
  assert not list(tmp_path.iterdir())
