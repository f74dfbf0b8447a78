"""Files that analysts bring: the examples of their page, linked documents."""

import json
import pathlib

import numpy as np
import pytest

from experiments.nvse import data, query
from experiments.nvse.config import Config
from repr_jax.data.documents import corpus_files, plain_text
from repr_jax.data.entities.judged import read_judged_queries

_FOLDER = pathlib.Path(data.__file__).parent
_EXAMPLES = _FOLDER / "examples"


def _table(name, tmp_path):
  config = Config(
    corpus=(str(_EXAMPLES / name),),
    drop_most_frequent=0,
    min_count=1,
    min_entities=1,
    store=str(tmp_path),
  )
  return data.open_table(config)


@pytest.mark.parametrize(
  ("name", "entity", "count"),
  [
    ("sentences.jsonl", "handel", 3),
    ("entities.jsonl", "elbe", 3),
    ("documents.jsonl", "Leipzig", 2),
    ("text.txt", "George Frideric Handel", 4),
  ],
)
def test_corpora(name, entity, count, tmp_path):
  table = _table(name, tmp_path)
  assert entity in table.rows and len(table.entities) == count


def test_other_files(tmp_path):
  names = plain_text.read_gazetteer(str(_EXAMPLES / "names.txt"))
  assert len(names) == 2
  config = Config(mode="evaluate")
  sets = data.gold_sets(config, str(_EXAMPLES / "gold.json"))
  assert set(sets) == {"composers", "rivers"}
  (judged,) = read_judged_queries(_EXAMPLES / "judged.jsonl")
  assert judged.places == {"NVSE": 1, "BM25": 2}
  table = _table("entities.jsonl", tmp_path)
  new = query.read_new(str(_EXAMPLES / "new_entity.jsonl"), table)
  assert new["Georg Philipp Telemann"].nnz > 0


def test_each_example_is_described():
  page = (_FOLDER / "README.md").read_text("utf-8")
  for path in _EXAMPLES.iterdir():
    assert f"`{path.name}`" in page
  assert corpus_files.form_of(str(_EXAMPLES / "sentences.jsonl")) == "sentences"


def test_concepts_are_lines_of_features():
  decoder = np.array([[2.0, 0.0, 0.1], [-1.0, 3.0, 0.0], [0.0, -2.0, 0.0]])
  text = query.concepts_text(decoder, ["word:a", "word:b", "doc:c"], 1)
  assert text.splitlines() == ["+e_0: a", "-e_0: b", "+e_1: b", "-e_1: doc:c"]


def test_linked_documents_are_a_corpus(tmp_path):
  path = tmp_path / "documents.jsonl"
  text = "Bach wrote fugues. Nobody came. Krebs wrote fugues."
  places = ((0, 4, "bach"), (32, 37, "krebs"))
  mentions = [
    {"start": a, "end": b, "wikipedia_title": name} for a, b, name in places
  ]
  record = {"doc_id": "d", "text": text, "mentions": mentions}
  path.write_text(json.dumps(record) + "\n")
  changed = Config(
    corpus=(str(path),), drop_most_frequent=0, min_count=1, store=str(tmp_path)
  )
  assert data.open_table(changed).entities == ["Bach", "Krebs"]
