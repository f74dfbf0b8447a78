"""One model: trained with early stopping, asked about every test set."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.ned import data as corpus_lib
from experiments.ned.config import Options
from experiments.ned.data import Corpus, Set
from experiments.ned.entities import Vectors
from experiments.ned.words import Words
from experiments.run import runlib
from repr_jax.data.documents import packing
from repr_jax.data.documents.packing import Group
from repr_jax.evaluation import linking
from repr_jax.linking import disambiguation
from repr_jax.linking import train as ned_training
from repr_jax.linking.disambiguation import Tables


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


def pack(corpus: Corpus, words: Words, options: Options) -> Packs:
  """Makes the arrays of all documents.

  Training documents have fewer candidates, and those in which no mention has
  both the right candidate and another are left out: they have no loss.
  """

  def one(found: Set, top: int) -> list[Group]:
    return packing.pack(
      found.documents, found.lists, corpus.entities, words.telling,
      top=top, context=options.context, widths=options.widths,
    )  # fmt: skip

  most = _most(corpus, options.top)
  folds = [
    corpus_lib.fold(document.id, options.folds)
    for document in corpus.train.documents
  ]
  train = one(corpus.train, min(most, options.train_top))
  return Packs(
    [kept for group in train if len((kept := _telling(group)).places)],
    np.asarray(folds),
    one(corpus.validation, most),
    {name: one(found, most) for name, found in corpus.tests.items()},
  )


def _telling(group: Group) -> Group:
  """The documents of a group that have a loss."""
  others = (group.packed.candidates >= 0).sum(axis=2) > 1
  kept = (others & (group.packed.gold >= 0)).any(axis=1)
  packed = packing.Packed(*(field[kept] for field in group.packed))
  return Group(group.places[kept], group.mentions[kept], packed)


def _most(corpus: Corpus, top: int) -> int:
  """Candidates that some mention has, rounded up to a multiple of 5."""
  sets = (corpus.train, corpus.validation, *corpus.tests.values())
  longest = max(
    (len(x) for found in sets for lists in found.lists for x in lists),
    default=1,
  )
  return min(top, -(-max(longest, 1) // 5) * 5)


def shift(groups: list[Group], folds: np.ndarray, count: int) -> list[Group]:
  """Points training documents at the vectors that have not seen them.

  Args:
    groups: training documents.
    folds: the fold of each, int [documents].
    count: entities in a block of the table.
  """
  shifted = []
  for group in groups:
    ids = group.packed.candidates
    base = (folds[group.places] * count)[:, None, None].astype(np.int32)
    moved = np.where(ids >= 0, ids + base, ids)
    shifted.append(
      group._replace(packed=group.packed._replace(candidates=moved))
    )
  return shifted


def ask(
  config: disambiguation.Config,
  params: disambiguation.Params,
  tables: Tables,
  groups: list[Group],
  count: int,
  cells: int,
) -> Answers:
  """Predictions for documents with `count` mentions, batch by batch."""
  answers = unanswered(groups, count)
  for mentions, batch in packing.batches(groups, cells):
    found = disambiguation.predict(config, params, tables, batch)
    there = mentions >= 0
    answers.predicted[mentions[there]] = np.asarray(found)[there]
  return answers


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
  return linking.evaluate_linking(*answers, among).in_candidates


class Progress(NamedTuple):
  """What a checkpoint holds.

  Attributes:
    state: weights and optimizer.
    best: the weights that did best on validation.
    schedule: rate and patience.
  """

  state: ned_training.State
  best: disambiguation.Params
  schedule: ned_training.Schedule


def start(options: Options, size: int) -> Progress:
  """Where every training begins, for vectors of `size` numbers."""
  key = jax.random.key(options.seed)
  state = ned_training.init(options.config(True), size, key)
  best = jax.tree.map(jnp.copy, state.params)
  return Progress(state, best, ned_training.Schedule(options.rate))


def train(
  run: runlib.Run,
  name: str,
  first: int,
  resumed: tuple[int, Progress] | None,
  coherence: bool,
  vectors: Vectors,
  packs: Packs,
  options: Options,
) -> tuple[dict[str, Any], disambiguation.Params]:
  """Trains a model; goes on from a checkpoint of it.

  Args:
    run: logs and keeps checkpoints.
    name: of the system, for the log.
    first: the number of its first step in the log.
    resumed: the last checkpoint of the run and its step, if there is one.
    coherence: whether it is the global model.
    vectors: of entities and words.
    packs: the documents.
    options: of the run.

  Returns:
    Figures of the training, and the weights that did best on validation.
  """
  config = options.config(coherence)
  count = len(vectors.entities) // vectors.blocks
  blocks = jnp.asarray(vectors.entities)
  if vectors.blocks == 1:
    # One shape of the table for all systems: nothing is compiled again.
    blocks = jnp.tile(blocks, (options.folds + 1, 1))
  tables = Tables(blocks, jnp.asarray(vectors.words))
  last = Tables(blocks[-count:], tables.words)
  groups = shift(packs.train, packs.folds, count)
  seen = 1 + max(int(g.mentions.max()) for g in packs.validation)
  begin, now = 0, start(options, vectors.words.shape[1])
  if resumed is not None and first <= resumed[0] < first + options.epochs:
    begin, now = resumed[0] - first + 1, resumed[1]
  state, best, schedule = now
  for epoch in run.progress(range(begin, options.epochs), name):
    if schedule.waited >= options.patience and schedule.lowered:
      break
    if schedule.waited >= options.patience:
      # Stuck below the threshold: the rate falls all the same.
      schedule = schedule._replace(
        rate=options.lower_rate, lowered=True, waited=0
      )
    rng = np.random.default_rng([options.seed, epoch])
    losses = []
    for _, batch in packing.batches(groups, options.cells, rng):
      state, info = ned_training.update(
        config, tables, state, batch, schedule.rate
      )
      losses.append(info.loss)
    score = in_candidates(
      ask(config, state.average, last, packs.validation, seen, options.cells)
    )
    if score > schedule.best:
      best = jax.tree.map(jnp.copy, state.average)
    schedule = ned_training.advance(
      schedule, epoch, score, threshold=options.threshold,
      lower_rate=options.lower_rate,
    )  # fmt: skip
    loss = float(jnp.mean(jnp.stack(losses)))
    run.log(first + epoch, system=name, loss=loss, validation=score)
    run.save(first + epoch, Progress(state, best, schedule))
  figures = {"validation": schedule.best, "epochs": schedule.best_epoch + 1}
  return figures, best
