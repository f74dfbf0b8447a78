"""Facts of a knowledge base as (head, relation, tail) triples.

A file has one triple on each line, separated by tabs (names may then hold
spaces) or by blanks, as `head relation tail` unless `columns` says otherwise. A
file whose name ends in .csv has commas, and names in double quotes may hold
commas. A first line such as `head<TAB>relation<TAB>tail` names the columns.
"""

import csv
import dataclasses
import os
from typing import NamedTuple

import numpy as np
import scipy.sparse

from repr_jax import errors
from repr_jax.data.io import files

_FAULTS = 100  # Reading stops after this many faulty lines.

# Names of columns in a header; the first row whose names are all there counts.
_HEADERS = (
  ("h", "r", "t"),
  ("head", "relation", "tail"),
  ("subject", "predicate", "object"),
  ("source", "relation", "target"),
)


@dataclasses.dataclass(frozen=True, eq=False)
class Triples:
  """Distinct triples over indexed names.

  Attributes:
    array: entity, relation and entity ids, int32 [n, 3].
    entities: the names of the entities, sorted.
    relations: the names of the relations, sorted.
    repeated: how many repeated triples of the file were left out.
    path: the file that was read, or None.
    lines: the line of each triple in the file, int [n], or None.
    unread: columns of the file's header that are no part of a triple.
  """

  array: np.ndarray
  entities: list[str]
  relations: list[str]
  repeated: int = 0
  path: files.Path | None = None
  lines: np.ndarray | None = None
  unread: tuple[str, ...] = ()

  def __post_init__(self):
    array = np.asarray(self.array, np.int32).reshape(-1, 3)
    object.__setattr__(self, "array", array)
    bounds = (len(self.entities), len(self.relations), len(self.entities))
    if len(array) and (array.min() < 0 or (array.max(axis=0) >= bounds).any()):
      raise errors.InputError("a triple has an id outside its names")

  def __len__(self) -> int:
    return len(self.array)

  def named(self) -> list[tuple[str, str, str]]:
    """The triples as names (head, relation, tail)."""
    names, relations = self.entities, self.relations
    return [
      (names[h], relations[r], names[t]) for h, r, t in self.array.tolist()
    ]


class Splits(NamedTuple):
  """Splits of one knowledge base that share their entity and relation ids.

  Attributes:
    train: the training triples.
    valid: the validation triples.
    test: the test triples.
    unseen_entities: ids of entities outside `train`, int32 [u].
    unseen_relations: ids of relations outside `train`, int32 [v].
  """

  train: Triples
  valid: Triples
  test: Triples
  unseen_entities: np.ndarray
  unseen_relations: np.ndarray


def read_triples(
  path: files.Path, columns: str = "h,r,t", duplicates: str = "error"
) -> Triples:
  """Reads one file of triples.

  Args:
    path: the file, plain or compressed.
    columns: the order of the columns, such as "h,t,r"; columns with other
      names are passed over. "header": the first line names them (h, r, t or
      head, relation, tail or subject, predicate, object).
    duplicates: "error" to refuse a repeated triple, "count" to leave it out.

  Returns:
    The triples in the order of the file.
  """
  return _index([_read(path, columns)], duplicates)[0]


def read_splits(
  train: files.Path,
  valid: files.Path,
  test: files.Path,
  columns: str = "h,r,t",
  duplicates: str = "error",
) -> Splits:
  """Reads three splits into one index.

  Args:
    train: the file of training triples.
    valid: the file of validation triples.
    test: the file of test triples.
    columns: as for `read_triples`, for all three.
    duplicates: as for `read_triples`, within each file.

  Returns:
    The splits, with the ids of what the training split does not contain.
  """
  raw = [_read(path, columns) for path in (train, valid, test)]
  parts = _index(raw, duplicates)
  seen = parts[0].array
  entities = np.arange(len(parts[0].entities), dtype=np.int32)
  relations = np.arange(len(parts[0].relations), dtype=np.int32)
  return Splits(
    parts[0],
    parts[1],
    parts[2],
    np.setdiff1d(entities, seen[:, [0, 2]]),
    np.setdiff1d(relations, seen[:, 1]),
  )


def split(
  triples: Triples, shares: tuple[float, float, float], seed: int = 0
) -> Splits:
  """Splits facts at random so that no name is outside training.

  Args:
    shares: of training, validation and test; their sum is 1.

  Returns:
    The splits. Where too few facts can be held out, validation and test have
    fewer, in their proportion.
  """
  if min(shares) <= 0 or abs(sum(shares) - 1) > 1e-6:
    raise errors.InputError(
      f"shares of a split are above 0 and add up to 1, not {shares}"
    )
  array = np.random.default_rng(seed).permutation(triples.array)
  wanted = [max(1, round(share * len(array))) for share in shares[1:]]
  shuffled = dataclasses.replace(triples, array=array, lines=None)
  out = hold_out(shuffled, sum(wanted))
  if len(out) < 2:
    raise errors.InputError(
      f"no 2 of {len(array)} facts can be held out: their names would be "
      "outside training"
    )
  cut = max(1, min(len(out) - 1, len(out) * wanted[0] // sum(wanted)))
  rest = np.setdiff1d(np.arange(len(array)), out)
  parts = [
    dataclasses.replace(triples, array=array[rows], lines=None)
    for rows in (rest, out[:cut], out[cut:])
  ]
  none = np.zeros(0, np.int32)
  return Splits(parts[0], parts[1], parts[2], none, none)


def hold_out(triples: Triples, count: int) -> np.ndarray:
  """Facts whose entities and relation all have other facts left.

  Args:
    triples: the facts, in the order in which they are tried.
    count: how many at most.

  Returns:
    Their rows, int [m].
  """
  array = triples.array
  left = np.bincount(array[:, [0, 2]].ravel(), minlength=len(triples.entities))
  kinds = np.bincount(array[:, 1], minlength=len(triples.relations))
  out: list[int] = []
  for i, (h, r, t) in enumerate(array.tolist()):
    if len(out) == count:
      break
    if left[h] > 1 and left[t] > 1 and kinds[r] > 1 and h != t:
      left[h] -= 1
      left[t] -= 1
      kinds[r] -= 1
      out.append(i)
  return np.array(out, int)


def from_named(named: list[tuple[str, str, str]]) -> Triples:
  """Indexes triples of names.

  Args:
    named: (head, relation, tail) triples; repeated ones are left out.

  Returns:
    The triples with sorted names.
  """
  for i, triple in enumerate(named):
    names = [] if isinstance(triple, str) else list(triple)
    if len(names) != 3 or not all(isinstance(x, str) for x in names):
      raise errors.InputError(
        f"triple {i} is {triple!r}; expected three names: head, relation, tail"
      )
  plain = [(str(h), str(r), str(t)) for h, r, t in named]
  return _index([_Raw(None, plain, None)], "count")[0]


def write_triples(path: files.Path, triples: Triples) -> None:
  """Writes `head<TAB>relation<TAB>tail` lines.

  Args:
    path: the file; compressed if its name ends in .gz or .bz2.
    triples: what to write.
  """
  for name in (*triples.entities, *triples.relations):
    odd = set(name) & set("\t\n\r\0") or files.marked(name)
    if not name or name != name.strip() or odd:
      raise errors.InputError(
        f"name {name!r} is empty or has characters that a line cannot hold",
        path=path,
      )
  with files.atomic_write(path) as stream:
    for row in triples.named():
      stream.write("\t".join(row) + "\n")


def transitive_closure(edges: np.ndarray, n: int) -> np.ndarray:
  """All pairs of which the second can be reached from the first.

  Args:
    edges: (from, to) pairs, int [m, 2].
    n: the number of vertices.

  Returns:
    The distinct pairs, int32 [p, 2], sorted. Memory grows with p, not n^2.
  """
  edges = np.asarray(edges).reshape(-1, 2)
  ones = np.ones(len(edges), np.int32)
  step = scipy.sparse.csr_array((ones, (edges[:, 0], edges[:, 1])), (n, n))
  step.data[:] = 1
  reach = new = step
  while new.nnz:
    new = new @ step
    new.data[:] = 1
    new = new - new.multiply(reach)  # Only pairs not reached before.
    new.eliminate_zeros()
    reach = reach + new
  reach = reach.tocsr()
  reach.sort_indices()
  first = np.repeat(np.arange(n), np.diff(reach.indptr))
  return np.stack([first, reach.indices], axis=1).astype(np.int32)


class _Raw(NamedTuple):
  path: files.Path | None
  named: list[tuple[str, str, str]]
  lines: np.ndarray | None
  unread: tuple[str, ...] = ()


def _read(path: files.Path, columns: str) -> _Raw:
  """Reads the names of a file with the line of each triple."""
  names = None if columns == "header" else _columns(columns.split(","))
  width, tabs, commas = 0, False, _has_commas(path)
  named: list[tuple[str, str, str]] = []
  lines: list[int] = []
  faults: list[tuple[int, str]] = []
  for line, text in files.numbered_lines(path):
    first = not width
    if first:
      tabs = "\t" in text and not commas
    fields = _fields(text, tabs, commas)
    if not isinstance(fields, str) and (
      names is None or (first and not named and _is_header(fields))
    ):
      names = _columns(fields, path, line)
      width = len(fields)
      continue
    width = width or len(names or "hrt")
    read = _triple(fields, names, width, text, _hint(text, tabs, commas))
    if isinstance(read, str):
      faults.append((line, read))
      if len(faults) == _FAULTS:
        break
      continue
    named.append(read)
    lines.append(line)
  if faults:
    _refuse(path, faults)
  if not named:
    raise errors.InputError("holds no triples", path=path)
  unread = tuple(name for name in names or () if name not in tuple("hrt"))
  return _Raw(path, named, np.array(lines), unread)


def _triple(fields, names, width, text, hint) -> tuple[str, str, str] | str:
  """The names of a line, or what is wrong with it."""
  if isinstance(fields, str):
    return fields
  if len(fields) != width:
    return (
      f"expected {width} columns ({','.join(names)}), found {len(fields)}: "
      f"{text[:60]!r}{hint}"
    )
  row = dict(zip(names, fields))
  triple = (row["h"].strip(), row["r"].strip(), row["t"].strip())
  if not all(triple):
    return "a name is empty"
  return "the line holds a NUL" if "\0" in text else triple


def _refuse(path, faults):
  """Raises the first fault of a file, with the lines of the others."""
  (line, message), *others = faults
  if others:
    more = ", ".join(str(other) for other, _ in others[:5])
    rest = ", ..." * (len(others) > 5)
    message += (
      f" ({'at least ' * (len(faults) == _FAULTS)}{len(others)} more faulty "
      f"line{'s' * (len(others) > 1)}: {more}{rest})"
    )
  raise errors.InputError(message, path=path, line=line)


def _has_commas(path: files.Path) -> bool:
  name = os.fspath(path).lower()
  for packed in (".gz", ".bz2"):
    name = name.removesuffix(packed)
  return name.endswith(".csv")


def _fields(text, tabs, commas) -> list[str] | str:
  """The fields of a line, or what is wrong with it."""
  if not commas:
    return text.split("\t") if tabs else text.split()
  try:
    (row,) = csv.reader([text], strict=True, skipinitialspace=True)
  except csv.Error as error:
    return f"{error}: {text[:60]!r}"
  return row


def _is_header(fields: list[str]) -> bool:
  # A triple of entities that are called h, r and t is no header.
  plain = all(len(field.strip()) > 1 for field in fields)
  return plain and all(_named(fields).count(name) == 1 for name in "hrt")


def _named(columns: list[str]) -> list[str]:
  """Columns with the names h, r and t where a header has them."""
  names = [part.strip().lower() for part in columns]
  for header in _HEADERS:
    if set(header) <= set(names):
      known = dict(zip(header, "hrt", strict=True))
      return [known.get(name, name) for name in names]
  return names


def _hint(text: str, tabs: bool, commas: bool) -> str:
  if not tabs and not commas and text.count(",") >= 2:
    return "; tabs expected, commas found: call the file NAME.csv"
  if commas and "," not in text:
    for mark, name in (("\t", "tabs"), (";", "semicolons")):
      if mark in text:
        return f"; commas expected in a .csv file, {name} found"
  return ""


def _columns(
  columns: list[str], path: files.Path | None = None, line: int | None = None
) -> list[str]:
  """The names of the columns; each of h, r and t must occur once."""
  names = _named(columns)
  if any(names.count(name) != 1 for name in "hrt"):
    raise errors.InputError(
      f"columns {','.join(columns)[:80]!r} must name h, r and t (or head, "
      "relation and tail) once each",
      path=path,
      line=line,
    )
  return names


def _index(parts: list[_Raw], duplicates: str) -> list[Triples]:
  """Gives sorted names their ids, one index for all parts."""
  if duplicates not in ("error", "count"):
    raise errors.InputError(
      f'duplicates must be "error" or "count", not {duplicates!r}'
    )
  entities: set[str] = set()
  relations: set[str] = set()
  for part in parts:
    for h, r, t in part.named:
      entities.add(h)
      entities.add(t)
      relations.add(r)
  names, kinds = sorted(entities), sorted(relations)
  entity = {name: i for i, name in enumerate(names)}
  relation = {name: i for i, name in enumerate(kinds)}
  splits = []
  for part in parts:
    ids = [(entity[h], relation[r], entity[t]) for h, r, t in part.named]
    array = np.array(ids, dtype=np.int32).reshape(-1, 3)
    kept = _first_places(array, part, duplicates)
    lines = None if part.lines is None else part.lines[kept]
    repeated = len(array) - len(kept)
    splits.append(
      Triples(
        array[kept], names, kinds, repeated, part.path, lines, part.unread
      )
    )
  return splits


def _first_places(array: np.ndarray, part: _Raw, duplicates: str) -> np.ndarray:
  """The rows [k] at which each distinct triple stands first, in order."""
  order = np.lexsort(array.T)  # Stable: equal triples keep the file's order.
  repeats = (array[order[1:]] == array[order[:-1]]).all(axis=1)
  repeats = order[1:][repeats]
  if duplicates == "error" and len(repeats) and part.lines is not None:
    row = int(repeats.min())
    first = int(np.argmax((array == array[row]).all(axis=1)))
    raise errors.InputError(
      f"triple {' '.join(part.named[row])!r} is already on line "
      f"{part.lines[first]}; {len(repeats)} lines repeat others "
      "(duplicates=count leaves them out)",
      path=part.path,
      line=int(part.lines[row]),
    )
  return np.setdiff1d(np.arange(len(array)), repeats)
