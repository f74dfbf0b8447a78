"""Which entity a mention means: priors, context, coherence (thesis 6.3).

python -m experiments.ned
python -m experiments.ned --data=DIRECTORY
python -m experiments.ned --preset=ned_thesis

The default corpus is the small Wikipedia dump that comes with gensim, parted
into training, validation and test; it takes about a minute on two cores.
--data names a directory with elevant/ and entity-fishing/ documents: prior,
word vectors and entity vectors then come from its training documents, and
AIDA, MSNBC, AQUAINT and ACE04 are the tests. The thesis had a whole dump of
Wikipedia and its p(e|m); --dump and --prior read them, streamed.

The work directory gets `results.json`, `report.html` and the answers of each
system; a run that was stopped goes on where it was.
"""

from experiments.ned import chapter, data, reporting, systems
from experiments.ned.config import Config
from experiments.run import config as config_lib
from experiments.run import report_page, runlib, tables

config_lib.define(Config, skip=("seed",))


def main(argv: list[str]) -> None:
  """Trains and tests the systems that the flags name."""
  del argv
  config = config_lib.from_flags(Config)
  with runlib.Run("ned", volatile=("data",)) as run:
    results = systems.run_all(run, config)
    rows = reporting.rows(run, results, config)
    made = chapter.make(rows, results, config)
    report_page.write_report({"ned": made}, run.directory)
  for table in made.tables:
    print(f"{table.title}\n{tables.to_text(table.header, table.rows)}\n")
  print("\n".join(data.describe(results.corpus)))


if __name__ == "__main__":
  runlib.launch(main)
