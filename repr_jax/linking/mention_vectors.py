"""Weighted features of mentions, the input of representations (6.1.1)."""

import numpy as np
import scipy.sparse as sp

from repr_jax.data.documents import mentions
from repr_jax.setexp.baselines import bm25


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


def weigh_both(fields: mentions.Fields, min_mentions: int = 1) -> sp.csr_array:
  """Both weighted fields side by side, float32 CSR [n, F']; see `weigh`."""
  parts = [weigh(field, min_mentions) for field in fields]
  return sp.csr_array(sp.hstack(parts, format="csr", dtype=np.float32))
