"""Views from tables, and tables that are refused."""

import numpy as np
import pytest
import scipy.sparse
from collecting import cell, collect, write

from repr_jax import errors
from repr_jax.data import vectors


def test_counts_matrices_and_vectors(tmp_path):
  rows = "dog\tpet\t2\ndog\tpet\t0.5\ncat\tpet\ncow\tpet\t9\n\n"
  counts = write(tmp_path, "frames.tsv", rows)
  matrix = scipy.sparse.csr_array(np.array([[0, 3.0], [4, 0], [5, 5]]))
  scipy.sparse.save_npz(tmp_path / "m.npz", matrix)
  names = write(tmp_path, "m.rows", "cow\ncat\nthe\n")
  table = vectors.Vectors(["dog", "cow"], np.array([[1, 2.0], [3, 4]]))
  vectors.write_vectors(tmp_path / "v.txt", table)
  found, texts = collect(
    tmp_path,
    counts=[counts],
    matrices=[f"{tmp_path / 'm.npz'}:{names}"],
    vectors=[str(tmp_path / "v.txt")],
  )
  assert list(found) == ["counts_frames", "matrix_m", "vectors_v"]
  assert cell(found["counts_frames"], "dog", "pet") == 2.5
  assert cell(found["counts_frames"], "cat", "pet") == 1
  np.testing.assert_array_equal(
    found["matrix_m"].matrix.toarray(), [[5, 5], [0, 0], [4, 0], [0, 0]]
  )
  np.testing.assert_array_equal(
    found["vectors_v"].matrix, [[0, 0], [1, 2], [0, 0], [0, 0]]
  )
  assert len(texts) == 3 and all(" 1 " in text for text in texts)


@pytest.mark.parametrize(
  "rows, line",
  [
    ("a\tb\t1\nc\n", 2),
    ("a\tb\tx\n", 1),
    ("a\tb\t-1\n", 1),
    ("a\tb\tnan\n", 1),
  ],
)
def test_bad_count_files_name_the_line(tmp_path, rows, line):
  path = write(tmp_path, "c.tsv", rows)
  with pytest.raises(errors.InputError) as caught:
    collect(tmp_path, counts=[path])
  assert (caught.value.path, caught.value.line) == (path, line)


def test_bad_matrices(tmp_path):
  good = scipy.sparse.csr_array(np.ones((2, 2)))
  scipy.sparse.save_npz(tmp_path / "g.npz", good)
  bad = scipy.sparse.csr_array(np.array([[1.0, -2], [1, 1]]))
  scipy.sparse.save_npz(tmp_path / "b.npz", bad)
  (tmp_path / "x.npz").write_bytes(b"no matrix")
  two = write(tmp_path, "two", "the\ndog\n")
  three = write(tmp_path, "three", "the\ndog\ncat\n")
  same = write(tmp_path, "same", "the\nthe\n")
  cases = {
    f"g.npz:{three}": "names 3 rows",
    f"g.npz:{same}": "occurs twice",
    f"b.npz:{two}": "row 0, column 1",
    f"x.npz:{two}": "save_npz",
    "g.npz": "file.npz:rows.txt",
  }
  for entry, message in cases.items():
    with pytest.raises(errors.InputError, match=message):
      collect(tmp_path, matrices=[f"{tmp_path}/{entry}"])
