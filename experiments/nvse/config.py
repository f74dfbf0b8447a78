"""The configuration of set expansion: every flag, declared once."""

import dataclasses

from experiments.nvse.baseline_config import ASKED, BaselineConfig
from experiments.run import config, expander
from repr_jax.data.documents import corpus_files, plain_text
from repr_jax.errors import InputError
from repr_jax.setexp import (
  POOLINGS,
  SCORES,
  Hyper,
  autoencoder,
  fitting,
)
from repr_jax.setexp import systems as system_lib

MODES = ("train", "query", "evaluate", "judge", "export", "serve")
_TRAINED = {"model": None}  # flags of a model that is trained here
_TEXT = {**_TRAINED, "corpus": config.Where("plain text", plain_text.is_text)}
_WORDNET = {**_TRAINED, "corpus": "wordnet"}
_FEATURES = {"ranking": "features"}
_COSINE = {**_TRAINED, "ranking": "cosine"}
_QUERY, _EVALUATE = {"mode": "query"}, {"mode": "evaluate"}
_GOLD = {"mode": ("evaluate", "judge")}


@dataclasses.dataclass(frozen=True)
class Config(BaselineConfig):
  """Flags of `python -m experiments.nvse`; each field is a flag."""

  mode: str = config.flag(
    "train",
    "Train a model, ask it, evaluate it, write a page for human judges, export "
    "it, or serve it as a page.",
    choices=MODES,
  )
  model: str | None = config.flag(
    None,
    "Exported directory to ask. By default the model of --workdir, which is "
    "trained first if there is none.",
    only=ASKED,
  )
  corpus: tuple[str, ...] = config.flag(
    ("wordnet",),
    "wordnet; synthetic (counts of the thesis' size, no text); or files. "
    "Files are JSON lines (sentences with mentions, entities, or linked "
    "documents), Wikipedia dumps or plain text: a folder of .txt files, one "
    "document each, or a .txt file with one document on each line. Names in "
    "plain text become entities.",
    only=_TRAINED,
  )
  gazetteer: str | None = config.flag(
    None,
    "File of further names to find in plain text, one on each line.",
    only=_TEXT,
  )
  ner: str | None = config.flag(
    None,
    "spacy:MODEL, the spaCy model that finds names in plain text.",
    only=_TEXT,
  )
  min_mentions: int = config.flag(
    2,
    "Names that occur fewer times in plain text are dropped.",
    minimum=1,
    only=_TEXT,
  )
  same: str | None = config.flag(
    None,
    "File of duplicates, as the explorer saves it: lists of ids that are one "
    "entity.",
    only={
      **_TRAINED,
      "corpus": config.Where("sentences", lambda x: x != "synthetic"),
    },
  )
  form: str = config.flag(
    "auto",
    "Form of the files of --corpus.",
    choices=corpus_files.FORMS,
    only=_TRAINED,
  )
  wordnet_path: str | None = config.flag(
    None, config.WORDNET_FOLDER, only=_WORDNET
  )
  link: str = config.flag(
    "none",
    "Glosses in which names of instances become mentions.",
    choices=("none", "instances", "all"),
    only=_WORDNET,
  )
  with_name: bool = config.flag(
    False, "Glosses start with the name.", only=_WORDNET
  )
  drop_most_frequent: int | None = config.flag(
    None,
    "Number of the most frequent features to drop (thesis: 100). Default: 30 "
    "for WordNet; for other corpora, features spread as if by chance.",
    minimum=0,
    only=_TRAINED,
  )
  min_count: int = config.flag(
    2,
    "Features seen fewer times are dropped (thesis: 5).",
    minimum=0,
    only=_TRAINED,
  )
  min_entities: int = config.flag(
    2,
    "Features that fewer entities have are dropped (thesis: 1).",
    minimum=0,
    only=_TRAINED,
  )
  max_sentences: int = config.flag(
    0,
    "Most sentences counted for an entity; 0 for all.",
    minimum=0,
    only=_TRAINED,
  )
  max_features: int = config.flag(
    0,
    "Number of features to keep, those of the largest total BM25 weight; 0 for "
    "all. With --contexts, as many contexts are kept too.",
    minimum=0,
    only=_TRAINED,
  )
  contexts: bool = config.flag(
    False,
    "Also take the tokens beside a name as features.",
    only=_TRAINED,
  )
  store: str = config.flag(
    "",
    "Directory that caches features; runs may share it. Default: features/ in "
    "--workdir.",
    only=_TRAINED,
  )
  dim: int = config.flag(
    100,
    "Numbers in a concept, the latent vector (thesis: 50).",
    minimum=1,
    only=_TRAINED,
  )
  hidden: tuple[int, ...] = config.flag(
    (500,), "Widths of the encoder's layers.", minimum=1, only=_TRAINED
  )
  decoder: str = config.flag(
    "multinomial",
    "Distribution of the features.",
    choices=("multinomial", "multilabel"),
    only=_TRAINED,
  )
  activation: str = config.flag(
    "tanh",
    "Activation of the encoder. With linear, cosine is a sum over features.",
    choices=("tanh", "linear"),
    only=_TRAINED,
  )
  unit_inputs: bool = config.flag(
    False, "Scale the inputs of an entity to length 1.", only=_TRAINED
  )
  targets: str = config.flag(
    "counts",
    "Targets of the decoder. counts: feature counts. inputs: the encoder's "
    "inputs, scaled to sum 1.",
    choices=("counts", "inputs"),
    only=_TRAINED,
  )
  likelihood: float = config.flag(
    1.0, "Weight of the log-likelihood.", above=0, only=_TRAINED
  )
  dropout: float = config.flag(
    0.0,
    "Probability that a step drops an input.",
    minimum=0,
    only=_TRAINED,
  )
  svd_start: bool = config.flag(
    False,
    "Start at the SVD of the inputs; needs --activation=linear and --hidden "
    "equal to --dim.",
    only=_TRAINED,
  )
  warmup: int = config.flag(
    0, "Epochs in which beta rises to its value.", minimum=0, only=_TRAINED
  )
  decay: bool = config.flag(
    False, "Lower the learning rate along half a cosine.", only=_TRAINED
  )
  beta: float = config.flag(
    0.1, "Weight of the KL term (thesis: 1).", minimum=0, only=_TRAINED
  )
  lower_bounded_variance: bool = config.flag(
    False, "Keep every variance in [1, e].", only=_TRAINED
  )
  label_smoothing: float = config.flag(
    0.0, "Share of the targets spread evenly.", minimum=0, only=_TRAINED
  )
  weighting: str = config.flag(
    "bm25",
    "Weights of the inputs.",
    choices=("raw", "log1p", "l1", "bm25"),
    only=_TRAINED,
  )
  prior_variance: float = config.flag(
    1.0, "Variance of the prior.", above=0, only=_TRAINED
  )
  sampled: int = config.flag(
    0,
    "Features drawn for a sampled softmax; 0 for the exact one.",
    minimum=0,
    only=_TRAINED,
  )
  proposal: str = config.flag(
    "unigram",
    "Distribution that --sampled draws from.",
    choices=("unigram", "log_uniform"),
    only=_TRAINED,
  )
  word_vectors: str | None = config.flag(
    None,
    "File of word vectors that the first layer starts from.",
    only=_TRAINED,
  )
  epochs: int = config.flag(
    15,
    "Most passes over the entities; 0 for a random encoder.",
    minimum=0,
    only=_TRAINED,
  )
  learning_rate: float = config.flag(
    2e-3, "Step size of Adam (thesis: 5e-5).", above=0, only=_TRAINED
  )
  batch_size: int = config.flag(
    64, "Entities in a step.", minimum=1, only=_TRAINED
  )
  z_samples: int = config.flag(
    1,
    "Samples of the concept for each entity in training.",
    minimum=1,
    only=_TRAINED,
  )
  validation: float = config.flag(
    0.0,
    "Share of the entities held out for early stopping.",
    minimum=0,
    only=_TRAINED,
  )
  patience: int = config.flag(
    3,
    "Epochs without a better validation bound before stopping.",
    minimum=1,
    only=_TRAINED,
  )
  mesh: str | None = config.flag(
    None,
    "Devices, as batch:2,features:4, that share the training.",
    only=_TRAINED,
  )
  ranking: str = config.flag(
    "features",
    "Score to rank by. features: compares an entity's features with those that "
    "the decoder predicts for the query. cosine: compares posterior means. "
    "Other scores compare Gaussians.",
    choices=SCORES,
  )
  power: float = config.flag(
    0.75, "Exponent of a feature's weight.", above=0, only=_FEATURES
  )
  member_share: float = config.flag(
    0.5,
    "Weight of the members' own features; 0 for the decoder alone.",
    minimum=0,
    maximum=1,
    only=_FEATURES,
  )
  pooling: str = config.flag(
    "mean",
    "Concept of a query: the mean of the members' means, the product of their "
    "Gaussians, or one entity with all their features (merged).",
    choices=POOLINGS,
    only={"ranking": ("features", "cosine")},
  )
  reliability: float = config.flag(
    0.0,
    "Exponent of each dimension's weight v / (v + s): v is the variance of "
    "posterior means over entities, s the mean posterior variance.",
    minimum=0,
    only=_COSINE,
  )
  hubness: float = config.flag(
    0.0,
    "Share of the mean cosine to the 100 nearest entities (sampled above "
    "8,192) that is subtracted from a score, to lower hubs.",
    minimum=0,
    only=_COSINE,
  )
  normalize: bool = config.flag(
    False,
    "Divide a query's weights by the sum of their absolute values.",
    only={"ranking": SCORES[1:-1]},
  )
  fusion: float = config.flag(
    0.5, "Weight of nvse in nvse+bm25.", minimum=0, maximum=1, only=ASKED
  )
  query: str | None = config.flag(
    None,
    'Names or ids with weights: "Bach, Haydn:2, Verdi:-0.1". Without this flag '
    "the program asks for them.",
    only=_QUERY,
  )
  system: str = config.flag(
    "nvse",
    f"System to ask: {', '.join(expander.SYSTEMS)} or MODULE:NAME.",
    only=_QUERY,
  )
  concepts: bool = config.flag(
    False,
    "Print what each latent dimension stands for, decoder(e_j), and exit "
    "(thesis 4.4).",
    only=_QUERY,
  )
  new_entity: tuple[str, ...] = config.flag(
    (),
    "Files of new entities: JSON lines with name and sentences, or text with "
    "one sentence on each line.",
    only=_QUERY,
  )
  json: bool = config.flag(False, "Print JSON.", only=_QUERY)
  rationale: str = config.flag(
    "contributions",
    "Explanation of an answer. contributions: the score's parts by feature, "
    "summed over the results. decoder: the decoder's features of the query's "
    "concept, as in the thesis; for a baseline the query's weights.",
    choices=("contributions", "decoder"),
    only=_QUERY,
  )
  relative: bool = config.flag(
    False,
    "Rank features by p log(p / p0), with p0 the decoder at the prior mean.",
    only={**_QUERY, "rationale": "decoder"},
  )
  results: int = config.flag(10, "Number of answers.", minimum=1, only=_QUERY)
  features: int = config.flag(
    10, "Features of the rationale.", minimum=0, only=_QUERY
  )
  sentences: int = config.flag(
    1, "Sentences for each answer.", minimum=0, only=_QUERY
  )
  max_members: int = config.flag(
    100, "Most entities in a query.", minimum=1, maximum=1000, only=_QUERY
  )
  gold: str | None = config.flag(
    None, "JSON file of gold sets. Default: WordNet's classes.", only=_GOLD
  )
  judged: str | None = config.flag(
    None, "File of judged queries.", only=_EVALUATE
  )
  sizes: tuple[int, ...] = config.flag(
    (3, 5), "Numbers of members in queries.", minimum=1, only=_GOLD
  )
  per_set: int = config.flag(
    3, "Queries of each set, size and stratum.", minimum=1, only=_GOLD
  )
  unit: str = config.flag(
    "query",
    "Unit of the bootstrap and of the split into development and test. set: "
    "all queries of a gold set are in the same part; there are no strata.",
    choices=("query", "set"),
    only=_GOLD,
  )
  variants: tuple[str, ...] = config.flag(
    (),
    "Further settings to train and choose from, as beta=0.3:dim=50.",
    only=_EVALUATE,
  )
  fixed: bool = config.flag(
    False, "Use --ranking as given; choose no setting.", only=_EVALUATE
  )
  systems: tuple[str, ...] = config.flag(
    system_lib.BASELINES,
    "Systems to compare with. gcca (generalized CCA over the kinds of "
    "features, thesis 3) is compared only if named. MODULE:NAME is a Baseline "
    "of your own.",
    only=_GOLD,
  )
  chances: bool = config.flag(
    False,
    "Calibrate the probability of each result on half of the gold queries, "
    "and cut the lists of the other half by it. --mode=query and the explorer "
    "use it too.",
    only=_EVALUATE,
  )
  negatives: bool = config.flag(
    False,
    "Add queries with negative members from overlapping gold sets.",
    only=_EVALUATE,
  )
  export: str | None = config.flag(
    None,
    "Directory to export to. Default: export/ in --workdir.",
    only={"mode": "export"},
  )
  seed: int = 0

  def __post_init__(self):
    if not self.corpus:
      raise InputError("--corpus: name at least one corpus")
    text = any(map(plain_text.is_text, self.corpus))
    for name, default in (
      ("gazetteer", None),
      ("ner", None),
      ("min_mentions", 2),
    ):
      if getattr(self, name) != default and not text:
        raise InputError(f"--{name} is read with plain text in --corpus only")
    if self.concepts and (self.query is not None or self.new_entity):
      raise InputError(
        "--concepts reads no query: leave out --query and --new_entity"
      )
    if self.ner is not None and self.gazetteer is not None:
      raise InputError("--ner does not read --gazetteer: give one of them")
    if not self.validation < 1:
      raise InputError(f"--validation={self.validation}: must be below 1")
    if self.patience != 3 and not self.validation:
      raise InputError("--patience is not read with --validation=0")
    if self.proposal != "unigram" and not self.sampled:
      raise InputError("--proposal is not read with --sampled=0")
    if self.svd_start and (
      self.activation != "linear" or self.hidden != (self.dim,)
    ):
      raise InputError(
        f"--svd_start needs --activation=linear and --hidden={self.dim}"
      )
    if (self.chances or self.negatives) and self.judged and not self.gold:
      raise InputError("--chances and --negatives need gold sets: give --gold")
    if self.svd_start and self.word_vectors is not None:
      raise InputError("--svd_start and --word_vectors exclude each other")
    fitting.check_hyper(self.model_config(), self.hyper())
    self.check_baselines()

  def hyper(self) -> Hyper:
    """Hyperparameters of the training."""
    return Hyper(
      self.learning_rate,
      self.beta,
      self.label_smoothing or None,
      self.likelihood,
      self.dropout or None,
    )

  def ranking_config(self) -> system_lib.RankingConfig:
    """How the model ranks."""
    return system_lib.RankingConfig(
      self.ranking,
      self.power,
      self.member_share,
      self.pooling,
      self.normalize,
      self.reliability,
      self.hubness,
    )

  def model_config(self) -> autoencoder.Config:
    """The autoencoder's configuration."""
    return autoencoder.Config(
      dim=self.dim,
      hidden=self.hidden,
      decoder=self.decoder,
      lower_bounded_variance=self.lower_bounded_variance,
      weighting=self.weighting,
      prior_variance=self.prior_variance,
      sampled=self.sampled,
      proposal=self.proposal,
      activation=self.activation,
      unit_inputs=self.unit_inputs,
      targets=self.targets,
    )


# A trained model depends on these fields, and on no other.
TRAINING = (
  "corpus", "gazetteer", "ner", "min_mentions", "same", "form", "wordnet_path",
  "link", "with_name", "drop_most_frequent",
  "min_count", "min_entities", "max_sentences", "dim", "hidden", "decoder",
  "beta", "lower_bounded_variance", "label_smoothing", "weighting",
  "prior_variance", "sampled", "proposal", "word_vectors", "epochs",
  "max_features", "contexts", "activation", "unit_inputs", "targets",
  "likelihood", "dropout", "svd_start", "warmup", "decay",
  "learning_rate", "batch_size", "z_samples", "validation", "patience", "seed",
)  # fmt: skip
VOLATILE = tuple(
  field.name
  for field in dataclasses.fields(Config)
  if field.name not in TRAINING
)
