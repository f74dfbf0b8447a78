"""The explorer under mixed load, with invalid requests among it.

REPR_JAX_SOAK_SECONDS=600 makes it last ten minutes.
"""

import pytest
import tiers

from experiments.explorer import soak
from experiments.explorer.clients import LOST, Response


@pytest.mark.counted
def test_mixed_load_leaves_no_fault_and_no_growth(explored):
  parts = soak.soak(explored.url, tiers.SOAK_SECONDS, 6, parts=5)
  responses = [x for part in parts for x in part.responses]
  # Other tests run beside it: latencies of two seconds are not steady.
  slowdown = soak.MAX_SLOWDOWN if tiers.SOAK_SECONDS > 60 else 20
  assert soak.faults(parts, slowdown) == []
  kinds = {x.kind for x in responses}
  assert {
    "expand",
    "reasons",
    "concept",
    "sentences",
    "search",
    "paste",
  } <= kinds
  assert {"unknown entity", "no JSON", "too long", "deep", "host"} <= kinds
  assert any(x.status == 0 for x in responses)  # some clients left early
  assert all(part.resident > 2**20 for part in parts)


def test_faults_are_noticed():
  valid = Response("expand", True, 200, 0.1)
  invalid = Response("deep", False, 400, 0.1)
  left = Response("aborted", False, 0, 0.1)
  unread = Response("too long", False, LOST, 0.1)
  whole = [soak.Part([valid, invalid, left, unread], 1000)] * 5
  assert soak.faults(whole) == []
  for wrong in (
    valid._replace(status=500),
    valid._replace(status=422),
    valid._replace(status=LOST),
    invalid._replace(status=200),
    invalid._replace(status=500),
    invalid._replace(status=503),
  ):
    assert len(soak.faults([*whole, soak.Part([wrong], 1000)])) == 1
  assert "memory" in soak.faults([*whole, soak.Part([valid], 1051)])[0]
  slow = [soak.Part([valid._replace(latency=0.05 * i)], 1000) for i in range(9)]
  (line,) = soak.faults(slow)
  assert line == "p99 grew from 125 to 325 ms"
  assert soak.faults(slow, max_slowdown=3) == []
