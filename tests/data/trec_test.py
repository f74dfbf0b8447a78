"""TREC files: round trips and bad lines."""

import gzip

import pytest

from repr_jax import errors
from repr_jax.data import trec


@pytest.mark.parametrize("name", ["run.txt", "run.txt.gz"])
def test_run_round_trip(tmp_path, name):
  run = {"q1": {"a": 0.1, "b": 1e-17, "c": -3.5}, "q2": {"a": 1 / 3}}
  path = tmp_path / name
  trec.write_run(path, run, tag="mine")
  assert trec.read_run(path) == run
  opened = gzip.open if name.endswith("gz") else open
  with opened(path, "rt") as stream:
    assert stream.readline() == "q1 Q0 a 1 0.1 mine\n"


def test_ties_are_written_in_trec_eval_order(tmp_path):
  trec.write_run(tmp_path / "run", {"q": {"a": 1.0, "c": 1.0, "b": 2.0}})
  documents = [
    line.split()[2] for line in (tmp_path / "run").read_text().splitlines()
  ]
  assert documents == ["b", "c", "a"]


@pytest.mark.parametrize(
  "bad", ["q Q0 d 1 0.5", "q Q0 d 1 x t", "q Q0 d 1 nan t", "q Q0 a 1 1 t"]
)
def test_bad_run_line_is_named(tmp_path, bad):
  path = tmp_path / "run"
  path.write_text(f"q Q0 a 1 0.5 t\n\n{bad}\n")
  with pytest.raises(errors.InputError, match=r"run:3: "):
    trec.read_run(path)


@pytest.mark.parametrize("bad", ["q 0 d", "q 0 d 1.5", "q 0 a 1"])
def test_bad_judgment_line_is_named(tmp_path, bad):
  path = tmp_path / "qrels"
  path.write_text(f"q 0 a 0\n{bad}\n")
  with pytest.raises(errors.InputError, match=r"qrels:2: "):
    trec.read_judgments(path)


@pytest.mark.parametrize(
  "run", [{"q 1": {"a": 1.0}}, {"q": {"": 1.0}}, {"q": {"a": float("inf")}}]
)
def test_what_cannot_be_read_back_is_not_written(tmp_path, run):
  with pytest.raises(errors.InputError, match=r"cannot be written|not finite"):
    trec.write_run(tmp_path / "run", run)
  assert not (tmp_path / "run").exists()


def test_any_names_become_different_ones_that_a_file_can_hold(tmp_path):
  names = ["a b", "a_b", "a\tb", "c", "", " ", "\ufeffc", " \ufeff c", "c"]
  found = trec.plain_names(names)
  assert list(found) == [
    "a_b",
    "c",
    "a b",
    "a\tb",
    "",
    " ",
    "\ufeffc",
    " \ufeff c",
  ]
  assert (found["a_b"], found["c"]) == ("a_b", "c")
  assert len(set(found.values())) == len(found)
  run = {name: dict.fromkeys(found.values(), 1.0) for name in found.values()}
  trec.write_run(tmp_path / "run", run)
  assert trec.read_run(tmp_path / "run") == run
