"""Groups of runs: one that fails ends alone, finished ones are left out."""

import json

from experiments.run import vmapped_runs
from repr_jax import errors


def _members(folder, count):
  return [
    vmapped_runs.Member(folder / str(i), {"seed": i, "epochs": 2})
    for i in range(count)
  ]


def test_each_run_has_its_own_directory_and_results(tmp_path):
  with vmapped_runs.Group("small", _members(tmp_path, 3)) as group:
    assert group.active() == [0, 1, 2]
    for i in group.active():
      group.attempt(i, group.runs[i].row, "a", "MRR", i / 2)
      group.finish(i)
    assert group.active() == []
  assert group.failures == [None] * 3
  for i in range(3):
    results = json.loads((tmp_path / str(i) / "results.json").read_text())
    assert [row["value"] for row in results["rows"]] == [i / 2]
    record = json.loads((tmp_path / str(i) / "flags.json").read_text())
    assert record["flags"]["seed"] == i


def test_a_run_that_fails_ends_alone(tmp_path, capsys):
  def fail():
    raise errors.InputError("the rate is negative")

  def crash():
    raise KeyError("x")

  with vmapped_runs.Group("small", _members(tmp_path, 3)) as group:
    assert group.attempt(0, fail) is None
    assert group.attempt(1, crash) is None
    assert group.attempt(2, lambda x: x + 1, 2) == 3
    assert group.active() == [2]
    assert group.attempt(0, lambda: 7) is None  # it has ended
    group.finish(2)
  assert group.failures == ["the rate is negative", "KeyError: 'x'", None]
  assert "the rate is negative" in capsys.readouterr().err
  done = [(tmp_path / str(i) / "results.json").exists() for i in range(3)]
  assert done == [False, False, True]


def test_finished_runs_are_not_active_until_they_grow(tmp_path):
  members = _members(tmp_path, 2)
  with vmapped_runs.Group("small", members[:1]) as group:
    group.finish(0)
  with vmapped_runs.Group("small", members) as group:
    assert group.active() == [1]
    group.finish(1)
  grown = [x._replace(flags={**x.flags, "epochs": 3}) for x in members]
  with vmapped_runs.Group("small", grown) as group:
    assert group.active() == [] and "--epochs was 2" in group.failures[0]
  with vmapped_runs.Group("small", grown, extendable=["epochs"]) as group:
    assert group.active() == [0, 1]


def test_runs_whose_flags_are_refused_fail_alone(tmp_path):
  def check(values):
    if values["seed"] == 1:
      raise errors.InputError("--seed=1 is taken")
    return values["seed"]

  with vmapped_runs.Group("small", _members(tmp_path, 3)) as group:
    assert group.prepare(check) == {0: 0, 2: 2}
    assert group.active() == [0, 2]
  assert group.failures == [None, "--seed=1 is taken", None]


def test_one_run_needs_no_mesh():
  assert vmapped_runs.mesh(1) is None
