"""Sweeps as a user starts, interrupts and repeats them."""

import io
import json
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from launch import board, executors, plan, running

pytest.importorskip("submitit", reason="the extra launch is not installed")


def _start(command_line, path, root, *more) -> subprocess.Popen:
  return subprocess.Popen(
    [*command_line, f"--sweep={path}", f"--root={root}", *more],
    stdin=subprocess.DEVNULL,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )


def _figures(root: pathlib.Path) -> dict[str, float]:
  return {
    path.parent.name: json.loads(path.read_text())["rows"][0]["value"]
    for path in root.glob("*/results.json")
  }


def test_a_failure_stops_no_other_and_is_made_good(
  sweep_file, tmp_path, command_line
):
  path = sweep_file(
    f"""
    add.grid(x=(1, 2))
    add(x=3, needs="{tmp_path / "needed"}")
    """
  )
  root = tmp_path / "root"
  first = _start(command_line, path, root, "--best=accuracy")
  out, err = first.communicate(timeout=120)
  assert first.returncode == 1, err
  assert _figures(root) == {"x=1": 10, "x=2": 20}
  assert "2 of 3 runs are done, 1 failed" in out
  assert "best: accuracy 20 (x=2)" in out
  assert "failed: exit code 2" in out
  assert "error: what is needed is not there" in out
  (tmp_path / "needed").touch()
  second = _start(command_line, path, root)
  out, err = second.communicate(timeout=120)
  assert second.returncode == 0, err
  assert "3 of 3 runs are done" in out and "best: accuracy 30" in out
  assert "2 finished before, 1 to do" in err
  assert err.count("started") == 1


def test_an_interrupted_sweep_goes_on(sweep_file, tmp_path, command_line):
  path = sweep_file("add.grid(x=(1, 2, 3), steps=15)")
  root = tmp_path / "root"
  first = _start(command_line, path, root)
  counts = [root / f"steps=15,x={x}" / "steps.txt" for x in (1, 2)]
  until = time.monotonic() + 90
  while not all(count.exists() for count in counts):
    assert first.poll() is None and time.monotonic() < until
    time.sleep(0.05)
  first.send_signal(signal.SIGINT)
  _, err = first.communicate(timeout=60)
  assert first.returncode == 130, err
  assert "the same command goes on from here" in err
  assert not _figures(root)
  assert not any(plan.holder(count.parent) for count in counts)
  done = [len(count.read_text().split()) for count in counts]
  time.sleep(0.3)
  assert done == [len(count.read_text().split()) for count in counts]
  second = _start(command_line, path, root)
  out, err = second.communicate(timeout=120)
  assert second.returncode == 0, err
  assert "3 of 3 runs are done" in out
  for count in counts:  # every step once: none was begun anew
    assert count.read_text().split() == [str(i) for i in range(15)]


def test_jobs_end_with_a_sweep_that_is_killed(
  sweep_file, tmp_path, command_line
):
  path = sweep_file("add.grid(x=(1, 2), steps=30)")
  root = tmp_path / "root"
  first = _start(command_line, path, root)
  counts = [root / f"steps=30,x={x}" / "steps.txt" for x in (1, 2)]
  until = time.monotonic() + 90
  # On a busy machine one job may end before the other has begun.
  while not any(count.exists() for count in counts):
    assert first.poll() is None and time.monotonic() < until
    time.sleep(0.05)
  first.kill()
  first.communicate()
  while any(plan.holder(count.parent) for count in counts):
    assert time.monotonic() < until
    time.sleep(0.1)
  begun = [count for count in counts if count.exists()]
  assert all(len(count.read_text().split()) < 30 for count in begun)
  second = _start(command_line, path, root)
  out, err = second.communicate(timeout=120)
  assert second.returncode == 0, err
  assert "2 of 2 runs are done" in out
  for count in counts:
    assert count.read_text().split() == [str(i) for i in range(30)]
  assert not list((root / ".submitit").glob("owner-*"))


def test_groups_share_a_process(sweep_file, tmp_path):
  """Four runs in one process, one of which fails."""
  path = sweep_file(
    "add.seeds(3, size=2)\nadd(size=2, rate=-1.0)", "fake_group"
  )
  root = tmp_path / "root"
  made = plan.make(path, root)
  assert made.vmap_over == ("seed", "rate")
  jobs = plan.jobs(made, 8)
  assert len(jobs) == 1
  shown = io.StringIO()
  local = executors.Local(root / ".submitit")
  best = board.Best()
  sweep = running.Sweep(made, local, 1, best, board.Board("tried", shown))
  sweep.execute(jobs)
  assert sorted(_figures(root).values()) == [2, 3, 4]
  ((run, reason, log),) = sweep.failures
  assert run.name == "rate=-1.0,size=2" and reason == "the rate is negative"
  assert "the rate is negative" in log.read_text()
  assert best.text == "accuracy 4 (seed=2,size=2)"
  assert shown.getvalue().count("started") == 1
  again = plan.jobs(plan.make(path, root), 8)
  assert [job.name for job in again] == ["rate=-1.0,size=2"]


def test_commands_are_printed(sweep_file, tmp_path, command_line):
  path = sweep_file("add(x=1)\nadd(kind='b')")
  printed = _start(command_line, path, tmp_path / "root", "--executor=print")
  out, err = printed.communicate(timeout=120)
  assert printed.returncode == 0, err
  program = f"{sys.executable} -m fake_run"
  assert [line.startswith(program) for line in out.splitlines()] == [True] * 2
  assert not (tmp_path / "root").exists()
  line = out.splitlines()[0].split()
  assert subprocess.run(line).returncode == 0
  assert _figures(tmp_path / "root") == {"x=1": 10}


def test_bad_input_is_one_line(sweep_file, tmp_path, command_line):
  path = sweep_file("add(x=1)\nadd(y=2)")
  ended = _start(command_line, path, tmp_path / "root")
  out, err = ended.communicate(timeout=120)
  assert ended.returncode == 2 and not out
  assert err.startswith("error: ") and "tried.py:6" in err
  assert "Traceback" not in err
