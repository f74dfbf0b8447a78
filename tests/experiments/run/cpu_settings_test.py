"""Run settings: applied once, before the work, and only where they apply."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from experiments.run import cpu_settings

_ROOT = pathlib.Path(__file__).parents[3]
_PROGRAM = """
import json, os, sys
from experiments.run import cpu_settings
cpu_settings.apply()
import jax
jax.numpy.ones(2).block_until_ready()
print(json.dumps([sys.argv[1:], cpu_settings.in_force()]))
"""


@pytest.fixture(autouse=True)
def _clean(monkeypatch, tmp_path):
  for name in (
    *cpu_settings.in_force(),
    "REPR_JAX_SETTINGS",
    "REPR_JAX_RESTARTED",
  ):
    monkeypatch.delenv(name, raising=False)
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  monkeypatch.setenv("PYTHONPATH", str(_ROOT))
  monkeypatch.setenv("JAX_PLATFORMS", "cpu")


def _run(path: pathlib.Path, **variables: str):
  program = path / "program.py"
  program.write_text(_PROGRAM)
  ended = subprocess.run(
    [sys.executable, str(program), "--rank=3", "a b"],
    env={**os.environ, **variables},
    capture_output=True,
    text=True,
    timeout=120,
  )
  assert ended.returncode == 0, ended.stderr
  return json.loads(ended.stdout)


def test_a_program_starts_again_with_its_arguments(tmp_path):
  arguments, found = _run(tmp_path)
  assert arguments == ["--rank=3", "a b"]
  assert str(tmp_path) in found["JAX_COMPILATION_CACHE_DIR"]
  if cpu_settings._glibc() >= (2, 35):
    assert found["GLIBC_TUNABLES"] == "glibc.malloc.hugetlb=1"


def test_what_the_user_set_stays(tmp_path):
  theirs = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=0",
    "XLA_FLAGS": "--xla_cpu_enable_fast_math=false",
    "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "mine"),
  }
  _, found = _run(tmp_path, **theirs)
  assert found["GLIBC_TUNABLES"] == theirs["GLIBC_TUNABLES"]
  assert found["XLA_FLAGS"].startswith(theirs["XLA_FLAGS"])
  assert found["JAX_COMPILATION_CACHE_DIR"].endswith("mine")


def test_it_can_be_switched_off(tmp_path):
  _, found = _run(tmp_path, REPR_JAX_SETTINGS="off")
  assert found == {"JAX_PLATFORMS": "cpu"}


def test_it_never_starts_again_twice(monkeypatch):
  monkeypatch.setenv("REPR_JAX_RESTARTED", "1")
  monkeypatch.setattr(cpu_settings, "wanted", lambda: {"GLIBC_TUNABLES": "x=1"})
  monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("started again"))
  monkeypatch.setenv("GLIBC_TUNABLES", "")
  cpu_settings.apply()


def test_a_flag_that_jaxlib_does_not_know_is_left_out(monkeypatch, tmp_path):
  monkeypatch.setattr(cpu_settings, "_XLA_FLAG", "--xla_no_such_flag=")
  for _ in range(2):  # tried, then remembered
    assert "XLA_FLAGS" not in cpu_settings.wanted()
  (record,) = tmp_path.glob("repr_jax/xla_flags.json")
  assert list(json.loads(record.read_text()).values()) == [False]


def test_other_platforms_get_no_cpu_flag(monkeypatch):
  monkeypatch.setenv("JAX_PLATFORMS", "cuda,cpu")
  assert "XLA_FLAGS" not in cpu_settings.wanted()
