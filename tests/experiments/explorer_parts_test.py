"""Parts of the explorer alone: the thread that computes, and the port."""

import asyncio
import importlib.util
import threading

import pytest

from experiments.explorer import batching, server
from repr_jax.errors import InputError

httpx = pytest.importorskip("httpx")


def test_jobs_of_a_kind_share_a_call_and_too_many_are_refused():
  batcher = batching.Batcher(largest=3, waiting=5)
  gate, calls = threading.Event(), []

  def run(values):
    gate.wait(10)
    calls.append(list(values))
    if "bad" in values:
      raise InputError("bad")
    return [x * 2 for x in values]

  async def main():
    job = batching.Job
    first = asyncio.create_task(batcher.submit(job("a", run, 1)))
    while batcher.counts.calls == 0:
      await asyncio.sleep(0.001)
    later = [
      asyncio.create_task(batcher.submit(job(kind, run, value)))
      for kind, value in
      [("a", 2), ("b", 3), ("a", 4), (None, 5), ("c", "bad")]
    ]  # fmt: skip
    await asyncio.sleep(0)
    with pytest.raises(batching.Busy):
      await batcher.submit(job("a", run, 7))
    later[1].cancel()
    gate.set()
    assert await first == 2
    assert [await later[i] for i in (0, 2, 3)] == [4, 8, 10]
    with pytest.raises(InputError):
      await later[4]

  asyncio.run(main())
  assert calls == [[1], [2, 4], [5], ["bad"]]
  assert batcher.counts.refused == 1 and batcher.counts.largest == 2
  batcher.close()


def test_overload_is_told_and_memory_is_bounded(monkeypatch):
  from experiments.explorer import app

  class Stub:
    def question(self, *values):
      from experiments.explorer.answers import Question

      return Question(*values)

    def check(self, question):
      return question

    def expand(self, questions):
      return [{"k": k} for _, _, k in questions]

  class Full(batching.Batcher):
    async def submit(self, job):
      raise batching.Busy

  batcher, full = batching.Batcher(), Full()
  monkeypatch.setattr(app, "_KEPT", 8)
  made = []
  plain = app._Api.__init__

  def note(self, *values):
    made.append(self)
    plain(self, *values)

  monkeypatch.setattr(app._Api, "__init__", note)

  async def ask(application, number):
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(
      transport=transport, base_url="http://localhost"
    ) as client:
      return [
        await client.post(
          "/api/expand", json={"members": [{"id": "x"}], "k": 1 + i % 50}
        )
        for i in range(number)
      ]

  found = asyncio.run(ask(app.build(Stub(), batcher), 60))
  assert [x.json()["k"] for x in found] == [1 + i % 50 for i in range(60)]
  assert len(made[0]._kept) == 8
  (refused,) = asyncio.run(ask(app.build(Stub(), full), 1))
  assert refused.status_code == 503
  assert refused.headers["retry-after"] and refused.json()["error"]
  batcher.close()
  full.close()


def test_hosts_ports_and_packages_are_checked(monkeypatch):
  with pytest.raises(InputError, match="--host"):
    server.bind("no.such.host.invalid", 0)
  opened = server.bind("127.0.0.1", 0)
  with opened, pytest.raises(InputError, match="in use"):
    server.bind("127.0.0.1", opened.getsockname()[1])
  server.require()
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  with pytest.raises(InputError, match=r"pip install 'repr_jax\[serve\]'"):
    server.require()
