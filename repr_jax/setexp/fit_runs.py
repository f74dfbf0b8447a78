"""Several trainings of the autoencoder in one program.

Runs have their own keys and hyperparameters, as arrays, and share all else. To
train an ensemble over seeds, pass its keys.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.sparse as sp
from jax.sharding import Mesh, PartitionSpec

from repr_jax import errors
from repr_jax.ops import mesh as meshes
from repr_jax.setexp import autoencoder, batches, fitting, train

_HYPER = train.Hyper()


class FittedRuns(NamedTuple):
  """Trained models with a leading axis of runs.

  Attributes:
    params: the last parameters, arrays [n, ...]; a run that diverged has
      values that are not finite (`autoencoder.check_finite`).
    inputs: statistics for the weighting, the same for all runs.
    losses: mean training loss of each epoch, [epochs, n].
  """

  params: autoencoder.Params
  inputs: autoencoder.Inputs
  losses: np.ndarray


def fit_runs(
  counts: sp.csr_array,
  config: autoencoder.Config,
  keys: jax.Array,
  *,
  epochs: int = 20,
  hyper: train.Hyper = _HYPER,
  optimizer: train.Optimizer = optax.adam,
  batch_size: int = 64,
  samples: int = 1,
  word_vectors: np.ndarray | None = None,
  mesh: Mesh | None = None,
) -> FittedRuns:
  """`fitting.fit` of several runs, vmapped into one program.

  >>> import jax, numpy as np, scipy.sparse
  >>> from repr_jax import setexp
  >>> from repr_jax.setexp.fit_runs import fit_runs
  >>> counts = scipy.sparse.csr_array(np.eye(4, dtype=np.float32))
  >>> keys = jax.random.split(jax.random.key(0), 3)
  >>> hyper = setexp.Hyper(0.01, beta=np.array([0.1, 0.3, 1.0]))
  >>> config = setexp.Config(dim=2, hidden=(5,))
  >>> fit_runs(counts, config, keys, epochs=2, hyper=hyper).params.table.shape
  (3, 4, 5)

  Args:
    counts: [X, F].
    keys: a random key for each run, [n].
    epochs: passes over the entities; 0 gives random encoders.
    hyper: hyperparameters, each one number or one per run, [n].
    optimizer: as in `train.vae`.
    batch_size: entities in a step.
    samples: of z for each entity.
    word_vectors: start of the first layer, [F, h].
    mesh: devices that share the runs, all axes together; None for one device.

  Returns:
    The models, each as `fitting.fit` gives it for its key.
  """
  count = keys.shape[0]
  # Copies of the last run fill up the last device.
  more = 0 if mesh is None else -count % mesh.size
  runs = [*range(count), *[count - 1] * more]
  hypers = [_of_run(hyper, i, count) for i in runs]
  for own in hypers:
    fitting.check_hyper(config, own)
  problem = fitting.prepare(config, counts)
  inputs = problem.statistics.inputs
  split = [jax.random.split(keys[i], 3) for i in runs]
  states = _stack(
    [
      train.init_state(
        config,
        optimizer,
        fitting.start(problem, start_key, word_vectors),
        inputs,
      )
      for start_key, _, _ in split
    ]
  )
  traced = jax.tree.map(lambda *x: np.array(x, np.float32), *hypers)
  losses = []
  for epoch in range(epochs):
    chunks = (
      fitting.chunks(
        problem,
        jax.random.fold_in(train_key, epoch),
        batch_size,
        samples,
        dropout=hyper.dropout is not None,
      )
      for _, train_key, _ in split
    )
    means = []
    for parts in zip(*chunks, strict=True):
      packed, noise, drops = zip(*parts)
      states, info = _run_many(
        config,
        optimizer,
        mesh,
        states,
        batches.stack(packed, problem.counts.shape[1]),
        jnp.stack(noise),
        traced,
        None if drops[0] is None else jnp.stack(drops),
      )
      means.append(info.loss)
    losses.append(np.concatenate(means, axis=1).mean(axis=1))
  params = jax.vmap(functools.partial(train.parameters, config))(states)
  return FittedRuns(
    jax.tree.map(lambda x: x[:count], params),
    inputs,
    np.array(losses).reshape(-1, len(runs))[:, :count],
  )


@functools.partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=3)
def _run_many(config, optimizer, mesh, *arguments):
  """`train.run_steps` of all runs, arrays with a leading axis of runs."""
  many: Any = jax.vmap(functools.partial(train.run_steps, config, optimizer))
  if mesh is not None:
    cut = PartitionSpec(mesh.axis_names)
    many = meshes.shard_map(many, mesh, (cut,) * len(arguments), (cut, cut))
  return many(*arguments)


def _of_run(hyper: train.Hyper, run: int, count: int) -> train.Hyper:
  values: list[Any] = []
  for name, value in hyper._asdict().items():
    if value is not None and np.shape(value) not in ((), (count,)):
      raise errors.InputError(
        f"{name} has shape {np.shape(value)}; give one number, or one for each "
        f"of {count} runs"
      )
    values.append(
      None if value is None else float(np.broadcast_to(value, count)[run])
    )
  return train.Hyper(*values)


def _stack(trees: list[Any]) -> Any:
  return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)
