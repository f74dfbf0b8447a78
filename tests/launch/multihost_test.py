"""A job of two real processes: it dies, is resumed, and writes once."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import two_processes

from repr_jax.data import vectors
from repr_jax.setexp import train

_HERE = pathlib.Path(__file__).parent
_JOB = [sys.executable, str(_HERE / "two_processes.py")]


def _launch(folder, command, *options, **environment):
  return subprocess.run(
    [
      sys.executable, "-m", "launch.multihost", f"--logs={folder / 'logs'}",
      *options, "--", *command,
    ],
    env={
      **os.environ, "JAX_PLATFORMS": "cpu", "REPR_JAX_SETTINGS": "off",
      "XLA_FLAGS": "--xla_backend_optimization_level=0",
      "PYTHONPATH": str(_HERE.parent.parent), **environment,
    },
    cwd=_HERE.parent.parent,
    capture_output=True,
    text=True,
  )  # fmt: skip


@pytest.mark.long
def test_a_job_dies_resumes_and_equals_one_process(tmp_path):
  workdir = tmp_path / "run"
  command = [*_JOB, f"--workdir={workdir}"]
  options = ("--processes=2", "--devices_per_process=2")
  views = two_processes.stored_views(tmp_path / "views")
  died = _launch(tmp_path, command, *options, DIES_AFTER="1,0")
  said = died.stdout + died.stderr
  assert died.returncode == 7, said
  log = tmp_path / "logs" / "process-1.log"
  assert (
    f"process 1 of 2 ended with code 7, and so the job ends; its log is {log}"
    in said
  )
  assert not (workdir / "results.json").exists()

  done = _launch(tmp_path, command, *options, VIEWS=str(tmp_path / "views"))
  assert done.returncode == 0, done.stdout + done.stderr
  assert "resuming after step 0" in done.stdout
  logs = [
    (tmp_path / "logs" / f"process-{i}.log").read_text() for i in range(2)
  ]
  digests = [x.partition(" made ")[2].split()[0] for x in logs]
  assert digests[0] == digests[1]

  # One set of files, that of a process which is alone.
  found = {x.name for x in workdir.iterdir()}
  assert found == {
    ".lock", "checkpoints", "decoder.npy", "flags.json", "metrics.jsonl",
    "results.json", "stored.npy", "vectors.npz", "vectors.txt",
  }  # fmt: skip
  lines = (workdir / "metrics.jsonl").read_text().splitlines()
  assert [json.loads(line)["step"] for line in lines] == [0, 1, 2]
  one = two_processes.fit_views(None)
  many = vectors.read_vectors(workdir / "vectors.npz").array
  np.testing.assert_allclose(many, one, atol=1e-4)
  # Each process read pages of its own rows alone: half, and those shared.
  for log in logs:
    assert 0.5 <= float(log.partition("may read ")[2].split()[0]) < 0.6
  np.testing.assert_allclose(
    np.load(workdir / "stored.npy"),
    two_processes.fit_stored(views, None),
    atol=1e-4,
  )
  problem, state = two_processes.make_problem()
  for epoch in range(3):
    state, info = two_processes.train_epoch(problem, state, epoch, None)
    logged = json.loads(lines[epoch])["loss"]
    np.testing.assert_allclose(logged, info.loss, rtol=1e-4)
  decoder = train.parameters(problem.config, state).decoder
  np.testing.assert_allclose(
    np.load(workdir / "decoder.npy"), decoder, atol=1e-4
  )


def test_what_cannot_start_is_said(tmp_path):
  none = _launch(tmp_path, [], "--processes=2")
  assert none.returncode == 2
  assert "no command" in none.stderr
  absent = _launch(tmp_path, ["no-such-program"], "--processes=2")
  assert absent.returncode == 2
  assert "no-such-program" in absent.stderr
