"""Damaged files made out of valid ones, the same for the same seed."""

import bz2
import gzip
import random
import re
from collections.abc import Callable, Sequence

# What a file may hold that nobody thought of, the long ones last.
HOSTILE = (
  *(b"", b" ", b"\t", b"\n", b"\n\n", b"\r", b"\r\n", b"\0", b"\v", b"\x1c"),
  *(b"\xef\xbb\xbf", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"),
  *(b"\xc2\xb2", b"\xd9\xa3", b"\xe2\x80\xa8", b"\xc2\x85", b"\xc4\xb0"),
  *(b"0", b"-1", b"1e999", b"-1e999", b"nan", b"-inf", b"Infinity", b"1_0"),
  *(b"0x10", b"1.5", b"--5", b"+3", b"2147483648", b"9223372036854775808"),
  *(b"null", b"true", b"[]", b"{}", b'""', b"[", b"]", b"{", b"}", b'"'),
  *(b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\u0000"', b"NaN", b"\\", b","),
  *(b"#", b"-", b"_", b":", b"(", b")", b"&", b"==>", b"<", b">", b"&x;"),
  *(b"[[", b"]]", b"{{", b"}}", b"<!--", b"<ref>", b"../../x", b"__class__"),
  *(b"9" * 30, b"9" * 400, b"9" * 5000, b"a" * 3000, b"[" * 1200, b" " * 300),
)
_SHORT = len(HOSTILE) - 6
_NUMBER = re.compile(rb"\d+")
_FIELD = re.compile(rb"[^\s,:\-\"|()\[\]{}]+")

Operation = Callable[[bytes, random.Random], bytes]


def mutated(samples: Sequence[bytes], seed: int, index: int) -> bytes:
  """One damaged file.

  Args:
    samples: valid files.
    seed: of all cases.
    index: of this case.

  Returns:
    A sample with one to three harms done to it; a valid one now and then.
  """
  rng = random.Random((seed << 32) + index)
  data = rng.choice(samples)
  for _ in range(rng.choice((1, 1, 1, 2, 3))):
    if rng.random() < 0.04:
      data = _splice(data, rng.choice(samples), rng)
    else:
      data = rng.choice(_OPERATIONS)(data, rng)
  return rng.choice(_PACKED)(data, rng) if rng.random() < 0.04 else data


def _span(data: bytes, rng: random.Random) -> tuple[int, int]:
  start = rng.randrange(len(data) + 1)
  return start, min(len(data), start + rng.choice((1, 1, 2, 4, 16, 64)))


def _hostile(rng: random.Random) -> bytes:
  # Long pieces are slow to read, so they come more rarely.
  last = len(HOSTILE) if rng.random() < 0.03 else _SHORT
  return HOSTILE[rng.randrange(last)]


def _flip(data: bytes, rng: random.Random) -> bytes:
  if not data:
    return data
  at = rng.randrange(len(data))
  byte = data[at] ^ (1 << rng.randrange(8))
  return data[:at] + bytes([byte]) + data[at + 1 :]


def _any_byte(data: bytes, rng: random.Random) -> bytes:
  at = rng.randrange(len(data) + 1)
  return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _delete(data: bytes, rng: random.Random) -> bytes:
  start, end = _span(data, rng)
  return data[:start] + data[end:]


def _repeat(data: bytes, rng: random.Random) -> bytes:
  start, end = _span(data, rng)
  return data[:end] + data[start:end] * rng.choice((1, 1, 3)) + data[end:]


def _insert(data: bytes, rng: random.Random) -> bytes:
  at = rng.randrange(len(data) + 1)
  return data[:at] + _hostile(rng) + data[at:]


def _truncate(data: bytes, rng: random.Random) -> bytes:
  return data[: rng.randrange(len(data) + 1)]


def _instead(pattern: re.Pattern[bytes]) -> Operation:
  """Puts something hostile in the place of a match."""

  def change(data: bytes, rng: random.Random) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
      return _insert(data, rng)
    chosen = rng.choice(found)
    return data[: chosen.start()] + _hostile(rng) + data[chosen.end() :]

  return change


def _exchange(data: bytes, rng: random.Random) -> bytes:
  """Puts one field in the place of another."""
  found = _FIELD.findall(data)
  if not found:
    return data
  return data.replace(rng.choice(found), rng.choice(found), 1)


def _lines(data: bytes, rng: random.Random) -> bytes:
  """Leaves a line out, gives it twice, or moves it."""
  lines = data.split(b"\n")
  line = lines.pop(rng.randrange(len(lines)))
  for _ in range(rng.randrange(3)):
    lines.insert(rng.randrange(len(lines) + 1), line)
  return b"\n".join(lines)


def _line_ends(data: bytes, rng: random.Random) -> bytes:
  return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\0\n")))


def _blanks(data: bytes, rng: random.Random) -> bytes:
  old, new = rng.sample((b" ", b"\t", b"\n", b","), 2)
  return data.replace(old, new, rng.choice((1, 3, -1)))


def _mark(data: bytes, rng: random.Random) -> bytes:
  return rng.choice((b"\xef\xbb\xbf", b"\0", b"\xff\xfe", b"#", b"")) + data


def _splice(data: bytes, other: bytes, rng: random.Random) -> bytes:
  return _truncate(data, rng) + other[rng.randrange(len(other) + 1) :]


def _gzip(data: bytes, rng: random.Random) -> bytes:
  return gzip.compress(data, 1, mtime=0)


def _gzip_damaged(data: bytes, rng: random.Random) -> bytes:
  return rng.choice((_truncate, _flip, _delete))(_gzip(data, rng), rng)


def _gzip_and_more(data: bytes, rng: random.Random) -> bytes:
  return _gzip(data, rng) + rng.choice((b"\0\0", b"more", b"\x1f\x8b"))


def _bzip2(data: bytes, rng: random.Random) -> bytes:
  return bz2.compress(data, 1)


def _bzip2_damaged(data: bytes, rng: random.Random) -> bytes:
  return rng.choice((_truncate, _flip, _delete))(_bzip2(data, rng), rng)


_PACKED = (_gzip, _gzip_damaged, _gzip_and_more, _bzip2, _bzip2_damaged)
_OPERATIONS: tuple[Operation, ...] = (
  *(_flip, _any_byte, _delete, _repeat, _insert, _insert, _truncate),
  *(_instead(_NUMBER), _instead(_NUMBER), _instead(_FIELD), _exchange),
  *(_lines, _line_ends, _blanks, _mark),
)
