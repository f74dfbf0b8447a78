"""Chapter 6, first half, in the main job: mentions of WordNet's instances.

The thesis' collection (TAC 2014) is licensed. The same task is made of
WordNet's glosses instead, which name one another's instances.
"""

import dataclasses
import pathlib
from collections.abc import Sequence

from experiments.cmr import analysis, comparison, evaluate, findings, reporting
from experiments.cmr import data as task_lib
from experiments.cmr.config import Config
from experiments.run import report, runlib

_FULL = Config()
_QUICK = dataclasses.replace(
  _FULL,
  queries=600,
  systems=(
    "lsa:k=60",
    "mvlsa:k=60:m=60",
    "vae:decoder=multilabel:epochs=1:dim=40:hidden=80",
    "vae:epochs=0:dim=40:hidden=80",
    "vae:epochs=1:dim=40:hidden=80",
  ),
  min_mentions=5,
)


def chapter(size: str, workdir: pathlib.Path) -> report.Chapter:
  """Retrieves mentions of WordNet's instances with all systems."""
  chosen = _QUICK if size == "quick" else _FULL
  identity = dataclasses.asdict(chosen)
  with runlib.Run("cmr", directory=workdir, config=identity) as run:
    compared = comparison.compare(run, chosen)
  return make(*compared, chosen)


def make(
  task: task_lib.Task,
  scored: evaluate.Scored,
  lines: Sequence[evaluate.Line],
  config: Config,
) -> report.Chapter:
  """The chapter of a run, whatever its collection.

  Args:
    task: the task.
    scored: what the systems made of it.
    lines: from `evaluate.evaluate`.
    config: the configuration of the run.
  """
  where = pathlib.Path(config.corpus).name
  if config.corpus == "wordnet":
    where = "WordNet's instances in its glosses"
  top = scored.candidates.shape[1]
  shown = {x.name: x for x in lines if not x.name.endswith(" mean")}
  means = {name: line.means["map"] for name, line in shown.items()}
  gaps = {
    line.name: line.differences["map"]
    for line in lines[1:]
    if line.name in shown and "map" in line.differences
  }
  pairs = {
    (a, b): gap["map"]
    for a, b in findings.asked(list(shown))
    if "map" in (gap := evaluate.compare(shown[b].values, shown[a].values, 0))
  }
  return report.Chapter(
    title="Coreferent mention retrieval",
    summary=(
      f"{len(task.queries):,} queries over {len(task.mentions):,} mentions of "
      f"{where}; the best {top} of two-field BM25 ranked again."
    ),
    rows=[
      row
      for row in reporting.rows(lines)
      if row["metric"] in ("map", "infAP")
      and not str(row["name"]).endswith(" mean")
    ],
    tables=[
      reporting.table(lines, top),
      analysis.pairs(lines),
      *analysis.tables(task, lines),
    ],
    charts=findings.charts(gaps),
    notes=[_note(config)],
    question=findings.QUESTION,
    answer=findings.answer(means, gaps),
    table=findings.table(means, gaps),
    claims=findings.claims(means, gaps, pairs),
  )


def _note(config: Config) -> str:
  """Origin and limits of the figures."""
  asked = "--qrels says which mentions are queries and what is relevant"
  if config.qrels is None:
    asked = (
      "A query is one mention of an entity; its other mentions are relevant, "
      "and those of other entities with the same name stay in the collection"
    )
  judged = (
    f"only {config.judged_share:.0%} of what BM25 found as judged; relevant "
    "mentions that BM25 missed do not count, so infAP is above AP"
  )
  if config.pool is not None:
    judged = "the judgments of --pool alone"
  return (
    f"{asked}. Weights of ensembles are chosen on every second query, figures "
    f"are of the other half. infAP takes {judged}. The thesis' figures are of "
    "TAC 2014 and not comparable: BM25 54.5, its best ensemble 55.8 infAP; "
    "alone LSA 40.1, MVLSA 37.1, multilabel VAE 41.0, multinomial VAE 50.9. "
    "python -m experiments.cmr --preset=cmr_thesis "
    "runs all of its settings on a collection of news."
  )
