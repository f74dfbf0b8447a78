"""The example files of the page for analysts are what their readers take."""

import pathlib

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
