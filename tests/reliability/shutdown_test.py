"""Programs that are refused, interrupted, orphaned or no longer listened to."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import killing
import numpy as np
import pytest
import worlds

from experiments.run import runlib
from repr_jax import errors

_ROOT = pathlib.Path(__file__).parents[2]


def _start(*command: str, **variables: str) -> subprocess.Popen:
  return subprocess.Popen(
    [sys.executable, *command],
    cwd=_ROOT,
    env={**os.environ, "REPR_JAX_SETTINGS": "off", **variables},
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )


def _run(folder: pathlib.Path, **config: int) -> runlib.Run:
  return runlib.Run("small", directory=folder, config=config)


def test_refused_flags_do_not_bind_a_directory(tmp_path):
  with pytest.raises(errors.InputError, match="bad"), _run(tmp_path, k=1):
    raise errors.InputError("bad")
  assert {path.name for path in tmp_path.iterdir()} == {".lock"}
  with _run(tmp_path, k=2) as run:
    run.row("a", "MRR", 0.5)


@pytest.mark.parametrize("work", ["log", "save", "file", "row"])
def test_flags_bind_a_directory_once_something_was_computed(tmp_path, work):
  (tmp_path / "notes").mkdir()
  with (
    pytest.raises(errors.InputError, match="bad"),
    _run(tmp_path, k=1) as run,
  ):
    if work == "log":
      run.log(0, loss=1.0)
    elif work == "save":
      run.save(0, {"x": np.zeros(2)})
    elif work == "file":
      (tmp_path / "notes" / "kept.txt").write_text("a user's or ours")
    elif work == "row":
      run.row("a", "MRR", 0.5)  # in memory only
    raise errors.InputError("bad")
  if work == "row":
    with _run(tmp_path, k=2):
      return
  with pytest.raises(errors.InputError, match="other flags"):
    _run(tmp_path, k=2).__enter__()


def test_what_was_left_unfinished_is_removed_and_nothing_else(tmp_path):
  other = tmp_path / "other"
  for folder in (tmp_path / "deep" / "er", other, tmp_path / "checkpoints"):
    folder.mkdir(parents=True)
  (other / ".lock").touch()
  ours = [".0123456789abcdef.tmp", "deep/er/.0123456789abcdef.tmp"]
  users = [
    "deep/mine.tmp", ".0123456789ABCDEF.tmp", "other/.0123456789abcdef.tmp",
  ]  # fmt: skip
  for name in (*ours, *users):
    (tmp_path / name).write_text("half")
  old = tmp_path / "deep" / ".fedcba9876543210.old"
  old.mkdir()
  (old / "header.json").write_text("{")
  with pytest.raises(errors.InputError, match="no flags"):
    _run(tmp_path).__enter__()  # for the strange checkpoints
  (tmp_path / "checkpoints").rmdir()
  with _run(tmp_path):
    pass
  assert not any((tmp_path / name).exists() for name in ours)
  assert not old.exists()
  assert all((tmp_path / name).exists() for name in users)


@pytest.fixture
def programs() -> killing.Programs:
  return killing.shared()


@pytest.mark.parametrize(
  ("name", "bad"),
  [
    ("cmr", "--corpus=nowhere.jsonl"),
    ("ned", "--min_count=1000"),
    ("ned", "--word_vectors=nowhere.txt"),
    ("relatedness", "--queries=nowhere.tsv"),
  ],
)
def test_a_refused_program_leaves_its_directory_free(
  programs, tmp_path, name, bad
):
  worlds.write(tmp_path)
  case = worlds.CASES[name]
  arguments = case.arguments(tmp_path, tmp_path)
  for wrong in (bad, f"{bad}0"):  # the second is other flags
    ended = programs.run(case.module, [*arguments, wrong])
    assert ended.code == 2, ended.said
    assert "other flags" not in ended.said
    assert "Traceback" not in ended.said
  assert not (tmp_path / "run" / "flags.json").exists()


@pytest.mark.parametrize(
  "command",
  [
    ("-m", "experiments.reproduce", "--help"),
    ("-m", "launch.multihost", "--help"),
    ("-c", "from experiments.run import runlib\n"
     "runlib.launch(lambda argv: [print(i) for i in range(10**6)])"),
  ],
)  # fmt: skip
def test_a_program_without_a_reader_ends_quietly(command):
  child = _start(*command)
  assert child.stdout and child.stderr
  child.stdout.close()
  assert child.stderr.read() == ""
  assert child.wait(60) == 128 + signal.SIGPIPE


_LONG = """
import jax, sys
from experiments.run import runlib

def main(argv):
  loop = lambda x: jax.lax.while_loop(lambda i: i >= 0, lambda i: i ^ 1, x)
  run = jax.jit(loop).lower(0).compile()
  print("compiled", flush=True)
  run(0).block_until_ready()

runlib.launch(main)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_does_not_wait_for_a_compiled_program(number):
  child = _start("-c", _LONG)
  assert child.stdout
  try:
    assert child.stdout.readline() == "compiled\n"
    time.sleep(0.3)
    child.send_signal(number)
    time.sleep(0.5)
    assert child.poll() is None  # it waits for the program to return
    child.send_signal(number)
    assert child.wait(20) == 128 + number
  finally:
    child.kill()  # it would go on for ever


_PARENT = """
import os, subprocess, sys
from experiments.run import shutdown

child = subprocess.Popen(
  [sys.executable, "-c", sys.argv[1]],
  env={**os.environ, shutdown.PARENT: str(os.getpid())},
)
child.wait()
"""
_CHILD = """
import os, time
from experiments.run import shutdown

shutdown.with_parent()
assert shutdown.PARENT not in os.environ
print(os.getpid(), flush=True)
time.sleep(60)
"""


def test_a_process_ends_with_its_parent():
  parent = _start("-c", _PARENT, _CHILD)
  assert parent.stdout
  int(parent.stdout.readline())
  parent.kill()
  # The child has the pipe too, so that its end is that of the pipe.
  began = time.monotonic()
  assert parent.stdout.read() == ""
  assert time.monotonic() - began < 20
  parent.wait()


def test_a_process_whose_parent_is_gone_ends_at_once():
  child = _start("-c", _CHILD, REPR_JAX_PARENT="1" if os.getpid() != 1 else "2")
  assert child.wait(30) == 128 + signal.SIGKILL


_IN_A_CALLBACK = """
import gc, os, signal, sys, time
from experiments.run import shutdown
shutdown.on_signals()
def interrupt(phase, info):
  gc.callbacks.remove(interrupt)
  os.kill(os.getpid(), int(sys.argv[1]))
gc.callbacks.append(interrupt)
gc.collect()
time.sleep(20)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_callback_of_the_garbage_collector_is_not_lost(number):
  program = _start("-c", _IN_A_CALLBACK, str(int(number)))
  _, said = program.communicate(timeout=15)
  assert program.returncode in (128 + number, -number), said
  assert "Exception ignored" not in said
