"""Micro F1 against its definition, and parts of the mentions."""

import numpy as np
import pytest

from repr_jax.evaluation import linking


def test_f1_equals_its_definition():
  rng = np.random.default_rng(0)
  gold = rng.integers(-1, 3, 200)
  predicted = rng.integers(-1, 3, 200)
  linked = rng.random(200) < 0.8
  found = linking.evaluate_linking(predicted, gold, linked)
  right = sum(
    p == g and g >= 0 for p, g, k in zip(predicted, gold, linked) if k
  )
  # No answer counts as a wrong one: as many answers as linked mentions.
  precision = recall = right / linked.sum()
  f1 = 2 * precision * recall / (precision + recall)
  assert found.f1 == pytest.approx(f1)
  assert found.mentions == linked.sum() == len(found.correct)
  assert found.in_candidates * found.recall == pytest.approx(found.f1)


def test_a_mention_without_candidates_is_an_error():
  found = linking.evaluate_linking(
    np.array([0, -1]), np.array([0, -1]), np.array([True, True])
  )
  assert found.f1 == 0.5 and found.in_candidates == 1.0
  assert found.correct.tolist() == [True, False]


def test_mentions_without_entity_do_not_count():
  found = linking.evaluate_linking(
    np.array([0, 2]), np.array([0, -1]), np.array([True, False])
  )
  assert found.f1 == 1.0 and found.mentions == 1


def test_parts():
  values = np.array([0, 1, 1, 3, 9])
  correct = np.array([False, True, False, True, True])
  found = linking.accuracy_by(values, correct, (1, 2, 5, 20))
  assert [p.label for p in found] == ["1", "2-4", "5-19", "20+"]
  assert [p.mentions for p in found] == [2, 1, 1, 0]
  assert [p.accuracy for p in found[:3]] == [0.5, 1.0, 1.0]
  assert np.isnan(found[3].accuracy)


def test_documents_are_resampled_whole():
  rng = np.random.default_rng(0)
  documents = np.repeat(np.arange(50), 20)
  # All mentions of a document are right together.
  first = np.repeat(rng.random(50) < 0.5, 20)
  second = np.repeat(rng.random(50) < 0.6, 20)
  whole = linking.paired_documents(first, second, documents, rng)
  single = linking.paired_documents(first, second, np.arange(1000), rng)
  assert whole.value == pytest.approx(second.mean() - first.mean())
  assert whole.upper - whole.lower > 3 * (single.upper - single.lower)
  assert single.p_value < whole.p_value
  same = linking.paired_documents(first, first, documents, rng)
  assert same == (0, 0, 0, 1)
