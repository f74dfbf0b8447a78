"""The API as an OpenAPI document, written from the models of `schema`."""

from typing import Any

from pydantic.json_schema import models_json_schema

from experiments.explorer import schema

_PLACE = "#/components/schemas/"
_ERRORS = {
  "400": "Not JSON, or a strange host.",
  "404": "No such address.",
  "405": "Another method is needed.",
  "413": f"A body of more than {schema.MAX_BODY} bytes.",
  "415": "Not sent as application/json.",
  "422": "A value is missing, unknown or out of range.",
  "503": "Too many requests; try again.",
}


def document(version: str) -> dict[str, Any]:
  """Describes the API in OpenAPI 3.1."""
  kinds = [endpoint.request for endpoint in schema.ENDPOINTS.values()]
  _, described = models_json_schema(
    [(kind, "validation") for kind in kinds], ref_template=_PLACE + "{model}"
  )
  schemas = described["$defs"]
  schemas["Error"] = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
  }
  return {
    "openapi": "3.1.0",
    "info": {"title": "Explorer of entity sets", "version": version},
    "paths": {
      path: {endpoint.method.lower(): _operation(path, endpoint, schemas)}
      for path, endpoint in schema.ENDPOINTS.items()
    },
    "components": {"schemas": schemas},
  }


def _operation(
  path: str, endpoint: schema.Endpoint, schemas: dict[str, Any]
) -> dict[str, Any]:
  name = endpoint.request.__name__
  operation: dict[str, Any] = {
    "summary": endpoint.request.__doc__,
    "operationId": path.rpartition("/")[2],
    "responses": {
      "200": {"description": "The answer.", **_content({"type": "object"})},
      **{
        code: {"description": text, **_content({"$ref": f"{_PLACE}Error"})}
        for code, text in _ERRORS.items()
      },
    },
  }
  if endpoint.method == "POST":
    body = _content({"$ref": _PLACE + name})
    return {**operation, "requestBody": {"required": True, **body}}
  operation["parameters"] = [
    {
      "name": field,
      "in": "query",
      "description": described["description"],
      "required": field in schemas[name].get("required", ()),
      "schema": described,
    }
    for field, described in schemas[name].get("properties", {}).items()
  ]
  return operation


def _content(schema_: dict[str, Any]) -> dict[str, Any]:
  return {"content": {"application/json": {"schema": schema_}}}
