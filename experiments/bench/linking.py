"""Linking of documents with given candidates, in mentions a second.

python -m experiments.bench --suite=linking [--size=full]

Documents have 8 to 64 mentions with up to 20 candidates each, and links between
candidates. Our code pads the documents and ranks them in one vmapped call, in
two passes with graph features; it sums over links. The numpy code takes one
document after the other, without padding, and multiplies by matrices of all
candidates. The last case shows the memory for one long document with many
candidates, from its lists of candidates to the answers.
"""

import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from experiments.bench import harness
from repr_jax import linking
from repr_jax.data.documents import candidate_files, evidence

_SIZES = {"small": (6, 8, 12, 5), "full": (200, 8, 64, 20)}
_FEATURES, _HIDDEN, _GRAPH = 40, 48, 16
_WIDTHS = (16, 32, 64)
_LONG = {"small": (20, 40), "full": (500, 1000)}  # mentions, candidates


class Work(NamedTuple):
  """Documents without padding, and the rankers.

  Attributes:
    documents: `linking.Evidence` of each.
    first: weights of the first pass.
    second: weights of the second pass.
    groups: the documents padded, by width.
  """

  documents: list[Any]
  first: Any
  second: Any
  groups: list[Any]


def work(size: str) -> Work:
  """Draws documents and weights.

  Args:
    size: "small" or "full".
  """
  count, least, most, top = _SIZES[size]
  rng = np.random.default_rng(0)
  documents = []
  for _ in range(count):
    m = int(rng.integers(least, most + 1))
    kept = np.arange(top) < rng.integers(1, top + 1, m)[:, None]
    nodes = np.full((m, top), -1, np.int32)
    nodes[kept] = np.arange(kept.sum())
    edges = rng.integers(kept.sum(), size=(4 * m, 2)).astype(np.int32)
    documents.append(
      linking.Evidence(
        features=rng.standard_normal((m, top, _FEATURES)).astype(np.float32)
        * kept[..., None],
        nodes=nodes, edges=edges, groups=np.arange(m, dtype=np.int32),
        shapes=np.where(kept, rng.integers(0, 9, (m, top)), -1).astype("i4"),
        degrees=np.ones(int(kept.sum()), np.float32),
        gold=np.full(m, -1, np.int32),
      )
    )  # fmt: skip
  first, second = (_weights(rng, n) for n in (_FEATURES, _FEATURES + _GRAPH))
  return Work(documents, first, second, _padded(documents, top))


def _weights(rng, size):
  def draw(*shape):
    return (0.3 * rng.standard_normal(shape)).astype(np.float32)

  fields: list[Any] = [
    draw(size), np.ones(size, np.float32), draw(size), draw(size, _HIDDEN),
    draw(_HIDDEN), draw(_HIDDEN),
  ]  # fmt: skip
  return linking.RankerParams(*fields)


def _padded(documents, top):
  """Documents stacked by the smallest width that holds them."""
  by_width: dict[int, list[Any]] = {}
  for one in documents:
    width = next(w for w in _WIDTHS if w >= len(one.gold))
    by_width.setdefault(width, []).append(one)
  groups = []
  for width, own in by_width.items():
    # Padded to a multiple of 128 nodes; most documents fill half of them.
    size = -(-max(len(x.degrees) for x in own) // 128) * 128

    def pad(x, *target):
      room = [(0, t - s) for t, s in zip(target, x.shape)]
      room += [(0, 0)] * (x.ndim - len(room))
      return np.pad(x, room, constant_values=-1 if x.dtype.kind == "i" else 0)

    padded = [
      linking.Evidence(
        pad(x.features, width), pad(x.nodes, width), pad(x.edges, 4 * width),
        pad(x.groups, width), pad(x.shapes, width), pad(x.degrees, size),
        pad(x.gold, width),
      )
      for x in own
    ]  # fmt: skip
    groups.append(linking.Evidence(*map(np.stack, zip(*padded))))
  return groups


_rank = jax.jit(
  jax.vmap(
    lambda *args: linking.rank_document(*args).probabilities, (None, None, 0)
  )
)


def ours(data: Work) -> list[np.ndarray]:
  """Probabilities of each padded group."""
  return [np.asarray(_rank(data.first, data.second, x)) for x in data.groups]


def numpy_loop(data: Work) -> list[np.ndarray]:
  """Probabilities of each document."""
  return [_one(data, document) for document in data.documents]


def _one(data: Work, x) -> np.ndarray:
  mask = x.nodes >= 0
  early = _softmax(_scores(data.first, x.features), mask)
  graph = _graph(x, early, mask)
  features = np.concatenate([x.features, graph], axis=-1)
  return _softmax(_scores(data.second, features), mask)


def _scores(params, features):
  inputs = (features - params.mean) / params.scale
  hidden = np.maximum(inputs @ params.inner + params.bias, 0)
  return inputs @ params.linear + hidden @ params.outer


def _softmax(scores, mask):
  scores = np.where(mask, scores, np.float32(-1e9))
  shares = np.exp(scores - scores.max(axis=1, keepdims=True)) * mask
  return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-30)


def _graph(x, chances, mask):
  """The features of `linking.graph_features`, as if no two texts were equal."""
  m, count = len(x.nodes), len(x.degrees)
  links = np.zeros((count, count), np.float32)
  fits = x.edges[:, 0] != x.edges[:, 1]
  links[tuple(x.edges[fits].T)] = 1
  either = np.maximum(links, links.T)
  own = np.zeros((m, count), np.float32)
  own[np.nonzero(mask)[0], x.nodes[mask]] = chances[mask]
  mass = own.sum(axis=0) - own
  number = max(m - 1, 1)

  def at(values):
    taken = np.take_along_axis(values, np.maximum(x.nodes, 0), axis=1)
    return np.where(mask, taken, 0)

  def against(values):
    most = np.where(mask, values, -np.inf).max(axis=1, keepdims=True)
    return values - np.where(np.isfinite(most), most, 0)

  closed = either + np.eye(count, dtype=np.float32)
  closed /= np.linalg.norm(closed, axis=1, keepdims=True)
  common = (mass @ closed) @ closed.T - mass
  total = mass.sum(axis=1, keepdims=True)
  start = mass / np.where(total > 0, total, 1)
  walk = either / np.maximum(either.sum(axis=1, keepdims=True), 1)
  ranks = start
  for _ in range(10):
    ranks = np.float32(0.15) * start + np.float32(0.85) * (ranks @ walk)
  kinds = np.where(mask & (x.shapes > 0), x.shapes, 0)
  table = np.zeros((m, 10), np.float32)
  np.add.at(table, (np.arange(m)[:, None], kinds), chances)
  alike = np.take_along_axis(table.sum(axis=0) - table, kinds, axis=1)
  alike = np.where(kinds > 0, alike, 0)
  linked, rank, shared = at(mass @ either) / number, at(ranks), at(common)
  shared = shared / number
  log_rank = np.log(rank + 1e-5)
  degrees = np.broadcast_to(either.sum(axis=1), mass.shape)
  made = [
    linked, at(mass @ links.T) / number, at(mass @ links) / number, shared,
    np.log1p(linked * number), log_rank,
    rank / np.maximum(rank.sum(axis=1, keepdims=True), 1e-9),
    against(log_rank), np.log(at(start @ walk) + 1e-5), np.log1p(alike),
    alike / number, np.minimum(at(mass), 2), np.log1p(at(degrees)),
    against(linked), against(shared), np.log(chances + 1e-4),
  ]  # fmt: skip
  return np.where(mask[..., None], np.stack(made, axis=-1), 0)


def _quality(data: Work, result: list[np.ndarray]) -> dict[str, float]:
  """Mentions, and the largest difference from the loop."""
  mentions = float(sum(len(x.gold) for x in data.documents))
  truth = numpy_loop(data)
  if len(result) == len(data.documents):
    pairs = list(zip(truth, result))
  else:
    left: dict[int, list[np.ndarray]] = {}
    for group, answers in zip(data.groups, result):
      left[group.gold.shape[1]] = list(answers)
    pairs = []
    for one in truth:
      width = next(w for w in _WIDTHS if w >= len(one))
      pairs.append((one, left[width].pop(0)[: len(one)]))
  gap = max(float(np.abs(a - b).max()) for a, b in pairs)
  return {"mentions": mentions, "largest difference": gap}


class Long(NamedTuple):
  """A document with many candidates.

  Attributes:
    document: its mentions have candidates of their own.
    features: of the candidates of a mention, [c, f].
    rankers: weights of both passes.
  """

  document: candidate_files.Document
  features: np.ndarray
  rankers: linking.Rankers


def long_document(size: str) -> Long:
  """Draws a document of many mentions with many candidates each.

  Args:
    size: "small" or "full".
  """
  count, top = _LONG[size]
  rng = np.random.default_rng(0)
  mentions = []
  for place in range(count):
    links = rng.integers(count * top, size=(top, 4)).tolist()
    listed = tuple(
      candidate_files.Candidate(
        place * top + i, f"Name {place} {i}", top - i, 4, tuple(links[i])
      )
      for i in range(top)
    )
    mentions.append(
      candidate_files.Mention(
        2 * place, 2 * place + 1, f"name {place}", None, listed
      )
    )
  document = candidate_files.Document("d", "x " * count, tuple(mentions))
  features = rng.standard_normal((top, _FEATURES)).astype(np.float32)
  weights = (_weights(rng, n) for n in (_FEATURES, _FEATURES + _GRAPH))
  return Long(document, features, linking.Rankers(*weights))


def rank_long(data: Long) -> np.ndarray:
  """Answers for all mentions, from lists of all candidates."""
  count, top = len(data.document.mentions), len(data.features)
  shape = (128, 1 << (128 * top - 1).bit_length())
  features = [[data.features] * count]
  groups = evidence.pack_evidence([data.document], features, (shape,), top)
  return np.asarray(linking.decide(data.rankers, groups, count).best)


def _answered(data: Long, result: np.ndarray) -> dict[str, float]:
  """Mentions with an answer."""
  return {"answered": float((result >= 0).sum()), "of": float(len(result))}


def cases(size: str) -> list[harness.Case]:
  """The cases of this suite."""
  return [
    harness.Case(
      f"linking {_SIZES[size][0]} documents",
      functools.partial(work, size),
      {"ours": ours, "numpy loop": numpy_loop},
      quality=_quality,
    ),
    harness.Case(
      f"{_LONG[size][0]} mentions with {_LONG[size][1]} candidates",
      functools.partial(long_document, size),
      {"ours": rank_long},
      quality=_answered,
    ),
  ]
