"""Detects the form of a file of linked text by its first record."""

from collections.abc import Iterator

from repr_jax.data import testsets
from repr_jax.data.documents import (
  document_sentences,
  linked_documents,
  linked_formats,
  wikipedia,
)
from repr_jax.data.entities import Sentence, read_sentences
from repr_jax.data.io import files, json_files
from repr_jax.errors import InputError

FORMS = ("auto", "sentences", "entities", "wikipedia", "documents")
_DUMP = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
_AIDA, _GANEA = "-DOCSTART-", "\tCANDIDATES\t"


def gensim_dump() -> str:
  """Path of the small Wikipedia dump in gensim's wheel."""
  return str(testsets.bundled(_DUMP))


def form_of(path: str, form: str = "auto") -> str:
  """Which reader a file needs.

  Args:
    form: the form; "auto" detects it by the first record.

  Returns:
    "sentences", "entities", "wikipedia" or "documents".
  """
  if form != "auto":
    return form
  first = _first_line(path)
  if first.startswith("<"):
    return "wikipedia"
  if first.startswith(_AIDA) or _GANEA in first:
    return "documents"
  try:
    record = json_files.parse_json(first)
  except InputError:
    record = None
  if isinstance(record, dict):
    if "sentences" in record:
      return "entities"
    return "documents" if _is_document(record) else "sentences"
  raise InputError(
    "is neither JSON lines nor a Wikipedia dump; --form names its form",
    path=path,
  )


def read_documents(path: str) -> Iterator[linked_documents.LinkedDocument]:
  """Streams linked documents: JSON lines, or a table of `linked_formats`.

  Args:
    path: the file; its first line shows its form.
  """
  first = _first_line(path)
  if first.startswith(_AIDA):
    return linked_formats.read_aida(path)
  if _GANEA in first:
    return linked_formats.read_ganea(path)
  titles = linked_documents.read_titles([path])
  return linked_documents.read_documents(path, titles)


def read_linked(path: str, form: str) -> Iterator[Sentence]:
  """Streams the sentences of a file of running text.

  Args:
    form: "sentences", "wikipedia" or "documents".

  Yields:
    Sentences; of dumps and documents those that mention an entity.
  """
  if form == "documents":
    for document in read_documents(path):
      parts = document_sentences.split(document)
      yield from (sentence for sentence in parts if sentence.mentions)
  elif form == "wikipedia":
    yield from wikipedia.linked_sentences(path)
  else:
    yield from read_sentences(path)


def _first_line(path: str) -> str:
  """The first line that is not blank."""
  return next((x.strip() for x in files.open_text(path) if x.strip()), "")


def _is_document(record: dict) -> bool:
  """Whether a JSON object is a linked document rather than a sentence."""
  mentions = record.get("mentions")
  if "tokens" in record or not isinstance(mentions, list | None):
    return False
  if "unlinked_mentions" in record or ("doc_id" in record) > ("doc" in record):
    return True
  titles = {"wikipedia_title", "wikidata_id", "surface"}
  return any(
    isinstance(x, dict) and "entity" not in x and titles & x.keys()
    for x in mentions or ()
  )
