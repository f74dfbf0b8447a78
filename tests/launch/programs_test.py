"""Programs of experiments lower from sizes alone."""

import jax
import pytest
from program_sizes import SMALL

from launch import programs
from repr_jax.errors import InputError


def test_every_size_is_named_and_set():
  assert SMALL.keys() == programs.EXPERIMENTS.keys()
  for name, experiment in programs.EXPERIMENTS.items():
    assert SMALL[name].keys() == experiment.sizes.keys()
    assert experiment.sizes.keys() <= programs.TEXTS.keys()


@pytest.mark.parametrize(
  ("experiment", "mesh", "count"),
  [
    ("mvlsa", None, 4),
    ("mvlsa", "rows:1", 4),
    ("nvse", None, 3),
    ("nvse", "batch:1,features:1", 1),
    ("elkb", None, 4),
    ("elkb", "batch:1", 4),
    ("rescal", None, 1),
    ("ned", None, 3),
    ("ned", "entities:1", 1),
    ("cmr", None, 3),
  ],
)
def test_programs_lower(experiment, mesh, count):
  devices = jax.devices("cpu")[:1]
  made = list(programs.programs(experiment, SMALL[experiment], mesh, devices))
  assert len(made) == count
  for program in made:
    assert "func.func" in program.lower().as_text()


def test_a_mesh_that_does_not_divide():
  devices = jax.devices("cpu")[:1]
  with pytest.raises(InputError, match="mesh of 2 devices, and there are 1"):
    programs.programs("nvse", SMALL["nvse"], "batch:2", devices)
  with pytest.raises(InputError, match="rescal runs on one device"):
    programs.programs("rescal", SMALL["rescal"], "batch:1", devices)


def test_a_size_of_another_experiment_is_refused():
  devices = jax.devices("cpu")[:1]
  with pytest.raises(InputError, match="--words is not a size of rescal; its"):
    programs.programs("rescal", {"words": 3}, None, devices)
  # What is not given is the default.
  assert list(programs.programs("rescal", {"words": None}, None, devices))
