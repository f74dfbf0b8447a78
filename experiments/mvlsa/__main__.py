"""Multiview LSA: word vectors from many views of words (thesis chapter 3).

python -m experiments.mvlsa --wordnet=synset,hypernym,gloss --workdir=runs/wn
python -m experiments.mvlsa --preset=mvlsa_quality

Views come from text, bitext, dependency trees, WordNet, tables of counts and
other systems' vectors; they are counted once into --store and reused by every
run that names it. The work directory gets vectors.npz and vectors.txt
(word2vec's format), results.json with the thesis' figures, nearest neighbors,
the explained share of each view, and plots. --study runs a whole table of the
chapter over one pass of counting. --study=sets lists the test sets with their
MRDS. --study=query asks a finished run:

python -m experiments.mvlsa --study=query --workdir=runs/wn \
  --ask="dog,dog cat,man king woman" --map=words.svg
"""

import json
import pathlib
import time
from collections.abc import Sequence

from experiments.mvlsa import (
  evaluate,
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
from experiments.run import progress, runlib, tables
from repr_jax import evaluation
from repr_jax.data.io import files

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
  columns = [tables.Column(name, align="right") for name in header]
  columns[0] = tables.Column(header[0])
  with files.atomic_write(run.directory / "table.md") as out:
    out.write(tables.to_markdown(columns, rows, marked=marked) + "\n")
    out.writelines(f"\n{note}\n" for note in study.notes)
  print(tables.to_text(columns, rows, marked=marked))
  if study.tests:
    _tabulate_tests(run, study)


def _tabulate_tests(run: runlib.Run, study: evaluate.Study) -> None:
  """Writes and prints gain, r_s and p of each pair of systems by set."""
  by_set: dict[str, dict[str, str]] = {}
  for test in study.tests:
    label = f"{test.system} over {test.over}"
    run.row(f"{label}, {test.name}", "p (Williams)", test.p_value)
    shown = f"{test.gain:+.1f}, r {test.correlation:.2f}, p {test.p_value:.2g}"
    by_set.setdefault(label, {})[test.name] = shown
  names = list(dict.fromkeys(test.name for test in study.tests))
  columns = [tables.Column("Gain, r_s, p (Williams)")]
  columns += [tables.Column(name, align="right") for name in names]
  rows = [
    [label, *(cells.get(name, "-") for name in names)]
    for label, cells in by_set.items()
  ]
  with files.atomic_write(run.directory / "tests.md") as out:
    out.write(tables.to_markdown(columns, rows) + "\n")
  print(tables.to_text(columns, rows))


def main(argv: list[str]) -> None:
  """Runs what the flags ask for."""
  del argv
  config = configs.from_flags(Config, seed=runlib.SEED.value)
  if config.study == "query":
    folder = pathlib.Path(runlib.WORKDIR.value or "runs/mvlsa")
    query.run(folder, config.ask, config.map)
    return
  sets: list[evaluate.TestSet] = []
  if config.evaluate and config.study != "scale":
    sets = evaluate.load_sets(
      config.testsets, config.similarity, config.analogies
    )
  with runlib.Run("mvlsa", volatile=("store", "mesh")) as run:
    if run.finished:
      progress.say(f"mvlsa: finished before; see {run.directory}")
      return
    if config.study == "scale":
      scale.run(run, config)
      return
    if config.study == "sets":
      set_table.run(run, sets)
      return
    began, steps = time.monotonic(), iter(range(1 << 30))

    def report(text: str) -> None:
      progress.say(f"mvlsa: {time.monotonic() - began:.0f} s, {text}")
      run.log(next(steps), did=text)

    problem = train.prepare(config, sets, report)
    if config.study == "price":
      price.run(run, problem)
      return
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


if __name__ == "__main__":
  runlib.launch(main)
