"""A source of views from a file of its own, in the library and the program."""

import pathlib
import sys

import killing
import numpy as np
import pytest

from experiments.mvlsa import data
from experiments.mvlsa.config import Config
from repr_jax.data.views import collection, vocab
from repr_jax.errors import InputError

_SOURCE = '''
import numpy as np
from repr_jax.data.views.source import Made, Source

def make(words, notes):
  """Counts of letters."""
  letters = "abcdefghijklmnopqrstuvwxyz"
  counts = [[word.count(x) for x in letters] for word in words.words]
  notes["words without letters"] += sum(not any(row) for row in counts)
  yield Made("spelling_letters", [np.array(counts, np.float32)], letters, {})

SPELLING = Source("spelling", make)
NUMBER = 7
'''
_ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def module(tmp_path, monkeypatch):
  (tmp_path / "my_views.py").write_text(_SOURCE)
  monkeypatch.syspath_prepend(tmp_path)
  yield tmp_path
  sys.modules.pop("my_views", None)


def test_a_source_of_ones_own_is_collected_like_any_other(module):
  words = vocab.Vocab(("abba", "cab", "7"), [3, 2, 1])
  config = Config(sources=("my_views:SPELLING",), store=str(module))
  (source,) = data.sources(config, [])
  with pytest.warns(UserWarning, match="1 words without letters"):
    (view,) = collection.collect(words, [source], module / "views")
  np.testing.assert_array_equal(
    view.matrix[:, :3], [[2, 2, 0], [1, 1, 1], [0, 0, 0]]
  )
  assert data.group(view.name) == "spelling"
  assert data.choose(config, [view]) == [view]


@pytest.mark.parametrize(
  ("name", "message"),
  [
    ("my_views", "module:NAME"),
    ("my_views:NONE", "cannot import"),
    ("no_such_module:X", "cannot import"),
    ("my_views:NUMBER", "is a int, not a Source"),
  ],
)
def test_a_wrong_name_is_refused(module, name, message):
  with pytest.raises(InputError, match=message):
    data.sources(Config(sources=(name,)), [])


def test_the_program_takes_a_source_by_name(module):
  words = [a + b + c for a in "bcdf" for b in "aeiou" for c in "lmnr"]
  (module / "words.tsv").write_text("".join(f"{w}\t1\n" for w in words))
  ended = killing.call(
    "experiments.mvlsa", f"--vocabulary={module / 'words.tsv'}",
    "--sources=my_views:SPELLING", f"--store={module / 'store'}",
    f"--workdir={module / 'run'}", "--k=3", "--evaluate=false",
    PYTHONPATH=str(module),
  )  # fmt: skip
  assert ended.returncode == 0, ended.stderr
  vectors = np.load(module / "run" / "vectors.npz")
  assert any(vectors[name].shape == (80, 3) for name in vectors.files)
