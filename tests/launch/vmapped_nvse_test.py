"""Runs of set expansion in one program leave what runs alone leave."""

import json
import pathlib
import shutil

import numpy as np
import pytest

from experiments.nvse import data, vmapped_train
from experiments.nvse.config import Config
from experiments.nvse.learner import Learner
from experiments.run import expander, workdir
from repr_jax.setexp.baselines import word2vecf
from tests.launch import grouped

_NAME = "experiments.nvse"
_CHANGES = [
  {"seed": 0, "beta": 0.1, "prior_variance": 2.0},
  {"seed": 1, "beta": 0.5, "learning_rate": 0.01, "dropout": 0.2},
  {"seed": 2, "label_smoothing": 0.1, "likelihood": 2.0, "epochs": 3},
]


@pytest.fixture(scope="module")
def common(tmp_path_factory) -> dict:
  folder = tmp_path_factory.mktemp("entities")
  rng = np.random.default_rng(0)
  words = [f"word{i}" for i in range(30)]
  lines = [
    json.dumps(
      {
        "id": f"e{i}",
        "name": f"E {i}",
        "sentences": [" ".join(rng.choice(words, 6)) for _ in range(2)],
      }
    )
    for i in range(40)
  ]
  (folder / "entities.jsonl").write_text("\n".join(lines) + "\n")
  return {
    "corpus": [str(folder / "entities.jsonl")], "store": str(folder / "store"),
    "drop_most_frequent": 0, "dim": 3, "hidden": ["8"], "epochs": 4,
    "batch_size": 8, "learning_rate": 0.02, "validation": 0.2, "patience": 4,
  }  # fmt: skip


@pytest.fixture(scope="module")
def alone(tmp_path_factory, common) -> list[pathlib.Path]:
  """Work directories of separate runs."""
  root = tmp_path_factory.mktemp("alone")
  for i, change in enumerate(_CHANGES):
    grouped.alone(_NAME, root / str(i), {**common, **change})
  return [root / str(i) for i in range(len(_CHANGES))]


def test_one_program_equals_separate_runs(
  tmp_path, common, alone, compilations
):
  """Also where one of the runs diverges, and where one cannot begin."""
  wrong = [{"seed": 1, "learning_rate": 1e30}, {"seed": 5}]
  held = workdir.Lock(tmp_path / "4")
  told = grouped.together(_NAME, tmp_path, common, [*_CHANGES, *wrong])
  held.release()
  assert told[:3] == [None] * 3 and "in use" in told[4]
  assert "nan" in told[3] or "not finite" in told[3]
  assert not (tmp_path / "3" / "results.json").exists()
  for i, folder in enumerate(alone):
    grouped.assert_same(Config, tmp_path / str(i), folder)


@pytest.mark.long  # as in the test of its `Program`
@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_group_compiles_one_program(
  tmp_path, common, compilations, monkeypatch, one_by_one
):
  """Runs that differ in every traced flag; the same group again compiles it
  alone, as all the small programs around it are there."""
  made = vmapped_train.vmapped_training.Program

  def program(step, states, **more):
    return made(step, states, **{**more, "one_by_one": one_by_one})

  monkeypatch.setattr(vmapped_train.vmapped_training, "Program", program)
  quick = {**common, "epochs": 2, "validation": 0.0, "patience": 3}
  changes = [
    {"seed": i, "beta": 0.1 * i, "prior_variance": 1.0 + i, "dropout": 0.1 * i}
    for i in range(4)
  ]
  assert (
    grouped.together(_NAME, tmp_path / "first", quick, changes) == [None] * 4
  )
  again = compilations.during(
    lambda: grouped.together(_NAME, tmp_path / "again", quick, changes)
  )
  assert again == 1


def test_word2vecf_of_a_group_is_that_of_runs_alone(common):
  given = {**common, "hidden": (8,), "corpus": tuple(common["corpus"])}
  given = {**given, "mode": "export", "word2vecf_dim": 4}
  changes = [
    {"seed": 0, "word2vecf_learning_rate": 0.05},
    {"seed": 1, "word2vecf_learning_rate": 1e30},  # diverges
    {"seed": 2, "word2vecf_power": 1.0},
    {"seed": 2, "mode": "train"},
  ]
  configs = [
    Config(**{**given, "word2vecf_epochs": 2, **change}) for change in changes
  ]
  table = data.open_table(configs[0], lambda text: None)
  made = vmapped_train.vectors(
    {i: (config, table) for i, config in enumerate(configs)}
  )
  assert list(made) == [0, 2]
  for i, model in made.items():
    alone = word2vecf.fit(
      expander.word2vecf_counts(table, "words"),
      configs[i].word2vecf_config(),
      epochs=2,
      seed=configs[i].seed,
    )
    np.testing.assert_allclose(model.entities, alone.entities, atol=1e-5)


def test_runs_at_different_checkpoints_go_on_together(
  tmp_path, common, alone, monkeypatch
):
  whole = tmp_path / "all"
  shutil.copytree(alone[0], whole / "0")
  (whole / "0" / "results.json").unlink()  # as a power cut may leave it
  original = Learner.after

  def stops(self, epoch, state, outputs, seconds):
    original(self, epoch, state, outputs, seconds)
    if epoch == 1:
      raise KeyboardInterrupt

  monkeypatch.setattr(Learner, "after", stops)
  with pytest.raises(KeyboardInterrupt):
    grouped.alone(_NAME, whole / "1", {**common, **_CHANGES[1]})
  monkeypatch.undo()
  assert grouped.together(_NAME, whole, common, _CHANGES) == [None] * 3
  for i, folder in enumerate(alone):
    grouped.assert_same(Config, whole / str(i), folder)


@pytest.mark.long
def test_runs_are_spread_over_devices(tmp_path, common, alone):
  """Five runs on four devices by the program that the sweep starts."""
  changes = [*_CHANGES, {"seed": 3}, {"seed": 4}]
  folder = tmp_path / "all"
  grouped.by_the_launcher(_NAME, folder, common, changes, 4)
  for i, folder in enumerate(alone):
    grouped.assert_same(Config, tmp_path / "all" / str(i), folder)


@pytest.mark.long
def test_other_latent_sizes_have_a_program_of_their_own(tmp_path, common):
  quick = {**common, "epochs": 1}
  changes = [{"seed": 0, "dim": 3}, {"seed": 1, "dim": 2}, {"seed": 2}]
  assert grouped.together(_NAME, tmp_path, quick, changes) == [None] * 3
  for i, size in enumerate((3, 2, 3)):
    stored = json.loads((tmp_path / str(i) / "model/model.json").read_text())
    assert f'"dim": {size}' in json.dumps(stored)


def test_modes_without_training_are_refused(tmp_path, common):
  (told,) = grouped.together(
    _NAME, tmp_path, {**common, "mode": "query"}, [{"seed": 0}]
  )
  assert "trains, evaluates or exports" in told
