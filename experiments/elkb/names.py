"""Readable names for entities that are known by their place in WordNet."""

from collections import Counter

import numpy as np

from repr_jax import errors
from repr_jax.data import triples, wordnet


def readable(splits: triples.Splits) -> list[str]:
  """Names of synsets where all entities are WordNet's offsets, as in WN18.

  Synsets of different parts of speech may share an offset. The entity then
  gets the name of the synset for which WordNet confirms most of its facts.

  Args:
    splits: the facts, whose entities may have any names.

  Returns:
    A name for each entity, its own where there is no other.
  """
  names = splits.train.entities
  if not all(len(name) == 8 and name.isdecimal() for name in names):
    return list(names)
  try:
    database = wordnet.load()
  except (errors.InputError, OSError):
    return list(names)
  at: dict[int, list[int]] = {}
  for row, offset in enumerate(database.tables.offset.tolist()):
    at.setdefault(offset, []).append(row)
  rows = [at.get(int(name), []) for name in names]
  votes = _votes(database, splits, rows)
  return [
    database.names[max((votes[i, row], -row, row) for row in some)[2]]
    if some
    else names[i]
    for i, some in enumerate(rows)
  ]


def _votes(
  database: wordnet.WordNet, splits: triples.Splits, rows: list[list[int]]
) -> Counter[tuple[int, int]]:
  """How many facts of an entity WordNet has for a synset, by (entity, row).

  Only entities with several rows are counted.
  """
  facts = np.concatenate([part.array for part in splits[:3]])
  several = np.array([len(some) > 1 for some in rows])
  facts = facts[several[facts[:, [0, 2]]].any(axis=1)]
  votes: Counter[tuple[int, int]] = Counter()
  for relation, name in enumerate(splits.train.relations):
    some = facts[facts[:, 1] == relation]
    if name.removeprefix("_") not in wordnet.WN18_RELATIONS or not len(some):
      continue
    known = set(map(tuple, database.edges(name.removeprefix("_")).tolist()))
    for head, _, tail in some.tolist():
      pairs = [
        (a, b) for a in rows[head] for b in rows[tail] if (a, b) in known
      ]
      votes.update((head, row) for row in {a for a, _ in pairs})
      votes.update((tail, row) for row in {b for _, b in pairs})
  return votes
