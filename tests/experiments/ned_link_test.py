"""A linker for plain text: answers, reasons that add up, own entities."""

import json

import jax
import killing
import numpy as np
import pytest

from experiments.ned import (
  link,
  link_model,
  link_page,
  link_server,
  open_linking,
)
from experiments.ned.config import Config
from repr_jax import linking
from repr_jax.data.documents import (
  candidate_features,
  candidate_files,
  corpus_files,
  entity_base,
  evidence,
  title_kinds,
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
  known = title_kinds.build_vocabulary(documents, 4, 1)
  arrays = title_kinds.encode_kinds(documents, known, 30)
  params = linking.fit_kinds(arrays, known, jax.random.key(0), dim=4)
  features = link_model.join_features(
    documents, features, linking.apply_kinds(params, arrays)
  )
  groups = evidence.pack_evidence(documents, features, ((4, 30),), 30)
  rankers = linking.fit_rankers(
    groups, jax.random.key(0), members=2, hidden=4, epochs=40,
    learning_rate=0.02,
  )  # fmt: skip
  contexts = link_model.Contexts(known, params)
  plain = link_model.LinkModel(rankers, contexts, base, 0.3, True)
  return plain._replace(known=_known(link_model.link(plain, documents), 3.0))


def _known(linked, constant):
  """A regression of whose weights the last two are not 0."""
  zeros = np.zeros(linked.inputs.shape[1])
  weights = zeros.copy()
  weights[-2:] = 0.5, constant
  return link_model.Known(zeros, zeros + 1, weights)


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
    told = sum(x["part"] for x in why["context"])
    assert told == pytest.approx(why["context_score"], abs=1e-3)
    assert why["context"]
  assert first["why"]["mentions"] == [
    {"surface": second["surface"], "share": 1.0}
  ]


def test_one_candidate_alone_may_be_nil(model, tmp_path):
  text = _TEXTS["Bonn"]
  documents = [link.from_text(model, "text", text)]
  linked = link_model.link(model, documents)
  unsure = model._replace(known=_known(linked, -3.0))
  sure, doubtful = (
    list(link.records(x, link_model.link(x, documents)))
    for x in (model, unsure)
  )
  assert [x["nil"] for x in sure] == [False, False]
  assert [x["nil"] for x in doubtful] == [True, True]
  rhine = doubtful[1]
  assert rhine["runner_up"] is None  # its only candidate has probability 1
  assert rhine["probability"] == pytest.approx(1 / (1 + np.exp(3)), abs=1e-4)
  for record in (*sure, *doubtful):
    why = record["why"]
    parts = sum(why["log_odds_parts"].values())
    assert parts == pytest.approx(why["log_odds"], abs=1e-3)
    known = 1 / (1 + np.exp(-why["log_odds"]))
    assert known == pytest.approx(why["known"], abs=1e-3)


def test_regression_finds_what_tells_of_candidates():
  rng = np.random.default_rng(0)
  inputs = rng.standard_normal((500, len(link_model._KNOWN_KINDS)))
  inputs[:, -1] = 1
  odds = 2 * inputs[:, 12] - 1
  covered = rng.random(500) < 1 / (1 + np.exp(-odds))
  known = link_model.fit_known(inputs, covered)
  told = link_model.known_parts(known, inputs).sum(axis=1)
  assert np.corrcoef(told, odds)[0, 1] > 0.95


def test_unknown_popularity_is_typical(model, tmp_path):
  link_model.save(tmp_path / "linker", model)
  own = tmp_path / "own.jsonl"
  own.write_text('{"name": "A"}\n{"name": "iPod", "in_links": 7}\n')
  alone = link_model.load(str(tmp_path / "linker"), kb=str(own))
  assert [x.in_links for x in alone.base.entities.values()] == [40, 7]
  records = _records(alone, tmp_path, "she lost her iPod there")
  assert [x["entity"] for x in records] == ["iPod"]


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
  text = "The Bonn on the Rhine met Zzyzx."
  names = ("Bonn", "Rhine", "Zzyzx")
  spans = [(text.index(x), text.index(x) + len(x), None) for x in names]
  given = [
    entity_base.base_document(model.base, "d", text, spans),
    entity_base.base_document(model.base, "e", "No name.", []),
  ]
  records = list(link.records(model, link_model.link(model, given)))
  header, first, *_ = link.lines(given, records, "tsv")
  cells = dict(zip(header.split("\t"), first.split("\t")))
  assert (cells["surface"], cells["entity"]) == ("Bonn", "Bonn")
  assert json.loads(next(link.lines(given, records, "json"))) == records[0]
  path = tmp_path / "linked.jsonl"
  path.write_text("\n".join(link.lines(given, records, "standoff")))
  both = candidate_files.read_gold_documents(path)
  assert [(x.id, x.text) for x in both] == [(x.id, x.text) for x in given]
  found = [(m.surface, m.entity) for d in both for m in d.mentions]
  assert found == [("Bonn", "Bonn"), ("Rhine", "Rhine"), ("Zzyzx", None)]
  sentences = corpus_files.read_linked(str(path), corpus_files.form_of(path))
  entities = [m[2] for x in sentences for m in x.mentions]
  assert entities == ["Bonn", "Rhine"]


def test_the_program_reads_files(model, tmp_path):
  link_model.save(tmp_path / "linker", model)
  path = tmp_path / "text.txt"
  path.write_text(_TEXTS["Bonn"])
  ended = killing.call(
    "experiments.ned", "--mode=link", f"--model={tmp_path / 'linker'}",
    "--format=json", str(path),
  )  # fmt: skip
  assert ended.returncode == 0, ended.stderr
  records = [json.loads(line) for line in ended.stdout.splitlines()]
  assert records == _records(model, tmp_path, _TEXTS["Bonn"])


def test_a_text_without_names_has_no_lines(model, tmp_path, capsys):
  assert _records(model, tmp_path, "nothing is named here") == []
  assert "1 documents have no mention" in capsys.readouterr().err


def test_a_page_marks_each_mention_by_certainty(model, tmp_path):
  text = _TEXTS["Bonn"] + " <b>"
  records = _records(model, tmp_path, text)
  marked = link_page.marked_text(text, records)
  assert "&lt;b&gt;" in marked and "<b>" not in marked
  assert marked.count("<mark") == len(records)
  assert f'class="{link_page.certainty(records[0])}"' in marked
  inner = {**records[0], "start": 14, "end": 15}  # inside the first
  assert link_page.marked_text(text, [*records, inner]) == marked
  for p, kind in ((0.1, "c0"), (0.5, "c1"), (0.99, "c4")):
    record = {**records[0], "probability": p, "nil": False}
    assert link_page.certainty(record) == kind
  assert link_page.certainty({**records[0], "nil": True}) == "nil"


@pytest.mark.filterwarnings("ignore:Using .httpx.")
def test_a_served_page_links_what_is_sent(model):
  pytest.importorskip("httpx")
  from starlette.testclient import TestClient

  client = TestClient(link_server.build(model), base_url="http://localhost")
  assert "<textarea" in client.get("/").text
  shown = client.post("/", data={"text": _TEXTS["Bonn"]})
  assert shown.status_code == 200 and "<mark" in shown.text
  sent = client.post("/api/link", json={"text": _TEXTS["Bonn (band)"]})
  assert sent.json()["mentions"][0]["entity"] == "Bonn (band)"
  for body in ({"text": " "}, {"text": 3}, {"words": "x"}):
    refused = client.post("/api/link", json=body)
    assert refused.status_code == 422 and refused.json()["error"]
  assert client.post("/", data={"text": ""}).status_code == 422
  for path in ("/", "/api/link"):
    large = client.post(path, content=b"text=" + b"a" * link_server.MAX_BYTES)
    assert large.status_code == 422 and "bytes" in large.text
    latin = client.post(path, content=b"text=\xe9")
    assert latin.status_code == 422 and "UTF-8" in latin.text
  other = TestClient(link_server.build(model), base_url="http://evil.test")
  assert other.get("/").status_code == 400


def test_given_mentions_may_overlap_or_lack_candidates(model, tmp_path, capsys):
  path = tmp_path / "given.jsonl"
  text = "The Bonn band met Zzyzx."
  spans = [(4, 8), (4, 13), (18, 23)]
  mentions = [{"start": a, "end": b} for a, b in spans]
  record = {"doc_id": "d", "text": text, "mentions": mentions}
  path.write_text(json.dumps(record) + "\n")
  config = Config(mode="link", model="x", mentions=str(path))
  documents = link.documents(model, config, [])
  records = list(link.records(model, link_model.link(model, documents)))
  assert [(x["start"], x["end"]) for x in records] == spans
  assert records[0]["entity"] in _TEXTS
  assert records[2]["entity"] is None and records[2]["nil"]
  said = capsys.readouterr().err
  assert "2 of 3 mentions have no candidates" in said
  assert "1 mentions overlap" in said


def test_a_mention_with_too_many_candidates_is_told(model, capsys):
  many = entity_base.base_document(model.base, "d", "Bonn", [(0, 4, None)])
  assert len(many.mentions[0].candidates) == 2
  link_model.warn([many], 2)
  assert not capsys.readouterr().err
  link_model.warn([many, many._replace(mentions=())], 1)
  said = capsys.readouterr().err
  assert "1 mentions have more than 1 candidates" in said
  assert "1 documents have no mention" in said


def test_warnings_show_the_beginning_of_long_names(model, tmp_path, capsys):
  text = "The Bonn met Z" + 1000 * "y"
  records = _records(model, tmp_path, text)
  assert [x["nil"] for x in records] == [False, True]
  (line,) = capsys.readouterr().err.splitlines()
  assert "1 of 2 mentions have no candidates" in line and len(line) < 200


def test_an_entity_of_two_lines_is_told(model, tmp_path, capsys):
  link_model.save(tmp_path / "linker", model)
  own = tmp_path / "own.jsonl"
  own.write_text(3 * '{"name": "Bonn"}\n' + '{"name": "Rhine"}\n')
  link_model.load(str(tmp_path / "linker"), add_entities=str(own))
  said = capsys.readouterr().err
  assert "1 entities are there more than once" in said and "'Bonn'" in said


def test_files_of_one_name_are_told_apart(model, tmp_path):
  paths = []
  for folder in ("one", "two"):
    (tmp_path / folder).mkdir()
    paths.append(str(tmp_path / folder / "text.txt"))
    (tmp_path / folder / "text.txt").write_text("He saw Bonn.")
  config = Config(mode="link", model="x")
  assert [d.id for d in link.documents(model, config, paths)] == paths
  with pytest.raises(InputError, match="given twice"):
    link.documents(model, config, 2 * paths[:1])


def test_a_line_of_100_000_characters_is_linked(model, tmp_path):
  text = "x " * 50_000 + "so Bonn lies on the Rhine"
  records = _records(model, tmp_path, text)
  assert [x["surface"] for x in records] == ["Bonn", "Rhine"]
  assert records[0]["entity"] == "Bonn"


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


def test_the_threshold_is_the_smallest_that_is_close_to_the_best():
  p = np.linspace(0, 1, 2001)
  right = np.arange(2001) % 1000 < 1000 * p  # calibrated
  scores = np.stack([p, right, right | (np.arange(2001) % 2 == 0)], axis=1)
  values = [open_linking._f1(scores, t)[0] for t in open_linking._THRESHOLDS]
  chosen = open_linking.choose_threshold(scores)
  place = open_linking._THRESHOLDS.index(chosen)
  assert values[place] >= max(values) - 0.003
  assert place and values[place - 1] < max(values) - 0.003


def test_errors_by_kind_are_counted_once():
  # probability, right, linked, covered
  scores = np.array(
    [[0.9, 1, 1, 1], [0.8, 0, 1, 1], [0.2, 1, 1, 1], [0.7, 0, 0, 0],
     [0.9, 0, 1, 0], [0.1, 0, 0, 0]]
  )  # fmt: skip
  counts = open_linking.error_counts(scores, 0.5)
  assert list(counts.values()) == [1, 1, 1, 1]
