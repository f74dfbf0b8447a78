"""Trains a knowledge base as `experiments.elkb` asks for it."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh

from experiments.elkb import data
from experiments.elkb.config import Config
from experiments.run import progress, runlib
from repr_jax import errors
from repr_jax.kb import (
  candidate_training,
  link_prediction,
  negatives,
  pair_training,
  query_loss,
  rule_compiler,
  rule_set,
  rule_start,
  scores,
  sharding,
)
from repr_jax.kb.candidate_loss import CandidateConfig
from repr_jax.kb.rule_compiler import Constraints
from repr_jax.kb.score_model import ScoreModel
from repr_jax.ops import early_stopping
from repr_jax.ops import mesh as meshes

Inputs = tuple[negatives.Known, jax.Array | query_loss.QueryBatch]

# A model has collapsed if its figure is below this share of the best one, or
# the spread of the entities is below the second number.
FALL = 0.5
_SPREAD = 1e-6


@dataclasses.dataclass(frozen=True)
class Training:
  """A model before its first epoch.

  Attributes:
    config: how it is trained.
    constraints: compiled rules, or None.
    state: tables, optimizer and rates: all that an epoch changes, and all
      that runs of one program may differ in.
    inputs: known facts, and training facts or their questions.
    epoch: (inputs, state, key) -> (state, mean loss), jitted.
    pure: the same, to be mapped over runs and compiled.
    mesh: devices that share batches in training and entities in ranking.
  """

  config: Config
  constraints: Constraints | None
  state: Any
  inputs: Inputs
  epoch: Callable[..., tuple[Any, jax.Array]]
  pure: Callable[..., tuple[Any, jax.Array]]
  mesh: Mesh | None = None


def compile_for(kb: data.KnowledgeBase, config: Config) -> Constraints | None:
  """The compiled rules of a configuration; None where it has none.

  Args:
    kb: the knowledge base.
  """
  if not config.constrained:
    return None
  if not kb.rules and config.nonnegative:
    progress.say(
      "there are no rules, but entities are kept nonnegative; "
      "--noconstrained lets them have any sign"
    )
  model = config.score_model
  for rule in kb.rules:
    if rule_set.condition_of(model, rule.kind) is None:
      raise errors.InputError(
        f"--model={config.model} has no sufficient condition for {rule}; the "
        f"models that have one are {', '.join(rule_set.able(rule.kind))}"
      )
  return rule_compiler.compile_rules(
    model,
    kb.rules,
    kb.relations,
    kb.entities,
    config.rule_config,
    config.nonnegative,
  )


def prepare(
  kb: data.KnowledgeBase, config: Config, mesh: Mesh | None = None
) -> Training:
  """Compiles the rules, draws a start and sets up the trainer.

  Args:
    kb: the knowledge base.
    mesh: devices to train and rank on; None for one.

  Returns:
    The model before its first epoch.
  """
  sizes = len(kb.entities), len(kb.relations)
  count = len(kb.splits.train)
  facts: np.ndarray | query_loss.QueryBatch = kb.splits.train.array
  kind = "facts"
  if config.group_answers:
    # The same questions for all seeds, whose runs may share a program.
    facts = query_loss.group_queries(
      kb.splits.train.array, config.group_answers
    )
    count, kind = len(facts.given), "questions"
  if config.trainer == "candidate_softmax" and config.batch_size > count:
    raise errors.InputError(
      f"--batch_size={config.batch_size} is larger than the {count} {kind}: "
      f"give --batch_size={max(1, min(count // 5, 100))}, say"
    )
  if config.relation_weight and not config.group_answers:
    raise errors.InputError(
      "--relation_weight needs --group_answers; for example, give 16"
    )
  params = scores.init_params(
    config.score_model,
    jax.random.key(config.seed),
    *sizes,
    config.dim,
    config.scale,
  )
  compiled = compile_for(kb, config)
  if compiled is not None:
    params = rule_start.checked_start(
      compiled, params, kb.rules, kb.relations, kb.entities, config.rule_config
    )
  known = negatives.known_facts(kb.splits.train.array, *sizes)
  inputs = known, jax.tree.map(jnp.asarray, facts)
  if mesh is not None:
    inputs, compiled = _place((inputs, compiled), mesh)
  make = _projected_sgd
  if config.trainer == "candidate_softmax":
    make = _candidate_softmax
  state, epoch, pure = make(config, compiled, params, sizes, mesh)
  if mesh is not None:
    state = sharding.place_state(mesh, state)
  return Training(config, compiled, state, inputs, epoch, pure, mesh)


def _place(tree: Any, mesh: Mesh) -> Any:
  return jax.tree.map(lambda x: meshes.place(x, mesh), tree)


def extras(config: Config) -> dict[str, bool]:
  """Optional parts of the softmax, by their names in its config.

  Returns:
    For each part, whether the run has it.
  """
  return {
    "dropout": max(config.dropout, config.relation_dropout) > 0,
    "predict_relations": config.relation_weight > 0,
  }


def make_optimizer(
  name: str, learning_rate: float
) -> optax.GradientTransformation:
  """An optax optimizer by name, with the step size in its state.

  Args:
    name: "sgd", "adagrad", "adam" or "rmsprop".
  """

  def make(learning_rate):
    if name == "adagrad":
      return optax.adagrad(
        learning_rate, initial_accumulator_value=0.0, eps=1e-24
      )
    makers = {"sgd": optax.sgd, "adam": optax.adam, "rmsprop": optax.rmsprop}
    return makers[name](learning_rate)

  return optax.inject_hyperparams(make)(learning_rate)


def rank_facts(
  kb: data.KnowledgeBase,
  model: ScoreModel,
  params: scores.Params,
  facts: np.ndarray,
  block: int = 128,
  unseen: str = "last",
  mesh: Mesh | None = None,
) -> link_prediction.Ranks:
  """Ranks facts on both sides among all entities.

  Args:
    kb: the knowledge base, whose facts the filtered ranks leave out.
    facts: head, relation, tail, int [n, 3].
    block: queries at a time.
    unseen: "last" or "drop", for facts with entities outside training.
    mesh: devices that share the entities.
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


def validation_facts(kb: data.KnowledgeBase, config: Config) -> np.ndarray:
  """The validation facts that choose the epoch: a fixed random sample.

  Args:
    kb: the knowledge base.
    config: says how many.

  Returns:
    Head, relation, tail, int32 [n, 3].
  """
  facts = kb.splits.valid.array
  order = np.random.default_rng(0).permutation(len(facts))
  return facts[np.sort(order[: config.eval_limit])]


def collapse(entities: jax.Array | np.ndarray) -> str | None:
  """Says how entities have collapsed into one point.

  Args:
    entities: the table, [E, d].

  Returns:
    The reason; None where they have not.
  """
  table = np.asarray(entities, np.float64)
  spread = float(table.std(axis=0).max(initial=0))
  if len(table) < 2 or spread > _SPREAD * max(1.0, float(np.abs(table).max())):
    return None
  return f"all entities are nearly equal (spread {spread:.1g})"


class Validation:
  """Validates one run in training: logs, keeps the best, checkpoints.

  Attributes:
    start: the last epoch that a checkpoint has seen, -1 where there is none.
    epochs: passes at most.
    state: what training goes on from.
    key: random key of the run's epochs.
    stopping: says when to stop.
  """

  def __init__(
    self, run: runlib.Run, kb: data.KnowledgeBase, training: Training
  ):
    """Restores the run's last checkpoint, or begins at the start."""
    self._run, self._kb, self._training = run, kb, training
    config = training.config
    self.epochs = config.epochs
    self._facts = validation_facts(kb, config)
    mode = "min" if config.select_by == "mean_rank" else "max"
    self.stopping = early_stopping.EarlyStopping(config.patience, mode)
    self._collapsed = False
    self._best = self._tables(training.state)
    memory = {
      "state": training.state,
      "best": self._best,
      "stopping": self.stopping.state,
    }
    self.start, memory = run.restore(memory) or (-1, memory)
    self._best = memory["best"]
    self.stopping.state = memory["stopping"]
    self.state = jax.tree.map(jnp.asarray, memory["state"])
    self.key = jax.random.key(config.seed + 1)

  def should_stop(self) -> bool:
    """Whether training has ended early."""
    return self.stopping.should_stop

  def needs_state(self, epoch: int) -> bool:
    """Whether validation facts are ranked after an epoch."""
    config = self._training.config
    last = epoch + 1 == config.epochs
    return last or (epoch + 1) % config.eval_every == 0

  def after(
    self, epoch: int, state: Any, outputs: Sequence[Any], seconds: float = 0
  ) -> None:
    """Logs an epoch; where it is due, validates and checkpoints.

    As `vmapped_training.Learner` says; `outputs` has the mean loss alone.
    """
    del seconds
    (loss,) = map(float, outputs)
    if not self.needs_state(epoch):
      self._run.log(epoch, loss=loss)
      return
    config = self._training.config
    params = jax.tree.map(jnp.asarray, self._tables(state))
    ranks = rank_facts(
      self._kb,
      config.score_model,
      params,
      self._facts,
      config.block,
      mesh=self._training.mesh,
    )
    figures = link_prediction.summary(ranks)
    shown = {k: figures[k] for k in ("mrr", "hits@1", "hits@3", "hits@10")}
    shown[config.select_by] = figures[config.select_by]
    self._run.log(epoch, loss=loss, **shown)
    progress.say(
      f"epoch {epoch + 1}: loss {loss:.4f}, validation MRR "
      f"{figures['mrr']:.3f}, HITS@10 {figures['hits@10']:.3f}"
    )
    if self.stopping.update(epoch, figures[config.select_by]):
      self._best = jax.tree.map(np.asarray, params)
    self._watch(epoch, params, figures)
    memory = {
      "state": state,
      "best": self._best,
      "stopping": self.stopping.state,
    }
    self._run.save(epoch, memory)

  def _watch(
    self, epoch: int, params: scores.Params, figures: dict[str, float]
  ) -> None:
    """Says once that the model has collapsed."""
    best, step = self.stopping.best_value, self.stopping.best_step
    if self._collapsed or best is None or step is None:
      return
    reason = collapse(params.entities)
    chosen = self._training.config.select_by
    value = figures[chosen]
    low, high = (best, value) if chosen == "mean_rank" else (value, best)
    if reason is None and low < FALL * high:
      reason = f"validation {chosen} fell from {best:.3g} to {value:.3g}"
    if reason is not None:
      self._collapsed = True
      progress.say(
        f"epoch {epoch + 1}: the model has collapsed: {reason}; epoch "
        f"{step + 1} is kept so far"
      )

  def _tables(self, state: Any) -> scores.Params:
    """The tables of a state on the host, without padding."""
    return sharding.on_host(state.params, len(self._kb.entities))

  def best(self) -> scores.Params:
    """The tables with the best figure so far."""
    return jax.tree.map(jnp.asarray, self._best)


def train(
  run: runlib.Run, kb: data.KnowledgeBase, training: Training
) -> scores.Params:
  """Trains with early stopping on a figure of validation facts.

  Args:
    run: logs and checkpoints.
    kb: the knowledge base.

  Returns:
    The best tables.
  """
  validation = Validation(run, kb, training)
  state, epochs = validation.state, training.config.epochs
  for epoch in run.progress(range(validation.start + 1, epochs), "epoch"):
    if validation.should_stop():
      break
    key = jax.random.fold_in(validation.key, epoch)
    state, loss = training.epoch(training.inputs, state, key)
    validation.after(epoch, state, [loss])
  return validation.best()


def _projected_sgd(config, compiled, params, sizes, mesh):
  steps = config.num_negatives if config.order == "stay" else 1
  passes = config.num_negatives // steps
  static = pair_training.SGDConfig(
    sizes[0],
    sizes[1],
    config.score_model,
    config.dim,
    config.negative_sampling,
    config.batch_size,
    steps,
    config.gradients,
    mesh=mesh,
  )

  def run(train, inputs, state, key):
    keys = jax.random.split(key, passes)
    state, losses = train(static, compiled, *inputs, state, keys)
    return state, losses.mean()

  rates = jnp.float32(config.learning_rate), jnp.float32(config.penalty)
  state = pair_training.SGDState(params, *rates)
  return (
    state,
    functools.partial(run, pair_training.train),
    functools.partial(run, pair_training.train_passes),
  )


def _candidate_softmax(config, compiled, params, sizes, mesh):
  static = CandidateConfig(
    sizes[0],
    sizes[1],
    config.score_model,
    config.dim,
    config.loss,
    config.regularizer,
    config.batch_size,
    config.num_candidates,
    mesh=mesh,
    **extras(config),
  )
  optimizer = make_optimizer(config.optimizer, config.learning_rate)

  def run(train, inputs, state, key):
    state, loss = train(static, optimizer, compiled, *inputs, state, key)
    if config.decay < 1:
      rates = dict(state.optimizer.hyperparams)
      rates["learning_rate"] = rates["learning_rate"] * config.decay
      memory = state.optimizer._replace(hyperparams=rates)
      state = state._replace(optimizer=memory)
    return state, loss

  state = candidate_training.from_params(
    static,
    optimizer,
    params,
    config.penalty,
    config.dropout,
    config.relation_dropout,
    config.relation_weight,
  )
  return (
    state,
    functools.partial(run, candidate_training.train),
    functools.partial(run, candidate_training.train_pass),
  )
