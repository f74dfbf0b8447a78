"""Facts of a knowledge base as (head, relation, tail) triples.

A file has one triple on each line, separated by tabs (names may then hold
spaces) or by blanks, as `head relation tail` unless `columns` says otherwise.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
import scipy.sparse

from repr_jax import errors
from repr_jax.data.io import files

_ALIASES = {
  "h": "h",
  "head": "h",
  "subject": "h",
  "source": "h",
  "r": "r",
  "relation": "r",
  "predicate": "r",
  "t": "t",
  "tail": "t",
  "object": "t",
  "target": "t",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Triples:
  """Distinct triples over indexed names.

  Attributes:
    array: entity, relation and entity ids, int32 [n, 3].
    entities: the names of the entities, sorted.
    relations: the names of the relations, sorted.
    repeated: how many repeated triples of the file were left out.
    path: the file, or None where they come from none.
    lines: the line of each triple in the file, int [n], or None.
  """

  array: np.ndarray
  entities: list[str]
  relations: list[str]
  repeated: int = 0
  path: files.Path | None = None
  lines: np.ndarray | None = None

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


def from_named(named: list[tuple[str, str, str]]) -> Triples:
  """Indexes triples of names.

  Args:
    named: (head, relation, tail) triples; repeated ones are left out.

  Returns:
    The triples with sorted names.
  """
  return _index([_Raw(None, list(named), None)], "count")[0]


def write_triples(path: files.Path, triples: Triples) -> None:
  """Writes `head<TAB>relation<TAB>tail` lines.

  Args:
    path: the file; compressed if its name ends in .gz or .bz2.
    triples: what to write.
  """
  for name in (*triples.entities, *triples.relations):
    odd = set(name) & set("\t\n\r\0") or files.marked(name)
    if not name or name != name.strip() or odd:
      raise errors.InputError(f"name {name!r} does not fit a line", path=path)
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


def _read(path: files.Path, columns: str) -> _Raw:
  """Reads the names of a file with the line of each triple."""
  names = None if columns == "header" else _columns(columns.split(","))
  width, tabs = 0, False
  named: list[tuple[str, str, str]] = []
  lines: list[int] = []
  for line, text in enumerate(files.open_text(path), 1):
    if not text.strip():
      continue
    if not width:
      tabs = "\t" in text
    fields = text.split("\t") if tabs else text.split()
    if names is None:
      names = _columns(fields, path, line)
      width = len(fields)
      continue
    width = width or len(names)
    if len(fields) != width:
      raise errors.InputError(
        f"expected {width} columns ({','.join(names)}), found {len(fields)}: "
        f"{text[:60]!r}",
        path=path,
        line=line,
      )
    row = dict(zip(names, fields))
    triple = (row["h"].strip(), row["r"].strip(), row["t"].strip())
    if not all(triple):
      raise errors.InputError("a name is empty", path=path, line=line)
    if "\0" in text:
      raise errors.InputError("the line holds a NUL", path=path, line=line)
    named.append(triple)
    lines.append(line)
  if not named:
    raise errors.InputError("holds no triples", path=path)
  return _Raw(path, named, np.array(lines))


def _columns(
  columns: list[str], path: files.Path | None = None, line: int | None = None
) -> list[str]:
  """The names of the columns; the places of h, r and t are known by them."""
  names = [part.strip().lower() for part in columns]
  names = [_ALIASES.get(name, name) for name in names]
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
      Triples(array[kept], names, kinds, repeated, part.path, lines)
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
      f"triple {' '.join(part.named[row])!r} stands already on line "
      f"{part.lines[first]}; {len(repeats)} lines repeat others "
      '(duplicates="count" leaves them out)',
      path=part.path,
      line=int(part.lines[row]),
    )
  return np.setdiff1d(np.arange(len(array)), repeats)
