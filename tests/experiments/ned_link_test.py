"""A linker for plain text: answers, reasons that add up, own entities."""

import json
import subprocess
import sys

import jax
import numpy as np
import pytest

from experiments.ned import link, link_model, open_linking
from experiments.ned.config import Config
from repr_jax import linking
from repr_jax.data.documents import (
  candidate_features,
  entity_base,
  evidence,
)
from repr_jax.data.documents.entity_base import Entity
from repr_jax.errors import InputError

_ENTITIES = (
  Entity("Bonn", in_links=90, links=("Rhine",)),
  Entity("Bonn (band)", in_links=9, links=("Guitar",)),
  Entity("Rhine", in_links=40),
  Entity("Guitar", in_links=40),
)
_TEXTS = {
  "Bonn": "He said that Bonn lies on the Rhine, but small.",
  "Bonn (band)": "He said that Bonn played the Guitar, but badly.",
}


def _spans(text, entity):
  spans = [(text.index("Bonn"), text.index("Bonn") + 4, entity)]
  for name in ("Rhine", "Guitar"):
    if name in text:
      spans.append((text.index(name), text.index(name) + len(name), name))
  return spans


@pytest.fixture(scope="module")
def model():
  links = candidate_features.Links({}, {})
  base = entity_base.build_base(_ENTITIES, links)
  documents = [
    entity_base.base_document(base, f"{i}", text, _spans(text, entity))
    for i in range(20)
    for entity, text in _TEXTS.items()
  ]
  features = [
    candidate_features.document_features(d, links, {}) for d in documents
  ]
  groups = evidence.pack_evidence(documents, features, ((4, 30),), 30)
  rankers = linking.fit_rankers(
    groups, jax.random.key(0), members=2, hidden=4, epochs=40,
    learning_rate=0.02,
  )  # fmt: skip
  return link_model.LinkModel(rankers, base, 0.3)


def _records(model, tmp_path, text, **settings):
  path = tmp_path / "text.txt"
  path.write_text(text)
  config = Config(mode="link", model="x", **settings)
  documents = link.documents(model, config, [str(path)])
  return list(link.records(model, link_model.link(model, documents)))


@pytest.mark.parametrize("entity", _TEXTS)
def test_plain_text_is_linked_with_reasons(model, tmp_path, entity):
  records = _records(model, tmp_path, _TEXTS[entity])
  first, second = records
  assert first["surface"] == "Bonn"
  assert first["entity"] == entity and not first["nil"]
  assert first["runner_up"] in set(_TEXTS) - {entity}
  for record in records:
    why = record["why"]
    assert sum(why["parts"].values()) == pytest.approx(why["score"], abs=1e-3)
  assert first["why"]["mentions"] == [
    {"surface": second["surface"], "share": 1.0}
  ]


def test_a_saved_model_answers_as_before(model, tmp_path):
  link_model.save(tmp_path / "linker", model)
  loaded = link_model.load(str(tmp_path / "linker"))
  text = _TEXTS["Bonn"]
  assert _records(loaded, tmp_path, text) == _records(model, tmp_path, text)


def test_entities_can_be_added_or_replaced(model, tmp_path):
  link_model.save(tmp_path / "linker", model)
  own = tmp_path / "own.jsonl"
  own.write_text('{"name": "Ada Quux", "aliases": ["Quux"]}\n')
  text = "She met Quux in Bonn."
  added = link_model.load(str(tmp_path / "linker"), add_entities=str(own))
  answers = {x["surface"]: x["entity"] for x in _records(added, tmp_path, text)}
  assert answers["Quux"] == "Ada Quux" and answers["Bonn"] in _TEXTS
  alone = link_model.load(str(tmp_path / "linker"), kb=str(own))
  records = _records(alone, tmp_path, text)
  answers = {x["surface"]: x["entity"] for x in records}
  assert answers == {"Quux": "Ada Quux", "Bonn": None}
  assert [x["nil"] for x in records if x["surface"] == "Bonn"] == [True]


def test_forms_of_output(model, tmp_path):
  records = _records(model, tmp_path, _TEXTS["Bonn"])
  header, first, *_ = link.lines(records, "tsv")
  cells = dict(zip(header.split("\t"), first.split("\t")))
  assert (cells["surface"], cells["entity"]) == ("Bonn", "Bonn")
  assert json.loads(next(link.lines(records, "json"))) == records[0]
  (line,) = link.lines(records, "standoff")
  mentions = json.loads(line)["mentions"]
  assert mentions[0] == {"start": 13, "end": 17, "entity": "Bonn"}


def test_the_program_reads_files(model, tmp_path):
  link_model.save(tmp_path / "linker", model)
  path = tmp_path / "text.txt"
  path.write_text(_TEXTS["Bonn"])
  program = [sys.executable, "-m", "experiments.ned", "--mode=link"]
  ended = subprocess.run(
    [*program, f"--model={tmp_path / 'linker'}", "--format=json", str(path)],
    capture_output=True, text=True,
  )  # fmt: skip
  assert ended.returncode == 0, ended.stderr
  records = [json.loads(line) for line in ended.stdout.splitlines()]
  assert records == _records(model, tmp_path, _TEXTS["Bonn"])


def test_a_text_without_names_has_no_lines(model, tmp_path):
  assert _records(model, tmp_path, "nothing is named here") == []


def test_bad_input_is_refused(model, tmp_path):
  config = Config(mode="link", model="x")
  with pytest.raises(InputError, match="needs FILE"):
    link.documents(model, config, [])
  empty = tmp_path / "empty.txt"
  empty.write_text("\n")
  with pytest.raises(InputError, match="empty"):
    link.documents(model, config, [str(empty)])
  with pytest.raises(InputError, match="no linker"):
    link_model.load(str(tmp_path))
  (tmp_path / "linker.json").write_text("{}")
  np.savez(tmp_path / "rankers.npz", x=np.zeros(1))
  with pytest.raises(InputError, match="not a linker"):
    link_model.load(str(tmp_path))
  with pytest.raises(InputError, match="--model"):
    Config(mode="link")


def test_f1_with_nil_by_hand():
  # probability, right, linked
  scores = np.array([[0.9, 1, 1], [0.8, 0, 1], [0.2, 1, 1], [0.1, 0, 0]])
  f1, right = open_linking._f1(scores, 0.5)
  assert f1 == pytest.approx(2 * 1 / (2 + 3))
  assert right == pytest.approx(2 / 4)
