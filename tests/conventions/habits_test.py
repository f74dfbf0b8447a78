"""Small habits: length, leftovers, places of one machine, pickles."""

import re

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
