"""The curator's page as an ASGI application."""

import json
import pathlib
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from experiments.elkb.curator import Curator
from experiments.run import web_app, web_server
from repr_jax.errors import InputError

_STATIC = pathlib.Path(__file__).parent / "static"
_LISTING = "the page is at /"


def build(
  curator: Curator, *, hosts: frozenset[str] | None = web_server.LOCAL
) -> Callable[..., Awaitable[None]]:
  """Builds the application.

  Args:
    curator: answers and keeps verdicts.
    hosts: host names that requests may use; None for any.
  """
  routes = web_app.static_routes(_STATIC)

  async def about(request: Request) -> Any:
    kb = curator.kb
    return {
      "name": kb.name,
      "system": curator.label,
      "entities": len(kb.entities),
      "relations": len(kb.relations),
      "rules": len(kb.rules),
      "verdicts": curator.counts(),
    }

  async def search(request: Request) -> Any:
    return {"entities": curator.search(request.query_params.get("q", "")[:200])}

  async def entity(request: Request) -> Any:
    text = request.query_params.get("id", "")
    if not text.isdecimal() or len(text) > 9:
      raise InputError(f"id is a whole number, not {text[:20]!r}")
    return await run_in_threadpool(curator.entity, int(text))

  async def decide(request: Request) -> Any:
    fact, verdict = _decision(await web_app.read_body(request))
    await run_in_threadpool(curator.decide, fact, verdict)
    return {"verdicts": curator.counts()}

  async def export(request: Request) -> Response:
    verdict = request.query_params.get("verdict", "accept")
    try:
      text = curator.export(verdict)
    except InputError as problem:
      return web_app.error(422, str(problem))
    name = f"{verdict}ed.tsv"
    return Response(
      text.encode(),
      headers={"Content-Disposition": f'attachment; filename="{name}"'},
      media_type="text/tab-separated-values; charset=utf-8",
    )

  for path, handler, method in (
    ("/api/about", about, "GET"),
    ("/api/search", search, "GET"),
    ("/api/entity", entity, "GET"),
    ("/api/decide", decide, "POST"),
  ):
    routes.append(Route(path, _json(handler), methods=[method]))
  routes.append(Route("/api/export", export))
  inner = Starlette(
    routes=routes, exception_handlers=web_app.error_handlers(_LISTING)
  )
  inner.router.redirect_slashes = False
  return web_app.guarded(inner, hosts)


def _json(handler):
  async def respond(request: Request) -> Response:
    try:
      return web_app.json_answer(await handler(request))
    except InputError as problem:
      return web_app.error(422, str(problem))

  return respond


def _decision(body: bytes) -> tuple[tuple[int, int, int], str | None]:
  """The fact and the verdict of a request."""
  try:
    value = json.loads(body)
  except ValueError:
    raise HTTPException(400, "the body is not JSON") from None
  fact = value.get("fact") if isinstance(value, dict) else None
  fact = fact if isinstance(fact, list) else []
  if len(fact) != 3 or not all(type(x) is int for x in fact):
    raise InputError("fact is a list of three whole numbers")
  verdict = value.get("verdict")
  if verdict is not None and not isinstance(verdict, str):
    raise InputError("verdict is accept, reject or null")
  return (fact[0], fact[1], fact[2]), verdict
