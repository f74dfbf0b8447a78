"""One epoch of the local and the global disambiguation model (thesis 6.3).

python -m experiments.bench --suite=link_training [--size=full]

Documents of 4 to 64 mentions with up to 7 candidates and 100 words around
each: ours pads documents of like length into batches of 256 mentions. The same
model in torch takes one document a step without padding, as the published
programs do, or, as "torch, batches", the same batches. All use Adam.
"""

import functools
from typing import NamedTuple

import jax
import numpy as np
import optax

from experiments.bench import harness
from repr_jax import linking
from repr_jax.data.documents import packing

_SIZES = {"small": (12, 4, 9, 3, 12), "full": (200, 4, 64, 7, 100)}
_DIM, _HIDDEN, _ENTITIES, _WORDS = 100, 100, 2_000, 5_000
_WIDTHS = (8, 16, 24, 32, 40, 48, 56, 64)
_MENTIONS, _RATE, _MARGIN = 256, 1e-3, 0.01
_LOW = -1e9


class Work(NamedTuple):
  """Documents and vectors.

  Attributes:
    config: the model.
    tables: vectors of entities and words.
    groups: documents padded to few widths.
    params: the weights to start from.
  """

  config: linking.Config
  tables: linking.Tables
  groups: list[packing.Group]
  params: linking.Params


def work(size: str, coherence: bool) -> Work:
  """Draws documents in which the words point to the right candidates.

  Args:
    coherence: whether the model is the global one.
  """
  count, least, most, top, context = _SIZES[size]
  rng = np.random.default_rng(0)
  entities, words = (
    (rng.standard_normal((n, _DIM)) / _DIM**0.5).astype(np.float32)
    for n in (_ENTITIES, _WORDS)
  )
  rows: dict[int, list[packing.Packed]] = {}
  for _ in range(count):
    m = int(rng.integers(least, most + 1))
    width = next(w for w in _WIDTHS if w >= m)
    kept = np.arange(top) < rng.integers(2, top + 1, m)[:, None]
    one = packing.Packed(
      np.full((width, top), -1, np.int32),
      np.zeros((width, top), np.float32),
      np.full((width, context), -1, np.int32),
      np.full(width, -1, np.int32),
    )
    ids = rng.integers(_ENTITIES, size=(m, top))
    one.candidates[:m] = np.where(kept, ids, -1)
    one.log_prior[:m] = np.log(rng.dirichlet(np.ones(top), m) + 1e-4)
    one.words[:m] = rng.integers(_WORDS, size=(m, context))
    one.gold[:m] = (rng.random(m) * kept.sum(axis=1)).astype(int)
    rows.setdefault(width, []).append(one)
  groups = []
  for own in rows.values():
    packed = packing.Packed(*(np.stack(field) for field in zip(*own)))
    there = packed.gold >= 0
    numbers = np.where(there, np.cumsum(there).reshape(there.shape) - 1, -1)
    groups.append(packing.Group(np.arange(len(own)), numbers, packed))
  config = linking.Config(coherence=coherence, hidden=_HIDDEN)
  params = linking.init_params(config, _DIM, jax.random.key(0))
  return Work(config, linking.Tables(entities, words), groups, params)


@functools.cache
def _trainer(config: linking.Config):
  return linking.disambiguator(config, optax.adam(_RATE))


def _batches(data: Work):
  """The batches of an epoch, the same for all."""
  rng = np.random.default_rng(0)
  return [x for _, x in packing.batches(data.groups, _MENTIONS, rng)]


def ours(data: Work) -> list[float]:
  """Losses of the steps of an epoch."""
  init, update = _trainer(data.config)
  state = init(jax.random.key(0), data.tables)
  tables = linking.Tables(*map(jax.numpy.asarray, data.tables))
  losses = []
  for batch in _batches(data):
    state, info = update(state, tables, batch, _MARGIN)
    losses.append(info.loss)
  return [float(x) for x in losses]


def torch_batches(data: Work) -> list[float]:
  """The same steps in torch."""
  return _torch_epoch(data, _batches(data))


def torch_documents(data: Work) -> list[float]:
  """An epoch in torch with one document in a step, without padding."""
  single = []
  for group in data.groups:
    for row in range(len(group.places)):
      m = int((group.packed.gold[row] >= 0).sum())
      single.append(
        packing.Packed(*(field[row : row + 1, :m] for field in group.packed))
      )
  order = np.random.default_rng(0).permutation(len(single))
  return _torch_epoch(data, [single[i] for i in order])


def _torch_epoch(data: Work, batches) -> list[float]:
  import torch

  params = {
    name: torch.nn.Parameter(torch.from_numpy(np.array(value)))
    for name, value in data.params._asdict().items()
  }
  tables = [torch.from_numpy(np.asarray(x)) for x in data.tables]
  optimizer = torch.optim.Adam(params.values(), _RATE)
  losses = []
  for batch in batches:
    optimizer.zero_grad()
    loss = _torch_loss(torch, data.config, params, tables, batch)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
  return losses


def _torch_loss(torch, config, params, tables, batch):
  """Mean margin loss of documents, ids [n, m, c]."""
  ids, log_prior, around, gold = map(torch.from_numpy, batch)
  ids, around, gold = ids.long(), around.long(), gold.long()
  mask, known = ids >= 0, around >= 0
  entities = tables[0][ids.clamp(min=0)] * mask[..., None]
  words = tables[1][around.clamp(min=0)] * known[..., None]
  votes = (words * params["attention"]) @ entities.transpose(-1, -2)
  votes = votes.masked_fill(~mask[..., None, :], _LOW).amax(dim=-1)
  usable = known & mask.any(dim=-1, keepdim=True)
  votes = votes.masked_fill(~usable, _LOW)
  best, places = votes.topk(min(config.keep, votes.shape[-1]), dim=-1)
  kept = usable.gather(-1, places)
  weights = torch.softmax(best.masked_fill(~kept, _LOW), dim=-1) * kept
  index = places[..., None].expand(*places.shape, words.shape[-1])
  voters = words.gather(-2, index)
  context = params["context"] * (weights[..., None] * voters).sum(dim=-2)
  scores = (entities @ context[..., None])[..., 0] * mask
  log_prior = log_prior * mask
  if config.coherence:
    scores = _torch_field(torch, config, params, entities, scores, mask)
  inputs = torch.stack([scores, log_prior, torch.ones_like(scores)], dim=-1)
  final = torch.relu(inputs @ params["inner"][:3]) @ params["outer"]
  right = final.gather(-1, gold.clamp(min=0)[..., None])
  counted = mask & (gold >= 0)[..., None]
  counted &= torch.arange(mask.shape[-1]) != gold[..., None]
  excess = torch.relu(_MARGIN - right + final) * counted
  return excess.sum() / (gold >= 0).sum().clamp(min=1)


def _torch_field(torch, config, params, entities, unary, mask):
  """Max-marginals of the random field by loopy belief propagation."""
  count = mask.any(dim=-1).sum(dim=-1).clamp(min=2)
  pairs = (
    torch.einsum("niad,njbd->nijab", entities * params["pair"], entities)
    * (2 / (count - 1))[:, None, None, None, None]
  )
  pairs = pairs.masked_fill(~mask[:, :, None, :, None], _LOW)
  width = mask.shape[1]
  apart = ~torch.eye(width, dtype=torch.bool)
  received = mask[:, None] & apart[None, :, :, None]
  # A mention without candidates sends nothing.
  received = received & mask.any(dim=-1)[:, :, None, None]
  sizes = mask.sum(dim=-1).clamp(min=1).float()
  messages = torch.where(received, -sizes.log()[:, None, :, None], 0.0)
  for _ in range(config.iterations):
    belief = unary + messages.sum(dim=1)
    heard = belief[:, :, None] - messages.transpose(1, 2)
    new = (heard[..., None] + pairs).amax(dim=3)
    new = _torch_normalize(torch, new, received)
    old = config.damping * messages.exp()
    mixed = old + (1 - config.damping) * new.exp()
    messages = torch.where(received, mixed.log(), 0.0)
  beliefs = _torch_normalize(torch, unary + messages.sum(dim=1), mask)
  return torch.where(mask, beliefs.exp(), 0.0)


def _torch_normalize(torch, scores, mask):
  scores = torch.log_softmax(scores.masked_fill(~mask, _LOW), dim=-1)
  return torch.where(mask, scores, 0.0)


def _quality(data: Work, result: list[float]) -> dict[str, float]:
  """Steps, the first loss and the mean of all."""
  del data
  return {
    "steps": len(result),
    "first": result[0],
    "mean": float(np.mean(result)),
  }


def cases(size: str) -> list[harness.Case]:
  """The cases of this suite."""
  contenders = {
    "ours": ours,
    "torch, one document": torch_documents,
    "torch, batches": torch_batches,
  }
  return [
    harness.Case(
      f"{name} model on {_SIZES[size][0]} documents",
      functools.partial(work, size, coherence),
      contenders,
      quality=_quality,
    )
    for name, coherence in (("local", False), ("global", True))
  ]
