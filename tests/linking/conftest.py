"""Mentions of a few entities, shared by tests of retrieval and vectors."""

import numpy as np
import pytest

from repr_jax.data.documents import mentions
from repr_jax.data.entities import Sentence

_WORDS = [f"w{i}" for i in range(25)]


@pytest.fixture(scope="module")
def found():
  """Entities with a two-word name and a few words that go with each."""
  rng = np.random.default_rng(0)
  sentences = []
  for entity in range(12):
    name = (f"n{entity % 5}", f"n{5 + entity % 4}")
    topic = rng.choice(_WORDS, 6, replace=False)
    for _ in range(6):
      words = tuple(rng.choice(topic, 5).tolist())
      spans = ((0, 2, f"e{entity}"),)
      sentences.append(Sentence("", (*name, *words), spans))
  return mentions.collect(sentences)


@pytest.fixture(scope="module")
def fields(found):
  return mentions.featurize(found)
