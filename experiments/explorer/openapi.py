"""The API as OpenAPI describes such, written from the table of `schema`."""

from collections.abc import Mapping
from typing import Any

from experiments.explorer import schema


def document(version: str) -> dict[str, Any]:
  """The API as an OpenAPI 3.1 document.

  Args:
    version: of this package.
  """
  paths = {}
  for path, (method, text, fields) in schema.ENDPOINTS.items():
    operation: dict[str, Any] = {
      "summary": text,
      "operationId": path.rpartition("/")[2],
      "responses": _RESPONSES,
    }
    if method == "GET":
      operation["parameters"] = [
        {
          "name": name,
          "in": "query",
          "description": field.text,
          "required": field.default is None,
          "schema": _schema(field),
        }
        for name, field in fields.items()
      ]
    else:
      operation["requestBody"] = {
        "required": True,
        "content": {"application/json": {"schema": _object(fields)}},
      }
    paths[path] = {method.lower(): operation}
  return {
    "openapi": "3.1.0",
    "info": {"title": "Explorer of entity sets", "version": version},
    "paths": paths,
    "components": {"schemas": {"Error": _ERROR}},
  }


_ERROR = {
  "type": "object",
  "properties": {"error": {"type": "string"}},
  "required": ["error"],
}
_FAILURE = {
  "application/json": {"schema": {"$ref": "#/components/schemas/Error"}}
}
_MEANINGS = {
  "400": "Not JSON, or a strange host.",
  "404": "No such address.",
  "405": "Another method is needed.",
  "413": f"A body of more than {schema.LARGEST_BODY} bytes.",
  "415": "Not sent as application/json.",
  "422": "A value is missing, unknown or out of range.",
  "503": "Too many requests; try again.",
}
_RESPONSES: dict[str, Any] = {
  "200": {
    "description": "The answer.",
    "content": {"application/json": {"schema": {"type": "object"}}},
  },
  **{
    code: {"description": text, "content": _FAILURE}
    for code, text in _MEANINGS.items()
  },
}


def _object(fields: Mapping[str, schema.Field]) -> dict[str, Any]:
  return {
    "type": "object",
    "additionalProperties": False,
    "required": [k for k, x in fields.items() if x.default is None],
    "properties": {
      name: {**_schema(field), "description": field.text}
      for name, field in fields.items()
    },
  }


def _schema(field: schema.Field) -> dict[str, Any]:
  text = {"type": "string", "minLength": 1, "maxLength": 1000}
  found: dict[str, Any]
  if field.kind == "boolean":
    found = {"type": "boolean"}
  elif field.kind == "integer":
    found = {"type": "integer", "minimum": field.least, "maximum": field.most}
  elif field.kind == "string":
    found = {"type": "string", "minLength": field.least}
    found["maxLength"] = field.most
    if field.choices:
      found = {"type": "string", "enum": list(field.choices)}
  else:
    weight = {
      "type": "number",
      "minimum": -schema.LARGEST_WEIGHT,
      "maximum": schema.LARGEST_WEIGHT,
      "default": 1.0,
    }
    member = {
      "type": "object",
      "additionalProperties": False,
      "required": ["id"],
      "properties": {"id": text, "weight": weight},
    }
    found = {
      "type": "array",
      "items": text if field.kind == "strings" else member,
      "minItems": field.least,
      "maxItems": field.most,
    }
  if field.default is not None:
    default = field.default
    found["default"] = list(default) if default == () else default
  return found
