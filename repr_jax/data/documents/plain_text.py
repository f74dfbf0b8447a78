"""Plain text as a corpus of entities: documents, sentences, names in them."""

import collections
import os
import pathlib
from collections.abc import Iterable, Iterator

from repr_jax.data import entities
from repr_jax.data.documents import document_sentences, mention_finder
from repr_jax.data.documents.linked_documents import make_document
from repr_jax.data.documents.ner import Tagger
from repr_jax.data.io import files
from repr_jax.errors import InputError

_SUFFIXES = (".txt", ".txt.gz", ".txt.bz2")


def is_text(path: str) -> bool:
  """Whether a path is plain text: a folder, or a file called *.txt."""
  return os.path.isdir(path) or path.endswith(_SUFFIXES)


def text_files(path: str) -> list[str]:
  """The files of a source, which must be there.

  Args:
    path: a file, or a folder with *.txt at any depth.

  Returns:
    Paths, sorted; a file itself.
  """
  if not os.path.isdir(path):
    return [path]
  inside = sorted(map(str, pathlib.Path(path).rglob("*")))
  chosen = [x for x in inside if x.endswith(_SUFFIXES) and not os.path.isdir(x)]
  if not chosen:
    raise InputError("has no file called *.txt", path=path)
  for name in chosen:
    if not os.access(name, os.R_OK):
      raise InputError("cannot be read: mend it or take it out", path=name)
  return chosen


def read_texts(path: str) -> Iterator[tuple[str, str]]:
  """Streams documents.

  Args:
    path: a folder, whose files are a document each; or a file with a document
      on each line.

  Yields:
    The name and the text of each document that is not blank.
  """
  if os.path.isdir(path):
    for name in text_files(path):
      text = "\n".join(files.open_text(name))
      if text.strip():
        yield os.path.relpath(name, path), text
    return
  stem = os.path.basename(path).partition(".")[0]
  for line, text in files.numbered_lines(path):
    yield f"{stem}:{line}", text


def read_gazetteer(path: str) -> list[str]:
  """Names, one on each line.

  Args:
    path: the file; blank lines do not count.

  Returns:
    The names. A repeated name is an `InputError` that names the line.
  """
  lines: dict[str, int] = {}
  for line, text in files.numbered_lines(path):
    name = " ".join(text.split())
    if name in lines:
      raise InputError(
        f"{name!r} stands on line {lines[name]} already", path=path, line=line
      )
    lines[name] = line
  if not lines:
    raise InputError("has no name", path=path)
  return list(lines)


def read_sentences(
  path: str,
  *,
  gazetteer: Iterable[str] = (),
  min_mentions: int = 2,
  tagger: Tagger | None = None,
) -> Iterator[entities.Sentence]:
  """Sentences of plain text with the names that are found in them.

  Args:
    path: as `read_texts` takes it. Its text is read whole.
    gazetteer: names that count wherever they stand.
    min_mentions: names that are found fewer times are left out.
    tagger: finds names in place of `mention_finder`; see `ner`.

  Yields:
    Sentences that mention an entity. An entity is a name, the fullest of its
    document. If no name is found that often, an `InputError` is raised.
  """
  documents = list(read_texts(path))
  if not documents:
    raise InputError("has no text", path=path)
  gazetteer = list(gazetteer)
  if tagger is None:
    cases = mention_finder.count_cases(text for _, text in documents)
    spans = [
      mention_finder.find_mentions(text, cases=cases, gazetteer=gazetteer)
      for _, text in documents
    ]
  else:
    spans = [
      mention_finder.with_full_names(text, tagger(text))
      for _, text in documents
    ]
  counts = collections.Counter(x.name for own in spans for x in own)
  frequent = {name for name, n in counts.items() if n >= min_mentions}
  if not frequent:
    raise InputError(
      f"no name is found {min_mentions} times in its text (documents: "
      f"{len(documents):,}); names are capitalized words, or lines of a "
      "gazetteer",
      path=path,
    )
  for (name, text), own in zip(documents, spans):
    kept = [(x.start, x.end, x.name) for x in own if x.name in frequent]
    for sentence in document_sentences.split(make_document(name, text, kept)):
      if sentence.mentions:
        yield sentence
