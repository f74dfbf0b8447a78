"""Files that claim or unpack to far more than they are, and their readers.

Run as a program it reads each in turn, in a process that may take little
memory, and prints what came of it, a JSON object on a line.
"""

import bz2
import collections
import gzip
import io
import json
import pathlib
import resource
import sys
import time
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from repr_jax import errors
from repr_jax.data import entities, rules, testsets, triples, vectors
from repr_jax.data.documents import (
  linked_documents,
  linked_formats,
  priors,
  wikipedia,
)
from repr_jax.data.entities import judged
from repr_jax.data.io import array_files, arraystore, files, json_files
from repr_jax.data.views import (
  bitext,
  dependencies,
  store,
  table_sources,
  text,
  vocab,
)

MORE = 512 << 20  # Bytes of memory that a reader may take.
_CHUNK = 16 << 20
_DEEP = b"[" * 100_000
_DIGITS = b'{"id": ' + b"9" * 100_000 + b"}"


def _all(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
  return lambda path: sum(1 for _ in read(path))


_JSON = {
  "sentences": _all(entities.read_sentences),
  "entities": _all(entities.read_entity_file),
  "documents": _all(linked_documents.read_documents),
  "titles": lambda path: linked_documents.read_titles([path]),
  "judged": judged.read_judged_queries,
  "json": json_files.read_json,
}
_JUDGED = (
  b'{"qid": 1, "stratum": "1", "n_entities": 1, "category": "C", "entities": '
  b'[{"name": "Bach"}], "group": 1, "systems": {"N": ["e1"]}, "judgement": '
  b'{"N": 1}}\n'
)
# A line that stands as often as one likes, and its reader: what is no error
# by itself must not fill the memory nor take minutes.
_REPEATED: dict[str, tuple[bytes, Callable[[Any], Any]]] = {
  "similarity": (b"cat\tdog\t7.5\n", testsets.read_similarity),
  "analogies": (b"Paris France Rome Italy\n", testsets.read_analogies),
  "choices": (b"big\tlarge\tsmall\t0\n", testsets.read_choices),
  "trees": (
    b"cats\tN\t0\n",
    _all(lambda path: dependencies.read_conll(path, "word-tag-head")),
  ),
  "judgments": (_JUDGED, judged.read_judged_queries),
  "facts": (b"a\tr\tb\n", triples.read_triples),
  "count": (b"a\n", text.count_words),
  "prior": (b"X\t0\n", priors.read_prior),
  "rows": (b"the\n", lambda path: _matrix(path)),
  "rows-empty": (b"\n", lambda path: _matrix(path)),
  "aida-empty": (b"\n", _all(linked_formats.read_aida)),
  "glove-empty": (b"\n", vectors.read_vectors),
  "bitext-empty": (b"\n", _all(lambda path: bitext.read_bitext(path, path))),
  "sentences-empty": (b"\n", _all(entities.read_sentences)),
}


def _matrix(path: pathlib.Path) -> None:
  """Reads a matrix whose words the file names."""
  known = vocab.Vocab(("the", "cat"), np.array([5, 2]))
  given = [str(path.parent / "matrix.npz"), str(path)]
  source = table_sources.matrix_source(given)
  for view in source.make(known, collections.Counter()):
    list(view.blocks)


_LINES = {
  "line": _all(files.open_text),
  "words": text.count_words,
  "triples": triples.read_triples,
  "rules": rules.read_rules,
  "conll": _all(dependencies.read_conll),
  "vectors": vectors.read_vectors,
}
READERS: dict[str, Callable[[Any], Any]] = {
  **{f"{name}-deep": read for name, read in _JSON.items()},
  **{f"{name}-digits": read for name, read in _JSON.items()},
  **{f"{name}-gz": read for name, read in _LINES.items()},
  **{f"{name}-repeated": read for name, (_, read) in _REPEATED.items()},
  "similarity-bz2": testsets.read_similarity,
  "line-bz2": _LINES["line"],
  "page-gz": _all(wikipedia.read_pages),
  "page-bz2": _all(wikipedia.read_pages),
  "page-plain": _all(wikipedia.read_pages),
  "lines-json-gz": json_files.read_json,
  "long-triple": triples.read_triples,
  "rows-word2vec": lambda path: vectors.read_vectors(path, "word2vec"),
  "columns-word2vec": lambda path: vectors.read_vectors(path, "word2vec"),
  "rows-binary": lambda path: vectors.read_vectors(path, "word2vec-binary"),
  "columns-binary": lambda path: vectors.read_vectors(path, "word2vec-binary"),
  "wide-binary": lambda path: vectors.read_vectors(path, "word2vec-binary"),
  "shape-npz": array_files.read_npz,
  "words-npz": vectors.read_vectors,
  "zeros-npz": array_files.read_npz,
  "shape-npy": array_files.map_array,
  "shape-store": lambda path: arraystore.read(path, "x"),
  "shape-view": store.load,
  "laughs-xml": _all(wikipedia.read_pages),
  "elements-xml": _all(wikipedia.read_pages),
}


def make(folder: pathlib.Path) -> None:
  """Writes one file, or directory, under the name of each reader."""
  for name in _JSON:
    (folder / f"{name}-deep").write_bytes(_DEEP)
    (folder / f"{name}-digits").write_bytes(_DIGITS)
  head = b"<mediawiki><page><title>a</title><text>"
  for packing, pack in (("gz", gzip.compress), ("bz2", bz2.compress)):
    once = pack(b"a" * _CHUNK)
    for kind in _LINES if packing == "gz" else ("line",):
      (folder / f"{kind}-{packing}").write_bytes(once * 200)
    (folder / f"page-{packing}").write_bytes(pack(head) + once * 200)
  (folder / "page-plain").write_bytes(head + b"a" * (80 << 20))
  scipy.sparse.save_npz(
    folder / "matrix.npz", scipy.sparse.csr_array(np.ones((2, 2)))
  )
  for name, (line, _) in _REPEATED.items():
    once = gzip.compress(line * ((1 << 20) // len(line)))
    (folder / f"{name}-repeated").write_bytes(once * 1600)
  line = _REPEATED["similarity"][0]
  once = bz2.compress(line * ((1 << 20) // len(line)))
  (folder / "similarity-bz2").write_bytes(once * 1600)
  lines = gzip.compress(b"\n" * _CHUNK)
  (folder / "lines-json-gz").write_bytes(lines * 200)
  # Nothing but its length is wrong with this one.
  (folder / "long-triple").write_bytes(b"a\tr\t" + b"a" * (100 << 20))
  million = 10**12
  for kind in ("word2vec", "binary"):
    row = b"the 1 2 3\n" if kind == "word2vec" else b"the " + bytes(12)
    (folder / f"rows-{kind}").write_bytes(b"%d 3\n" % million + row)
    (folder / f"columns-{kind}").write_bytes(b"3 %d\n" % million + row)
  (folder / "wide-binary").write_bytes(b"9 9999999\nthe " + bytes(400))
  _make_arrays(folder)
  laughs = "".join(
    f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12)
  )
  (folder / "laughs-xml").write_text(
    f'<!DOCTYPE m [<!ENTITY l0 "lol">{laughs}]><m><page><title>a</title>'
    "<text>&l11;</text></page></m>"
  )
  elements = gzip.compress(b"<a/>" * (1 << 20))
  (folder / "elements-xml").write_bytes(gzip.compress(b"<m>") + elements * 50)


def _make_arrays(folder: pathlib.Path) -> None:
  claimed = {"descr": "<f4", "fortran_order": False, "shape": (10**12, 300)}
  header = io.BytesIO()
  np.lib.format.write_array_header_1_0(header, claimed)
  claim = header.getvalue() + bytes(1200)
  (folder / "shape-npy").write_bytes(claim)
  for name in ("shape-npz", "words-npz"):
    with zipfile.ZipFile(folder / name, "w") as archive:
      archive.writestr("array.npy", claim)
      archive.writestr("words.npy", claim)
  zeros = bytes(8 << 20)
  many = {"descr": "|u1", "fortran_order": False, "shape": (160 << 20,)}
  header = io.BytesIO()
  np.lib.format.write_array_header_1_0(header, many)
  with (
    zipfile.ZipFile(folder / "zeros-npz", "w", 8, compresslevel=1) as archive,
    archive.open("array.npy", "w") as out,
  ):
    out.write(header.getvalue())
    for _ in range(20):
      out.write(zeros)
  for name, field in (("shape-store", "data"), ("shape-view", "dense")):
    (folder / name).mkdir()
    (folder / name / f"{field}.npy").write_bytes(claim)
    heading = {
      "format": 2, "kind": "x" if field == "data" else "a view", "mark": "",
      "arrays": {field: {"dtype": "<f4", "shape": [10**12, 300], "crc32": 1}},
      "texts": {}, "meta": {},
    }  # fmt: skip
    (folder / name / "header.json").write_text(json.dumps(heading))


def _try(name: str, path: pathlib.Path) -> dict[str, Any]:
  before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  start = time.process_time()
  message = place = None
  try:
    READERS[name](path)
    kind = "accepted"
  except BaseException as error:  # What it is, is what is asked for.
    kind, message = type(error).__name__, str(error)
    place = error.path if isinstance(error, errors.InputError) else None
  after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  return {
    "name": name,
    "kind": kind,
    "message": message,
    "path": place,
    "seconds": time.process_time() - start,
    "kilobytes": after - before,
  }


def main(folder: pathlib.Path) -> None:
  """Reads all files under a limit of memory."""
  pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
  limit = pages * resource.getpagesize() + MORE
  resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
  for name in READERS:
    print(json.dumps(_try(name, folder / name)), flush=True)


if __name__ == "__main__":
  main(pathlib.Path(sys.argv[1]))
