"""Runs: what they leave behind, and what they refuse."""

import json
import os
import pathlib
import re
import shutil
import signal
from typing import Any

import jax
import jax.numpy as jnp
import killing
import numpy as np
import pytest

from experiments.run import runlib, workdir
from repr_jax import errors
from repr_jax.data import vectors

_ROOT = pathlib.Path(__file__).parents[3]
_WALK = pathlib.Path(__file__).parent / "random_walk.py"


def _walk(workdir: pathlib.Path, *flags: str, **how: Any) -> tuple[int, str]:
  """The exit code of a walk, and what it says."""
  arguments = [f"--workdir={workdir}", *flags]
  ended = killing.shared().run("random_walk", arguments, as_main=True, **how)
  return ended.code, ended.stderr


def _lines(workdir: pathlib.Path) -> list[dict[str, Any]]:
  text = (workdir / "metrics.jsonl").read_text()
  lines = [json.loads(line) for line in text.splitlines()]
  return [{"step": line["step"], "far": line["far"]} for line in lines]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> pathlib.Path:
  """The directory of a walk that nothing disturbed."""
  workdir = tmp_path_factory.mktemp("walks") / "whole"
  code, err = _walk(workdir)
  assert code == 0, err
  return workdir


def _assert_same(workdir: pathlib.Path, whole: pathlib.Path) -> None:
  same = np.load(workdir / "place.npy").tobytes()
  assert same == np.load(whole / "place.npy").tobytes()
  assert _lines(workdir) == _lines(whole)
  assert not list(workdir.glob("**/*.tmp"))
  assert not list(workdir.glob("checkpoints/*tmp*"))


def test_a_run_leaves_its_record(whole):
  flags = json.loads((whole / "flags.json").read_text())
  assert flags["flags"]["steps"] == 40
  assert flags["seed"] == 0
  assert flags["versions"]["jax"] == jax.__version__
  assert flags["device"]["kind"]
  head = workdir._commit()
  if (_ROOT / ".git").exists() and shutil.which("git"):
    assert head is not None and re.match(r"[0-9a-f]{40}", head)
  assert "verbosity" not in flags["flags"]
  results = json.loads((whole / "results.json").read_text())
  assert results["experiment"] == "walk"
  row = {"name": "walk", "metric": "steps", "value": 40, "thesis": 40}
  assert results["rows"] == [row]
  assert [line["step"] for line in _lines(whole)] == list(range(40))
  kept = sorted(int(path.name) for path in (whole / "checkpoints").iterdir())
  assert kept == [35, 38]


def test_ctrl_c_says_how_to_resume(tmp_path, whole):
  workdir = tmp_path / "stopped"
  code, err = _walk(workdir, "--hurt=INT")
  assert code == 130
  assert f"--workdir={workdir} resumes after step 23" in err
  assert "Traceback" not in err
  # A torn line and half a file, as a worse moment would have left them.
  with open(workdir / "metrics.jsonl", "ab") as out:
    out.write(b'{"step": 24, "fa')
  (workdir / ".0123456789abcdef.tmp").write_text("{")
  code, err = _walk(workdir)
  assert code == 0 and "resuming after step" in err, err
  _assert_same(workdir, whole)


def test_a_full_disk_leaves_a_resumable_directory(tmp_path, whole):
  workdir = tmp_path / "full"
  code, err = _walk(workdir, limit=1500)
  assert code == 2, err
  assert "disk is full" in err
  assert "Traceback" not in err
  code, err = _walk(workdir)
  assert code == 0, err
  _assert_same(workdir, whole)


def test_a_finished_run_with_more_steps_goes_on_to_the_same_bits(
  tmp_path, whole
):
  code, err = _walk(tmp_path, "--steps=21")
  assert code == 0, err
  code, err = _walk(tmp_path, "--steps=40")
  assert code == 0 and "resuming after step 20" in err, err
  _assert_same(tmp_path, whole)
  record = json.loads((tmp_path / "flags.json").read_text())
  assert record["flags"]["steps"] == 40
  code, err = _walk(tmp_path, "--steps=30")
  assert code == 2
  assert "--steps was 40, now 30 (it may only grow)" in err
  assert (tmp_path / "results.json").exists()


def test_a_run_that_grows_is_not_finished_before_its_end(tmp_path):
  def run(epochs):
    config = {"epochs": epochs, "dim": 3}
    return runlib.Run(
      "x", directory=tmp_path, config=config, extendable=["epochs"]
    )

  with run(2):
    pass
  with run(2) as same:
    assert same.finished
  with pytest.raises(KeyboardInterrupt), run(5) as larger:
    assert not larger.finished
    raise KeyboardInterrupt
  assert not (tmp_path / "results.json").exists()
  with pytest.raises(errors.InputError, match=r"was 5, now 2"), run(2):
    pass
  with run(5) as again:
    assert not again.finished
  with run(5) as done:
    assert done.finished


def test_a_nan_stops_the_run(tmp_path):
  code, err = _walk(tmp_path / "nan", "--hurt=nan", "--at=7")
  assert code == 3
  assert "far is nan at step 7" in err
  assert "step 5" in err
  assert not (tmp_path / "nan" / "results.json").exists()


def test_scripts_end_bad_flags_with_one_line(tmp_path):
  below_a_file = _WALK / "runs"
  code, err = _walk(below_a_file)
  assert code == 2
  assert err.startswith("error: ") and str(below_a_file) in err
  assert len(err.strip().splitlines()) == 1
  code, err = _walk(tmp_path, "--stepz=3")
  assert code == 2 and "stepz" in err


def test_a_second_process_is_refused(tmp_path):
  held = workdir.Lock(tmp_path)
  with pytest.raises(errors.InputError, match=f"process {os.getpid()}"):
    _run(tmp_path).__enter__()
  held.release()
  code, _ = _walk(tmp_path, watch=tmp_path, changes=12)
  assert code == -signal.SIGKILL
  with pytest.raises(errors.InputError, match="other flags"):
    _run(tmp_path).__enter__()  # the lock of the dead process is free


def _run(directory: pathlib.Path, **config: Any) -> runlib.Run:
  return runlib.Run("small", directory=directory, config=config)


def test_a_flag_that_an_earlier_version_lacked_counts_as_its_default(tmp_path):
  with _run(tmp_path, rate=1):
    pass
  with _run(tmp_path, rate=1, stderrthreshold="fatal"):
    pass
  message = 'stderrthreshold was "fatal", now "info"'
  with pytest.raises(errors.InputError, match=message):
    _run(tmp_path, rate=1, stderrthreshold="info").__enter__()


def test_a_state_that_is_not_finite_is_not_saved(tmp_path):
  stops = pytest.raises(runlib.NonFiniteError, match=r"\['x'\].*good.* 3")
  with stops, _run(tmp_path) as run:
    run.save(3, {"x": jnp.zeros(2)})
    run.save(4, {"x": jnp.array([0.0, jnp.inf])})
  stops = pytest.raises(runlib.NonFiniteError, match="value is nan")
  with stops, _run(tmp_path) as run:
    run.row("a", "MRR", float("nan"))


def test_a_finished_run_may_be_left_as_it_is(tmp_path):
  with _run(tmp_path) as run:
    assert not run.finished
    run.log(0, loss=1.0)
    run.row("a", "MRR", 0.5)
  names = ("results.json", "metrics.jsonl")
  before = [(tmp_path / name).read_bytes() for name in names]
  with _run(tmp_path) as run:
    assert run.finished
  assert [(tmp_path / name).read_bytes() for name in names] == before
  with _run(tmp_path) as run:
    run.log(0, loss=2.0)
  (line,) = (tmp_path / "metrics.jsonl").read_text().splitlines()
  assert json.loads(line)["loss"] == 2.0


def test_vectors_are_written_in_both_formats(tmp_path):
  words, array = ["New York", "b", "New_York"], np.eye(3, 5)
  with _run(tmp_path) as run:
    run.vectors(words, array)
    with pytest.raises(runlib.NonFiniteError, match="'b'"):
      run.vectors(words, np.array([[1.0], [np.nan], [1.0]]))
  stored = vectors.read_vectors(tmp_path / "vectors.npz")
  assert list(stored.words) == words
  np.testing.assert_array_equal(stored.array, array)
  text = vectors.read_vectors(tmp_path / "vectors.txt")
  assert list(text.words) == ["New_York", "b"]


def test_plots_are_png(tmp_path):
  pyplot = pytest.importorskip("matplotlib.figure")
  figure = pyplot.Figure()
  figure.subplots().plot([1, 2])
  with _run(tmp_path) as run:
    path = run.plot("curve", figure)
    first = path.read_bytes()
    run.plot("curve", figure)
  assert path == tmp_path / "plots" / "curve.png"
  assert first.startswith(b"\x89PNG") and path.read_bytes() == first
