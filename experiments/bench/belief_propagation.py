"""Belief propagation over many documents in one call (thesis 6.3).

python -m experiments.bench --suite=belief_propagation [--size=full]

100 documents of 4 to 24 mentions with up to 7 candidates, 10 rounds: ours pads
them and makes one call; numpy takes one document after the other, without
padding, with all messages of a round in one array operation.
"""

import functools
from typing import NamedTuple

import jax
import numpy as np

from experiments.bench import harness
from repr_jax.ops import belief_propagation

_SIZES = {"small": (10, 4, 8, 3), "full": (100, 4, 24, 7)}
_ROUNDS, _DAMPING = 10, 0.5


class Documents(NamedTuple):
  """Scores of documents: unary [n, m, c], pairs [n, m, m, c, c], mask."""

  unary: np.ndarray
  pairwise: np.ndarray
  mask: np.ndarray


def documents(size: str) -> Documents:
  """Draws scores of mentions and pairs; each document has its own length."""
  count, least, most, states = _SIZES[size]
  rng = np.random.default_rng(0)
  unary = rng.standard_normal((count, most, states)).astype(np.float32)
  shape = (count, most, most, states, states)
  half = rng.standard_normal(shape).astype(np.float32)
  pairwise = (half + half.transpose(0, 2, 1, 4, 3)) / most
  lengths = rng.integers(least, most + 1, count)
  kept = rng.integers(1, states + 1, (count, most))
  mask = np.arange(states) < kept[..., None]
  mask &= (np.arange(most) < lengths[:, None])[..., None]
  return Documents(unary, pairwise, mask)


@jax.jit
def _all(unary, pairwise, mask):
  one = functools.partial(
    belief_propagation.max_product, iterations=_ROUNDS, damping=_DAMPING
  )
  return jax.vmap(one)(unary, pairwise, mask)


def ours(data: Documents) -> np.ndarray:
  """All documents in one call, [n, m, c]."""
  return np.asarray(_all(*data))


def numpy_loop(data: Documents) -> np.ndarray:
  """One document after the other, [n, m, c]."""
  beliefs = np.zeros_like(data.unary)
  for row, (unary, pairwise, mask) in enumerate(zip(*data)):
    length = int(mask.any(axis=1).sum())
    beliefs[row, :length] = _one(
      unary[:length], pairwise[:length, :length], mask[:length]
    )
  return beliefs


def _one(unary, pairwise, mask):
  count = len(unary)
  low = np.float32(-1e9)
  pairwise = np.where(mask[:, None, :, None], pairwise, low)
  received = np.broadcast_to(mask, (count, *mask.shape)).copy()
  received[np.arange(count), np.arange(count)] = False
  messages = np.where(
    received, -np.log(mask.sum(axis=1))[None, :, None], 0
  ).astype(np.float32)
  for _ in range(_ROUNDS):
    belief = unary + messages.sum(axis=0)
    heard = belief[:, None] - messages.swapaxes(0, 1)
    new = _normalize((heard[..., None] + pairwise).max(axis=2), received)
    mixed = _DAMPING * np.exp(messages) + (1 - _DAMPING) * np.exp(new)
    messages = np.where(received, np.log(mixed), 0).astype(np.float32)
  return _normalize(unary + messages.sum(axis=0), mask)


def _normalize(scores, mask):
  scores = np.where(mask, scores, np.float32(-1e9))
  scores = scores - scores.max(axis=-1, keepdims=True)
  total = np.log(np.exp(scores).sum(axis=-1, keepdims=True))
  return np.where(mask, scores - total, 0)


def _agreement(data: Documents, result: np.ndarray) -> dict[str, float]:
  """The largest difference from the loop in a belief's probability."""
  truth = np.where(data.mask, np.exp(numpy_loop(data)), 0)
  own = np.where(data.mask, np.exp(result), 0)
  return {"largest difference": float(np.abs(own - truth).max())}


def cases(size: str) -> list[harness.Case]:
  """The cases of this suite."""
  return [
    harness.Case(
      f"belief propagation {_SIZES[size][0]} documents",
      functools.partial(documents, size),
      {"ours": ours, "numpy loop": numpy_loop},
      quality=_agreement,
    )
  ]
