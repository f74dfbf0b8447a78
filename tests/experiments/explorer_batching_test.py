"""The thread that computes for all requests."""

import asyncio
import threading

import pytest

from experiments.explorer import batching
from repr_jax.errors import InputError


def test_jobs_of_a_kind_share_a_call_and_too_many_are_refused():
  batcher = batching.Batcher(max_batch=3, max_waiting=5)
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
