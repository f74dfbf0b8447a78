"""JSON of others: the value, or an error that has its place."""

import gzip
import json

import pytest

from repr_jax import errors
from repr_jax.data.io import json_files


def test_a_value_is_read_plain_or_packed(tmp_path):
  value = {"a": [1, 2.5, None, True], "é": "\U0001f600"}
  data = json.dumps(value).encode()
  (tmp_path / "a.json").write_bytes(b"\xef\xbb\xbf" + data)
  (tmp_path / "b.json").write_bytes(gzip.compress(data))
  for name in ("a.json", "b.json"):
    assert json_files.read_json(tmp_path / name) == value


@pytest.mark.parametrize(
  ("text", "line", "reason"),
  [
    ('{"a": 1,\n\n"b"}', 3, "delimiter"),
    ("", 1, "Expecting value"),
    ("[" * 100_000, None, "nested too deeply"),
    ('"\\ud800"', None, "half of a character"),
    ("1" * 5000, None, "too many digits"),
  ],
)
def test_other_text_is_refused_at_its_line(tmp_path, text, line, reason):
  path = tmp_path / "a.json"
  path.write_text(text)
  with pytest.raises(errors.InputError, match=reason) as caught:
    json_files.read_json(path)
  assert (caught.value.path, caught.value.line) == (str(path), line)


def test_a_line_of_a_larger_file_is_named_by_the_caller():
  with pytest.raises(errors.InputError, match=r"^x\.jsonl:7: ") as caught:
    json_files.parse_json("{", "x.jsonl", 7)
  assert caught.value.line == 7


def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path, monkeypatch):
  monkeypatch.setattr(json_files, "_MAX_UNPACKED", 1000)
  path = tmp_path / "a.json.gz"
  path.write_bytes(gzip.compress(b" " * 100_000 + b"1"))
  with pytest.raises(errors.InputError, match="longer than 1000 bytes"):
    json_files.read_json(path)
