"""The bench: who took part, in what time, and who could not."""

import pathlib
import sys

import pytest

from experiments.bench import harness, suites
from repr_jax import errors

_ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def cases(monkeypatch):
  here = str(pathlib.Path(__file__).parent)
  monkeypatch.setenv("PYTHONPATH", f"{_ROOT}:{here}")
  monkeypatch.syspath_prepend(here)
  import fake_suite

  yield {case.name: case for case in fake_suite.cases("small")}
  del sys.modules["fake_suite"]


def test_contenders_take_turns_and_are_compared(cases):
  found = harness.run_case("fake_suite", "small", cases["double"], repeats=3)
  ours, slow = found["ours"], found["slow"]
  assert len(ours["samples"]) == len(slow["samples"]) == 3
  assert "ratio" not in ours
  ratio = slow["ratio"]
  assert 1 < ratio["least"] <= ratio["median"] <= ratio["greatest"]
  assert ours["quality"] == {"error": 0.0}
  assert slow["quality"] == {"error": 1.5}
  text = harness.table({"double": found})
  assert text.splitlines()[0].split()[:2] == ["case", "contender"]
  assert f"({ratio['least']:.2f}..{ratio['greatest']:.2f})" in text


@pytest.mark.long
def test_missing_and_failing_contenders_are_rows(cases):
  found = harness.run_case("fake_suite", "small", cases["ill"], repeats=2)
  assert found["ours"]["median"] > 0
  assert found["missing"] == {"missing": "no_such_package"}
  assert found["crashing"] == {"error": "FloatingPointError: no convergence"}
  assert "signal 9" in found["dying"]["error"]
  text = harness.table({"ill": found})
  missing = "missing: no_such_package (pip install 'repr_jax[bench]')"
  assert missing in text
  assert "failed: FloatingPointError: no convergence" in text


def test_a_contender_that_does_not_end_is_given_up(cases):
  found = harness.run_case("fake_suite", "small", cases["endless"], timeout=4)
  assert found == {"ours": {"error": "took more than 4 s"}}


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_peak_memory_is_each_contenders_own(cases):
  found = harness.run_case("fake_suite", "small", cases["memory"], repeats=1)
  more = {name: record["increase_bytes"] for name, record in found.items()}
  # The setup took 480 MB for a moment, which is nobody's.
  assert more["ours"] < 100e6
  assert 200e6 < more["hungry"] < 340e6
  assert found["hungry"]["peak_bytes"] > more["hungry"]


@pytest.mark.long
def test_scaling_measures_each_size(cases):
  pytest.importorskip("matplotlib")
  chosen = [cases["scale"]]
  results = harness.run_suite("fake_suite", "small", chosen, repeats=1)
  small, large = (results[f"scale n={n}"]["ours"] for n in chosen[0].sizes)
  assert large["median"] > small["median"]
  assert large["increase_bytes"] > small["increase_bytes"] + 100e6
  picture = harness.scaling_plot(results, chosen)
  assert [len(axis.lines) for axis in picture.axes] == [1, 1]


def test_a_peer_that_no_extra_has_is_installed_apart():
  results = {"x": {"peer": {"missing": "mvlearn"}}}
  told = harness.table(results)
  assert "--no-deps mvlearn" in told and "[bench]" not in told


def test_padded_documents_are_ranked_as_by_the_loop():
  case, *_ = suites.choose("linking", "small", None, False)
  data = case.setup()
  for contender in case.contenders.values():
    assert case.quality(data, contender(data))["largest difference"] < 1e-4


def test_unknown_suites_and_cases_are_named():
  with pytest.raises(errors.InputError, match="no suite 'nothing'"):
    suites.choose("nothing", "small", None, False)
  assert "harness" not in suites.names()


def test_environment_has_machine_and_versions():
  around = harness.environment()
  assert around["cores"] >= 1
  assert "jax" in around["versions"]


@pytest.mark.parametrize("suite", suites.names())
def test_the_data_of_every_case_can_be_made(suite):
  chosen = suites.choose(suite, "small", None, False)
  assert chosen
  for case in chosen:
    case.setup()
