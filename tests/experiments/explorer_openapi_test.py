"""The OpenAPI document agrees with what the API accepts."""

import pytest

from experiments.explorer import schema

httpx = pytest.importorskip("httpx")


@pytest.fixture(scope="module")
def client(explored):
  with httpx.Client(base_url=explored.url, timeout=60) as opened:
    yield opened


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
      if "id" in values:
        values["id"] = "river1"
      if path == "/api/document":  # the sentences of this model have none
        assert client.get(path, params=values).status_code == 422
        continue
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
