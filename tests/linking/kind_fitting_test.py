"""Fits of kinds of titles: members, folds, nothing to learn."""

import jax
import numpy as np
import pytest

from repr_jax import linking
from repr_jax.data.documents.title_kinds import KindArrays, Vocabulary
from repr_jax.errors import InputError
from repr_jax.linking import context_kinds
from repr_jax.linking.kind_fitting import apply_kinds, cross_kinds, fit_kinds

_KNOWN = Vocabulary({"a": 0, "b": 1}, {"x": 0, "y": 1})


@pytest.fixture(scope="module")
def arrays():
  """The context tells which of two kinds is right."""
  gold = np.arange(300) % 2
  return KindArrays(
    gold[:, None], np.tile([[0], [1]], (300, 1, 1)), np.zeros((300, 2)),
    np.ones((300, 2), bool), gold,
  )  # fmt: skip


def test_members_are_averaged_in_one_set_of_weights(arrays):
  key = jax.random.key(0)
  both = fit_kinds(arrays, _KNOWN, key, members=2, dim=3, epochs=2)
  assert both.contexts.shape == (2, 6)
  halves = [
    context_kinds.KindParams(
      both.contexts[:, part], 2 * both.kinds[:, part], both.bias, both.links
    )
    for part in (slice(0, 3), slice(3, 6))
  ]
  one = arrays.contexts[0], arrays.kinds[0]
  each = [linking.kind_scores(p, *one) for p in halves]
  np.testing.assert_allclose(
    linking.kind_scores(both, *one), np.mean(each, axis=0), rtol=1e-4
  )


def test_features_of_all_mentions_are_those_of_each(arrays):
  params = fit_kinds(arrays, _KNOWN, jax.random.key(0), epochs=20)
  made = apply_kinds(params, arrays)
  assert made.shape == (300, 2, 3)
  for row in (0, 299):
    one = linking.kind_features(params, *(x[row] for x in arrays[:4]))
    np.testing.assert_allclose(made[row], one, rtol=1e-5, atol=1e-6)
  assert (made[..., 2].argmax(axis=1) == arrays.gold).all()


def test_a_fold_is_not_seen_by_its_own_model(arrays):
  # In fold 1 the other kind is right, which only its own model could know.
  folds = (np.arange(300) >= 200).astype(int)
  gold = np.where(folds == 1, 1 - arrays.gold, arrays.gold)
  turned = arrays._replace(gold=gold)
  made = cross_kinds(turned, _KNOWN, folds, jax.random.key(0))
  answers = made[..., 0].argmax(axis=1)
  assert (answers[folds == 1] == arrays.gold[folds == 1]).mean() > 0.9


def test_mentions_without_a_choice_are_nothing_to_learn(arrays):
  alone = arrays._replace(gold=np.full(300, -1))
  with pytest.raises(InputError, match="nothing to learn"):
    fit_kinds(alone, _KNOWN, jax.random.key(0))
