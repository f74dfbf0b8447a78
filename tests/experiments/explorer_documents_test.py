"""Documents behind sentences, and the page of an entity."""

import dataclasses
import json

import numpy as np
import pytest

from experiments.explorer import answers, ranker
from experiments.explorer.documents import Documents
from experiments.explorer.entities import Entities
from repr_jax import setexp
from repr_jax.data import entities
from repr_jax.data.entities import features
from repr_jax.errors import InputError


@pytest.fixture(scope="module")
def table():
  def stream():
    for doc, text, name in (
      ("d1", "Bach wrote fugues.", "Bach"),
      ("d2", "Elbe water flows.", "Elbe"),
      ("d1", "Bach wrote masses.", "Bach"),
      ("", "Oder water flows.", "Oder"),
    ):
      mention = (0, len(name), name)
      yield entities.sentence_from_text(text, [mention], doc)

  return features.build(stream(), drop_most_frequent=0, min_count=1)


def test_a_document_has_its_sentences_in_order(table):
  documents = Documents(table, Entities(table, 10))
  whole = documents.describe("d1")
  assert whole["texts"] == ["Bach wrote fugues.", "Bach wrote masses."]
  assert [x["name"] for x in whole["entities"]] == ["Bach"]
  assert whole["more"] == 0
  assert documents.name(1) == "d2" and documents.name(3) == ""
  with pytest.raises(InputError, match="no document called 'd9'"):
    documents.describe("d9")


@pytest.fixture(scope="module")
def answering(trained):
  opened = dataclasses.replace(
    trained, chances={"bm25": np.array([-2.0, 1.0, 0.1, 0.1, -0.2], np.float32)}
  )
  return answers.Answers(ranker.Ranker(opened, ("bm25",), 5))


def test_an_entity_has_features_sentences_and_neighbors(answering):
  shown = answering.entity("river1", 2)
  assert shown["name"] == "River 1" and len(shown["texts"]) == 2
  assert sum(x["id"].startswith("river") for x in shown["near"]) >= 6
  assert all(x["weight"] > 0 for x in shown["features"])
  mute = answering.entity("mute", 2)
  assert not mute["near"] and not mute["texts"] and not mute["features"]
  json.dumps(shown, allow_nan=False)


def test_chances_are_those_of_the_library(answering, trained):
  members = (("river1", 1.0), ("river2", 1.0))
  question = answering.question(members, "bm25", "")
  shown = answering.chances(question, ["river3", "composer1"])
  system = trained.system("bm25")
  query = answering.query(members)
  scores = np.asarray(system.score_batch([query])[0], np.float32)
  weights = np.zeros(len(scores), np.float32)
  weights[query.ids] = 1.0
  wanted = setexp.chances(
    np.array([-2.0, 1.0, 0.1, 0.1, -0.2], np.float32), scores, weights
  )
  rows = [trained.table.rows[x] for x in ("river3", "composer1")]
  given = [x["chance"] for x in shown["entities"]]
  np.testing.assert_allclose(given, np.asarray(wanted)[rows], rtol=1e-5)
  assert given[0] > given[1]
  assert shown["size"] == int(setexp.expected_cut(wanted))


def test_a_system_without_chances_has_none(answering):
  question = answering.question((("river1", 1.0),), "nvse", "")
  shown = answering.chances(question, ["river3"])
  assert shown["size"] is None and shown["entities"][0]["chance"] is None
  assert answering.model()["chances"] == ["bm25"]
