"""Candidates, features and links of documents as padded arrays."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from repr_jax.data.documents import candidate_features
from repr_jax.data.documents.candidate_files import Document
from repr_jax.data.documents.candidates import normalize
from repr_jax.errors import InputError

TOP = 50  # candidates of a mention
# Mentions and distinct candidates that documents are padded to.
SHAPES = ((16, 128), (32, 256), (64, 512), (128, 1024), (128, 2048))


class Evidence(NamedTuple):
  """The candidates of documents; -1 is absence in every array of ids.

  Attributes:
    features: features of each candidate, float32 [n, m, c, f].
    nodes: number of each candidate among the distinct candidates of its
      document, int32 [n, m, c].
    edges: links between those, as (from, to), int32 [n, e, 2].
    groups: mentions with the same text have the same number, int32 [n, m].
    shapes: candidates whose titles differ by the mention's text alone have
      the same number, int32 [n, m, c]; 0 where the title is the mention.
    degrees: out- or in-linked distinct candidates, at least 1, [n, u].
    gold: place of the right candidate, int32 [n, m].
  """

  features: np.ndarray
  nodes: np.ndarray
  edges: np.ndarray
  groups: np.ndarray
  shapes: np.ndarray
  degrees: np.ndarray
  gold: np.ndarray


class EvidenceGroup(NamedTuple):
  """Documents of one shape.

  Attributes:
    mentions: the number of each mention among those of all documents given,
      int64 [n, m]; -1 for padding.
    evidence: their arrays.
  """

  mentions: np.ndarray
  evidence: Evidence


def pack_evidence(
  documents: Sequence[Document],
  features: Sequence[Sequence[np.ndarray]],
  shapes: Sequence[tuple[int, int]] = SHAPES,
  top: int = TOP,
) -> list[EvidenceGroup]:
  """Pads documents to the smallest of a few shapes that holds them.

  Args:
    features: for each document, for each mention, [candidates, f].
    shapes: (mentions, distinct candidates) to pad to, rising. A document with
      more mentions or candidates is cut into independent parts.
    top: c, the most candidates of a mention; the first are kept.

  Returns:
    Groups by shape; mentions without candidates are in none.
  """
  if not shapes or top > shapes[0][1]:
    raise InputError(f"shapes must hold {top} distinct candidates: {shapes}")
  rows: dict[tuple[int, int], list[tuple[np.ndarray, Evidence]]] = {}
  seen = 0
  for document, own in zip(documents, features):
    for part in _parts(document, shapes[-1], top):
      distinct = len(_ids(document, part, top))
      shape = next(s for s in shapes if s[0] >= len(part) and s[1] >= distinct)
      numbers = np.full(shape[0], -1)
      numbers[: len(part)] = seen + np.asarray(part)
      one = _pack_one(document, own, part, shape, top)
      rows.setdefault(shape, []).append((numbers, one))
    seen += len(document.mentions)
  groups = []
  for shape in sorted(rows):
    mentions, arrays = zip(*rows[shape])
    # Powers of two, so that few programs are compiled.
    most = max(16, *(len(one.edges) for one in arrays))
    most = 1 << (most - 1).bit_length()
    padded = [
      one._replace(
        edges=np.pad(
          one.edges, ((0, most - len(one.edges)), (0, 0)), constant_values=-1
        )
      )
      for one in arrays
    ]
    stacked = Evidence(*(np.stack(field) for field in zip(*padded)))
    groups.append(EvidenceGroup(np.stack(mentions), stacked))
  return groups


def _parts(
  document: Document, most: tuple[int, int], top: int
) -> list[list[int]]:
  """Numbers of mentions with candidates, in parts that fit the last shape."""
  parts: list[list[int]] = []
  ids: set[int] = set()
  for number, mention in enumerate(document.mentions):
    own = {x.id for x in mention.candidates[:top]}
    if not own:
      continue
    full = parts and (len(parts[-1]) == most[0] or len(ids | own) > most[1])
    if not parts or full:
      parts.append([])
      ids = set()
    parts[-1].append(number)
    ids |= own
  return parts


def _ids(document: Document, part: list[int], top: int) -> dict[int, int]:
  """Numbers of the distinct candidates by id."""
  numbers: dict[int, int] = {}
  for place in part:
    for candidate in document.mentions[place].candidates[:top]:
      numbers.setdefault(candidate.id, len(numbers))
  return numbers


def _pack_one(
  document: Document,
  features: Sequence[np.ndarray],
  part: list[int],
  shape: tuple[int, int],
  top: int,
) -> Evidence:
  width, distinct = shape
  ids = _ids(document, part, top)
  depth = features[part[0]].shape[1]
  table = np.zeros((width, top, depth), np.float32)
  nodes = np.full((width, top), -1, np.int32)
  shapes = np.full((width, top), -1, np.int32)
  groups = np.full(width, -1, np.int32)
  gold = np.full(width, -1, np.int32)
  edges: set[tuple[int, int]] = set()
  surfaces: dict[str, int] = {}
  kinds = {"*": 0}
  for row, place in enumerate(part):
    mention = document.mentions[place]
    key = normalize(mention.surface)
    groups[row] = surfaces.setdefault(key, len(surfaces))
    for column, candidate in enumerate(mention.candidates[:top]):
      node = ids[candidate.id]
      nodes[row, column] = node
      kind = candidate_features.title_shape(mention.surface, candidate.title)
      shapes[row, column] = kinds.setdefault(kind, len(kinds))
      table[row, column] = features[place][column]
      if candidate.title == mention.entity:
        gold[row] = column
      edges.update(
        (node, ids[x])
        for x in candidate.links
        if x in ids and x != candidate.id
      )
  listed = np.asarray(sorted(edges), np.int32).reshape(-1, 2)
  either = {(min(a, b), max(a, b)) for a, b in edges}
  both = np.asarray(sorted(either), np.int32).reshape(-1)
  degrees = np.maximum(np.bincount(both, minlength=distinct), 1)
  return Evidence(
    table, nodes, listed, groups, shapes, degrees.astype(np.float32), gold
  )
