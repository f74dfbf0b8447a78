"""Values are read back as they were written, or the writer refuses them."""

import fuzz_cases
import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse

from repr_jax import errors
from repr_jax.data import rules, trec, triples, vectors
from repr_jax.data.documents import priors, wikitext
from repr_jax.data.io import array_files, arraystore
from repr_jax.data.views import store, vocab

pytestmark = pytest.mark.counted
_ODD = st.sampled_from("\t\n\r\v\x1c\x85\0 \u2028\ufeff#:,\"'\\=&()²\ud800")
_NAME = st.text(st.characters() | _ODD, max_size=5)
_NAMES = st.lists(_NAME, min_size=1, max_size=5, unique=True)
_FLOAT = st.floats(width=32, allow_nan=True, allow_infinity=True)
_SUFFIX = st.sampled_from(["", ".gz", ".bz2"])
_SETTINGS = hypothesis.settings(
  deadline=None,
  database=None,
  derandomize=fuzz_cases.SEED == 0,
  max_examples=max(fuzz_cases.CASES // 150, 10),
  suppress_health_check=list(hypothesis.HealthCheck),
)


def _again(write, read, value, suffix=""):
  """Writes and reads a value; None where the writer refused it."""
  with fuzz_cases.folder() as folder:
    path = folder / f"written{suffix}"
    try:
      write(path, value)
    except errors.InputError:
      assert not list(folder.iterdir())  # Nothing half-written is left.
      return None
    return read(path)


@_SETTINGS
@hypothesis.given(_NAMES, st.integers(0, 10**17), _SUFFIX)
def test_vocab(names, count, suffix):
  value = vocab.Vocab(tuple(names), np.arange(len(names)) + count)
  found = _again(vocab.write_vocab, vocab.read_vocab, value, suffix)
  assert found is None or found == value


@_SETTINGS
@hypothesis.given(st.lists(st.tuples(_NAME, _NAME, _NAME), min_size=1), _SUFFIX)
def test_triples(named, suffix):
  value = triples.from_named(named)
  found = _again(triples.write_triples, triples.read_triples, value, suffix)
  if found is not None:
    assert found.named() == value.named()
    assert (found.entities, found.relations) == (
      value.entities,
      value.relations,
    )


@_SETTINGS
@hypothesis.given(st.sampled_from(sorted(rules.KINDS)), st.data())
def test_rules(kind, data):
  size = len(rules.KINDS[kind].letters)
  names = data.draw(st.lists(_NAME, min_size=size, max_size=size))
  try:
    value = [rules.Rule(kind, tuple(names))]
  except errors.InputError:
    hypothesis.reject()  # too many of them fail the test
  found = _again(rules.write_rules, rules.read_rules, value)
  assert found is None or found == value


@_SETTINGS
@hypothesis.given(
  st.dictionaries(
    _NAME, st.dictionaries(_NAME, st.floats(), min_size=1), min_size=1
  ),
  _SUFFIX,
)
def test_runs(value, suffix):
  found = _again(trec.write_run, trec.read_run, value, suffix)
  assert found is None or found == value


@_SETTINGS
@hypothesis.given(
  st.dictionaries(
    _NAME,
    st.dictionaries(_NAME, st.integers(-(10**8), 10**8), min_size=1),
    min_size=1,
  )
)
def test_judgments(value):
  found = _again(trec.write_judgments, trec.read_judgments, value)
  assert found is None or found == value


_TITLE = _NAME.filter(lambda x: wikitext.normal_title(x) == x)
_COUNT = st.integers(1, 10**15) | st.floats(1e-9, 1e9)


@_SETTINGS
@hypothesis.given(
  st.dictionaries(
    _NAME, st.dictionaries(_TITLE, _COUNT, min_size=1, max_size=3), min_size=1
  )
)
def test_priors(counts):
  value = priors.Prior(counts)
  found = _again(priors.write_prior, priors.read_prior, value)
  assert found is None or found == value


@_SETTINGS
@pytest.mark.parametrize("layout", vectors.LAYOUTS)
@hypothesis.given(_NAMES, st.data())
def test_vectors(layout, names, data):
  shape = len(names), data.draw(st.integers(1, 3))
  array = data.draw(hnp.arrays(np.float32, shape, elements=_FLOAT))
  suffix = "" if layout == "npz" else data.draw(_SUFFIX)
  value = vectors.Vectors(names, array)
  found = _again(
    lambda path, value: vectors.write_vectors(path, value, layout),
    lambda path: vectors.read_vectors(path, layout),
    value,
    suffix,
  )
  if found is not None:
    assert found.words == value.words
    assert found.array.tobytes() == value.array.tobytes()


_ARRAY = hnp.arrays(
  st.sampled_from(["<f4", "<f8", "<i4", "<i8", "|u1", "?", "<U3", ">i4"]),
  hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)


@_SETTINGS
@hypothesis.given(_ARRAY)
def test_arrays(array):
  found = _again(
    lambda path, value: array_files.write_npz(path, a=value),
    array_files.read_npz,
    array,
  )
  if array.dtype.kind == "U" and "\ufffd" in repr(found):
    return
  assert found is not None
  assert found["a"].dtype == array.dtype and found["a"].shape == array.shape
  assert found["a"].tobytes() == array.tobytes()


@_SETTINGS
@hypothesis.given(_ARRAY, _NAMES)
def test_stores(array, names):
  value = arraystore.Store({"a": array}, {"names": names}, "mark")

  def check(path):
    found = arraystore.read(path, "kind")
    assert found.arrays["a"].tobytes() == array.tobytes()
    assert (found.texts, found.mark) == (value.texts, value.mark)

  _again(
    lambda path, value: arraystore.write(path, "kind", value), check, value
  )


@_SETTINGS
@hypothesis.given(
  hnp.arrays(np.float32, (3, 2), elements=st.floats(0, 9, width=32)),
  st.tuples(_NAME, _NAME),
  st.booleans(),
)
def test_views(array, columns, sparse):
  matrix = scipy.sparse.csr_array(array) if sparse else array
  view = store.View("v", matrix, columns)

  def check(path):
    found = store.load(path / "v")
    dense = found.matrix.toarray() if sparse else found.matrix
    assert dense.tobytes() == (array + 0).tobytes() or (dense == array).all()
    assert tuple(found.columns) == columns

  def save(path, view):
    try:
      store.save(path, view)
    except errors.InputError:
      assert not path.exists() or not list(path.iterdir())
      if path.exists():
        path.rmdir()
      raise

  _again(save, check, view)
