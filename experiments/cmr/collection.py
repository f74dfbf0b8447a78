"""The mentions of a corpus, their fields and their vectors.

Runs of one program share them: mentions are read once, and the autoencoders of
all seeds are trained at once.
"""

import functools
from collections.abc import Sequence

import numpy as np

from experiments.cmr import data, systems
from experiments.cmr.config import Config
from experiments.run import vmapped_runs
from repr_jax.data.documents import mentions as mentions_lib
from repr_jax.errors import InputError


class Collection:
  """A corpus as the systems see it."""

  def __init__(self, config: Config, seeds: Sequence[int]):
    """Names the corpus; it is read when it is needed.

    Args:
      config: of the run, or of one of the runs.
    """
    self._config = config
    self._seeds = list(dict.fromkeys(seeds))
    self._vectors: dict[str, dict[int, np.ndarray]] = {}

  @functools.cached_property
  def mentions(self) -> list[mentions_lib.Mention]:
    """All mentions."""
    return data.read_mentions(self._config)

  @functools.cached_property
  def fields(self) -> mentions_lib.Fields:
    """Features of the mentions."""
    return mentions_lib.featurize(
      self.mentions,
      document_words=self._config.document_words,
      chains=self.chains,
    )

  @functools.cached_property
  def chains(self) -> np.ndarray | None:
    """The coreference chain of each mention, -1 for none, if they are given."""
    if self._config.chains is None:
      return None
    return mentions_lib.read_chains(self._config.chains, self.mentions)

  def vectors(self, text: str, seed: int) -> np.ndarray:
    """The vectors of all mentions by a system.

    Returns:
      Vectors, [n, d]. Those that are not finite are an InputError.
    """
    if seed not in self._vectors.get(text, {}):
      # Frees the previous system's vectors.
      self._vectors = {text: self._all_vectors(text, seed)}
    made = self._vectors[text][seed]
    if not np.isfinite(made).all():
      raise InputError(
        f"--systems: {text!r} has a vector that is not finite; lower its "
        "learning_rate"
      )
    return made

  def _all_vectors(self, text: str, seed: int) -> dict[int, np.ndarray]:
    spec, least = systems.parse(text), self._config.min_mentions
    if spec.kind != "vae" or len(self._seeds) == 1:
      return {seed: systems.vectors(spec, self.fields, least, seed)}
    many = systems.autoencoders(
      spec, self.fields, least, self._seeds,
      vmapped_runs.mesh(len(self._seeds)),
    )  # fmt: skip
    return dict(zip(self._seeds, many))
