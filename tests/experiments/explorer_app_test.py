"""The explorer as a web application: no request can break it."""

import asyncio
import json
import pathlib

import pytest

from experiments.explorer import app, batching
from experiments.explorer.answers import Question

httpx = pytest.importorskip("httpx")
_QUERY = [
  {"id": "composer1", "weight": 1.0},
  {"id": "composer2", "weight": 0.7},
  {"id": "river3", "weight": -0.5},
]
_POSTS = ("/api/expand", "/api/reasons", "/api/sentences")


@pytest.fixture(scope="module")
def client(explored):
  with httpx.Client(base_url=explored.url, timeout=60) as opened:
    yield opened


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
  ("/api/concept", {"features": -1}, "greater than or equal to 1"),
  ("/api/concept", {"relative": 1}, "relative should be a valid boolean"),
  ("/api/concept", {"system": "bm25"}, "system is not a field"),
  ("/api/concept", {"members": [{"id": "?"}]}, "no entity"),
  ("/api/reasons", {"entities": ["?"]}, "no entity"),
  ("/api/reasons", {"entities": ["river1"] * 2}, "twice"),
  ("/api/reasons", {"entities": ["river1"] * 101}, "at most 100"),
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
    if path != "/api/expand":
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
  folder = pathlib.Path(app.__file__).parent / "static"
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


def test_overload_is_told():
  class Stub:
    rank = None

    def question(self, *values):
      return Question(*values)

    def query(self, members):
      return members

  class Full(batching.Batcher):
    async def submit(self, job):
      raise batching.Busy

  full = Full()

  async def ask():
    transport = httpx.ASGITransport(app.build(Stub(), full))
    async with httpx.AsyncClient(
      transport=transport, base_url="http://localhost"
    ) as client:
      return await client.post("/api/expand", json={"members": [{"id": "x"}]})

  refused = asyncio.run(ask())
  assert refused.status_code == 503
  assert refused.headers["retry-after"] and refused.json()["error"]
  full.close()
