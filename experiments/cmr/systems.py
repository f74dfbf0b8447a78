"""Systems by their specifications, and what the thesis measured of each.

A specification is a kind with settings, such as `lsa:k=300`,
`mvlsa:k=300:m=256` or `vae:decoder=multilabel:epochs=5:lbv=1:beta=0.2`.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from experiments import thesis as thesis_figures
from repr_jax.data.documents import mentions
from repr_jax.errors import InputError
from repr_jax.linking import mention_vectors, posterior_means
from repr_jax.multiview import lsa, mvlsa
from repr_jax.setexp import autoencoder, fitting, train

KINDS = ("lsa", "mvlsa", "vae")


@dataclasses.dataclass(frozen=True)
class Spec:
  """A representation to rank by.

  Attributes:
    kind: one of `KINDS`.
    k: dimension of LSA and MVLSA.
    m: rank of each view in MVLSA.
    decoder: "multinomial" or "multilabel".
    epochs: of the autoencoder; 0 for a random encoder.
    dim: dimension of its posterior mean.
    hidden: width of its encoder.
    beta: weight of the KL term.
    smooth: label smoothing.
    lbv: 1 for variances of at least 1, else 0.
    learning_rate: step size of Adam.
    unique: 1 to train on mentions with equal fields once, else 0.
  """

  kind: str
  k: int = 300
  m: int = 300
  decoder: str = "multinomial"
  epochs: int = 5
  dim: int = 100
  hidden: int = 150
  beta: float = 1.0
  smooth: float = 0.0
  lbv: int = 1
  learning_rate: float = 1e-3
  unique: int = 0

  def __post_init__(self):
    for name in ("k", "m", "dim", "hidden"):
      if getattr(self, name) < 1:
        raise InputError(f"{name} must be 1 or more: {getattr(self, name)}")
    if self.epochs < 0:
      raise InputError(f"epochs must be 0 or more: {self.epochs}")
    for name in ("lbv", "unique"):
      if getattr(self, name) not in (0, 1):
        raise InputError(f"{name} must be 0 or 1: {getattr(self, name)}")
    if not 0 < self.learning_rate < np.inf:
      raise InputError(
        f"learning_rate must be above 0 and finite: {self.learning_rate}"
      )
    fitting.check_hyper(self.config(), self.hyper())

  def config(self) -> autoencoder.Config:
    """The autoencoder with these settings."""
    return autoencoder.Config(
      dim=self.dim,
      hidden=(self.hidden,),
      decoder=self.decoder,
      lower_bounded_variance=bool(self.lbv),
    )

  def hyper(self) -> train.Hyper:
    """Hyperparameters of its training."""
    return train.Hyper(self.learning_rate, self.beta, self.smooth or None)


def parse(text: str) -> Spec:
  """Reads a specification.

  Args:
    text: kind and settings, joined by colons.

  Returns:
    The specification; InputError where a setting is unknown or its value
    cannot be.
  """
  kind, *settings = text.split(":")
  casts: dict[str, type] = {
    field.name: type(field.default)
    for field in dataclasses.fields(Spec)
    if field.name != "kind"
  }
  if kind not in KINDS:
    raise InputError(f"--systems: {text!r} is none of {', '.join(KINDS)}")
  values: dict[str, Any] = {}
  for setting in settings:
    name, _, value = setting.partition("=")
    if name not in casts:
      raise InputError(
        f"--systems: {text!r} has no setting {name!r}; there are "
        f"{', '.join(casts)}"
      )
    try:
      values[name] = casts[name](value)
    except ValueError:
      raise InputError(f"--systems: {setting!r} is not a number") from None
  try:
    return Spec(kind, **values)
  except InputError as error:
    raise InputError(f"--systems: {text!r}: {error}") from None


def thesis(spec: Spec) -> tuple[float | None, float | None]:
  """The thesis' infAP of this setting, alone and in the ensemble, or None."""
  for text, figures in thesis_figures.CMR.items():
    if parse(text) == spec:
      return figures
  return None, None


def vectors(
  spec: Spec, fields: mentions.Fields, min_mentions: int, seed: int
) -> np.ndarray:
  """Represents all mentions.

  Args:
    fields: of n mentions.
    min_mentions: features that fewer mentions have are left out.
    seed: of the SVD or of the training.

  Returns:
    Vectors, [n, d].
  """
  if spec.kind == "lsa":
    table = mention_vectors.weigh_both(fields, min_mentions)
    return lsa.lsa(table, spec.k, center=False, seed=seed)
  if spec.kind == "mvlsa":
    views = [mention_vectors.weigh(field, min_mentions) for field in fields]
    fitted = mvlsa.fit(views, spec.k, m=spec.m, projections=False, key=seed)
    return np.asarray(fitted.model.embedding)
  return _autoencoder(spec, fields, min_mentions, jax.random.key(seed))


def autoencoders(
  spec: Spec,
  fields: mentions.Fields,
  min_mentions: int,
  seeds: Sequence[int],
  mesh: Mesh | None = None,
) -> np.ndarray:
  """Represents all mentions by an autoencoder for each seed, in one program.

  Args:
    spec: of kind "vae".
    fields: of n mentions.
    min_mentions: features that fewer mentions have are left out.
    seeds: of the trainings, s of them.
    mesh: devices that share the trainings.

  Returns:
    Vectors, [s, n, d]; not finite where a training diverged.
  """
  keys = jnp.stack([jax.random.key(seed) for seed in seeds])
  return _autoencoder(spec, fields, min_mentions, keys, mesh)


def _autoencoder(spec, fields, min_mentions, key, mesh=None) -> np.ndarray:
  return posterior_means.fit_posterior_means(
    mention_vectors.weigh_both(fields, min_mentions),
    key=key,
    config=spec.config(),
    epochs=spec.epochs,
    hyper=spec.hyper(),
    unique=bool(spec.unique),
    mesh=mesh,
  )
