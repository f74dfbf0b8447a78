"""Trains one autoencoder twice, at a size at which threads share the work.

As a program for `killing.Programs`; its work directory is there already.
"""

import pathlib

import jax
import numpy as np
import scipy.sparse as sp

from experiments.run import runlib
from repr_jax.setexp import autoencoder, fitting

FILE = "trained.npz"


def _train() -> list[np.ndarray]:
  rng = np.random.default_rng(0)
  counts = rng.poisson(0.05, (400, 2000)).astype(np.float32)
  counts[np.arange(400), np.arange(400)] += 1
  config = autoencoder.Config(dim=20, hidden=(100,))
  table = sp.csr_array(counts)
  found = fitting.fit(table, config, jax.random.key(0), epochs=2)
  return [np.asarray(x) for x in jax.tree.leaves(found.params)]


def main(argv: list[str]) -> None:
  """Writes the parameters; fails where two runs of a process differ."""
  del argv
  one, two = _train(), _train()
  for first, second in zip(one, two, strict=True):
    if first.tobytes() != second.tobytes():
      raise AssertionError("two runs in one process differ")
  np.savez(pathlib.Path(runlib.WORKDIR.value) / FILE, *one)
