"""Arrays in files: exact, never unpickled, damage has its place."""

import numpy as np
import pytest

from repr_jax import errors
from repr_jax.data.io import array_files


def test_npz_round_trip_and_missing_name(tmp_path):
  path = tmp_path / "a.bin"
  array_files.write_npz(path, a=np.arange(3), b=np.array(["x", "yz"]))
  got = array_files.read_npz(path)
  np.testing.assert_array_equal(got["a"], np.arange(3))
  assert list(array_files.read_npz(path, ["b"])) == ["b"]
  with pytest.raises(errors.InputError, match="no array c; it has a, b"):
    array_files.read_npz(path, ["a", "c"])
  with pytest.raises(errors.InputError, match="objects"):
    array_files.write_npz(path, a=np.array([{}]))
  np.testing.assert_array_equal(array_files.read_npz(path)["a"], np.arange(3))


def test_a_mapped_array_is_the_array_and_read_only(tmp_path):
  path = tmp_path / "a.npy"
  for array in (np.arange(6.0).reshape(2, 3), np.zeros((0, 4)), np.array(7)):
    array_files.write_npy(path, array)
    mapped = array_files.map_array(path)
    np.testing.assert_array_equal(mapped, array)
    assert mapped.dtype == array.dtype and not mapped.flags.writeable
  by_columns = np.asfortranarray(np.arange(6.0).reshape(2, 3))
  array_files.write_npy(path, by_columns)
  np.testing.assert_array_equal(array_files.map_array(path), by_columns)


def test_a_file_that_is_too_short_for_its_header_is_refused(tmp_path):
  path = tmp_path / "a.npy"
  array_files.write_npy(path, np.arange(9))
  path.write_bytes(path.read_bytes()[:-1])
  with pytest.raises(errors.InputError, match=r"a\.npy: .*72 bytes.* 71"):
    array_files.map_array(path)
