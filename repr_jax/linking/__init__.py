"""Representations at work: mentions and entities of real text."""

from repr_jax.data.documents import mentions as mentions
from repr_jax.data.documents.candidates import build_index as build_index
from repr_jax.data.documents.candidates import (
  document_candidates as document_candidates,
)
from repr_jax.data.documents.packing import pack as pack
from repr_jax.linking import entity_vectors as entity_vectors
from repr_jax.linking import mention_retrieval as mention_retrieval
from repr_jax.linking.disambiguation import predict as predict
from repr_jax.linking.entity_vectors import fit_max_margin as fit_max_margin
from repr_jax.linking.entity_vectors import posterior_means as posterior_means
