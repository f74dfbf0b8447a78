"""Multiview LSA: word vectors from many views of words (thesis chapter 3).

python -m experiments.mvlsa --text=news.txt --workdir=runs/news
python -m experiments.mvlsa --wordnet=synset,hypernym,gloss --workdir=runs/wn
python -m experiments.mvlsa --preset=mvlsa_vectors --vectors=glove.txt

Views come from text, bitext, dependency trees, WordNet, tables of counts and
other systems' vectors; they are counted once into --store and reused by every
run that names it. The work directory gets vectors.npz and vectors.txt
(word2vec's format), results.json with the thesis' figures, nearest neighbors,
the explained share of each view, and plots. --study runs a whole table of the
chapter over one pass of counting. --study=sets lists the test sets with their
MRDS. --mode=query asks a finished run. It ignores case, and replaces an unknown
word by the one with the nearest spelling:

python -m experiments.mvlsa --mode=query --workdir=runs/wn
    --ask="dog,dog cat,man king woman" --map=words.svg
"""

import json
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.mvlsa import (
  data,
  evaluate,
  paired_table,
  plots,
  price,
  query,
  scale,
  set_table,
  studies,
  train,
)
from experiments.mvlsa.config import Config
from experiments.run import config as configs
from experiments.run import progress, runlib, tables, vmapped_runs
from repr_jax import evaluation, multiview
from repr_jax.data.io import files
from repr_jax.errors import InputError

# Flags in which runs that share words and views may differ; see `run_vmapped`.
VMAP_OVER = (
  "seed", "ridge", "relative_ridge", "group_weights", "view_weights",
  "agreement_power", "balance", "eigenvalue_power", "k",
)  # fmt: skip
_VOLATILE = ("store", "mesh")
_LEGEND = (
  "In brackets: the thesis. Star or bold: the best system, and those less than "
  "the MRDS below it. \N{DAGGER}: a gain of at least the MRDS."
)

configs.define(Config)


def record(
  run: runlib.Run, words: Sequence[str], study: evaluate.Study, config: Config
) -> None:
  """Writes vectors, shares of views, neighbors and plots of a study."""
  assert study.vectors is not None
  run.vectors(words, study.vectors)
  near = evaluate.neighbors(words, study.vectors, config.neighbors)
  with files.atomic_write(run.directory / "views.json") as out:
    json.dump({"shares": study.shares, "neighbors": near}, out, indent=1)
  for word, names in near.items():
    print(f"{word}: {', '.join(names)}")
  for name, figure in plots.figures(study).items():
    run.plot(name, figure)


def tabulate(
  run: runlib.Run, study: evaluate.Study, problem: train.Problem
) -> None:
  """Writes and prints the figures of a study."""
  cells = studies.cells(study, problem)
  for cell in cells:
    if cell["value"] is not None:
      name = f"{cell['system']}, {cell['set']}"
      run.row(name, "x 100", cell["value"], thesis=cell["thesis"])
  header, rows, marked = evaluation.grid(cells)
  if len(study.systems) < 2:
    marked = set()
  columns = [tables.Column(name, align="right") for name in header]
  columns[0] = tables.Column(header[0])
  with files.atomic_write(run.directory / "table.md") as out:
    out.write(tables.to_markdown(columns, rows, marked=marked) + "\n")
    out.writelines(f"\n{note}\n" for note in [*study.notes, _LEGEND])
  print(tables.to_text(columns, rows, marked=marked))
  print(_LEGEND)
  if study.tests:
    paired_table.run(run, study)


def _sets(config: Config) -> list[evaluate.TestSet]:
  if not config.evaluate or config.study == "scale":
    return []
  return evaluate.load_sets(
    config.testsets, config.similarity, config.analogies
  )


def _execute(
  run: runlib.Run,
  config: Config,
  sets: Sequence[evaluate.TestSet],
  shared: data.Data | None = None,
  pool: dict[tuple, multiview.ViewFactor] | None = None,
) -> data.Data | None:
  """One run; its words and views, which other runs can share."""
  if config.study == "scale":
    scale.run(run, config)
    return None
  if config.study == "sets":
    set_table.run(run, sets)
    return None
  began, steps = time.monotonic(), iter(range(1 << 30))

  def report(text: str) -> None:
    progress.say(f"mvlsa: {time.monotonic() - began:.0f} s, {text}")
    run.log(next(steps), did=text)

  problem = train.prepare(config, sets, report, shared, pool)
  if config.study == "price":
    price.run(run, problem)
    return problem.data
  if config.study == "fit":
    study = studies.fit(problem)
  else:
    study = studies.run(config.study, problem, config.values)
  record(run, problem.data.words.words, study, config)
  if config.study == "fit" and problem.sets:
    assert study.vectors is not None
    scored = {"all views": problem.score(study.vectors)}
    study = study._replace(systems=scored)
  if study.systems:
    tabulate(run, study, problem)
  for note in study.notes:
    print(note)
  return problem.data


def _member(values: Mapping[str, Any]) -> Config:
  """The configuration of a run of a group."""
  config = configs.from_mapping(Config, values)
  if config.mode == "query":
    raise InputError("--mode=query cannot run in a group of runs")
  return config


def run_vmapped(members: Sequence[vmapped_runs.Member]) -> list[str | None]:
  """Executes runs that differ in the flags of VMAP_OVER in one process.

  Words and views are read once. The factors of a view are computed once for
  all runs that ask for the same, and the compiled programs serve all runs.
  """
  shared: data.Data | None = None
  pool: dict[tuple, multiview.ViewFactor] = {}
  with vmapped_runs.Group("mvlsa", members, _VOLATILE) as group:
    for i, config in group.prepare(_member).items():
      sets = group.attempt(i, _sets, config)
      made = group.attempt(
        i, _execute, group.runs[i], config, sets, shared, pool
      )
      shared = shared or made
      group.finish(i)
    return group.failures


def main(argv: list[str]) -> None:
  """Runs what the flags ask for."""
  del argv
  config = configs.from_flags(Config, seed=runlib.SEED.value)
  if config.mode == "query":
    folder = pathlib.Path(runlib.WORKDIR.value or "runs/mvlsa")
    query.run(folder, config.ask, config.results, config.map)
    return
  sets = _sets(config)
  with runlib.Run("mvlsa", volatile=_VOLATILE) as run:
    if run.finished:
      progress.say(f"mvlsa: finished before; see {run.directory}")
      return
    _execute(run, config, sets)


if __name__ == "__main__":
  runlib.launch(main)
