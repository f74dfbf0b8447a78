"""Fitting of `kind_scores` on documents, and its features; host."""

from typing import Any

import jax
import numpy as np
import optax

from repr_jax.data.documents.title_kinds import KindArrays, Vocabulary
from repr_jax.errors import InputError
from repr_jax.linking import context_kinds
from repr_jax.linking.context_kinds import KindConfig, KindParams

_BATCH = 256  # mentions
_features = jax.jit(jax.vmap(context_kinds.kind_features, (None, 0, 0, 0, 0)))


def _check_links(arrays: KindArrays) -> None:
  bad = np.argwhere(~np.isfinite(arrays.log_links) & np.asarray(arrays.mask))
  if len(bad):
    row, place = bad[0]
    raise InputError(
      f"log_links of mention {row}, candidate {place} is not finite: "
      f"{np.asarray(arrays.log_links)[row, place]}"
    )


def fit_kinds(
  arrays: KindArrays,
  vocabulary: Vocabulary,
  key: jax.Array,
  *,
  members: int = 1,
  dim: int = 32,
  epochs: int = 5,
  learning_rate: float = 0.01,
  decay: float = 0.1,
) -> KindParams:
  """Fits the weights of `kind_scores`, the mean of several members.

  The mean of several bilinear scores is one bilinear score with all their
  dimensions; its weights are returned.

  >>> import jax, numpy as np
  >>> from repr_jax import linking
  >>> arrays = linking.KindArrays(  # the second kind is right
  ...   np.zeros((4, 1), int), np.tile([[0], [1]], (4, 1, 1)),
  ...   np.zeros((4, 2)), np.ones((4, 2), bool), np.ones(4, int),
  ... )
  >>> known = linking.Vocabulary({"x": 0}, {"a": 0, "b": 1})
  >>> params = linking.fit_kinds(arrays, known, jax.random.key(0), epochs=20)
  >>> scores = linking.kind_scores(params, arrays.contexts[0], arrays.kinds[0])
  >>> bool(scores[1] > scores[0])
  True

  Args:
    arrays: mentions with gold candidates.
    vocabulary: ids of the features.
    key: random key.
    members: number of models.
    dim: numbers of each feature in each model.
    epochs: passes over the mentions; the learning rate falls to 0 by cosine.
    learning_rate: of AdamW.
    decay: weight decay.

  Returns:
    The weights, of members times dim numbers.

  Raises:
    InputError: no mention can be learned from, or a number of links is not
      finite.
  """
  _check_links(arrays)
  kept = (arrays.gold >= 0) & (arrays.mask.sum(axis=1) > 1)
  part = KindArrays(*(np.asarray(x)[kept] for x in arrays))
  count = len(part.gold)
  if not count:
    raise InputError(
      "nothing to learn: no mention has two or more candidates with its own "
      "entity among them"
    )
  size = min(_BATCH, count)
  steps = epochs * -(-count // size)
  # Rows cannot be gathered from an empty table.
  contexts, kinds = (max(len(x), 1) for x in vocabulary)
  config = KindConfig(contexts, kinds, dim)
  init, update = context_kinds.kind_ranker(
    config,
    optax.adamw(
      optax.cosine_decay_schedule(learning_rate, steps), weight_decay=decay
    ),
  )
  made = []
  for one in jax.random.split(key, members):
    first, second = jax.random.split(one)
    state = init(first)
    seed = jax.random.bits(second, (4,), "uint32").tolist()
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
      order = rng.permutation(count)
      order = np.append(order, order[: -count % size])
      for rows in order.reshape(-1, size):
        state, _ = update(state, KindArrays(*(x[rows] for x in part)))
    made.append(jax.tree.map(np.asarray, state.params))
  joined: list[Any] = [
    np.concatenate([x.contexts for x in made], axis=1),
    np.concatenate([x.kinds for x in made], axis=1) / np.float32(members),
    np.mean([x.bias for x in made], axis=0),
    np.mean([x.links for x in made], axis=0),
  ]
  return KindParams(*joined)


def apply_kinds(params: KindParams, arrays: KindArrays) -> np.ndarray:
  """Features of all candidates by `kind_features`.

  >>> import numpy as np
  >>> from repr_jax import linking
  >>> params = linking.KindParams(
  ...   np.ones((1, 1)), np.ones((1, 1)), np.zeros(1), np.ones(())
  ... )
  >>> arrays = linking.KindArrays(
  ...   np.zeros((3, 1), int), np.zeros((3, 2, 1), int), np.zeros((3, 2)),
  ...   np.ones((3, 2), bool), np.zeros(3, int),
  ... )
  >>> linking.apply_kinds(params, arrays).shape
  (3, 2, 3)

  Args:
    params: the weights.
    arrays: n mentions.

  Returns:
    Features, float32 [n, c, 3].

  Raises:
    InputError: a number of links or a weight is not finite.
  """
  _check_links(arrays)
  for name, values in params._asdict().items():
    if not np.isfinite(values).all():
      raise InputError(f"weights of kinds of titles are not finite: {name}")
  count, top = arrays.mask.shape
  made = np.zeros((count, top, len(context_kinds.NAMES)), np.float32)
  for low in range(0, count, _BATCH):
    part = [np.asarray(x)[low : low + _BATCH] for x in arrays[:4]]
    short = _BATCH - len(part[0])
    padded = [np.pad(x, [(0, short)] + [(0, 0)] * (x.ndim - 1)) for x in part]
    made[low : low + _BATCH] = _features(params, *padded)[: _BATCH - short]
  return made


def cross_kinds(
  arrays: KindArrays, vocabulary: Vocabulary, folds: np.ndarray, key: jax.Array
) -> np.ndarray:
  """Features of training mentions by models that have not seen their fold.

  >>> import jax, numpy as np
  >>> from repr_jax import linking
  >>> arrays = linking.KindArrays(
  ...   np.zeros((4, 1), int), np.tile([[0], [1]], (4, 1, 1)),
  ...   np.zeros((4, 2)), np.ones((4, 2), bool), np.ones(4, int),
  ... )
  >>> known = linking.Vocabulary({"x": 0}, {"a": 0, "b": 1})
  >>> folds, key = np.array([0, 0, 1, 1]), jax.random.key(0)
  >>> linking.cross_kinds(arrays, known, folds, key).shape
  (4, 2, 3)

  Args:
    arrays: n mentions.
    vocabulary: ids of the features.
    folds: the fold of each mention, int [n].
    key: random key.

  Returns:
    Features, float32 [n, c, 3]; models have the settings of `fit_kinds`.
  """
  made = np.zeros((*arrays.mask.shape, len(context_kinds.NAMES)), np.float32)
  for number, one in enumerate(jax.random.split(key, int(folds.max()) + 1)):
    own = folds == number
    if not own.any():
      continue
    rest = KindArrays(*(np.asarray(x)[~own] for x in arrays))
    params = fit_kinds(rest, vocabulary, one)
    part = KindArrays(*(np.asarray(x)[own] for x in arrays))
    made[own] = apply_kinds(params, part)
  return made
