"""Figures of systems over many queries."""

import numpy as np

from experiments.nvse import figures


def test_units_are_averaged_before_the_bootstrap():
  tasks = [
    figures.Task(f"{u}{i}", u, "", None, None, None)
    for i, u in enumerate("aab")
  ]
  values = figures.by_unit(tasks, np.array([0.0, 1.0, 0.25]))
  np.testing.assert_allclose(values, [0.5, 0.25])


def test_one_unit_has_no_p():
  tasks = [figures.Task("a", "a", "", None, None, None)]
  measured = {
    name: figures.Figures({"map": np.array([value])}, np.zeros(1), [])
    for name, value in (("nvse", 1.0), ("bm25", 0.5))
  }
  lines = figures.compare(tasks, measured, "nvse")
  _, rows = figures.rows_of(lines, ["map"])
  assert rows[1][-1] == "+0.500 (one query, no p)"


def test_the_detectable_difference_is_2_8_standard_errors():
  rng = np.random.default_rng(0)
  values = rng.normal(0.1, 0.5, 400)
  tasks = [
    figures.Task(str(i), str(i), "", None, None, None) for i in range(400)
  ]
  measured = {
    name: figures.Figures({"map": x}, np.zeros(1), [])
    for name, x in (("nvse", values), ("bm25", np.zeros(400)))
  }
  lines = figures.compare(tasks, measured, "nvse")
  least = figures.detectable(lines[1].against["map"])
  assert abs(least - 2.8 * values.std() / 20) < 0.005
  _, rows = figures.rows_of(lines, ["map"])
  assert rows[1][-1].endswith(f"; {least:.3f})")
