"""Systems of a run: the prior, the local model, a global one for each vector.

Answers are kept in the work directory, `answers/SYSTEM.npz`, so that a stopped
run resumes at the system that it had reached.
"""

import dataclasses
import pathlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.ned import data as corpus_lib
from experiments.ned import train
from experiments.ned.config import Config
from experiments.ned.data import Corpus
from experiments.ned.train import Answers, Packs
from experiments.run import progress, runlib, word_vectors
from repr_jax.data.documents import packing
from repr_jax.data.documents.linked_documents import LinkedMention
from repr_jax.data.entities import bags as bags_lib
from repr_jax.data.io import array_files
from repr_jax.errors import InputError
from repr_jax.evaluation import linking
from repr_jax.linking import fold_vectors
from repr_jax.linking.disambiguation import Tables

PRIOR = "prior alone"
_NAMES = {"max_margin": "max-margin", "vae": "VAE", "null": "null"}


@dataclasses.dataclass(frozen=True)
class System:
  """One system.

  Attributes:
    objective: of the entity vectors.
    contexts: "u1" or "u2".
    coherence: global or local.
  """

  objective: str
  contexts: str
  coherence: bool

  @property
  def name(self) -> str:
    """Name in tables."""
    kind = "global" if self.coherence else "local"
    mark = "with U2" if self.contexts == "u2" else "without U2"
    return f"{_NAMES[self.objective]} {mark}, {kind}"


class Results(NamedTuple):
  """Answers of all systems.

  Attributes:
    corpus: the documents.
    packs: the documents as arrays.
    answers: for each system's name, for each test set, its answers;
      "validation" among the test sets.
  """

  corpus: Corpus
  packs: Packs
  answers: dict[str, dict[str, Answers]]

  def result(self, system: str, test: str) -> linking.LinkingResult:
    """The figures of a system on a test set, "validation" among them."""
    predicted, gold = self.answers[system][test]
    linked = [m.entity is not None for m in self.mentions(test)]
    return linking.evaluate_linking(predicted, gold, np.asarray(linked, bool))

  def mentions(self, test: str) -> list[LinkedMention]:
    """All mentions of a test set in the order of the answers."""
    return mentions_of(self.corpus, test)


def mentions_of(corpus: Corpus, test: str) -> list[LinkedMention]:
  """All mentions of a test set, or of "validation", in their order."""
  part = corpus.validation if test == "validation" else corpus.tests[test]
  return [m for document in part.documents for m in document.mentions]


def listed(config: Config) -> list[System]:
  """The systems of a run: all global models and one local model."""
  systems = []
  for objective in config.objectives:
    for contexts in config.contexts:
      full = System(objective, contexts, True)
      alone = local(config)
      if full == dataclasses.replace(alone, coherence=True):
        systems.append(alone)  # next to the system that shares its vectors
      systems.append(full)
  return systems


def local(config: Config) -> System:
  """The local model: the first objective with the last kind of contexts."""
  return System(config.objectives[0], config.contexts[-1], False)


def _say(text: str) -> None:
  progress.say(f"ned: {text}")


def open_corpus(config: Config) -> Corpus:
  """The documents of a run, with progress on the terminal."""
  return corpus_lib.open_corpus(config, _say)


def run_all(
  run: runlib.Run, config: Config, corpus: Corpus | None = None
) -> Results:
  """Trains each system that has no answers yet; answers all test sets.

  Args:
    corpus: its documents, where they are open already.
  """
  say = _say
  if corpus is None:
    corpus = open_corpus(config)
  known = word_vectors.fit(
    corpus.stream(), config.words(), run.directory / "words"
  )
  say(f"{len(known.vocabulary):,} words with {known.vectors.shape[1]} numbers")
  bags = bags_lib.from_documents(
    corpus.stream(), list(corpus.entities), known.telling,
    window=config.window, most=config.bag, folds=config.folds,
  )  # fmt: skip
  say(
    f"{bags.without_words:,} of {len(corpus.entities):,} entities have no "
    "known word in their name, page or contexts"
  )
  packs = train.pack(corpus, known, config)
  sizes = {name: len(mentions_of(corpus, name)) for name in sets(packs)}
  answers = {
    PRIOR: {
      name: train.by_prior(groups, sizes[name])
      for name, groups in sets(packs).items()
    }
  }
  vectors: dict[tuple[str, str], fold_vectors.Vectors] = {}
  resumed = run.restore(train.start(config, known.vectors.shape[1]))
  for number, system in enumerate(listed(config)):
    path = run.directory / "answers" / f"{number}.npz"
    if not path.exists():
      kind = system.objective, system.contexts
      if kind not in vectors:
        say(f"vectors of {len(corpus.entities):,} entities: {' '.join(kind)}")
        vectors = {kind: _vectors(system, bags, known, config)}
      first = number * config.epochs * (config.threshold_trials + 1)
      answered = _answer(
        run, system, first, resumed, vectors[kind], packs, sizes, config
      )
      path.parent.mkdir(exist_ok=True)
      array_files.write_npz(path, **answered)
    answers[system.name] = _unpack(path, sizes)
  return Results(corpus, packs, answers)


def _vectors(system, bags, known, config) -> fold_vectors.Vectors:
  return fold_vectors.fit_vectors(
    system.objective,
    bags,
    known.vectors,
    known.vocabulary.counts,
    config.vectors(system.contexts),
    jax.random.key(config.seed),
  )


def _trials(run, system, first, resumed, vectors, packs, config) -> float:
  """Validation accuracy at which the learning rate falls (thesis 6.3).

  It is the median best accuracy of trials with a constant learning rate.
  """
  path = run.directory / "answers" / f"trials-{first}.npz"
  best: list[float] = []
  if path.exists():
    best = array_files.read_npz(path, ["validation"])["validation"].tolist()
  for trial in range(len(best), config.threshold_trials):
    figures, _ = train.train(
      run, f"{system.name}, trial {trial}", first + trial * config.epochs,
      resumed, system.coherence, vectors, packs, config, 1.0,
      config.seed + 1 + trial,
    )  # fmt: skip
    best.append(figures["validation"])
    path.parent.mkdir(exist_ok=True)
    array_files.write_npz(path, validation=np.asarray(best))
  threshold = float(np.median(best))
  progress.say(
    f"ned: {system.name}: the learning rate falls once validation reaches "
    f"{threshold:.2%}, the median of {len(best)} trials"
  )
  return threshold


def _answer(run, system, first, resumed, vectors, packs, sizes, config):
  threshold = config.threshold
  if config.threshold_trials:
    threshold = _trials(run, system, first, resumed, vectors, packs, config)
    first += config.threshold_trials * config.epochs
  figures, params = train.train(
    run, system.name, first, resumed, system.coherence, vectors, packs, config,
    threshold, config.seed,
  )  # fmt: skip
  progress.say(
    f"ned: {system.name}: {figures['validation']:.2%} of validation right "
    f"after epoch {figures['epochs']}"
  )
  tables = Tables(jnp.asarray(vectors.last), jnp.asarray(vectors.words))
  model = config.model_config(system.coherence)
  answers = {}
  for name, groups in sets(packs).items():
    got = train.ask(
      model, params, tables, groups, sizes[name], config.batch_size
    )
    answers[f"{name}/predicted"], answers[f"{name}/gold"] = got
  return answers


def _unpack(path: pathlib.Path, sizes: dict[str, int]) -> dict[str, Answers]:
  """The answers that were kept, for sets of so many mentions."""
  stored = array_files.read_npz(path)
  answers = {}
  for name, size in sizes.items():
    keys = f"{name}/predicted", f"{name}/gold"
    kept = [stored.get(key, np.zeros(())) for key in keys]
    if any(x.dtype.kind != "i" or x.shape != (size,) for x in kept):
      raise InputError(
        f"does not hold the answers of this run for {name}; remove it and run "
        "again",
        path=path,
      )
    answers[name] = Answers(*kept)
  return answers


def sets(packs: Packs) -> dict[str, list[packing.Group]]:
  """All documents to be asked about, "validation" first."""
  return {"validation": packs.validation, **packs.tests}
