"""Chapter 6, first half, in the main job: mentions of WordNet's instances.

The collection is licensed that the thesis used (TAC 2014), so the same task
is made of WordNet's glosses, which name one another's instances.
"""

import dataclasses
import pathlib

from experiments import report, runlib
from experiments.cmr import analysis, comparison, reporting
from experiments.cmr import task as task_lib

_FULL = task_lib.Options()
_QUICK = dataclasses.replace(
  _FULL,
  queries=600,
  systems=(
    "lsa:k=60",
    "mvlsa:k=60:m=60",
    "vae:decoder=multilabel:epochs=1:latent=40:hidden=80",
    "vae:epochs=0:latent=40:hidden=80",
    "vae:epochs=1:latent=40:hidden=80",
  ),
  min_mentions=5,
)
_NOTE = (
  "A query is one mention of an entity; its other mentions are relevant, and "
  "those of other entities with the same name stay in the collection. Weights "
  "of ensembles are chosen on every second query, figures are of the other "
  "half; infAP sees three quarters of what was found. The thesis' are of "
  "TAC 2014 and not comparable: BM25 54.5, its best ensemble 55.8 infAP; "
  "alone LSA 40.1, MVLSA 37.1, multilabel VAE 41.0, multinomial VAE 50.9. "
  "python -m experiments.cmr --flagfile=experiments/presets/cmr_thesis.flags "
  "runs all of its settings on a collection of news."
)


def chapter(preset: str, workdir: pathlib.Path) -> report.Chapter:
  """Retrieves mentions of WordNet's instances with all systems.

  Args:
    preset: "quick" or "full".
    workdir: where runs and judgements go.
  """
  chosen = _QUICK if preset == "quick" else _FULL
  config = dataclasses.asdict(chosen)
  with runlib.Run("cmr", directory=workdir, config=config) as run:
    task, scored, lines = comparison.compare(run, chosen)
  found = reporting.table(lines, scored.candidates.shape[1])
  return report.Chapter(
    title="Coreferent mention retrieval",
    summary=(
      f"{len(task.queries):,} queries over {len(task.mentions):,} mentions of "
      "WordNet's instances in its glosses; the best "
      f"{scored.candidates.shape[1]} of two-field BM25 ranked again."
    ),
    rows=[
      row
      for row in reporting.rows(lines)
      if row["metric"] in ("map", "infAP")
      and not str(row["name"]).endswith(" mean")
    ],
    tables=[found, analysis.pairs(lines), *analysis.tables(task, lines)],
    notes=[_NOTE],
  )
