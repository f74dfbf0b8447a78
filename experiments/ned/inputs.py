"""Files of documents as flags name them: names, parts and forms."""

import itertools
import pathlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from experiments.ned.config import Config
from repr_jax.data.documents import linked_documents, linked_formats
from repr_jax.data.documents.linked_documents import LinkedDocument
from repr_jax.errors import InputError

VALIDATION = "validation"  # what tables call the documents of --validation
_LAYOUT = {
  "train": (
    "entity-fishing/wikipedia.jsonl.gz",
    "entity-fishing/clueweb.jsonl.gz",
    "entity-fishing/aida-train.mentions.jsonl.gz",
  ),
  "validation": ("elevant/aida-conll-dev.jsonl.gz",),
  "tests": (
    "AIDA=elevant/aida-conll-test.jsonl.gz",
    "MSNBC=entity-fishing/msnbc.jsonl.gz",
    "AQUAINT=entity-fishing/aquaint.jsonl.gz",
    "ACE04=entity-fishing/ace.jsonl.gz",
  ),
}
_PARTS = linked_formats.AIDA_PARTS


class Source(NamedTuple):
  """Documents of a file.

  Attributes:
    name: what tables call them.
    path: the file.
    part: the part of AIDA that is meant; None for the whole file.
  """

  name: str
  path: pathlib.Path
  part: str | None = None

  @property
  def is_json(self) -> bool:
    """Whether it holds JSON lines: its name has no suffix of a table."""
    return not {".tsv", ".conll", ".csv"} & set(self.path.suffixes)

  def overlaps(self, other: "Source") -> bool:
    """Whether both name the same file and the same part, or all of it."""
    same = self.path.resolve() == other.path.resolve()
    return same and (None in (self.part, other.part) or self.part == other.part)

  def read(self, titles: Mapping[str, str]) -> Iterator[LinkedDocument]:
    """Streams the documents in the form that the file's name tells.

    Args:
      titles: titles by Wikidata id.

    Yields:
      The documents: .tsv and .conll are AIDA's table, .csv that of Ganea and
      Hofmann, all others JSON lines; .gz and .bz2 may follow.
    """
    if self.is_json:
      documents = linked_documents.read_documents(
        self.path, titles, as_titles=True
      )
    elif ".csv" in self.path.suffixes:
      documents = linked_formats.read_ganea(self.path)
    else:
      documents = linked_formats.read_aida(self.path)
    empty = True
    for document in documents:
      if self.part in (None, linked_formats.aida_part(document.id)):
        yield document
        empty = False
    if empty:
      raise InputError(f"has no document of {self.part}", path=self.path)


class Sources(NamedTuple):
  """Files of a run, in the order of the flags."""

  train: list[Source]
  validation: list[Source]
  tests: list[Source]


def find(config: Config) -> Sources:
  """The files that the configuration names, or those of --data.

  Args:
    config: the configuration of the run, with `data` or `train`.

  Raises:
    InputError: two test sets have one name, or a test file is also a training
      or validation file.
  """
  root = pathlib.Path(config.data or ".")
  if config.data is not None and not root.is_dir():
    raise InputError("--data: there is no such directory", path=root)
  named = Sources(
    *(
      [
        parse(entry, root, flag)
        for entry in getattr(config, flag)
        or (_LAYOUT[flag] if config.data else ())
      ]
      for flag in Sources._fields
    )
  )
  _check_names(named.tests)
  for flag, sources in (("train", named.train), (VALIDATION, named.validation)):
    for one, test in itertools.product(sources, named.tests):
      if one.overlaps(test):
        raise InputError(
          f"--{flag} and --tests both name this file; test documents must "
          "not be trained on. If it is AIDA's table, name its parts: "
          "PATH#train, PATH#testa, PATH#testb",
          path=one.path,
        )
  return named


def parse(entry: str, root: pathlib.Path, flag: str) -> Source:
  """Reads an entry of a flag.

  Args:
    entry: PATH or NAME=PATH, with #train, #testa or #testb for a part. An
      entry that is an existing path is not split at = or #.
    root: folder of relative paths.

  Returns:
    The source. Its default name is the file's, up to the first dot, with the
    part.
  """
  base, mark, part = entry.rpartition("#")
  name, equals, rest = entry.partition("=")
  label = pathlib.Path(entry).name.partition(".")[0]
  if (root / entry).exists():
    return Source(label, root / entry)
  cut = bool(mark) and (root / base).exists()
  if equals and not cut:
    return parse(rest, root, flag)._replace(name=name)
  if cut and part not in _PARTS:
    raise InputError(
      f"--{flag}: there is no part {part!r}; parts are {', '.join(_PARTS)}",
      path=base,
    )
  if mark and part in _PARTS:
    label = f"{pathlib.Path(base).name.partition('.')[0]}#{part}"
    return Source(label, root / base, part)
  return Source(label, root / entry)


def read_train(
  sources: list[Source], titles: Mapping[str, str]
) -> Iterator[LinkedDocument]:
  """Streams documents to be trained on.

  Args:
    sources: the files of --train.
    titles: titles by Wikidata id.

  Yields:
    The documents of all files.

  Raises:
    InputError: a table of AIDA has several parts, such as its test part, and
      the flag names none.
  """
  for source in sources:
    aida = source.part is None and not source.is_json
    seen: set[str] = set()
    for document in source.read(titles):
      seen.add(linked_formats.aida_part(document.id))
      if aida and len(seen) > 1:
        raise InputError(
          f"--train: has documents of AIDA's parts {' and '.join(sorted(seen))}"
          "; name those to train on, as PATH#train",
          path=source.path,
        )
      yield document


def _check_names(tests: list[Source]) -> None:
  seen: dict[str, Source] = {}
  for test in tests:
    other = seen.setdefault(test.name, test)
    if other is not test:
      raise InputError(
        f"--tests: {other.path} and {test.path} are both called "
        f"{test.name!r}; give them different names, as NAME=PATH"
      )
    if test.name in ("", VALIDATION):
      raise InputError(
        f"--tests: a test set cannot be called {test.name!r}; give it another "
        "name, as NAME=PATH",
        path=test.path,
      )
