"""Meshes by name, what is wrong with some, and rows that are dealt."""

import jax
import numpy as np
import pytest

from repr_jax.errors import InputError
from repr_jax.ops import mesh as meshes
from repr_jax.ops import sharded

_AXES = ("rows", "views")


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("rows:4,columns:2", "no axis 'columns'.*rows, views"),
    ("rows:2,rows:4", "'rows' stands there twice"),
    ("rows:0", "positive whole number, not '0'"),
    ("rows", "positive whole number, not ''"),
    ("rows:-2", "positive whole number"),
    ("rows:3,views:2", "a mesh of 6 devices, and there are 8.*product is 8"),
    ("rows:16", "a mesh of 16 devices, and there are 8"),
  ],
)
def test_a_wrong_mesh_is_refused(text, message):
  with pytest.raises(InputError, match=message):
    meshes.make_mesh(text, _AXES, range(8))


def test_a_mesh_has_all_axes_in_order():
  device = jax.devices()[:1]
  for text in ("rows:1", "views:1", " views : 1 ,rows:1"):
    mesh = meshes.make_mesh(text, _AXES, device)
    assert mesh.axis_names == _AXES
    assert mesh.size == 1
  assert meshes.make_mesh("", _AXES) is None
  assert meshes.make_mesh(None, _AXES) is None


@pytest.mark.parametrize(("n", "shards"), [(7, 3), (8, 4), (2, 5), (1, 1)])
def test_dealing_shares_rows_evenly_and_goes_back(n, shards):
  rows = np.arange(1, n + 1)[:, None] * [1, 10]
  dealt = sharded.deal(rows, shards)
  assert len(dealt) == meshes.padded_size(n, shards)
  held = (dealt.reshape(shards, -1, 2)[:, :, 0] > 0).sum(axis=1)
  assert held.max() - held.min() <= 1
  np.testing.assert_array_equal(sharded.gather_rows(dealt, n, shards), rows)
  across = sharded.deal(rows.T, shards, axis=1)
  np.testing.assert_array_equal(across, dealt.T)


def test_arrays_go_to_the_mesh_and_back():
  mesh = meshes.make_mesh("rows:1", _AXES, jax.devices()[:1])
  x = np.arange(6.0).reshape(3, 2)
  placed = meshes.place(x, mesh, _AXES)
  assert placed.sharding == meshes.spec(mesh, _AXES)
  tree = meshes.to_host({"x": placed, "y": 2.0})
  np.testing.assert_array_equal(tree["x"], x)
  assert meshes.constrain(x, None, _AXES) is x
