"""Lexicons of related words."""

import gzip

import numpy as np
import pytest

from repr_jax.data import lexicons
from repr_jax.errors import InputError

_INDEX = {"big": 0, "large": 1, "small": 2}


def test_pairs_go_both_ways_once_and_unknown_words_are_counted(tmp_path):
  path = tmp_path / "lexicon.txt.gz"
  with gzip.open(path, "wt") as out:
    out.write("Big large huge\n\nlarge big big\nsmall small\n")
  pairs, unknown = lexicons.read_lexicon(path, _INDEX)
  np.testing.assert_array_equal(sorted(pairs.tolist()), [[0, 1], [1, 0]])
  assert unknown == 1


def test_lines_with_one_word_are_counted(tmp_path):
  path = tmp_path / "odd.txt"
  path.write_text("big large\nsmall\n\nbig\n")
  with pytest.warns(UserWarning, match="2 lines with one word.*line 2"):
    pairs, _ = lexicons.read_lexicon(path, _INDEX)
  assert len(pairs) == 2


@pytest.mark.parametrize("text", ["\n", "", "big\nsmall\n"])
def test_a_lexicon_without_pairs_is_refused(tmp_path, text):
  path = tmp_path / "bad.txt"
  path.write_text(text)
  with pytest.raises(InputError, match="no line has a word") as error:
    lexicons.read_lexicon(path, _INDEX)
  assert "bad.txt" in str(error.value)
