"""The curator's page: facts with proofs, verdicts, and its addresses."""

import asyncio
import json

import elkb_world
import pytest

from experiments.elkb import answers, curator
from repr_jax import errors

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette")


@pytest.fixture
def opened(tmp_path):
  first = "ann\twife\tbob\n"
  rows = f"{first}cid\twife\tdee\neve\tnear\tann\neve\tspouse\tdee\n"
  rules = "RelImp\twife\tspouse\nSymm\tspouse\n"
  kb, trained = elkb_world.read(
    tmp_path, train=rows, valid=first, test=first, rules=rules
  )

  def make():
    answering = answers.Answerer(kb, trained, answers.Grounds(kb), 1.0)
    return curator.Curator(answering, tmp_path / "decisions.tsv")

  return make


def test_an_entity_has_known_implied_and_predicted_facts(opened):
  page = opened()
  (ann,) = page.search(" ANN ")
  shown = page.entity(ann["id"])
  known = [(x["head"], x["relation"], x["tail"]) for x in shown["known"]]
  assert sorted(known) == [("ann", "wife", "bob"), ("eve", "near", "ann")]
  implied = {(x["head"], x["tail"]): x["proof"] for x in shown["implied"]}
  assert implied.keys() == {("ann", "bob"), ("bob", "ann")}
  assert len(implied["bob", "ann"]) == 2
  told = {tuple(x["fact"]) for x in shown["known"] + shown["implied"]}
  for fact in shown["predicted"]:
    assert tuple(fact["fact"]) not in told
    assert 0 <= fact["probability"] <= 1
  names = {x["name"] for x in shown["graph"]["nodes"]}
  assert names == {"ann", "bob", "eve"}
  assert sum(x["implied"] for x in shown["graph"]["edges"]) == 2
  assert page.search("") == []
  with pytest.raises(errors.InputError, match="no entity"):
    page.entity(99)


def test_verdicts_are_kept_taken_back_and_exported(opened, tmp_path):
  page = opened()
  fact = tuple(page.entity(0)["implied"][0]["fact"])
  page.decide(fact, "accept")
  page.decide((1, 0, 1), "reject")
  again = opened()
  assert again.counts() == {"accept": 1, "reject": 1}
  assert again.entity(0)["implied"][0]["verdict"] == "accept"
  kb = again.kb
  names = kb.entities[fact[0]], kb.relations[fact[1]], kb.entities[fact[2]]
  assert again.export() == "\t".join(names) + "\n"
  again.decide(fact, None)
  assert again.export() == "" and opened().counts()["accept"] == 0
  for bad, verdict in (((0, 0, 99), "accept"), ((0, 0, 0), "maybe")):
    with pytest.raises(errors.InputError):
      again.decide(bad, verdict)
  for text in ("a\tb\n", "nobody\twife\tann\taccept\n"):
    (tmp_path / "decisions.tsv").write_text(text)
    with pytest.raises(errors.InputError, match=r"decisions\.tsv:1"):
      opened()


def test_addresses_answer_and_refuse(opened):
  from experiments.elkb import curator_app

  page = opened()

  async def ask():
    transport = httpx.ASGITransport(curator_app.build(page))
    async with httpx.AsyncClient(
      transport=transport, base_url="http://localhost"
    ) as client:
      body = {"fact": [0, 0, 1], "verdict": "accept"}
      wrong = json.dumps({"fact": [0, 0]}).encode()
      kind = {"content-type": "application/json"}
      return [
        await client.get("/"),
        await client.get("/api/about"),
        await client.get("/api/search", params={"q": "a"}),
        await client.get("/api/entity", params={"id": "0"}),
        await client.post("/api/decide", json=body),
        await client.get("/api/export"),
        await client.get("/api/entity", params={"id": "x"}),
        await client.post("/api/decide", content=wrong, headers=kind),
        await client.post("/api/decide", content=b"fact=1"),
        await client.get("/api/nothing"),
        await client.get("/", headers={"host": "evil.example"}),
      ]

  *good, bad_id, bad_fact, bad_kind, missing, evil = asyncio.run(ask())
  assert [x.status_code for x in good] == [200] * 6
  assert "content-security-policy" in good[0].headers
  assert good[1].json()["rules"] == 2
  assert good[4].json()["verdicts"] == {"accept": 1, "reject": 0}
  assert good[5].text.count("\t") == 2
  codes = [bad_id, bad_fact, bad_kind, missing, evil]
  assert [x.status_code for x in codes] == [422, 422, 415, 404, 400]
  assert all(x.json()["error"] for x in codes)


@pytest.mark.long
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_in_a_browser(browser, axe, opened, width):
  from starlette.testclient import TestClient

  from experiments.elkb import curator_app

  served = opened()
  client = TestClient(curator_app.build(served), base_url="http://localhost")

  def respond(route):
    asked = route.request
    kind = {"content-type": asked.headers.get("content-type", "")}
    got = client.request(
      asked.method, asked.url, content=asked.post_data, headers=kind
    )
    route.fulfill(
      status=got.status_code, headers=dict(got.headers), body=got.content
    )

  context = browser.new_context(
    viewport={"width": width, "height": 800}, bypass_csp=True
  )
  page = context.new_page()
  problems = []
  page.on("pageerror", lambda error: problems.append(str(error)))
  page.route("http://localhost/**", respond)
  page.goto("http://localhost/")
  page.fill("#find", "nobody")
  page.wait_for_selector("#none:not([hidden])")
  page.fill("#find", "ann")
  page.click("#matches a")
  page.click("details summary")  # the proof of an implied fact
  page.click("button[aria-label^=accept]")
  page.click("button[aria-label^=reject] >> nth=1")
  page.wait_for_function(
    "document.getElementById('verdicts').textContent.startsWith("
    "'1 accepted, 1 rejected')"
  )
  assert len(served.export("accept").splitlines()) == 1
  assert page.locator("#graph a").count() >= 2
  assert page.evaluate("document.documentElement.scrollWidth") <= width
  page.add_script_tag(path=axe)
  checked = page.evaluate("async () => (await axe.run()).violations")
  assert not [(one["id"], one["nodes"][0]["html"]) for one in checked]
  assert not problems
  context.close()
