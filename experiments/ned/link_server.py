"""The linker as a page and a JSON API, served until a signal."""

import asyncio
import functools
import html
import json
import socket
import urllib.parse
from collections.abc import Awaitable, Callable
from typing import Any

from experiments.ned import link, link_model, link_page
from experiments.ned.link_model import LinkModel
from experiments.run import web_server
from repr_jax.errors import InputError

MAX_BYTES = 1 << 20  # of a request
_TITLE = "Links of a text"
_POLICY = (
  "default-src 'none'; style-src 'self'; base-uri 'none'; "
  "form-action 'self'; frame-ancestors 'none'"
)


def answer(model: LinkModel, text: str):
  """Links one text.

  Args:
    text: the text; an empty one is an `InputError`.

  Returns:
    The documents, of which there is one, and the records of its mentions.
  """
  if not text.strip():
    raise InputError("the text is empty")
  documents = [link.from_text(model, "text", text)]
  linked = link_model.link(model, documents)
  return documents, list(link.records(model, linked))


def build(
  model: LinkModel, hosts: frozenset[str] | None = web_server.LOCAL
) -> Callable[..., Awaitable[None]]:
  """Builds the application.

  Args:
    hosts: host names that requests may use; None for any.

  Returns:
    An ASGI application: / is the page, POST /api/link takes
    {"text": "..."} and gives {"mentions": [...]}.
  """
  from starlette.applications import Starlette
  from starlette.responses import HTMLResponse, JSONResponse, Response
  from starlette.routing import Route

  from experiments.run import web_app

  lock = asyncio.Lock()  # one text at a time: each uses all cores

  async def computed(text: str):
    async with lock:
      return await asyncio.to_thread(functools.partial(answer, model, text))

  async def body_of(request) -> str:
    body = bytearray()
    async for chunk in request.stream():
      body += chunk
      if len(body) > MAX_BYTES:
        raise InputError(f"the text has more than {MAX_BYTES:,} bytes")
    try:
      return body.decode()
    except UnicodeDecodeError:
      raise InputError("the text is not UTF-8") from None

  async def show(request) -> Response:
    text, content, status = "", "", 200
    if request.method == "POST":
      try:
        fields = urllib.parse.parse_qs(await body_of(request))
        text = fields.get("text", [""])[0].replace("\r\n", "\n")
        content = link_page.body(*await computed(text))
      except InputError as error:
        content = f'<p class="error">{html.escape(str(error))}</p>'
        status = 422
    form = (
      '<form method="post" action="/"><textarea name="text" rows="8" '
      f'aria-label="Text">{html.escape(text)}</textarea>'
      '<p><button type="submit">Link</button></p></form>'
    )
    return HTMLResponse(link_page.page(form + content, _TITLE), status)

  async def api(request) -> Response:
    try:
      body = await body_of(request)
      given: Any = None
      try:
        given = json.loads(body)
      except ValueError:
        raise InputError("the body is not JSON") from None
      if not isinstance(given, dict) or set(given) != {"text"}:
        raise InputError('expected {"text": "..."}')
      if not isinstance(given["text"], str):
        raise InputError('"text" must be a text')
      _, records = await computed(given["text"])
    except InputError as error:
      return JSONResponse({"error": str(error)}, 422)
    return JSONResponse({"mentions": records})

  async def style(request) -> Response:
    del request
    return Response(link_page.STYLE, media_type="text/css")

  inner = Starlette(
    routes=[
      Route("/", show, methods=["GET", "POST"]),
      Route("/api/link", api, methods=["POST"]),
      Route("/style.css", style),
    ]
  )
  return web_app.guarded(inner, hosts, _POLICY)


def run(
  model: LinkModel, listening: socket.socket, say: Callable[[str], None]
) -> None:
  """Serves until SIGINT or SIGTERM.

  Args:
    listening: from `web_server.bind`.
  """
  application = build(model, web_server.host_names(listening))
  web_server.serve(application, listening, say, "link texts")
