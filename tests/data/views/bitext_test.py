"""Bitext files: what is read, and what is refused with its place."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repr_jax import errors
from repr_jax.data.views import bitext


def _files(tmp_path, *texts):
  paths = []
  for i, text in enumerate(texts):
    paths.append(tmp_path / f"f{i}")
    paths[-1].write_text(text)
  return paths


def test_pairs_with_and_without_alignments(tmp_path):
  paths = _files(tmp_path, "The Cat\n\nruns\n", "le chat\n\ncourt vite\n")
  pairs = list(bitext.read_bitext(*paths))
  assert [p.source for p in pairs] == [["the", "cat"], [], ["runs"]]
  assert [p.target for p in pairs] == [["le", "chat"], [], ["court", "vite"]]
  assert [p.line for p in pairs] == [1, 2, 3]
  assert pairs[0].links is None
  links = tmp_path / "links.gz"
  links.write_bytes(gzip.compress(b"0-0 1-1\n\n0-0 0-1\n"))
  pairs = list(bitext.read_bitext(*paths, links, lower=False))
  assert pairs[0].source == ["The", "Cat"]
  np.testing.assert_array_equal(pairs[2].links, [[0, 0], [0, 1]])
  assert pairs[1].links.shape == (0, 2)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=9))
def test_links_round_trip(links):
  text = " ".join(f"{a}-{b}" for a, b in links)
  got = bitext.parse_links(text, (5, 7))
  assert [tuple(link) for link in got.tolist()] == links


@pytest.mark.parametrize("short", [0, 1, 2])
def test_files_of_different_length_name_the_short_one(tmp_path, short):
  texts = ["a\nb\n", "c\nd\n", "0-0\n0-0\n"]
  texts[short] = texts[short][: len(texts[short]) // 2]
  paths = _files(tmp_path, *texts)
  with pytest.raises(errors.InputError, match="ends after 1 lines") as caught:
    list(bitext.read_bitext(*paths))
  assert caught.value.path == str(paths[short])
  assert caught.value.line == 2


@pytest.mark.parametrize(
  "text, message",
  [
    ("1-0", "outside the source sentence"),
    ("0-2", "outside the target sentence"),
    ("0:0", "not an alignment"),
    ("0--1", "not an alignment"),
    ("0-", "not an alignment"),
    ("x-1", "not an alignment"),
  ],
)
def test_bad_alignments_name_file_and_line(tmp_path, text, message):
  paths = _files(tmp_path, "a\nb\n", "c d\ne f\n", f"0-0\n{text}\n")
  with pytest.raises(errors.InputError, match=message) as caught:
    list(bitext.read_bitext(*paths))
  assert (caught.value.path, caught.value.line) == (str(paths[2]), 2)
