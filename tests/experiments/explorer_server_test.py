"""The explorer as a program: ports, packages, models."""

import importlib.util
import pathlib

import killing
import pytest

from experiments.explorer import server
from repr_jax.errors import InputError

_ROOT = pathlib.Path(__file__).parents[2]


def _command(*arguments):
  return killing.call("experiments.explorer", *arguments)


def test_what_cannot_be_served_is_said_in_a_line(explored, tmp_path):
  port = explored.url.rstrip("/").rpartition(":")[2]
  taken = _command(f"--model={explored.model}", f"--port={port}")
  assert taken.returncode == 2
  assert f"--port={port} is in use" in taken.stderr
  missing = _command(f"--model={tmp_path / 'none'}", "--port=0")
  assert missing.returncode == 2
  assert "holds no trained model" in missing.stderr
  both = _command(f"--model={explored.model}", f"--workdir={tmp_path}")
  assert both.returncode == 2
  assert "--model and --workdir both name a model" in both.stderr
  unknown = _command("--baselines=bm25,google")
  assert unknown.returncode == 2
  assert "'google' is not one of bm25" in unknown.stderr
  for ended in (taken, missing, both, unknown):
    assert "Traceback" not in ended.stderr


def test_packages_are_checked(monkeypatch):
  server.require()
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  with pytest.raises(InputError, match=r"pip install 'repr_jax\[serve\]'"):
    server.require()
