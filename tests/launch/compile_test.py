"""`python -m launch.compile` as a program, and for a TPU where it can."""

import importlib.util
import json

import jax
import killing
import program_sizes
import pytest

from launch import compile as compiling
from launch import programs, topologies
from launch.shapes import Program
from repr_jax.errors import InputError


def _run(*flags: str) -> killing.Ended:
  return killing.call("launch.compile", *flags)


def test_figures_are_printed_and_written(tmp_path):
  path = tmp_path / "figures.json"
  done = _run(
    "--experiment=rescal", "--topology=cpu:1", "--entities=31", "--rank=4",
    f"--json={path}",
  )  # fmt: skip
  assert done.returncode == 0, done.stderr
  assert "an update" in done.stdout
  (row,) = json.loads(path.read_text())
  assert row["compile_seconds"] > 0 and row["memory_bytes"] > 0


def test_a_bad_topology_is_one_line():
  done = _run("--topology=v5e:3x5")
  assert done.returncode == 2
  assert done.stderr.count("\n") == 1 and "there are v5e:2x2" in done.stderr


def test_sizes_that_do_not_fit_are_refused_before_compilation():
  sizes = {"views": 2, "m": 10, "k": 30}
  made = programs.programs("mvlsa", sizes, None, jax.devices())
  with pytest.raises(InputError, match=r"k = 30 .* 20 singular"):
    next(made)


def _sum(size: int = 1000) -> Program:
  return Program(
    "sum",
    lambda: jax.jit(lambda x: x + 1).lower(
      jax.ShapeDtypeStruct((size,), "float32")
    ),
  )


def test_a_program_over_the_memory_says_what_would_fit():
  # 8,000 bytes.
  small = topologies.Topology("tiny", "tpu", jax.devices("cpu"), 2100, 1e9)
  with pytest.raises(InputError, match="over 4 devices fit") as caught:
    compiling.record(_sum(), small, None)
  assert "--topology=v5e:2x2" in str(caught.value)
  assert "sizes of 26 % of these fit" in str(caught.value)
  assert "\n" not in str(caught.value)
  with pytest.raises(InputError, match="GiB; sizes of 26 % of these fit"):
    compiling.record(_sum()._replace(shared=False), small, None)


def test_a_program_that_is_not_there_is_one_line():
  done = _run("--experiment=rescal", "--topology=cpu:1", "--program=dream")
  assert done.returncode == 2
  assert done.stderr.count("\n") == 1 and "'an update'" in done.stderr


# The cache of compiled programs cannot load one without a device.
pytestmark = pytest.mark.filterwarnings("ignore:Error reading persistent")
needs_compiler = pytest.mark.skipif(
  not importlib.util.find_spec("libtpu"), reason="needs extra 'tpu-compile'"
)


@needs_compiler
@pytest.mark.parametrize("experiment", program_sizes.SMALL)
def test_every_program_compiles_for_a_tpu(experiment):
  topology = topologies.find("v5e:2x2")
  sizes = program_sizes.SMALL[experiment]
  for program in programs.programs(experiment, sizes, None, topology.devices):
    figures = compiling.record(program, topology, None)
    assert figures["estimated_seconds"] > 0


@needs_compiler
@pytest.mark.parametrize(
  ("experiment", "mesh"),
  [
    ("mvlsa", "rows:4"),
    ("nvse", "batch:2,features:2"),
    ("elkb", "batch:4"),
    ("ned", "entities:4"),
  ],
)
def test_every_program_compiles_for_a_mesh_on_tpu(experiment, mesh):
  topology = topologies.find("v5e:2x2")
  sizes = program_sizes.SMALL[experiment]
  for program in programs.programs(experiment, sizes, mesh, topology.devices):
    moved = compiling.record(program, topology, mesh)["bytes_moved"]
    # Entities are independent: their devices have nothing to exchange.
    assert bool(moved) == (experiment != "ned")


@needs_compiler
def test_too_large_for_a_tpu_is_one_line():
  done = _run(
    "--experiment=nvse", "--program=training", "--features=10000000"
  )  # fmt: skip
  assert done.returncode == 2
  assert done.stderr.count("\n") == 1
  assert "--topology=v5e:4x4" in done.stderr
