"""Lexicons: lines of words, the first related to each of the others."""

import warnings
from collections.abc import Mapping

import numpy as np

from repr_jax.data.io import files
from repr_jax.errors import InputError


def read_lexicon(
  path: files.Path, index: Mapping[str, int]
) -> tuple[np.ndarray, int]:
  """Pairs of related words.

  Args:
    path: a file of `word word...` lines, plain or compressed; blank lines are
      passed over. Words are lower-cased.
    index: row of each word.

  Returns:
    Rows of both words of each pair in both directions, each once, int32
    [p, 2]; and how many pairs were left out because a word is not in `index`.

  Raises:
    InputError: for a file without a line of two words. In other files lines
      with one word are passed over with a warning, since PPDB's has some.
  """
  pairs: dict[tuple[int, int], None] = {}
  unknown = lines = 0
  alone: list[int] = []
  for line, text in files.numbered_lines(path):
    words = text.lower().split()
    if len(words) == 1:
      alone.append(line)
      continue
    lines += 1
    first = index.get(words[0], -1)
    for word in words[1:]:
      second = index.get(word, -1)
      if first < 0 or second < 0:
        unknown += 1
      elif first != second:
        pairs[first, second] = pairs[second, first] = None
  if not lines:
    raise InputError(
      "no line has a word and related words",
      path=path,
      line=alone[0] if alone else None,
    )
  if alone:
    warnings.warn(
      f"{path}: {len(alone)} lines with one word, the first is line {alone[0]}",
      stacklevel=2,
    )
  return np.array(list(pairs), np.int32).reshape(-1, 2), unknown
