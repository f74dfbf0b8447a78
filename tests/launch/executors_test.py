"""Executors: what they lack is named, GPUs are dealt out."""

import shutil
import sys

import pytest

from launch import child, executors
from repr_jax import errors


def test_an_executor_that_is_missing_is_named(tmp_path, monkeypatch):
  monkeypatch.setattr(shutil, "which", lambda name: None)
  with pytest.raises(errors.InputError, match="no sbatch here"):
    executors.Slurm(tmp_path, {})
  monkeypatch.setitem(sys.modules, "submitit", None)
  with pytest.raises(errors.InputError, match=r"repr_jax\[launch\]"):
    executors.Local(tmp_path)


def test_a_wrong_option_of_slurm_is_named(tmp_path, monkeypatch):
  monkeypatch.setattr(shutil, "which", lambda name: f"bin/{name}")
  with pytest.raises(errors.InputError, match=r"speed.*there are.*partition"):
    executors.Slurm(tmp_path, {"speed": 1})


def test_gpus_are_dealt_out_and_come_back(tmp_path, monkeypatch):
  class Handle:
    def __init__(self, number):
      self.job_id = str(number)

    def done(self):
      return self.job_id == "0"

  local = executors.Local(tmp_path, ["4", "5"])
  numbers = iter(range(3))
  monkeypatch.setattr(
    local._executor, "submit", lambda job: Handle(next(numbers))
  )
  job = child.Command([], tmp_path / "a", tmp_path / "b")
  shown, handles = [], []
  for _ in range(2):
    handles.append(local.submit(job))
    shown.append(job.environment["CUDA_VISIBLE_DEVICES"])
  assert local.ended(handles) == [True, False]
  local.submit(job)
  assert [*shown, job.environment["CUDA_VISIBLE_DEVICES"]] == ["4", "5", "4"]
