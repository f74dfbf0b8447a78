"""Command lines: values, files of flags, and errors in one line."""

import pytest
from absl import flags
from absl.testing import flagsaver

from experiments.run import command_line, presets
from repr_jax import errors

_COUNT = flags.DEFINE_integer("test_count", 1, "A number.", lower_bound=1)
_RATE = flags.DEFINE_float("test_rate", 0.5, "A number.")
_PATH = flags.DEFINE_string("test_path", None, "A path.")


@pytest.fixture(autouse=True)
def _restored():
  saved = flagsaver.save_flag_values()
  yield
  flagsaver.restore_flag_values(saved)


def test_flags_and_files_of_flags_are_read_in_order(tmp_path, monkeypatch):
  monkeypatch.setenv("REPR_JAX_DATA", "/data/here")
  path = tmp_path / "a.flags"
  path.write_text("# a note\n--test_count=3\n--test_path=$REPR_JAX_DATA/x\n")
  rest = command_line.parse(
    ["program", f"--flagfile={path}", "--test_count=4", "more"]
  )
  assert rest == ["program", "more"]
  assert (_COUNT.value, _PATH.value) == (4, "/data/here/x")


def test_a_file_of_flags_may_name_a_preset(tmp_path, monkeypatch):
  monkeypatch.setattr(presets, "FOLDER", tmp_path)
  (tmp_path / "test_small.flags").write_text("--test_count=7\n")
  path = tmp_path / "mine"
  path.write_text("--preset=test_small\n--test_rate=2\n")
  command_line.parse(["program", f"--flagfile={path}"])
  assert (_COUNT.value, _RATE.value) == (7, 2.0)


@pytest.mark.parametrize(
  ("argument", "message"),
  [
    ("--test_count=0", "test_count=0"),
    ("--test_count=x", "test_count=x: give a whole number"),
    ("--test_rate=x", "test_rate=x: give a number"),
    ("--test_rate=nan", "test_rate=nan: give a finite number"),
    ("--test_rate=inf", "test_rate=inf: give a finite number"),
    ("--no_such_flag=1", "no_such_flag"),
    ("--preset=no_such", "there is no such preset"),
    ("--flagfile=/no/such/file", "no/such/file"),
  ],
)
def test_what_cannot_be_used_is_named(argument, message):
  with pytest.raises(errors.InputError, match=message):
    command_line.parse(["program", argument])
