"""Shared parts of web pages."""

import asyncio

import pytest

httpx = pytest.importorskip("httpx")
starlette = pytest.importorskip("starlette.applications")


def test_headers_errors_hosts_and_tags():
  from starlette.routing import Route

  from experiments.run import web_app

  async def body(request):
    return web_app.json_answer({"size": len(await web_app.read_body(request))})

  async def broken(request):
    raise ValueError("secret")

  inner = starlette.Starlette(
    routes=[
      Route("/", web_app.constant(b"hello", "text/plain")),
      Route("/body", body, methods=["POST"]),
      Route("/broken", broken),
    ],
    exception_handlers=web_app.error_handlers("see /"),
  )
  page = web_app.guarded(inner, frozenset({"localhost"}))

  async def ask():
    transport = httpx.ASGITransport(page, raise_app_exceptions=False)
    async with httpx.AsyncClient(
      transport=transport, base_url="http://localhost"
    ) as client:
      first = await client.get("/")
      kind = {"content-type": "application/json"}
      again = {"if-none-match": first.headers["etag"]}
      return [
        first,
        await client.get("/", headers=again),
        await client.post("/body", content=b"{}", headers=kind),
        await client.post(
          "/body", content=b"x" * (web_app.MAX_BODY + 1), headers=kind
        ),
        await client.get("/broken"),
        await client.get("/", headers={"host": "other"}),
        await client.get("/body"),
      ]

  answers = asyncio.run(ask())
  codes = [answer.status_code for answer in answers]
  assert codes == [200, 304, 200, 413, 500, 400, 405]
  assert all("x-frame-options" in answer.headers for answer in answers)
  assert answers[2].json() == {"size": 2}
  assert "secret" not in answers[4].text
