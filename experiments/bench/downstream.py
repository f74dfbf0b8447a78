"""Downstream tasks, ours and what people use (thesis 6).

python -m experiments.bench --suite=downstream [--size=full]
python -m experiments.bench --suite=downstream --scaling

Two-field retrieval: 1,000 queries of two words, the 100 best of 50,000
sentences of 25 words, each with a mention; bm25s, with its numpy backend, is
asked for the same words in the sentences alone, all queries in one call.
Max-margin vectors: 10,000 entities, 50 steps each, against a loop over the
entities in numpy. Belief propagation: see the suite of that name. With
--scaling, a dump of Wikipedia repeats its pages. It is read for bags of words
of all entities, and for all that disambiguation needs before training: prior,
candidates, word vectors and bags. Memory must not grow with the copies.
"""

import bz2
import functools
import os
import pathlib
import tempfile
from typing import Any, NamedTuple

import jax
import numpy as np

from experiments.bench import belief_propagation, harness
from experiments.ned import data as corpus_lib
from experiments.ned.config import Config
from experiments.run import word_vectors
from repr_jax.data.documents import corpus_files, mentions, wikipedia
from repr_jax.data.entities import bags as entity_bags
from repr_jax.data.views import vocab
from repr_jax.linking import entity_vectors, mention_retrieval

_SENTENCES = {"small": (2_000, 50), "full": (50_000, 1_000)}
_ENTITIES = {"small": (100, 2_000, 50), "full": (10_000, 50_000, 300)}
_WORDS, _NAMES, _LENGTH = 30_000, 8_000, 25
_STEPS, _BAG = 50, 100
_BEST = 100


class Collection(NamedTuple):
  """Sentences of word ids [n, 25], two-field counts and queries of words."""

  tokens: np.ndarray
  fields: mentions.Fields
  queries: list[tuple[str, str]]


class Entities(NamedTuple):
  """Word vectors [V, d] with counts, and bags of words [n, 100]."""

  vectors: np.ndarray
  unigram: np.ndarray
  bags: np.ndarray


def collection(size: str) -> Collection:
  """Draws sentences that begin with a name of two words.

  Returns:
    The collection; queries are names that stand in it.
  """
  count, asked = _SENTENCES[size]
  rng = np.random.default_rng(0)
  share = 1 / (np.arange(_WORDS) + 10.0)
  tokens = rng.choice(_WORDS, (count, _LENGTH), p=share / share.sum())
  names = _WORDS + rng.choice(_NAMES, (count, 2), p=_falling(_NAMES))
  tokens[:, :2] = names
  words = [f"w{i}" for i in range(_WORDS + _NAMES)]
  features = [f"word:{word}" for word in words]
  real = np.ones(len(words), bool)
  fields = mentions.Fields(
    *(
      mentions.Field(harness.token_counts(rows, len(words)), features, real)
      for rows in (names, tokens)
    )
  )
  chosen = rng.choice(count, asked, replace=False)
  queries = [(words[a], words[b]) for a, b in names[chosen].tolist()]
  return Collection(tokens, fields, queries)


def search_two_fields(data: Collection) -> np.ndarray:
  """The best scores of all queries in both fields, [queries, 100]."""
  index, words = harness.kept(
    "index", lambda: mention_retrieval.index_mentions(data.fields)
  )
  queries = mention_retrieval.make_queries(words, data.queries, 0.1)
  own = np.full(len(data.queries), -1)
  best = mention_retrieval.search_batch(index, queries, own, _BEST)
  return np.asarray(best.scores)


def search_bm25s(data: Collection) -> np.ndarray:
  """The best scores of all queries in the sentences, by bm25s."""
  import bm25s

  def build():
    retriever = bm25s.BM25(k1=1.5, b=0.75, method="robertson", backend="numpy")
    width = _WORDS + _NAMES
    vocabulary = {str(i): i for i in range(width)}
    retriever.index((data.tokens.tolist(), vocabulary), show_progress=False)
    return retriever, [[int(w[1:]) for w in query] for query in data.queries]

  retriever, queries = harness.kept("bm25s", build)
  return retriever.retrieve(
    queries, k=_BEST, show_progress=False, backend_selection="numpy"
  ).scores


def entities(size: str) -> Entities:
  """Draws word vectors around topics, and bags of one topic each."""
  count, words, width = _ENTITIES[size]
  rng = np.random.default_rng(0)
  topics = rng.standard_normal((20, width))
  own = rng.integers(20, size=words)
  vectors = topics[own] + rng.standard_normal((words, width))
  vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
  order = np.argsort(own, kind="stable")
  starts = np.searchsorted(own[order], np.arange(21))
  topic = rng.integers(20, size=count)
  low, high = starts[topic][:, None], starts[topic + 1][:, None]
  bags = order[rng.integers(low, high, (count, _BAG))]
  unigram = 1e6 / (np.arange(words) + 10.0)
  return Entities(vectors.astype(np.float32), unigram, bags.astype(np.int32))


def fit_ours(data: Entities) -> jax.Array:
  """All entities in one program, [n, d]."""
  count = len(data.bags)
  return entity_vectors.fit_max_margin(
    data.vectors,
    np.arange(0, count * _BAG + 1, _BAG),
    data.bags.ravel(),
    data.unigram,
    key=jax.random.key(0),
    steps=_STEPS,
  )


def fit_loop(data: Entities) -> np.ndarray:
  """One entity after the other in numpy, [n, d]."""
  rng = np.random.default_rng(0)
  share = data.unigram**0.6
  cumulative = np.cumsum(share / share.sum())
  cumulative[-1] = 1.0
  vectors = np.zeros((len(data.bags), data.vectors.shape[1]), np.float32)
  for entity, bag in enumerate(data.bags):
    z = rng.standard_normal(vectors.shape[1]).astype(np.float32)
    z /= np.linalg.norm(z)
    squares = np.zeros_like(z)
    for _ in range(_STEPS):
      own = data.vectors[bag[rng.integers(0, len(bag), 20)]]
      other = data.vectors[np.searchsorted(cumulative, rng.random(5))]
      short = (0.1 - (own @ z)[:, None] + (other @ z)[None]) > 0
      slope = short.sum(axis=0) @ other - short.sum(axis=1) @ own
      slope = (slope / short.size).astype(np.float32)
      slope -= (slope @ z) * z
      squares += slope * slope
      z = z - np.float32(0.3) * slope / (np.sqrt(squares) + np.float32(1e-10))
      z /= np.linalg.norm(z)
    vectors[entity] = z
  return vectors


def repeated_dump(copies: int) -> str:
  """Writes a dump that has the pages of gensim's small one many times.

  Returns:
    The path of a .bz2 file.
  """
  path = pathlib.Path(corpus_files.gensim_dump())
  text = bz2.decompress(path.read_bytes())
  first, last = text.index(b"<page>"), text.rindex(b"</page>") + len(b"</page>")
  out = os.path.join(tempfile.mkdtemp(prefix="repr_jax-bench-"), "dump.xml.bz2")
  pages = bz2.compress(text[first:last])
  with open(out, "wb") as stream:
    # Streams of bz2 one after the other are one file.
    stream.write(bz2.compress(text[:first]))
    for _ in range(copies):
      stream.write(pages)
    stream.write(bz2.compress(text[last:]))
  return out


def gather_bags(path: str) -> entity_bags.Bags:
  """Vocabulary, then bags of all entities, in two passes over a dump."""
  redirects = wikipedia.read_redirects(path)

  def stream():
    return wikipedia.linked_sentences(path, redirects, all_sentences=True)

  counts = entity_bags.count_words(stream())
  words = vocab.Vocab.from_counts(counts, 20_000, 1)
  return entity_bags.from_sentences(
    stream(), words, most_page=200, most_context=40
  )


def read_for_linking(path: str) -> entity_bags.Bags:
  """Prior, candidates, word vectors and bags of `experiments.ned --dump`."""
  config = Config(
    dump=path, max_documents=100, dim=10, vocabulary=5_000, bag=100
  )
  corpus = corpus_lib.open_corpus(config)
  with tempfile.TemporaryDirectory(prefix="repr_jax-bench-") as folder:
    words = word_vectors.fit(
      corpus.stream(), config.words(), pathlib.Path(folder)
    )
  return entity_bags.from_documents(
    corpus.stream(), list(corpus.entities), words.telling, most=config.bag
  )


def cases(size: str) -> list[harness.Case]:
  """The cases of this suite."""
  sentences, asked = _SENTENCES[size]
  copies = (1, 2) if size == "small" else (1, 2, 4, 8)
  return [
    harness.Case(
      f"retrieval {asked} queries {sentences} sentences",
      functools.partial(collection, size),
      {"ours": search_two_fields, "bm25s one field": search_bm25s},
    ),
    harness.Case(
      f"max-margin vectors {_ENTITIES[size][0]} entities",
      functools.partial(entities, size),
      {"ours": fit_ours, "numpy loop": fit_loop},
      quality=_mean_loss,
    ),
    harness.Case(
      "bags from a dump by copies",
      repeated_dump,
      {"ours": gather_bags},
      quality=_kept_words,
      sizes=copies,
    ),
    harness.Case(
      "disambiguation from a dump by copies",
      repeated_dump,
      {"ours": read_for_linking},
      quality=_kept_words,
      sizes=copies,
    ),
    *belief_propagation.cases(size),
  ]


def _mean_loss(data: Entities, result: Any) -> dict[str, float]:
  """The hinge loss of 200 whole bags against frequent words."""
  vectors = np.asarray(result)[:200]
  rng = np.random.default_rng(1)
  share = data.unigram**0.6
  other = data.vectors[rng.choice(len(share), 100, p=share / share.sum())]
  losses = []
  for z, bag in zip(vectors, data.bags):
    gap = (data.vectors[bag] @ z)[:, None] - (other @ z)[None]
    losses.append(np.maximum(0, 0.1 - gap).mean())
  return {"mean loss": float(np.mean(losses))}


def _kept_words(path: str, result: entity_bags.Bags) -> dict[str, float]:
  del path
  return {
    "entities": len(result.entities),
    "words kept": len(result.page_words) + len(result.context_words),
  }


def _falling(count: int) -> np.ndarray:
  share = 1 / (np.arange(count) + 10.0)
  return share / share.sum()
