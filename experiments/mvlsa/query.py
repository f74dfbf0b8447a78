"""Questions to the vectors of a finished run, and a map of words."""

import difflib
import pathlib
from collections.abc import Sequence

import numpy as np

from experiments.mvlsa import evaluate
from experiments.run import word_map
from repr_jax import evaluation, ops
from repr_jax.data import vectors as vectors_lib
from repr_jax.data.io import files
from repr_jax.errors import InputError

_MOST = 3  # words of a question
_ANSWERS = 3  # of an analogy
_ALIKE = 0.6  # least similarity of spellings, by difflib


class Asked:
  """The vectors of a run, looked up by words in any case."""

  def __init__(self, learned: vectors_lib.Vectors):
    """Takes words and vectors.

    Args:
      learned: the vectors of a run. Words whose vector is zero are unknown.
    """
    array = np.asarray(learned.array, np.float32)
    known = np.flatnonzero(array.any(axis=1)).tolist()
    self.words = [learned.words[row] for row in known]
    self.array = array[known]
    self._rows = {word: row for row, word in enumerate(self.words)}
    self._folded: dict[str, int] = {}
    for row, word in enumerate(self.words):
      self._folded.setdefault(word.casefold(), row)

  def row(self, word: str) -> int:
    """The row of a word, of its other case, or of the nearest spelling.

    Returns:
      Its row; for an unknown word, that of the word spelled most like it.

    Raises:
      InputError: no word is spelled much like it.
    """
    row = self._rows.get(word, self._folded.get(word.casefold(), -1))
    if row < 0:
      near = difflib.get_close_matches(
        word.casefold(), list(self._folded), n=1, cutoff=_ALIKE
      )
      row = self._folded[near[0]] if near else row
    if row < 0:
      raise InputError(
        f"--ask: no vector of {word!r}, and no known word is spelled like it"
      )
    return row

  def _label(self, word: str) -> str:
    """A word as answers show it, with the unknown word that it stands for."""
    known = self.words[self.row(word)]
    same = known.casefold() == word.casefold()
    return known if same else f"{known} (for the unknown {word})"

  def answer(self, question: str, count: int = 10) -> str:
    """One line: neighbors of a word, similarity of two, analogy of three.

    Args:
      count: how many neighbors.
    """
    words = question.split()
    rows = [self.row(word) for word in words]
    if not 1 <= len(rows) <= _MOST:
      raise InputError(
        f"--ask: {question!r} has {len(rows)} words; give one for neighbors, "
        "two for their similarity, three for an analogy"
      )
    names = [self._label(word) for word in words]
    if len(rows) == 1:
      (near,) = evaluate.neighbors(
        self.words, self.array, [self.words[rows[0]]], count
      ).values()
      return f"{names[0]}: {', '.join(near)}"
    if len(rows) == 2:
      one, two = ops.unit_rows(self.array[rows])
      return f"{names[0]}, {names[1]}: {float(one @ two):.3f}"
    solved = ", ".join(self.words[row] for row in self._solve(rows))
    return f"{names[0]} is to {names[1]} as {names[2]} is to {solved}"

  def _solve(self, rows: Sequence[int]) -> list[int]:
    """Rows of the best answers to an analogy."""
    left, best = self.array.copy(), list[int]()
    terms, question = np.array(rows, np.int32), np.arange(3, dtype=np.int32)
    for _ in range(_ANSWERS):
      (row,) = evaluation.solve_analogies(left, terms, question[None])
      if not left[row].any():
        break
      best.append(int(row))
      left[row] = 0
    return best

  def draw(self, questions: Sequence[str], count: int = 10) -> str:
    """A map, as SVG, of the words asked for and their neighbors.

    Args:
      questions: as `answer` takes them.
    """
    asked = [self.words[self.row(w)] for q in questions for w in q.split()]
    near = evaluate.neighbors(self.words, self.array, asked, count)
    shown = list(
      dict.fromkeys([*asked, *(n for x in near.values() for n in x)])
    )
    rows = [self._rows[word] for word in shown]
    return word_map.draw(shown, self.array[rows], asked)


def run(
  folder: pathlib.Path,
  questions: Sequence[str],
  count: int = 10,
  picture: str | None = None,
) -> None:
  """Prints the answers of a finished run.

  Args:
    questions: one to three words each.
    count: neighbors of each word.
    picture: an SVG file to write a map of the words to.
  """
  path = folder / "vectors.npz"
  if not path.exists():
    raise InputError(
      "there are no vectors; run mvlsa with this --workdir first",
      path=path,
    )
  if not questions:
    raise InputError('--ask: give words, as --ask="dog,man king woman"')
  asked = Asked(vectors_lib.read_vectors(path))
  answers = [asked.answer(question, count) for question in questions]
  if picture:
    with files.atomic_write(picture) as out:
      out.write(asked.draw(questions, count))
  for answer in answers:
    print(answer)
