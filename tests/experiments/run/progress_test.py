"""Progress of loops: rate and time left."""

import pathlib
import time
from typing import Any

from experiments.run import progress, runlib


def _run(directory: pathlib.Path, **config: Any) -> runlib.Run:
  return runlib.Run("small", directory=directory, config=config)


def test_progress_in_a_log_has_rate_and_time_left(
  tmp_path, capsys, monkeypatch
):
  clock = iter(range(0, 1000, 3))
  monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
  run = _run(tmp_path)
  assert list(run.progress(range(30), "als")) == list(range(30))
  lines = capsys.readouterr().err.splitlines()
  assert "left" in lines[0] and "/s" in lines[0]
  assert lines[-1].startswith("als: 30/30")
  assert 3 < len(lines) < 10


def test_a_warning_is_one_line_without_code():
  shown = progress.format_warning("left out 3 words", UserWarning, "a.py", 7)
  assert shown == "warning: left out 3 words\n"
  assert "a.py:7" in progress.format_warning("old", FutureWarning, "a.py", 7)
