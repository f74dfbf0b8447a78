"""Shared parts of web pages: answers, errors, headers, host names.

Files of a page are read once, into a table by address: no part of a request
ever names a file.
"""

import hashlib
import json
import pathlib
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

MAX_BODY = 1_000_000
_POLICY = (
  "default-src 'self'; object-src 'none'; base-uri 'none'; "
  "form-action 'none'; frame-ancestors 'none'"
)
_KINDS = {
  ".html": "text/html",
  ".css": "text/css",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
}
_HEADERS = {
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
}


async def read_body(request: Request, limit: int = MAX_BODY) -> bytes:
  """The JSON text that a request sends.

  Args:
    request: the request.
    limit: most bytes.

  Returns:
    Its body.

  Raises:
    HTTPException: it is not JSON by its type, too long, or ended early.
  """
  kind = request.headers.get("content-type", "").partition(";")[0]
  if kind.strip().lower() != "application/json":
    raise HTTPException(415, "send the values as application/json")
  body = bytearray()
  try:
    async for chunk in request.stream():
      body += chunk
      if len(body) > limit:
        raise HTTPException(413, f"the body has more than {limit} bytes")
  except ClientDisconnect:
    raise HTTPException(400, "the body ended early") from None
  return bytes(body)


def constant(
  content: bytes, kind: str
) -> Callable[[Request], Awaitable[Response]]:
  """An endpoint that always answers the same.

  Args:
    content: of the answer.
    kind: its media type.

  Returns:
    The endpoint.
  """
  tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
  headers = {"ETag": tag, "Cache-Control": "no-cache"}
  if kind.startswith("text/"):
    kind += "; charset=utf-8"

  async def respond(request: Request) -> Response:
    if request.headers.get("if-none-match") == tag:
      return Response(status_code=304, headers=headers)
    return Response(content, media_type=kind, headers=headers)

  return respond


def static_routes(folder: pathlib.Path) -> list[Route]:
  """Routes of the files of a folder, read now; index.html is at /."""
  return [
    Route(
      "/" if path.name == "index.html" else f"/{path.name}",
      constant(path.read_bytes(), _KINDS[path.suffix]),
    )
    for path in sorted(folder.iterdir())
  ]


def json_answer(value: Any, status: int = 200) -> Response:
  """An answer in JSON.

  Args:
    value: what it says.
    status: of HTTP.

  Returns:
    The answer.
  """
  # ASCII only: whatever a name holds, it can be sent.
  content = json.dumps(value, allow_nan=False).encode("ascii")
  headers = {"Cache-Control": "no-store"}
  if status == 503:
    headers["Retry-After"] = "1"
  return Response(content, status, headers, "application/json")


def error(status: int, message: str) -> Response:
  """An answer that says what is wrong."""
  return json_answer({"error": message}, status)


def error_handlers(listing: str) -> dict[Any, Any]:
  """Handlers of errors for `Starlette`.

  Args:
    listing: says where the addresses are listed.

  Returns:
    Handlers by kind of error.
  """

  async def http_error(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    message = problem.detail
    if problem.status_code == 404:
      message = f"there is nothing at this address; {listing}"
    if problem.status_code == 405:
      allowed = (problem.headers or {}).get("Allow", "")
      message = f"{request.method} is not for this address; use {allowed}"
    response = error(problem.status_code, message)
    response.headers.update(problem.headers or {})
    return response

  async def failure(request: Request, problem: Exception) -> Response:
    """The log says what happened, the answer does not."""
    del request, problem
    return error(500, "this is a fault of the server; its log says more")

  return {HTTPException: http_error, Exception: failure}


def guarded(
  inner: Callable[..., Any],
  hosts: frozenset[str] | None,
  policy: str = _POLICY,
) -> Callable[..., Awaitable[None]]:
  """An application behind a check of the host, with headers on all answers.

  Args:
    inner: the application.
    hosts: host names that requests may use; None for any.
    policy: the content security policy of its pages.

  Returns:
    The application.
  """
  headers = {**_HEADERS, "Content-Security-Policy": policy}
  extra = [
    (name.lower().encode(), value.encode()) for name, value in headers.items()
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
      refusal = error(400, "this server does not answer to that host name")
      await refusal(scope, receive, send_more)
      return
    await inner(scope, receive, send_more)

  return application
