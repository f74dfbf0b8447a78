"""The explorer's API: answers of `--mode=query`, and no way to break it."""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from experiments.explorer import schema
from experiments.nvse import query as querying
from repr_jax.data.entities.query_text import Member
from repr_jax.setexp import SCORES, systems

httpx = pytest.importorskip("httpx")
_ROOT = pathlib.Path(__file__).parents[2]
_QUERY = [
  {"id": "composer1", "weight": 1.0},
  {"id": "composer2", "weight": 0.7},
  {"id": "river3", "weight": -0.5},
]
_RIVERS = {
  "water", "flows", "valley", "mouth", "delta", "basin", "bank", "stream",
}  # fmt: skip
_POSTS = ("/api/expand", "/api/rationale", "/api/sentences")


@pytest.fixture(scope="module")
def client(explored):
  with httpx.Client(base_url=explored.url, timeout=60) as opened:
    yield opened


def _post(client, path, **values):
  response = client.post(path, json=values)
  assert response.status_code == 200, response.text
  return response.json()


def _asked(opened, system, members, wish):
  pairs = [Member(x["id"], x["weight"]) for x in members]
  return querying.answer(opened.table, system, pairs, wish)


@pytest.mark.parametrize("name", systems.SYSTEMS)
def test_answers_are_those_of_the_command(explored, client, name):
  wish = querying.Wish(results=9, features=6, sentences=2)
  expected = _asked(explored.opened, explored.opened.system(name), _QUERY, wish)
  found = _post(client, "/api/expand", members=_QUERY, system=name, k=9)
  ids = [x["id"] for x in found["results"]]
  assert ids == [x.id for x in expected.results]
  np.testing.assert_allclose(
    [x["score"] for x in found["results"]],
    [x.score for x in expected.results],
    rtol=1e-4,
    atol=1e-5,
  )
  assert [x["rank"] for x in found["results"]] == list(range(1, 10))
  why = _post(client, "/api/rationale", members=_QUERY, system=name, features=6)
  assert [f"{x['block']}:{x['word']}" for x in why["rationale"]] == [
    x.name for x in expected.rationale
  ]
  told = _post(
    client, "/api/sentences", members=_QUERY, system=name, entities=ids,
    sentences=2,
  )["entities"]  # fmt: skip
  for entity, result in zip(told, expected.results):
    assert entity["id"] == result.id
    texts = [x["text"] for x in entity["sentences"]]
    assert texts == [x.sentence for x in result.justifications]


@pytest.mark.parametrize("ranking", SCORES)
def test_every_ranking_score_is_that_of_the_command(explored, client, ranking):
  opened = explored.opened
  how = dataclasses.replace(opened.ranking, score=ranking)
  system = systems.nvse(opened.model, how)
  wish = querying.Wish(results=8, sentences=1)
  expected = _asked(opened, system, _QUERY, wish)
  values = {"members": _QUERY, "ranking": ranking}
  found = _post(client, "/api/expand", **values, k=8)
  assert found["ranking"] == ranking
  ids = [x["id"] for x in found["results"]]
  assert ids == [x.id for x in expected.results]
  told = _post(client, "/api/sentences", **values, entities=ids)
  assert [x["sentences"][0]["text"] for x in told["entities"]] == [
    x.justifications[0].sentence for x in expected.results
  ]


def test_many_at_once_are_answered_together_and_compile_nothing(client):
  rng = np.random.default_rng(1)
  kinds = ("composer", "president", "river")
  queries = []
  for i in range(96):
    size = int(rng.integers(1, 12))
    chosen = rng.choice(12, size, replace=False)
    weights = rng.uniform(-1, 2, size).round(3)
    members = [
      {"id": f"{kinds[i % 3]}{j}", "weight": float(w)}
      for j, w in zip(chosen, weights)
    ]
    queries.append({"members": members, "k": int(rng.integers(1, 20))})
    if i % 5 == 0:
      queries[-1]["ranking"] = SCORES[i % len(SCORES)]
  before = client.get("/api/status").json()
  with concurrent.futures.ThreadPoolExecutor(24) as pool:
    together = list(
      pool.map(lambda x: _post(client, "/api/expand", **x), queries)
    )
  after = client.get("/api/status").json()
  assert after["compilations"] == 0
  assert after["requests"] - before["requests"] == 96
  assert after["calls"] - before["calls"] < 96
  for query, answer in list(zip(queries, together))[::7]:
    # One more entity that counts for nothing keeps the answer from memory.
    spare = {"id": "nasty id~&#", "weight": 0.0}
    alone = _post(
      client, "/api/expand", **{**query, "members": [*query["members"], spare]}
    )
    got = {x["id"]: x["score"] for x in answer["results"]}
    for result in alone["results"]:
      if result["id"] in got:
        assert got[result["id"]] == pytest.approx(result["score"], rel=1e-3)
    assert len(got) == min(query["k"], 37 - len(query["members"]) + 1)
    members = {x["id"] for x in query["members"]}
    assert not members & set(got)


def test_a_rationale_tells_what_changed(client):
  rivers = [{"id": "river1"}, {"id": "river2"}]
  why = _post(
    client, "/api/rationale", members=rivers, previous=_QUERY[:2], features=5
  )
  words = {x["word"] for x in why["rationale"]}
  entered = {x["word"] for x in why["entered"]}
  left = {x["word"] for x in why["left"]}
  assert entered and entered <= words
  assert left and not left & words
  assert all(x["features"] for x in why["concepts"])
  assert len({x["dimension"] for x in why["concepts"]}) == 4
  same = _post(client, "/api/rationale", members=rivers, previous=rivers)
  assert same["entered"] == same["left"] == []


def test_marks_stand_on_words_of_the_rationale(client):
  rivers = [{"id": "river1"}, {"id": "river2"}, {"id": "river3"}]
  told = _post(
    client, "/api/sentences", members=rivers, entities=["river5", "nasty id~&#"]
  )
  for entity in told["entities"]:
    (sentence,) = entity["sentences"]
    words = [sentence["text"][a:b] for a, b in sentence["marks"]]
    assert words
    assert set(words) <= _RIVERS


def test_entities_are_found(client):
  def find(text, **values):
    found = client.get("/api/entities", params={"q": text, **values}).json()
    return found["entities"]

  assert find("river 1")[0]["id"] == "river1"
  # Whole words come before longer ones.
  assert {x["id"] for x in find("1", limit=3)} == {
    "river1", "composer1", "president1",
  }  # fmt: skip
  assert find("RIVER", limit=3)[2]["match"] == "prefix"
  assert len(find("river", limit=3)) == 3
  near = find("compsoer 3")[0]
  assert (near["id"], near["match"]) == ("composer3", "similar")
  assert find("composer11")[0]["id"] == "composer11"
  assert find("mute")[0]["usable"] is False
  assert find("zzzzzz") == []


def test_a_pasted_list_is_resolved(client):
  text = 'River 1, composer2:2\n\n"River 3":-0.5\nCompsoer 4\nMute\n'
  found = _post(client, "/api/resolve", text=text)
  pairs = [(x["id"], x["weight"]) for x in found["found"]]
  assert pairs == [
    ("river1", 1.0), ("composer2", 2.0), ("river3", -0.5), ("mute", 1.0),
  ]  # fmt: skip
  (unknown,) = found["unknown"]
  assert unknown["name"] == "Compsoer 4"
  assert unknown["nearest"][0]["id"] == "composer4"
  for text in ("River 1\n" * 13, "a\x00b,c\n" * 7):
    response = client.post("/api/resolve", json={"text": text})
    assert response.status_code == 422, text
    assert response.json()["error"]
  nasty = _post(client, "/api/expand", members=[{"id": "nasty id~&#"}])
  name = nasty["members"][0]["name"]
  assert _post(client, "/api/resolve", text=name)["found"][0]["name"] == name


_BAD = [
  ({}, "members is missing"),
  ({"members": []}, "members should have at least 1 item"),
  ({"members": {}}, "members should be a valid list"),
  ({"members": ["river1"]}, "members[0] should be an object"),
  ({"members": [{"id": "river1", "wight": 1}]},
   "members[0].wight is not a field"),
  ({"members": [{"weight": 1}]}, "members[0].id is missing"),
  ({"members": [{"id": ""}]}, "members[0].id should have at least 1 character"),
  ({"members": [{"id": "river1", "weight": "1"}]},
   "members[0].weight should be a valid number"),
  ({"members": [{"id": "river1", "weight": True}]}, "number"),
  ({"members": [{"id": "river1", "weight": 101}]}, "less than or equal to 100"),
  ({"members": [{"id": "river1", "weight": 10**400}]},
   "members[0].weight should be a valid number"),
  ({"members": [{"id": "river1", "weight": 0}]}, "zero"),
  ({"members": [{"id": "river1"}, {"id": "river1"}]}, "twice"),
  ({"members": [{"id": "River 1"}]}, "no entity with the id"),
  ({"members": [{"id": "\ud800"}]}, "members[0].id should be a valid string"),
  ({"members": [{"id": "mute"}]}, "Mute has no features"),
  ({"members": [{"id": f"river{i}"} for i in range(12)] + [{"id": "mute"}]},
   "12 are allowed"),
  ({"members": _QUERY, "system": "google"}, "system should be 'nvse', 'bm25'"),
  ({"members": _QUERY, "system": None}, "system should be"),
  ({"members": _QUERY, "ranking": "best"}, "'features', 'xi'"),
  ({"members": _QUERY, "system": "bm25", "ranking": "xi"}, "for nvse"),
  ({"members": _QUERY, "path": "/etc/passwd"}, "path is not a field"),
]  # fmt: skip
_BAD_OWN = [
  ("/api/expand", {"k": 0}, "k should be greater than or equal to 1"),
  ("/api/expand", {"k": 101}, "k should be less than or equal to 100"),
  ("/api/expand", {"k": 5.0}, "k should be a valid integer"),
  ("/api/expand", {"k": "5"}, "k should be a valid integer"),
  ("/api/rationale", {"features": -1}, "greater than or equal to 1"),
  ("/api/rationale", {"relative": 1}, "relative should be a valid boolean"),
  ("/api/rationale", {"previous": [{"id": "?"}]}, "no entity"),
  ("/api/sentences", {"entities": ["?"]}, "no entity"),
  ("/api/sentences", {"entities": []}, "entities should have at least 1 item"),
  ("/api/sentences", {"entities": ["river1"] * 2}, "twice"),
  ("/api/sentences", {"entities": "river1"}, "entities should be a valid list"),
  (
    "/api/sentences",
    {"sentences": 11, "entities": ["river1"]},
    "sentences should be less than or equal to 10",
  ),
]


@pytest.mark.parametrize("path", _POSTS)
def test_bad_queries_are_refused(client, path):
  for values, message in _BAD:
    if path == "/api/sentences":
      values = {"entities": ["river9"], **values}
    # Surrogates and great numbers, which httpx would not send.
    body = json.dumps(values).encode()
    response = client.post(
      path, content=body, headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 422, (values, response.text)
    assert message in response.json()["error"], values


@pytest.mark.parametrize(("path", "values", "message"), _BAD_OWN)
def test_bad_values_are_refused(client, path, values, message):
  response = client.post(path, json={"members": _QUERY, **values})
  assert response.status_code == 422
  assert message in response.json()["error"]


@pytest.mark.parametrize(
  ("body", "status"),
  [
    (b"", 400),
    (b"{", 400),
    (b"[]", 400),
    (b"\xff\xfe", 400),
    (b'{"k": NaN}', 400),
    (b'{"k": 1, "k": 2}', 400),
    (b'{"members": [{"id": "river1", "weight": 1e999}]}', 422),
    (b"[" * 30_000, 400),
    (b'{"text": "' + b"a" * 70_000 + b'"}', 413),
  ],
)
def test_bodies_that_are_no_objects_are_refused(client, body, status):
  headers = {"Content-Type": "application/json; charset=utf-8"}
  response = client.post("/api/expand", content=body, headers=headers)
  assert response.status_code == status
  assert response.json()["error"]


@pytest.mark.parametrize(
  ("method", "path", "status"),
  [
    ("GET", "/nothing", 404),
    ("GET", "/api/expand/", 404),
    ("GET", "/static/app.js", 404),
    ("GET", "/../../setup.py", 404),
    ("GET", "/%2e%2e/%2e%2e/setup.py", 404),
    ("GET", "//etc/passwd", 404),
    ("GET", "/app.js%00", 404),
    ("GET", "/api/expand", 405),
    ("POST", "/api/entities", 405),
    ("DELETE", "/", 405),
    ("GET", "/api/entities", 422),
    ("GET", "/api/entities?q=", 422),
    ("GET", "/api/entities?q=a&q=b", 422),
    ("GET", "/api/entities?q=a&limit=1e1", 422),
    ("GET", "/api/entities?q=a&limit=-1", 422),
    ("GET", "/api/entities?q=a&limit=999", 422),
    ("GET", "/api/entities?q=a&x=1", 422),
    ("GET", "/api/model?x=1", 422),
    ("GET", f"/api/entities?q={'a' * 201}", 422),
    ("POST", "/api/expand?k=5", 422),
    ("POST", "/api/expand", 415),
  ],
)
def test_other_requests_are_refused(client, method, path, status):
  response = client.request(method, path)
  assert response.status_code == status
  assert response.json()["error"]
  _check_headers(response)


def test_a_strange_host_is_refused(client):
  for host in ("evil.example", "evil.example:80", "localhost.evil.example", ""):
    response = client.get("/api/model", headers={"Host": host})
    assert response.status_code == 400, host
  response = client.get("/api/model", headers={"Host": "localhost:1"})
  assert response.status_code == 200


def _check_headers(response):
  policy = response.headers["content-security-policy"]
  assert "default-src 'self'" in policy and "unsafe" not in policy
  assert "frame-ancestors 'none'" in policy
  assert response.headers["x-content-type-options"] == "nosniff"
  assert response.headers["referrer-policy"] == "no-referrer"
  assert "server" not in response.headers


def test_the_page_and_its_files_come_with_guarding_headers(client):
  page = client.get("/")
  assert page.headers["content-type"] == "text/html; charset=utf-8"
  _check_headers(page)
  named = {part.partition('"')[0] for part in page.text.split('="/')[1:]}
  assert "app.js" in named
  folder = pathlib.Path(schema.__file__).parent / "static"
  for path in folder.iterdir():
    if path.name != "index.html":
      response = client.get(f"/{path.name}")
      assert response.content == path.read_bytes()
      _check_headers(response)
      assert "innerHTML" not in response.text
      tag = {"If-None-Match": response.headers["etag"]}
      assert client.get(f"/{path.name}", headers=tag).status_code == 304
  known = {path.name for path in folder.iterdir()} | {"openapi.json"}
  assert named <= known


def _resolve(document, schema_):
  """A schema whose references are replaced by what they name."""
  if "$ref" in schema_:
    name = schema_["$ref"].rpartition("/")[2]
    schema_ = document["components"]["schemas"][name]
  found = {**schema_}
  if "items" in found:
    found["items"] = _resolve(document, found["items"])
  if "properties" in found:
    found["properties"] = {
      name: _resolve(document, x) for name, x in found["properties"].items()
    }
  return found


def _example(schema_):
  """A value that a schema allows."""
  if "enum" in schema_:
    return schema_["enum"][0]
  if schema_["type"] == "array":
    if schema_["items"]["type"] == "string":
      return ["river9"]
    return [{"id": "river1", "weight": 0.5}]
  usual = {"string": "river", "boolean": True}
  return usual.get(schema_["type"], schema_.get("minimum"))


def _violations(schema_):
  """Values that a schema forbids."""
  if schema_["type"] == "integer":
    return [schema_["minimum"] - 1, schema_["maximum"] + 1, 1.5, "1", None]
  if schema_["type"] == "boolean":
    return ["true", 1, None]
  if schema_["type"] == "array":
    return [[0], "x", {}, None, [{"id": "river1", "x": 1}]]
  long = "x" * (schema_.get("maxLength", 100) + 1)
  return [long, 1, None, ["x"]]


def test_the_document_agrees_with_what_is_taken(client):
  document = client.get("/openapi.json").json()
  assert document["openapi"].startswith("3.1")
  assert set(document["paths"]) == set(schema.ENDPOINTS)
  for path, methods in document["paths"].items():
    ((method, operation),) = methods.items()
    if method == "get":
      for parameter in operation["parameters"]:
        assert parameter["in"] == "query"
      fields = {x["name"]: x for x in operation["parameters"]}
      values = {k: _example(x["schema"]) for k, x in fields.items()}
      assert client.get(path, params=values).status_code == 200
      for name, parameter in fields.items():
        without = {k: x for k, x in values.items() if k != name}
        expected = 422 if parameter["required"] else 200
        assert client.get(path, params=without).status_code == expected
      continue
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    body = _resolve(document, body)
    assert body["additionalProperties"] is False
    values = {k: _example(x) for k, x in body["properties"].items()}
    assert client.post(path, json=values).status_code == 200, path
    least = {k: values[k] for k in body["required"]}
    assert client.post(path, json=least).status_code == 200, path
    for name, each in body["properties"].items():
      without = {k: x for k, x in values.items() if k != name}
      expected = 422 if name in body["required"] else 200
      assert client.post(path, json=without).status_code == expected
      for wrong in _violations(each):
        response = client.post(path, json={**values, name: wrong})
        assert response.status_code == 422, (path, name, wrong)


def _command(*arguments):
  return subprocess.run(
    [sys.executable, "-m", "experiments.explorer", *arguments],
    cwd=_ROOT,
    env={**os.environ, "REPR_JAX_SETTINGS": "off"},
    capture_output=True,
    text=True,
    timeout=120,
  )


def test_what_cannot_be_served_is_said_in_a_line(explored, tmp_path):
  port = explored.url.rstrip("/").rpartition(":")[2]
  taken = _command(f"--model={explored.model}", f"--port={port}")
  assert taken.returncode == 2
  assert f"--port={port} is in use" in taken.stderr
  missing = _command(f"--model={tmp_path / 'none'}", "--port=0")
  assert missing.returncode == 2
  assert "holds no trained model" in missing.stderr
  for ended in (taken, missing):
    assert "Traceback" not in ended.stderr
