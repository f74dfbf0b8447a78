"""The main job: every chapter that can be had, and the report in any case."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import killing
import pytest

from experiments.reproduce import __main__ as reproduce
from repr_jax import errors

_ROOT = pathlib.Path(__file__).parents[2]
_FAKE = {
  name: f"fake_chapters:{name}" for name in ("bad", "good", "killed")
} | {"missing": "fake_chapters:no_such"}


@pytest.fixture(autouse=True)
def _fake_chapters_can_be_imported(monkeypatch):
  paths = f"{_ROOT}:{pathlib.Path(__file__).parent}"
  monkeypatch.setenv("PYTHONPATH", paths)


def test_one_failing_chapter_does_not_take_the_others(tmp_path):
  chapters = reproduce.reproduce(None, "quick", tmp_path, known=_FAKE)
  assert list(chapters) == list(_FAKE)
  assert "RuntimeError: the matrix is <singular>" in chapters["bad"].error
  assert chapters["good"].error is None
  assert chapters["good"].seconds is not None
  assert "signal 9" in chapters["killed"].error
  assert "no_such" in chapters["missing"].error
  page = (tmp_path / "report.html").read_text("utf-8")
  assert "1 of 1 figures agree" in page
  assert "the matrix is &lt;singular&gt; &amp; sad" in page
  assert "--chapters=good --size=quick" in page
  assert "Good chapter" in (tmp_path / "report.md").read_text("utf-8")


def test_a_finished_chapter_is_kept_until_asked_again(tmp_path):
  for rerun in (False, False, True):
    found = reproduce.reproduce(
      ["good"], "full", tmp_path, rerun=rerun, known=_FAKE
    )
    assert found["good"].rows[0]["thesis"] == 0.52
  calls = (tmp_path / "good" / "calls").read_text().splitlines()
  assert calls == ["full none"] * 2


def test_an_unknown_chapter_is_named_with_the_known(tmp_path):
  with pytest.raises(errors.InputError, match=r"'elkb'.*bad, good"):
    reproduce.reproduce(["elkb"], "quick", tmp_path, known=_FAKE)
  ended = killing.call(
    "experiments.reproduce", "--chapters=no_such", cwd=tmp_path
  )
  assert ended.returncode == 2
  assert "no_such" in ended.stderr and "Traceback" not in ended.stderr
  assert not (tmp_path / "runs").exists()


def test_every_registered_chapter_exists():
  for target in reproduce.CHAPTERS.values():
    module, function = target.split(":")
    found = importlib.util.find_spec(module)
    assert f"def {function}(" in pathlib.Path(found.origin).read_text()


def test_the_program_ends_with_1_after_the_report(tmp_path):
  program = (
    "from experiments.reproduce import __main__ as reproduce\n"
    "from experiments.run import runlib\n"
    "reproduce.CHAPTERS.clear()\n"
    f"reproduce.CHAPTERS.update({_FAKE!r})\n"
    "runlib.launch(reproduce.main)\n"
  )
  flags = ["--chapters=bad,good", f"--workdir={tmp_path}"]
  ended = subprocess.run(
    [sys.executable, "-c", program, *flags],
    env={**os.environ, "REPR_JAX_SETTINGS": "off"},
    capture_output=True,
    text=True,
  )
  assert ended.returncode == 1, ended.stderr
  assert "failed: bad" in ended.stderr
  assert "Good chapter: Nothing much" in ended.stdout
  assert str(tmp_path / "report.html") in ended.stdout
  assert "Good chapter" in (tmp_path / "report.html").read_text("utf-8")
  (row,) = json.loads((tmp_path / "results.json").read_text())["rows"]
  assert (row["name"], row["thesis"]) == ("good: a", 0.52)
