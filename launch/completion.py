"""Completes programs, flags, presets and values in a shell.

eval "$(repr-jax completion bash)"        in ~/.bashrc
eval "$(repr-jax completion zsh)"         in ~/.zshrc, after compinit
repr-jax completion fish | source         in ~/.config/fish/config.fish

TAB then completes `repr-jax PROGRAM --flag=VALUE`. The command is also
`python -m launch.completion SHELL`. The flags of a program come
from the program itself and are kept in $XDG_CACHE_HOME/repr_jax (by default
~/.cache/repr_jax) until a source file changes, so that only the first TAB
waits for them.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from xml.etree import ElementTree

import experiments
import repr_jax
from experiments.run import presets
from launch import __main__ as command

# `repr-jax completion complete LINE` prints one candidate on a line. Bash
# takes "=" for the end of a word, so there only what follows it is replaced.
_BASH = """\
_repr_jax() {
  local line=${COMP_LINE:0:COMP_POINT} typed IFS=$'\\n'
  COMPREPLY=($(repr-jax completion complete "$line" 2>/dev/null))
  [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  typed=${line##*[[:space:]]}
  if [[ $typed == *=* && $COMP_WORDBREAKS == *=* ]]; then
    COMPREPLY=("${COMPREPLY[@]#"${typed%%=*}="}")
  fi
}
complete -o default -F _repr_jax repr-jax
"""
_ZSH = """\
_repr_jax() {
  local -a all
  all=(${(f)"$(repr-jax completion complete "${(j: :)words[1,CURRENT]}" \\
    2>/dev/null)"})
  if (( ${#all} )); then
    compadd -S '' -- ${(M)all:#*=}
    compadd -- ${all:#*=}
  else
    compset -P '*='
    _files
  fi
}
compdef _repr_jax repr-jax
"""
_FISH = """\
function __repr_jax
  set -l all (repr-jax completion complete (commandline -cp) 2>/dev/null)
  if test (count $all) -gt 0
    printf '%s\\n' $all
  else
    set -l typed (commandline -ct)
    set -l flag (string match -r -- '^--\\w+=' $typed)
    set -l path (string replace -r -- '^--\\w+=' '' $typed)
    printf "$flag%s\\n" (__fish_complete_path $path)
  end
end
complete -c repr-jax -f -a '(__repr_jax)'
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_SWITCH = ["true", "false"]  # values of a flag that needs none


def complete(line: str) -> list[str]:
  """Candidates for the last word of a command line.

  Args:
    line: the command line up to the cursor, from `repr-jax` on.

  Returns:
    Whole words that begin as the last one does. A flag that takes a value ends
    in "=". Empty where the shell should complete file names.
  """
  words = line.split()
  typed = "" if not words or line[-1].isspace() else words.pop()
  listed = command.programs()
  if len(words) <= 1:
    return [name for name in [*listed, "--help"] if name.startswith(typed)]
  if words[1] not in listed:
    return []
  if words[1] == "completion":
    return [name for name in SCRIPTS if name.startswith(typed)]
  module, _ = listed[words[1]]
  values = flag_values(module)
  name, equals, _ = typed.removeprefix("--").partition("=")
  if equals and typed.startswith("--"):
    candidates = [f"--{name}={value}" for value in values.get(name) or ()]
  else:
    candidates = [
      word
      for flag, choices in values.items()
      for word in (
        [f"--{flag}="] if choices != _SWITCH else [f"--{flag}", f"--no{flag}"]
      )
    ]
  return [word for word in candidates if word.startswith(typed)]


def flag_values(module: str) -> dict[str, list[str]]:
  """Flags of a program and the values of each; empty where any may be given.

  Args:
    module: the program, as `python -m` takes it.

  Returns:
    Values by name. They are read from a cache while no source file has changed.
  """
  path = _cache() / f"{module}.json"
  stamp = _stamp()
  with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
    kept = json.loads(path.read_text("utf-8"))
    if kept["stamp"] == stamp:
      return kept["flags"]
  told = subprocess.run(
    [sys.executable, "-m", module, "--helpxml"], capture_output=True, text=True
  )
  values = _read(told.stdout)
  if "preset" in values:
    values["preset"] = presets.names(module.rpartition(".")[2])
  if values:
    from repr_jax.data.io import files  # imports scipy, slowly

    with contextlib.suppress(OSError):
      path.parent.mkdir(parents=True, exist_ok=True)
      with files.atomic_write(path) as out:
        json.dump({"stamp": stamp, "flags": values}, out)
  return values


def _read(text: str) -> dict[str, list[str]]:
  """Flags of a program from its `--helpxml`."""
  try:
    root = ElementTree.fromstring(text)
  except ElementTree.ParseError:
    return {}
  values: dict[str, list[str]] = {"help": _SWITCH}
  for flag in root.iter("flag"):
    if flag.findtext("key") != "yes":
      continue
    choices = [x.text or "" for x in flag.iter("enum_value")]
    if flag.findtext("type") == "bool":
      choices = _SWITCH
    values[flag.findtext("name") or ""] = choices
  return values


def _cache() -> pathlib.Path:
  folder = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
  return pathlib.Path(folder) / "repr_jax" / "completion"


def _stamp() -> list[str | int]:
  """Changes with the sources, the presets and the interpreter."""
  count = newest = 0
  for package in (experiments, repr_jax):
    for path in package.__path__:
      for top, _, names in os.walk(path):
        for name in names:
          if name.endswith((".py", ".flags")):
            count += 1
            changed = os.stat(os.path.join(top, name)).st_mtime_ns
            newest = max(newest, changed)
  return [repr_jax.__version__, sys.executable, count, newest]


def main(argv: Sequence[str]) -> int:
  """Prints a shell's script, or candidates for a line; returns the exit code.

  Args:
    argv: the program, then the name of a shell or "complete" and a line.
  """
  arguments = list(argv[1:])
  if arguments[:1] == ["complete"] and len(arguments) == 2:
    for word in complete(arguments[1]):
      print(word)
    return 0
  if arguments in (["--help"], ["-h"]):
    print(__doc__)
    return 0
  if len(arguments) == 1 and arguments[0] in SCRIPTS:
    print(SCRIPTS[arguments[0]], end="")
    return 0
  print(
    f"error: name a shell: repr-jax completion {' | '.join(SCRIPTS)}",
    file=sys.stderr,
  )
  return 2


if __name__ == "__main__":
  sys.exit(main(sys.argv))
