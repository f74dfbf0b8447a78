"""The configuration of set expansion: every flag, declared once."""

import dataclasses
import functools

from experiments.nvse.baseline_config import ASKED, BaselineConfig
from experiments.run import config, expander
from repr_jax.data.documents import corpus_files, plain_text
from repr_jax.errors import InputError
from repr_jax.setexp import POOLINGS, SCORES, Hyper, autoencoder, fitting
from repr_jax.setexp import systems as system_lib

MODES = ("train", "query", "evaluate", "judge", "export", "serve")
_TRAINED = {"model": None}  # flags of a model that is trained here
_TEXT = {**_TRAINED, "corpus": config.Where("plain text", plain_text.is_text)}
_WORDNET = {**_TRAINED, "corpus": "wordnet"}
_FEATURES = {"ranking": "features"}
_COSINE = {**_TRAINED, "ranking": "cosine"}
_QUERY, _EVALUATE = {"mode": "query"}, {"mode": "evaluate"}
_GOLD = {"mode": ("evaluate", "judge")}

_trained = functools.partial(config.flag, only=_TRAINED)
_query = functools.partial(config.flag, only=_QUERY)
_evaluate = functools.partial(config.flag, only=_EVALUATE)
_gold = functools.partial(config.flag, only=_GOLD)


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
  corpus: tuple[str, ...] = _trained(
    ("wordnet",),
    "wordnet; synthetic (counts of the thesis' size, no text); or files. "
    "Files are JSON lines (sentences with mentions, entities, or linked "
    "documents), Wikipedia dumps or plain text: a folder of .txt files, one "
    "document each, or a .txt file with one document on each line. Names in "
    "plain text become entities.",
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
  form: str = _trained(
    "auto", "Form of the files of --corpus.", choices=corpus_files.FORMS
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
  drop_most_frequent: int | None = _trained(
    None,
    "Number of the most frequent features to drop (thesis: 100). Default: 30 "
    "for WordNet; for other corpora, features spread as if by chance.",
    minimum=0,
  )
  min_count: int = _trained(
    2, "Features seen fewer times are dropped (thesis: 5).", minimum=0
  )
  min_entities: int = _trained(
    2, "Features that fewer entities have are dropped (thesis: 1).", minimum=0
  )
  max_sentences: int = _trained(
    0, "Most sentences counted for an entity; 0 for all.", minimum=0
  )
  max_features: int = _trained(
    0,
    "Number of features to keep, those of the largest total BM25 weight; 0 for "
    "all. With --contexts, as many contexts are kept too.",
    minimum=0,
  )
  contexts: bool = _trained(
    False, "Also take the tokens beside a name as features."
  )
  store: str = _trained(
    "",
    "Directory that caches features; runs may share it. Default: features/ in "
    "--workdir.",
  )
  dim: int = _trained(
    100, "Numbers in a concept, the latent vector (thesis: 50).", minimum=1
  )
  hidden: tuple[int, ...] = _trained(
    (500,), "Widths of the encoder's layers.", minimum=1
  )
  decoder: str = _trained(
    "multinomial",
    "Distribution of the features.",
    choices=("multinomial", "multilabel"),
  )
  activation: str = _trained(
    "tanh",
    "Activation of the encoder. With linear, cosine is a sum over features.",
    choices=("tanh", "linear"),
  )
  unit_inputs: bool = _trained(
    False, "Scale the inputs of an entity to length 1."
  )
  targets: str = _trained(
    "counts",
    "Targets of the decoder. counts: feature counts. inputs: the encoder's "
    "inputs, scaled to sum 1.",
    choices=("counts", "inputs"),
  )
  likelihood: float = _trained(1.0, "Weight of the log-likelihood.", above=0)
  dropout: float = _trained(
    0.0, "Probability that a step drops an input.", minimum=0
  )
  svd_start: bool = _trained(
    False,
    "Start at the SVD of the inputs; needs --activation=linear and --hidden "
    "equal to --dim.",
  )
  warmup: int = _trained(
    0, "Epochs in which beta rises to its value.", minimum=0
  )
  decay: bool = _trained(False, "Lower the learning rate along half a cosine.")
  beta: float = _trained(0.1, "Weight of the KL term (thesis: 1).", minimum=0)
  lower_bounded_variance: bool = _trained(
    False, "Keep every variance in [1, e]."
  )
  label_smoothing: float = _trained(
    0.0, "Share of the targets spread evenly.", minimum=0
  )
  weighting: str = _trained(
    "bm25", "Weights of the inputs.", choices=("raw", "log1p", "l1", "bm25")
  )
  prior_variance: float = _trained(1.0, "Variance of the prior.", above=0)
  sampled: int = _trained(
    0, "Features drawn for a sampled softmax; 0 for the exact one.", minimum=0
  )
  proposal: str = _trained(
    "unigram",
    "Distribution that --sampled draws from.",
    choices=("unigram", "log_uniform"),
  )
  word_vectors: str | None = _trained(
    None, "File of word vectors that the first layer starts from."
  )
  epochs: int = _trained(
    15, "Most passes over the entities; 0 for a random encoder.", minimum=0
  )
  learning_rate: float = _trained(
    2e-3, "Step size of Adam (thesis: 5e-5).", above=0
  )
  batch_size: int = _trained(64, "Entities in a step.", minimum=1)
  z_samples: int = _trained(
    1, "Samples of the concept for each entity in training.", minimum=1
  )
  validation: float = _trained(
    0.0, "Share of the entities held out for early stopping.", minimum=0
  )
  patience: int = _trained(
    3, "Epochs without a better validation bound before stopping.", minimum=1
  )
  mesh: str | None = _trained(
    None, "Devices, as batch:2,features:4, that share the training."
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
  query: str | None = _query(
    None,
    'Names or ids with weights: "Bach, Haydn:2, Verdi:-0.1". Without this flag '
    "the program asks for them.",
  )
  system: str = _query(
    "nvse", f"System to ask: {', '.join(expander.SYSTEMS)} or MODULE:NAME."
  )
  concepts: bool = _query(
    False,
    "Print what each latent dimension stands for, decoder(e_j), and exit "
    "(thesis 4.4).",
  )
  new_entity: tuple[str, ...] = _query(
    (),
    "Files of new entities: JSON lines with name and sentences, or text with "
    "one sentence on each line.",
  )
  json: bool = _query(False, "Print JSON.")
  rationale: str = _query(
    "contributions",
    "Explanation of an answer. contributions: the score's parts by feature, "
    "summed over the results. decoder: the decoder's features of the query's "
    "concept, as in the thesis; for a baseline the query's weights.",
    choices=("contributions", "decoder"),
  )
  relative: bool = config.flag(
    False,
    "Rank features by p log(p / p0), with p0 the decoder at the prior mean.",
    only={**_QUERY, "rationale": "decoder"},
  )
  results: int = _query(10, "Number of answers.", minimum=1)
  features: int = _query(10, "Features of the rationale.", minimum=0)
  sentences: int = _query(1, "Sentences for each answer.", minimum=0)
  max_members: int = _query(
    100, "Most entities in a query.", minimum=1, maximum=1000
  )
  gold: str | None = _gold(
    None, "JSON file of gold sets. Default: WordNet's classes."
  )
  judged: str | None = _evaluate(None, "File of judged queries.")
  sizes: tuple[int, ...] = _gold(
    (3, 5), "Numbers of members in queries.", minimum=1
  )
  per_set: int = _gold(3, "Queries of each set, size and stratum.", minimum=1)
  unit: str = _gold(
    "query",
    "Unit of the bootstrap and of the split into development and test. set: "
    "all queries of a gold set are in the same part; there are no strata.",
    choices=("query", "set"),
  )
  variants: tuple[str, ...] = _evaluate(
    (), "Further settings to train and choose from, as beta=0.3:dim=50."
  )
  fixed: bool = _evaluate(False, "Use --ranking as given; choose no setting.")
  systems: tuple[str, ...] = _gold(
    system_lib.BASELINES,
    "Systems to compare with. gcca (generalized CCA over the kinds of "
    "features, thesis 3) is compared only if named. MODULE:NAME is a Baseline "
    "of your own.",
  )
  chances: bool = _evaluate(
    False,
    "Calibrate the probability of each result on half of the gold queries, "
    "and cut the lists of the other half by it. --mode=query and the explorer "
    "use it too.",
  )
  negatives: bool = _evaluate(
    False, "Add queries with negative members from overlapping gold sets."
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
