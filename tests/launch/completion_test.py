"""TAB in a shell completes programs, flags, presets and values."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import experiments
from launch import __main__ as command
from launch import completion

_ROOT = pathlib.Path(experiments.__file__).parents[1]
_BASH = """\
eval "$(repr-jax completion bash)"
COMP_LINE=$1 COMP_POINT=${#1}
_repr_jax
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
  """A cache of its own, which the first question fills, and the command."""
  folder = tmp_path_factory.mktemp("shell")
  program = folder / "bin" / "repr-jax"
  program.parent.mkdir()
  program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m launch "$@"\n')
  program.chmod(0o755)
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv("XDG_CACHE_HOME", str(folder))
    patch.setenv("PYTHONPATH", str(_ROOT))
    patch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    yield folder


def test_programs_flags_presets_and_values_are_completed(cache):
  assert completion.complete("repr-jax resc") == ["rescal"]
  assert {*command.programs()} < {*completion.complete("repr-jax ")}
  assert completion.complete("repr-jax completion f") == ["fish"]
  assert completion.complete("repr-jax rescal --see") == ["--seed="]
  assert completion.complete("repr-jax rescal --preset=rescal_tree_f") == [
    "--preset=rescal_tree_full"
  ]
  assert completion.complete("repr-jax rescal --data=") == [
    "--data=tree",
    "--data=wordnet",
  ]
  switches = completion.complete("repr-jax rescal --role")
  assert switches == ["--roles"]
  assert completion.complete("repr-jax rescal --norole") == ["--noroles"]
  # These are left to the shell, which completes file names.
  assert not completion.complete("repr-jax rescal --workdir=ru")
  assert not completion.complete("repr-jax rescall --")


def test_flags_are_kept_until_a_source_file_changes(cache, monkeypatch):
  module = "experiments.rescal"
  flags = completion.flag_values(module)
  assert {"dims", "workdir", "help"} <= flags.keys()
  assert "showprefixforinfo" not in flags  # of a library

  def none(*arguments, **keywords):
    del arguments, keywords
    return subprocess.CompletedProcess([], 0, stdout="<AllFlags/>")

  monkeypatch.setattr(subprocess, "run", none)
  assert completion.flag_values(module) == flags
  monkeypatch.setattr(completion, "_stamp", lambda: ["newer"])
  assert completion.flag_values(module).keys() == {"help"}
  kept = cache / "repr_jax" / "completion" / f"{module}.json"
  kept.write_text("{")
  assert completion.flag_values(module).keys() == {"help"}
  kept.unlink()


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
@pytest.mark.parametrize(
  ("line", "expected"),
  [
    ("repr-jax resca", "rescal"),
    ("repr-jax rescal --preset=rescal_q", "rescal_quick"),
    ("repr-jax rescal --see", "--seed="),
    ("repr-jax rescal --workdir=x", ""),
  ],
)
def test_bash_is_given_what_stands_after_its_word_breaks(cache, line, expected):
  told = subprocess.run(
    ["bash", "--norc", "-c", _BASH, "bash", line],
    capture_output=True,
    text=True,
    check=True,
  )
  assert told.stdout == f"{expected}\n" and not told.stderr


@pytest.mark.skipif(not shutil.which("fish"), reason="there is no fish")
def test_fish_completes(cache):
  script = (
    "repr-jax completion fish | source; "
    "complete -C 'repr-jax rescal --preset=rescal_q'"
  )
  told = subprocess.run(
    ["fish", "--no-config", "-c", script], capture_output=True, text=True
  )
  assert told.stdout == "--preset=rescal_quick\n"


@pytest.mark.skipif(not shutil.which("zsh"), reason="there is no zsh")
def test_zsh_reads_its_script(cache):
  told = subprocess.run(
    ["zsh", "-f", "-n"],
    input=completion.SCRIPTS["zsh"],
    capture_output=True,
    text=True,
  )
  assert told.returncode == 0 and not told.stderr


def test_a_shell_without_a_script_is_refused(capsys):
  assert completion.main(["completion", "tcsh"]) == 2
  assert capsys.readouterr().err.count("\n") == 1
  assert completion.main(["completion", "zsh"]) == 0
  assert "compdef" in capsys.readouterr().out
