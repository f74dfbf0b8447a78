"""Skip-grams around mentions as SetExpan's features in `nvse`."""

import dataclasses
import json

import numpy as np
import pytest

from experiments.nvse import data
from experiments.nvse.config import Config
from experiments.run.expander import Expander
from repr_jax.errors import InputError
from repr_jax.setexp.query import make_query

_TEXTS = {
  "king": "long live {} of the land",
  "river": "we swam in {} near here",
}


@pytest.fixture(scope="module")
def config(tmp_path_factory):
  folder = tmp_path_factory.mktemp("contexts")
  lines = [
    {"id": f"{kind}{i}", "sentences": [text.format(f"{kind}{i}")]}
    for kind, text in _TEXTS.items()
    for i in range(4)
  ]
  path = folder / "entities.jsonl"
  path.write_text("".join(json.dumps(x) + "\n" for x in lines))
  return Config(
    corpus=(str(path),), store=str(folder / "store"), min_count=1,
    drop_most_frequent=0, setexpan_samples=4,
  )  # fmt: skip


@pytest.fixture(scope="module")
def table(config):
  return data.open_table(config)


def test_setexpan_ranks_by_the_contexts_of_mentions(config, table):
  opened = Expander(
    table,
    None,
    setexpan_config=config.setexpan_config(),
    contexts=lambda: data.skip_gram_contexts(config, table),
  )
  system = opened.system("setexpan")
  assert set(system.features) >= {"context:live __ of", "context:in __ near"}
  query = make_query(table.counts, [0, 1])
  scores = system.score_batch([query])[0]
  kings = [i for i, x in enumerate(table.entities) if x.startswith("king")]
  others = set(range(8)) - set(kings)
  assert kings[:2] == [0, 1]
  assert min(scores[kings]) > max(scores[list(others)])
  (parts,) = system.contributions(query, [kings[2]])
  assert float(parts.total) == pytest.approx(scores[kings[2]], abs=1e-4)
  new = make_query(table.counts, [], new_rows=table.counts[[0]])
  assert not system.score_batch([new])[0].any()
  both = system.score_batch([new, query])[1]
  np.testing.assert_array_equal(both, scores)
  with pytest.raises(InputError, match="entities of the corpus only"):
    system.contributions(new, [kings[2]])
  # They are counted once.
  again = data.skip_gram_contexts(config, table)
  assert [f"context:{x}" for x in again.names] == system.features


def test_the_tables_features_are_taken_on_demand(config, table):
  plain = dataclasses.replace(config, setexpan_contexts="features")
  assert data.skip_gram_contexts(plain, table) is None


def test_few_contexts_are_not_taken(config, tmp_path):
  lines = [
    {"id": "king0", "sentences": ["long live king0 of the land"]},
    {"id": "king1", "sentences": ["long live king1 of the land"]},
    *({"id": f"x{i}", "sentences": ["long live him"]} for i in range(4)),
  ]
  path = tmp_path / "entities.jsonl"
  path.write_text("".join(json.dumps(x) + "\n" for x in lines))
  other = dataclasses.replace(
    config, corpus=(str(path),), store=str(tmp_path / "store")
  )
  table = data.open_table(other)
  assert data.skip_gram_contexts(other, table) is None
  forced = dataclasses.replace(other, setexpan_contexts="skip_grams")
  assert "live __ of" in data.skip_gram_contexts(forced, table).names


def test_settings_of_setexpan_are_checked():
  with pytest.raises(InputError, match="SetExpan cannot work"):
    Config(setexpan_ratio=0.0)
