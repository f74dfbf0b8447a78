"""One run: reads the corpus, scores, measures, and writes all files."""

from experiments.cmr import analysis, evaluate, reporting
from experiments.cmr import data as task_lib
from experiments.cmr.collection import Collection
from experiments.cmr.config import Config
from experiments.run import progress, runlib


def compare(
  run: runlib.Run, config: Config, collection: Collection | None = None
) -> tuple[task_lib.Task, evaluate.Scored, list[evaluate.Line]]:
  """Reads the corpus, scores with all systems, measures, writes all files.

  Args:
    run: the run, whose directory gets the files.
    config: the configuration of the run.
    collection: its corpus, if other runs share it.
  """
  collection = collection or Collection(config, [config.seed])

  def say(text: str) -> None:
    progress.say(f"cmr: {text}")

  task = task_lib.load(config, collection.mentions)
  for reason, count in task.excluded.items():
    say(f"{count:,} {reason} are no queries")
  scored = evaluate.score(task, config, run.directory, say, collection)
  missing = len(task.queries) - len(scored.pool)
  if missing:
    say(f"{missing:,} queries have no relevant mention in the judged pool")
  task_lib.write(task, scored.pool, run.directory)
  lines = evaluate.evaluate(task, scored, run.directory, config.seed)
  analysis.write_queries(run.directory / "queries.tsv.gz", task, lines)
  counts = reporting.count_rows(task, scored, lines)
  for row in (*reporting.rows(lines), *counts):
    run.row(**row)  # type: ignore[arg-type]
  return task, scored, lines
