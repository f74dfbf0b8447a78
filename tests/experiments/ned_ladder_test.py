"""The ladder on a small world in which links decide."""

import dataclasses
import gzip
import json

import numpy as np
import pytest

from experiments.ned import (
  ladder,
  ladder_fields,
  ladder_report,
  link_model,
  open_linking,
)
from experiments.ned.config import Config
from experiments.run import runlib
from repr_jax.errors import InputError

_SIZES = {"train": 40, "testa": 12, "testb": 12}


def _write(path, records):
  with gzip.open(path, "wt") as out:
    out.writelines(json.dumps(record) + "\n" for record in records)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
  """Bonn is the team where it links to the game, the town elsewhere."""
  folder = tmp_path_factory.mktemp("candidates")
  rng = np.random.default_rng(0)
  for split, size in _SIZES.items():
    documents, candidates = [], []
    for number in range(size):
      team = int(rng.integers(2))
      name = f"{number}{split}"
      topic = ("Poetry", "Football")[team]
      text = f"{topic}\nBonn"  # on lines of their own: no context tells
      gold = ("Bonn", "Bonn F.C.")[team]
      end, place = len(topic), len(text) - 4
      documents.append(
        {
          "doc_id": name,
          "text": text,
          "mentions": [
            {"start": 0, "end": end, "wikipedia_title": topic},
            {"start": place, "end": len(text), "wikipedia_title": gold},
          ],
        }
      )
      town = {"id": 1, "title": "Bonn", "in_links": 9, "links": [4]}
      club = {"id": 2, "title": "Bonn F.C.", "in_links": 5, "links": [3]}
      subject = {"id": 4 - team, "title": topic, "in_links": 5, "links": []}
      for mention, (span, listed) in enumerate(
        [((0, end), [subject]), ((place, len(text)), [town, club])]
      ):
        candidates.append(
          {
            "doc": name,
            "mention": mention,
            "start": span[0],
            "end": span[1],
            "candidates": listed,
          }
        )
    _write(folder / f"{split}.jsonl.gz", documents)
    _write(folder / f"candidates.{split}.jsonl.gz", candidates)
  return folder


@pytest.fixture(scope="module")
def laddered(world):
  config = Config(
    mode="ladder", candidates=str(world), seeds=2, ranker_hidden=4,
    ranker_epochs=20, ranker_learning_rate=0.02, ablations=True,
    open_tests=(f"again={world / 'testb.jsonl.gz'}",),
  )  # fmt: skip
  return config, *ladder.run_ladder(config)


@pytest.fixture(scope="module")
def answered(laddered):
  return laddered[1]


def _right(answered, system):
  return ladder_report.correct(answered, system, "testb").mean()


def test_links_decide_where_nothing_else_does(answered):
  assert _right(answered, ladder.GRAPH) == 1
  assert _right(answered, ladder.FULL) == 1
  for system in ("most in-links", "popularity", "ranker without graph"):
    assert _right(answered, system) < 0.95, system


def test_rankers_that_see_less_of_titles(answered):
  # Links decide, so that all of them are right.
  systems = [x for x in answered.answers if ", without " in x]
  assert len(systems) == 4
  assert [_right(answered, x) for x in systems] == [1] * 4
  (group,) = answered.splits["testb"].groups
  names = ladder.feature_places("name")
  less = link_model.without(group, names, shapes=False).evidence
  assert not less.features[..., list(names)].any()
  assert less.shapes.max() == 0
  assert group.evidence.features[..., list(names)].any()
  assert group.evidence.shapes.max() > 0


def test_testb_by_names(answered):
  *_, table = ladder_report.tables(answered, 0)
  split = answered.splits["testb"]
  assert ladder_report.shares_word(split).all()
  assert table.header[1] == "it has (24)"
  assert [row[0] for row in table.rows] == list(answered.answers)
  assert {row[2] for row in table.rows} == {"-"}


def test_tables_have_every_system_and_the_published_figures(answered):
  made = ladder_report.tables(answered, 0)
  systems = [row[0] for row in made[0].rows]
  assert systems[: len(answered.answers)] == list(answered.answers)
  for table in made:
    assert all(len(row) == len(table.header) for row in table.rows)
  row = next(x for x in made[0].rows if x[0] == "most in-links")
  assert row[3] == pytest.approx(row[2] - 100, abs=0.02)


def test_kinds_of_errors_are_counted(answered):
  system = "most in-links"
  worse = answered._replace(
    answers={**answered.answers, ladder.FULL: answered.answers[system]}
  )
  table = ladder_report.tables(worse, 0)[1]
  wrong = (~ladder_report.correct(answered, system, "testa")).sum()
  assert sum(row[1] for row in table.rows) == wrong > 0
  assert table.rows[0][0] == "one title begins with the other"
  assert table.rows[0][3] == "Bonn: Bonn for Bonn F.C."


def test_parts_of_scores_tell_what_misled(answered):
  parts = np.zeros((2, 5))
  parts[0, 4], parts[1, 0] = 3.0, 1.0
  assert ladder_report.misled_by(parts, 0, 1) == "graph"
  assert ladder_report.misled_by(parts, 1, 0) == "prior"
  shape = answered.parts["testa"].shape
  assert shape == (*answered.probabilities["testa"].shape, 5)


@pytest.mark.long
def test_looked_up_candidates_and_the_saved_linker(laddered, tmp_path):
  config, answered, source = laddered
  with runlib.Run("ned", directory=tmp_path / "run", config={}) as run:
    given = open_linking.read(config)
    table, errors = open_linking.evaluate(run, given, answered, source)
  assert errors.rows[0] == ["testb", 0, 0, 0, 0]
  first, second = table.rows
  assert first[0] == "testb" and second[0] == "again"
  assert first[1:] == second[1:]
  cells = dict(zip(table.header, first))
  assert cells["mentions"] == 24 and cells["of them NIL"] == 0
  assert cells["entity a candidate, %"] == 100
  assert cells["micro F1 of linked mentions, %"] == 100
  model = link_model.load(str(tmp_path / "run" / "linker"))
  assert set(model.base.entities) == {
    "Bonn", "Bonn F.C.", "Poetry", "Football",
  }  # fmt: skip


@pytest.mark.long
def test_local_and_global_models_are_rungs(laddered, tmp_path):
  config, answered, _ = laddered
  plain = tmp_path / "plain.txt"
  plain.write_text("He saw Bonn in Football rain .\nBonn was wet .\n" * 3)
  config = dataclasses.replace(
    config, fields=("null",), texts=(str(plain),), field_epochs=2, field_dim=4
  )
  with runlib.Run("ned", directory=tmp_path / "run", config={}) as run:
    made = ladder_fields.add_fields(run, config, answered)
  added = [x for x in made.answers if x not in answered.answers]
  vectors = "null vectors"
  assert added == [
    f"{name}, seed {seed}"
    for name in (
      f"local attention, {vectors}", f"global field, {vectors}",
      f"global field, {vectors}, on kinds and PageRank",
    )
    for seed in (0, 1)
  ]  # fmt: skip
  for system in added:
    for name in ("testa", "testb"):
      answers = made.answers[system][name]
      assert answers.shape == answered.splits[name].gold.shape
      assert (answers >= 0).all()
  # A prior by links between candidates decides, whatever the vectors say.
  assert [_right(made, x) for x in added[-2:]] == [1, 1]


def test_titles_in_plain_text_are_mentions(tmp_path):
  plain = tmp_path / "plain.txt"
  plain.write_text("Rome fell and New York City rose in Rome .\n")
  titles = {"Rome": 0, "New York": 1, "New York City": 2, "Rome (band)": 3}
  (document,) = ladder_fields.read_text(str(plain), titles)
  assert [m.entity for m in document.mentions] == ["New York City", "Rome"]
  config = Config(
    mode="ladder", candidates="x", fields=("vae",), texts=("/none",)
  )
  with pytest.raises(InputError, match="--texts"):
    ladder_fields.check(config)


def test_a_missing_directory_is_refused(tmp_path):
  config = Config(mode="ladder", candidates=str(tmp_path / "none"))
  with pytest.raises(InputError, match="no such directory"):
    ladder.read(config)
  with pytest.raises(InputError, match="--candidates"):
    Config(mode="ladder")
