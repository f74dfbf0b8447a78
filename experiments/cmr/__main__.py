"""Retrieves mentions of the same entity as a given mention (thesis 6.1).

python -m experiments.cmr                              (WordNet, a few minutes)
python -m experiments.cmr --corpus=wikipedia           (gensim's small dump)
python -m experiments.cmr --preset=cmr_thesis

A query is one mention of an entity that has at least two; the others are
relevant, and mentions of other entities with the same name stay in the
collection. Two-field BM25 finds 100 mentions, which representations rank
again, alone and in an ensemble whose weight is chosen on every second query;
figures are of the other half. --workdir gets mentions.tsv.gz, qrels.txt,
pool.txt (for infAP), a run file of each system in the format of trec_eval,
queries.tsv.gz with each query's figures, and the tables as report.html.
The thesis has 54.5 infAP for BM25 and 55.8 for its best ensemble on TAC 2014,
which is licensed: figures of other collections are not comparable.
"""

import functools
from collections.abc import Sequence

from experiments.cmr import chapter, comparison
from experiments.cmr.collection import Collection
from experiments.cmr.config import Config
from experiments.run import config as config_lib
from experiments.run import (
  progress,
  report,
  report_page,
  runlib,
  tables,
  vmapped_runs,
)

# Flags in which runs of one program may differ; see `run_vmapped`.
VMAP_OVER = (
  "seed", "queries", "mention_weight", "document_weight", "top",
  "judged_share",
)  # fmt: skip

config_lib.define(Config, skip=("seed",))


def _execute(
  run: runlib.Run, config: Config, collection: Collection | None = None
) -> report.Chapter:
  """One run; its tables."""
  compared = comparison.compare(run, config, collection)
  made = chapter.make(*compared, config)
  report_page.write_report({"cmr": made}, run.directory)
  return made


def run_vmapped(members: Sequence[vmapped_runs.Member]) -> list[str | None]:
  """Executes runs that differ in the flags of VMAP_OVER in one program."""
  with vmapped_runs.Group("cmr", members) as group:
    configs = group.prepare(functools.partial(config_lib.from_mapping, Config))
    if configs:
      seeds = [config.seed for config in configs.values()]
      collection = Collection(next(iter(configs.values())), seeds)
      for i, config in configs.items():
        group.attempt(i, _execute, group.runs[i], config, collection)
        group.finish(i)
    return group.failures


def main(argv: list[str]) -> None:
  """Runs the comparison that the flags name."""
  del argv
  config = config_lib.from_flags(Config)
  with runlib.Run("cmr") as run:
    if run.finished:
      progress.say(f"cmr: finished before; see {run.directory}/results.json")
      return
    made = _execute(run, config)
  for table in made.tables:
    print(f"\n{table.title}\n{tables.to_text(table.header, table.rows)}")


if __name__ == "__main__":
  runlib.launch(main)
