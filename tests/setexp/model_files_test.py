"""Trained models on disk."""

import jax
import numpy as np
import pytest

from repr_jax import errors, setexp
from repr_jax.setexp import model_files


@pytest.fixture(scope="module")
def model():
  counts = np.random.default_rng(0).poisson(1.0, (12, 9)).astype(np.float32)
  config = setexp.Config(dim=3, hidden=(5, 4), weighting="log1p")
  statistics = setexp.statistics(config, counts)
  params = setexp.init(config, jax.random.key(0), statistics)
  return config, params, statistics.inputs


@pytest.fixture
def saved(model, tmp_path):
  model_files.save(tmp_path / "model", *model, "abc")
  return tmp_path / "model"


def test_a_model_comes_back_as_it_was(model, saved):
  config, *arrays = model_files.load(saved, "abc")
  assert config == model[0]
  jax.tree.map(np.testing.assert_array_equal, tuple(arrays), model[1:])
  model_files.load(saved)
  assert sorted(x.name for x in saved.iterdir()) == [
    "model.json",
    "parameters.npz",
  ]


def test_models_of_other_features_or_damaged_are_refused(saved):
  with pytest.raises(errors.InputError, match="trained on other features"):
    model_files.load(saved, "abd")
  notes = (saved / "model.json").read_text()
  (saved / "model.json").write_text(notes.replace("log1p", "raw"))
  with pytest.raises(errors.InputError, match="belongs to another model"):
    model_files.load(saved)
  (saved / "model.json").write_text(notes.replace("log1p", "none"))
  with pytest.raises(errors.InputError, match="weighting must be one of"):
    model_files.load(saved)
  (saved / "model.json").write_text("{}")
  with pytest.raises(errors.InputError, match="does not describe a model"):
    model_files.load(saved)
  (saved / "model.json").write_text(notes)
  (saved / "parameters.npz").write_bytes(b"PK")
  with pytest.raises(errors.InputError, match="not a readable"):
    model_files.load(saved)
  with pytest.raises(errors.InputError, match="no such file"):
    model_files.load(saved / "nothing")
