"""Runs of multiview LSA in one process share what is the same for them."""

import numpy as np
import pytest

from experiments.mvlsa import train
from experiments.mvlsa.config import Config
from repr_jax.data import vectors
from tests.launch import grouped

_NAME = "experiments.mvlsa"
_CHANGES = [
  {"ridge": 1e-3}, {"ridge": 1e-1}, {"ridge": 1e-3, "eigenvalue_power": 0.5},
  {"seed": 1}, {"ridge": 1e-3, "group_weights": ["text:0.5"]},
]  # fmt: skip


@pytest.fixture(scope="module")
def common(tmp_path_factory) -> dict:
  folder = tmp_path_factory.mktemp("world")
  rng = np.random.default_rng(0)
  words = [f"word{i}" for i in range(20)]
  lines = [" ".join(rng.choice(words, 8)) for _ in range(200)]
  (folder / "text.txt").write_text("\n".join(lines) + "\n")
  (folder / "sets").mkdir()
  pairs = [f"word{i}\tword{i + 1}\t{i}\n" for i in range(19)]
  (folder / "sets" / "NEAR.tsv").write_text("".join(pairs))
  return {
    "text": [str(folder / "text.txt")], "offsets": 2, "columns": 15, "m": 4,
    "windows": [], "documents": 0, "spelling": False,
    "k": 3, "store": str(folder / "store"), "analogies": False,
    "testsets": str(folder / "sets"), "keep_factors": False,
  }  # fmt: skip


def test_runs_of_one_process_equal_runs_alone(
  tmp_path, common, monkeypatch, compilations
):
  for i in (0, 1, 2, 4):
    grouped.alone(_NAME, tmp_path / f"alone{i}", {**common, **_CHANGES[i]})
  calls = []
  original = train._factor
  monkeypatch.setattr(
    train, "_factor", lambda *x: calls.append(x[0]) or original(*x)
  )
  wrong = {"group_weights": ["text:0"]}
  told = grouped.together(_NAME, tmp_path, common, [*_CHANGES, wrong])
  assert told[:5] == [None] * 5 and "every view has the weight 0" in told[5]
  assert len(calls) == 4  # two views, once for each of two seeds
  for i in (0, 1, 2, 4):
    one, two = tmp_path / str(i), tmp_path / f"alone{i}"
    grouped.assert_same(Config, one, two)
    ours, theirs = (
      vectors.read_vectors(x / "vectors.npz").array for x in (one, two)
    )
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-4)
  again = compilations.during(
    lambda: grouped.together(
      _NAME, tmp_path / "again", common, [{"ridge": x} for x in (0.2, 0.3)]
    )
  )
  assert again == 0
