"""Stores: exact, complete or absent, written in blocks, damage noticed."""

import json
import os

import numpy as np
import pytest

from repr_jax import errors
from repr_jax.data.io import arraystore

_ARRAYS = {
  "counts": np.arange(12, dtype=np.int32).reshape(3, 4),
  "empty": np.zeros((0, 2), np.float32),
  "one": np.array(3.5),
  "by_columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
}
_TEXTS = {"names": ["a", "é\n", "\ufeff"], "none": []}


def _stored(folder, mark="m"):
  store = arraystore.Store(_ARRAYS, _TEXTS, mark, {"left": 1})
  arraystore.write(folder, "kind", store)
  return folder


def test_what_goes_in_comes_out_mapped(tmp_path):
  read = arraystore.read(_stored(tmp_path / "s"), "kind")
  for name, array in _ARRAYS.items():
    np.testing.assert_array_equal(read.arrays[name], array)
    assert read.arrays[name].dtype == array.dtype
    assert not read.arrays[name].flags.writeable
  assert (read.texts, read.mark, read.meta) == (_TEXTS, "m", {"left": 1})
  assert isinstance(read.arrays["counts"], np.memmap)


def test_blocks_are_one_array_with_the_same_files(tmp_path):
  array = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
  whole = arraystore.Store({"x": array}, {}, "m")
  arraystore.write(tmp_path / "whole", "kind", whole)
  with arraystore.writing(tmp_path / "parts", "kind", "m") as out:
    for start in range(0, 50, 7):
      out.append("x", array[start : start + 7])
  for name in ("x.npy", "header.json"):
    one, two = (tmp_path / x / name for x in ("whole", "parts"))
    assert one.read_bytes() == two.read_bytes()


def test_blocks_of_another_type_or_width_are_refused(tmp_path):
  for block in (np.ones((2, 3)), np.ones((2, 4), np.float32)):
    with (
      pytest.raises(ValueError, match="differ in type or shape"),
      arraystore.writing(tmp_path / "s", "kind") as out,
    ):
      out.append("x", np.ones((2, 3), np.float32))
      out.append("x", block)
  assert not os.listdir(tmp_path)


def test_a_failure_leaves_what_was_there(tmp_path):
  _stored(tmp_path / "s")
  with (
    pytest.raises(RuntimeError, match="stop"),
    arraystore.writing(tmp_path / "s", "kind", "other") as out,
  ):
    out.append("x", np.ones(3))
    raise RuntimeError("stop")
  assert os.listdir(tmp_path) == ["s"]
  assert arraystore.read(tmp_path / "s", "kind").mark == "m"


def test_marks_are_read_alone(tmp_path):
  assert arraystore.read_mark(tmp_path / "s") is None
  assert arraystore.read_mark(_stored(tmp_path / "s", "x")) == "x"
  path = tmp_path / "s" / "header.json"
  header = json.loads(path.read_text())
  path.write_text(json.dumps(header | {"format": 1}))
  assert arraystore.read_mark(tmp_path / "s") is None
  path.write_text(json.dumps(header | {"format": 9}))
  with pytest.raises(errors.InputError, match="format is not"):
    arraystore.read_mark(tmp_path / "s")


def test_another_kind_is_named(tmp_path):
  with pytest.raises(errors.InputError, match="holds kind, not other"):
    arraystore.read(_stored(tmp_path / "s"), "other")


@pytest.mark.parametrize("part", ["dtype", "shape", "crc32"])
def test_every_part_of_a_description_is_compared(tmp_path, part):
  path = _stored(tmp_path / "s") / "header.json"
  header = json.loads(path.read_text())
  other = {"dtype": "<f8", "shape": [4, 3], "crc32": 1}[part]
  header["arrays"]["counts"][part] = other
  path.write_text(json.dumps(header))
  with pytest.raises(errors.InputError, match=r"counts\.npy: is damaged"):
    arraystore.read(tmp_path / "s", "kind")


def test_a_changed_byte_is_noticed_unless_the_check_is_waived(tmp_path):
  path = _stored(tmp_path / "s") / "counts.npy"
  raw = bytearray(path.read_bytes())
  raw[-1] ^= 1
  path.write_bytes(raw)
  with pytest.raises(errors.InputError, match="checksum"):
    arraystore.read(tmp_path / "s", "kind")
  assert arraystore.read(tmp_path / "s", "kind", check=False).mark == "m"
