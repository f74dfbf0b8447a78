"""Configuration of disambiguation: corpus, vectors, model and training."""

import dataclasses

from experiments.run import config
from experiments.run.word_vectors import Settings as WordSettings
from repr_jax.errors import InputError
from repr_jax.linking import disambiguation, fold_vectors

OBJECTIVES = fold_vectors.OBJECTIVES
CONTEXTS = ("u1", "u2")


@dataclasses.dataclass(frozen=True)
class Config:
  """Corpus, vectors, model and training; each field is a flag of its name."""

  data: str | None = config.flag(
    None,
    "Directory with elevant/ and entity-fishing/; files of --train, "
    "--validation and --tests are looked for in it.",
  )
  train: tuple[str, ...] = config.flag(
    (),
    "Training documents: JSON lines, AIDA's .tsv, Ganea's .csv. Of AIDA's "
    "public table, which has all in one file, name a part: PATH#train, "
    "PATH#testa or PATH#testb; so too for --validation and --tests.",
  )
  validation: tuple[str, ...] = config.flag(
    (), "Documents that decide when to stop; part of --train if none."
  )
  tests: tuple[str, ...] = config.flag(
    (), "Test documents as NAME=PATH, or PATH alone for the file's name."
  )
  dump: str | None = config.flag(
    None, "Wikipedia dump, for links, pages and contexts; .bz2 or .gz."
  )
  prior: str | None = config.flag(
    None, "p(e|m) in the public text format; counted from links if none."
  )
  max_documents: int = config.flag(
    5_000,
    "Training documents at most; a dump's others still count in prior and "
    "vectors.",
    minimum=1,
  )
  top: int = config.flag(30, "Candidates of a mention (thesis: 30).", minimum=1)
  train_top: int = config.flag(
    4,
    "Candidates of a mention in training, the likeliest; the time of a global "
    "step grows with the square (Ganea and Hofmann: 7).",
    minimum=1,
  )
  word_vectors: str | None = config.flag(
    None, "File of word vectors; MVLSA's of the training text if none."
  )
  dim: int = config.flag(
    100,
    "Numbers in MVLSA's word vectors and in VAE's (thesis: 300).",
    minimum=1,
    only={"word_vectors": None},
  )
  vocabulary: int = config.flag(
    50_000, "Words at most (thesis: 50,000).", minimum=1
  )
  min_count: int = config.flag(2, "Rarer words are dropped.")
  drop_most_frequent: int = config.flag(
    100, "Most frequent words that are no context.", minimum=0
  )
  window: int = config.flag(
    20, "Words around a mention in U2 (thesis: 20).", minimum=1
  )
  bag: int = config.flag(
    20_000, "Words of an entity, at most, from U1 and from U2 each.", minimum=1
  )
  objectives: tuple[str, ...] = config.flag(
    OBJECTIVES,
    f"Objectives of entity vectors: {', '.join(OBJECTIVES)}.",
    choices=OBJECTIVES,
  )
  contexts: tuple[str, ...] = config.flag(
    CONTEXTS,
    f"{', '.join(CONTEXTS)}: pages alone, or mentions too.",
    choices=CONTEXTS,
  )
  vector_steps: int = config.flag(
    400,
    "Steps of max-margin vectors, on U1 and on U2 each.",
    minimum=0,
    only={"objectives": "max_margin"},
  )
  vae_epochs: int = config.flag(
    10,
    "Passes of the autoencoder over the entities.",
    minimum=0,
    only={"objectives": "vae"},
  )
  folds: int = config.flag(
    2,
    "Parts of the training documents; a part is trained on with vectors of "
    "the others.",
    minimum=2,
    maximum=100,
    only={"contexts": "u2"},
  )
  context: int = config.flag(
    100, "K, words around a mention (thesis: 100).", minimum=1
  )
  keep: int = config.flag(
    25, "R, words that attention keeps (thesis: 25).", minimum=1
  )
  margin: float = config.flag(
    0.01, "gamma of the loss (thesis: 0.01).", above=0
  )
  field_prior: bool = config.flag(
    True, "Whether the random field knows the prior (thesis: no)."
  )
  join_context: bool = config.flag(
    True,
    "Whether the final network also receives the context score (thesis: no).",
  )
  learning_rate: float = config.flag(
    1e-3, "Step size of Adam (thesis: 1e-4).", above=0
  )
  lower_learning_rate: float = config.flag(
    1e-4,
    "Step size once validation passes --threshold (thesis: 1e-5).",
    above=0,
  )
  threshold: float = config.flag(
    1.0, "Share of validation right at which the learning rate falls."
  )
  epochs: int = config.flag(
    40, "Passes over the training documents, at most.", minimum=1
  )
  patience: int = config.flag(
    5,
    "Epochs without gain before the learning rate falls, then before the end.",
    minimum=1,
  )
  batch_size: int = config.flag(
    256, "Mentions in a batch, padding included.", minimum=1
  )
  widths: tuple[int, ...] = config.flag(
    (8, 16, 32, 64), "Numbers of mentions that documents are padded to."
  )
  seed: int = config.flag(0, "Seed.")

  def __post_init__(self):
    for name in ("objectives", "contexts"):
      if not getattr(self, name):
        raise InputError(f"--{name}: name at least one")
    if bool(self.train) != bool(self.tests):
      raise InputError("--train and --tests belong together: name both")
    if self.validation and not (self.train or self.data):
      raise InputError(
        "--validation is read with --train and --tests, or with --data, only"
      )

  def model(self, coherence: bool) -> disambiguation.Config:
    """The model, local or with coherence."""
    return disambiguation.Config(
      coherence,
      field_prior=self.field_prior,
      join_context=self.join_context,
      keep=self.keep,
    )

  def words(self) -> WordSettings:
    """How words get their vectors."""
    return WordSettings(
      self.word_vectors, self.dim, self.vocabulary, self.min_count,
      self.drop_most_frequent, self.seed,
    )  # fmt: skip

  def vectors(self, contexts: str) -> fold_vectors.Settings:
    """How entities get their vectors."""
    return fold_vectors.Settings(
      contexts == "u2", self.folds, self.vector_steps, self.vae_epochs
    )
