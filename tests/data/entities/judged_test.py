"""Judged queries: the form of the file, and errors that name the line."""

import gzip
import json

import pytest

from repr_jax.data.entities import judged
from repr_jax.errors import InputError

_RECORD = {
  "qid": 102,
  "stratum": "1",
  "n_entities": 2,
  "category": "Composers",
  "entities": [
    {"name": "Bach", "abstract": "A composer.", "candidate_ids": ["e1", "e2"]},
    {"name": "Orff"},
  ],
  "group": 2,
  "systems": {"A": ["e3", "e1"], "B": []},
  "judgement": {"A": 1, "B": None},
}


def test_a_compressed_file_is_read(tmp_path):
  path = tmp_path / "queries.jsonl.gz"
  with gzip.open(path, "wt") as out:
    out.write(json.dumps(_RECORD) + "\n\n")
  (query,) = judged.read_judged_queries(path)
  assert query.qid == "102" and query.group == "2" and query.stratum == "1"
  assert query.members == (
    judged.Member("Bach", "A composer.", ("e1", "e2")),
    judged.Member("Orff", "", ()),
  )
  assert query.systems == {"A": ("e3", "e1"), "B": ()}
  assert query.places == {"A": 1, "B": None}


@pytest.mark.parametrize(
  "change, message",
  [
    ({"entities": []}, "is empty"),
    ({"entities": "Bach"}, "must be a list"),
    ({"entities": [{"abstract": "x"}]}, "lacks 'name'"),
    ({"entities": [{"name": "x", "candidate_ids": "e1"}]}, "list of strings"),
    ({"systems": []}, "must be an object"),
    ({"systems": {"A": [1]}}, "list of strings"),
    ({"judgement": {"A": 0}}, "1 or more"),
    ({"judgement": {"C": 1}}, "names 'C'"),
  ],
)
def test_errors_name_the_line(tmp_path, change, message):
  path = tmp_path / "queries.jsonl"
  lines = [json.dumps(_RECORD), json.dumps({**_RECORD, **change})]
  path.write_text("\n".join(lines))
  with pytest.raises(InputError, match=message) as caught:
    judged.read_judged_queries(path)
  assert caught.value.line == 2 and caught.value.path == str(path)


@pytest.mark.parametrize("line", ["{", "[1]", '{"qid": 1}'])
def test_lines_of_another_form(tmp_path, line):
  path = tmp_path / "queries.jsonl"
  path.write_text(line)
  with pytest.raises(InputError, match="not a judged query"):
    judged.read_judged_queries(path)


def test_an_empty_file(tmp_path):
  path = tmp_path / "queries.jsonl"
  path.write_text("\n")
  with pytest.raises(InputError, match="no query"):
    judged.read_judged_queries(path)
