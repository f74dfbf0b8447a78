"""Readers of vectors and arrays, on damaged files: see `fuzz_cases`."""

import collections
import io

import fuzz_cases
import numpy as np
import pytest
import scipy.sparse
from fuzz_cases import Reader

from repr_jax.data import vectors
from repr_jax.data.io import array_files
from repr_jax.data.views import table_sources, vocab


def _check_vectors(found) -> None:
  assert found.array.dtype == np.float32 and found.array.ndim == 2
  assert len(found.words) == len(set(found.words)) == len(found.array) > 0
  assert found.array.shape[1] > 0 and np.isfinite(found.array).all()
  for word in found.words:
    assert word
    word.encode()


def _check_arrays(arrays) -> None:
  for name, array in arrays.items():
    assert isinstance(array, np.ndarray) and not array.dtype.hasobject
    name.encode("utf-8", "surrogateescape")
    "".join(map(str, array.reshape(-1).tolist())).encode("utf-8", "replace")


def _read(layout):
  return lambda path: vectors.read_vectors(path, layout)


def _samples(layout, names=("the", "of", "naïve")) -> bytes:
  array = np.array([[1.5, -2e-3, 0], [1e9, 3, 4], [5, 6, 7]], np.float32)
  with fuzz_cases.folder() as place:
    path = place / "v"
    vectors.write_vectors(path, vectors.Vectors(list(names), array), layout)
    return path.read_bytes()


def _saved(array, **other) -> bytes:
  stream = io.BytesIO()
  if other:
    np.savez_compressed(stream, array=array, **other)
  else:
    np.save(stream, array)
  return stream.getvalue()


_READERS = (
  Reader(
    "word2vec", (_samples("word2vec"),), _read("word2vec"), _check_vectors, " "
  ),
  Reader(
    "GloVe",
    (_samples("glove"), b"a b 1 2\nc 3 4\n"),
    _read("glove"),
    _check_vectors,
    " ",
  ),
  Reader(
    "word2vec binary",
    (_samples("word2vec-binary"),),
    _read("word2vec-binary"),
    _check_vectors,
    None,
  ),
  Reader(
    "vectors in .npz",
    (_samples("npz"),),
    _read("npz"),
    _check_vectors,
    None,
    lines=False,
  ),
  Reader(
    "vectors of any layout",
    tuple(map(_samples, vectors.LAYOUTS)),
    _read(None),
    _check_vectors,
    None,
    lines=False,
  ),
  Reader(
    ".npz",
    (_saved(np.arange(3.0), words=np.array(["a", "é"]), none=np.zeros(0)),),
    array_files.read_npz,
    _check_arrays,
    None,
    lines=False,
  ),
  Reader(
    ".npy",
    (
      _saved(np.arange(6, dtype=np.int32).reshape(2, 3)),
      _saved(np.zeros((0, 4))),
      _saved(np.array(["a", "bcd"])),
    ),
    lambda path: {"array": np.array(array_files.map_array(path))},
    lambda arrays: [array.tobytes() for array in arrays.values()],
    None,
    lines=False,
  ),
)


def _saved_matrix(kind: str) -> bytes:
  stream = io.BytesIO()
  matrix = scipy.sparse.coo_array(np.array([[1, 0, 2], [0, 0, 3.0]]))
  scipy.sparse.save_npz(stream, matrix.asformat(kind))
  return stream.getvalue()


def _views(made):
  return [list(one.blocks) for one in made]


def _check_blocks(views) -> None:
  for blocks in views:
    for block in blocks:
      assert block.shape[0] and np.isfinite(block.data).all()
      assert (block.data >= 0).all()


_WORDS = vocab.Vocab(("the", "cat"), np.array([5, 2]))
_VIEWS = (
  Reader(
    "matrix",
    tuple(map(_saved_matrix, ("csr", "coo"))),
    lambda path: _views(
      table_sources.matrix_source([path, f"{path[:-9]}rows"]).make(
        _WORDS, collections.Counter()
      )
    ),
    _check_blocks,
    None,
    lines=False,
    beside={"rows": b"the\ndog\n"},
  ),
  Reader(
    "counts",
    (b"the\tnoun\t5\ncat\tnoun\t2.5\ncat\tpet\n",),
    lambda path: _views(
      table_sources.counts_source(path, limit=100).make(
        _WORDS, collections.Counter()
      )
    ),
    _check_blocks,
  ),
)


@pytest.mark.counted
@pytest.mark.parametrize("reader", _VIEWS, ids=lambda reader: reader.name)
def test_a_damaged_file_of_counts_is_refused_with_its_place(reader):
  fuzz_cases.check_mutated(reader)


@pytest.mark.counted
@pytest.mark.parametrize("reader", _READERS, ids=lambda reader: reader.name)
def test_a_damaged_file_is_refused_with_its_place(reader):
  fuzz_cases.check_mutated(reader)


@pytest.mark.counted
@pytest.mark.parametrize("reader", _READERS[:2], ids=lambda reader: reader.name)
def test_a_nearly_valid_file_is_refused_with_its_place(reader):
  fuzz_cases.check_structured(reader)
