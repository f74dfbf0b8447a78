"""Runs of mention retrieval in one program leave what runs alone leave."""

import json
import pathlib

import numpy as np
import pytest

from experiments.cmr import collection, systems
from experiments.cmr.config import Config
from tests.launch import grouped

_NAME = "experiments.cmr"
_CHANGES = [{"seed": 0}, {"seed": 1, "document_weight": 0.3}, {"seed": 2}]


@pytest.fixture(scope="module")
def common(tmp_path_factory) -> dict:
  rng = np.random.default_rng(0)
  topics = [[f"word{i}{j}" for j in range(5)] for i in range(4)]
  path = tmp_path_factory.mktemp("cmr") / "entities.jsonl"
  lines = [
    json.dumps(
      {
        "id": f"e{i}",
        "name": f"First{i % 6} Last{i % 3}",
        "sentences": [
          f"first{i % 6} last{i % 3} has "
          + " ".join(rng.choice(topics[i % 4], 4))
          for _ in range(4)
        ],
      }
    )
    for i in range(12)
  ]
  path.write_text("\n".join(lines) + "\n")
  return {
    "corpus": str(path), "min_mentions": 1,
    "systems": ["lsa:k=4", "vae:epochs=2:dim=3:hidden=4"],
  }  # fmt: skip


@pytest.fixture(scope="module")
def alone(tmp_path_factory, common) -> list[pathlib.Path]:
  root = tmp_path_factory.mktemp("alone")
  for i, change in enumerate(_CHANGES):
    grouped.alone(_NAME, root / str(i), {**common, **change})
  return [root / str(i) for i in range(len(_CHANGES))]


def test_one_program_equals_separate_runs(tmp_path, common, alone, monkeypatch):
  """Also where the training of one seed diverges."""
  trained = []
  original = systems.autoencoders

  def autoencoders(spec, fields, least, seeds, mesh):
    trained.append(list(seeds))
    made = original(spec, fields, least, seeds, mesh)
    made[seeds.index(7)] = np.nan
    return made

  monkeypatch.setattr(collection.systems, "autoencoders", autoencoders)
  told = grouped.together(_NAME, tmp_path, common, [*_CHANGES, {"seed": 7}])
  assert told[:3] == [None] * 3 and "not finite" in told[3]
  assert not (tmp_path / "3" / "results.json").exists()
  assert trained[0] == [0, 1, 2, 7]
  for i, folder in enumerate(alone):
    grouped.assert_same(Config, tmp_path / str(i), folder)


@pytest.mark.long
def test_runs_are_spread_over_devices(tmp_path, common, alone):
  folder = tmp_path / "all"
  grouped.by_the_launcher(_NAME, folder, common, _CHANGES, 2)
  for i, one in enumerate(alone):
    grouped.assert_same(Config, folder / str(i), one)
