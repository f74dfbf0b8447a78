"""`python -m launch.compile` as a program, and for a TPU where it can."""

import importlib.util
import json
import subprocess
import sys

import jax
import pytest

from launch import compile as compiling
from launch import programs, topologies
from repr_jax.errors import InputError


def _run(*flags: str) -> subprocess.CompletedProcess:
  return subprocess.run(
    [sys.executable, "-m", "launch.compile", *flags],
    capture_output=True,
    text=True,
  )


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


def test_a_program_over_the_memory_is_one_line():
  def lower():
    return jax.jit(lambda x: x + 1).lower(
      jax.ShapeDtypeStruct((1000,), "float32")
    )

  small = topologies.Topology("tiny", "cpu", jax.devices("cpu"), 4000, None)
  with pytest.raises(InputError, match="--mesh over more devices") as caught:
    compiling.record(programs.Program("sum", lower), small, None)
  assert "\n" not in str(caught.value)


@pytest.mark.skipif(
  not importlib.util.find_spec("libtpu"), reason="needs extra 'tpu-compile'"
)
@pytest.mark.parametrize(
  "flags",
  [
    ("--experiment=mvlsa", "--words=4000", "--columns=600", "--entries=40000",
     "--views=3", "--m=20", "--k=20"),
    ("--experiment=nvse", "--features=5000", "--touched=512", "--hidden=64"),
    ("--experiment=nvse", "--features=5000", "--touched=512", "--hidden=64",
     "--mesh=features:4"),
    ("--experiment=rescal", "--entities=1023", "--rank=50"),
  ],
)  # fmt: skip
def test_steps_compile_for_a_tpu(flags):
  done = _run("--topology=v5e:2x2", *flags)
  assert done.returncode == 0, done.stderr[-2000:]
  assert "%" in done.stdout  # cycles were told
