"""Everything that a model of set expansion can be told."""

import dataclasses
from collections.abc import Sequence

from repr_jax.data.documents import corpus_files
from repr_jax.errors import InputError
from repr_jax.setexp import autoencoder, fitting, systems, train


@dataclasses.dataclass(frozen=True)
class Options:
  """Corpus, model, training and ranking; each field is a flag of its name.

  The flags' help says what each means.
  """

  corpus: Sequence[str] = ("wordnet",)
  form: str = "auto"
  wordnet_path: str | None = None
  link: str = "none"
  with_name: bool = False
  drop_most_frequent: int = 30
  min_count: int = 2
  min_entities: int = 2
  max_sentences: int = 0
  store: str = "runs/nvse-features"
  dim: int = 100
  hidden: Sequence[int] = (500,)
  decoder: str = "multinomial"
  beta: float = 0.1
  lower_bounded_variance: bool = False
  label_smoothing: float = 0.0
  weighting: str = "bm25"
  prior_variance: float = 1.0
  sampled: int = 0
  proposal: str = "unigram"
  word_vectors: str | None = None
  epochs: int = 15
  learning_rate: float = 2e-3
  batch_size: int = 64
  z_samples: int = 1
  validation: float = 0.0
  patience: int = 3
  ranking: str = "features"
  power: float = 0.75
  member_share: float = 0.5
  pooling: str = "mean"
  normalize: bool = False
  word2vecf_epochs: int = 100
  mesh: str | None = None
  seed: int = 0

  def __post_init__(self):
    object.__setattr__(self, "corpus", tuple(self.corpus))
    object.__setattr__(self, "hidden", tuple(int(x) for x in self.hidden))
    if not self.corpus:
      raise InputError("--corpus: name at least one corpus")
    for name in ("batch_size", "z_samples", "patience"):
      if getattr(self, name) < 1:
        raise InputError(f"--{name} must be 1 or more")
    for name in (
      "drop_most_frequent",
      "min_count",
      "min_entities",
      "max_sentences",
      "epochs",
      "word2vecf_epochs",
    ):
      if getattr(self, name) < 0:
        raise InputError(f"--{name} must not be negative")
    if not 0 <= self.validation < 1:
      raise InputError(f"--validation must be in [0, 1), not {self.validation}")
    if not 0 < self.learning_rate < float("inf"):
      raise InputError(
        f"--learning_rate must be positive, not {self.learning_rate}"
      )
    if self.form not in corpus_files.FORMS:
      raise InputError(f"--form must be one of {', '.join(corpus_files.FORMS)}")
    if not 0 < self.power < float("inf"):
      raise InputError(f"--power must be positive, not {self.power}")
    if not 0 <= self.member_share <= 1:
      raise InputError(
        f"--member_share must be in [0, 1], not {self.member_share}"
      )
    self.ranking_config().traced()  # which checks the others
    fitting.check_hyper(self.config(), self.hyper())

  def hyper(self) -> train.Hyper:
    """Hyperparameters of the training."""
    return train.Hyper(
      self.learning_rate, self.beta, self.label_smoothing or None
    )

  def ranking_config(self) -> systems.RankingConfig:
    """How the model ranks."""
    return systems.RankingConfig(
      self.ranking, self.power, self.member_share, self.pooling, self.normalize
    )

  def config(self) -> autoencoder.Config:
    """The model's configuration."""
    return autoencoder.Config(
      dim=self.dim,
      hidden=tuple(self.hidden),
      decoder=self.decoder,
      lower_bounded_variance=self.lower_bounded_variance,
      weighting=self.weighting,
      prior_variance=self.prior_variance,
      sampled=self.sampled,
      proposal=self.proposal,
    )


def variant(options: Options, text: str) -> Options:
  """Options with some of them changed.

  Args:
    options: where the others come from.
    text: changes as "dim=200,beta=0.3"; widths of layers as "500x200".

  Returns:
    The changed options.
  """
  kinds = {field.name: field.type for field in dataclasses.fields(Options)}
  changes = {}
  for part in text.split(","):
    name, equals, value = (x.strip() for x in part.partition("="))
    if not equals or name not in kinds or name in ("corpus", "store"):
      raise InputError(
        f"--variants: {part!r} is not OPTION=VALUE with an option of the model"
      )
    changes[name] = _value(name, value, getattr(options, name))
  return dataclasses.replace(options, **changes)


def _value(name: str, text: str, old):
  try:
    if name == "hidden":
      return tuple(int(x) for x in text.split("x"))
    if isinstance(old, bool):
      return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
    if isinstance(old, (int, float)):
      return type(old)(text)
  except (ValueError, KeyError) as error:
    raise InputError(f"--variants: {name} cannot be {text!r}") from error
  return text
