"""Programs of experiments lower from sizes alone."""

import jax
import pytest

from launch import programs
from repr_jax.errors import InputError

_SIZES = {
  "words": 640, "columns": 40, "entries": 4000, "views": 3, "m": 4, "k": 3,
  "features": 50, "hidden": 7, "dim": 3, "batch_size": 4, "touched": 16,
  "entities": 31, "rank": 4,
}  # fmt: skip


def test_every_size_is_set():
  assert _SIZES.keys() == programs.SIZES.keys()


@pytest.mark.parametrize(
  ("experiment", "mesh", "count"),
  [
    ("mvlsa", None, 3),
    ("mvlsa", "rows:1", 3),
    ("nvse", None, 1),
    ("nvse", "batch:1,features:1", 1),
    ("rescal", None, 1),
  ],
)
def test_programs_lower(experiment, mesh, count):
  devices = jax.devices("cpu")[:1]
  made = list(programs.programs(experiment, _SIZES, mesh, devices))
  assert len(made) == count
  for program in made:
    assert "func.func" in program.lower().as_text()


def test_a_mesh_that_does_not_divide():
  devices = jax.devices("cpu")[:1]
  with pytest.raises(InputError, match="mesh of 2 devices, and there are 1"):
    next(programs.programs("nvse", _SIZES, "batch:2", devices))
  with pytest.raises(InputError, match="rescal runs on one device"):
    next(programs.programs("rescal", _SIZES, "batch:1", devices))
