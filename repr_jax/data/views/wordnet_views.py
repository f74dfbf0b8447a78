"""Views from WordNet: classes of words, their relations, glosses and forms.

All start from the incidence of words and synsets, S [V, n]. A view is S times
a table of the synsets: their lexicographer files, hypernyms, other pointers or
gloss words. Two words are alike in a view if their senses share columns. A
word with no sense of its own, such as `dogs`, has those of its base forms.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from scipy.sparse import csr_array as Csr

from repr_jax.data import wordnet
from repr_jax.data.views import counting, store, vocab
from repr_jax.data.wordnet import tables
from repr_jax.errors import InputError

# Pointers between words, not synsets: their columns are words.
_LEXICAL = ("antonym", "pertainym", "participle")
_UP = ("hypernym", "instance_hypernym")
_TOKEN = re.compile(r"[a-z0-9]+(?:['-][a-z0-9]+)*")


@dataclasses.dataclass(frozen=True)
class Config:
  """Kinds of columns to make of WordNet.

  Attributes:
    levels: hypernym views, one for each number of steps up to this.
    decay: weight of each further step in the view of all hypernyms.
    gloss_offsets: offsets of the word-order views of the glosses; negative
      ones look at following words.
    gloss_columns: number of columns, the most frequent words.
    relations: pointers to make one view of each.
  """

  levels: int = 3
  decay: float = 1.0
  gloss_offsets: tuple[int, ...] = (1, 2, 3, 4, 5, -1, -2, -3, -4, -5)
  gloss_columns: int = 200_000
  relations: tuple[str, ...] = (
    "antonym",
    "hyponym",
    "has_part",
    "part_of",
    "member_meronym",
    "member_holonym",
    "similar_to",
    "also_see",
    "verb_group",
    "entailment",
    "cause",
    "attribute",
    "pertainym",
    "participle",
    "synset_domain_topic_of",
  )

  def __post_init__(self):
    unknown = set(self.relations) - set(tables.SYMBOLS.values())
    if unknown:
      raise InputError(f"WordNet has no relation {', '.join(sorted(unknown))}")
    if self.levels < 0 or not 0 < self.decay <= 1:
      raise InputError(
        f"levels must not be negative and decay in (0, 1]: "
        f"{self.levels}, {self.decay}"
      )


GROUPS = (
  "synset",
  "lexname",
  "frame",
  "hypernym",
  "relation",
  "gloss",
  "derivation",
  "inflection",
)


def senses(wn: wordnet.WordNet, words: Sequence[str]) -> Csr:
  """Which word is in which synset.

  Args:
    wn: the database.
    words: the vocabulary, V words in lower case.

  Returns:
    S, 1 where the word (or else one of its base forms) is a lemma of the
    synset, float32 [V, n].
  """
  rows: list[int] = []
  columns: list[int] = []
  for i, word in enumerate(words):
    synsets = wn.senses(word)
    if not synsets:
      synsets = tuple(
        sense
        for part in tables.PARTS
        for base in wn.morphy(word, part)
        for sense in wn.senses(base, part)
      )
    rows += [i] * len(synsets)
    columns += synsets
  return _indicator(rows, columns, (len(words), len(wn)))


def views(
  wn: wordnet.WordNet,
  words: Sequence[str],
  groups: Iterable[str] = GROUPS,
  options: Config | None = None,
) -> Iterator[store.View]:
  """Makes the views of some groups, in the order of `GROUPS`.

  Args:
    wn: the database.
    words: the vocabulary, in lower case.
    groups: which of `GROUPS` to make.

  Yields:
    The views; empty columns and empty views are left out.
  """
  options = options or Config()
  chosen = set(groups)
  if chosen - set(GROUPS):
    raise InputError(
      f"{', '.join(sorted(chosen - set(GROUPS)))}: WordNet views are "
      f"{', '.join(GROUPS)}"
    )
  incidence = senses(wn, words)
  makers: dict[str, Callable] = {
    "synset": _synsets,
    "lexname": _lexnames,
    "frame": _frames,
    "hypernym": _hypernyms,
    "relation": _relations,
    "gloss": _glosses,
    "derivation": _derivation,
    "inflection": _inflection,
  }
  for group in GROUPS:
    if group not in chosen:
      continue
    for name, matrix, columns in makers[group](wn, words, incidence, options):
      matrix.sum_duplicates()
      kept = np.unique(matrix.indices)
      if kept.size:
        yield store.View(
          f"wordnet_{name}",
          Csr(matrix[:, kept], dtype=np.float32),
          [columns[c] for c in kept.tolist()],
          {"source": "WordNet", "group": group},
        )


def _synsets(wn, words, incidence, options):
  yield "synset", incidence, wn.names


def _lexnames(wn, words, incidence, options):
  names = sorted(set(wn.tables.lexname))
  place = {name: i for i, name in enumerate(names)}
  codes = [place[name] for name in wn.tables.lexname]
  table = _indicator(range(len(wn)), codes, (len(wn), len(names)))
  yield "lexname", incidence @ table, names


def _frames(wn, words, incidence, options):
  """Sentence frames of verbs; some belong to one word of a synset only."""
  index = {word: i for i, word in enumerate(words)}
  count = 1 + max(
    (f for fs in wn.tables.frames.values() for f, _ in fs), default=0
  )
  shared: tuple[list, list] = ([], [])
  own: tuple[list, list] = ([], [])
  for row, frames in wn.tables.frames.items():
    for frame, number in frames:
      if number == 0:
        shared[0].append(row)
        shared[1].append(frame)
        continue
      word = index.get(wn.tables.lemmas[row][number - 1].lower())
      if word is not None:
        own[0].append(word)
        own[1].append(frame)
  matrix = incidence @ _indicator(*shared, (len(wn), count))
  rows, columns = np.array(own[0], np.int64), np.array(own[1], np.int64)
  matrix = matrix + counting.count_pairs(rows, columns, (len(words), count))
  names = [wn.tables.frame_texts.get(i) or f"frame_{i}" for i in range(count)]
  yield "frame", matrix, names


def _hypernyms(wn, words, incidence, options):
  """Synsets exactly 1, 2, ... steps above, and all of them with decay."""
  step = _table(wn, wn.edges(*_UP))
  reached = incidence
  level, total, weight = incidence, incidence.copy(), 1.0
  depth = 0
  while level.nnz:
    level = _ones(level @ step)
    # A synset counts at its nearest distance: one reached before is left out.
    level = level - level.multiply(_ones(reached))
    level.eliminate_zeros()
    depth, weight = depth + 1, weight * options.decay
    reached = _ones(reached + level)
    total = total + weight * level
    if depth <= options.levels and level.nnz:
      yield f"hypernym_{depth}", level, wn.names
  yield "hypernyms", total, wn.names


def _relations(wn, words, incidence, options):
  for relation in options.relations:
    if relation in _LEXICAL:
      matrix, columns = _lexical(wn, words, incidence, (relation,))
    else:
      matrix = incidence @ _table(wn, wn.edges(relation))
      columns = wn.names
    yield relation, matrix, columns


def _glosses(wn, words, incidence, options):
  """Glosses as the words' contexts, and as a text of their own."""
  index = vocab.Vocab(words, np.zeros(len(words)))
  tokens = [_TOKEN.findall(gloss.lower()) for gloss in wn.tables.gloss]
  lengths = np.array([len(gloss) for gloss in tokens])
  ids = index.ids(token for gloss in tokens for token in gloss)
  synset = np.repeat(np.arange(len(wn)), lengths)
  bag = counting.count_pairs(synset, ids, (len(wn), len(words)))
  yield "gloss_bag", incidence @ bag, words
  yield "gloss_of", Csr(bag.T), wn.names
  if options.gloss_offsets:
    starts = np.cumsum(lengths) - lengths
    width = min(len(words), options.gloss_columns)
    with counting.count_offsets(
      [(ids, starts)], len(words), width, options.gloss_offsets
    ) as tally:
      for offset in options.gloss_offsets:
        side = "behind" if offset > 0 else "ahead"
        yield f"gloss_{side}_{abs(offset):02d}", tally.matrix(offset), words


def _derivation(wn, words, incidence, options):
  """A word's derived forms and itself, so that a family shares columns."""
  relations = ("derivationally_related_form", *_LEXICAL[1:])
  matrix, lemmas = _lexical(wn, words, incidence, relations)
  related = np.flatnonzero(np.diff(matrix.indptr))
  place = {lemma: i for i, lemma in enumerate(lemmas)}
  own = [(i, place[words[i]]) for i in related.tolist() if words[i] in place]
  rows, columns = zip(*own) if own else ((), ())
  yield (
    "derivation",
    _ones(matrix + _indicator(rows, columns, matrix.shape)),
    lemmas,
  )


def _inflection(wn, words, incidence, options):
  """Base forms that a word may come from, and by which ending it does."""
  bases: dict[str, int] = {}
  endings: dict[str, int] = {}
  base: tuple[list, list] = ([], [])
  ending: tuple[list, list] = ([], [])
  for i, word in enumerate(words):
    for part in tables.PARTS:
      for lemma in wn.morphy(word, part):
        base[0].append(i)
        base[1].append(bases.setdefault(f"{lemma}.{part}", len(bases)))
        if lemma != word:
          change = f"{part}:{_change(lemma, word)}"
          ending[0].append(i)
          ending[1].append(endings.setdefault(change, len(endings)))
  yield "inflection", _indicator(*base, (len(words), len(bases))), list(bases)
  shape = (len(words), len(endings))
  yield "ending", _indicator(*ending, shape), list(endings)


def _lexical(wn, words, incidence, relations) -> tuple[Csr, list[str]]:
  """Pointers from words to words under some relations, [V, lemmas]."""
  pointers = wn.tables.pointers
  names = list(tables.SYMBOLS.values())
  codes = [names.index(relation) for relation in relations]
  index = {word: i for i, word in enumerate(words)}
  places: dict[str, int] = {}
  rows: list[int] = []
  columns: list[int] = []
  for p in np.flatnonzero(np.isin(pointers.relation, codes)).tolist():
    sources = _lemmas(wn, pointers.source[p], pointers.source_word[p])
    targets = _lemmas(wn, pointers.target[p], pointers.target_word[p])
    for source in sources:
      row = index.get(source)
      if row is not None:
        rows += [row] * len(targets)
        columns += [places.setdefault(t, len(places)) for t in targets]
  return _indicator(rows, columns, (len(words), len(places))), list(places)


def _lemmas(wn, row: int, number: int) -> list[str]:
  """One word of a synset, or all of them for number 0; in lower case."""
  lemmas = wn.tables.lemmas[row]
  return [
    lemma.lower() for lemma in (lemmas[number - 1 :][:1] if number else lemmas)
  ]


def _change(lemma: str, word: str) -> str:
  """How the end of a base form changes, such as `y>ies`."""
  same = 0
  while same < min(len(lemma), len(word)) and lemma[same] == word[same]:
    same += 1
  return f"{lemma[same:]}>{word[same:]}"


def _table(wn, edges: np.ndarray) -> Csr:
  return _indicator(edges[:, 0], edges[:, 1], (len(wn), len(wn)))


def _indicator(rows, columns, shape: tuple[int, int]) -> Csr:
  """1 at each (row, column), however often it is named."""
  rows = np.fromiter(rows, np.int64)
  columns = np.fromiter(columns, np.int64)
  return _ones(Csr(counting.count_pairs(rows, columns, shape)))


def _ones(matrix: Csr) -> Csr:
  """1 wherever the matrix has an entry."""
  ones = np.ones(matrix.nnz, np.float32)
  return Csr((ones, matrix.indices, matrix.indptr), shape=matrix.shape)
