"""Event files hold the numbers of `metrics.jsonl`, each step once."""

import json
import struct
import sys

import pytest

from experiments.run import event_files, runlib
from repr_jax import errors

_CONFIG = {"log_to": "tensorboard"}


def _read(directory):
  """(step, name, value) of the scalars in a directory's only event file."""
  from tensorboardX.proto import event_pb2

  (path,) = directory.glob("events.out.tfevents.*")
  content, place, scalars = path.read_bytes(), 0, []
  while place < len(content):
    (length,) = struct.unpack_from("<Q", content, place)
    body = content[place + 12 : place + 12 + length]
    place += 16 + length  # length, its checksum, the event, its checksum
    event = event_pb2.Event.FromString(body)
    for value in event.summary.value:
      scalars.append((event.step, value.tag, value.simple_value))
  return scalars


def _logged(directory):
  lines = (directory / "metrics.jsonl").read_text().splitlines()
  return [
    (line["step"], name, line[name])
    for line in map(json.loads, lines)
    for name in line
    if name not in ("step", "seconds") and isinstance(line[name], (int, float))
  ]


def _run(directory, config=_CONFIG):
  return runlib.Run("small", directory=directory, config=config)


def test_a_resumed_run_writes_no_step_twice(tmp_path):
  pytest.importorskip("tensorboardX")
  with pytest.raises(KeyboardInterrupt), _run(tmp_path) as run:
    for step in range(4):
      run.log(step, loss=0.5 / (step + 1), did="text", parts=[1.0, 2.0])
      if step == 1:
        run.save(step, {"x": 1.0})
    raise KeyboardInterrupt
  assert {step for step, _, _ in _read(tmp_path)} == {0, 1, 2, 3}
  with _run(tmp_path) as run:
    assert run.restore({"x": 0.0})[0] == 1
    for step in range(2, 5):
      run.log(step, loss=2.0, epoch=step)
  scalars = _read(tmp_path)
  assert [x for x in scalars if "/" not in x[1]] == _logged(tmp_path)
  lists = [x for x in scalars if "/" in x[1]]
  assert lists[:2] == [(0, "parts/0", 1.0), (0, "parts/1", 2.0)]
  assert len(scalars) == 2 * 3 + 3 * 2


def test_a_finished_run_gets_its_event_file_later(tmp_path):
  pytest.importorskip("tensorboardX")
  with _run(tmp_path, {}) as run:
    run.log(0, loss=0.25)
  assert not event_files.EventFile(tmp_path).exists()
  for _ in range(2):
    with _run(tmp_path) as run:
      assert run.finished
    assert _read(tmp_path) == [(0, "loss", 0.25)]


def test_a_missing_package_is_named_in_one_line(tmp_path, monkeypatch):
  monkeypatch.setitem(sys.modules, "tensorboardX", None)
  monkeypatch.setattr(
    event_files.importlib.util, "find_spec", lambda name: None
  )
  with pytest.raises(errors.InputError, match=r"repr_jax\[tensorboard\]"):
    _run(tmp_path).__enter__()
  assert not (tmp_path / "flags.json").exists()


def test_nothing_is_written_before_the_first_number(tmp_path):
  pytest.importorskip("tensorboardX")
  with pytest.raises(errors.InputError), _run(tmp_path) as run:
    run.log(0, did="started")
    raise errors.InputError("refused")
  assert not event_files.EventFile(tmp_path).exists()
