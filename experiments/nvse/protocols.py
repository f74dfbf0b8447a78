"""The queries of the three protocols for one table of entities."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from experiments.nvse.figures import Task
from repr_jax.data.entities import features
from repr_jax.data.entities import judged as judged_files
from repr_jax.errors import InputError
from repr_jax.evaluation import expansion, judgments, significance
from repr_jax.setexp import systems
from repr_jax.setexp.query import Query, make_query

GOLD = ("map", "P_10", "recall_100", "recip_rank", "Rprec", "ndcg")
_LEAST = 3  # members of a gold set that are left to find
_ANY = {"any": (1, 1 << 30)}
JUDGED = ("recip_rank", "recall_10", "recall_100")


def gold_tasks(
  table: features.FeatureTable,
  sets: Mapping[str, Sequence[str]],
  sizes: Sequence[int] = (3, 5),
  per_set: int = 3,
  seed: int = 0,
  unit: str = "query",
) -> list[Task]:
  """Protocol (a): expand some members of a gold set to the rest of it.

  Args:
    sets: entity ids by class; those without features do not count.
    per_set: queries of each class, size and stratum.
    unit: "query": the members of a query are of one stratum, and each query
      is a unit. "set": members have any number of sentences, and all queries
      of a gold set are one unit. A unit is for development or for the test,
      never both, and the bootstrap draws units.
  """
  usable = np.diff(table.counts.indptr) > 0
  rows = {
    name: [
      table.rows[x] for x in ids if x in table.rows and usable[table.rows[x]]
    ]
    for name, ids in sets.items()
  }
  sentences = np.diff(table.sentences.entity_starts)
  rng = np.random.default_rng(seed)
  tasks = []
  for size in sizes:
    queries = expansion.gold_queries(
      rows, sentences, size, rng, per_set=per_set, min_relevant=_LEAST,
      strata=_ANY if unit == "set" else expansion.STRATA,
    )  # fmt: skip
    for i, gold in enumerate(queries):
      label = f"{gold.name}/{gold.stratum}/{size}/{i % per_set}"
      query = make_query(table.counts, gold.members)
      own = gold.name if unit == "set" else label
      tasks.append(
        Task(label, own, gold.stratum, query, gold.relevant, gold.members)
      )
  if not tasks:
    raise InputError(
      f"no gold set has {min(sizes)} members with features and {_LEAST} "
      "more to find: are the sets of this corpus?"
    )
  return tasks


def judged_tasks(
  table: features.FeatureTable, queries: Iterable[judged_files.JudgedQuery]
) -> list[Task]:
  """Protocol (b): find a hidden member of a judged query.

  Returns:
    The tasks; those of one judged query are one unit.
  """
  tasks = []
  for i, item in enumerate(judgments.leave_one_out(queries)):
    query = judgments.build_query(
      item.members, table.rows, table.counts, _featurize(table)
    )
    if query is None:
      continue
    own = np.unique(query.ids[query.ids >= 0])
    ids = item.hidden.candidate_ids
    known = [table.rows[x] for x in ids if x in table.rows]
    targets = np.setdiff1d(np.array(known, np.int64), own)
    if targets.size:
      tasks.append(
        Task(f"{item.qid}/{i}", item.qid, item.stratum, query, targets, own)
      )
  if not tasks:
    raise InputError(
      "no member of a judged query is in the table: are they of this corpus?"
    )
  return tasks


def agreement(
  table: features.FeatureTable,
  system: systems.System,
  queries: Sequence[judged_files.JudgedQuery],
) -> significance.Difference:
  """Protocol (c): how often a scorer prefers the list that judges preferred.

  Returns:
    The share less one half, with its interval and p.
  """

  def score(query: Query) -> np.ndarray:
    return np.asarray(system.score_batch([query])[0])

  pairs = judgments.pair_agreement(
    score, queries, table.rows, table.counts, _featurize(table)
  )
  _, place = np.unique(pairs.query, return_inverse=True)
  shares = np.bincount(place, pairs.agrees) / np.bincount(place)
  return significance.paired_bootstrap(
    np.full(len(shares), 0.5), shares, np.random.default_rng(0)
  )


def _featurize(table: features.FeatureTable):
  return lambda text: features.featurize(table, [text])
