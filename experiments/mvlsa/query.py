"""Questions to the vectors of a finished run, and a map of words."""

import difflib
import html
import pathlib
from collections.abc import Sequence

import numpy as np

from experiments.mvlsa import evaluate
from repr_jax import evaluation, ops
from repr_jax.data import vectors as vectors_lib
from repr_jax.data.io import files
from repr_jax.errors import InputError

_SIDE, _EDGE = 900, 60  # of the map, in pixels
_MOST = 3  # words of a question


class Asked:
  """The vectors of a run, asked by words in any case."""

  def __init__(self, learned: vectors_lib.Vectors):
    """Takes words and vectors.

    Args:
      learned: the vectors of a run.
    """
    self.words = list(learned.words)
    self.array = np.asarray(learned.array, np.float32)
    self._rows = {word: row for row, word in enumerate(self.words)}
    self._folded: dict[str, int] = {}
    for row, word in enumerate(self.words):
      self._folded.setdefault(word.casefold(), row)

  def row(self, word: str) -> int:
    """The row of a word, in another case if need be.

    Raises:
      InputError: for an unknown word; it names the nearest ones.
    """
    row = self._rows.get(word, self._folded.get(word.casefold(), -1))
    if row < 0 or not self.array[row].any():
      near = difflib.get_close_matches(
        word.casefold(), list(self._folded), n=3, cutoff=0.6
      )
      known = [self.words[self._folded[name]] for name in near]
      help_text = f"; the nearest are {', '.join(known)}" if known else ""
      raise InputError(f"--ask: no vector of {word!r}{help_text}")
    return row

  def answer(self, question: str, count: int = 10) -> str:
    """One line: neighbors of a word, likeness of two, analogy of three.

    Args:
      question: one to three words.
      count: how many neighbors.
    """
    rows = [self.row(word) for word in question.split()]
    if not 1 <= len(rows) <= _MOST:
      raise InputError(
        f"--ask: {question!r} has {len(rows)} words; give one for neighbors, "
        "two for their similarity, three for an analogy"
      )
    names = [self.words[row] for row in rows]
    if len(rows) == 1:
      (near,) = evaluate.neighbors(
        self.words, self.array, names, count
      ).values()
      return f"{names[0]}: {', '.join(near)}"
    if len(rows) == 2:
      one, two = ops.unit_rows(self.array[rows])
      return f"{names[0]}, {names[1]}: {float(one @ two):.3f}"
    terms = np.array(rows, np.int32)
    solved = evaluation.solve_analogies(
      self.array, terms, np.array([[0, 1, 2]], np.int32)
    )
    answer = self.words[int(solved[0])]
    return f"{names[0]} is to {names[1]} as {names[2]} is to {answer}"

  def draw(self, questions: Sequence[str], count: int = 10) -> str:
    """A map, as SVG, of the words asked for and their neighbors.

    Places are the first two principal components of their unit vectors.

    Args:
      questions: as `answer` takes them.
      count: neighbors of each word.
    """
    asked = [self.words[self.row(w)] for q in questions for w in q.split()]
    near = evaluate.neighbors(self.words, self.array, asked, count)
    shown = list(
      dict.fromkeys([*asked, *(n for x in near.values() for n in x)])
    )
    unit = ops.unit_rows(self.array[[self._rows[word] for word in shown]])
    centered = unit - unit.mean(axis=0)
    u, s, _ = np.linalg.svd(centered, full_matrices=False)
    flat = np.zeros((len(shown), 2))
    flat[:, : min(2, len(s))] = (u * s)[:, :2]
    low, high = flat.min(axis=0), flat.max(axis=0)
    span = np.where(high > low, high - low, 1)
    places = _EDGE + (flat - low) / span * (_SIDE - 2 * _EDGE)
    marks = [
      f'<text x="{x:.1f}" y="{_SIDE - y:.1f}"'
      f"{' font-weight=' + chr(34) + 'bold' + chr(34) if w in asked else ''}>"
      f"{html.escape(w)}</text>"
      for w, (x, y) in zip(shown, places)
    ]
    return (
      f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIDE} {_SIDE}" '
      'font-family="sans-serif" font-size="13" text-anchor="middle">\n'
      f'<rect width="{_SIDE}" height="{_SIDE}" fill="white"/>\n'
      + "\n".join(marks)
      + "\n</svg>\n"
    )


def run(
  folder: pathlib.Path, questions: Sequence[str], picture: str | None = None
) -> None:
  """Prints the answers of a finished run.

  Args:
    folder: its work directory.
    questions: one to three words each.
    picture: an SVG file to write a map of the words to.
  """
  path = folder / "vectors.npz"
  if not path.exists():
    raise InputError(
      "no vectors; --study=query asks a finished run, named by --workdir",
      path=path,
    )
  if not questions:
    raise InputError('--ask: give words, as --ask="dog,man king woman"')
  asked = Asked(vectors_lib.read_vectors(path))
  answers = [asked.answer(question) for question in questions]
  if picture:
    with files.atomic_write(picture) as out:
      out.write(asked.draw(questions))
  for answer in answers:
    print(answer)
