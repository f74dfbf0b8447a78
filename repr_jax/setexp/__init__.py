"""Set expansion: from a few entities to the rest of their set, and why."""

from repr_jax.data.entities import features as features
from repr_jax.data.entities.features import FeatureTable as FeatureTable
from repr_jax.data.entities.features import (
  build_from_entities as build_from_entities,
)
from repr_jax.data.entities.features import featurize as featurize
from repr_jax.data.entities.features import sentence_rows as sentence_rows
from repr_jax.data.entities.names import resolve_names as resolve_names
from repr_jax.data.entities.sentences import Sentences as Sentences
from repr_jax.setexp import autoencoder as autoencoder
from repr_jax.setexp import expansion as expansion
from repr_jax.setexp import explain as explain
from repr_jax.setexp import feature_scores as feature_scores
from repr_jax.setexp import feature_scores_batch as feature_scores_batch
from repr_jax.setexp import fitting as fitting
from repr_jax.setexp import model_files as model_files
from repr_jax.setexp.autoencoder import Config as Config
from repr_jax.setexp.autoencoder import Params as Params
from repr_jax.setexp.baselines import bayesian_sets as bayesian_sets
from repr_jax.setexp.baselines import bm25 as bm25
from repr_jax.setexp.baselines import setexpan as setexpan
from repr_jax.setexp.baselines import word2vecf as word2vecf
from repr_jax.setexp.gaussian_scores import RANKINGS as RANKINGS
from repr_jax.setexp.query import Query as Query
from repr_jax.setexp.query import best as best
from repr_jax.setexp.query import exclude as exclude
from repr_jax.setexp.query import make_query as make_query
from repr_jax.setexp.query import query_features as query_features
