"""One model: trained with early stopping, asked about every test set."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.ned.config import Config
from experiments.ned.data import Corpus, Set
from experiments.run import runlib
from experiments.run.word_vectors import Words
from repr_jax import linking
from repr_jax.data.documents import packing
from repr_jax.data.documents.packing import Group
from repr_jax.data.entities import bags as bags_lib
from repr_jax.evaluation import evaluate_linking
from repr_jax.linking import Tables, fold_vectors
from repr_jax.ops import early_stopping


class Packs(NamedTuple):
  """Documents as arrays, the same for all vectors.

  Attributes:
    train: training documents; rows are those of the last block.
    folds: the fold of each training document, int64 [documents].
    validation: documents that decide when to stop.
    tests: documents by test set.
  """

  train: list[Group]
  folds: np.ndarray
  validation: list[Group]
  tests: dict[str, list[Group]]


class Answers(NamedTuple):
  """Answers for the mentions of a test set, one document after the other.

  Attributes:
    predicted: places among the candidates, int [n]; -1 for no candidate.
    gold: the right places, int [n]; -1 where it is no candidate.
  """

  predicted: np.ndarray
  gold: np.ndarray


def pack(corpus: Corpus, words: Words, config: Config) -> Packs:
  """Makes the arrays of all documents.

  Training documents have fewer candidates, and those in which no mention has
  both the right candidate and another are left out: they have no loss.
  """

  def one(part: Set, top: int) -> list[Group]:
    return packing.pack(
      part.documents, part.lists, corpus.entities, words.telling,
      top=top, context=config.context, widths=config.widths,
    )  # fmt: skip

  most = _most(corpus, config.top)
  folds = [
    bags_lib.fold_of(document.id, config.folds)
    for document in corpus.train.documents
  ]
  train = one(corpus.train, min(most, config.train_top))
  return Packs(
    [kept for group in train if len((kept := telling(group)).places)],
    np.asarray(folds),
    one(corpus.validation, most),
    {name: one(part, most) for name, part in corpus.tests.items()},
  )


def telling(group: Group) -> Group:
  """The documents of a group that have a loss."""
  others = (group.packed.candidates >= 0).sum(axis=2) > 1
  kept = (others & (group.packed.gold >= 0)).any(axis=1)
  packed = packing.Packed(*(field[kept] for field in group.packed))
  return Group(group.places[kept], group.mentions[kept], packed)


def _most(corpus: Corpus, top: int) -> int:
  """Candidates that some mention has, rounded up to a multiple of 5."""
  sets = (corpus.train, corpus.validation, *corpus.tests.values())
  longest = max(
    (len(x) for part in sets for lists in part.lists for x in lists), default=1
  )
  return min(top, -(-max(longest, 1) // 5) * 5)


def ask(
  model: linking.Config,
  params: linking.Params,
  tables: Tables,
  groups: list[Group],
  count: int,
  batch_size: int,
) -> Answers:
  """Predictions for documents with `count` mentions, batch by batch."""
  answers = unanswered(groups, count)
  for mentions, batch in packing.batches(groups, batch_size):
    best = _best(model, params, tables, batch)
    there = mentions >= 0
    answers.predicted[mentions[there]] = np.asarray(best)[there]
  return answers


@functools.partial(jax.jit, static_argnums=0)
def _best(model, params, tables, batch):
  one = functools.partial(linking.disambiguate, model, params, tables)
  return jax.vmap(one)(batch).best


def unanswered(groups: list[Group], count: int) -> Answers:
  """The gold places of `count` mentions, and no answer yet."""
  answers = Answers(np.full(count, -1), np.full(count, -1))
  for group in groups:
    there = group.mentions >= 0
    answers.gold[group.mentions[there]] = group.packed.gold[there]
  return answers


def by_prior(groups: list[Group], count: int) -> Answers:
  """The first candidate, which has the highest prior, of each mention."""
  answers = unanswered(groups, count)
  for group in groups:
    known = (group.mentions >= 0) & (group.packed.candidates[..., 0] >= 0)
    answers.predicted[group.mentions[known]] = 0
  return answers


def in_candidates(answers: Answers) -> float:
  """The share right of the mentions whose entity is a candidate."""
  among = answers.gold >= 0
  return evaluate_linking(*answers, among).in_candidates


class Progress(NamedTuple):
  """State of a training, for a checkpoint.

  Attributes:
    state: weights and optimizer; its learning rate is in the latter.
    best: the weights that did best on validation.
    stopping: figures of early stopping.
    lowered: whether the learning rate has fallen.
  """

  state: linking.State
  best: linking.Params
  stopping: early_stopping.State
  lowered: bool


@functools.cache
def trainer(model: linking.Config):
  """The pair (init, update) of a model: compiled once for all systems.

  The learning rate is in the state of the optimizer; see `start`.
  """
  optimizer = optax.inject_hyperparams(optax.adam)(1.0)
  return linking.disambiguator(model, optimizer)


def start(config: Config, dim: int, seed: int | None = None) -> Progress:
  """The beginning of every training, for vectors of `dim` numbers.

  Args:
    seed: of the weights; by default the configuration's.
  """
  init, _ = trainer(config.model_config(True))
  nothing = jnp.zeros((1, dim))
  key = jax.random.key(config.seed if seed is None else seed)
  state = init(key, Tables(nothing, nothing))
  state = lower(state, config.learning_rate)
  best = jax.tree.map(jnp.copy, state.params)
  return Progress(state, best, early_stopping.State(), False)


def train(
  run: runlib.Run,
  name: str,
  first: int,
  resumed: tuple[int, Progress] | None,
  coherence: bool,
  vectors: fold_vectors.Vectors,
  packs: Packs,
  config: Config,
  threshold: float,
  seed: int,
) -> tuple[dict[str, Any], linking.Params]:
  """Trains a model; goes on from a checkpoint of it.

  Args:
    run: logs and keeps checkpoints.
    name: name of the system, for the log.
    first: the number of its first step in the log.
    resumed: the last checkpoint of the run and its step, if there is one.
    coherence: whether it is the global model.
    vectors: vectors of entities and words.
    threshold: share of validation right at which the learning rate falls.
    seed: of weights and batches.

  Returns:
    Figures of the training, and the weights that did best on validation.
  """
  model = config.model_config(coherence)
  _, update = trainer(model)
  blocks = jnp.asarray(vectors.entities)
  if vectors.blocks == 1:
    # One shape of the table for all systems: nothing is compiled again.
    blocks = jnp.tile(blocks, (config.folds + 1, 1))
  tables = Tables(blocks, jnp.asarray(vectors.words))
  last = Tables(jnp.asarray(vectors.last), tables.words)
  groups = fold_vectors.shift(packs.train, packs.folds, len(vectors.last))
  seen = 1 + max(int(g.mentions.max()) for g in packs.validation)
  begin, now = 0, start(config, vectors.words.shape[1], seed)
  if resumed is not None and first <= resumed[0] < first + config.epochs:
    begin, now = resumed[0] - first + 1, resumed[1]
  state, best, progress, lowered = now
  stopping = early_stopping.EarlyStopping(config.patience, state=progress)
  for epoch in run.progress(range(begin, config.epochs), name):
    if stopping.should_stop:
      if lowered:
        break
      # Stuck below the threshold: the learning rate falls all the same.
      state, lowered = lower(state, config.lower_learning_rate), True
      stopping.restart()
    rng = np.random.default_rng([seed, epoch])
    losses = []
    for _, batch in packing.batches(groups, config.batch_size, rng):
      state, info = update(state, tables, batch, config.margin)
      losses.append(info.loss)
    score = in_candidates(
      ask(model, state.average, last, packs.validation, seen, config.batch_size)
    )
    if stopping.update(epoch, score):
      best = jax.tree.map(jnp.copy, state.average)
    if not lowered and score >= threshold:
      state, lowered = lower(state, config.lower_learning_rate), True
      stopping.restart()
    loss = float(jnp.mean(jnp.stack(losses)))
    run.log(first + epoch, system=name, loss=loss, validation=score)
    run.save(first + epoch, Progress(state, best, stopping.state, lowered))
  figures = {
    "validation": stopping.best_value,
    "epochs": int(stopping.state.best_step) + 1,
  }
  return figures, best


def lower(state: linking.State, learning_rate: float) -> linking.State:
  """The state with another learning rate."""
  memory: Any = state.optimizer
  old = memory.hyperparams["learning_rate"]
  rate = jnp.asarray(learning_rate, old.dtype)
  changed = {**memory.hyperparams, "learning_rate": rate}
  return state._replace(optimizer=memory._replace(hyperparams=changed))
