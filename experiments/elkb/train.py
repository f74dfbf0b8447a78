"""Trains and ranks a knowledge base as `experiments.elkb` asks for it."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh

from experiments.elkb import data
from experiments.run import progress, runlib
from repr_jax import errors
from repr_jax.kb import (
  candidate_training,
  link_prediction,
  negatives,
  pair_training,
  rule_kinds,
  rule_projection,
  scores,
)
from repr_jax.kb import rule_compiler as kb_constraints
from repr_jax.ops import mesh as meshes


@dataclasses.dataclass(frozen=True)
class Setting:
  """How a model is trained; the flags of `experiments.elkb` by name."""

  model: str = "B"
  dim: int = 100
  constrained: bool = True
  nonnegative: bool = True
  trainer: str = "pairs"
  optimizer: str = "sgd"
  batch: int = 10
  eta: float = 0.125
  alpha: float = 0.001
  negatives: int = 200
  unknown: str = "any"
  order: str = "turns"
  candidates: int = 0
  loss: str = "softmax"
  penalty: str = "l2"
  scale: float = 0.1
  mixing: float = 0.8
  cap: float = 0.2
  radius: float = 1.0
  seed: int = 0


@dataclasses.dataclass
class System:
  """A model in training.

  Attributes:
    setting: how it is trained.
    constraints: compiled rules, or None.
    state: what an epoch changes.
    epoch: (state, key) -> (state, mean loss).
    inputs: known facts and training facts.
    pure: (inputs, state, key, eta, alpha) -> (state, mean loss), to be mapped
      over runs and compiled.
    mesh: devices that share batches in training and entities in ranking.
  """

  setting: Setting
  constraints: kb_constraints.Constraints | None
  state: Any
  epoch: Callable[[Any, jax.Array], tuple[Any, jax.Array]]
  inputs: tuple[negatives.Known, jax.Array]
  pure: Callable[..., tuple[Any, jax.Array]]
  mesh: Mesh | None = None

  @property
  def params(self) -> scores.Params:
    """The tables."""
    return getattr(self.state, "params", self.state)


def compile_for(
  kb: data.KnowledgeBase, setting: Setting
) -> kb_constraints.Constraints | None:
  """The constraints of a setting; None where it has none.

  Args:
    kb: the knowledge base.
    setting: the setting.

  Returns:
    The compiled rules.
  """
  if not setting.constrained:
    return None
  for rule in kb.rules:
    if rule.kind not in rule_kinds.SUPPORTED[setting.model]:
      able = [
        x for x, some in rule_kinds.SUPPORTED.items() if rule.kind in some
      ]
      raise errors.InputError(
        f"--model={setting.model} has no sufficient condition for {rule}; the "
        f"models that have one are {', '.join(able)}"
      )
  numbers = rule_kinds.Settings(setting.mixing, setting.cap, setting.radius)
  return kb_constraints.compile_rules(
    setting.model,
    kb.rules,
    kb.relations,
    kb.entities,
    numbers,
    setting.nonnegative,
  )


def prepare(
  kb: data.KnowledgeBase, setting: Setting, mesh: Mesh | None = None
) -> System:
  """Compiles the rules, draws a start and sets up the trainer.

  Args:
    kb: the knowledge base.
    setting: how to train.
    mesh: devices to train and rank on; None for one.

  Returns:
    The system before its first epoch.
  """
  if setting.model == "complex" and setting.dim % 2:
    raise errors.InputError(
      f"--dim={setting.dim}: complex takes an even number, half of it for the "
      "imaginary parts"
    )
  sizes = len(kb.entities), len(kb.relations)
  params = scores.init_params(
    setting.model,
    jax.random.key(setting.seed),
    *sizes,
    setting.dim,
    setting.scale,
  )
  compiled = compile_for(kb, setting)
  if compiled is not None:
    numbers = rule_kinds.Settings(setting.mixing, setting.cap, setting.radius)
    params = rule_projection.checked_start(
      setting.model,
      kb.rules,
      kb.relations,
      kb.entities,
      compiled,
      params,
      numbers,
    )
  known = negatives.known_facts(kb.splits.train.array, *sizes)
  facts = jnp.asarray(kb.splits.train.array)
  if mesh is not None:
    params, known, facts, compiled = jax.tree.map(
      lambda x: meshes.place(x, mesh), (params, known, facts, compiled)
    )
  if setting.trainer == "pairs":
    return _pairs(setting, compiled, params, known, facts, mesh)
  return _many(setting, compiled, params, known, facts, mesh)


def make_optimizer(
  name: str, rate: float | jax.Array
) -> optax.GradientTransformation:
  """An optax optimizer by name.

  Args:
    name: "sgd", "adagrad", "adam" or "rmsprop".
    rate: step size, scalar.

  Returns:
    The optimizer.
  """
  if name == "adagrad":
    return optax.adagrad(rate, initial_accumulator_value=0.0, eps=1e-24)
  makers = {"sgd": optax.sgd, "adam": optax.adam, "rmsprop": optax.rmsprop}
  if name not in makers:
    raise errors.InputError(
      f"--optimizer={name}: there are adagrad, {', '.join(makers)}"
    )
  return makers[name](rate)


def rank_facts(
  kb: data.KnowledgeBase,
  model: str,
  params: scores.Params,
  facts: np.ndarray,
  block: int = 128,
  unseen: str = "last",
  mesh: Mesh | None = None,
) -> link_prediction.Ranks:
  """Ranks facts on both sides among all entities.

  Args:
    kb: the knowledge base, whose facts the filtered ranks leave out.
    model: one of `kb.scores.SCORES`.
    params: the tables.
    facts: head, relation, tail, int [n, 3].
    block: queries at a time.
    unseen: "last" or "drop", for facts with entities outside training.
    mesh: devices that share the entities.

  Returns:
    The ranks.
  """
  heads, tails = link_prediction.scorers(model, params, mesh)
  return link_prediction.rank(
    heads,
    tails,
    facts,
    kb.known,
    block=block,
    num_entities=len(kb.entities),
    num_relations=len(kb.relations),
    seen=kb.seen,
    unseen="drop" if unseen == "drop" else "last",
  )


class Schedule(NamedTuple):
  """How long to train, and when to look at validation facts.

  Attributes:
    epochs: at most.
    eval_every: epochs between looks.
    eval_limit: validation facts looked at.
    patience: looks without a better HITS@10 before training stops.
    block: queries at a time.
  """

  epochs: int
  eval_every: int
  eval_limit: int
  patience: int
  block: int


class Watch:
  """Early stopping of one run: looks, logs, keeps the best, checkpoints.

  Attributes:
    start: the last epoch that a checkpoint has seen, -1 where there is none.
    state: what training goes on from.
    key: random key of the run's epochs.
  """

  def __init__(
    self,
    run: runlib.Run,
    kb: data.KnowledgeBase,
    system: System,
    schedule: Schedule,
  ):
    """Takes up the run's last checkpoint, or its start."""
    self._run, self._kb, self._model = run, kb, system.setting.model
    self._schedule, self._mesh = schedule, system.mesh
    self._facts = kb.splits.valid.array[: schedule.eval_limit]
    best = jax.tree.map(np.asarray, system.params)
    memory = {"state": system.state, "best": best, "score": -1.0, "idle": 0}
    self.start, self._memory = run.restore(memory) or (-1, memory)
    self.state = jax.tree.map(jnp.asarray, self._memory["state"])
    self.key = jax.random.key(system.setting.seed + 1)

  def resting(self) -> bool:
    """Whether patience has ended."""
    return int(self._memory["idle"]) >= self._schedule.patience

  def looks(self, epoch: int) -> bool:
    """Whether validation facts are ranked after an epoch."""
    schedule = self._schedule
    return not (
      (epoch + 1) % schedule.eval_every and epoch + 1 < schedule.epochs
    )

  def after(self, epoch: int, state: Any, loss: float) -> None:
    """Logs an epoch; where it is time, looks, compares and checkpoints.

    Args:
      epoch: from 0.
      state: of training after it; not read where `looks` is False.
      loss: mean over the epoch.
    """
    if not self.looks(epoch):
      self._run.log(epoch, loss=loss)
      return
    params = jax.tree.map(jnp.asarray, getattr(state, "params", state))
    block = self._schedule.block
    ranks = rank_facts(
      self._kb, self._model, params, self._facts, block, mesh=self._mesh
    )
    figures = link_prediction.summary(ranks)
    shown = {k: figures[k] for k in ("mrr", "hits@3", "hits@10")}
    self._run.log(epoch, loss=loss, **shown)
    progress.say(
      f"epoch {epoch + 1}: loss {loss:.4f}, validation MRR "
      f"{figures['mrr']:.3f}, HITS@10 {figures['hits@10']:.3f}"
    )
    memory = self._memory
    if figures["hits@10"] > float(memory["score"]):
      best = jax.tree.map(np.asarray, params)
      memory |= {"best": best, "score": figures["hits@10"], "idle": 0}
    else:
      memory["idle"] = int(memory["idle"]) + 1
    memory["state"] = state
    self._run.save(epoch, memory)

  def best(self) -> scores.Params:
    """The tables with the best figure so far."""
    return jax.tree.map(jnp.asarray, self._memory["best"])


def train(
  run: runlib.Run,
  kb: data.KnowledgeBase,
  system: System,
  epochs: int,
  eval_every: int,
  eval_limit: int,
  patience: int,
  block: int,
) -> scores.Params:
  """Trains with early stopping on HITS@10 of validation facts.

  Args:
    run: logs and checkpoints.
    kb: the knowledge base.
    system: what to train.
    epochs: at most.
    eval_every: epochs between looks.
    eval_limit: validation facts looked at.
    patience: looks without a better figure.
    block: queries at a time.

  Returns:
    The best tables.
  """
  schedule = Schedule(epochs, eval_every, eval_limit, patience, block)
  watch = Watch(run, kb, system, schedule)
  state = watch.state
  for epoch in run.progress(range(watch.start + 1, epochs), "epoch"):
    if watch.resting():
      break
    state, loss = system.epoch(state, jax.random.fold_in(watch.key, epoch))
    watch.after(epoch, state, float(loss))
  return watch.best()


def _pairs(setting, compiled, params, known, facts, mesh):
  if setting.optimizer != "sgd":
    raise errors.InputError(
      f"--optimizer={setting.optimizer} needs --trainer=many; --trainer=pairs "
      "is the thesis' algorithm, which steps by sgd"
    )
  repeats = setting.negatives if setting.order == "stay" else 1
  passes = setting.negatives // repeats
  options = pair_training.Options(
    setting.model, setting.batch, setting.unknown, mesh, repeats
  )
  rates = pair_training.Rates(setting.eta, setting.alpha)

  def epoch(state, key):
    keys = jax.random.split(key, passes)
    state, losses = pair_training.train(
      options, compiled, known, facts, state, keys, rates
    )
    return state, losses.mean()

  def pure(inputs, state, key, eta, alpha):
    known, facts = inputs
    keys = jax.random.split(key, passes)
    rates = pair_training.Rates(eta, alpha)
    state, losses = pair_training.train_passes(
      options, compiled, known, facts, state, keys, rates
    )
    return state, losses.mean()

  return System(setting, compiled, params, epoch, (known, facts), pure, mesh)


def _many(setting, compiled, params, known, facts, mesh):
  if setting.batch > facts.shape[0]:
    raise errors.InputError(
      f"--batch={setting.batch} is larger than the {facts.shape[0]} facts"
    )
  options = candidate_training.Options(
    setting.model,
    setting.batch,
    setting.candidates,
    setting.loss,
    setting.penalty,
    mesh,
  )
  optimizer = make_optimizer(setting.optimizer, setting.eta)

  def epoch(state, key):
    return candidate_training.train(
      options, optimizer, compiled, known, facts, state, key, setting.alpha
    )

  def pure(inputs, state, key, eta, alpha):
    known, facts = inputs
    same = make_optimizer(setting.optimizer, eta)
    return candidate_training.train_pass(
      options, same, compiled, known, facts, state, key, alpha
    )

  state = candidate_training.init(optimizer, params)
  return System(setting, compiled, state, epoch, (known, facts), pure, mesh)
