"""Character n-grams of words."""

import numpy as np
import pytest

from repr_jax.data.views import spelling
from repr_jax.errors import InputError


def test_words_share_the_ngrams_that_both_have():
  words = ("cat", "cats", "dog", "x")
  made = spelling.ngram_features(words, shortest=3, longest=4)
  # "<ca", "cat" and "<cat"; no n-gram of "dog" or "x" is shared.
  assert made.shape == (4, 3)
  expected = np.zeros((4, 3))
  expected[:2] = 1 / np.sqrt(3)
  np.testing.assert_allclose(made.toarray(), expected, rtol=1e-6)
  # "<x>" and every n-gram of "dog" count if one word is enough.
  alone = spelling.ngram_features(words, longest=4, min_words=1)
  assert (alone.toarray() ** 2).sum(axis=1) == pytest.approx(1)
  assert spelling.ngram_features(("a", "b")).nnz == 0
  with pytest.raises(InputError, match="n-grams of 4 to 3"):
    spelling.ngram_features(words, shortest=4, longest=3)
