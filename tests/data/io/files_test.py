"""Files: every failure is an InputError with its place, writes are whole."""

import bz2
import gzip
import os
import random
import stat

import hypothesis
import hypothesis.strategies as st
import pytest

from repr_jax import errors
from repr_jax.data.io import files

_TEXT = "first\nzweite Zeile: äöü\n\nlast 漢字\n"


def _write(path, data: bytes, packing: str) -> None:
  pack = {"plain": bytes, "gz": gzip.compress, "bz2": bz2.compress}[packing]
  path.write_bytes(pack(data))


@pytest.mark.parametrize("packing", ["plain", "gz", "bz2"])
def test_reads_lines_whatever_the_name(tmp_path, packing):
  path = tmp_path / "corpus.dat"
  _write(path, _TEXT.encode(), packing)
  assert list(files.open_text(path)) == _TEXT.split("\n")[:-1]


@pytest.mark.parametrize("packing", ["gz", "bz2"])
def test_text_that_packs_well_is_read_and_a_bomb_is_not(tmp_path, packing):
  path = tmp_path / "a"
  rng = random.Random(0)
  # Half a megabyte in each ten is as dense as letters are: some 30 times.
  letters = "".join(rng.choices("etaoin ", k=1 << 19)) + "\n"
  text = letters + "abcdefgh\n" * (1 << 20)
  _write(path, text.encode(), packing)
  assert 25 < len(text) / path.stat().st_size < 200
  assert sum(map(len, files.open_text(path))) == len(text) - text.count("\n")
  # What comes after a bomb does not make it smaller.
  _write(path, b"a\n" * (3 << 20) + rng.randbytes(1 << 20), packing)
  with pytest.raises(errors.InputError, match=r"a: unpacks.*unpack it your"):
    for _ in files.open_text(path):
      pass
  path.write_bytes(b"a\n" * (3 << 20))
  assert sum(1 for _ in files.open_text(path)) == 3 << 20


def test_line_ends_and_byte_order_mark(tmp_path):
  path = tmp_path / "a"
  path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n\xe2\x80\xa8three\r\n")
  assert list(files.open_text(path)) == ["one", "two", "\u2028three"]
  path.write_bytes(b"")
  assert list(files.open_text(path)) == []
  path.write_bytes(b"\n\nx")
  assert list(files.open_text(path)) == ["", "", "x"]


@hypothesis.given(
  st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\n\r\ufeff"))
  ),
  st.integers(1, 40),
)
@hypothesis.settings(
  deadline=None,
  max_examples=50,
  suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
def test_blocks_of_any_size_give_the_same_lines(
  tmp_path, monkeypatch, lines, n
):
  monkeypatch.setattr(files, "_BLOCK", n)
  path = tmp_path / "a"
  path.write_bytes("".join(line + "\n" for line in lines).encode())
  assert list(files.open_text(path)) == lines
  starts = [
    (first, block.split("\n")) for first, block in files.text_blocks(path)
  ]
  assert all(lines[i - 1 : i - 1 + len(b)] == b for i, b in starts)


def test_carriage_return_at_a_block_border(tmp_path, monkeypatch):
  path = tmp_path / "a"
  path.write_bytes(b"ab\r\ncd\r\n")
  for size in range(1, 9):
    monkeypatch.setattr(files, "_BLOCK", size)
    assert list(files.open_text(path)) == ["ab", "cd"]


@pytest.mark.parametrize("packing", ["plain", "gz", "bz2"])
def test_bad_utf8_names_its_line(tmp_path, packing):
  path = tmp_path / "a"
  _write(path, b"good\n" * 300_000 + b"b\xe4d\ngood\n", packing)
  with pytest.raises(errors.InputError, match="not UTF-8") as caught:
    list(files.open_text(path))
  assert caught.value.line == 300_001
  assert caught.value.path == str(path)


@pytest.mark.parametrize("packing", ["gz", "bz2"])
def test_truncated_and_damaged_archives(tmp_path, packing):
  path = tmp_path / "a"
  words = random.Random(0).choices("abcdefgh \n", k=20_000)
  _write(path, "".join(words).encode(), packing)
  whole = path.read_bytes()
  for cut in [5, 12, len(whole) // 2, len(whole) - 3]:
    path.write_bytes(whole[:cut])
    with pytest.raises(errors.InputError):
      list(files.open_text(path))
  broken = bytearray(whole)
  broken[len(whole) // 2] ^= 0xFF
  path.write_bytes(bytes(broken))
  with pytest.raises(errors.InputError):
    list(files.open_text(path))


def test_missing_file_directory_and_nul_in_name(tmp_path):
  with pytest.raises(errors.InputError, match="no such file"):
    list(files.open_text(tmp_path / "nothing"))
  with pytest.raises(errors.InputError, match="directory"):
    list(files.open_text(tmp_path))
  with pytest.raises(errors.InputError):
    list(files.open_text("a\0b"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_permission(tmp_path):
  path = tmp_path / "a"
  path.write_text("x")
  path.chmod(0)
  with pytest.raises(errors.InputError, match="permission"):
    list(files.open_text(path))


def test_line_length_is_bounded(tmp_path):
  path = tmp_path / "a.gz"
  path.write_bytes(gzip.compress(b"ok\n" + b"x" * 5_000_000 + b"\n"))
  with pytest.raises(errors.InputError, match="longer than 1000000") as caught:
    list(files.open_text(path, max_line=1_000_000))
  assert caught.value.line == 2
  path.write_text("ab\nabcdef\nab\n")
  with pytest.raises(errors.InputError):
    list(files.open_text(path, max_line=5))
  assert len(list(files.open_text(path, max_line=6))) == 3


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.txt.bz2"])
def test_atomic_write_round_trip(tmp_path, name):
  path = tmp_path / name
  with files.atomic_write(path) as stream:
    stream.write(_TEXT)
    assert not path.exists()
  assert list(files.open_text(path)) == _TEXT.split("\n")[:-1]
  assert os.listdir(tmp_path) == [name]
  mask = os.umask(0)
  os.umask(mask)
  assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_failed_write_leaves_the_old_file(tmp_path):
  path = tmp_path / "a.txt"
  path.write_text("old")
  with pytest.raises(KeyError), files.atomic_write(path) as stream:
    stream.write("new")
    raise KeyError
  assert path.read_text() == "old"
  assert os.listdir(tmp_path) == ["a.txt"]


def test_write_through_a_link_keeps_the_link(tmp_path):
  (tmp_path / "target").write_text("old")
  (tmp_path / "link").symlink_to("target")
  with files.atomic_write(tmp_path / "link") as stream:
    stream.write("new")
  assert (tmp_path / "link").is_symlink()
  assert (tmp_path / "target").read_text() == "new"


def test_unwritable_places(tmp_path):
  for path in [tmp_path, tmp_path / "no" / "a", tmp_path / "file" / "a"]:
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.InputError), files.atomic_write(path):
      raise AssertionError("the block must not run")
  with pytest.raises(ValueError), files.atomic_write(tmp_path / "b", "a"):
    pass


def test_text_that_utf8_cannot_hold_is_an_input_error(tmp_path):
  with (
    pytest.raises(errors.InputError),
    files.atomic_write(tmp_path / "a") as stream,
  ):
    stream.write("\ud800")
  assert os.listdir(tmp_path) == []
