"""Vectors of mentions, from both fields: LSA, MVLSA, autoencoder (6.1.1)."""

import jax
import numpy as np
import scipy.sparse as sp
from jax.sharding import Mesh

from repr_jax.data.documents import mentions
from repr_jax.linking import posterior_means
from repr_jax.multiview import lsa as baselines
from repr_jax.multiview import mvlsa as mvlsa_lib
from repr_jax.setexp import autoencoder as vae
from repr_jax.setexp import train
from repr_jax.setexp.baselines import bm25

_HYPER = train.Hyper()


def weigh(field: mentions.Field, min_mentions: int = 1) -> sp.csr_array:
  """Weights a field: words by BM25, other features unchanged.

  Args:
    field: the field of n mentions.
    min_mentions: features that fewer mentions have are left out.

  Returns:
    float32 CSR [n, F'].
  """
  having = np.bincount(field.counts.indices, minlength=len(field.features))
  counts, _ = mentions.word_part(field)
  words = bm25.weigh_rows(bm25.fit(counts), counts)
  kept = having[field.real] >= min_mentions
  rest = np.flatnonzero(~field.real & (having >= min_mentions))
  parts = [words[:, np.flatnonzero(kept)], field.counts[:, rest]]
  weighted = sp.csr_array(sp.hstack(parts, format="csr", dtype=np.float32))
  weighted.eliminate_zeros()
  weighted.sort_indices()
  return weighted


def lsa(
  fields: mentions.Fields, k: int, *, min_mentions: int = 2, seed: int = 0
) -> np.ndarray:
  """LSA of the concatenated fields.

  Args:
    fields: of n mentions.
    k: dimension.
    min_mentions: features that fewer mentions have are left out.
    seed: of the SVD.

  Returns:
    Vectors, float32 [n, k]; zero for a mention without features.
  """
  table = _concatenated(fields, min_mentions)
  return baselines.lsa(table, k, center=False, seed=seed)


def mvlsa(
  fields: mentions.Fields,
  k: int,
  m: int,
  *,
  min_mentions: int = 2,
  seed: int = 0,
) -> np.ndarray:
  """MVLSA with the two fields as views.

  Args:
    fields: of n mentions.
    k: dimension.
    m: rank of each view.
    min_mentions: features that fewer mentions have are left out.
    seed: of the SVDs.

  Returns:
    Vectors, float32 [n, k]; zero for a mention without features.
  """
  views = [weigh(field, min_mentions) for field in fields]
  fitted = mvlsa_lib.fit(views, k, m=m, projections=False, key=seed)
  return np.asarray(fitted.model.embedding)


def autoencoder(
  fields: mentions.Fields,
  config: vae.Config,
  *,
  key: jax.Array,
  epochs: int,
  hyper: train.Hyper = _HYPER,
  batch_size: int = 256,
  min_mentions: int = 2,
  unique: bool = False,
  mesh: Mesh | None = None,
) -> np.ndarray:
  """Posterior means of an autoencoder of the concatenated fields.

  Args:
    fields: of n mentions.
    config: the autoencoder; its inputs are weighted already, so that "raw" is
      the weighting to choose.
    key: random key, or those of several runs in one program, [s].
    epochs: passes over the mentions; 0 for a random encoder.
    hyper: learning rate of Adam, beta and smoothing.
    batch_size: mentions in a step.
    min_mentions: features that fewer mentions have are left out.
    unique: whether mentions with equal fields are trained on once.
    mesh: devices that share several runs; None for one device.

  Returns:
    Vectors, float32 [n, d], or [s, n, d]; zero for a mention without features.
  """
  return posterior_means.fit_posterior_means(
    _concatenated(fields, min_mentions),
    key=key,
    config=config,
    epochs=epochs,
    hyper=hyper,
    batch_size=batch_size,
    unique=unique,
    mesh=mesh,
  )


def _concatenated(fields: mentions.Fields, min_mentions: int) -> sp.csr_array:
  parts = [weigh(field, min_mentions) for field in fields]
  return sp.csr_array(sp.hstack(parts, format="csr", dtype=np.float32))
