"""The explorer as an ASGI application: pages, API, errors, headers.

The page's files are read once, into a table by address: no part of a request
ever names a file.
"""

import json
import pathlib
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import repr_jax
from experiments.explorer import openapi, schema
from experiments.explorer.answers import Answers
from experiments.explorer.api import Api
from experiments.explorer.batching import Batcher, Busy
from experiments.run import web_app, web_server
from repr_jax.errors import InputError

_STATIC = pathlib.Path(__file__).parent / "static"


def build(
  answers: Answers,
  batcher: Batcher,
  *,
  hosts: frozenset[str] | None = web_server.LOCAL,
  compilations: Callable[[], int] = lambda: 0,
) -> Callable[..., Awaitable[None]]:
  """Builds the application.

  Args:
    answers: about the model.
    hosts: host names that requests may use, against DNS rebinding; None for
      any.
    compilations: counts compiled programs, for /api/status.
  """
  api = Api(answers, batcher, compilations)
  routes = [
    Route(path, _endpoint(api.handlers[path], endpoint), methods=[endpoint[0]])
    for path, endpoint in schema.ENDPOINTS.items()
  ]
  document = json.dumps(openapi.document(repr_jax.__version__)).encode()
  routes.append(
    Route("/openapi.json", web_app.constant(document, "application/json"))
  )
  routes += web_app.static_routes(_STATIC)
  inner = Starlette(
    routes=routes,
    exception_handlers=web_app.error_handlers("see /openapi.json"),
  )
  inner.router.redirect_slashes = False
  return web_app.guarded(inner, hosts)


def _endpoint(handler, endpoint: schema.Endpoint):
  async def respond(request: Request) -> Response:
    try:
      if endpoint.method == "GET":
        pairs = request.query_params.multi_items()
        values: schema.Request = schema.check_text(endpoint.request, pairs)
      else:
        if request.query_params:
          raise InputError("send values in the body, not in the address")
        values = schema.check(endpoint.request, await _body(request))
      return web_app.json_answer(await handler(values))
    except InputError as error:
      return web_app.error(422, str(error))
    except Busy:
      return web_app.error(503, "too many requests wait; try again in a moment")

  return respond


async def _body(request: Request) -> dict[str, Any]:
  try:
    return schema.read_json(await web_app.read_body(request, schema.MAX_BODY))
  except InputError as error:
    raise HTTPException(400, str(error)) from None
