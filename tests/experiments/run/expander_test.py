"""Trained models on disk, as exports and as runs."""

import json
import shutil

import numpy as np
import pytest

from experiments.run import expander
from repr_jax.data.entities import features
from repr_jax.errors import InputError
from repr_jax.setexp import systems
from repr_jax.setexp.query import make_query


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
  folder = tmp_path_factory.mktemp("expander") / "export"
  expander.save(folder, trained)
  return folder


def _scores(opened, name):
  query = make_query(opened.table.counts, [1, 2], [1.0, -0.5])
  return opened.system(name).score_batch([query])


@pytest.mark.parametrize("name", expander.SYSTEMS)
def test_an_export_answers_as_the_model(trained, exported, name):
  loaded = expander.load(exported)
  np.testing.assert_allclose(
    _scores(loaded, name), _scores(trained, name), rtol=1e-5, atol=1e-6
  )


def test_a_run_names_its_features(trained, exported, tmp_path):
  features.save(tmp_path / "store" / "table", trained.table)
  run = tmp_path / "run"
  shutil.copytree(exported / "model", run / "model")
  ranking = systems.RankingConfig("xi", normalize=True)
  expander.save_notes(run, tmp_path / "store" / "table", ranking, seed=3)
  loaded = expander.load(run)
  assert (loaded.ranking, loaded.seed, loaded.vectors) == (ranking, 3, None)
  expected = expander.Expander(trained.table, trained.model, ranking)
  np.testing.assert_allclose(
    _scores(loaded, "nvse"), _scores(expected, "nvse"), rtol=1e-5
  )
  # A run and its store may be moved together.
  shutil.move(tmp_path / "store", tmp_path / "elsewhere")
  with pytest.raises(InputError, match="its features are not at"):
    expander.load(run)


@pytest.mark.parametrize(
  ("name", "value"),
  [("fusion", "much"), ("power", -1), ("score", 3), ("normalize", 1)],
)
def test_damaged_notes_are_refused(exported, tmp_path, name, value):
  folder = shutil.copytree(exported, tmp_path / "damaged")
  path = folder / "expansion.json"
  path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
  with pytest.raises(InputError, match=f"{name} is {value!r}"):
    expander.load(folder)


def test_a_baseline_from_elsewhere_is_ranked_by_its_name(trained):
  module = "repr_jax.setexp.baselines.bm25:BM25"
  np.testing.assert_array_equal(
    _scores(trained, module), _scores(trained, "bm25")
  )


def test_unknown_systems_and_scores_are_refused(trained, tmp_path):
  with pytest.raises(InputError, match="there is no 'best'"):
    trained.rank_by("best")
  with pytest.raises(InputError, match="there is no system 'google'"):
    trained.system("google")
  with pytest.raises(InputError, match=r"python -m experiments\.nvse"):
    expander.load(tmp_path)
