"""p(entity | mention) from counted links, and its public text format.

A line of `p_e_m` files has a mention, how often it was seen, and entities by
falling count, each as number, count or probability, and title:

    Big Apple<TAB>120<TAB>645042,110,New_York_City<TAB>17867,10,London

The numbers are those of Wikipedia's pages; they are not needed, and 0 is
written where there is none. The file that Ganea and Hofmann made of YAGO has
no counts, and perhaps no total: all entities of a mention then count 1.

    Big Apple<TAB>2<TAB>645042,New_York_City<TAB>17867,London
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from repr_jax import errors
from repr_jax.data.documents import wikitext
from repr_jax.data.io import files

Link = tuple[str, str]

_MOST = 1e18  # Of a count: sums of these are finite.
_FIRST = 100  # Lines read to decide whether a file has counts.


class Prior(NamedTuple):
  """Counts of what each mention was linked to.

  Attributes:
    counts: for each mention, counts by entity, positive.
  """

  counts: dict[str, dict[str, float]]

  def probabilities(
    self,
    mention: str,
    without: Mapping[str, float] | None = None,
    top: int | None = None,
  ) -> list[tuple[str, float]]:
    """Entities that a mention may refer to, the likeliest first.

    Args:
      mention: its text, looked up as it is.
      without: counts by entity to leave out, as those of the document that is
        being linked.
      top: how many to keep at most; p is still over all.

    Returns:
      (entity, p(entity | mention)); entities of the same count by name.
    """
    counts = self.counts.get(mention, {})
    if without:
      reduced = {e: n - without.get(e, 0) for e, n in counts.items()}
      counts = {e: n for e, n in reduced.items() if n > 0}
    total = math.fsum(counts.values())
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(entity, n / total) for entity, n in ordered[:top]]


def count_links(links: Iterable[Link], limit: int = 20_000_000) -> Prior:
  """Counts links.

  Args:
    links: (mention, entity), as many as there are; they are streamed.
    limit: most distinct pairs in memory. Beyond it the rarest pairs are
      dropped until half of the limit is free, so counts are lower bounds.

  Returns:
    The counts.
  """
  counts: dict[str, dict[str, float]] = {}
  pairs, floor = 0, 1
  for mention, entity in links:
    own = counts.setdefault(mention, {})
    pairs += entity not in own
    own[entity] = own.get(entity, 0) + 1
    if pairs > limit:
      floor = 1
      while pairs > limit // 2:
        counts, pairs = _drop(counts, floor)
        floor += 1
  return Prior(counts)


def _drop(
  counts: dict[str, dict[str, float]], most: int
) -> tuple[dict[str, dict[str, float]], int]:
  """Counts above `most`, and the number of their pairs."""
  kept = {}
  for mention, own in counts.items():
    left = {entity: n for entity, n in own.items() if n > most}
    if left:
      kept[mention] = left
  return kept, sum(map(len, kept.values()))


def read_prior(path: files.Path, top: int | None = None) -> Prior:
  """Reads a file in the public `p_e_m` format.

  Args:
    path: the file, plain or compressed.
    top: entities to keep for each mention; None for all.

  Returns:
    The counts. Probabilities are multiplied by the mention's total; a file
    with neither gives 1 for each entity. The majority of the first hundred
    lines decides the format. Counts of a repeated mention are added.
  """
  counts: dict[str, dict[str, float]] = {}
  for line, mention, total, by_entity in _rows(path):
    if len(by_entity) and sum(by_entity.values()) <= 1 + 1e-3 < total:
      by_entity = {entity: n * total for entity, n in by_entity.items()}
    if not mention.strip():
      raise errors.InputError("the mention is empty", path=path, line=line)
    own = counts.setdefault(mention, {})
    kept = sorted(by_entity, key=lambda entity: (-by_entity[entity], entity))[
      :top
    ]
    for entity in kept:
      own[entity] = own.get(entity, 0) + by_entity[entity]
  if not counts:
    raise errors.InputError("has no mentions", path=path)
  return Prior({m: own for m, own in counts.items() if own})


def write_prior(path: files.Path, prior: Prior) -> None:
  """Writes the `p_e_m` format, mentions and ties in the order of letters.

  Args:
    path: the file; compressed if its name ends in .gz or .bz2.
    prior: the counts.
  """
  with files.atomic_write(path) as out:
    for mention in sorted(prior.counts):
      own = prior.counts[mention]
      for text in (mention, *own):
        odd = set("\t\n\r") & set(text) or files.marked(text)
        if not text.strip() or odd:
          raise errors.InputError(
            f"{text!r} cannot be written to a tab-separated file", path=path
          )
      ordered = sorted(own.items(), key=lambda item: (-item[1], item[0]))
      cells = [f"0,{_number(n)},{e.replace(' ', '_')}" for e, n in ordered]
      total = _number(math.fsum(own.values()))
      out.write("\t".join([mention, total, *cells]) + "\n")


def _number(value: float) -> str:
  return str(int(value)) if value == int(value) else repr(float(value))


def _rows(
  path: files.Path,
) -> Iterator[tuple[int, str, float, dict[str, float]]]:
  """Lines as their number, mention, total and values by entity."""
  lines = files.numbered_lines(path)
  first = list(itertools.islice(lines, _FIRST))
  others = [text for _, text in first if not _fits(_counted, text)]
  listed = 2 * sum(_fits(_listed, text) for text in others) > len(first)
  for line, text in itertools.chain(first, lines):
    mention, *cells = text.split("\t")
    try:
      total, counts = _listed(cells) if listed else _counted(cells)
    except (ValueError, IndexError) as error:
      raise errors.InputError(
        "expected mention<TAB>total<TAB>id,"
        f"{'' if listed else 'count,'}title<TAB>...",
        path=path,
        line=line,
      ) from error
    yield line, mention, total, counts


_Row = tuple[float, dict[str, float]]


def _fits(read: Callable[[list[str]], _Row], text: str) -> bool:
  """Whether a line has a form."""
  try:
    read(text.split("\t")[1:])
  except (ValueError, IndexError):
    return False
  return True


def _counted(cells: list[str]) -> _Row:
  """Total and values of a line whose entities have counts."""
  total = _value(cells[0])
  counts: dict[str, float] = {}
  for cell in filter(str.strip, cells[1:]):
    _, value, title = cell.split(",", 2)
    entity, number = _title(title), _value(value)
    if number:
      counts[entity] = counts.get(entity, 0) + number
  return total, counts


def _listed(cells: list[str]) -> _Row:
  """Total and values of a line without counts: 1 for each entity."""
  if "," not in cells[0]:
    _value(cells[0])
    cells = cells[1:]
  shares = {}
  for cell in filter(str.strip, cells):
    number, title = cell.split(",", 1)
    _value(number)
    shares[_title(title)] = 1.0
  return float(len(shares)), shares


def _value(text: str) -> float:
  number = float(text)
  if not 0 <= number <= _MOST:
    raise ValueError(text)
  return number


def _title(text: str) -> str:
  title = wikitext.normal_title(text)
  if not title:
    raise ValueError(text)
  return title
