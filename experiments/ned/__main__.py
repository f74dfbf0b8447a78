"""Entity disambiguation by prior, context and coherence (thesis 6.3).

python -m experiments.ned
python -m experiments.ned --data=DIRECTORY
python -m experiments.ned --preset=ned_thesis
python -m experiments.ned --preset=ned_aida --workdir=DIR
python -m experiments.ned --mode=link --model=DIR/linker FILE...
python -m experiments.ned --mode=serve --model=DIR/linker --port=8001

The default corpus is the small Wikipedia dump that comes with gensim, split
into training, validation and test; it takes about a minute on two cores.
--data names a directory with elevant/ and entity-fishing/ documents: prior,
word vectors and entity vectors then come from its training documents, and
AIDA, MSNBC, AQUAINT and ACE04 are the tests. The thesis had a whole dump of
Wikipedia and its p(e|m); --dump and --prior read them, streamed.

--mode=ladder reads AIDA with candidates and their links (--candidates) and
compares systems in one table, from most in-links to a ranker with graph
features; it takes about ten minutes on two cores. --mode=link finds the
names in plain text and links them by the ladder's model, to its 30,000
entities or to your own (--kb, --add_entities); --format=json gives reasons,
--format=html shows the text with its links colored by certainty.
--mode=serve serves a page that links the text typed into it.

The work directory gets `results.json`, `report.html` and the answers of each
system; the same command resumes a stopped run.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.ned import (
  chapter,
  data,
  ladder,
  ladder_fields,
  ladder_report,
  link,
  link_model,
  link_page,
  link_server,
  open_linking,
  reporting,
  systems,
)
from experiments.ned.config import Config
from experiments.run import config as config_lib
from experiments.run import (
  progress,
  report,
  report_page,
  runlib,
  tables,
  vmapped_runs,
  web_server,
)
from repr_jax.errors import InputError

# Flags in which runs of one process may differ; see `run_vmapped`.
VMAP_OVER = (
  "seed", "margin", "learning_rate", "lower_learning_rate", "threshold",
  "patience",
)  # fmt: skip

config_lib.define(Config, skip=("seed",))


def main(argv: list[str]) -> None:
  """Trains and tests the systems that the flags name."""
  config = config_lib.from_flags(Config)
  if config.mode != "train":
    runlib.refuse_log(f"with --mode={config.mode}")
  if config.mode == "link":
    _link(config, argv[1:])
    return
  if argv[1:]:
    raise InputError(
      f"unexpected argument {argv[1]!r}: flags are --name=value; FILE... is "
      "read with --mode=link"
    )
  if config.mode == "serve":
    _serve(config)
    return
  if config.mode == "ladder":
    _ladder(config)
    return
  with runlib.Run("ned", volatile=("data",)) as run:
    made, results = _execute(run, config)
  _print(made.tables)
  print("\n".join(data.describe(results.corpus)))


def _print(made: Sequence[report.Table]) -> None:
  for table in made:
    print(f"{table.title}\n{tables.to_text(table.header, table.rows)}\n")


def _execute(
  run: runlib.Run, config: Config, corpus: data.Corpus | None = None
) -> tuple[report.Chapter, systems.Results]:
  """Trains and tests the systems of one run."""
  results = systems.run_all(run, config, corpus)
  rows = reporting.rows(run, results, config)
  made = chapter.make(rows, results, config)
  report_page.write_report({"ned": made}, run.directory)
  return made, results


def _member(values: Mapping[str, Any]) -> Config:
  """The configuration of a run of a group."""
  config = config_lib.from_mapping(Config, values)
  if config.mode == "link":
    raise InputError("--mode=link cannot run in a group of runs")
  return config


def run_vmapped(members: Sequence[vmapped_runs.Member]) -> list[str | None]:
  """Executes runs that differ in the flags of VMAP_OVER in one process.

  Documents are read once, and the compiled programs serve all runs. The
  shapes of batches differ, so runs are trained one after another.
  """
  corpus: data.Corpus | None = None
  with vmapped_runs.Group("ned", members, ("data", "candidates")) as group:
    for i, config in group.prepare(_member).items():
      if config.mode == "ladder":
        group.attempt(i, _climb, group.runs[i], config)
      else:
        corpus = corpus or group.attempt(i, systems.open_corpus, config)
        group.attempt(i, _execute, group.runs[i], config, corpus)
      group.finish(i)
    return group.failures


def _load(config: Config) -> link_model.LinkModel:
  assert config.model is not None
  model = link_model.load(config.model, config.kb, config.add_entities)
  if config.nil is not None:
    model = model._replace(threshold=config.nil)
  return model


def _link(config: Config, paths: list[str]) -> None:
  """Links texts and prints a line for each mention, or a page."""
  model = _load(config)
  given = link.documents(model, config, paths)
  records = list(link.records(model, link_model.link(model, given)))
  if config.format == "html":
    content = link_page.body(given, records)
    print(link_page.page(content, "Links", link_page.STYLE), end="")
    return
  for line in link.lines(given, records, config.format):
    print(line)


def _serve(config: Config) -> None:
  """Serves a page until SIGINT or SIGTERM."""
  web_server.require("--mode=serve")
  # The port is taken before the model is loaded.
  with web_server.bind(config.host, config.port) as listening:
    link_server.run(
      _load(config), listening, lambda text: progress.say(f"ned: {text}")
    )


def _ladder(config: Config) -> None:
  """Trains and tests all systems on given candidates."""
  with runlib.Run("ned", volatile=("candidates",)) as run:
    made = _climb(run, config)
  _print(made)
  print(ladder_report.NOTE)


def _climb(run: runlib.Run, config: Config) -> list[report.Table]:
  """The ladder of one run."""
  ladder_fields.check(config)
  given = open_linking.read(config)
  answered, source = ladder.run_ladder(config)
  if config.fields:
    answered = ladder_fields.add_fields(run, config, answered)
  ladder_report.rows(run, answered)
  made = ladder_report.tables(answered, config.seed)
  made += open_linking.evaluate(run, given, answered, source)
  run.plot("reliability", ladder_report.plot(answered))
  return made


if __name__ == "__main__":
  runlib.launch(main, logs=True, arguments=True)
