"""Presets: found by name from anywhere, filled in, and refused in one line."""

import json
import pathlib

import killing
import pytest

from experiments.run import presets
from repr_jax import errors

_ROOT = pathlib.Path(__file__).parents[3]
_EXPERIMENTS = sorted({name.partition("_")[0] for name in presets.names()})


def _program(name):
  return f"experiments/{name}/__main__.py"


def test_a_preset_stands_for_its_flags_and_later_flags_override():
  given = ["x", "--seed=1", "--preset=elkb_puzzle", "--cap=0.3"]
  made = presets.expand(given)
  assert made[:2] == ["x", "--seed=1"] and made[-1] == "--cap=0.3"
  assert "--task=puzzle" in made and "--preset" not in " ".join(made)
  assert presets.expand(["x", "--preset", "elkb_puzzle"])[1:] == made[2:-1]


def test_a_preset_may_contain_another(monkeypatch):
  monkeypatch.setenv("REPR_JAX_DATA", "/some/where")
  made = presets.expand(["x", "--preset=mvlsa_k"])
  assert "--study=k" in made and "--tokenize" in made
  assert any(x.startswith("--text=/some/where/corpora/") for x in made)
  assert "$" not in " ".join(made)


def test_flags_of_a_preset_alone(monkeypatch, tmp_path):
  monkeypatch.setattr(presets, "FOLDER", tmp_path)
  (tmp_path / "a_b.flags").write_text("--rate=1\n--noquick\n--count=2\n")
  given = ["--preset=a_b", "--count=3", "file"]
  assert presets.only_by_preset(given) >= {"rate", "quick"}
  assert "count" not in presets.only_by_preset(given)
  assert "quick" not in presets.only_by_preset([*given, "--quick"])
  assert presets.only_by_preset(["--count=3"]) == set()


def test_one_that_contains_itself_is_refused(monkeypatch, tmp_path):
  monkeypatch.setattr(presets, "FOLDER", tmp_path)
  (tmp_path / "a_x.flags").write_text("--preset=a_y\n")
  (tmp_path / "a_y.flags").write_text("# again\n--preset=a_x\n")
  with pytest.raises(errors.InputError, match="contains itself"):
    presets.expand(["x", "--preset=a_x"])


def test_without_the_data_directory_the_flag_is_named(monkeypatch):
  monkeypatch.delenv("REPR_JAX_DATA", raising=False)
  with pytest.raises(errors.InputError, match=r"--corpus needs .REPR_JAX_DATA"):
    presets.expand(["x", "--preset=cmr_tinkerbell"])
  made = presets.expand(["x", "--preset=cmr_tinkerbell", "--corpus=mine"])
  assert [x for x in made if "--corpus" in x] == ["--corpus=mine"]


def test_what_follows_a_double_dash_is_left_alone():
  given = ["x", "--", "python", "--preset=no_such"]
  assert presets.expand(given) == given


def test_an_unknown_name_is_refused_with_the_nearest():
  with pytest.raises(errors.InputError) as caught:
    presets.expand([_program("elkb"), "--preset=elkb_compex"])
  text = str(caught.value)
  assert "did you mean elkb_complex" in text and "\n" not in text
  assert "elkb_thesis" in text and "nvse_best" not in text


def test_a_preset_of_another_experiment_is_refused():
  with pytest.raises(errors.InputError, match=r"belongs to experiments\.nvse"):
    presets.expand([_program("elkb"), "--preset=nvse_best"])


@pytest.mark.parametrize("experiment", _EXPERIMENTS)
def test_every_preset_is_accepted_by_its_experiment(experiment):
  ended = killing.shared().run(
    "preset_flags", [experiment], variables={"REPR_JAX_DATA": "/some/where"}
  )
  assert ended.code == 0, ended.said
  assert ended.stdout.split() == presets.names(experiment)


@pytest.mark.parametrize("name", presets.names())
def test_no_preset_reads_a_relative_path(name):
  for line in presets.FOLDER.joinpath(f"{name}.flags").read_text().split("\n"):
    flag, _, value = line.partition("=")
    written = flag in ("--workdir", "--store")
    if line.startswith("-") and not written:
      paths = [x for x in value.split(",") if "/" in x]
      paths = [x.partition("=")[2] or x for x in paths]  # NAME=PATH
      assert all(x.startswith("$REPR_JAX_DATA/") for x in paths), line


def test_a_preset_works_from_any_directory(tmp_path):
  arguments = [
    "--preset=rescal_tree_sub", "--vertices=15", "--dims=2", "--runs=1",
    "--workdir=done",
  ]  # fmt: skip
  ended = killing.call("experiments.rescal", *arguments, cwd=tmp_path)
  assert ended.returncode == 0, ended.stderr
  record = json.loads((tmp_path / "done" / "flags.json").read_text())
  assert record["flags"]["settings"] == ["sub"]
  assert "preset" not in record["flags"]
