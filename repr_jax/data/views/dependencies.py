"""Dependency trees from CoNLL files, and their relations as views.

Relations carry the names of the Stanford dependencies, as in the thesis.
Trees in Universal Dependencies are renamed where the two schemes differ
(`obj` is `dobj`, `acl:relcl` is `rcmod`), and prepositions and conjunctions
are folded into the relation: `sat <-prep- on <-pobj- mat` and
`sat <-obl- mat -case-> on` both give prep_on(sat, mat).
"""

import dataclasses
from collections.abc import Iterator, Sequence

from repr_jax.data.io import files
from repr_jax.errors import InputError

RELATIONS = (
  "nsubj",
  "amod",
  "advmod",
  "rcmod",
  "dobj",
  "prep_of",
  "prep_in",
  "prep_to",
  "prep_on",
  "prep_for",
  "prep_with",
  "prep_from",
  "prep_at",
  "prep_by",
  "prep_as",
  "prep_between",
  "xsubj",
  "agent",
  "conj_and",
  "conj_but",
  "pobj",
)

# Position of form, head and relation among the columns; -1 where absent.
LAYOUTS = {"conllu": (10, 1, 6, 7), "word-tag-head": (3, 0, 2, -1)}

_RENAMED = {
  "obj": "dobj",
  "acl:relcl": "rcmod",
  "relcl": "rcmod",
  "obl:agent": "agent",
}
_NOMINAL = ("nmod", "obl")
_MOST_WORDS = 100_000  # Of a sentence, which is held in memory.


@dataclasses.dataclass(frozen=True)
class Sentence:
  """One dependency tree.

  Attributes:
    words: its words.
    heads: position of each word's governor, counted from 0; -1 for the root.
    relations: the relation of each word to its governor.
    line: line of the first word, counted from 1.
  """

  words: Sequence[str]
  heads: Sequence[int]
  relations: Sequence[str]
  line: int


def read_conll(
  path: files.Path,
  layout: str = "conllu",
  *,
  unlabeled: str = "dep",
  lower: bool = True,
) -> Iterator[Sentence]:
  """Streams the trees of a CoNLL file.

  Args:
    path: the file; columns are separated by tabs, sentences by blank lines.
    layout: "conllu" for ten columns (also CoNLL-X), "word-tag-head" for three
      without relations. Comments, multiword tokens (`1-2`) and empty nodes
      (`1.1`) of CoNLL-U are passed over.
    unlabeled: the relation's name where the layout has none.
    lower: whether to lower-case words and relations.

  Yields:
    The sentences. A missing column, a governor outside the sentence or a
    cycle is an `InputError` with its line.
  """
  if layout not in LAYOUTS:
    raise InputError(f"layout {layout!r} is not one of {', '.join(LAYOUTS)}")
  rows: list[tuple[int, list[str]]] = []
  for line, text in enumerate(files.open_text(path), 1):
    if not text.strip():
      if rows:
        yield _sentence(rows, layout, unlabeled, lower, path)
      rows = []
      continue
    if layout == "conllu" and text.startswith("#"):
      continue
    fields = text.split("\t")
    if len(fields) < LAYOUTS[layout][0]:
      raise InputError(
        f"has {len(fields)} columns, not {LAYOUTS[layout][0]} separated by "
        f"tabs (layout {layout})",
        path=path,
        line=line,
      )
    if layout == "conllu" and not _whole(fields[0]):
      if _skipped(fields[0]):
        continue
      raise InputError(
        f"{fields[0][:40]!r} is not a word number", path=path, line=line
      )
    rows.append((line, fields))
    if len(rows) > _MOST_WORDS:
      raise InputError(
        f"a sentence has more than {_MOST_WORDS} words: a blank line ends one",
        path=path,
        line=line,
      )
  if rows:
    yield _sentence(rows, layout, unlabeled, lower, path)


def arcs(
  sentence: Sentence, collapse: bool = True
) -> Iterator[tuple[int, int, str]]:
  """The relations of a tree, named as in the thesis.

  Args:
    collapse: whether to fold prepositions (prep_X, and agent for `by` in the
      passive) and conjunctions (conj_X) and to add the subjects of open
      complements (xsubj). The link of a noun to its preposition (pobj) is
      kept beside prep_X.

  Yields:
    Positions of the dependent and its governor, and the relation.
  """
  children: dict[int, list[int]] = {}
  for i, head in enumerate(sentence.heads):
    children.setdefault(head, []).append(i)
  for i, head in enumerate(sentence.heads):
    if head < 0:
      continue
    relation = sentence.relations[i]
    plain = _RENAMED.get(relation, relation)
    if not collapse:
      yield i, head, plain
      continue
    yield from _collapsed(sentence, children, i, plain)


def _collapsed(
  sentence: Sentence, children: dict[int, list[int]], i: int, relation: str
) -> Iterator[tuple[int, int, str]]:
  """The arcs that replace one arc: none, itself, or folded ones."""
  head, words = sentence.heads[i], sentence.words
  base = relation.partition(":")[0]
  if relation in ("prep", "cc", "case"):
    return  # the function word is in the name of the folded relation
  if relation == "pobj" and sentence.relations[head] == "prep":
    yield i, head, "pobj"
    top = sentence.heads[head]
    if top >= 0:
      yield i, top, _prep(sentence, children, top, words[head])
    return
  if base in _NOMINAL:
    marks = _among(sentence, children.get(i, ()), ("case",))
    for mark in marks:
      yield i, mark, "pobj"
    if marks:
      name = "_".join(words[mark] for mark in marks)
      folded = _prep(sentence, children, head, name)
      yield i, head, "agent" if relation == "obl:agent" else folded
      return
  if base == "conj":
    # The conjunction hangs on the conjunct (UD) or on the first one (Stanford).
    near = _among(sentence, children.get(i, ()), ("cc",))
    near = near or _among(sentence, children.get(head, ()), ("cc",))
    relation = f"conj_{words[near[0]]}" if near else "conj"
  if base == "xcomp":
    subjects = _among(sentence, children.get(head, ()), ("nsubj",))
    for subject in subjects:
      yield subject, i, "xsubj"
  yield i, head, relation


def _prep(
  sentence: Sentence, children: dict[int, list[int]], top: int, word: str
) -> str:
  """prep_WORD, or agent for `by` under a passive verb."""
  passive = ("nsubjpass", "auxpass", "nsubj:pass", "aux:pass")
  if word == "by" and _among(sentence, children.get(top, ()), passive):
    return "agent"
  return f"prep_{word}"


def _among(
  sentence: Sentence, places: Sequence[int], relations: Sequence[str]
) -> list[int]:
  return [i for i in places if sentence.relations[i] in relations]


def _whole(number: str) -> bool:
  return number.isascii() and number.isdigit() and len(number) < 10


def _skipped(number: str) -> bool:
  """Whether a CoNLL-U number is of a multiword token or an empty node."""
  for mark in "-.":
    left, between, right = number.partition(mark)
    if between and _whole(left) and _whole(right):
      return True
  return False


def _sentence(rows, layout, unlabeled, lower, path) -> Sentence:
  """Checks the lines of one sentence and makes a tree of them."""
  _, form, governor, label = LAYOUTS[layout]
  heads = []
  for place, (line, fields) in enumerate(rows, 1):
    if layout == "conllu" and int(fields[0]) != place:
      raise InputError(
        f"word number {fields[0]} where {place} was expected",
        path=path,
        line=line,
      )
    head = fields[governor].strip()
    if not (_whole(head) and int(head) <= len(rows)):
      raise InputError(
        f"governor {head[:40]!r} is not a word of this sentence (0 for the "
        f"root, 1 to {len(rows)})",
        path=path,
        line=line,
      )
    if not fields[form].strip():
      raise InputError("the word is empty", path=path, line=line)
    heads.append(int(head) - 1)
  _refuse_cycle(heads, [line for line, _ in rows], path)
  words = [fields[form] for _, fields in rows]
  relations = [fields[label] if label >= 0 else unlabeled for _, fields in rows]
  if lower:
    words = [word.lower() for word in words]
    relations = [relation.lower() for relation in relations]
  return Sentence(words, heads, relations, rows[0][0])


def _refuse_cycle(heads: list[int], lines: list[int], path) -> None:
  """Follows governors to the root; each word is passed once."""
  state = [0] * len(heads)  # 0 unseen, 1 on the present path, 2 leads to root
  for start in range(len(heads)):
    trail, i = [], start
    while i >= 0 and state[i] == 0:
      state[i] = 1
      trail.append(i)
      i = heads[i]
    if i >= 0 and state[i] == 1:
      raise InputError(
        f"the governors of word {i + 1} form a cycle",
        path=path,
        line=lines[i],
      )
    for j in trail:
      state[j] = 2
