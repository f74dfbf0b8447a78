"""A knowledge base in which candidates of new mentions are looked up.

Entities are JSON lines; only "name" is needed:

    {"name": "Paris, Texas", "aliases": ["Paris TX"], "description": "A town",
     "in_links": 310, "out_links": 80, "links": ["Texas"], "popularity": 7.1}

A mention is looked up among names, aliases and training links in normalized
form, then among the names that contain all its words; an acronym also among
initials. One that is still unknown is looked up by `name_variants`.
"""

import collections
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from repr_jax import errors
from repr_jax.data.documents import linked_documents, name_variants
from repr_jax.data.documents.candidate_features import Links
from repr_jax.data.documents.candidate_files import (
  MAX_LINKS,
  MISFITS,
  Candidate,
  Document,
  Mention,
)
from repr_jax.data.documents.candidates import normalize
from repr_jax.data.io import files, json_files


class Entity(NamedTuple):
  """An entity.

  Attributes:
    name: its title, which is its key.
    aliases: other names.
    description: text about it.
    in_links: pages that link to it.
    out_links: pages that it links to.
    links: names of entities that it links to.
    popularity: a score, 0 where unknown.
  """

  name: str
  aliases: tuple[str, ...] = ()
  description: str = ""
  in_links: int = 0
  out_links: int = 0
  links: tuple[str, ...] = ()
  popularity: float = 0.0


class EntityBase(NamedTuple):
  """Entities with the tables to look them up.

  Attributes:
    entities: by name.
    numbers: number of each entity by name.
    names: names by normalized name, title up to a bracket or comma, or alias.
    words: names by the words of their titles.
    initials: names by the initials of their titles.
    links: counts of training links.
  """

  entities: dict[str, Entity]
  numbers: dict[str, int]
  names: dict[str, list[str]]
  words: dict[str, set[str]]
  initials: dict[str, set[str]]
  links: Links

  @property
  def popularity(self) -> dict[str, float]:
    """Scores by name."""
    return {x.name: x.popularity for x in self.entities.values()}


def build_base(entities: Iterable[Entity], links: Links) -> EntityBase:
  """Makes the tables of a knowledge base.

  Args:
    entities: the entities; the last one of each name counts.
    links: counts of training links; those to other entities are never
      candidates.
  """
  known = {x.name: x for x in entities}
  numbers = {name: row for row, name in enumerate(known)}
  names: dict[str, list[str]] = {}
  words: dict[str, set[str]] = collections.defaultdict(set)
  initials: dict[str, set[str]] = collections.defaultdict(set)
  for entity in known.values():
    bare = entity.name.partition(" (")[0]
    forms = (entity.name, bare, bare.partition(", ")[0], *entity.aliases)
    for form in dict.fromkeys(map(normalize, forms)):
      names.setdefault(form, []).append(entity.name)
    for word in normalize(bare).split():
      words[word].add(entity.name)
    initials[name_variants.initials(bare)].add(entity.name)
  return EntityBase(known, numbers, names, dict(words), dict(initials), links)


def collect_entities(
  documents: Iterable[Document], popularity: Mapping[str, float]
) -> list[Entity]:
  """The candidates of documents as entities, with all their known links.

  Args:
    popularity: scores by title.
  """
  titles: dict[int, Candidate] = {}
  links: dict[int, set[int]] = collections.defaultdict(set)
  for document in documents:
    for mention in document.mentions:
      for candidate in mention.candidates:
        titles[candidate.id] = candidate
        links[candidate.id].update(candidate.links)
  return [
    Entity(
      x.title, (), "", x.in_links, x.out_links,
      tuple(sorted(titles[i].title for i in links[x.id] if i in titles)),
      popularity.get(x.title, 0.0),
    )
    for x in titles.values()
  ]  # fmt: skip


def look_up(base: EntityBase, surface: str, top: int = 30) -> list[Entity]:
  """Entities that a mention may refer to.

  Args:
    top: how many at most.

  Returns:
    Those linked from this mention in training or of this name first, then
    those with these initials, then those whose names contain it; each by
    in-links, ties by name. Other forms of the mention count if there are none.
  """
  key = normalize(surface)
  known = _known(base, key)
  if name_variants.is_acronym(surface):
    letters = key.replace(" ", "")
    for name in base.initials.get(letters, ()):
      known.setdefault(name, (-1, 0))
  for form in [] if known else name_variants.name_forms(surface):
    known = known or _known(base, form)

  def order(name):
    return *known[name], -base.entities[name].in_links, name

  return [base.entities[name] for name in sorted(known, key=order)[:top]]


def _known(base: EntityBase, key: str) -> dict[str, tuple[int, int]]:
  """Names for a normalized mention, with a rank by kind and by links."""
  counts = base.links.mentions.get(key, {})
  linked = {x for x in counts if x in base.entities}
  named = set(base.names.get(key, ()))
  sets = [base.words.get(word, set()) for word in key.split()]
  within = set.intersection(*sets) if sets else set()
  ranks = {}
  for name in linked | named | within:
    kind = (name in linked) + 2 * (name in named)
    ranks[name] = -min(kind, 2), -counts.get(name, 0)
  return ranks


def base_document(
  base: EntityBase,
  name: str,
  text: str,
  spans: Sequence[tuple[int, int, str | None]],
  top: int = 30,
) -> Document:
  """A document whose mentions have candidates of a knowledge base.

  Args:
    name: the document's id.
    spans: (start, end, entity or None) in characters.
    top: candidates of a mention, at most.

  Returns:
    The document. A mention without candidates takes those of the first longer
    mention that contains its words. Spans that are empty or outside the text
    are `InputError`s.
  """
  for start, end, _ in spans:
    linked_documents.check_span(name, text, start, end)
  ordered = sorted(spans, key=lambda x: (x[0], x[1]))
  surfaces = [text[a:b] for a, b, _ in ordered]
  keys = [f" {normalize(x)} " for x in surfaces]
  listed = [look_up(base, x, top) for x in surfaces]
  for place, own in enumerate(listed):
    if not own:
      listed[place] = next(
        (
          listed[other]
          for other, key in enumerate(keys)
          if listed[other] and keys[place] in key
        ),
        [],
      )
  present = {x.name for own in listed for x in own}
  mentions = tuple(
    Mention(a, b, surface, entity, tuple(_candidate(base, x, present)
                                         for x in own))
    for (a, b, entity), surface, own in zip(ordered, surfaces, listed)
  )  # fmt: skip
  return Document(name, text, mentions)


def _candidate(base: EntityBase, entity: Entity, present: set[str]):
  links = tuple(base.numbers[x] for x in entity.links if x in present)
  return Candidate(
    base.numbers[entity.name], entity.name, entity.in_links, entity.out_links,
    links, entity.aliases, entity.description,
  )  # fmt: skip


def read_entities(path: files.Path) -> list[Entity]:
  """Reads entities from JSON lines.

  Args:
    path: the file, plain or compressed.

  Returns:
    The entities. A line without a name, or with a field of another type, is
    an `InputError`.
  """
  entities = []
  for line, record in json_files.read_objects(path, "entities"):
    try:
      entities.append(_entity(record))
    except MISFITS as error:
      raise errors.InputError(
        'expected {"name": text, "aliases": [texts], "description": text}, '
        'and perhaps "in_links", "out_links", "links", "popularity"',
        path=path, line=line,
      ) from error  # fmt: skip
  return entities


def _entity(record: Any) -> Entity:
  values = Entity(
    record["name"].strip(), tuple(record.get("aliases", ())),
    record.get("description", ""), int(record.get("in_links", 0)),
    int(record.get("out_links", 0)), tuple(record.get("links", ())),
    float(record.get("popularity", 0)),
  )  # fmt: skip
  texts = (values.description, *values.aliases, *values.links)
  lists = (record.get("aliases", []), record.get("links", []))
  if (
    not values.name
    or not all(isinstance(x, str) for x in texts)
    or not all(isinstance(x, list) for x in lists)
    or not all(0 <= x <= MAX_LINKS for x in (values.in_links, values.out_links))
    or not math.isfinite(values.popularity)
  ):
    raise ValueError(record)
  return values


def write_entities(path: files.Path, entities: Iterable[Entity]) -> None:
  """Writes what `read_entities` reads.

  Args:
    path: the file; compressed if its name ends in .gz.
  """
  with files.atomic_write(path) as out:
    for entity in entities:
      out.write(json.dumps(entity._asdict(), ensure_ascii=False) + "\n")
