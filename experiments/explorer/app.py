"""The explorer as an ASGI application: pages, API, errors, headers.

The page's files are read once, into a table by address: no part of a request
ever names a file.
"""

import hashlib
import json
import pathlib
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

import repr_jax
from experiments.explorer import openapi, schema
from experiments.explorer.answers import Answers
from experiments.explorer.api import Api
from experiments.explorer.batching import Batcher, Busy
from repr_jax.errors import InputError

_STATIC = pathlib.Path(__file__).parent / "static"
_FILES = {
  "/": ("index.html", "text/html"),
  "/style.css": ("style.css", "text/css"),
  "/app.js": ("app.js", "text/javascript"),
  "/api.js": ("api.js", "text/javascript"),
  "/query.js": ("query.js", "text/javascript"),
  "/search.js": ("search.js", "text/javascript"),
  "/results.js": ("results.js", "text/javascript"),
  "/pages.js": ("pages.js", "text/javascript"),
  "/reasons.js": ("reasons.js", "text/javascript"),
  "/dom.js": ("dom.js", "text/javascript"),
  "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_HEADERS = {
  "Content-Security-Policy": (
    "default-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
  ),
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
}
LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})


def build(
  answers: Answers,
  batcher: Batcher,
  *,
  hosts: frozenset[str] | None = LOCAL,
  compilations: Callable[[], int] = lambda: 0,
) -> Callable[..., Awaitable[None]]:
  """Builds the application.

  Args:
    answers: about the model.
    batcher: computes them.
    hosts: host names that requests may use, against DNS rebinding; None for
      any.
    compilations: counts compiled programs, for /api/status.

  Returns:
    An ASGI application.
  """
  api = Api(answers, batcher, compilations)
  routes = [
    Route(path, _endpoint(api.handlers[path], endpoint), methods=[endpoint[0]])
    for path, endpoint in schema.ENDPOINTS.items()
  ]
  document = json.dumps(openapi.document(repr_jax.__version__)).encode()
  routes.append(Route("/openapi.json", _constant(document, "application/json")))
  for path, (name, kind) in _FILES.items():
    routes.append(Route(path, _constant((_STATIC / name).read_bytes(), kind)))
  inner = Starlette(
    routes=routes,
    exception_handlers={HTTPException: _http_error, Exception: _failure},
  )
  inner.router.redirect_slashes = False
  return _guarded(inner, hosts)


def _endpoint(handler, endpoint: schema.Endpoint):
  async def respond(request: Request) -> Response:
    try:
      if endpoint.method == "GET":
        pairs = request.query_params.multi_items()
        values: schema.Request = schema.check_text(endpoint.request, pairs)
      else:
        if request.query_params:
          raise InputError("values belong into the body, not the address")
        values = schema.check(endpoint.request, await _body(request))
      return _json(await handler(values))
    except InputError as error:
      return _error(422, str(error))
    except Busy:
      return _error(503, "too many requests wait; try again in a moment")

  return respond


async def _body(request: Request) -> dict[str, Any]:
  kind = request.headers.get("content-type", "").partition(";")[0]
  if kind.strip().lower() != "application/json":
    raise HTTPException(415, "send the values as application/json")
  body = bytearray()
  try:
    async for chunk in request.stream():
      body += chunk
      if len(body) > schema.MAX_BODY:
        raise HTTPException(
          413, f"the body has more than {schema.MAX_BODY} bytes"
        )
  except ClientDisconnect:
    raise HTTPException(400, "the body ended early") from None
  try:
    return schema.read_json(bytes(body))
  except InputError as error:
    raise HTTPException(400, str(error)) from None


def _constant(content: bytes, kind: str):
  tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
  headers = {"ETag": tag, "Cache-Control": "no-cache"}
  if kind.startswith("text/"):
    kind += "; charset=utf-8"

  async def respond(request: Request) -> Response:
    if request.headers.get("if-none-match") == tag:
      return Response(status_code=304, headers=headers)
    return Response(content, media_type=kind, headers=headers)

  return respond


def _json(value: Any, status: int = 200) -> Response:
  # ASCII only: whatever a name holds, it can be sent.
  content = json.dumps(value, allow_nan=False).encode("ascii")
  headers = {"Cache-Control": "no-store"}
  if status == 503:
    headers["Retry-After"] = "1"
  return Response(content, status, headers, "application/json")


def _error(status: int, message: str) -> Response:
  return _json({"error": message}, status)


async def _http_error(request: Request, error: Exception) -> Response:
  assert isinstance(error, HTTPException)
  message = error.detail
  if error.status_code == 404:
    message = "there is nothing at this address; /openapi.json lists what is"
  if error.status_code == 405:
    allowed = (error.headers or {}).get("Allow", "")
    message = f"{request.method} is not for this address; use {allowed}"
  response = _error(error.status_code, message)
  response.headers.update(error.headers or {})
  return response


async def _failure(request: Request, error: Exception) -> Response:
  """The log says what happened, the answer does not."""
  del request, error
  return _error(500, "this is a fault of the server; its log says more")


def _guarded(inner, hosts: frozenset[str] | None):
  """The application behind a check of the host, with headers on all."""
  extra = [
    (name.lower().encode(), value.encode()) for name, value in _HEADERS.items()
  ]

  async def application(scope, receive, send):
    if scope["type"] != "http":
      return

    async def send_more(message):
      if message["type"] == "http.response.start":
        message = {**message, "headers": [*message["headers"], *extra]}
      await send(message)

    given = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
    name = given.rpartition(":")[0] if given[-1:] != "]" else given
    if hosts is not None and (name or given).lower() not in hosts:
      refusal = _error(400, "this server does not go by that host name")
      await refusal(scope, receive, send_more)
      return
    await inner(scope, receive, send_more)

  return application
