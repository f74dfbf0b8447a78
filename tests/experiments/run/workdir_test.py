"""Work directories: locks, flags, results and the log."""

import json
import pathlib
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from experiments.run import runlib, workdir
from launch import plan
from repr_jax import errors


def _run(directory: pathlib.Path, **config: Any) -> runlib.Run:
  return runlib.Run("small", directory=directory, config=config)


def test_other_flags_are_refused_by_name(tmp_path):
  with runlib.Run("a", directory=tmp_path, config={"k": 1, "x": "s", "z": 0}):
    pass
  before = (tmp_path / "flags.json").read_bytes()
  other = {"k": 2, "y": None, "z": 0}
  with pytest.raises(errors.InputError) as caught:
    runlib.Run("a", directory=tmp_path, config=other).__enter__()
  assert "--k was 1, now 2" in str(caught.value)
  assert '--x was "s", now absent' in str(caught.value)
  assert "--y was absent, now null" in str(caught.value)
  assert "--z" not in str(caught.value)
  assert (tmp_path / "flags.json").read_bytes() == before
  again = {"k": 1, "x": "s", "z": 5}
  with runlib.Run("a", directory=tmp_path, config=again, volatile=["z"]) as run:
    assert run.finished


def test_a_nan_among_the_flags_is_the_same_flag_again(tmp_path):
  for _ in range(2):
    with _run(tmp_path, rate=float("nan"), k=1):
      pass
  with pytest.raises(errors.InputError, match="--rate was NaN, now Infinity"):
    _run(tmp_path, rate=float("inf"), k=1).__enter__()
  with _run(tmp_path, rate=float("nan"), k=1.0):
    pass


def test_a_lock_that_holds_no_text_is_still_a_lock(tmp_path):
  lock = workdir.Lock(tmp_path)
  (tmp_path / ".lock").write_bytes(b"\xff\xfe" * 1000)
  with pytest.raises(errors.InputError, match="in use by process"):
    workdir.Lock(tmp_path)
  assert plan.holder(tmp_path)
  lock.release()
  assert plan.holder(tmp_path) is None


@pytest.mark.parametrize(
  "row",
  [
    5,
    {},
    {"name": "a", "metric": "m"},
    {"name": "a", "metric": "m", "value": "1"},
    {"name": "a", "metric": "m", "value": True},
    {"name": "a", "metric": "m", "value": float("nan")},
    {"name": "a", "metric": "m", "value": 10**400},
    {"name": 1, "metric": "m", "value": 1},
    {"name": "a", "metric": "m", "value": 1, "thesis": "abc"},
    {"name": "a", "metric": "m", "value": 1, "lower": None},
  ],
)
def test_results_that_are_none_are_refused(tmp_path, row):
  path = tmp_path / "results.json"
  good = {"name": "a", "metric": "m", "value": 2, "thesis": 1.5}
  path.write_text(json.dumps({"experiment": "e", "rows": [good]}))
  assert workdir.read_results(path)["rows"] == [good]
  path.write_text(json.dumps({"experiment": "e", "rows": [good, row]}))
  with pytest.raises(errors.InputError, match=r"results\.json.*row 2 has no"):
    workdir.read_results(path)
  for other in ([], {}, {"experiment": "e", "rows": good}):
    path.write_text(json.dumps(other))
    with pytest.raises(errors.InputError, match=r"results\.json.*remove it"):
      workdir.read_results(path)


def test_a_strange_directory_is_refused(tmp_path):
  (tmp_path / "results.json").write_text("{}")
  with pytest.raises(errors.InputError, match=r"no flags\.json"):
    _run(tmp_path).__enter__()
  (tmp_path / "flags.json").write_text("[]")
  with pytest.raises(errors.InputError, match="not a record"):
    _run(tmp_path).__enter__()


def test_lines_past_the_checkpoint_are_cut(tmp_path):
  with pytest.raises(RuntimeError), _run(tmp_path) as run:
    for step in range(4):
      run.log(step, loss=np.float32(step), parts=jnp.arange(2), phase="x")
      if step == 1:
        run.save(step, {"x": jnp.zeros(1)})
    raise RuntimeError
  with _run(tmp_path) as run:
    run.log(2, loss=9)
    with pytest.raises(ValueError, match="step 1 is logged after"):
      run.log(1, loss=9)
  text = (tmp_path / "metrics.jsonl").read_text()
  lines = [json.loads(line) for line in text.splitlines()]
  assert [(x["step"], x["loss"]) for x in lines] == [(0, 0), (1, 1), (2, 9)]
  assert lines[0]["parts"] == [0, 1]
