"""Entities by what people type and paste."""

import pytest

httpx = pytest.importorskip("httpx")


@pytest.fixture(scope="module")
def client(explored):
  with httpx.Client(base_url=explored.url, timeout=60) as opened:
    yield opened


def _post(client, path, **values):
  response = client.post(path, json=values)
  assert response.status_code == 200, response.text
  return response.json()


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
  pairs = [(x["id"], x["weight"]) for x in found["entities"]]
  assert pairs == [
    ("river1", 1.0), ("composer2", 2.0), ("river3", -0.5), ("mute", 1.0),
  ]  # fmt: skip
  (unknown,) = found["unknown"]
  assert unknown["name"] == "Compsoer 4"
  assert unknown["nearest"][0]["id"] == "composer4"
  assert not unknown["ambiguous"]
  (unknown,) = _post(client, "/api/resolve", text="composer")["unknown"]
  assert unknown["ambiguous"] and len(unknown["nearest"]) > 1
  for text in ("River 1\n" * 13, "a\x00b,c\n" * 7):
    response = client.post("/api/resolve", json={"text": text})
    assert response.status_code == 422, text
    assert response.json()["error"]
  nasty = _post(client, "/api/expand", members=[{"id": "nasty id~&#"}])
  name = nasty["members"][0]["name"]
  assert _post(client, "/api/resolve", text=name)["entities"][0]["name"] == name
