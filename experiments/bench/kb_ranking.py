"""Filtered ranking beside PyKEEN, and an ALS round beside numpy and scipy.

`experiments.bench.kb` shows these cases in its suite. Triples are WN18's where
REPR_JAX_DATA or ../shared/data has them, else WordNet's own of that form.
"""

import gzip
import os
import pathlib
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from experiments.bench import harness

_DIM = 100
_MODELS = ("distmult", "complex", "R", "T")
# All of WN18's test facts: PyKEEN takes one to two minutes in each round.
_TO_RANK = {"small": 100, "full": 5000}

# Models that a contender has built; each worker process has one contender.
_ready: dict[tuple[int, str], Any] = {}


class Facts(NamedTuple):
  """Facts to rank, known ones, and vectors of a random model."""

  test: np.ndarray
  known: np.ndarray
  entities: np.ndarray
  relations: np.ndarray


class Rounds(NamedTuple):
  """Relations as sparse matrices and a start for their factors."""

  matrices: list[scipy.sparse.csr_matrix]
  start: np.ndarray
  complement: bool


def cases(size: str) -> list[harness.Case]:
  """Ranking for each kind of score, and ALS on a tree and on many relations."""
  ranking = [_ranking_case(size, model) for model in _MODELS]
  contenders = {
    "ours": _als,
    "numpy f64": lambda rounds: _als_numpy(rounds, np.float64),
    "numpy f32": lambda rounds: _als_numpy(rounds, np.float32),
  }
  shapes = {
    "ALS round on a tree and its complement": lambda: _tree_rounds(size, True),
    "ALS round on a tree and a sample": lambda: _tree_rounds(size, False),
    "ALS round on WN18": lambda: _wn18_rounds(size),
  }
  return ranking + [
    harness.Case(name, setup, contenders, quality=lambda _, result: result)
    for name, setup in shapes.items()
  ]


def _ranking_case(size: str, model: str) -> harness.Case:
  return harness.Case(
    f"filtered ranking of {model}",
    lambda: _facts(size, model),
    {
      "ours": lambda facts: _rank(model, facts),
      "pykeen": lambda facts: _rank_pykeen(model, facts),
    },
    quality=lambda _, result: result,
  )


def _triples() -> tuple[np.ndarray, np.ndarray]:
  """Facts to train on and to rank, as numbers."""
  roots = [os.environ.get("REPR_JAX_DATA", ""), "../shared/data"]
  folders = [pathlib.Path(root) / "wn18" for root in roots if root]
  for folder in folders:
    if (folder / "test.txt").exists():
      with gzip.open(folder / "train.txt.gz", "rt") as file:
        train = [line.split("\t") for line in file.read().splitlines()]
      text = (folder / "test.txt").read_text()
      test = [line.split("\t") for line in text.splitlines()]
      return _numbered(train, test)
  from repr_jax.data import wordnet

  every = wordnet.load().triples().array
  order = np.random.default_rng(0).permutation(len(every))
  return every[order[5000:]], every[order[:5000]]


def _numbered(train: list, test: list) -> tuple[np.ndarray, np.ndarray]:
  both = np.array(train + test)
  _, ends = np.unique(both[:, [0, 2]], return_inverse=True)
  _, relation = np.unique(both[:, 1], return_inverse=True)
  ends = ends.reshape(-1, 2)
  array = np.stack([ends[:, 0], relation.ravel(), ends[:, 1]], axis=1)
  return array[: len(train)], array[len(train) :]


def _facts(size: str, model: str) -> Facts:
  train, test = _triples()
  test = test[: _TO_RANK[size]]
  rng = np.random.default_rng(0)
  entities = int(max(train[:, [0, 2]].max(), test[:, [0, 2]].max())) + 1
  relations = int(max(train[:, 1].max(), test[:, 1].max())) + 1
  width = _DIM * _DIM if model == "R" else _DIM
  return Facts(
    test,
    train,
    rng.normal(size=(entities, _DIM)).astype(np.float32),
    rng.normal(size=(relations, width)).astype(np.float32),
  )


def _rank(model: str, facts: Facts) -> dict[str, float]:
  import jax.numpy as jnp

  from repr_jax.kb import link_prediction, scores

  params = scores.Params(
    jnp.asarray(facts.entities), jnp.asarray(facts.relations)
  )
  ranks = link_prediction.rank(
    *link_prediction.scorers(model, params),
    facts.test,
    np.concatenate([facts.known, facts.test]),
  )
  figures = link_prediction.summary(ranks)
  return {"mean rank": figures["mean_rank"], "MRR": figures["mrr"]}


def _rank_pykeen(model: str, facts: Facts) -> dict[str, float]:
  import torch
  from pykeen.evaluation import RankBasedEvaluator

  key = id(facts), model
  if key not in _ready:
    _ready[key] = _pykeen_model(model, facts)
  with torch.inference_mode():
    result = RankBasedEvaluator(filtered=True).evaluate(
      _ready[key],
      mapped_triples=torch.as_tensor(facts.test),
      additional_filter_triples=torch.as_tensor(facts.known),
      batch_size=32,
      use_tqdm=False,
    )
  return {
    "mean rank": result.get_metric("both.realistic.arithmetic_mean_rank"),
    "MRR": result.get_metric("both.realistic.inverse_harmonic_mean_rank"),
  }


def _pykeen_model(model: str, facts: Facts) -> Any:
  """PyKEEN's model of the same scores with the same vectors."""
  import torch
  from pykeen import models
  from pykeen.triples import CoreTriplesFactory

  every = np.concatenate([facts.known, facts.test])
  factory = CoreTriplesFactory.create(torch.as_tensor(every))
  entities, relations = facts.entities, facts.relations
  width = _DIM
  if model == "T":
    relations = -relations  # ours is head - relation, theirs head + relation
  if model == "complex":
    # Ours keeps real parts first; PyKEEN's numbers are complex.
    half = _DIM // 2
    entities = entities[:, :half] + 1j * entities[:, half:]
    relations = relations[:, :half] + 1j * relations[:, half:]
    width = half
  kinds = {
    "distmult": models.DistMult,
    "complex": models.ComplEx,
    "R": models.RESCAL,
    "T": models.TransE,
  }
  options: dict[str, Any] = {"random_seed": 0}
  if model == "T":
    options["scoring_fct_norm"] = 2
  peer = kinds[model](triples_factory=factory, embedding_dim=width, **options)
  tables = (peer.entity_representations[0], peer.relation_representations[0])
  for table, array in zip(tables, (entities, relations)):
    weight = table._embeddings.weight
    values = torch.as_tensor(array)
    if values.is_complex() and not weight.is_complex():
      values = torch.view_as_real(values)
    with torch.no_grad():
      weight.copy_(values.reshape(weight.shape))
  return peer.eval()


def _tree_rounds(size: str, complement: bool) -> Rounds:
  from repr_jax.data import synthetic_corpora
  from repr_jax.kb import transitivity

  depth, rank = (13, 200) if size == "full" else (11, 50)
  pairs, v = synthetic_corpora.binary_tree(depth), 2**depth - 1
  ones = np.ones(len(pairs))
  edges = scipy.sparse.csr_matrix((ones, tuple(pairs.T)), (v, v))
  rng = np.random.default_rng(0)
  matrices = [edges]
  if not complement:
    matrices.append(transitivity.sample_complement(edges, len(pairs), rng))
  start = np.linalg.qr(rng.normal(size=(v, rank)))[0]
  return Rounds(matrices, start, complement)


def _wn18_rounds(size: str) -> Rounds:
  train, test = _triples()
  if size != "full":
    train = train[np.all(train[:, [0, 2]] < 4000, axis=1)]
    test = train
  v = int(max(train[:, [0, 2]].max(), test[:, [0, 2]].max())) + 1
  matrices = []
  for relation in np.unique(train[:, 1]):
    chosen = train[train[:, 1] == relation]
    ones = np.ones(len(chosen))
    matrices.append(
      scipy.sparse.csr_matrix((ones, (chosen[:, 0], chosen[:, 2])), (v, v))
    )
  rng = np.random.default_rng(0)
  start = np.linalg.qr(rng.normal(size=(v, _DIM)))[0]
  return Rounds(matrices, start, False)


def _als(rounds: Rounds) -> float:
  """One round; the relations stay on the device between calls."""
  import jax
  import jax.numpy as jnp

  from repr_jax.kb import rescal_als, slices

  key = id(rounds), "ours"
  if key not in _ready:
    mixing = np.array([[1.0], [-1.0]]) if rounds.complement else None
    ones = np.array([0.0, 1.0]) if rounds.complement else None
    data = slices.make_slices(rounds.matrices, mixing, ones)
    start = jnp.asarray(rounds.start, jnp.float32)
    _ready[key] = data, rescal_als.from_factors(data, start, start)
  data, state = _ready[key]
  return float(jax.block_until_ready(rescal_als.update(data, state)).fit)


def _als_numpy(rounds: Rounds, dtype: Any) -> float:
  """The same round by the formulas of Nickel's code, for scipy's matrices.

  A complement is applied as 11' - E here too, and the fit is taken from
  traces, not from a dense residual. The round begins with optimal cores, as
  ours does, which are computed once.
  """
  key = id(rounds), np.dtype(dtype).name
  if key not in _ready:
    forward = [matrix.astype(dtype) for matrix in rounds.matrices]
    backward = [matrix.T.tocsr() for matrix in forward]
    start = rounds.start.astype(dtype)
    _ready[key] = (
      forward,
      backward,
      start,
      _numpy_cores(forward, start, rounds.complement)[0],
    )
  forward, backward, factor, cores = _ready[key]
  gram = factor.T @ factor
  top = np.zeros_like(factor)
  bottom = np.zeros_like(gram)
  for index, core in enumerate(cores):
    top += _times(forward, factor @ core.T, index, rounds.complement)
    top += _times(backward, factor @ core, index, rounds.complement)
    bottom += core @ gram @ core.T + core.T @ gram @ core
  factor = scipy.linalg.solve(bottom, top.T, assume_a="sym").T
  _, explained = _numpy_cores(forward, factor, rounds.complement)
  size = factor.shape[0]
  total = sum(matrix.nnz for matrix in forward)
  total = size**2 if rounds.complement else total
  return explained / total


def _times(
  matrices: list, block: np.ndarray, index: int, complement: bool
) -> np.ndarray:
  if complement and index == 1:
    return block.sum(0) - matrices[0] @ block
  return matrices[index] @ block


def _numpy_cores(
  matrices: list, factor: np.ndarray, complement: bool
) -> tuple[list[np.ndarray], float]:
  """Cores by the factor's SVD, and how much of the squares they explain."""
  u, s, vt = scipy.linalg.svd(factor, full_matrices=False)
  scale = 1 / np.outer(s, s)
  cores, explained = [], 0.0
  for index in range(2 if complement else len(matrices)):
    inner = u.T @ _times(matrices, u, index, complement)
    cores.append(vt.T @ (scale * inner) @ vt)
    explained += float(np.sum(inner**2))
  return cores, explained
