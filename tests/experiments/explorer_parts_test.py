"""Parts of the explorer alone: the thread that computes, and the port."""

import asyncio
import importlib.util
import threading

import numpy as np
import pytest

from experiments.explorer import batching, concepts, server
from repr_jax.errors import InputError
from repr_jax.ops import precision

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


@pytest.mark.parametrize("multilabel", [False, True])
def test_dimensions_are_ordered_by_what_a_query_owes_to_them(multilabel):
  rng = np.random.default_rng(0)
  decoder = rng.standard_normal((30, 7))
  usual = rng.standard_normal(6)
  # So near that the divergence is the first term of its series.
  concept = usual + 1e-2 * rng.standard_normal(6) * np.arange(1, 7)

  def p(z):
    logits = decoder[:, :-1] @ z + decoder[:, -1]
    if multilabel:
      return 1 / (1 + np.exp(-logits))
    return np.exp(logits) / np.exp(logits).sum()

  def divergence(dimension):
    z = concept.copy()
    z[dimension] = usual[dimension]
    gains = p(concept) * np.log(p(concept) / p(z))
    if not multilabel:
      return gains.sum(), gains
    against = (1 - p(concept)) * np.log((1 - p(concept)) / (1 - p(z)))
    return (gains + against).sum(), gains

  with precision.enable_x64():
    chosen, gains, features = concepts._active(
      multilabel, decoder, usual, concept
    )
  order = np.argsort([-divergence(i)[0] for i in range(6)])
  assert chosen.tolist() == order[:5].tolist()
  for dimension, values, places in zip(chosen, gains, features):
    expected = divergence(int(dimension))[1]
    best = np.argsort(-expected)[: len(places)]
    assert places.tolist() == best.tolist()
    np.testing.assert_allclose(values, expected[best], rtol=1e-5)


def test_overload_is_told_and_memory_is_bounded(monkeypatch):
  from experiments.explorer import app

  class Stub:
    def question(self, *values):
      from experiments.explorer.answers import Question

      return Question(*values)

    def check(self, question):
      return question

    def tops(self, questions):
      return [question.members for question, _ in questions]

    def expansion(self, question, top, k):
      assert top == question.members
      return {"k": k}

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
          "/api/expand", json={"members": [{"id": f"x{i}"}], "k": 1 + i % 50}
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
