"""Words of a text and their vectors: in bounded memory, or from a file."""

import tracemalloc

import numpy as np

from experiments.run import word_vectors as words
from repr_jax.data.documents import linked_documents
from repr_jax.data.io import files
from repr_jax.data.views import vocab


def _text(copies):
  rng = np.random.default_rng(0)
  drawn = (rng.pareto(0.5, (60, 250)) % 300).astype(int)
  lines = [tuple(f"w{i}" for i in row) for row in drawn]
  for number in range(copies):
    for line in lines:
      yield linked_documents.LinkedDocument(str(number), line, ())


def test_memory_of_word_vectors_does_not_grow_with_the_text(
  tmp_path, monkeypatch
):
  for module, name, value in (
    (words, "_IN_DOCUMENTS", 1 << 14), (words, "_IN_SIDES", 1 << 15),
    (words, "_CHUNK", 1 << 12), (words, "_HELD", 1 << 15),
    (files, "_BLOCK", 1 << 14),
  ):  # fmt: skip
    monkeypatch.setattr(module, name, value)
  peaks = []
  for copies in (4, 40):
    path = tmp_path / f"{copies}.txt"
    counts, total = words._write_text(_text(copies), path)
    assert total == copies * 60 * 250
    known = vocab.Vocab.from_counts(counts, 200)
    tracemalloc.start()
    for view in words._views(path, known, total):
      assert view.shape[0] == 200 and view.nnz
    peaks.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
  assert peaks[1] < 1.5 * peaks[0]


def test_rare_words_are_let_go_where_there_are_too_many(tmp_path, monkeypatch):
  monkeypatch.setattr(words, "_DISTINCT", 40)
  documents = [
    linked_documents.LinkedDocument(str(i), ("often", f"w{i}"), ())
    for i in range(100)
  ]
  counts, total = words._write_text(documents, tmp_path / "text")
  assert len(counts) <= 40 and counts["often"] == 100 and total == 200


def test_cased_files_of_vectors_are_looked_up_in_other_cases(tmp_path):
  path = tmp_path / "cased.txt"
  path.write_text(
    "Paris 1 2\nUS 3 4\nus 5 6\nMcDonald 7 8\nNATO 9 1\nNato 2 3\n"
  )
  counts = {"paris": 5, "us": 4, "mcdonald": 3, "nato": 2, "none": 1}
  known, table = words._from_file(str(path), vocab.Vocab.from_counts(counts))
  assert known.words == ("paris", "us", "mcdonald", "nato")
  np.testing.assert_array_equal(table, [[1, 2], [5, 6], [7, 8], [2, 3]])
  np.testing.assert_array_equal(known.counts, [5, 4, 3, 2])
