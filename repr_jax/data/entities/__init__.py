"""Corpora of entities, their features, names and sentences."""

from repr_jax.data.entities.corpus import EntityInfo as EntityInfo
from repr_jax.data.entities.corpus import Mention as Mention
from repr_jax.data.entities.corpus import NameFinder as NameFinder
from repr_jax.data.entities.corpus import Sentence as Sentence
from repr_jax.data.entities.corpus import read_entity_file as read_entity_file
from repr_jax.data.entities.corpus import read_sentences as read_sentences
from repr_jax.data.entities.corpus import (
  sentence_from_text as sentence_from_text,
)
from repr_jax.data.entities.corpus import tokenize as tokenize
