"""Configuration of disambiguation: corpus, vectors, model and training."""

import dataclasses

from experiments.run import config
from experiments.run.word_vectors import Settings as WordSettings
from repr_jax.errors import InputError
from repr_jax.linking import disambiguation, fold_vectors

OBJECTIVES = fold_vectors.OBJECTIVES
CONTEXTS = ("u1", "u2")
MODES = ("train", "ladder", "link", "serve")
FORMATS = ("tsv", "json", "standoff", "html")
_LINK = {"mode": "link"}
_SERVE = {"mode": "serve"}
_MODEL = {"mode": ("link", "serve")}
_LADDER = {"mode": "ladder"}
_TRAIN = {"mode": "train"}
_FIELDS = {**_LADDER, "fields": OBJECTIVES}


@dataclasses.dataclass(frozen=True)
class Config:
  """Corpus, vectors, model and training; each field is a flag of its name."""

  mode: str = config.flag(
    "train",
    "train: the thesis' systems on documents with links; ladder: systems from "
    "most in-links to a ranker with graph features, on files of candidates; "
    "link: links FILE... of plain text by a model of the ladder; serve: a page "
    "that does so.",
    choices=MODES,
  )
  candidates: str | None = config.flag(
    None,
    "Directory with train, testa, testb .jsonl.gz, their candidates.*.jsonl.gz "
    "and popularity.tsv.gz.",
    only=_LADDER,
  )
  seeds: int = config.flag(
    3,
    "Number of seeds. Rankers of all seeds are averaged, also those "
    "of --ablations; each model of --fields is trained with each seed.",
    minimum=1,
    only=_LADDER,
  )
  ranker_hidden: int = config.flag(
    48, "Width of the ranker; 0 for a linear one.", minimum=0, only=_LADDER
  )
  ranker_epochs: int = config.flag(
    10, "Passes over the training mentions.", minimum=1, only=_LADDER
  )
  ranker_learning_rate: float = config.flag(
    2e-3, "Step size of AdamW.", above=0, only=_LADDER
  )
  ranker_decay: float = config.flag(
    1e-3, "Weight decay of AdamW.", minimum=0, only=_LADDER
  )
  ranker_links: bool = config.flag(
    False,
    "Whether rankers see counts of training links; testa is a little better "
    "without them.",
    only=_LADDER,
  )
  ablations: bool = config.flag(
    False,
    "Whether rankers without features of names, without kinds of titles and "
    "without any words of titles are in the table too.",
    only=_LADDER,
  )
  ranker_block: int = config.flag(
    50,
    "Neighboring training documents whose links do not count in each other's "
    "features.",
    minimum=1,
    only=_LADDER,
  )
  open_tests: tuple[str, ...] = config.flag(
    (),
    "Further tests as NAME=PATH, JSON lines; candidates are looked up in the "
    "knowledge base of all candidates and --titles.",
    only=_LADDER,
  )
  titles: tuple[str, ...] = config.flag(
    (),
    "Further titles of the knowledge base: lines of links "
    "article<TAB>relation<TAB>article, JSON lines of linked documents, a dump "
    "of Wikipedia (.xml, .bz2 or .gz), or wikipedia (the small dump in "
    "gensim's wheel).",
    only=_LADDER,
  )
  fields: tuple[str, ...] = config.flag(
    (),
    "Objectives of entity vectors whose local and global models are rows of "
    f"the ladder: {', '.join(OBJECTIVES)}.",
    choices=OBJECTIVES,
    only=_LADDER,
  )
  texts: tuple[str, ...] = config.flag(
    (),
    "Further texts for the vectors of --fields: JSON lines of sentences or "
    "documents with mentions, or plain text, in which titles are mentions.",
    only=_FIELDS,
  )
  field_epochs: int = config.flag(
    8,
    "Most passes of the models of --fields over train.",
    minimum=1,
    only=_FIELDS,
  )
  field_dim: int = config.flag(
    100, "Numbers in a vector of --fields.", minimum=1, only=_FIELDS
  )
  model: str | None = config.flag(
    None, "Work directory of a run of the ladder, or its linker/.", only=_MODEL
  )
  mentions: str | None = config.flag(
    None,
    "Documents with given mentions, JSON lines, instead of FILE...",
    only=_LINK,
  )
  kb: str | None = config.flag(
    None,
    "Entities to link against, JSON lines with name, aliases, description, "
    "in_links; the model's own by default. Without in_links, an entity counts "
    "as one of median popularity. Names and aliases without a capital are "
    "mentions wherever they stand.",
    only=_MODEL,
  )
  add_entities: str | None = config.flag(
    None, "Entities to add to the knowledge base, as for --kb.", only=_MODEL
  )
  nil: float | None = config.flag(
    None,
    "Answers less probable than this are NIL; chosen on testa by default.",
    minimum=0,
    maximum=1,
    only=_MODEL,
  )
  format: str = config.flag(
    "tsv",
    "Form of the output; html is a page with links colored by certainty.",
    choices=FORMATS,
    only=_LINK,
  )
  host: str = config.flag(
    "127.0.0.1",
    "Address to listen at; 0.0.0.0 lets other machines in, without a password.",
    only=_SERVE,
  )
  port: int = config.flag(
    8001,
    "Port to listen at; 0 for any free one.",
    minimum=0,
    maximum=65535,
    only=_SERVE,
  )
  data: str | None = config.flag(
    None,
    "Directory with elevant/ and entity-fishing/; files of --train, "
    "--validation and --tests may be relative to it.",
    only=_TRAIN,
  )
  train: tuple[str, ...] = config.flag(
    (),
    "Training documents: JSON lines, AIDA's .tsv, Ganea's .csv. Of AIDA's "
    "public table, which has all in one file, name a part: PATH#train, "
    "PATH#testa or PATH#testb; likewise for --validation and --tests.",
    only=_TRAIN,
  )
  validation: tuple[str, ...] = config.flag(
    (),
    "Documents that decide when to stop; part of --train if none.",
    only=_TRAIN,
  )
  tests: tuple[str, ...] = config.flag(
    (),
    "Test documents as NAME=PATH, or PATH alone for the file's name.",
    only=_TRAIN,
  )
  dump: str | None = config.flag(
    None,
    "Wikipedia dump, for links, pages and contexts; .bz2 or .gz.",
    only=_TRAIN,
  )
  prior: str | None = config.flag(
    None,
    "p(e|m) in the public text format; counted from links if none.",
    only=_TRAIN,
  )
  max_documents: int = config.flag(
    5_000,
    "Most training documents; other documents of a dump still count in prior "
    "and vectors.",
    minimum=1,
    only=_TRAIN,
  )
  top: int = config.flag(
    30, "Candidates of a mention (thesis: 30).", minimum=1, only=_TRAIN
  )
  train_top: int = config.flag(
    4,
    "Candidates of a mention in training, the likeliest; the time of a global "
    "step grows with the square (Ganea and Hofmann: 7).",
    minimum=1,
    only=_TRAIN,
  )
  word_vectors: str | None = config.flag(
    None,
    "File of word vectors; MVLSA's of the training text if none.",
    only=_TRAIN,
  )
  dim: int = config.flag(
    100,
    "Numbers in MVLSA's word vectors and in VAE's (thesis: 300).",
    minimum=1,
    only={**_TRAIN, "word_vectors": None},
  )
  vocabulary: int = config.flag(
    50_000, "Most words (thesis: 50,000).", minimum=1, only=_TRAIN
  )
  min_count: int = config.flag(2, "Rarer words are dropped.", only=_TRAIN)
  drop_most_frequent: int = config.flag(
    100, "Number of the most frequent words to drop.", minimum=0, only=_TRAIN
  )
  window: int = config.flag(
    20, "Words around a mention in U2 (thesis: 20).", minimum=1, only=_TRAIN
  )
  bag: int = config.flag(
    20_000,
    "Most words of an entity from its page (U1), and from its contexts (U2).",
    minimum=1,
    only=_TRAIN,
  )
  objectives: tuple[str, ...] = config.flag(
    OBJECTIVES,
    f"Objectives of entity vectors: {', '.join(OBJECTIVES)}.",
    choices=OBJECTIVES,
    only=_TRAIN,
  )
  contexts: tuple[str, ...] = config.flag(
    CONTEXTS,
    f"{', '.join(CONTEXTS)}: pages alone, or mentions too.",
    choices=CONTEXTS,
    only=_TRAIN,
  )
  vector_steps: int = config.flag(
    400,
    "Steps of max-margin vectors, on U1 and on U2 each.",
    minimum=0,
    only={**_TRAIN, "objectives": "max_margin"},
  )
  vae_epochs: int = config.flag(
    10,
    "Passes of the autoencoder over the entities (thesis: 10; 100 with "
    "--vae_word_start).",
    minimum=0,
    only={**_TRAIN, "objectives": "vae"},
  )
  vae_beta: float = config.flag(
    0.1,
    "Weight of the autoencoder's KL term (thesis: 1).",
    minimum=0,
    only={**_TRAIN, "objectives": "vae"},
  )
  vae_hidden: int = config.flag(
    0,
    "Width of the autoencoder's hidden layer; 0 for half of the dimension "
    "(thesis: 150; 300 with --vae_word_start).",
    minimum=0,
    only={**_TRAIN, "objectives": ("vae", "null")},
  )
  vae_lbv: bool = config.flag(
    False,
    "Whether the autoencoder's variances are bounded from below (thesis: yes).",
    only={**_TRAIN, "objectives": ("vae", "null")},
  )
  vae_word_start: bool = config.flag(
    False,
    "Whether the autoencoder's first layer starts from the word vectors.",
    only={**_TRAIN, "objectives": ("vae", "null")},
  )
  vae_activation: str = config.flag(
    "tanh",
    "Activation of the autoencoder's hidden layer (thesis: relu).",
    choices=("tanh", "relu"),
    only={**_TRAIN, "objectives": ("vae", "null")},
  )
  vae_anneal: bool = config.flag(
    False,
    "Whether the weight of the autoencoder's KL term falls evenly to 0 "
    "(thesis: yes).",
    only={**_TRAIN, "objectives": "vae"},
  )
  vae_learning_rate: float = config.flag(
    1e-3,
    "Step size of Adam for the autoencoder (thesis: 1e-3).",
    above=0,
    only={**_TRAIN, "objectives": "vae"},
  )
  vae_batch_size: int = config.flag(
    256,
    "Entities in a step of the autoencoder (thesis: 1,023).",
    minimum=1,
    only={**_TRAIN, "objectives": "vae"},
  )
  folds: int = config.flag(
    2,
    "Number of parts of the training documents; each part is trained with "
    "vectors of the others.",
    minimum=2,
    maximum=100,
    only={**_TRAIN, "contexts": "u2"},
  )
  context: int = config.flag(
    100, "K, words around a mention (thesis: 100).", minimum=1, only=_TRAIN
  )
  keep: int = config.flag(
    25, "R, words that attention keeps (thesis: 25).", minimum=1, only=_TRAIN
  )
  margin: float = config.flag(
    0.01, "gamma of the loss (thesis: 0.01).", above=0, only=_TRAIN
  )
  field_prior: bool = config.flag(
    True, "Whether the random field knows the prior (thesis: no).", only=_TRAIN
  )
  join_context: bool = config.flag(
    True,
    "Whether the final network also receives the context score (thesis: no).",
    only=_TRAIN,
  )
  learning_rate: float = config.flag(
    1e-3, "Step size of Adam (thesis: 1e-4).", above=0, only=_TRAIN
  )
  lower_learning_rate: float = config.flag(
    1e-4,
    "Step size once validation passes --threshold (thesis: 1e-5).",
    above=0,
    only=_TRAIN,
  )
  threshold: float = config.flag(
    1.0,
    "Share of validation mentions right at which the learning rate falls.",
    only={**_TRAIN, "threshold_trials": 0},
  )
  threshold_trials: int = config.flag(
    0,
    "Trials of each system with --threshold at 1; the median of their best "
    "shares of validation right is then the threshold (thesis: 3).",
    minimum=0,
    maximum=99,
    only=_TRAIN,
  )
  epochs: int = config.flag(
    40, "Most passes over the training documents.", minimum=1, only=_TRAIN
  )
  patience: int = config.flag(
    5,
    "Epochs without gain until the learning rate falls, then until the end.",
    minimum=1,
    only=_TRAIN,
  )
  batch_size: int = config.flag(
    256, "Mentions in a batch, padding included.", minimum=1, only=_TRAIN
  )
  widths: tuple[int, ...] = config.flag(
    (8, 16, 24, 32, 40, 48, 56, 64),
    "Numbers of mentions that documents are padded to.",
    only=_TRAIN,
  )
  seed: int = config.flag(0, "Seed.")

  def __post_init__(self):
    if self.mode == "ladder" and self.candidates is None:
      raise InputError("--mode=ladder needs --candidates=DIRECTORY")
    if self.mode in ("link", "serve") and self.model is None:
      raise InputError(f"--mode={self.mode} needs --model=DIRECTORY")
    for name in ("objectives", "contexts"):
      if not getattr(self, name):
        raise InputError(f"--{name}: name at least one")
    if bool(self.train) != bool(self.tests):
      raise InputError("--train and --tests belong together: name both")
    if self.validation and not (self.train or self.data):
      raise InputError(
        "--validation is read with --train and --tests, or with --data, only"
      )

  def model_config(self, coherence: bool) -> disambiguation.Config:
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
      contexts == "u2", self.folds, self.vector_steps, self.vae_epochs,
      self.vae_beta, self.vae_hidden or None, self.vae_lbv,
      self.vae_word_start, self.vae_learning_rate, self.vae_batch_size,
      self.vae_activation, self.vae_anneal,
    )  # fmt: skip
