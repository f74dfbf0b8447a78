"""Lets sweeps of the tests find the experiments beside them."""

import os
import pathlib
import sys
import textwrap
from collections.abc import Callable

import pytest

_HERE = pathlib.Path(__file__).parent
_ROOT = _HERE.parents[1]
sys.path.insert(0, str(_HERE))


@pytest.fixture(autouse=True)
def _paths(monkeypatch):
  given = os.environ.get("PYTHONPATH")
  places = [str(_HERE), str(_ROOT), *([given] if given else [])]
  monkeypatch.setenv("PYTHONPATH", os.pathsep.join(places))
  monkeypatch.setenv("REPR_JAX_SETTINGS", "off")


@pytest.fixture
def sweep_file(tmp_path) -> Callable[..., str]:
  """Writes a sweep file: the body of `sweep(add)`, and what stands above."""

  def write(body: str, experiment: str = "fake_run", more: str = "") -> str:
    path = tmp_path / "tried.py"
    inside = textwrap.indent(textwrap.dedent(body), "  ")
    above = f'EXPERIMENT = "{experiment}"\n{more}\n\n'
    path.write_text(f"{above}def sweep(add):\n{inside}\n")
    return str(path)

  return write


@pytest.fixture
def command_line() -> list[str]:
  """How a test starts the launcher."""
  return [sys.executable, "-m", "launch.sweep"]
