"""Flags of an experiment, parsed for each run alone."""

from launch import inspection


def test_a_run_has_no_flag_of_the_run_before():
  runs = [["--x=2"], ["--kind=b"], ["--x=3"], [], ["--seed=1"]]
  answer = inspection.ask("fake_run", runs)
  found = [(x["x"], x["kind"], x["seed"]) for x in answer.flags]
  assert found == [
    (2.0, "a", 0), (0.5, "b", 0), (3.0, "a", 0), (0.5, "a", 0), (0.5, "a", 1),
  ]  # fmt: skip
