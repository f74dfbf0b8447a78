"""Readers of evaluation sets for word vectors.

Similarity sets (`word1<TAB>word2<TAB>score`, with the headers of WS-353 and
SimLex-999), analogy questions (four words a line, `: section` headers) and
synonym choices (question, candidates, index of the right one). Words are
lower-cased.
"""

import dataclasses
import importlib.util
import math
import pathlib
from collections.abc import Iterator

import numpy as np

from repr_jax import errors
from repr_jax.data.io import files

_SCORE_COLUMNS = ("simlex999", "human (mean)", "mean", "score")


@dataclasses.dataclass(frozen=True)
class SimilaritySet:
  """Pairs of words with human scores.

  Attributes:
    name: of the set.
    pairs: n pairs of words.
    scores: human similarity, float64 [n].
  """

  name: str
  pairs: list[tuple[str, str]]
  scores: np.ndarray


@dataclasses.dataclass(frozen=True)
class AnalogySet:
  """Questions "a is to b as c is to which d?".

  Attributes:
    name: of the set.
    questions: n tuples (a, b, c, d).
    sections: the section of each question, "" where there is none.
  """

  name: str
  questions: list[tuple[str, str, str, str]]
  sections: list[str]

  def split(self) -> tuple["AnalogySet", "AnalogySet"]:
    """Syntactic questions (sections named gram...) and semantic ones."""
    syntactic = [s.startswith("gram") for s in self.sections]
    parts = []
    for suffix, wanted in (("SYN", True), ("SEM", False)):
      rows = [i for i, flag in enumerate(syntactic) if flag == wanted]
      parts.append(
        AnalogySet(
          f"{self.name}-{suffix}",
          [self.questions[i] for i in rows],
          [self.sections[i] for i in rows],
        )
      )
    return parts[0], parts[1]


@dataclasses.dataclass(frozen=True)
class ChoiceSet:
  """Multiple choice: which candidate is the synonym?

  Attributes:
    name: of the set.
    questions: n words.
    choices: n tuples of candidates.
    answers: index of the right candidate, int32 [n].
  """

  name: str
  questions: list[str]
  choices: list[tuple[str, ...]]
  answers: np.ndarray


def read_similarity(
  path: files.Path, *, name: str | None = None
) -> SimilaritySet:
  """Reads a similarity set.

  Fields are separated by tabs, or by blanks in a line without a tab; a line
  that begins with # is a comment. A first line whose first two fields begin
  with "word" is a header, and names the column of the score; without one
  the third column is the score. Further columns are ignored.

  Args:
    path: the file, plain or compressed.
    name: of the set; the file's name without its suffixes by default.

  Returns:
    The set, in the order of the file.

  Raises:
    InputError: for a line that is not a pair with a finite score.
  """
  pairs: list[tuple[str, str]] = []
  scores: list[float] = []
  column = 2
  for line, text in _lines(path):
    fields = _fields(text)
    if not pairs and _is_header(fields):
      column = _score_column(fields)
      continue
    if len(fields) <= column or not (fields[0] and fields[1]):
      raise errors.InputError(
        f"expected word1<TAB>word2<TAB>score, got {text[:60]!r}",
        path=path,
        line=line,
      )
    scores.append(_number(fields[column], path, line))
    pairs.append((fields[0].lower(), fields[1].lower()))
  _require(pairs, path)
  return SimilaritySet(name or _stem(path), pairs, np.array(scores))


def read_analogies(path: files.Path, *, name: str | None = None) -> AnalogySet:
  """Reads analogy questions.

  Args:
    path: the file, plain or compressed: four words a line, and lines
      `: section` before the questions of a section.
    name: of the set; the file's name without its suffixes by default.

  Returns:
    The questions, in the order of the file.

  Raises:
    InputError: for a line that does not have four words.
  """
  questions: list[tuple[str, str, str, str]] = []
  sections: list[str] = []
  section = ""
  for line, text in _lines(path):
    if text.startswith(":"):
      section = text[1:].strip()
      continue
    words = text.lower().split()
    if len(words) != 4:
      raise errors.InputError(
        f"expected four words, got {len(words)}: {text[:60]!r}",
        path=path,
        line=line,
      )
    questions.append((words[0], words[1], words[2], words[3]))
    sections.append(section)
  _require(questions, path)
  return AnalogySet(name or _stem(path), questions, sections)


def read_choices(path: files.Path, *, name: str | None = None) -> ChoiceSet:
  """Reads synonym choices such as TOEFL's.

  Args:
    path: the file, plain or compressed: the question's word, its candidates
      (two or more) and the index of the right one counted from 0, separated
      by tabs.
    name: of the set; the file's name without its suffixes by default.

  Returns:
    The questions, in the order of the file.

  Raises:
    InputError: for a line of another form or an index out of range.
  """
  questions, choices, answers = [], [], []
  for line, text in _lines(path):
    fields = [field.strip() for field in text.split("\t")]
    candidates = len(fields) - 2
    if candidates < 2 or not all(fields):
      raise errors.InputError(
        "expected word, candidates and the index of the right one, "
        f"separated by tabs, got {text[:60]!r}",
        path=path,
        line=line,
      )
    answer = fields[-1]
    whole = answer.isascii() and answer.isdigit() and len(answer) < 10
    if not whole or int(answer) >= candidates:
      raise errors.InputError(
        f"the index of the right candidate must be 0 to {candidates - 1}, "
        f"not {answer!r}",
        path=path,
        line=line,
      )
    words = [field.lower() for field in fields[:-1]]
    questions.append(words[0])
    choices.append(tuple(words[1:]))
    answers.append(int(answer))
  _require(questions, path)
  return ChoiceSet(
    name or _stem(path), questions, choices, np.array(answers, np.int32)
  )


def bundled(filename: str) -> pathlib.Path:
  """The path of a test file that comes with gensim, which is not imported.

  Args:
    filename: wordsim353.tsv, simlex999.txt or questions-words.txt.

  Raises:
    InputError: if gensim or the file is not installed; says what to do.
  """
  spec = importlib.util.find_spec("gensim")
  for folder in (spec and spec.submodule_search_locations) or ():
    path = pathlib.Path(folder, "test", "test_data", filename)
    if path.is_file():
      return path
  raise errors.InputError(
    f"{filename} comes with the package gensim, which is not here; "
    'pip install "repr_jax[data]", or give the path of a file of your own'
  )


def _lines(path: files.Path) -> Iterator[tuple[int, str]]:
  """Numbered lines that are neither blank nor comments."""
  for line, text in files.numbered_lines(path):
    text = text.strip()
    if not text.startswith("#"):
      yield line, text


def _fields(text: str) -> list[str]:
  if "\t" in text:
    return [field.strip() for field in text.split("\t")]
  return text.split()


def _is_header(fields: list[str]) -> bool:
  return len(fields) > 2 and all(
    field.lower().replace(" ", "") in ("word1", "word2") for field in fields[:2]
  )


def _score_column(fields: list[str]) -> int:
  names = [field.lower() for field in fields]
  for known in _SCORE_COLUMNS:
    if known in names:
      return names.index(known)
  return 2


def _number(field: str, path: files.Path, line: int) -> float:
  try:
    value = float(field)
  except ValueError:
    value = math.nan
  if not math.isfinite(value):
    raise errors.InputError(
      f"the score {field!r} is not a finite number", path=path, line=line
    )
  return value


def _require(rows: list, path: files.Path) -> None:
  if not rows:
    raise errors.InputError("holds no question or pair", path=path)


def _stem(path: files.Path) -> str:
  return pathlib.Path(path).name.split(".")[0]
