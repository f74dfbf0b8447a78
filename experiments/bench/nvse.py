"""The autoencoder of entities: training steps and queries (thesis 4.5, 4.6).

python -m experiments.bench --suite=nvse [--size=small]

The "full" size is the thesis': 105,448 features, a hidden layer of 500, 50
latent numbers, batches of 64 entities with 64 features each, exact softmax;
and queries over 80,000 entities. All contenders of the training case start
from the same parameters and see the same batches and noise. The first call is
longer, and "loss" is the loss of its last step. Each later call trains a few
more steps; its time includes packing the batches. A full run of five rounds
takes about four minutes.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from experiments.bench.harness import Case

_STEPS = 5
_RATE = 1e-3
_K = 100


@dataclasses.dataclass(frozen=True)
class _Shape:
  features: int
  hidden: int
  latent: int
  batch: int
  nonzeros: int
  entities: int
  sampled: int
  first_steps: int
  queries: int


_SHAPES = {
  "full": _Shape(105_448, 500, 50, 64, 64, 80_000, 4096, 100, 256),
  "small": _Shape(2_000, 32, 8, 16, 16, 3_000, 256, 10, 8),
}


class Training(NamedTuple):
  """Start, batches and noise that all contenders share.

  Attributes:
    shape: the sizes.
    table: first layer, [F, h].
    mean: kernel of the head, [h, d].
    log_variance: kernel of the other head, [h, d].
    decoder: weights and biases, [F, d + 1].
    ids: features of the entities, int32 [X, nonzeros].
    counts: float32 [X, nonzeros].
    noise: [first steps, b, d].
  """

  shape: _Shape
  table: np.ndarray
  mean: np.ndarray
  log_variance: np.ndarray
  decoder: np.ndarray
  ids: np.ndarray
  counts: np.ndarray
  noise: np.ndarray


def training_data(size: str) -> Training:
  """Draws what a training case needs; features follow a power law."""
  s = _SHAPES[size]
  rng = np.random.default_rng(0)
  normal: Any = functools.partial(rng.standard_normal, dtype=np.float32)
  entities = s.batch * s.first_steps
  return Training(
    s,
    normal((s.features, s.hidden)) / np.float32(np.sqrt(s.nonzeros)),
    normal((s.hidden, s.latent)) / np.float32(np.sqrt(s.hidden)),
    normal((s.hidden, s.latent)) / np.float32(np.sqrt(s.hidden)),
    normal((s.features, s.latent + 1)) * np.float32(0.01),
    _distinct_features(rng, entities, s.features, s.nonzeros),
    rng.geometric(0.6, (entities, s.nonzeros)).astype(np.float32),
    normal((s.first_steps, s.batch, s.latent)),
  )


def _distinct_features(rng, entities, features, nonzeros):
  """Distinct features of each entity, sorted, mostly small ids, [X, n]."""
  ids = np.empty((entities, nonzeros), np.int32)
  for i in range(entities):
    drawn = (features * rng.random(4 * nonzeros) ** 1.5).astype(np.int32)
    distinct = rng.permutation(np.unique(drawn))[:nonzeros]
    ids[i] = np.sort(distinct)
  return ids


# What a contender keeps between calls; each has a process of its own.
_KEPT: dict[str, Any] = {}


def _steps(data: Training, step, name: str, few: bool) -> float:
  """The first steps in a first call, a few more in each later one."""
  first = name not in _KEPT and not few
  count = data.shape.first_steps if first else _STEPS
  _KEPT.setdefault(name, 0)
  loss = 0.0
  for _ in range(count):
    at = _KEPT[name] % data.shape.first_steps
    rows = slice(at * data.shape.batch, (at + 1) * data.shape.batch)
    loss = step(data.ids[rows], data.counts[rows], data.noise[at])
    _KEPT[name] += 1
  return float(loss)


def train_ours(sampled: bool, data: Training) -> float:
  """Trains by our steps, chunks of them in one program.

  Args:
    sampled: whether the softmax is sampled.

  Returns:
    The last loss.
  """
  import optax

  from repr_jax.setexp import autoencoder, batches, fitting, train

  s = data.shape
  if "ours" not in _KEPT:
    config = autoencoder.Config(
      s.latent, (s.hidden,), sampled=s.sampled if sampled else 0
    )
    problem = fitting.prepare(config, _csr(data))
    state = train.init_state(
      config, optax.adam, _params(data, config), problem.statistics.inputs
    )
    _KEPT["ours"] = problem, state, 0
    calls = s.first_steps // _STEPS
  else:
    calls = 1
  problem, state, at = _KEPT["ours"]
  rng = np.random.default_rng(at)
  for _ in range(calls):
    part = slice(at, at + _STEPS)
    order = np.arange(at * s.batch, (at + _STEPS) * s.batch)
    packed = batches.pack(
      problem.counts,
      order.reshape(_STEPS, s.batch),
      problem.proposal,
      problem.config.sampled,
      rng,
    )
    noise = data.noise[part, None]
    state, info = train.run(
      problem.config, optax.adam, state, packed, noise, train.Hyper(_RATE)
    )
    at = (at + _STEPS) % s.first_steps
  _KEPT["ours"] = problem, state, at
  return float(info.loss[-1])


def _csr(data: Training) -> sp.csr_array:
  s = data.shape
  start = np.arange(0, data.ids.size + 1, s.nonzeros)
  parts = (data.counts.ravel(), data.ids.ravel(), start)
  return sp.csr_array(parts, (len(data.ids), s.features))


def _params(data: Training, config):
  import jax
  import jax.numpy as jnp

  from repr_jax.setexp import autoencoder

  encoder = autoencoder.Encoder(config).init(
    jax.random.key(0), jnp.zeros(data.shape.hidden)
  )["params"]
  for name in ("mean", "log_variance"):
    encoder[name]["kernel"] = jnp.asarray(getattr(data, name))
  return autoencoder.Params(
    jnp.asarray(data.table), encoder, jnp.asarray(data.decoder)
  )


def train_torch(dense: bool, data: Training) -> float:
  """Trains by PyTorch: touched rows by SparseAdam, or all by Adam.

  Args:
    dense: whether the first layer is an ordinary one with dense inputs.

  Returns:
    The last loss. With dense inputs the first call is not longer.
  """
  import torch

  if "torch" not in _KEPT:
    _KEPT["torch"] = _torch_model(dense, data)
  step = functools.partial(_torch_step, torch, dense, data, *_KEPT["torch"])
  # A hundred dense steps would take minutes, and dense Adam differs anyway.
  return _steps(data, step, "steps", few=dense)


def _torch_model(dense: bool, data: Training):
  import torch

  def linear(kernel, bias=None):
    layer = torch.nn.Linear(kernel.shape[1], kernel.shape[0])
    with torch.no_grad():
      layer.weight.copy_(torch.from_numpy(np.ascontiguousarray(kernel)))
      layer.bias.zero_()
      if bias is not None:
        layer.bias.copy_(torch.from_numpy(bias))
    return layer

  decoder = np.ascontiguousarray(data.decoder[:, :-1])
  layers = torch.nn.ModuleDict(
    {
      "mean": linear(data.mean.T),
      "log_variance": linear(data.log_variance.T),
      "decoder": linear(decoder, np.ascontiguousarray(data.decoder[:, -1])),
    }
  )
  if dense:
    layers["first"] = linear(data.table.T)
    return layers, [torch.optim.Adam(layers.parameters(), _RATE)]
  bias = torch.nn.Parameter(torch.zeros(data.shape.hidden))
  rest = [*layers.parameters(), bias]
  layers["first"] = torch.nn.EmbeddingBag.from_pretrained(
    torch.from_numpy(data.table.copy()), freeze=False, mode="sum", sparse=True
  )
  layers.register_parameter("bias", bias)
  sparse = torch.optim.SparseAdam(list(layers["first"].parameters()), _RATE)
  return layers, [sparse, torch.optim.Adam(rest, _RATE, fused=True)]


def _torch_step(torch, dense, data, layers, optimizers, ids, counts, noise):
  ids = torch.from_numpy(ids.astype(np.int64))
  counts = torch.from_numpy(counts)
  if dense:
    wide = torch.zeros(len(ids), data.shape.features)
    hidden = layers["first"](wide.scatter_(1, ids, counts))
  else:
    hidden = layers["first"](ids, per_sample_weights=counts) + layers.bias
  hidden = torch.tanh(hidden)
  mean, log_variance = layers["mean"](hidden), layers["log_variance"](hidden)
  z = mean + torch.exp(log_variance / 2) * torch.from_numpy(noise)
  logs = torch.log_softmax(layers["decoder"](z), dim=1)
  kl = (torch.exp(log_variance) - log_variance - 1 + mean**2).sum(1) / 2
  loss = (kl - (logs.gather(1, ids) * counts).sum(1)).mean()
  for optimizer in optimizers:
    optimizer.zero_grad()
  loss.backward()
  for optimizer in optimizers:
    optimizer.step()
  return loss.detach()


class Asking(NamedTuple):
  """Encoded entities and queries.

  Attributes:
    xi: natural parameters of the entities, [d, X].
    precision: [d, X].
    decoder: weights and biases, [F, d + 1].
    queries: rows of the members of each query, [n, 3].
    best: the k best entities of each query in float64, [n, k].
  """

  xi: np.ndarray
  precision: np.ndarray
  decoder: np.ndarray
  queries: np.ndarray
  best: np.ndarray


def query_data(size: str) -> Asking:
  """Draws entities and queries."""
  s = _SHAPES[size]
  rng = np.random.default_rng(0)
  normal: Any = functools.partial(rng.standard_normal, dtype=np.float32)
  xi = 2 * normal((s.latent, s.entities))
  precision = 1 + rng.random((s.latent, s.entities), np.float32)
  decoder = 0.3 * normal((s.features, s.latent + 1))
  queries = rng.permutation(s.entities)[: 3 * s.queries].reshape(-1, 3)
  best = [
    _numpy_scores(xi.astype(np.float64), query).argsort()[::-1][:_K]
    for query in queries[:8]
  ]
  return Asking(xi, precision, decoder, queries, np.array(best))


def _numpy_scores(xi: np.ndarray, query: np.ndarray) -> np.ndarray:
  vector = xi[:, query].sum(axis=1)
  scores = 2 * vector @ xi - np.einsum("dx,dx->x", xi, xi)
  scores[query] = -np.inf
  return scores


def _our_model(data: Asking):
  import jax
  import jax.numpy as jnp

  from repr_jax import setexp
  from repr_jax.ops import gaussian
  from repr_jax.setexp import autoencoder, gaussian_scores, rows

  if "model" not in _KEPT:
    features, width = data.decoder.shape
    natural = gaussian.Natural(
      jnp.asarray(data.xi), jnp.asarray(data.precision)
    )
    inputs = setexp.Inputs(jnp.zeros(features), jnp.ones(()))
    none = setexp.rows_from_dense(jnp.zeros((data.xi.shape[1], 1)))
    config = setexp.Config(width - 1, (1,))
    encoder = autoencoder.Encoder(config).init(jax.random.key(0), jnp.zeros(1))
    model = setexp.Model(
      setexp.Params(
        jnp.zeros((features, 1)), encoder["params"], jnp.asarray(data.decoder)
      ),
      inputs,
      gaussian_scores.entity_side(natural),
      rows.table_from_rows(none, features),
      inputs,
      config,
    )
    own = sp.csr_array(np.ones((3, 1), np.float32))
    own.resize((3, features))
    ones = np.ones(3, np.float32)
    queries = [
      setexp.Query(own, ones, x.astype(np.int32)) for x in data.queries
    ]
    _KEPT["model"] = model, queries, setexp.make_ranking("xi")
  return setexp, *_KEPT["model"]


def ask_ours(data: Asking) -> np.ndarray:
  """One query with its rationale; returns entities [1, k]."""
  import jax

  from repr_jax import ops

  setexp, model, queries, ranking = _our_model(data)
  padded = setexp.pad_queries(model, queries[:1])
  best = setexp.expand(model, padded, ranking, _K)
  one = jax.tree.map(lambda x: x[0], padded)
  first = ops.top_k(setexp.decoder_rationale(model, one), 10)
  jax.block_until_ready(first)
  return np.asarray(best.ids)


def ask_many_ours(data: Asking) -> np.ndarray:
  """All queries at once; returns entities [n, k]."""
  setexp, model, queries, ranking = _our_model(data)
  padded = setexp.pad_queries(model, queries)
  return np.asarray(setexp.expand(model, padded, ranking, _K).ids)


def ask_numpy(many: bool, data: Asking) -> np.ndarray:
  """The same by numpy, with norms and layout prepared; entities [n, k]."""
  if "norms" not in _KEPT:
    _KEPT["norms"] = np.einsum("dx,dx->x", data.xi, data.xi)
  queries = data.queries if many else data.queries[:1]
  vectors = data.xi[:, queries].sum(axis=2).T
  scores = 2 * vectors @ data.xi - _KEPT["norms"]
  np.put_along_axis(scores, queries, -np.inf, axis=1)
  near = np.argpartition(-scores, _K, axis=1)[:, :_K]
  order = np.argsort(-np.take_along_axis(scores, near, axis=1), axis=1)
  if not many:
    precision = data.precision[:, queries[0]].sum(axis=1)
    mean = np.append(vectors[0] / precision, np.float32(1))
    logits = data.decoder @ mean
    mass = np.exp(logits - logits.max())
    mass /= mass.sum()
    first = np.argpartition(-mass, 10)[:10]
    first[np.argsort(-mass[first])]
  return np.take_along_axis(near, order, axis=1)


def ask_torch(many: bool, data: Asking) -> np.ndarray:
  """The same by PyTorch; entities [n, k]."""
  import torch

  if "torch" not in _KEPT:
    arrays = [torch.from_numpy(x) for x in data[:3]]
    _KEPT["torch"] = (*arrays, (arrays[0] ** 2).sum(0))
  xi, precision, decoder, norms = _KEPT["torch"]
  queries = torch.from_numpy(data.queries if many else data.queries[:1])
  with torch.inference_mode():
    vectors = xi[:, queries].sum(2).T
    scores = 2 * vectors @ xi - norms
    scores.scatter_(1, queries, -torch.inf)
    best = torch.topk(scores, _K, dim=1).indices
    if not many:
      spread = precision[:, queries[0]].sum(1)
      mean = torch.cat([vectors[0] / spread, torch.ones(1)])
      torch.topk(torch.softmax(decoder @ mean, 0), 10)
  return best.numpy()


def cases(size: str) -> list[Case]:
  """The cases of this suite."""
  s = _SHAPES[size]
  asking = functools.partial(query_data, size)
  return [
    Case(
      f"{_STEPS} training steps",
      functools.partial(training_data, size),
      {
        "ours": functools.partial(train_ours, False),
        "ours, sampled softmax": functools.partial(train_ours, True),
        "torch, sparse": functools.partial(train_torch, False),
        "torch, dense": functools.partial(train_torch, True),
      },
      quality=_loss,
    ),
    Case(
      f"a query over {s.entities} entities with rationale",
      asking,
      {
        "ours": ask_ours,
        "numpy": functools.partial(ask_numpy, False),
        "torch": functools.partial(ask_torch, False),
      },
      quality=_found,
    ),
    Case(
      f"{s.queries} queries over {s.entities} entities",
      asking,
      {
        "ours": ask_many_ours,
        "numpy": functools.partial(ask_numpy, True),
        "torch": functools.partial(ask_torch, True),
      },
      quality=_found,
    ),
  ]


def _loss(data: Training, result: float) -> dict[str, float]:
  del data
  return {"loss": result}


def _found(data: Asking, result: np.ndarray) -> dict[str, float]:
  """Share of the best entities of the first queries that were found."""
  shares = [
    len(set(mine) & set(best)) / len(best)
    for mine, best in zip(result, data.best)
  ]
  return {"found": float(np.mean(shares))}
