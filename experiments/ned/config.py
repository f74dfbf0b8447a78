"""Everything that a run of disambiguation can be told."""

import dataclasses
from collections.abc import Sequence

from repr_jax.errors import InputError
from repr_jax.linking.disambiguation import Config

OBJECTIVES = ("max_margin", "vae", "null")
CONTEXTS = ("u1", "u2")
_POSITIVE = (
  "top", "train_top", "dim", "vocabulary", "window", "bag", "epochs", "cells",
  "context", "keep", "patience", "max_documents",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Options:
  """Corpus, vectors, model and training; each field is a flag of its name."""

  data: str | None = None
  train: Sequence[str] = ()
  validation: Sequence[str] = ()
  tests: Sequence[str] = ()
  dump: str | None = None
  prior: str | None = None
  max_documents: int = 5_000
  top: int = 30
  train_top: int = 4
  word_vectors: str | None = None
  dim: int = 100
  vocabulary: int = 50_000
  min_count: int = 2
  drop_most_frequent: int = 100
  window: int = 20
  bag: int = 20_000
  vector_steps: int = 400
  vae_epochs: int = 10
  folds: int = 2
  objectives: Sequence[str] = OBJECTIVES
  contexts: Sequence[str] = CONTEXTS
  context: int = 100
  keep: int = 25
  margin: float = 0.01
  field_prior: bool = True
  join_context: bool = True
  rate: float = 1e-3
  lower_rate: float = 1e-4
  threshold: float = 1.0
  epochs: int = 40
  patience: int = 5
  cells: int = 256
  widths: Sequence[int] = (8, 16, 32, 64)
  seed: int = 0

  def __post_init__(self):
    object.__setattr__(self, "widths", tuple(int(x) for x in self.widths))
    for name in ("train", "validation", "tests", "objectives", "contexts"):
      object.__setattr__(self, name, tuple(getattr(self, name)))
    for name, known in (("objectives", OBJECTIVES), ("contexts", CONTEXTS)):
      chosen = getattr(self, name)
      if not chosen or not set(chosen) <= set(known):
        raise InputError(f"--{name}: choose among {', '.join(known)}")
    for name in _POSITIVE:
      if getattr(self, name) < 1:
        raise InputError(f"--{name} must be 1 or more")
    for name in ("vector_steps", "vae_epochs", "drop_most_frequent"):
      if getattr(self, name) < 0:
        raise InputError(f"--{name} must not be negative")
    if self.folds < 2:
      raise InputError("--folds must be 2 or more")
    for name in ("rate", "lower_rate", "margin"):
      if not 0 < getattr(self, name) < float("inf"):
        raise InputError(f"--{name} must be positive")
    if bool(self.train) != bool(self.tests):
      raise InputError("--train and --tests belong together: name both")

  def config(self, coherence: bool) -> Config:
    """The model's configuration."""
    return Config(
      coherence,
      field_prior=self.field_prior,
      join_context=self.join_context,
      keep=self.keep,
      margin=self.margin,
    )
