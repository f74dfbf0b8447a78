"""The named entities of WordNet as a corpus, with gold sets.

WordNet's 7,730 instances (people, places, events) are the entities and its
glosses are the text. A gloss is split at semicolons and examples. Each piece is
a sentence about its instance; its mention has length 0, since a gloss does not
name its instance. Its document is the synset. On request,

- the first sentence starts with the name, which is then the mention;
- a piece that names another instance is also a sentence that mentions that
  one, in the glosses of instances or of all synsets. Names are matched as
  written, with a capital, the longest first. A name is taken in its most
  frequent sense; it is not linked if that sense is no instance.

The gloss alone makes the best data and is the default: for three members of a
gold set BM25 finds the others with a mean average precision of .63; with
names it is .61, with links in the glosses of instances .44 and in all glosses
.41 (3 queries for each of 177 classes, the 30 most frequent features
dropped): a country that is named in the glosses of its painters looks like a
painter. Links give some entities many sentences, and features of all three
kinds, as in a corpus of news.

Nothing else is used: not `instance_hypernym`, which gives the gold sets, nor
other relations, nor further lemmas such as "capital of Cameroon".
"""

import itertools
import re
from collections.abc import Iterator

from repr_jax.data import entities
from repr_jax.data.wordnet import WordNet
from repr_jax.errors import InputError

_QUOTED = re.compile(r'"([^"]*)"')


def wordnet_instances(
  wordnet: WordNet, link: str = "none", with_name: bool = False
) -> Iterator[tuple[entities.EntityInfo, list[entities.Sentence]]]:
  """The instances of WordNet with the sentences of the glosses.

  Args:
    wordnet: the database.
    link: which glosses are searched for names of other instances: "none",
      "instances" or "all". A gloss of a synset that is no instance comes with
      the first instance that it names.
    with_name: whether the first sentence of a gloss starts with the name.

  Yields:
    Each instance, in the order of the database, with sentences; none comes
    twice. With links, the sentences of an instance are all those of the
    stream that mention it.
  """
  if link not in ("none", "instances", "all"):
    raise InputError(f'link must be "none", "instances" or "all", not {link!r}')
  instances = wordnet.instances()
  finder = entities.NameFinder({} if link == "none" else _forms(wordnet))
  elsewhere: dict[str, list[entities.Sentence]] = {}
  if link == "all":
    for row, gloss in enumerate(wordnet.tables.gloss):
      if row in instances or not finder.may_find(gloss):
        continue
      for sentence in _sentences(wordnet, row, (), finder):
        if sentence.mentions:
          first = sentence.mentions[0][2]
          elsewhere.setdefault(first, []).append(sentence)
  for row in sorted(instances):
    info = entities.EntityInfo(wordnet.names[row], display_name(wordnet, row))
    name = entities.tokenize(info.name) if with_name else ()
    own = _sentences(wordnet, row, name, finder, info.id)
    yield info, own + elsewhere.get(info.id, [])


def wordnet_instance_sets(
  wordnet: WordNet, closure: bool = False, min_members: int = 1
) -> dict[str, list[str]]:
  """The gold sets: which instances belong to each class.

  Args:
    wordnet: the database.
    closure: whether an instance also belongs to the hypernyms of its classes,
      so that a poet is among the writers and the persons.
    min_members: classes with fewer instances are left out.

  Returns:
    Sorted ids of the members by the name of the class, as in "poet.n.01".
  """
  above: dict[int, list[int]] = {}
  if closure:
    for row, target in wordnet.edges("hypernym", "instance_hypernym").tolist():
      above.setdefault(row, []).append(target)
  members: dict[int, list[str]] = {}
  for row, classes in wordnet.instances().items():
    reached, new = set(classes), list(classes)
    while new:
      for target in above.get(new.pop(), ()):
        if target not in reached:
          reached.add(target)
          new.append(target)
    for kind in reached:
      members.setdefault(kind, []).append(wordnet.names[row])
  return {
    wordnet.names[kind]: sorted(names)
    for kind, names in sorted(members.items())
    if len(names) >= min_members
  }


def display_name(wordnet: WordNet, row: int) -> str:
  """The name of an instance as people would write it.

  Returns:
    Its first lemma. For a person, the first lemma that puts words before it
    ("Johann Sebastian Bach"), or else after it ("Edward VII").
  """
  lemmas = wordnet.tables.lemmas[row]
  name = lemmas[0]
  if wordnet.tables.lexname[row] == "noun.person":
    before = (x for x in lemmas[1:] if x.endswith(f"_{name}"))
    after = (x for x in lemmas[1:] if x.startswith(f"{name}_"))
    name = next(itertools.chain(before, after), name)
  return name.replace("_", " ")


def split_gloss(gloss: str) -> list[str]:
  """Cuts a gloss into the parts of its definition and its examples.

  Args:
    gloss: as WordNet has it: parts and quoted examples between semicolons.

  Returns:
    The pieces that hold a letter or digit, without the quotes of examples.
  """
  pieces: list[str] = []
  place = 0
  for match in _QUOTED.finditer(gloss):
    # Quotes inside a part of the definition are no example.
    if gloss[: match.start()].rstrip()[-1:] not in (";", ""):
      continue
    pieces += _parts(gloss[place : match.start()])
    pieces.append(match.group(1))
    place = match.end()
  pieces += _parts(gloss[place:])
  trimmed = (piece.strip(" ;") for piece in pieces)
  return [x for x in trimmed if any(c.isalnum() for c in x)]


def _parts(text: str) -> list[str]:
  """Splits at semicolons outside brackets."""
  parts, depth, start = [], 0, 0
  for at, character in enumerate(text):
    if character == "(":
      depth += 1
    elif character == ")":
      depth = max(depth - 1, 0)
    elif character == ";" and depth == 0:
      parts.append(text[start:at])
      start = at + 1
  return [*parts, text[start:]]


def _forms(wordnet: WordNet) -> dict[tuple[str, ...], str]:
  """Written forms that mean an instance first, with the instance's id."""
  instances = wordnet.instances()
  tables = wordnet.tables
  best: dict[str, tuple[int, int]] = {}
  for row, lemmas in enumerate(tables.lemmas):
    if tables.kind[row] != "n":
      continue
    for lemma in lemmas:
      if lemma[0].isupper() and len(lemma) > 1:
        sense = tables.senses["n"][lemma.lower()].index(row)
        best[lemma] = min(best.get(lemma, (sense, row)), (sense, row))
  return {
    entities.tokenize(lemma.replace("_", " ")): wordnet.names[row]
    for lemma, (_, row) in best.items()
    if row in instances
  }


def _sentences(
  wordnet: WordNet,
  row: int,
  name: tuple[str, ...],
  finder: entities.NameFinder,
  about: str | None = None,
) -> list[entities.Sentence]:
  """The sentences of one gloss with the instances that they mention."""
  sentences = []
  for piece in split_gloss(wordnet.tables.gloss[row]):
    tokens = entities.tokenize(piece)
    mentions = finder.find(tokens)
    if name:
      shift = len(name) + 1
      tokens = (*name, ":", *tokens)
      mentions = [(a + shift, b + shift, entity) for a, b, entity in mentions]
    if about is not None:
      mentions.insert(0, (0, len(name), about))
    sentences.append(
      entities.Sentence(wordnet.names[row], tokens, tuple(mentions))
    )
    name = ()
  return sentences
