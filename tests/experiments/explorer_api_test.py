"""The explorer's API: rankings, their reasons, concepts and sentences."""

import asyncio
import concurrent.futures
import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from experiments.explorer import api, batching, schema
from experiments.explorer.answers import Question
from repr_jax.data.entities import features
from repr_jax.setexp import SCORES, systems
from repr_jax.setexp.query import best, exclude, make_query

httpx = pytest.importorskip("httpx")
_QUERY = [
  {"id": "composer1", "weight": 1.0},
  {"id": "composer2", "weight": 0.7},
  {"id": "river3", "weight": -0.5},
]
_RIVERS = {
  "water", "flows", "valley", "mouth", "delta", "basin", "bank", "stream",
}  # fmt: skip
_WAYS = [
  *(("nvse", score) for score in SCORES),
  *((name, "") for name in systems.SYSTEMS if name != "nvse"),
]


@pytest.fixture(scope="module")
def client(explored):
  with httpx.Client(base_url=explored.url, timeout=60) as opened:
    yield opened


def _post(client, path, **values):
  response = client.post(path, json=values)
  assert response.status_code == 200, response.text
  return response.json()


def _expected(explored, name, ranking):
  """The system in this process, and the query."""
  opened = explored.opened
  system = opened.system(name)
  if ranking:
    how = dataclasses.replace(opened.ranking, score=ranking)
    system = systems.nvse(opened.model, how)
  rows = [opened.table.rows[x["id"]] for x in _QUERY]
  query = make_query(opened.table.counts, rows, [x["weight"] for x in _QUERY])
  return system, query


@pytest.mark.parametrize(("name", "ranking"), _WAYS)
def test_answers_are_those_of_the_system(explored, client, name, ranking):
  system, query = _expected(explored, name, ranking)
  table = explored.opened.table
  scores = np.asarray(system.score_batch([query])[0])
  rows = best(exclude(scores, query), 9)
  asked = {"members": _QUERY, "system": name, "ranking": ranking}
  answer = _post(client, "/api/expand", **asked, k=9)
  assert answer["ranking"] == ranking
  ids = [x["id"] for x in answer["results"]]
  assert ids == [table.entities[row] for row in rows]
  np.testing.assert_allclose(
    [x["score"] for x in answer["results"]], scores[rows], rtol=1e-4, atol=1e-5
  )
  assert [x["rank"] for x in answer["results"]] == list(range(1, 10))
  told = _post(client, "/api/sentences", **asked, entities=ids[:3])
  for entity, row in zip(told["entities"], rows):
    own = np.array(table.sentences.of(row))
    each = system.score_rows(query, features.sentence_rows(table, own))
    (sentence,) = entity["sentences"]
    assert sentence["score"] == pytest.approx(each.max(), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(("name", "ranking"), _WAYS)
def test_shares_add_up_to_the_score_that_ranked(client, name, ranking):
  asked = {"members": _QUERY, "system": name, "ranking": ranking}
  results = _post(client, "/api/expand", **asked, k=8)["results"]
  ids = [x["id"] for x in results]
  why = _post(client, "/api/reasons", **asked, entities=ids, features=5)
  for entity, result in zip(why["entities"], results):
    assert entity["id"] == result["id"]
    assert entity["score"] == pytest.approx(result["score"], rel=1e-4, abs=1e-4)
  assert why["sum"]["score"] == pytest.approx(
    sum(x["score"] for x in results), rel=1e-4, abs=1e-3
  )
  for one in (*why["entities"], why["sum"]):
    assert 1 <= len(one["parts"]) <= 5
    parts = [*one["parts"], one["rest"]]
    assert sum(x["value"] for x in parts) == pytest.approx(one["score"])
    assert sum(x["share"] for x in parts) == pytest.approx(1)
    sizes = [abs(x["value"]) for x in one["parts"]]
    assert sizes == sorted(sizes, reverse=True)
  blocks = {x["block"] for x in why["sum"]["parts"]}
  by_dimension = name == "word2vecf" or ranking not in ("", "features")
  assert blocks == ({"dimension"} if by_dimension else {"word"})


def test_a_part_is_what_its_feature_adds(explored, client):
  rivers = [{"id": "river1"}, {"id": "river2"}]
  why = _post(
    client, "/api/reasons", members=rivers, system="bm25", entities=["river5"],
    features=100,
  )  # fmt: skip
  (entity,) = why["entities"]
  table = explored.opened.table
  query = make_query(table.counts, [table.rows[x["id"]] for x in rivers])
  row = table.counts[[table.rows["river5"]]].toarray()
  score_rows = explored.opened.system("bm25").score_rows
  for part in entity["parts"]:
    column = table.features.index(f"{part['block']}:{part['word']}")
    alone = np.zeros_like(row)
    alone[0, column] = row[0, column]
    # A feature outside the query keeps the length, which BM25 divides by.
    outside = int(np.argmin(query.rows.sum(axis=0)))
    alone[0, outside] += row.sum() - alone.sum()
    value = score_rows(query, sp.csr_array(alone))[0]
    assert part["value"] == pytest.approx(float(value), rel=1e-4)


def test_a_concept_has_features_and_dimensions(client):
  rivers = [{"id": "river1"}, {"id": "river2"}]
  found = _post(client, "/api/concept", members=rivers, features=8)
  words = {x["word"] for x in found["features"]}
  assert len(words & _RIVERS) >= 4
  weights = [x["weight"] for x in found["features"]]
  assert weights == sorted(weights, reverse=True)
  assert {x["dimension"] for x in found["dimensions"]} == {1, 2, 3, 4}
  assert all(x["features"] for x in found["dimensions"])
  relative = _post(client, "/api/concept", members=rivers, relative=True)
  assert relative["features"] != found["features"]


@pytest.mark.parametrize("ranking", ["features", "xi"])
def test_marks_stand_on_words_that_raised_the_score(client, ranking):
  rivers = [{"id": "river1"}, {"id": "river2"}, {"id": "river3"}]
  asked = {"members": rivers, "ranking": ranking}
  entities = ["river5", "nasty id~&#"]
  told = _post(client, "/api/sentences", **asked, entities=entities)
  why = _post(client, "/api/reasons", **asked, entities=entities, features=100)
  for entity, reasons in zip(told["entities"], why["entities"]):
    (sentence,) = entity["sentences"]
    words = {sentence["text"][a:b] for a, b in sentence["marks"]}
    assert words & _RIVERS
    if ranking == "features":
      assert words <= {x["word"] for x in reasons["parts"] if x["value"] > 0}


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


def test_equal_requests_are_answered_from_a_bounded_cache():
  class Stub:
    def question(self, *values):
      return Question(*values)

    def query(self, members):
      return members

    def rank(self, questions):
      return [question.members for question, _ in questions]

    def expansion(self, question, ranked, k):
      assert ranked == question.members
      return {"k": k}

  batcher = batching.Batcher()
  made = api.Api(Stub(), batcher, lambda: 0, cache_size=8)

  async def ask(ids):
    expand = made.handlers["/api/expand"]
    for i in ids:
      request = schema.Expand(members=[schema.Member(id=f"x{i}")], k=1 + i)
      assert await expand(request) == {"k": 1 + i}
    return await made.handlers["/api/status"](schema.Status())

  status = asyncio.run(ask(range(30)))
  assert (status["cached"], status["requests"]) == (8, 30)
  again = asyncio.run(ask(range(22, 30)))
  assert (again["cached"], again["requests"]) == (8, 30)
  batcher.close()
