"""Sweep files become runs and jobs, and what is wrong is said first."""

import json
import pathlib
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launch import plan
from repr_jax import errors

_VALUES = st.one_of(
  st.text(max_size=5), st.booleans(), st.floats(allow_nan=False), st.integers()
)
_FLAGS = st.dictionaries(st.from_regex(r"[a-c]{1,2}", fullmatch=True), _VALUES)


@settings(deadline=None)
@given(_FLAGS, _FLAGS)
def test_other_flags_have_another_directory(one, two):
  def texts(flags):
    return {name: plan._text(value) for name, value in flags.items()}

  names = plan.directory_name(one), plan.directory_name(two)
  assert (names[0] == names[1]) == (texts(one) == texts(two))
  for name in names:
    assert "/" not in name and 0 < len(name) <= 100


def test_directory_names_are_readable():
  flags = {"seed": 3, "eta": 1e-05, "rules": True}
  assert plan.directory_name(flags) == "eta=1e-05,rules=true,seed=3"
  assert plan.directory_name({}) == "default"


def test_runs_have_their_commands(sweep_file, tmp_path):
  flagfile = tmp_path / "some.flags"
  flagfile.write_text("--kind=b\n")
  path = sweep_file("add()\nadd(x=2)", more=f'FLAGFILE = "{flagfile}"')
  made = plan.make(path, tmp_path / "root")
  first, second = plan.jobs(made, 8)
  assert first.name == "default" and second.name == "x=2"
  directory = tmp_path / "root" / "x=2"
  assert second.arguments == [
    sys.executable, "-m", "fake_run", f"--flagfile={flagfile}", "--x=2",
    f"--workdir={directory}",
  ]  # fmt: skip


def test_finished_runs_are_left_out_unless_their_flags_differ(
  sweep_file, tmp_path, capsys
):
  path = sweep_file("add.grid(x=(1, 2, 3))\nadd(x=1.0)")
  root = tmp_path / "root"
  made = plan.make(path, root)
  assert "x=1.0 is the same run as x=1" in capsys.readouterr().err
  values = {"workdir": "elsewhere", "seed": 0, "x": 1.0, "kind": "a"}
  values |= {"steps": 0, "needs": None}
  for name, change in (("x=1", {}), ("x=2", {"x": 2.0, "kind": "b"})):
    (root / name).mkdir(parents=True)
    stored = {"experiment": "fake", "flags": {**values, **change}}
    (root / name / "flags.json").write_text(json.dumps(stored))
    (root / name / "results.json").write_text("{}")
  made = plan.make(path, root)
  assert [run.finished for run in made.runs] == [True, False, False, False]


def test_flags_kept_in_another_form_are_the_same(tmp_path):
  folder = tmp_path / "a"
  folder.mkdir()
  stored = {"flags": {"hidden": [500], "rate": 1, "corpus": ["x"]}}
  (folder / "flags.json").write_text(json.dumps(stored))
  (folder / "results.json").write_text("{}")
  now = {"hidden": ["500"], "rate": 1.0, "corpus": ["x"], "workdir": "y"}
  assert plan.is_finished(tmp_path, "a", now)
  for change in ({"hidden": ["400"]}, {"rate": 2}, {"corpus": ["x", "y"]}):
    assert not plan.is_finished(tmp_path, "a", {**now, **change})


def test_a_run_that_keeps_fewer_flags_is_known_by_the_sweeps_note(tmp_path):
  folder = tmp_path / "a"
  folder.mkdir()
  (folder / "flags.json").write_text('{"flags": {"x": 1}}')
  (folder / "results.json").write_text("{}")
  values = {"x": 1, "mode": "evaluate"}
  assert not plan.is_finished(tmp_path, "a", values)
  plan.note_finished(tmp_path, plan.Run("a", folder, {}, [], values))
  assert plan.is_finished(tmp_path, "a", values)
  assert not plan.is_finished(tmp_path, "a", {**values, "mode": "train"})
  assert not plan.is_finished(tmp_path, "a", {**values, "x": 2})
  (folder / "results.json").unlink()
  assert not plan.is_finished(tmp_path, "a", values)


def test_runs_that_differ_in_declared_flags_form_groups(tmp_path):
  root = tmp_path / "root"
  runs = [
    plan.Run(f"{size}{seed}", root / f"{size}{seed}", flags, [str(flags)], {})
    for size in (1, 2)
    for seed in range(5)
    for flags in ({"size": size, "seed": seed},)
  ]
  runs[0] = runs[0]._replace(finished=True)
  made = plan.Plan("fake_group", root, runs, ("seed", "rate"))
  jobs = plan.jobs(made, 3)
  assert [[run.name for run in job.runs] for job in jobs] == [
    ["11", "12"], ["13", "14"], ["20", "21"], ["22", "23", "24"],
  ]  # fmt: skip
  group = json.loads(
    pathlib.Path(jobs[0].arguments[-1].partition("=")[2]).read_text()
  )
  assert [run["directory"] for run in group["runs"]] == [
    str(root / "11"), str(root / "12"),
  ]  # fmt: skip
  assert all(len(job.runs) == 1 for job in plan.jobs(made, 1))
  # A run with results of other flags is the experiment's to refuse.
  runs[1].directory.mkdir(parents=True)
  (runs[1].directory / "results.json").write_text("{}")
  assert ["11"] in [
    [run.name for run in job.runs] for job in plan.jobs(made, 9)
  ]


@pytest.mark.parametrize(
  ("body", "message"),
  [
    ("add(y=1)", r"tried.py:5: fake_run: .*y"),
    ("add()\nadd(kind='c')", r"tried.py:6: fake_run: .*kind"),
    ("add(x=1)\nadd(x=1)", r"tried.py:6: two runs .* line 5"),
    ("add(x=None)", r"tried.py:5: add: x is None"),
    ("add()\nadd(x=1 / 0)", r"tried.py:6: ZeroDivisionError"),
    ("pass", "adds no run"),
  ],
)
def test_wrong_runs_are_named_with_their_line(
  sweep_file, tmp_path, body, message
):
  with pytest.raises(errors.InputError, match=message):
    plan.make(sweep_file(body), tmp_path / "root")
  assert not (tmp_path / "root").exists()


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("EXPERIMENT = 'fake_run'", r"has no function sweep"),
    ("def sweep(add): add()", "does not set EXPERIMENT"),
    ("def sweep(add)\n", r"tried.py:1: SyntaxError"),
    ("x = 1\nimport nothing_like_it", r"tried.py:2: ModuleNotFoundError"),
    (
      "EXPERIMENT = 'no.such'\ndef sweep(add): add()",
      "'no.such' cannot be imported",
    ),
    (
      "EXPERIMENT = 'e'\nFLAGFILE = 'no.flags'\ndef sweep(add): add()",
      "no file 'no.flags'",
    ),
    (
      "EXPERIMENT = 'e'\nPRESET = 'no_such'\ndef sweep(add): add()",
      "PRESET: there is no 'no_such'.*elkb_fast",
    ),
  ],
)
def test_wrong_files_are_named(tmp_path, text, message):
  path = tmp_path / "tried.py"
  path.write_text(text)
  with pytest.raises(errors.InputError, match=message):
    plan.make(str(path), tmp_path / "root")


def test_a_missing_file_is_named(tmp_path):
  with pytest.raises(errors.InputError, match="no such file"):
    plan.make(str(tmp_path / "absent.py"), tmp_path)
