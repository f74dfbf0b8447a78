"""The cost model's own properties; `tests/mesh` holds it against programs."""

import itertools
import subprocess
import sys

import pytest

from launch import cost

_VIEW = cost.View(words=1 << 22, columns=1000, entries=1 << 28)


def test_what_grows_with_words_is_shared_by_devices():
  for few in (1, 2, 4):
    for held in (
      lambda p: cost.factor_memory(_VIEW, 100, p),
      lambda p: cost.combine_memory(1 << 22, 20, 100, 50, p),
      lambda p: cost.merge_memory(1 << 22, 100, 50, p),
    ):
      assert held(few) / held(2 * few) == pytest.approx(2, rel=0.1)
  # A product's sum over devices does not grow with the words.
  twice = _VIEW._replace(words=1 << 23, entries=1 << 29)
  assert cost.product_moved(twice, 100) == cost.product_moved(_VIEW, 100)


@pytest.mark.parametrize("name", list(cost.MACHINES))
def test_twice_the_devices_never_take_longer(name):
  machine = cost.MACHINES[name]
  stages = [
    cost.gcca_stages(machine._replace(devices=p), _VIEW, 20, 100, 50, 1.5)
    for p in (4, 8, 16)
  ]
  for slow, fast in itertools.pairwise(stages):
    for before, after in zip(slow, fast):
      assert after.seconds <= before.seconds
      assert after.memory <= before.memory


def test_the_default_says_what_does_not_fit():
  ended = subprocess.run(
    [sys.executable, "-m", "launch.cost"], capture_output=True, text=True
  )
  assert ended.returncode == 0, ended.stderr
  v5e, h100 = ended.stdout.strip().split("\n\n")
  assert "256 x v5e" in v5e
  assert "does not fit" not in v5e
  (line,) = [x for x in h100.splitlines() if "does not fit" in x]
  assert line.startswith("combine in memory")
