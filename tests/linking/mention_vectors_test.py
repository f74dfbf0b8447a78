"""Vectors of mentions: weights by hand, and names that entities share."""

import jax
import numpy as np
import pytest

from repr_jax.data.documents import mentions
from repr_jax.linking import mention_retrieval, mention_vectors, posterior_means
from repr_jax.multiview import lsa, mvlsa
from repr_jax.setexp import autoencoder, train
from repr_jax.setexp.baselines import bm25


def test_words_are_weighted_by_bm25_and_the_rest_is_not(fields):
  field = fields.mention
  counts, words = mentions.word_part(field)
  expected = bm25.weigh_rows(bm25.fit(counts), counts).toarray()
  got = mention_vectors.weigh(field).toarray()
  assert got.shape == field.counts.shape
  np.testing.assert_allclose(got[:, : len(words)], expected, rtol=1e-6)
  assert set(np.unique(got[:, len(words) :])) == {0, 1}
  assert mention_vectors.weigh(field, 15).shape[1] < got.shape[1]
  having = (field.counts > 0).sum(axis=0)
  assert mention_vectors.weigh(field, 15).shape[1] == (having >= 15).sum()


@pytest.mark.parametrize("system", ["lsa", "mvlsa", "vae", "null"])
def test_representations_separate_what_names_confuse(found, fields, system):
  if system == "lsa":
    table = mention_vectors.weigh_both(fields, 2)
    vectors = lsa.lsa(table, 10, center=False)
  elif system == "mvlsa":
    views = [mention_vectors.weigh(field, 2) for field in fields]
    fitted = mvlsa.fit(views, 10, m=15, projections=False)
    vectors = np.asarray(fitted.model.embedding)
  else:
    config = autoencoder.Config(dim=10, hidden=(20,))
    epochs = 10 if system == "vae" else 0
    vectors = posterior_means.fit_posterior_means(
      mention_vectors.weigh_both(fields, 2),
      config=config,
      key=jax.random.key(0),
      epochs=epochs,
      hyper=train.Hyper(1e-2, beta=0.1),
      batch_size=24,
    )
  assert vectors.shape == (len(found), 10)
  cosines = np.asarray(
    mention_retrieval.rerank_batch(
      vectors,
      np.arange(len(found)),
      np.tile(np.arange(len(found)), (len(found), 1)),
    )
  )
  entity = np.array([m.entity for m in found])
  same = (entity[:, None] == entity) & ~np.eye(len(found), dtype=bool)
  other = entity[:, None] != entity
  assert cosines[same].mean() > cosines[other].mean() + 0.2
