"""Views are counted once, and bad input is named."""

import json
import os

import pytest
from collecting import TEXT, cell, collect, tree, write

from repr_jax import errors
from repr_jax.data.views import vocab


def test_second_call_reuses_and_changed_input_recounts(tmp_path):
  path = write(tmp_path, "a", TEXT)
  first, texts = collect(tmp_path, text=[path], offsets=1)
  header = first["text_behind_01"].path / "header.json"
  stamp = header.stat().st_mtime_ns
  again, texts_again = collect(tmp_path, text=[path], offsets=1)
  assert header.stat().st_mtime_ns == stamp
  assert texts_again == texts
  one, two = first["text_behind_01"].matrix, again["text_behind_01"].matrix
  assert (one != two).nnz == 0
  with open(path, "a") as stream:
    stream.write("the runs\n")
  changed, _ = collect(tmp_path, text=[path], offsets=1)
  assert cell(changed["text_behind_01"], "runs", "the") == 1
  other = vocab.Vocab(("dog", "the"), [1, 1])
  moved, _ = collect(tmp_path, other, text=[path], offsets=1)
  assert moved["text_behind_01"].matrix.shape == (2, 2)
  (moved["text_behind_01"].path / "data.npy").write_bytes(b"")
  with pytest.raises(errors.InputError, match="damaged"):
    collect(tmp_path, other, text=[path], offsets=1)


def test_nothing_in_common_is_an_error(tmp_path):
  cases = {
    "text": {"text": [write(tmp_path, "a", "x y z\n")]},
    "counts": {"counts": [write(tmp_path, "c.tsv", "x\ty\t1\n")]},
    "deps": {"dependencies": [write(tmp_path, "d", tree(("x", 0, "root")))]},
  }
  for options in cases.values():
    with pytest.raises(errors.InputError, match="no row in common"):
      collect(tmp_path, **options)
  assert not [n for n in os.listdir(tmp_path / "store") if "json" in n]
  with pytest.raises(errors.InputError, match="no input"):
    collect(tmp_path)
  with pytest.raises(errors.InputError, match="vocabulary is empty"):
    collect(tmp_path, vocab.Vocab((), []), **cases["text"])


def test_other_bad_input(tmp_path):
  path = write(tmp_path, "a", TEXT)
  os.makedirs(tmp_path / "sub")
  twin = write(tmp_path / "sub", "a", TEXT)
  with pytest.raises(errors.InputError, match="both be called counts_a"):
    collect(tmp_path, counts=[path, twin])
  with pytest.raises(errors.InputError, match="no such file"):
    collect(tmp_path, text=[str(tmp_path / "gone")])
  with pytest.raises(errors.InputError, match="source:target"):
    collect(tmp_path, bitext=[path])
  collect(tmp_path, text=[path], offsets=1)
  listing = tmp_path / "store" / "text.json"
  assert json.loads(listing.read_text())["views"] == ["text_behind_01"]
  listing.write_text("{")
  with pytest.raises(errors.InputError, match="damaged"):
    collect(tmp_path, text=[path], offsets=1)
