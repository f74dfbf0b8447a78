"""Contexts of mentions."""

import numpy as np

from repr_jax.data import entities
from repr_jax.data.entities import contexts, features


def _stream():
  for name in ("Elbe", "Oder", "Rhine"):
    yield entities.sentence_from_text(
      f"The river {name} flows north.", [(10, 10 + len(name), name)], "d"
    )
  yield entities.sentence_from_text("Bach sat by the Elbe.", [(0, 4, "Bach")])
  yield entities.sentence_from_text("It is long.", [(0, 0, "Elbe")])


def test_contexts_have_a_side_or_both():
  given = contexts.contexts_of(("a", "b", "c", "d", "X", "e"), 4, 5)
  assert given == [
    "d _", "c d _", "b c d _", "_ e", "d _ e", "c d _ e",
  ]  # fmt: skip
  assert contexts.contexts_of(("X",), 0, 1) == ["^ _"]


def test_shared_contexts_become_features():
  counter = contexts.ContextCounter()
  table = features.build(
    counter.watch(_stream()), drop_most_frequent=0, min_count=1
  )
  joined = counter.join(table, min_entities=3)
  size = len(table.features)
  assert joined.features[:size] == table.features
  added = joined.features[size:]
  assert "context:the river _ flows north ." not in added  # 2 at most
  assert "context:river _ flows north" in added
  assert "context:^ _" not in added  # of Bach alone
  column = joined.columns["context:river _"]
  rows = [joined.rows[x] for x in ("Elbe", "Oder", "Rhine", "Bach")]
  dense = joined.counts.toarray()
  assert dense[rows, column].tolist() == [1, 1, 1, 0]
  np.testing.assert_array_equal(dense[:, :size], table.counts.toarray())


def test_a_stored_table_keeps_its_contexts(tmp_path):
  counter = contexts.ContextCounter()
  table = features.build(
    counter.watch(_stream()), drop_most_frequent=0, min_count=1
  )
  joined = counter.join(table, min_entities=2)
  features.save(tmp_path / "t", joined)
  again = features.load(tmp_path / "t")
  assert again.features == joined.features
  row = features.featurize(again, ["The river flows."])
  assert row.shape == (1, len(joined.features))
