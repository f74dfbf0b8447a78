"""Set expansion: completes a set from a few of its entities, with reasons.

python -m experiments.nvse --mode=query --query="Mozart, Haydn, Schubert"
python -m experiments.nvse --mode=evaluate
python -m experiments.nvse --preset=nvse_tinkerbell
python -m experiments.nvse --mode=serve --corpus=FOLDER_OF_TXT_FILES

The default corpus, WordNet's 7,730 instances with their glosses, trains in
about a minute on two cores. Every mode trains first if --workdir has no model.
Without --query, --mode=query opens a prompt. --mode=evaluate compares all
systems in one table with confidence intervals, on gold sets and on judged
queries (--judged); --chances also estimates the size of a set. --mode=judge
writes a page on which people judge the systems' lists, and reads their answers
(--answers). --mode=export writes one directory for --model=DIR.
`experiments.explorer` serves a trained model as a page with a JSON API.
"""

import dataclasses
import os
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import flags

from experiments.nvse import (
  data,
  evaluate,
  judging,
  query,
  train,
  vmapped_train,
)
from experiments.nvse.config import TRAINING, VOLATILE, Config
from experiments.run import config as config_lib
from experiments.run import (
  expander,
  progress,
  runlib,
  vmapped_runs,
  web_server,
)
from repr_jax.data.entities.features import FeatureTable
from repr_jax.data.entities.judged import read_judged_queries
from repr_jax.data.entities.query_text import parse_members
from repr_jax.errors import InputError
from repr_jax.setexp import SCORES, from_scipy
from repr_jax.setexp.baselines import word2vecf

# Flags in which runs of one program may differ; see `run_vmapped`.
VMAP_OVER = (
  "seed", "beta", "learning_rate", "label_smoothing", "prior_variance",
  "dropout", "likelihood", "warmup", "decay", "epochs", "patience",
  "word2vecf_learning_rate", "word2vecf_power",
)  # fmt: skip
_JUDGE = "judge"  # folder of the page for judges, below --workdir

config_lib.define(Config)


def _say(text: str) -> None:
  progress.say(f"nvse: {text}")


def _load(config: Config) -> expander.Expander:
  """An exported model; given flags override its own."""
  assert config.model is not None
  opened = expander.load(config.model)
  opened.word2vecf_epochs = config.word2vecf_epochs
  opened.word2vecf_contexts = config.word2vecf_contexts
  opened.relative = config.relative
  opened.lsa_rank, opened.lsa_power = config.lsa_rank, config.lsa_power
  opened.lsa_hubness = config.lsa_hubness
  opened.gcca_power, opened.gcca_ridge = config.gcca_power, config.gcca_ridge
  opened.word2vecf_config = config.word2vecf_config()
  opened.setexpan_config = config.setexpan_config()
  if config.setexpan_contexts == "features":
    opened.contexts = None
  if flags.FLAGS["ranking"].present:
    opened.rank_by(config.ranking)
  if flags.FLAGS["fusion"].present:
    opened.fusion = config.fusion
  return opened


def _trained(
  run: runlib.Run, config: Config, table: FeatureTable
) -> expander.Expander:
  loaded = train.trained_model(run, config, table)
  model = from_scipy.model_from_scipy(*loaded, table.counts)
  chances = expander.read_chances(run.directory, config.ranking_config())
  return train.expander_of(config, table, model, chances)


def _serve(config: Config, directory: pathlib.Path) -> None:
  """Replaces this program by the explorer on a model."""
  command = [sys.executable, "-m", "experiments.explorer"]
  command.append(f"--model={config.model or directory}")
  command += [f"--host={config.host}", f"--port={config.port}"]
  _say(f"serving; the page alone: {' '.join(['python', *command[1:]])}")
  sys.stderr.flush()
  sys.stdout.flush()
  os.execv(sys.executable, command)


class _Questions:
  """The queries of a program; names are checked before a model is trained."""

  def __init__(self, config: Config, table: FeatureTable):
    expander.check_system(config.system)
    self._config = config
    self._system = config.system
    self._table = table
    self._new: dict[str, Any] = {}
    for path in config.new_entity:
      self._new |= query.read_new(path, table)
    self._asked = config.query is not None or (
      bool(self._new) and not sys.stdin.isatty()
    )
    if self._asked:
      members = query.with_new(self._members(config.query or ""), self._new)
      query.build(table, members, self._new)

  def _members(self, text: str) -> list[query.Member]:
    if not text.strip() and self._new:
      return []
    return parse_members(self._table, text, self._config.max_members)

  def answer(self, opened: expander.Expander) -> None:
    """Answers --query, or asks at a prompt; or prints --concepts."""
    if self._config.concepts:
      decoder = np.asarray(opened.model.params.decoder)
      count = self._config.features
      print(query.concepts_text(decoder, self._table.features, count))
      return
    if self._asked:
      print(self._respond(opened, self._config.query or ""))
      return
    query.prompt(
      self._table.names,
      lambda text: self._respond(opened, text),
      lambda line: self._set(opened, line),
    )

  def _respond(self, opened: expander.Expander, text: str) -> str:
    config = self._config
    names: list[str] = []
    if self._system.startswith("nvse") and opened.ranking.score != "features":
      decoder = np.asarray(opened.model.params.decoder)
      names = query.dimension_names(decoder, self._table.features)
    answered = query.answer(
      self._table,
      opened.system(self._system),
      self._members(text),
      new=self._new,
      results=config.results,
      reasons=config.features,
      sentences=config.sentences,
      rationale=config.rationale,
      dimensions=names,
      chances=opened.chances.get(self._system),
    )
    return query.to_json(answered) if config.json else query.to_text(answered)

  def _set(self, opened: expander.Expander, line: str) -> str:
    name, _, value = line[1:].partition(" ")
    value = value.strip()
    if name == "system":
      opened.system(value)
      self._system = value
      return f"asking {value}"
    if name == "ranking":
      opened.rank_by(value)
      return f"ranking by {value}"
    return (
      f":system NAME ({', '.join(expander.SYSTEMS)}), :ranking NAME "
      f"({', '.join(SCORES)}), :quit"
    )


def main(argv: list[str]) -> None:
  """Does what the flags ask for."""
  del argv
  config = config_lib.from_flags(Config, seed=runlib.SEED.value)
  if config.model is not None:
    runlib.refuse_log("with --model")
  directory = pathlib.Path(runlib.WORKDIR.value or "runs/nvse")
  if not config.store:
    config = dataclasses.replace(config, store=str(directory / "features"))
  if config.mode == "serve":
    web_server.require("the explorer", "pydantic")
    web_server.bind(config.host, config.port).close()
  loaded = None if config.model is None else _load(config)
  table = data.open_table(config, _say) if loaded is None else loaded.table
  # Everything that a mode needs is checked before a model is trained.
  questions = _Questions(config, table) if config.mode == "query" else None
  prepared = None
  if config.mode in ("evaluate", "judge"):
    prepared = evaluate.prepare(config, table)
  if config.mode == "judge" and config.answers:
    judged = judging.read_answers(directory / _JUDGE, config.answers, table)
    print(evaluate.places_table(read_judged_queries(judged)))
    print(judged)
    return

  def use(run: runlib.Run, opened: expander.Expander) -> None:
    _use(run, config, opened, prepared)

  if loaded is None:
    opened = _with_run(directory, config, table, use)
  else:
    opened = loaded
    if config.mode not in ("query", "serve"):
      own = (*VOLATILE, *TRAINING)
      with runlib.Run("nvse", directory=directory, volatile=own) as run:
        use(run, opened)
  if questions is not None:
    questions.answer(opened)
  if config.mode == "serve":
    _serve(config, directory)


def _use(
  run: runlib.Run,
  config: Config,
  opened: expander.Expander,
  prepared: evaluate.Prepared | None,
) -> None:
  """Evaluates or exports a model, or writes the judges' page."""
  if prepared is not None and config.mode == "judge":
    tasks = evaluate.sample(prepared.gold, config.judge_queries, config.seed)
    asked = [opened.system(x) for x in ("nvse", *config.systems)]
    folder = run.directory / _JUDGE
    page = judging.write(folder, opened.table, asked, tasks, config.seed, _say)
    print(page)
  elif prepared is not None:
    evaluate.evaluate(run, opened, prepared, _say)
  if config.mode == "export":
    target = config.export or str(run.directory / "export")
    opened.train_vectors()
    expander.save(target, opened)
    print(target)


def run_vmapped(members: Sequence[vmapped_runs.Member]) -> list[str | None]:
  """Trains runs that differ in the flags of VMAP_OVER in one program."""
  tables: dict[pathlib.Path, FeatureTable] = {}

  def prepare(values: Mapping[str, Any]) -> _Member:
    config = config_lib.from_mapping(Config, values)
    if config.mode in ("query", "serve") or config.model is not None:
      raise InputError("a group of runs trains, evaluates or exports models")
    folder = data.table_folder(config)
    if folder not in tables:
      tables[folder] = data.open_table(config, _say)
    table, prepared = tables[folder], None
    if config.mode == "evaluate":
      prepared = evaluate.prepare(config, table)
    return _Member(config, table, prepared)

  with vmapped_runs.Group("nvse", members, VOLATILE, ("epochs",)) as group:
    ready = group.prepare(prepare)
    together = {i: x[:2] for i, x in ready.items() if x.config.mesh is None}
    vectors = vmapped_train.vectors({i: x[:2] for i, x in ready.items()})
    for i, trained in vmapped_train.train(group, together):
      own = vectors.get(i)
      group.attempt(i, _finish_member, group.runs[i], ready[i], trained, own)
      group.finish(i)
    for i, (config, table, _) in ready.items():
      if i not in together:  # one run has all devices
        made = group.attempt(i, train.train, group.runs[i], config, table)
        own = vectors.get(i)
        group.attempt(i, _finish_member, group.runs[i], ready[i], made, own)
        group.finish(i)
    return group.failures


class _Member(NamedTuple):
  """A run of a group before it is trained."""

  config: Config
  table: FeatureTable
  prepared: evaluate.Prepared | None


def _finish_member(
  run: runlib.Run,
  member: _Member,
  trained: train.Trained,
  vectors: word2vecf.Model | None,
) -> None:
  """Writes what a run alone writes after its training."""
  config, table, prepared = member
  train.report(run, config, trained)
  if config.mode != "train":
    model = from_scipy.model_from_scipy(*trained[:3], table.counts)
    opened = train.expander_of(config, table, model)
    opened.vectors = vectors
    _use(run, config, opened, prepared)


def _with_run(
  directory: pathlib.Path,
  config: Config,
  table: FeatureTable,
  use: Callable[[runlib.Run, expander.Expander], None],
) -> expander.Expander:
  """Trains where there is no model yet, uses it, and closes the run."""
  with train.open_run(directory, config, from_flags=True) as run:
    if run.finished and config.mode == "train":
      _say(f"finished before; see {directory}")
    opened = _trained(run, config, table)
    use(run, opened)
  return opened


if __name__ == "__main__":
  runlib.launch(main, logs=True)
