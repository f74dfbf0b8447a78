"""Sentence-aligned text in two languages, with word alignments or without.

Files hold one tokenized sentence per line. Alignments are in Pharaoh format:
`0-0 1-2` on a line says that word 0 of the source stands for word 0 of the
target, and word 1 for word 2.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from repr_jax.data.io import files
from repr_jax.errors import InputError


@dataclasses.dataclass(frozen=True)
class Pair:
  """One sentence and its translation.

  Attributes:
    source: tokens of the first file's line.
    target: tokens of the second file's line.
    links: (source position, target position), int32 [k, 2]; None where no
      alignments were given.
    line: number of the line, counted from 1.
  """

  source: Sequence[str]
  target: Sequence[str]
  links: np.ndarray | None
  line: int


def read_bitext(
  source: files.Path,
  target: files.Path,
  alignments: files.Path | None = None,
  *,
  lower: bool = True,
) -> Iterator[Pair]:
  """Streams sentence pairs.

  Args:
    source: file of sentences in the first language.
    target: file of their translations, line by line.
    alignments: file of word alignments, line by line; None if there are none.
    lower: whether to lower-case the words.

  Yields:
    The pairs in order, empty ones among them. Files of different length, or
    an alignment that points outside its sentences, are an `InputError`.
  """
  streams = [files.open_text(source), files.open_text(target)]
  paths = [source, target]
  if alignments is not None:
    streams.append(files.open_text(alignments))
    paths.append(alignments)
  rows = itertools.zip_longest(*streams)
  for line, row in enumerate(rows, 1):
    if None in row:
      short = paths[row.index(None)]
      long = paths[next(i for i, text in enumerate(row) if text is not None)]
      raise InputError(
        f"ends after {line - 1} lines, but {long} goes on; "
        "sentence-aligned files must have equally many lines",
        path=short,
        line=line,
      )
    texts = [text.lower() if lower else text for text in row[:2]]
    left, right = texts[0].split(), texts[1].split()
    links = None
    if alignments is not None:
      sizes = (len(left), len(right))
      links = parse_links(row[2], sizes, path=alignments, line=line)
    yield Pair(left, right, links, line)


def parse_links(
  text: str,
  sizes: tuple[int, int],
  *,
  path: files.Path | None = None,
  line: int | None = None,
) -> np.ndarray:
  """Parses one line of Pharaoh alignments.

  Args:
    text: the line, such as `0-0 1-2`.
    sizes: lengths of the source and the target sentence.
    path: where the line stands, for messages.
    line: its number, for messages.

  Returns:
    Pairs of positions, int32 [k, 2].
  """
  links = np.zeros((len(fields := text.split()), 2), np.int32)
  for k, field in enumerate(fields):
    left, dash, right = field.partition("-")
    if not (dash and _whole(left) and _whole(right)):
      raise InputError(
        f"{field[:40]!r} is not an alignment like 0-2", path=path, line=line
      )
    for side, number, size in zip(("source", "target"), (left, right), sizes):
      if int(number) >= size:
        raise InputError(
          f"alignment {field} points outside the {side} sentence, "
          f"which has {size} words (counted from 0)",
          path=path,
          line=line,
        )
    links[k] = int(left), int(right)
  return links


def _whole(text: str) -> bool:
  return text.isascii() and text.isdigit() and len(text) < 10
