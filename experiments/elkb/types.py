"""Types of entities, and which of them fit a relation's two places."""

from collections.abc import Callable

import numpy as np

from experiments.elkb import data
from repr_jax import errors
from repr_jax.data.io import files


def read_types(path: str, kb: data.KnowledgeBase) -> np.ndarray:
  """Reads `entity<TAB>class` or `entity<TAB>type<TAB>class` lines.

  Args:
    kb: gives the entities; one that it lacks is an error.

  Returns:
    Whether an entity has a class, bool [E, C].
  """
  place = {name: i for i, name in enumerate(kb.entities)}
  pairs: list[tuple[int, int]] = []
  classes: dict[str, int] = {}
  for line, text in files.numbered_lines(path):
    fields = [field.strip() for field in text.split("\t")]
    if len(fields) not in (2, 3) or not all(fields):
      raise errors.InputError(
        f"expected entity<TAB>class, found {text.strip()[:60]!r}",
        path=path,
        line=line,
      )
    if fields[0] not in place:
      raise errors.InputError(
        f"no entity {fields[0]!r} in the facts", path=path, line=line
      )
    name = classes.setdefault(fields[-1], len(classes))
    pairs.append((place[fields[0]], name))
  if not pairs:
    raise errors.InputError("holds no types", path=path)
  table = np.zeros((len(kb.entities), len(classes)), bool)
  table[tuple(np.array(pairs).T)] = True
  return table


def learned(kb: data.KnowledgeBase) -> np.ndarray:
  """Classes from training facts: places of relations where an entity occurs.

  Args:
    kb: the knowledge base.

  Returns:
    Whether an entity is a head, or a tail, of a relation, bool [E, 2 R].
  """
  head, relation, tail = kb.splits.train.array.T
  table = np.zeros((len(kb.entities), 2 * len(kb.relations)), bool)
  table[head, 2 * relation] = True
  table[tail, 2 * relation + 1] = True
  return table


def allowed(
  kb: data.KnowledgeBase, path: str | None
) -> Callable[[int, str], np.ndarray]:
  """`fitting` by the classes of a file, or by those learned without one."""
  return fitting(kb, read_types(path, kb) if path else learned(kb))


def fitting(
  kb: data.KnowledgeBase, table: np.ndarray
) -> Callable[[int, str], np.ndarray]:
  """Entities with a class seen in a relation's place in training.

  Args:
    kb: the knowledge base.
    table: classes of the entities, bool [E, C]; those without one fit
      anywhere.

  Returns:
    (relation, side) -> bool [E].
  """
  train = kb.splits.train.array
  made: dict[tuple[int, str], np.ndarray] = {}

  def allowed(relation: int, side: str) -> np.ndarray:
    key = relation, side
    if key not in made:
      column = 0 if side == "head" else 2
      ids = train[train[:, 1] == relation, column]
      seen = table[ids].any(axis=0)
      made[key] = (table & seen).any(axis=1) | ~table.any(axis=1)
    return made[key]

  return allowed
