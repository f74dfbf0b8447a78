"""Duplicates: several ids of one entity, which become one before counting."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from repr_jax.data.entities.corpus import Sentence
from repr_jax.data.io import json_files
from repr_jax.errors import InputError


def read_duplicates(path: str) -> dict[str, str]:
  """Reads groups of ids that mean one entity.

  Args:
    path: JSON, a list of lists of ids, as the explorer saves it; the first id
      of a list is kept.

  Returns:
    The kept id of each other id.

  Raises:
    InputError: another form, or an id in two places.
  """
  groups = json_files.read_json(path)
  if not isinstance(groups, list) or not all(map(_is_group, groups)):
    raise InputError(
      'expected lists of two or more ids, as [["bach", "j_s_bach"]]', path=path
    )
  kept: dict[str, str] = {}
  for first, *others in groups:
    for name in (first, *others):
      if name in kept:
        raise InputError(f"the id {name!r} stands in two places", path=path)
      kept[name] = first
  return {name: first for name, first in kept.items() if name != first}


def merge_duplicates(
  sentences: Iterable[Sentence], kept: Mapping[str, str], path: str
) -> Iterator[Sentence]:
  """Sentences whose mentions of duplicates name the kept entity.

  Args:
    kept: from `read_duplicates`.
    path: the file that they come from, for the error.

  Yields:
    The sentences.

  Raises:
    InputError: after the last sentence, if one of the ids was in none.
  """
  unseen = {*kept, *kept.values()}
  for sentence in sentences:
    unseen.difference_update(x for _, _, x in sentence.mentions)
    mentions = tuple((i, j, kept.get(x, x)) for i, j, x in sentence.mentions)
    yield sentence._replace(mentions=mentions)
  if unseen:
    raise InputError(
      f"the corpus has no entity with the id {min(unseen)!r}", path=path
    )


def _is_group(value: object) -> bool:
  return (
    isinstance(value, Sequence)
    and not isinstance(value, str)
    and len(value) > 1
    and all(isinstance(x, str) and x for x in value)
  )
