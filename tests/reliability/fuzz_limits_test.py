"""No file makes a reader hang, fill the memory, or run what it holds."""

import ast
import importlib
import json
import os
import pathlib
import random
import subprocess
import sys

import fuzz_bombs
import fuzz_cases
import numpy as np
import pytest

from repr_jax import errors
from repr_jax.data import entities, vectors
from repr_jax.data.documents import wikitext
from repr_jax.data.io import array_files

_ROOT = pathlib.Path(__file__).parents[2]
_SECONDS = 20.0  # Of processor time for one file; a gigabyte takes longer.
_EXECUTE = {
  *("pickle", "_pickle", "cPickle", "cloudpickle", "marshal", "shelve"),
  *("dill", "joblib"),
}
_CALLS = {"eval", "exec", "compile", "__import__"}


@pytest.fixture(scope="module")
def outcomes():
  with fuzz_cases.folder() as folder:
    fuzz_bombs.make(folder)
    ended = subprocess.run(
      [sys.executable, fuzz_bombs.__file__, str(folder)],
      env={**os.environ, "PYTHONPATH": str(_ROOT)},
      capture_output=True,
      text=True,
    )
    assert ended.returncode == 0, ended.stderr
    found = map(json.loads, ended.stdout.splitlines())
    return str(folder), {outcome["name"]: outcome for outcome in found}


@pytest.mark.skipif(
  not pathlib.Path("/proc/self/statm").exists(), reason="limits need Linux"
)
@pytest.mark.parametrize("name", fuzz_bombs.READERS)
def test_what_claims_too_much_is_refused_in_little_memory(outcomes, name):
  folder, found = outcomes
  outcome = found[name]
  assert outcome["kind"] == "InputError", outcome
  assert outcome["path"].startswith(folder), outcome
  assert "MemoryError" not in outcome["message"], outcome
  assert len(outcome["message"]) < 3000
  assert outcome["kilobytes"] < fuzz_bombs.MORE >> 10, outcome
  assert outcome["seconds"] < _SECONDS, outcome


class _Touch:
  """Makes a file when it is unpickled."""

  def __init__(self, path):
    self._path = path

  def __reduce__(self):
    return open, (str(self._path), "w")


def test_no_pickle_is_loaded(tmp_path):
  held = np.array([_Touch(tmp_path / "ran")], dtype=object)
  np.savez(tmp_path / "a.npz", words=np.array(["a"]), array=held)
  np.save(tmp_path / "a.npy", held)
  for read in (array_files.read_npz, vectors.read_vectors):
    with pytest.raises(errors.InputError, match="objects"):
      read(tmp_path / "a.npz")
  with pytest.raises(errors.InputError, match="objects"):
    array_files.map_array(tmp_path / "a.npy")
  assert not (tmp_path / "ran").exists()


def _executing(text: str) -> list[str]:
  """Calls of a module that run or unpickle the content of a file."""
  found = []
  for node in ast.walk(ast.parse(text)):
    if isinstance(node, ast.Import):
      names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
      names = [node.module or ""]
    elif isinstance(node, ast.Call):
      names = []
      called = ast.unparse(node.func)
      given = {x.arg: ast.unparse(x.value) for x in node.keywords}
      # Numpy unpickles only where it is asked to; its readers must say no.
      reads = called in ("np.load", "numpy.load", "np.lib.format.read_array")
      if given.get("allow_pickle", "False") != "False" or (
        reads and "allow_pickle" not in given
      ):
        found.append(ast.unparse(node))
      if called in _CALLS or called in ("torch.load", "yaml.load"):
        found.append(ast.unparse(node))
    else:
      continue
    found += [name for name in names if name.split(".")[0] in _EXECUTE]
  return found


@pytest.mark.parametrize("package", ["repr_jax", "experiments", "launch"])
def test_no_module_can_execute_what_a_file_holds(package):
  (folder,) = importlib.import_module(package).__path__
  paths = sorted(pathlib.Path(folder).rglob("*.py"))
  assert paths
  for path in paths:
    assert not _executing(path.read_text("utf-8")), path


@pytest.mark.parametrize(
  "text",
  [
    "from pickle import loads",
    "import numpy, marshal as m",
    "np.load(path)",
    f"np.load(path, allow_pickle={True})",
    "np.lib.format.read_array(stream, allow_pickle=trusted)",
    "eval(line)",
  ],
)
def test_what_can_execute_is_noticed(text):
  text = text.replace("=True", "=Tr" + "ue")  # which no file here may say
  assert _executing(text)
  assert not _executing("np.load(path, allow_pickle=False)\nre.compile('a')")


_MARKS = (
  *("[[", "]]", "[[a]]", "[[a|", "{{", "}}", "{|", "|}", "{{{|", "|}}}", "'"),
  *("<ref", "<ref>", "<ref/", "<math>", "</ref>", "<!--", "-->", "<", "<br"),
  *("{{lang|", "{{lang|de|", "{{lang|[[a]]", "[//", "[http://a ", "http://"),
  *("__A", "=", "==a==\n", "*", "|\n", "&", "&#", "a. B", "U.S.", "1,", "\n"),
  *(
    "[[aa]] went. Then ",
    ".",
    ".)",
    "[//a",
    "a'",
    "_",
    "(",
    " ",
    "\u00a0",
    "[[File:a|[[b]]",
  ),
)


@pytest.mark.parametrize("seed", range(8))
def test_markup_takes_time_in_proportion_to_its_length(seed):
  rng = random.Random(seed)
  marks = _MARKS[seed::8]
  mixed = ["".join(rng.sample(_MARKS, 3)) for _ in marks]
  reader = fuzz_cases.Reader("markup", (), _take_apart, lambda found: None)
  with fuzz_cases.folder() as folder, fuzz_cases.time_limit():
    for mark in (*marks, *mixed):
      (folder / "page").write_text(mark * (60_000 // len(mark)))
      assert fuzz_cases.judge(reader, str(folder / "page"), repr(mark))


def _take_apart(path):
  text = pathlib.Path(path).read_text()
  found = list(wikitext.sentences(text))
  return [entities.sentence_from_text(*sentence) for sentence in found]
