"""Small habits: length, leftovers, names, places of one machine, pickles."""

import ast
import re

import known
import pytest
import source

_LONGEST = 500
_FILES = sorted(
  str(path.relative_to(source.ROOT))
  for pattern in ("*.py", "*.md", "*.toml", "*.flags", ".ci/run", "*.cfg")
  for path in source.ROOT.rglob(pattern)
  if not {".venv", "venv", "build", "dist", "runs", ".git"} & set(path.parts)
)
# Each with one letter in brackets, so that this file keeps the habits too.
_LEFTOVER = re.compile(r"T[O]DO|F[I]XME|\bX[X]X\b|raise N[o]tImplemented")
_MACHINE = re.compile(
  r"(?<![\w.~])/(?:root|home|work|farm|tmp|mnt|Users)/[\w.-]+"
)
_PICKLE = re.compile(r"allow_pickle\s*=\s*T[r]ue|^\s*import p[i]ckle", re.M)
# numpy lets C write these, and does not notice a full disk.
_UNNOTICED = re.compile(r"\bnp\.s[a]ve\(|\.t[o]file\(")


@pytest.mark.parametrize("name", _FILES)
def test_a_file_keeps_the_habits(name):
  text = (source.ROOT / name).read_text("utf-8")
  for habit in (_LEFTOVER, _MACHINE, _PICKLE):
    assert not habit.findall(text)
  if not name.startswith("tests/"):
    assert not _UNNOTICED.findall(text)
  if name.endswith(".py"):
    assert text.count("\n") <= _LONGEST
    assert name.rpartition("/")[2] != "utils.py"


# As in jax and optax; endings of words that British English spells otherwise.
_BRITISH = re.compile(
  r"(?:normal|optim|regular|initial|general|maxim|minim|summar|token|serial|"
  r"factor|vector|penal|random|standard|equal)is(?:e|ed|er|ing|ation)(?![a-z])"
  r"|centre|colour|neighbour|behaviour|labell|modell|judgement|favour"
)


def _names(tree: ast.Module) -> set[str]:
  """Names that a module gives: of definitions, arguments and values."""
  names: set[str] = set()
  for node in ast.walk(tree):
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
      names.add(node.name)
    elif isinstance(node, ast.arg):
      names.add(node.arg)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
      names.add(node.id)
  return names


def _badly_named(module: str, tree: ast.Module) -> list[str]:
  """Names that say nothing of what they hold, or are spelled otherwise."""
  bad = [
    name
    for name in sorted(_names(tree))
    if name in ("found", "Options") or _BRITISH.search(name.lower())
  ]
  return [f"{module}: {name}" for name in bad]


def test_names_say_what_they_hold():
  modules = source.modules(*source.PACKAGES)
  wrong = {x for m in modules for x in _badly_named(m, source.parse(m))}
  known.check(wrong, known.NAMES)


@pytest.mark.parametrize(
  "line",
  [
    "found = f(x)",
    "class Options: pass",
    "def normalise_rows(x): pass",
    "def f(colour): pass",
    "for neighbours in x: pass",
  ],
)
def test_a_bad_name_is_noticed(line):
  assert len(_badly_named("m", ast.parse(line))) == 1


def test_good_names_are_left_alone():
  text = "optimizer = raised = promise = noise = center = otherwise = 1"
  assert not _badly_named("m", ast.parse(text))
