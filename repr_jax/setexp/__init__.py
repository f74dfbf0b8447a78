"""Set expansion: from a few entities to the rest of their set, and why."""

from repr_jax.setexp import bayesian_sets as bayesian_sets
from repr_jax.setexp import bm25 as bm25
from repr_jax.setexp import decoded as decoded
from repr_jax.setexp import decoded_batch as decoded_batch
from repr_jax.setexp import expand as expand
from repr_jax.setexp import explain as explain
from repr_jax.setexp import features as features
from repr_jax.setexp import fitting as fitting
from repr_jax.setexp import model_files as model_files
from repr_jax.setexp import setexpan as setexpan
from repr_jax.setexp import vae as vae
from repr_jax.setexp import word2vecf as word2vecf
from repr_jax.setexp.features import FeatureTable as FeatureTable
from repr_jax.setexp.features import build_from_entities as build_from_entities
from repr_jax.setexp.features import featurise as featurise
from repr_jax.setexp.features import sentence_rows as sentence_rows
from repr_jax.setexp.names import resolve_names as resolve_names
from repr_jax.setexp.query import Query as Query
from repr_jax.setexp.query import best as best
from repr_jax.setexp.query import exclude as exclude
from repr_jax.setexp.query import make_query as make_query
from repr_jax.setexp.query import query_features as query_features
from repr_jax.setexp.ranking import RANKINGS as RANKINGS
from repr_jax.setexp.sentences import Sentences as Sentences
from repr_jax.setexp.vae import Config as Config
from repr_jax.setexp.vae import Params as Params
