"""Training a knowledge base, ours and PyKEEN (thesis 5.4).

python -m experiments.bench --suite=kb [--size=full]

Model T (TransE), 100 numbers per entity, one unknown fact per fact, SGD; the
"full" size has the shape of WN18 (141,442 facts, 40,943 entities, 18
relations). Each call trains the same number of epochs. The losses differ: ours
is BPR with projection of the rows that a step touched, PyKEEN's is margin
ranking with all entities normalized after each step. The suite goes on with the
cases of `experiments.bench.kb_ranking`; all of it takes about a quarter of an
hour at full size and five rounds on two quiet cores. A case can be run alone:

python -m experiments.bench --suite=kb --cases="filtered ranking of T"
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.bench import harness, kb_ranking, kb_softmax
from experiments.bench.kb_softmax import Facts
from repr_jax.data.rules import Rule
from repr_jax.kb import (
  negatives,
  pair_training,
  rule_compiler,
  rule_projection,
  scores,
)

_SHAPES = {"small": (10_000, 4_000, 18), "full": (141_442, 40_943, 18)}
_EPOCHS = {"small": 1, "full": 2}
_DIM = 100


def train_ours(
  size: str, batch_size: int, rules: str, data: Facts
) -> scores.Params:
  """Trains model T by projected SGD.

  Args:
    batch_size: facts in a step.
    rules: "none"; "inverses" for seven mutual RevImp pairs, as in WN18; or
      "ball" for these and a RelImp, which also keeps touched entities in a
      ball.
  """
  config = pair_training.SGDConfig(
    data.entities, data.relations, "T", _DIM, "corrupt", batch_size
  )
  known, device, compiled = _prepared(size, rules, data)
  params = scores.init_params(
    "T", jax.random.key(0), data.entities, data.relations, _DIM
  )
  if compiled is not None:
    params = rule_projection.project(compiled, params)
  rates = jnp.float32(0.01), jnp.float32(0.001)
  state = pair_training.SGDState(params, *rates)
  keys = jax.random.split(jax.random.key(1), _EPOCHS[size])
  state, _ = pair_training.train(config, compiled, known, device, state, keys)
  return jax.block_until_ready(state.params)


def train_pykeen(size: str, batch: int, data: Facts) -> Any:
  """Trains TransE by PyKEEN's loop with sampled negatives and SGD.

  Args:
    batch: facts in a step.

  Returns:
    The losses, one for each epoch.
  """
  import torch
  from pykeen.models import TransE
  from pykeen.training import SLCWATrainingLoop
  from pykeen.triples import CoreTriplesFactory

  factory = CoreTriplesFactory(
    torch.as_tensor(data.array.astype(np.int64)), data.entities, data.relations
  )
  model = TransE(triples_factory=factory, embedding_dim=_DIM, random_seed=0)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
  loop = SLCWATrainingLoop(
    model=model, triples_factory=factory, optimizer=optimizer
  )
  losses = loop.train(
    triples_factory=factory,
    num_epochs=_EPOCHS[size],
    batch_size=batch,
    use_tqdm=False,
    use_tqdm_batch=False,
  )
  if losses is None or len(losses) != _EPOCHS[size]:
    raise RuntimeError("PyKEEN did not train every epoch")
  return losses


def cases(size: str) -> list[harness.Case]:
  """The cases of this suite: training, ranking and ALS."""
  setup = functools.partial(kb_softmax.facts, *_SHAPES[size])
  ours = functools.partial(train_ours, size)
  peer = functools.partial(train_pykeen, size, 1024)
  training = [
    harness.Case(
      f"training T at batch {batch} with rules: {rules}",
      setup,
      {
        "ours": functools.partial(ours, batch, rules),
        "pykeen at batch 1024": peer,
      },
    )
    for batch, rules in (
      (1024, "none"),
      (1024, "inverses"),
      (1024, "ball"),
      (10, "inverses"),
    )
  ]
  return [*training, *kb_softmax.cases(size), *kb_ranking.cases(size)]


_CACHE: dict[tuple[str, str], tuple] = {}


def _prepared(size, rules, data):
  """Tables on the device, made once in a process."""
  if (size, rules) not in _CACHE:
    known = negatives.known_facts(data.array, data.entities, data.relations)
    device = jnp.asarray(data.array)
    _CACHE[size, rules] = known, device, _rules(rules, data)
  return _CACHE[size, rules]


def _rules(kind, data):
  if kind == "none":
    return None
  rules = []
  for i in range(0, 14, 2):
    rules += [Rule("RevImp", (i, i + 1)), Rule("RevImp", (i + 1, i))]
  if kind == "ball":
    rules.append(Rule("RelImp", (16, 17)))
  return rule_compiler.compile_rules("T", rules, data.relations, data.entities)
