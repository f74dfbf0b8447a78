"""All systems on one task: scores, measures, significance."""

import pathlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import jax
import numpy as np

from experiments import thesis
from experiments.cmr import data as task_lib
from experiments.cmr import searches, systems
from experiments.cmr.collection import Collection
from experiments.cmr.config import Config
from repr_jax import linking
from repr_jax.data import trec
from repr_jax.data.io import array_files
from repr_jax.errors import InputError
from repr_jax.evaluation import retrieval as measures
from repr_jax.evaluation import significance
from repr_jax.linking import mention_retrieval

MEASURES = ("map", "infAP", "ndcg", "recip_rank", "P_5", "P_10")
WEIGHTS = (0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)

Values = dict[str, dict[str, float]]


class Scored(NamedTuple):
  """Scores of all systems on a task.

  Attributes:
    candidates: rows that BM25 found, int [q, k]; -1 for padding.
    scores: of the candidates by system, [q, k]; "bm25" first.
    pool: judgments for infAP.
    searches: further searches by name: what each found, and its scores.
  """

  candidates: np.ndarray
  scores: dict[str, np.ndarray]
  pool: trec.Judgments
  searches: Mapping[str, tuple[np.ndarray, np.ndarray]] = MappingProxyType({})


class Line(NamedTuple):
  """A system's figures on the queries that nothing was chosen on.

  Attributes:
    name: of the system or ensemble.
    means: each measure.
    differences: to BM25, of "map" and "infAP".
    weight: of the representation in an ensemble, None for a system alone.
    values: each measure for each query.
    thesis: the thesis' infAP, where it has one.
  """

  name: str
  means: dict[str, float]
  differences: dict[str, significance.Difference]
  weight: float | None
  values: Values
  thesis: float | None


def score(
  task: task_lib.Task,
  config: Config,
  directory: pathlib.Path,
  say: Callable[[str], None] = lambda text: None,
  collection: Collection | None = None,
) -> Scored:
  """Searches, then ranks again by each system.

  Args:
    task: the task.
    config: the configuration of the run.
    directory: scores are kept there and reused.
    say: called with a line of text when something was done.
    collection: of the task's mentions; that of the run by default.

  Returns:
    The scores.
  """
  if collection is None:
    collection = Collection(config, [config.seed])
  _halves(task)  # refuses too few queries
  pool = None
  if config.pool is not None:  # refused before systems are trained
    pool = task_lib.read_pool(config.pool, task)
  fields, chains = collection.fields, collection.chains
  if chains is not None:
    say(f"{(chains >= 0).sum():,} mentions are in {chains.max() + 1:,} chains")
  index, known = mention_retrieval.index_mentions(fields)
  words = [task.mentions[row].words for row in task.queries]
  queries = mention_retrieval.make_queries(
    known, words, config.document_weight, config.mention_weight
  )
  best = mention_retrieval.search_batch(
    index, queries, task.queries, config.top
  )
  ids = np.asarray(best.ids)
  say(
    f"{len(task.mentions):,} mentions, {len(words):,} queries; features: "
    f"{len(fields.mention.features):,} of mentions, "
    f"{len(fields.document.features):,} of documents"
  )
  further = {}
  for name in config.searches:
    further[name] = searches.run(
      searches.parse(name), fields, words, task.queries,
      (config.document_weight, config.mention_weight), config.top,
    )  # fmt: skip
    say(f"{name} has searched")
  scores = {"bm25": np.asarray(best.scores)}
  for text in config.systems:
    path = directory / "scores" / f"{_slug(text)}.npz"
    if not path.exists():
      vectors = collection.vectors(text, config.seed)
      again = mention_retrieval.rerank_batch(vectors, task.queries, ids)
      path.parent.mkdir(parents=True, exist_ok=True)
      array_files.write_npz(path, scores=np.asarray(again))
    kept = array_files.read_npz(path).get("scores", np.zeros(0))
    if kept.dtype.kind != "f" or kept.shape != ids.shape:
      raise InputError(
        "does not hold the scores of this run; remove it and run again",
        path=path,
      )
    scores[text] = kept
    say(f"{text} is scored")
  if pool is None:
    pool = task_lib.make_pool(task, ids, config.judged_share, config.seed)
  made = {name: (np.asarray(x), np.asarray(y)) for name, (x, y) in
          further.items()}  # fmt: skip
  return Scored(ids, scores, pool, made)


def as_run(
  task: task_lib.Task, candidates: np.ndarray, scores: np.ndarray
) -> trec.Run:
  """Scores as a run in the sense of trec_eval.

  Args:
    candidates: rows, int [q, k]; -1 for padding.
    scores: [q, k].
  """
  names = [mention.id for mention in task.mentions]
  return {
    names[query]: {
      names[row]: float(score) for row, score in zip(rows, line) if row >= 0
    }
    for query, rows, line in zip(
      task.queries.tolist(), candidates.tolist(), scores.tolist()
    )
  }


def evaluate(
  task: task_lib.Task,
  scored: Scored,
  directory: pathlib.Path | None = None,
  seed: int = 0,
) -> list[Line]:
  """Measures each system, and each in an ensemble with BM25.

  The weight of an ensemble is chosen by average precision on every second
  query; all figures are of the other half. The mean, weight 1/2, is shown
  too.

  Args:
    scored: from `score`.
    directory: where run files go, one for each line; None for nowhere.

  Returns:
    Lines, BM25 first.
  """
  chosen, held = _halves(task)
  lines: list[Line] = []

  def add(name, scores, weight, published, candidates=scored.candidates):
    run = as_run(task, candidates, scores)
    if directory is not None:
      folder = directory / "runs"
      folder.mkdir(parents=True, exist_ok=True)
      trec.write_run(folder / f"{_slug(name)}.run.gz", run, tag=_slug(name))
    values = measure(run, task.judgments, scored.pool, held)
    base = lines[0].values if lines else values
    lines.append(
      Line(
        name,
        means(values),
        compare(base, values, seed),
        weight,
        values,
        published,
      )
    )

  base = scored.scores["bm25"]
  add("bm25", base, None, thesis.CMR_BM25)
  for name, (candidates, own) in scored.searches.items():
    told = searches.published(searches.parse(name))
    add(name, own, None, told, candidates)
  for text in list(scored.scores)[1:]:
    alone, together = systems.thesis(systems.parse(text))
    add(text, scored.scores[text], None, alone)
    both = np.stack([base, scored.scores[text]])
    add(f"{text}+bm25 mean", _mixed(both, 0.5), 0.5, together)

    def quality(weight, both=both):
      run = as_run(task, scored.candidates, _mixed(both, weight))
      return means(measure(run, task.judgments, {}, chosen))["map"]

    best = max(WEIGHTS, key=quality)
    add(f"{text}+bm25", _mixed(both, best), best, together)
  return lines


def measure(
  run: trec.Run,
  judgments: trec.Judgments,
  pool: trec.Judgments,
  queries: Sequence[str],
) -> Values:
  """Each measure for each query; infAP from the pool, where it has the query.

  Args:
    run: scores by query and mention.
  """
  asked = {query: judgments[query] for query in queries}
  plain = [name for name in MEASURES if name != "infAP"]
  plainly = measures.evaluate_run(run, asked, plain, complete=True)
  judged = {query: pool[query] for query in queries if query in pool}
  inferred = measures.evaluate_run(run, judged, ["infAP"], complete=True)
  return {
    query: {**row, **inferred.get(query, {})} for query, row in plainly.items()
  }


def means(values: Values) -> dict[str, float]:
  """Mean of each measure over the queries that have it."""
  averages = {}
  for name in MEASURES:
    known = [row[name] for row in values.values() if name in row]
    if known:
      averages[name] = float(np.mean(known))
  return averages


def compare(
  base: Values, values: Values, seed: int
) -> dict[str, significance.Difference]:
  """Differences of "map" and "infAP" by paired bootstrap over queries.

  Args:
    base: measures of one system for each query.
    values: of the other.
    seed: of the bootstrap.

  Returns:
    The other system minus the base, over queries that have the measure in both.
  """
  gaps = {}
  for name in ("map", "infAP"):
    known = [q for q in base if name in base[q] and name in values[q]]
    if known:
      pair = [np.array([x[q][name] for q in known]) for x in (base, values)]
      rng = np.random.default_rng(seed)
      gaps[name] = significance.paired_bootstrap(pair[0], pair[1], rng)
  return gaps


def _mixed(both: np.ndarray, weight: float) -> np.ndarray:
  """BM25 and a representation, scores [2, q, k], with the latter's weight."""
  mix = jax.vmap(linking.ensemble, (1, None))
  return np.asarray(mix(both, np.array([1 - weight, weight])))


def _halves(task: task_lib.Task) -> tuple[list[str], list[str]]:
  names = [task.mentions[row].id for row in task.queries]
  if len(names) < 2:
    raise InputError(
      "one query alone is too few: weights are chosen on every second query, "
      "and figures are of the others"
    )
  return names[::2], names[1::2]


def _slug(name: str) -> str:
  return name.replace(":", "-").replace("=", "").replace(" ", "-")
