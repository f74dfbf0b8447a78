"""Word vectors in the formats of the field.

Layouts: `word2vec` (text with a header line), `glove` (text without one),
`word2vec-binary`, and `npz` (arrays `words` and `array`). Written float32
vectors are read back bit for bit. gensim's KeyedVectors reads them too.
"""

import collections
import dataclasses
import io
import warnings
from collections.abc import Iterable, Sequence

import numpy as np
import scipy.io

from repr_jax import errors
from repr_jax.data.io import array_files, files

LAYOUTS = ("word2vec", "word2vec-binary", "glove", "npz")

_FLOAT_BYTES = b"0123456789+-.eEnaifNAIF "
_ODD_BLANKS = ("  ", "\t", "\v", "\f", "\r")
_BLOCK = 1 << 20
_MAX_DIMENSION = 10_000_000


@dataclasses.dataclass(frozen=True, eq=False)
class Vectors:
  """One vector for each word.

  Attributes:
    words: distinct words.
    array: their vectors, float32 [n, d].
  """

  words: list[str]
  array: np.ndarray

  def __post_init__(self):
    object.__setattr__(self, "words", list(self.words))
    object.__setattr__(self, "array", np.asarray(self.array, np.float32))
    if self.array.ndim != 2 or len(self.array) != len(self.words):
      raise errors.InputError(
        f"{len(self.words)} words need a matrix with as many rows, "
        f"not shape {self.array.shape}"
      )
    if len(set(self.words)) < len(self.words):
      word, _ = collections.Counter(self.words).most_common(1)[0]
      raise errors.InputError(f"word {word!r} occurs twice")

  def __len__(self) -> int:
    return len(self.words)

  def select(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The rows of given words.

    Args:
      words: n words.

    Returns:
      The vectors, float32 [n, d], zero where the word has none, and whether
      it has one, bool [n].
    """
    index = {word: i for i, word in enumerate(self.words)}
    rows = np.array([index.get(word, -1) for word in words], dtype=np.int64)
    known = rows >= 0
    array = np.zeros((len(rows), self.array.shape[1]), np.float32)
    array[known] = self.array[rows[known]]
    return array, known


def read_vectors(
  path: files.Path, layout: str | None = None, limit: int | None = None
) -> Vectors:
  """Reads vectors in any of the layouts.

  Args:
    path: the file, plain or compressed.
    layout: one of `LAYOUTS`; None detects it by the file's content.
    limit: the number of leading rows to read; None for all.

  Returns:
    The vectors. A row that is short, long, repeated or not finite raises
    `InputError` with its line or row.
  """
  if layout is None:
    layout = _layout_of(path)
  if layout not in LAYOUTS:
    raise errors.InputError(
      f"layout {layout!r} is not one of {', '.join(LAYOUTS)}", path=path
    )
  if layout == "npz":
    return _read_npz(path, limit)
  rows = _Rows(path, limit, "row" if layout == "word2vec-binary" else "line")
  if layout == "word2vec-binary":
    _read_binary(path, rows)
  else:
    _read_text(path, rows, header=layout == "word2vec")
  return rows.vectors()


def write_vectors(
  path: files.Path, vectors: Vectors, layout: str = "word2vec"
) -> None:
  """Writes vectors so that reading gives the same words and bits.

  Args:
    path: the file; compressed if its name ends in .gz or .bz2.
    vectors: what to write; finite values only.
    layout: one of `LAYOUTS`.
  """
  if layout not in LAYOUTS:
    raise errors.InputError(
      f"layout {layout!r} is not one of {', '.join(LAYOUTS)}", path=path
    )
  _check_writable(vectors, layout, path)
  n, d = vectors.array.shape
  if layout == "npz":
    names = np.array(vectors.words, dtype=np.str_)
    array_files.write_npz(path, words=names, array=vectors.array)
    return
  with files.atomic_write(path, "wb") as stream:
    if layout != "glove":
      stream.write(f"{n} {d}\n".encode())
    for start in range(0, n, 1024):
      words = vectors.words[start : start + 1024]
      array = vectors.array[start : start + 1024]
      if layout == "word2vec-binary":
        little = array.astype("<f4", copy=False)
        rows = (
          word.encode() + b" " + row.tobytes()
          for word, row in zip(words, little)
        )
        stream.write(b"".join(rows))
      else:
        lines = zip(words, _digits(array))
        stream.write(b"".join(w.encode() + b" " + t + b"\n" for w, t in lines))


class _Rows:
  """Collects blocks of rows and checks each as it comes."""

  def __init__(self, path: files.Path, limit: int | None, unit: str):
    if limit is not None and limit < 1:
      raise errors.InputError(f"limit must be positive, not {limit}")
    self.path = path
    self.limit = limit
    self.unit = unit
    self.place: dict[str, int] = {}
    self.blocks: list[np.ndarray] = []

  @property
  def full(self) -> bool:
    return self.limit is not None and len(self.place) >= self.limit

  def error(self, message: str, place: int) -> errors.InputError:
    if self.unit == "line":
      return errors.InputError(message, path=self.path, line=place)
    return errors.InputError(f"row {place}: {message}", path=self.path)

  def add(self, words: list[str], array: np.ndarray, places: Iterable[int]):
    """Appends rows [b, d]; `places` are their lines or row numbers."""
    if self.limit is not None:
      room = self.limit - len(self.place)
      words, array = words[:room], array[:room]
    places = list(places)[: len(words)]
    for word, place in zip(words, places):
      first = self.place.setdefault(word, place)
      if first != place:
        raise self.error(f"word {word!r} repeats {self.unit} {first}", place)
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
      at = int(np.argmin(finite))
      raise self.error(f"word {words[at]!r} has a value not finite", places[at])
    self.blocks.append(array)

  def vectors(self) -> Vectors:
    if not self.blocks:
      raise errors.InputError("holds no vectors", path=self.path)
    return Vectors(list(self.place), np.concatenate(self.blocks))


def _read_text(path: files.Path, rows: _Rows, header: bool) -> None:
  """Reads word2vec or GloVe text block by block."""
  claimed: tuple[int, int] | None = None
  d = 0
  for first, block in files.text_blocks(path):
    lines = block.split("\n")
    if first == 1 and header:
      claimed = _header(lines.pop(0).encode(), path)
      d, first = claimed[1], 2
    numbered = [(i, t.rstrip(" ")) for i, t in enumerate(lines, first) if t]
    numbered = [(i, text) for i, text in numbered if text]
    if not numbered:
      continue
    d = d or _dimension(numbered[0][1])
    plain = not any(blank in block for blank in _ODD_BLANKS)
    parsed = _parse_block(numbered, d, rows, plain)
    rows.add(*parsed, [i for i, _ in numbered])
    if rows.full:
      return
  if claimed is not None and claimed[0] != len(rows.place):
    raise errors.InputError(
      f"the header claims {claimed[0]} rows, the file has {len(rows.place)}",
      path=path,
      line=1,
    )


def _parse_block(
  numbered: list[tuple[int, str]], d: int, rows: _Rows, plain: bool
) -> tuple[list[str], np.ndarray]:
  """Parses lines of `word value ... value` into words and float32 [b, d].

  `plain` says that single spaces are the only blanks on the lines.
  """
  if plain and d >= 1 and all(t.count(" ") == d for _, t in numbered):
    # Single spaces only, so each line has d fields after its word.
    parts = [text.partition(" ") for _, text in numbered]
    words = [part[0] for part in parts]
    values = _floats(" ".join([part[2] for part in parts]))
    if values is not None and len(values) == d * len(parts) and all(words):
      return words, values.reshape(len(parts), d)
  careful = [_parse_line(line, text, d, rows) for line, text in numbered]
  return [word for word, _ in careful], np.stack([v for _, v in careful])


def _parse_line(
  line: int, text: str, d: int, rows: _Rows
) -> tuple[str, np.ndarray]:
  """Parses one line with care; GloVe's words may hold spaces."""
  fields = _fields(text)
  if d < 1 or len(fields) < d + 1:
    wanted = f"expected {d} values" if d >= 1 else "expected values"
    raise rows.error(
      f"{wanted} after the word, found {len(fields) - 1}: {text[:60]!r}", line
    )
  values = _floats(" ".join(fields[-d:]))
  if values is None or len(values) != d:
    raise rows.error(f"a value is not a number: {text[:60]!r}", line)
  word = fields[:-d]
  if len(word) > 1 and _floats(word[-1]) is not None:
    raise rows.error(
      f"expected {d} values after the word, found more: {text[:60]!r}", line
    )
  if not word[0]:
    raise rows.error("the line has no word", line)
  return " ".join(word), values


def _fields(text: str) -> list[str]:
  """Splits at ASCII blanks only: other spaces may be part of a word."""
  fields = text.replace("\t", " ").split(" ")
  return fields[:1] + [field for field in fields[1:] if field]


def _dimension(text: str) -> int:
  """The number of values at the end of a line, its first field aside."""
  fields = _fields(text)[1:]
  numbers = [_floats(field) is not None for field in reversed(fields)]
  return numbers.index(False) if False in numbers else len(fields)


def _floats(text: str) -> np.ndarray | None:
  """Parses numbers separated by spaces; None if one is malformed."""
  if not text.isascii():
    return None
  with warnings.catch_warnings():
    warnings.simplefilter("error", DeprecationWarning)
    try:
      with np.errstate(over="ignore"):
        values = np.fromstring(text, dtype=np.float32, sep=" ")
    except (DeprecationWarning, ValueError):
      return None
  return values if len(values) else None


def _read_binary(path: files.Path, rows: _Rows) -> None:
  """Reads word2vec's binary format in bounded blocks."""
  with files.open_binary(path) as stream:
    n, d = _header(stream.readline(256), path)
    row, data = 0, b""
    while row < n and not rows.full:
      more = stream.read(_BLOCK)
      data += more
      words, array, taken = _binary_rows(data, n - row, d)
      if not words and (not more or len(data) > 4 * d + 2 * _BLOCK):
        raise rows.error(
          f"expected {n} rows of {d} values, but no whole row is left", row
        )
      rows.add(_decoded(words, row, rows), array, range(row, row + len(words)))
      row, data = row + len(words), data[taken:]
    if not rows.full and (data + stream.read(_BLOCK)).strip(b"\n"):
      raise rows.error("bytes follow the last row that the header claims", row)


def _binary_rows(
  data: bytes, most: int, d: int
) -> tuple[list[bytes], np.ndarray, int]:
  """Up to `most` whole rows of a buffer, and how many bytes they take."""
  words: list[bytes] = []
  values: list[bytes] = []
  taken = 0
  while len(words) < most:
    cut = data.find(b" ", taken)
    end = cut + 1 + 4 * d
    if cut < 0 or end > len(data):
      break
    words.append(data[taken:cut].lstrip(b"\n"))
    values.append(data[cut + 1 : end])
    taken = end
  array = np.frombuffer(b"".join(values), dtype="<f4").astype(np.float32)
  return words, array.reshape(len(words), d), taken


def _decoded(words: list[bytes], row: int, rows: _Rows) -> list[str]:
  """Decodes the words of binary rows that begin at `row`."""
  decoded = []
  for place, word in enumerate(words, row):
    try:
      decoded.append(word.decode("utf-8"))
    except UnicodeDecodeError as error:
      raise rows.error("the word is not UTF-8", place) from error
    if not word:
      raise rows.error("the word is empty", place)
  return decoded


def _read_npz(path: files.Path, limit: int | None) -> Vectors:
  """Reads what `write_vectors` wrote with layout npz."""
  arrays = array_files.read_npz(path, ["words", "array"])
  words, array = arrays["words"], arrays["array"]
  if words.dtype.kind != "U" or words.ndim != 1:
    raise errors.InputError("words must be a list of strings", path=path)
  if array.dtype.kind != "f" or array.ndim != 2 or len(array) != len(words):
    raise errors.InputError(
      f"array must hold a row of floats for each of {len(words)} words, "
      f"not {array.dtype} of shape {array.shape}",
      path=path,
    )
  if not len(words) or not array.shape[1]:
    raise errors.InputError("holds no vectors", path=path)
  if not (words != "").all():
    raise errors.InputError("a word is empty", path=path)
  rows = _Rows(path, limit, "row")
  with np.errstate(over="ignore"):  # Overflow gives inf.
    array = array.astype(np.float32)
  rows.add(words.tolist(), array, range(len(words)))
  return rows.vectors()


def _digits(array: np.ndarray) -> list[bytes]:
  """Each row of float32 [b, d] as text, values between single blanks.

  The shortest digits that give the same float32 back; scipy's writer of
  matrices is several times faster at this than numpy's conversion to text.
  """
  n, d = array.shape
  buffer = io.BytesIO()
  scipy.io.mmwrite(buffer, array.T, symmetry="general")
  lines = buffer.getvalue().split(b"\n")
  first = next(i for i, line in enumerate(lines) if line[:1] != b"%") + 1
  starts = range(first, first + n * d, d)
  return [b" ".join(lines[start : start + d]) for start in starts]


def _header(data: bytes, path: files.Path) -> tuple[int, int]:
  """Parses `n d`. Nothing is allocated by these sizes, which may be wrong."""
  sizes = _sizes(data)
  if sizes is None or not 1 <= sizes[1] <= _MAX_DIMENSION:
    raise errors.InputError(
      "expected a header with the number of words and a dimension up to "
      f"{_MAX_DIMENSION}, found {data[:60]!r}",
      path=path,
      line=1,
    )
  return sizes


def _sizes(data: bytes) -> tuple[int, int] | None:
  fields = data.split()
  if len(fields) == 2 and all(f.isdigit() and len(f) < 16 for f in fields):
    return int(fields[0]), int(fields[1])
  return None


def _layout_of(path: files.Path) -> str:
  """Tells the layout by the first bytes of the content."""
  with files.open_binary(path) as stream:
    head = stream.read(_BLOCK)
  if head[:2] == b"PK":
    return "npz"
  first, _, rest = head.partition(b"\n")
  if _sizes(first.removeprefix(b"\xef\xbb\xbf")) is None:
    return "glove"
  # After the first word, text continues with digits, binary with float bytes.
  values = rest.lstrip(b"\n").partition(b" ")[2][:16].partition(b"\n")[0]
  text = all(byte in _FLOAT_BYTES for byte in values.rstrip(b"\r"))
  return "word2vec" if text else "word2vec-binary"


def _check_writable(vectors: Vectors, layout: str, path: files.Path) -> None:
  """Refuses words and values that the layout cannot hold."""
  if not vectors.words or not vectors.array.shape[1]:
    raise errors.InputError("there are no vectors to write", path=path)
  finite = np.isfinite(vectors.array).all(axis=1)
  if not finite.all():
    raise errors.InputError(
      f"row {int(np.argmin(finite))} has a value that is not finite", path=path
    )
  for row, word in enumerate(vectors.words):
    bad = "\0" in word
    if layout != "npz":
      bad = word.split() != [word] or files.marked(word)
    if bad or not word:
      raise errors.InputError(
        f"row {row}: word {word!r} cannot be written as {layout}", path=path
      )
