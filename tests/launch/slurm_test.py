"""A sweep through a real SLURM, which the test starts and stops."""

import io
import pathlib
import re
import subprocess
import sys

import pytest
import slurm_node

from launch import board, child, executors, plan, running
from repr_jax import errors

pytest.importorskip("submitit", reason="the extra launch is not installed")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
  try:
    with slurm_node.one_node(tmp_path_factory.mktemp("slurm")) as config:
      yield config
  except slurm_node.Unavailable as error:
    pytest.skip(f"no SLURM: {error}")


@pytest.mark.long
def test_three_runs_and_a_failure_through_slurm(
  cluster, sweep_file, tmp_path, monkeypatch, command_line
):
  monkeypatch.setenv("SLURM_CONF", str(cluster))
  path = sweep_file(
    f"add.seeds(3, x=2)\nadd(x=5, needs='{tmp_path / 'absent'}')"
  )
  root = tmp_path / "root"
  arguments = [f"--sweep={path}", f"--root={root}", "--executor=slurm"]
  ended = subprocess.run(
    [*command_line, *arguments, "--slurm=time=5,cpus_per_task=1", "--jobs=4"],
    capture_output=True,
    text=True,
    timeout=300,
  )
  assert ended.returncode == 1, ended.stderr
  assert "3 of 4 runs are done, 1 failed" in ended.stdout
  assert "error: what is needed is not there" in ended.stdout
  queue = subprocess.run(
    ["squeue", "--noheader"], capture_output=True, text=True, check=True
  )
  assert not queue.stdout.strip()
  collected = subprocess.run(
    [sys.executable, "-m", "launch.collect", str(root), "--noplots"],
    capture_output=True,
    text=True,
    timeout=300,
  )
  assert collected.returncode == 0, collected.stderr
  lines = collected.stdout.splitlines()
  (line,) = (x for x in lines if "| figure | 2" in x or "fake a" in x)
  assert "21" in line and "3" in line  # mean of 20, 21 and 22 over 3 seeds


@pytest.mark.long
def test_an_interrupted_sweep_cancels_its_jobs(
  cluster, sweep_file, tmp_path, monkeypatch
):
  monkeypatch.setenv("SLURM_CONF", str(cluster))
  root = tmp_path / "root"
  made = plan.make(sweep_file("add(x=1, steps=900)"), root)
  slurm = executors.Slurm(root / ".submitit", {"time": 5})
  (run,) = made.runs
  steps = run.directory / "steps.txt"

  class Impatient(board.Board):
    def draw(self, counts, best, running):
      if steps.exists():
        raise KeyboardInterrupt

  shown = Impatient("tried", io.StringIO())
  sweep = running.Sweep(made, slurm, 1, board.Best(), shown)
  with pytest.raises(KeyboardInterrupt):
    sweep.execute(plan.jobs(made, 1))
  assert plan.holder(run.directory) is None
  queue = subprocess.run(["squeue", "-h"], capture_output=True, text=True)
  assert not queue.stdout.strip()
  done = steps.read_text()
  again = plan.jobs(plan.make(sweep_file("add(x=1, steps=900)"), root), 1)
  assert len(again) == 1 and steps.read_text() == done


@pytest.mark.long
def test_a_refused_job_is_an_error(cluster, tmp_path, monkeypatch):
  monkeypatch.setenv("SLURM_CONF", str(cluster))
  slurm = executors.Slurm(tmp_path, {"partition": "nowhere"})
  job = child.Command(["true"], tmp_path / "a", tmp_path / "b")
  with pytest.raises(errors.InputError, match=r"sbatch failed"):
    slurm.submit(job)


@pytest.mark.long
def test_processes_of_slurm_join_one_job(cluster, tmp_path, monkeypatch):
  monkeypatch.setenv("SLURM_CONF", str(cluster))
  monkeypatch.setenv("JAX_PLATFORMS", "cpu")
  monkeypatch.setenv(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 "
    "--xla_force_host_platform_device_count=2",
  )
  job = pathlib.Path(__file__).with_name("two_processes.py")
  ended = subprocess.run(
    [
      "srun", "-n", "2", "--kill-on-bad-exit", sys.executable, "-m",
      "launch.multihost", "--", sys.executable, str(job),
      f"--workdir={tmp_path / 'run'}",
    ],
    cwd=job.parents[2],
    capture_output=True,
    text=True,
    timeout=300,
  )  # fmt: skip
  assert ended.returncode == 0, ended.stderr
  made = re.findall(r"process (\d) made (\w+)", ended.stdout)
  assert sorted(number for number, _ in made) == ["0", "1"]
  assert len({digest for _, digest in made}) == 1
  assert (tmp_path / "run" / "results.json").exists()
