"""The explorer under mixed load, with malformed requests among it.

REPR_JAX_SOAK_SECONDS=600 makes it last ten minutes.
"""

import pytest
import tiers

from experiments.explorer import soak


@pytest.mark.counted
def test_mixed_load_leaves_no_fault_and_no_growth(explored):
  parts = soak.soak(explored.url, tiers.SOAK_SECONDS, 6, parts=5)
  seen = [x for part in parts for x in part.seen]
  # Other tests come and go beside it: no figure of two seconds is steady.
  assert (
    soak.faults(parts, slower=soak.SLOWER if tiers.SOAK_SECONDS > 60 else 20)
    == []
  )
  kinds = {x.kind for x in seen}
  assert {"expand", "rationale", "sentences", "search", "paste"} <= kinds
  assert {"unknown entity", "no JSON", "too long", "deep", "host"} <= kinds
  assert any(x.status == 0 for x in seen)  # some clients left early
  assert all(part.resident > 2**20 for part in parts)


def test_faults_are_noticed():
  good = soak.Seen("expand", True, 200, 0.0, 0.1)
  bad = soak.Seen("deep", False, 400, 0.0, 0.1)
  left = soak.Seen("broken off", False, 0, 0.0, 0.1)
  whole = [soak.Part([good, bad, left], 1000)] * 5
  assert soak.faults(whole) == []
  for wrong in (
    good._replace(status=500),
    good._replace(status=422),
    bad._replace(status=200),
    bad._replace(status=500),
    bad._replace(status=503),
  ):
    assert len(soak.faults([*whole, soak.Part([wrong], 1000)])) == 1
  assert "memory" in soak.faults([*whole, soak.Part([good], 1051)])[0]
  slow = [soak.Part([good._replace(latency=0.05 * i)], 1000) for i in range(9)]
  (told,) = soak.faults(slow)
  assert told == "p99 grew from 125 to 325 ms"
  assert soak.faults(slow, slower=3) == []
