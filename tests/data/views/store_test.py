"""Stored views: what goes in comes out, damage is noticed."""

import json
import os

import numpy as np
import pytest
import scipy.sparse

from repr_jax import errors
from repr_jax.data.views import store


def _matrix(rows=40, columns=9, seed=0):
  matrix = scipy.sparse.random(
    rows, columns, 0.2, format="csr", dtype=np.float32, rng=seed
  )
  return scipy.sparse.csr_array(matrix)


def _stored(root, **options):
  columns = [f"c{i}" for i in range(9)]
  view = store.View("v", _matrix(), columns, {"left_out": 3})
  return store.save(root, view, **options)


def test_round_trip_is_exact_and_mapped(tmp_path):
  view = _stored(tmp_path)
  again = store.load(tmp_path / "v")
  for got in (view, again):
    assert (got.matrix != _matrix()).nnz == 0
    assert got.matrix.dtype == np.float32
    assert list(got.columns) == [f"c{i}" for i in range(9)]
    assert got.columns[3] == "c3" and len(got.columns) == 9
    assert got.meta == {"left_out": 3}
    assert isinstance(got.matrix.data.base, np.memmap)
    assert isinstance(got.matrix.indices.base, np.memmap)
  product = again.matrix @ np.ones((9, 2), np.float32)
  np.testing.assert_allclose(product, _matrix() @ np.ones((9, 2)), rtol=1e-6)


def test_blocks_equal_one_matrix(tmp_path):
  matrix = _matrix()
  blocks = (matrix[i : i + 7] for i in range(0, 40, 7))
  view = store.write(tmp_path, "b", blocks, [str(i) for i in range(9)])
  assert view.matrix.shape == (40, 9)
  assert (view.matrix != matrix).nnz == 0


def test_dense_and_empty_views(tmp_path):
  dense = np.arange(12, dtype=np.float32).reshape(4, 3)
  view = store.write(tmp_path, "d", [dense[:1], dense[1:]], ["x", "y", "z"])
  np.testing.assert_array_equal(store.load(view.path).matrix, dense)
  empty = scipy.sparse.csr_array((5, 2), dtype=np.float32)
  view = store.write(tmp_path, "e", [empty], ["x", "y"])
  assert store.load(view.path).matrix.nnz == 0
  view = store.write(tmp_path, "w", [empty[:, :0]], [])
  assert store.load(view.path).matrix.shape == (5, 0)


def test_fingerprints_follow_every_input(tmp_path):
  path = tmp_path / "text"
  path.write_text("a b")
  mark = store.fingerprint({"o": 1}, [path], ["a"])
  assert mark == store.fingerprint({"o": 1}, [path], ["a"])
  assert mark != store.fingerprint({"o": 2}, [path], ["a"])
  assert mark != store.fingerprint({"o": 1}, [path], ["a", "b"])
  assert mark != store.fingerprint({"o": 1}, [], ["a"])
  os.utime(path, ns=(0, 1))
  assert mark != store.fingerprint({"o": 1}, [path], ["a"])
  with pytest.raises(errors.InputError, match="gone"):
    store.fingerprint({}, [tmp_path / "gone"])


def test_find_reuses_only_the_same_inputs(tmp_path):
  assert store.find(tmp_path, "v", "x") is None
  _stored(tmp_path, mark="x")
  found = store.find(tmp_path, "v", "x")
  assert found is not None and found.matrix.shape == (40, 9)
  assert store.find(tmp_path, "v", "y") is None


def test_a_failed_write_leaves_what_was_there(tmp_path):
  _stored(tmp_path)

  def blocks():
    yield _matrix(10)
    raise RuntimeError("stop")

  with pytest.raises(RuntimeError, match="stop"):
    store.write(tmp_path, "v", blocks(), [str(i) for i in range(9)])
  assert os.listdir(tmp_path) == ["v"]
  assert store.load(tmp_path / "v").matrix.shape == (40, 9)
  store.write(tmp_path, "v", [_matrix(3)], [str(i) for i in range(9)])
  assert os.listdir(tmp_path) == ["v"]
  assert store.load(tmp_path / "v").matrix.shape == (3, 9)


@pytest.mark.parametrize(
  "change",
  [
    {"texts": {"columns": 41}},
    {"texts": {}},
    {"texts": "no"},
    {"meta": 3},
    {"format": 3},
    {"arrays": {"dense": 3}},
    {"arrays": {}},
  ],
)
def test_wrong_header_fields_are_noticed(tmp_path, change):
  view = _stored(tmp_path)
  path = view.path / "header.json"
  path.write_text(json.dumps(json.loads(path.read_text()) | change))
  with pytest.raises(errors.InputError, match="damaged"):
    store.load(view.path)


def test_column_outside_the_matrix_is_noticed(tmp_path):
  view = _stored(tmp_path)
  path = view.path / "header.json"
  header = json.loads(path.read_text()) | {"texts": {"columns": 3}}
  path.write_text(json.dumps(header))
  (view.path / "columns.json").write_text('["a", "b", "c"]')
  with pytest.raises(errors.InputError, match=r"outside 0\.\.2"):
    store.load(view.path)


def test_names_that_are_no_directory_are_refused(tmp_path):
  for name in ("", "../x", "a/b", ".hidden"):
    with pytest.raises(errors.InputError, match="cannot name a view"):
      store.write(tmp_path, name, [_matrix()], ["c"] * 9)
  odd = ["c\n", "\ufeffx", *"abcdefg"]
  view = store.write(tmp_path, "v", [_matrix()], odd)
  assert store.load(view.path).columns == odd


def test_a_directory_that_is_no_store_is_not_replaced(tmp_path):
  (tmp_path / "v").mkdir()
  (tmp_path / "v" / "notes.txt").write_text("keep me")
  with pytest.raises(errors.InputError, match="another directory"):
    _stored(tmp_path)
  assert (tmp_path / "v" / "notes.txt").read_text() == "keep me"


def test_a_view_of_an_older_format_is_counted_again(tmp_path):
  view = _stored(tmp_path, mark="x")
  path = view.path / "header.json"
  path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 1}))
  assert store.find(tmp_path, "v", "x") is None
  _stored(tmp_path, mark="x")
  assert store.find(tmp_path, "v", "x") is not None
