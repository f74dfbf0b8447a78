"""The runs that a sweep file adds."""

import pytest

from launch import space


def _added(function) -> list[dict]:
  adder = space.Adder("nowhere.py")
  function(adder)
  return [flags for flags, _ in adder.runs]


def test_grid_list_and_seeds():
  found = _added(lambda add: add.grid(a=(1, 2), b="xy", c=range(2)))
  assert found == [
    {"a": a, "b": "xy", "c": c} for a in (1, 2) for c in range(2)
  ]
  runs = [{"a": 1}, {"b": 2}]
  assert _added(lambda add: add.list(runs)) == runs
  assert _added(lambda add: add.seeds(3, a=1))[2] == {"a": 1, "seed": 2}


def test_random_runs_are_the_same_in_every_start():
  def draw(count, number=0):
    return _added(
      lambda add: add.random(
        count,
        number,
        a=add.log_uniform(1e-3, 1),
        b=("u", "v"),
        c=7,
        seed=range(5),
      )
    )

  found = draw(40)
  assert draw(10) == found[:10] != draw(10, 1)
  assert all(1e-3 <= x["a"] <= 1 and x["c"] == 7 for x in found)
  assert {x["b"] for x in found} == {"u", "v"}
  # A quarter of the draws lies in each quarter of the logarithm.
  assert 3 <= sum(x["a"] < 1e-3**0.75 for x in found) <= 20
  with pytest.raises(ValueError, match="0 < low"):
    space.Adder.log_uniform(0, 1)
