"""Baselines of set expansion, ours and what people use (thesis 4.3).

python -m experiments.bench --suite=setexp [--size=full]

BM25: 80,000 documents of 60 tokens; queries of 5 and of 40 tokens, one at a
time, ask for the 100 best. The peer is bm25s with its numpy backend and the
same formula.
Bayesian Sets: 77,845 entities with 105,448 features and about 4.9 million
counts; queries of three entities ask for the 100 best. The peer of the
Bernoulli form multiplies scipy's binary matrix by the weights, which it also
computes for each query. The Poisson and Gaussian forms and SetExpan have no
peer.
Word2vecf: a million pairs of the same table. The peer is gensim's skip-gram on
a file of two-word sentences, an entity and a context. It takes each of the two
words as the center once, so it gets half as many sentences as there are pairs.
It draws negatives for each pair, ours for each batch.
A full run of five rounds takes about two minutes on two cores.

Each call answers several queries, so that it lasts long enough to time.
"""

import functools
import os
import tempfile
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from experiments.bench import harness
from repr_jax.setexp import query as query_lib
from repr_jax.setexp import systems
from repr_jax.setexp.baselines import bayesian_sets, bm25, sgns

_DOCUMENTS = {"small": (4_000, 5_000), "full": (80_000, 50_000)}
_TABLE = {"small": (4_000, 6_000), "full": (77_845, 105_448)}
_PAIRS = {"small": 40_000, "full": 1_000_000}
_QUERIES = 20
_BEST = 100


class Texts(NamedTuple):
  """Documents of tokens [n, 60], their counts and queries of token ids."""

  tokens: np.ndarray
  counts: sp.csr_array
  queries: list[np.ndarray]


class Table(NamedTuple):
  """Counts of features [X, F] and queries of entities."""

  counts: sp.csr_array
  queries: list[query_lib.Query]


def texts(size: str, length: int) -> Texts:
  """Draws documents and queries from one power law.

  Returns:
    The documents; the tokens of a query differ from one another.
  """
  count, words = _DOCUMENTS[size]
  rng = np.random.default_rng(0)
  share = 1 / (np.arange(words) + 10.0)
  share /= share.sum()
  tokens = rng.choice(words, (count, 60), p=share)
  queries = [
    np.sort(rng.choice(words, length, replace=False, p=share))
    for _ in range(_QUERIES)
  ]
  return Texts(tokens, harness.token_counts(tokens, words), queries)


def table(size: str) -> Table:
  """Draws counts: about 64 tokens for an entity, from a power law.

  Returns:
    The table, with queries of three entities.
  """
  entities, features = _TABLE[size]
  rng = np.random.default_rng(0)
  share = (np.arange(features) + 100.0) ** -0.9
  tokens = rng.choice(features, (entities, 64), p=share / share.sum())
  counts = harness.token_counts(tokens, features)
  queries = [
    query_lib.make_query(counts, rng.choice(entities, 3, replace=False))
    for _ in range(_QUERIES)
  ]
  return Table(counts, queries)


def rank_bm25(data: Texts) -> np.ndarray:
  """The best scores of each query by our postings, [queries, 100]."""
  index = harness.kept("bm25", lambda: bm25.fit(data.counts))
  ones = np.ones(len(data.queries[0]), np.float32)
  rankings = []
  for query in data.queries:
    scores = np.asarray(_score_features(index, query, ones))
    rankings.append(scores[query_lib.best(scores, _BEST)])
  return np.stack(rankings)


def rank_bm25s(data: Texts) -> np.ndarray:
  """The best scores of each query by bm25s, one query at a time."""
  import bm25s

  def build():
    retriever = bm25s.BM25(k1=1.5, b=0.75, method="robertson", backend="numpy")
    words = data.counts.shape[1]
    vocabulary = {str(i): i for i in range(words)}
    retriever.index((data.tokens.tolist(), vocabulary), show_progress=False)
    return retriever, [query.tolist() for query in data.queries]

  retriever, queries = harness.kept("bm25s", build)
  rankings = [
    retriever.retrieve(
      [query], k=_BEST, show_progress=False, backend_selection="numpy"
    ).scores[0]
    for query in queries
  ]
  return np.stack(rankings) * 2.5  # its formula leaves k1 + 1 out


def rank_bayesian(form: str, data: Table) -> list[np.ndarray]:
  """The best entities of each query by Bayesian Sets."""
  return _rank(form, data)


def rank_scipy(data: Table) -> list[np.ndarray]:
  """The same in the Bernoulli form as one sparse product for each query."""

  def build():
    prior = bayesian_sets.fit(data.counts, totals=()).prior
    prior = jax.tree.map(np.asarray, prior)
    binary = data.counts.copy()
    binary.data = (binary.data > prior.shift[binary.indices]).astype(np.float32)
    binary.eliminate_zeros()
    return binary, prior.alpha, prior.beta

  binary, alpha, beta = harness.kept("scipy", build)
  rankings = []
  for query in data.queries:
    sums = np.asarray(binary[query.ids].sum(axis=0))
    low = beta + len(query.ids) - sums
    weights = np.log((alpha + sums) * beta / (alpha * low))
    constant = np.log(low / beta).sum()
    scores = binary @ weights.astype(np.float32) + np.float32(constant)
    top = np.argpartition(scores, -_BEST)[-_BEST:]
    rankings.append(top[np.argsort(-scores[top])])
  return rankings


def rank_setexpan(data: Table) -> list[np.ndarray]:
  """The best entities of each query by SetExpan."""
  return _rank("setexpan", data)


def _rank(name: str, data: Table) -> list[np.ndarray]:
  system = harness.kept(name, lambda: systems.baseline(name, data.counts))
  return [
    query_lib.best(system.score_batch([query])[0], _BEST)
    for query in data.queries
  ]


def train_ours(size: str, data: Table) -> jax.Array:
  """Trains on a fixed number of pairs; the loss of each step."""
  config = sgns.Config()

  def build():
    steps = _PAIRS[size] // config.batch_size
    drawn = sgns.pairs(data.counts, np.random.default_rng(0), config)
    entities, contexts, weights = (jnp.asarray(x[:steps]) for x in drawn)
    rates = jnp.full(len(weights), config.learning_rate)
    frequency = data.counts.sum(axis=0, dtype=np.float64) ** config.power
    return sgns.make_noise(frequency), sgns.Batch(
      entities, contexts, weights, rates
    )

  noise, batches = harness.kept("pairs", build)
  state = sgns.init(jax.random.key(0), data.counts.shape, config.dim)
  _, losses = sgns.train(config, noise, state, batches)
  return jax.block_until_ready(losses)


def train_gensim(size: str, data: Table) -> Any:
  """Trains gensim's skip-gram on as many pairs, by two threads."""
  from gensim.models import word2vec

  def build():
    config = sgns.Config(batch_size=1)
    entities, contexts, _ = sgns.pairs(
      data.counts, np.random.default_rng(0), config
    )
    count = _PAIRS[size] // 2
    lines = [
      f"e{x} f{c}" for x, c in zip(entities[:count, 0], contexts[:count, 0])
    ]
    folder = tempfile.mkdtemp(prefix="repr_jax-bench-")
    path = os.path.join(folder, "pairs.txt")
    with open(path, "w", encoding="utf-8") as out:
      out.write("\n".join(lines))
    model = word2vec.Word2Vec(
      vector_size=100, window=1, min_count=1, sg=1, negative=5, workers=2,
      sample=0, seed=0,
    )  # fmt: skip
    model.build_vocab(corpus_file=path)
    return model, path, 2 * count

  model, path, words = harness.kept("gensim", build)
  model.train(corpus_file=path, total_words=words, epochs=1)
  return model


def cases(size: str) -> list[harness.Case]:
  """The cases of this suite."""
  counts = functools.partial(table, size)
  return [
    *(
      harness.Case(
        f"BM25 {length} tokens {_QUERIES} queries",
        functools.partial(texts, size, length),
        {"ours": rank_bm25, "bm25s numpy": rank_bm25s},
        quality=_mean_score,
      )
      for length in (5, 40)
    ),
    harness.Case(
      f"Bayesian Sets {_QUERIES} queries",
      counts,
      {
        "ours": functools.partial(rank_bayesian, "bernoulli"),
        "scipy product": rank_scipy,
        "ours poisson": functools.partial(rank_bayesian, "poisson"),
        "ours gaussian": functools.partial(rank_bayesian, "gaussian"),
      },
    ),
    harness.Case(
      f"SetExpan {_QUERIES} queries", counts, {"ours": rank_setexpan}
    ),
    harness.Case(
      f"word2vecf {_PAIRS[size]} pairs",
      counts,
      {
        "ours": functools.partial(train_ours, size),
        "gensim 2 workers": functools.partial(train_gensim, size),
      },
    ),
  ]


_score_features = jax.jit(bm25.score_features)


def _mean_score(data: Texts, result: np.ndarray) -> dict[str, float]:
  del data
  return {"mean score": float(result.mean())}
