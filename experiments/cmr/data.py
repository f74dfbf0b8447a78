"""The task: a collection of mentions, queries among them, and judgments."""

import collections
import pathlib
from collections.abc import Container, Iterator
from typing import NamedTuple

import numpy as np

from experiments.cmr.config import Config
from repr_jax.data import entities, trec, wordnet
from repr_jax.data.documents import corpus_files
from repr_jax.data.documents import mentions as mentions_lib
from repr_jax.data.io import files
from repr_jax.data.wordnet import instances
from repr_jax.errors import InputError


class Task(NamedTuple):
  """Collection, queries and judgments.

  Attributes:
    mentions: the collection.
    queries: rows of the mentions that are queries, int [q].
    judgments: relevance by query and mention, by their ids.
    excluded: queries that were left out, by reason.
  """

  mentions: list[mentions_lib.Mention]
  queries: np.ndarray
  judgments: trec.Judgments
  excluded: dict[str, int]


def read_mentions(config: Config) -> list[mentions_lib.Mention]:
  """Reads the mentions of a collection.

  Args:
    config: the configuration of the run.
  """
  mentions = mentions_lib.collect(_stream(config), _kinds(config))
  if config.types is None:
    return mentions
  return mentions_lib.read_types(config.types, mentions)


def load(
  config: Config, mentions: list[mentions_lib.Mention] | None = None
) -> Task:
  """Chooses queries among mentions, or takes those of --qrels.

  Args:
    config: the configuration of the run.
    mentions: from `read_mentions`, where they are there already.

  Returns:
    The task. Without --qrels a query is one mention of an entity that has at
    least two, and the entity's others are relevant; mentions of other
    entities of the same name stay in the collection.
  """
  if mentions is None:
    mentions = read_mentions(config)
  if config.qrels is not None:
    return _judged(mentions, config.qrels)
  return _sampled(mentions, config.queries, config.seed)


def read_pool(path: str, task: Task) -> trec.Judgments:
  """Reads a pool in which only some mentions are judged, for infAP.

  Args:
    path: judgments; -1 for what is in the pool and was not judged.
    task: its queries count.

  Returns:
    The pool of each query that has a relevant mention among its judged ones;
    InputError where there is none, or a name that is no mention's.
  """
  pool = trec.read_judgments(path)
  _check_names(pool, {mention.id for mention in task.mentions}, path)
  known = {task.mentions[row].id for row in task.queries}
  asked = {
    query: rows
    for query, rows in pool.items()
    if query in known and max(rows.values()) > 0
  }
  if not asked:
    raise InputError(
      f"has none of the {len(known):,} queries with a relevant mention",
      path=path,
    )
  return asked


def make_pool(
  task: Task, candidates: np.ndarray, share: float, seed: int
) -> trec.Judgments:
  """A pool of what was retrieved, of which a share is judged.

  Args:
    task: the queries with their judgments.
    candidates: rows of the mentions in the pool, int [q, k]; -1 for padding.
    share: chance of a mention of the pool to be judged.
    seed: which ones.

  Returns:
    Judgments with -1 for what was not judged. A query without any relevant
    mention among its judged ones is left out.
  """
  rng = np.random.default_rng(seed)
  pool: trec.Judgments = {}
  for row, rows in zip(task.queries.tolist(), candidates.tolist()):
    query = task.mentions[row].id
    relevance = task.judgments[query]
    judged = rng.random(len(rows)) < share
    judgments = {}
    for i, yes in zip(rows, judged):
      if i >= 0:
        name = task.mentions[i].id
        judgments[name] = relevance.get(name, 0) if yes else -1
    if max(judgments.values(), default=-1) > 0:
      pool[query] = judgments
  return pool


def write(task: Task, pool: trec.Judgments, directory: pathlib.Path) -> None:
  """Writes the collection and the judgments, to be used with other tools.

  Args:
    task: the task.
    pool: judgments for infAP.
    directory: gets mentions.tsv.gz, qrels.txt and pool.txt.
  """
  with files.atomic_write(directory / "mentions.tsv.gz") as out:
    for m in task.mentions:
      cells = (m.id, m.entity, " ".join(m.words), m.doc, " ".join(m.sentence))
      out.write("\t".join(" ".join(x.split()) for x in cells) + "\n")
  trec.write_judgments(directory / "qrels.txt", task.judgments)
  trec.write_judgments(directory / "pool.txt", pool)


def _sampled(
  mentions: list[mentions_lib.Mention], count: int, seed: int
) -> Task:
  rows: dict[str, list[int]] = {}
  for i, mention in enumerate(mentions):
    rows.setdefault(mention.entity, []).append(i)
  rng = np.random.default_rng(seed)
  excluded: collections.Counter[str] = collections.Counter()
  queries = []
  for entity in sorted(rows):
    own = rows[entity]
    named = [i for i in own if mentions_lib.content_words(mentions[i].words)]
    if len(own) < 2:
      excluded["entities with one mention"] += 1
    elif not named:
      excluded["entities that no sentence names"] += 1
    else:
      queries.append(int(rng.choice(named)))
  if not queries:
    raise InputError(
      "no entity of the corpus has two mentions, one of them by name: there "
      "is nothing to ask"
    )
  if len(queries) > count:
    queries = rng.choice(queries, count, replace=False).tolist()
  queries.sort()
  judgments = {
    mentions[q].id: {
      mentions[i].id: 1 for i in rows[mentions[q].entity] if i != q
    }
    for q in queries
  }
  return Task(mentions, np.array(queries), judgments, dict(excluded))


def _judged(mentions: list[mentions_lib.Mention], path: str) -> Task:
  rows = {mention.id: i for i, mention in enumerate(mentions)}
  judgments, queries, excluded = {}, [], collections.Counter[str]()
  read = trec.read_judgments(path)
  _check_names(read, rows, path)
  for query, relevance in read.items():
    if relevance.get(query, 0) > 0:
      raise InputError(
        f"{query!r} is judged relevant to itself; a query is never among its "
        "own results: remove the line",
        path=path,
        line=_line_of(path, (query, query)),
      )
    if max(relevance.values()) < 1:
      excluded["queries without a relevant mention"] += 1
    elif not mentions_lib.content_words(mentions[rows[query]].words):
      excluded["queries without a word"] += 1
    else:
      judgments[query] = relevance
      queries.append(rows[query])
  if not queries:
    raise InputError("has no query with a relevant mention", path=path)
  return Task(mentions, np.array(queries), judgments, dict(excluded))


def _check_names(
  judgments: trec.Judgments, known: Container[str], path: str
) -> None:
  """Refuses names that are no mention's."""
  for query, relevance in judgments.items():
    for name in (query, *relevance):
      if name not in known:
        pair = (query, None if name == query else name)
        raise InputError(
          f"there is no mention {name!r} in the collection; mentions are "
          "named m0, m1, ... in the order of the corpus, as mentions.tsv.gz "
          "of a run without --qrels lists them",
          path=path,
          line=_line_of(path, pair),
        )


def _line_of(path: str, pair: tuple[str, str | None]) -> int | None:
  """The first line of a query's judgments, or that of one document."""
  for line, text in enumerate(files.open_text(path), 1):
    query, _, document, *_ = [*text.split(), "", "", ""]
    if query == pair[0] and pair[1] in (None, document):
      return line
  return None


def _stream(config: Config) -> Iterator[entities.Sentence]:
  source = config.corpus
  if source == "wordnet":
    opened = wordnet.load(config.wordnet_path)
    pairs = instances.wordnet_instances(opened, "instances", True)
  else:
    if source == "wikipedia":
      source = corpus_files.gensim_dump()
    form = corpus_files.form_of(source, config.form)
    if form != "entities":
      yield from corpus_files.read_linked(source, form)
      return
    pairs = entities.read_entity_file(source)
    for info, sentences in pairs:
      yield from (_with_span(sentence, info) for sentence in sentences)
    return
  for _, sentences in pairs:
    yield from sentences


def _with_span(
  sentence: entities.Sentence, info: entities.EntityInfo
) -> entities.Sentence:
  """Gives an empty mention the longest part of the name in the sentence."""
  name = entities.tokenize(info.name)
  spans = tuple(
    (*mentions_lib.locate(name, sentence.tokens), entity)
    if start == end and entity == info.id
    else (start, end, entity)
    for start, end, entity in sentence.mentions
  )
  return sentence._replace(mentions=spans)


def _kinds(config: Config) -> dict[str, str]:
  """Types of WordNet's instances, such as "noun.person"."""
  if config.corpus != "wordnet":
    return {}
  opened = wordnet.load(config.wordnet_path)
  return {
    opened.names[row]: opened.tables.lexname[row] for row in opened.instances()
  }
