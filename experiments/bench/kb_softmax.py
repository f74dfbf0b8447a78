"""ComplEx by full softmax at FB15k-237's shape: our code and PyKEEN.

This case belongs to the suite `experiments.bench.kb`. Both packages train on
the same questions (an entity with a relation or its inverse), 256 in a step.
Each question is scored against all 14,541 entities, which have 128 complex
numbers each. The optimizer is Adagrad. Our code also has the N3 penalty. A call
at full size is a tenth of an epoch.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.bench import harness
from experiments.elkb.train import make_optimizer
from repr_jax.kb import candidate_training, query_loss
from repr_jax.kb.candidate_loss import CandidateConfig
from repr_jax.kb.score_models import get_model, reciprocal

_SHAPES = {"small": (1_000, 2_000, 50), "full": (27_211, 14_541, 237)}
_RANK = 128
_BATCH = 256


class Facts(NamedTuple):
  """Facts [n, 3], the number of entities and the number of relations."""

  array: np.ndarray
  entities: int
  relations: int


def cases(size: str) -> list[harness.Case]:
  """One benchmark of an epoch; at full size, of a tenth of an epoch."""
  contenders = {"ours": _train, "pykeen": _train_pykeen}
  setup = functools.partial(facts, *_SHAPES[size])
  return [harness.Case("full softmax of ComplEx", setup, contenders)]


def facts(count: int, entities: int, relations: int) -> Facts:
  """Draws distinct facts; entities follow a power law, as in WN18."""
  rng = np.random.default_rng(0)
  weight = (np.arange(entities) + 10.0) ** -0.5
  ends = rng.choice(entities, (2 * count, 2), p=weight / weight.sum())
  kind = rng.integers(relations, size=2 * count)
  array = np.unique(np.stack([ends[:, 0], kind, ends[:, 1]], 1), axis=0)
  array = rng.permutation(array)[:count].astype(np.int32)
  return Facts(array, entities, relations)


def _train(facts: Facts) -> float:
  """Trains for one pass over the questions; returns the mean loss."""
  step, inputs, state = harness.kept("softmax", lambda: _prepared(facts))
  # A pass consumes its state, so each call makes a copy.
  state = jax.tree.map(jnp.copy, state)
  _, loss = step(None, None, inputs, state, jax.random.key(1))
  return float(loss)


def _prepared(facts: Facts) -> tuple[Any, Any, Any]:
  config = CandidateConfig(
    facts.entities,
    facts.relations,
    reciprocal(get_model("complex")),
    2 * _RANK,
    regularizer="n3",
    batch_size=_BATCH,
  )
  optimizer = make_optimizer("adagrad", 0.1)
  questions = query_loss.group_queries(facts.array)
  state = candidate_training.init(
    config, optimizer, None, jax.random.key(0), penalty=0.05, scale=0.001
  )
  step = functools.partial(candidate_training.train, config, optimizer)
  return step, jax.tree.map(jnp.asarray, questions), state


def _train_pykeen(facts: Facts) -> float:
  """Does the same by PyKEEN's loop, with all entities as targets."""
  import torch
  from pykeen.training import LCWATrainingLoop

  factory, model = harness.kept("softmax", lambda: _prepared_pykeen(facts))
  # A loop that has trained its epoch would not train again.
  optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
  loop = LCWATrainingLoop(
    model=model, triples_factory=factory, optimizer=optimizer
  )
  losses = loop.train(
    triples_factory=factory,
    num_epochs=1,
    batch_size=_BATCH,
    use_tqdm=False,
    use_tqdm_batch=False,
  )
  if losses is None or len(losses) != 1:
    raise RuntimeError("PyKEEN did not train the epoch")
  return losses[0]


def _prepared_pykeen(facts: Facts) -> tuple[Any, Any]:
  import torch
  from pykeen.losses import CrossEntropyLoss
  from pykeen.models import ComplEx
  from pykeen.triples import CoreTriplesFactory

  factory = CoreTriplesFactory(
    torch.as_tensor(facts.array.astype(np.int64)),
    facts.entities,
    facts.relations,
    create_inverse_triples=True,
  )
  model = ComplEx(
    triples_factory=factory,
    embedding_dim=_RANK,
    loss=CrossEntropyLoss(),
    regularizer=None,
    random_seed=0,
  )
  return factory, model
