"""Systems on given candidates, from most in-links to a two-pass ranker."""

import functools
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from experiments.ned import link_model
from experiments.ned.config import Config
from experiments.run import progress
from repr_jax import linking
from repr_jax.data.documents import (
  candidate_features,
  candidate_files,
  title_kinds,
)
from repr_jax.data.documents.candidate_files import Document
from repr_jax.data.documents.evidence import (
  TOP,
  EvidenceGroup,
  pack_evidence,
)
from repr_jax.errors import InputError
from repr_jax.linking import context_kinds

SPLITS = ("train", "testa", "testb")
GRAPH = "PageRank and in-links, untrained"
FULL = "two passes with graph features"
LOCAL = "kind of title in context, and in-links"
KIND_GRAPH = "PageRank and kind of title"
_FOLDS = 6  # of training documents, for features learned on other folds
_MEMBERS = 3  # models of kinds of titles that are averaged
_WEIGHTS = (
  0.0,
  0.1,
  0.2,
  0.3,
  0.5,
  0.7,
  1.0,
  1.5,
  2.0,
  3.0,
  5.0,
  8.0,
  12.0,
  20.0,
  50.0,
  120.0,
  300.0,
  1000.0,
)
NAMES = (*candidate_features.NAMES, *context_kinds.NAMES)
_KINDS = tuple(range(len(candidate_features.NAMES), len(NAMES)))
pagerank = jax.jit(jax.vmap(linking.pagerank))
_best_pagerank = jax.jit(jax.vmap(linking.best_pagerank))
_coherence = jax.jit(jax.vmap(linking.coherence))


class Split(NamedTuple):
  """Documents of a split.

  Attributes:
    documents: the documents.
    groups: their arrays.
    gold: place of each mention's entity, int [n]; -1 if it is no candidate.
    owner: number of each mention's document, int [n].
  """

  documents: list[Document]
  groups: list[EvidenceGroup]
  gold: np.ndarray
  owner: np.ndarray


class Ladder(NamedTuple):
  """Answers of all systems.

  Attributes:
    splits: the documents by split.
    answers: for each system, for "testa" and "testb", the place of its
      answer for each mention, int [n].
    rankers: the trained rankers, one for each seed.
    contexts: the model of kinds of titles.
    probabilities: mean probabilities of the rankers by split, [n, c].
    weights: weight of the graph in each untrained system, chosen on testa.
    by_links: whether the rankers see counts of training links.
    parts: mean parts of the rankers' scores by `link_model.GROUPS` and
      split, [n, c, 5].
  """

  splits: dict[str, Split]
  answers: dict[str, dict[str, np.ndarray]]
  rankers: list[linking.Rankers]
  contexts: link_model.Contexts
  probabilities: dict[str, np.ndarray]
  weights: dict[str, float]
  by_links: bool
  parts: dict[str, np.ndarray]


class Source(NamedTuple):
  """Training links and popularity, which features are computed from.

  Attributes:
    links: counts of training links.
    popularity: scores by title.
  """

  links: candidate_features.Links
  popularity: dict[str, float]


def directory(config: Config) -> pathlib.Path:
  """The directory --candidates, which is there."""
  root = pathlib.Path(str(config.candidates))
  if not root.is_dir():
    raise InputError("--candidates: there is no such directory", path=root)
  return root


def read(config: Config) -> tuple[dict[str, list[Document]], Source]:
  """Reads all splits of --candidates.

  Returns:
    Documents by split, and what features are computed from. A missing file
    is an `InputError`.
  """
  root = directory(config)
  splits = {
    name: candidate_files.read_candidate_documents(
      root / f"{name}.jsonl.gz", root / f"candidates.{name}.jsonl.gz"
    )
    for name in SPLITS
  }
  path = root / "popularity.tsv.gz"
  popularity = candidate_files.read_popularity(path) if path.exists() else {}
  links = candidate_features.count_links(splits["train"])
  return splits, Source(links, popularity)


def make_split(
  documents: list[Document], source: Source, more: np.ndarray, block: int = 0
) -> Split:
  """Computes features and packs documents.

  Args:
    documents: the documents with n mentions in all.
    more: further features of the candidates, [n, c, g].
    block: training documents in a block; a block's own links are left out of
      its counts. 0 for documents whose links are not counted.
  """
  features = []
  for low in range(0, len(documents), block or len(documents)):
    part = documents[low : low + (block or len(documents))]
    without = candidate_features.count_links(part) if block else None
    features += [
      candidate_features.document_features(d, *source, without) for d in part
    ]
  features = link_model.join_features(documents, features, more)
  groups = pack_evidence(documents, features)
  owner = _owner(documents)
  gold = np.full(len(owner), -1)
  for group in groups:
    there = group.mentions >= 0
    gold[group.mentions[there]] = group.evidence.gold[there]
  return Split(documents, groups, gold, owner)


def run_ladder(config: Config) -> tuple[Ladder, Source]:
  """Reads, trains and answers.

  Returns:
    The answers of all systems and what features are computed from. The
    weights of untrained systems are chosen on testa.
  """
  documents, source = read(config)
  contexts, more = _contexts(documents, jax.random.key(config.seed))
  splits = {}
  for name in SPLITS:
    # Of few documents, a tenth at most is left out at a time.
    most = max(len(documents["train"]) // 10, 1)
    block = min(config.ranker_block, most) if name == "train" else 0
    splits[name] = make_split(documents[name], source, more[name], block)
    made = splits[name]
    link_model.warn(made.documents, TOP)
    progress.say(
      f"ned: {name}: {len(made.documents):,} documents, {len(made.gold):,} "
      f"linked mentions, entity a candidate for {(made.gold >= 0).mean():.2%}"
    )
  tests = SPLITS[1:]
  answers: dict[str, dict[str, np.ndarray]] = {}
  for system, feature in (
    ("most in-links", "log in-links"),
    ("popularity", "popularity"),
    ("p(e|m) of training links and in-links", "log p(e|m) of training links"),
    (LOCAL, context_kinds.NAMES[-1]),
  ):
    place = NAMES.index(feature)
    answers[system] = {t: _by_feature(splits[t], place) for t in tests}
  weights = {}
  for system, feature, door in (
    (GRAPH, "log share of in-links", pagerank),
    (
      "best-candidate PageRank, untrained",
      "log share of in-links",
      _best_pagerank,
    ),
    ("coherence and in-links, untrained", "log share of in-links", _coherence),
    ("PageRank and p(e|m)", "log p(e|m) of training links", pagerank),
    ("coherence and p(e|m)", "log p(e|m) of training links", _coherence),
    (KIND_GRAPH, context_kinds.NAMES[-1], pagerank),
  ):
    answers[system], weights[system] = _by_graph(
      {t: splits[t] for t in tests}, NAMES.index(feature), door
    )
  key = jax.random.key(config.seed)
  fit = functools.partial(
    linking.fit_rankers, hidden=config.ranker_hidden,
    epochs=config.ranker_epochs, learning_rate=config.ranker_learning_rate,
    decay=config.ranker_decay,
  )  # fmt: skip
  groups = {name: splits[name].groups for name in SPLITS}
  if not config.ranker_links:
    groups = {
      name: [link_model.without(x, candidate_features.BY_LINKS) for x in own]
      for name, own in groups.items()
    }
  if config.ablations:
    answers.update(_ablations(groups, splits, fit, key, config.seeds))
  (alone,) = fit(list(map(_apart, groups["train"])), key)
  rankers = fit(groups["train"], key, members=config.seeds)
  progress.say(f"ned: {len(rankers)} rankers trained")
  probabilities, parts = {}, {}
  for name in tests:
    count = len(splits[name].gold)
    own = linking.decide(alone, list(map(_apart, groups[name])), count)
    answers.setdefault("ranker without graph", {})[name] = np.asarray(own.best)
    each = [linking.decide(r, groups[name], count) for r in rankers]
    for number, one in enumerate(each):
      seed = f"{FULL}, seed {number}"
      answers.setdefault(seed, {})[name] = np.asarray(one.best)
    probabilities[name], answers.setdefault(FULL, {})[name] = _average(each)
    pairs = zip(rankers, each)
    parts[name] = np.mean(
      [link_model.decision_parts(*pair)[0] for pair in pairs], axis=0
    )
  answered = Ladder(
    splits, answers, rankers, contexts, probabilities, weights,
    config.ranker_links, parts,
  )  # fmt: skip
  return answered, source


def feature_places(*kinds: str) -> tuple[int, ...]:
  """Places of the features of some kinds of `candidate_features.GROUPS`."""
  own = enumerate(candidate_features.GROUPS)
  return tuple(place for place, kind in own if kind in kinds)


def _average(
  decisions: list[linking.Decision],
) -> tuple[np.ndarray, np.ndarray]:
  """Mean probabilities of several rankers [n, c], and their answers [n]."""
  mean = np.mean([np.asarray(x.probabilities) for x in decisions], axis=0)
  return mean, np.where(mean.any(axis=1), mean.argmax(axis=1), -1)


def _ablations(groups, splits, fit, key, members):
  """Answers of averaged rankers that see less of the candidates' titles."""
  names = feature_places("name")
  titles = feature_places("name", "document")
  answers: dict[str, dict[str, np.ndarray]] = {}
  for label, places, shapes in (
    ("name features", names, True),
    ("kinds of titles", _KINDS, True),
    ("both", (*names, *_KINDS), True),
    ("words of titles at all", (*titles, *_KINDS), False),
  ):
    less = {
      name: [link_model.without(x, places, shapes) for x in own]
      for name, own in groups.items()
    }
    rankers = fit(less["train"], key, members=members)
    system = f"{FULL}, without {label}"
    answers[system] = {}
    for name in SPLITS[1:]:
      gold = splits[name].gold
      each = [linking.decide(r, less[name], len(gold)) for r in rankers]
      _, answers[system][name] = _average(each)
      shares = (f"{(np.asarray(x.best) == gold).mean():.2%}" for x in each)
      progress.say(f"ned: {name}: {system}: {', '.join(shares)} by seed")
  return answers


def _contexts(documents: dict[str, list[Document]], key: jax.Array):
  """The model of kinds of titles, and its features of all splits.

  Training documents get them by models of the other folds, which are
  neighboring documents each.
  """
  train = documents["train"]
  vocabulary = title_kinds.build_vocabulary(train)
  arrays = {
    name: title_kinds.encode_kinds(own, vocabulary)
    for name, own in documents.items()
  }
  first, second = jax.random.split(key)
  params = linking.fit_kinds(
    arrays["train"], vocabulary, first, members=_MEMBERS
  )
  folds = _owner(train) * min(_FOLDS, len(train)) // len(train)
  more = {
    "train": linking.cross_kinds(arrays["train"], vocabulary, folds, second)
  }
  for name in SPLITS[1:]:
    more[name] = linking.apply_kinds(params, arrays[name])
  progress.say(
    f"ned: {len(vocabulary.kinds):,} features of titles in "
    f"{len(vocabulary.contexts):,} of contexts"
  )
  return link_model.Contexts(vocabulary, params), more


def _owner(documents: list[Document]) -> np.ndarray:
  """Number of each mention's document, int [n]."""
  counts = [len(d.mentions) for d in documents]
  return np.repeat(np.arange(len(documents)), counts)


def _apart(group: EvidenceGroup) -> EvidenceGroup:
  """Documents without links, so that graph features say nothing."""
  own = group.evidence
  apart = own._replace(
    nodes=np.where(own.nodes >= 0, 0, -1),
    groups=np.where(own.groups >= 0, 0, -1),
    edges=np.full((len(own.gold), 1, 2), -1),
    degrees=np.ones_like(own.degrees[:, :1]),
  )
  return group._replace(evidence=apart)


def _scored(split: Split, tables: list[np.ndarray]) -> np.ndarray:
  """Best place of each mention by scores [n, m, c] of each group."""
  best = np.full(len(split.gold), -1)
  for group, scores in zip(split.groups, tables):
    there = group.mentions >= 0
    scores = np.where(group.evidence.nodes >= 0, scores, -np.inf)
    best[group.mentions[there]] = scores.argmax(axis=2)[there]
  return best


def _by_feature(split: Split, place: int) -> np.ndarray:
  return _scored(split, [g.evidence.features[..., place] for g in split.groups])


def graph_parts(
  split: Split, place: int, door: Callable[..., jax.Array]
) -> list[tuple[np.ndarray, np.ndarray]]:
  """Scores by a prior, and by the graph that starts from it.

  Args:
    place: of the prior among the features, a log probability.
    door: score by the graph, vmapped.

  Returns:
    For each group the prior and the log of the graph's score, [n, m, c].
  """
  parts = []
  for group in split.groups:
    prior = np.where(
      group.evidence.nodes >= 0, group.evidence.features[..., place], -np.inf
    )
    shares = np.exp(prior - prior.max(axis=2, keepdims=True, initial=-1e9))
    total = shares.sum(axis=2, keepdims=True)
    shares = shares / np.where(total > 0, total, 1)
    graph = linking.fit_ranker.in_blocks(door, group.evidence, shares)
    parts.append((prior, np.log(graph + 1e-4)))
  return parts


def _by_graph(splits: dict[str, Split], place: int, door):
  """Answers by a prior and the graph; their weight is chosen on testa."""
  parts = {
    name: graph_parts(split, place, door) for name, split in splits.items()
  }
  answers = {}
  for weight in _WEIGHTS:
    answers[weight] = {
      name: _scored(split, [a + weight * b for a, b in parts[name]])
      for name, split in splits.items()
    }
  first = next(iter(splits))
  gold = splits[first].gold
  best = max(_WEIGHTS, key=lambda w: (answers[w][first] == gold).mean())
  return answers[best], best
