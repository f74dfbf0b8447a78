"""Readers of evaluation sets: formats, bad lines, the files of gensim."""

import gzip
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from repr_jax import errors
from repr_jax.data import testsets


def _write(tmp_path, text, name="set.tsv"):
  path = tmp_path / name
  path.write_text(text, encoding="utf-8")
  return path


def test_similarity_plain(tmp_path):
  path = _write(tmp_path, "# note\nTiger\tcat\t7.35\n\nice cream\tfood\t3\n")
  got = testsets.read_similarity(path)
  assert got.name == "set"
  assert got.pairs == [("tiger", "cat"), ("ice cream", "food")]
  np.testing.assert_array_equal(got.scores, [7.35, 3.0])
  assert testsets.read_similarity(path, name="mine").name == "mine"


def test_similarity_headers(tmp_path):
  simlex = _write(
    tmp_path,
    "word1\tword2\tPOS\tSimLex999\tconc(w1)\nold\tnew\tA\t1.58\t2.72\n",
  )
  np.testing.assert_array_equal(testsets.read_similarity(simlex).scores, [1.58])
  combined = _write(tmp_path, "Word 1\tWord 2\tHuman (mean)\na\tb\t2\n")
  assert testsets.read_similarity(combined).pairs == [("a", "b")]
  blanks = _write(tmp_path, "a b 2\nc d 3\n")
  assert testsets.read_similarity(blanks).pairs == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize(
  "bad", ["a\tb", "a\tb\tx", "a\tb\tnan", "a\tb\tinf", "\tb\t3", "word1\tb\tc"]
)
def test_similarity_bad_line_is_named(tmp_path, bad):
  path = _write(tmp_path, f"a\tb\t1\n{bad}\n")
  with pytest.raises(errors.InputError, match=r"set\.tsv:2: "):
    testsets.read_similarity(path)


def test_analogies_sections_and_gzip(tmp_path):
  path = tmp_path / "questions.txt.gz"
  with gzip.open(path, "wt") as stream:
    stream.write("a b c d\n: family\nboy girl King Queen\n: gram2-x\na b e f\n")
  got = testsets.read_analogies(path)
  assert got.name == "questions"
  assert got.questions[1] == ("boy", "girl", "king", "queen")
  assert got.sections == ["", "family", "gram2-x"]
  syntactic, semantic = got.split()
  assert syntactic.name == "questions-SYN" and semantic.name == "questions-SEM"
  assert syntactic.questions == [("a", "b", "e", "f")]
  assert semantic.sections == ["", "family"]


@pytest.mark.parametrize("bad", ["a b c", "a b c d e"])
def test_analogies_bad_line_is_named(tmp_path, bad):
  path = _write(tmp_path, f": s\n{bad}\n")
  with pytest.raises(errors.InputError, match=r"set\.tsv:2: .*four words"):
    testsets.read_analogies(path)


def test_choices(tmp_path):
  got = testsets.read_choices(_write(tmp_path, "Big\tlarge\tred\tlow\t0\n"))
  assert got.questions == ["big"]
  assert got.choices == [("large", "red", "low")]
  np.testing.assert_array_equal(got.answers, [0])


@pytest.mark.parametrize(
  "bad", ["a\tb\t0", "a\tb\tc\t2", "a\tb\tc\t-1", "a\tb\tc\tx", "a\t\tc\t0"]
)
def test_choices_bad_line_is_named(tmp_path, bad):
  with pytest.raises(errors.InputError, match=r"set\.tsv:1: "):
    testsets.read_choices(_write(tmp_path, bad + "\n"))


@pytest.mark.parametrize(
  "read",
  [testsets.read_similarity, testsets.read_analogies, testsets.read_choices],
)
def test_empty_and_absent_files(tmp_path, read):
  with pytest.raises(errors.InputError, match="holds no question or pair"):
    read(_write(tmp_path, "# nothing\n"))
  with pytest.raises(errors.InputError, match="no such file"):
    read(tmp_path / "absent.tsv")


def test_bundled_sets():
  ws = testsets.read_similarity(testsets.bundled("wordsim353.tsv"))
  simlex = testsets.read_similarity(testsets.bundled("simlex999.txt"))
  analogies = testsets.read_analogies(testsets.bundled("questions-words.txt"))
  assert (len(ws.pairs), len(simlex.pairs)) == (353, 999)
  syntactic, semantic = analogies.split()
  # The sizes of AN-SYN and AN-SEM in the thesis' list of test sets.
  assert (len(syntactic.questions), len(semantic.questions)) == (10675, 8869)


def test_bundled_does_not_import_gensim():
  testsets.bundled("wordsim353.tsv")
  code = (
    "import sys; from repr_jax.data import testsets; "
    "testsets.bundled('wordsim353.tsv'); sys.exit('gensim' in sys.modules)"
  )
  assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_bundled_unknown_file_says_what_to_do():
  with pytest.raises(errors.InputError, match="pip install"):
    testsets.bundled("no-such-set.tsv")


def test_sets_of_the_thesis():
  beside = pathlib.Path(__file__).parents[2].parent / "shared" / "data"
  folder = pathlib.Path(os.environ.get("REPR_JAX_DATA", beside)) / "wordsim"
  if not folder.is_dir():
    pytest.skip("no wordsim folder; set REPR_JAX_DATA to have it read")
  sizes = {
    "MEN": 3000, "RW": 2034, "SCWS": 2003, "SIMLEX": 999, "WS": 353,
    "MTURK": 287, "WS-REL": 252, "WS-SIM": 203, "RG": 65, "MC": 30,
  }  # fmt: skip
  for name, size in sizes.items():
    assert len(testsets.read_similarity(folder / f"{name}.tsv").pairs) == size
  for name, size in {"AN-SYN": 10675, "AN-SEM": 8869}.items():
    got = testsets.read_analogies(folder / f"{name}.txt.gz")
    assert (got.name, len(got.questions)) == (name, size)
  assert len(testsets.read_choices(folder / "TOEFL.tsv").questions) == 80
