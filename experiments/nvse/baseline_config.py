"""Flags of the systems beside the autoencoder, and of both pages."""

import dataclasses
import functools

from experiments.run import config, entity_gcca
from repr_jax.setexp.baselines import lsa, setexpan, sgns

ASKED = {"mode": ("query", "evaluate", "judge", "export", "serve")}
# An export holds no fitted system but word2vecf.
_FITTED = {"mode": ("query", "evaluate", "judge", "serve")}
_SERVE = {"mode": "serve"}

asked = functools.partial(config.flag, only=ASKED)
_fitted = functools.partial(config.flag, only=_FITTED)


@dataclasses.dataclass(frozen=True)
class BaselineConfig:
  """Settings of word2vecf, SetExpan and LSA, of the page and of judges."""

  word2vecf_epochs: int = asked(
    100, "Passes of word2vecf over all pairs (thesis: 100).", minimum=0
  )
  word2vecf_dim: int = asked(
    100, "Numbers in a vector of word2vecf.", minimum=1
  )
  word2vecf_num_negatives: int = asked(
    5, "Negatives of each pair in word2vecf.", minimum=1
  )
  word2vecf_shared: int = asked(
    64, "Negatives that a batch of word2vecf draws.", minimum=1
  )
  word2vecf_batch_size: int = asked(
    256, "Pairs in a step of word2vecf.", minimum=1
  )
  word2vecf_learning_rate: float = asked(
    0.1, "First learning rate of word2vecf.", minimum=0
  )
  word2vecf_power: float = asked(
    0.75,
    "Exponent of context frequencies when word2vecf draws negatives.",
    minimum=0,
  )
  setexpan_contexts: str = _fitted(
    "auto",
    "Features of SetExpan. skip_grams: the words around a mention, as in its "
    "paper. features: those of all systems. auto: skip_grams if more than half "
    "of the entities have some.",
    choices=("auto", "skip_grams", "features"),
  )
  setexpan_features: int = _fitted(
    150, "Features that a round of SetExpan keeps.", minimum=1
  )
  setexpan_samples: int = _fitted(
    60, "Subsets of the features in SetExpan.", minimum=1
  )
  setexpan_ratio: float = _fitted(
    0.6, "Share of the features in a subset of SetExpan.", minimum=0, maximum=1
  )
  setexpan_rank: float = _fitted(
    5.0,
    "Mean rank that an entity must beat to join the set of SetExpan.",
    minimum=1,
  )
  setexpan_iterations: int = _fitted(3, "Most rounds of SetExpan.", minimum=1)
  setexpan_candidates: int = _fitted(
    1000, "Entities that a round of SetExpan ranks.", minimum=1
  )
  word2vecf_contexts: str = asked(
    "words",
    "Contexts of word2vecf. words: the tokens of sentences (thesis). all: "
    "documents and links too.",
    choices=("words", "all"),
  )
  lsa_rank: int = _fitted(
    lsa.RANK,
    "Number of singular vectors in lsa and of dimensions in gcca.",
    minimum=1,
  )
  lsa_power: float = _fitted(
    lsa.POWER, "Exponent of the singular values in lsa."
  )
  lsa_hubness: float = _fitted(0.0, "The --hubness of lsa.", minimum=0)
  gcca_power: float = _fitted(
    entity_gcca.POWER, "Exponent of the eigenvalues in gcca."
  )
  gcca_ridge: float = _fitted(
    entity_gcca.RIDGE,
    "Ridge in gcca for each kind of features, as a multiple of the mean "
    "squared singular value of this kind.",
    above=0,
  )
  lsa_plain: bool = config.flag(
    False,
    "Also compare with lsa-plain: LSA at its defaults, of the features before "
    "--contexts and --max_features.",
    only={"mode": "evaluate", "model": None},
  )
  judge_queries: int = config.flag(
    20,
    "Gold queries on the page for judges.",
    minimum=1,
    only={"mode": "judge"},
  )
  answers: tuple[str, ...] = config.flag(
    (),
    "Files that the page for judges saved. They are written to judge/ in "
    "--workdir as judged queries; no page is written.",
    only={"mode": "judge"},
  )
  host: str = config.flag(
    "127.0.0.1",
    "Address of the page; 0.0.0.0 lets other machines in, without a password.",
    only=_SERVE,
  )
  port: int = config.flag(
    8000,
    "Port of the page; 0 for any free one.",
    minimum=0,
    maximum=65535,
    only=_SERVE,
  )

  def check_baselines(self) -> None:
    """Raises `InputError` for settings that cannot be."""
    setexpan.check(self.setexpan_config())

  def setexpan_config(self) -> setexpan.Config:
    """Settings of SetExpan."""
    return setexpan.Config(
      self.setexpan_features,
      self.setexpan_samples,
      self.setexpan_ratio,
      self.setexpan_rank,
      self.setexpan_iterations,
      self.setexpan_candidates,
    )

  def word2vecf_config(self) -> sgns.Config:
    """How word2vecf trains."""
    return sgns.Config(
      self.word2vecf_dim,
      self.word2vecf_num_negatives,
      self.word2vecf_shared,
      self.word2vecf_batch_size,
      self.word2vecf_learning_rate,
      self.word2vecf_power,
    )
