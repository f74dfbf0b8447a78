"""Knowledge bases whose vectors obey logical rules (thesis 5.4).

python -m experiments.elkb --task=puzzle
    the deduction puzzle, 10 runs in one program: seconds; MRR .49 for A
python -m experiments.elkb
    model B with rules on WordNet's own 18 relations: minutes on two cores
python -m experiments.elkb --preset=elkb_complex
    --train=DIR/train.txt.gz --valid=DIR/valid.txt --test=DIR/test.txt
    --rules=DIR/rules.tsv
    ComplEx with exact rules on WN18
python -m experiments.elkb ... --ask="hypernym(?, flowering_shrub)"
    the same run (finished runs are not trained again), and then the answers
python -m experiments.elkb ... --combine_with=runs/elkb_t
    also picks the better of this system and that one for each query; a run
    that has ended is not trained again for it
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from experiments import thesis
from experiments.elkb import (
  combination,
  data,
  evaluate,
  puzzle,
  query,
  train,
  vmapped_train,
)
from experiments.elkb import config as elkb_config
from experiments.elkb.config import Config
from experiments.run import (
  config,
  processes,
  progress,
  runlib,
  tables,
  vmapped_runs,
  workdir,
)
from repr_jax.data.io import files
from repr_jax.kb import scores
from repr_jax.ops import mesh as meshes

# Flags in which runs of one program may differ; see `run_vmapped`.
VMAP_OVER = ("seed", "learning_rate", "penalty", "scale")

_VOLATILE = ("ask", "top", "json", "block", "mesh", "combine_with")
_EXTENDABLE = ("epochs", "patience")

config.define(Config)


def _print_answers(
  kb: data.KnowledgeBase, systems: Sequence[evaluate.Trained], asked: Config
) -> None:
  """Prints the answers of all systems and the rules, on standard output."""
  parsed = query.parse_query(kb, asked.ask or "")
  answers = [evaluate.answers(kb, x, parsed, asked.top) for x in systems]
  name = kb.relations[parsed[0]]
  touching = [str(rule) for rule in kb.rules if name in rule.relations]
  if asked.json:
    record = {
      "query": asked.ask,
      "systems": [
        {
          "system": system.label,
          "answers": [{"entity": x, "score": value} for x, value in best],
        }
        for system, best in zip(systems, answers)
      ],
      "rules": touching,
    }
    print(json.dumps(record, ensure_ascii=False))
    return
  columns: list[str | tables.Column] = ["rank"]
  for system in systems:
    columns += [f"by {system.label}", tables.Column("score", ".4f")]
  rows = [
    [place + 1, *(cell for best in answers for cell in best[place])]
    for place in range(len(answers[0]))
  ]
  print(f"{asked.ask}:")
  print(tables.to_text(columns, rows))
  for rule in touching:
    print(f"rule: {rule}")
  if not touching:
    print("no rule touches this relation")


def _other(
  kb: data.KnowledgeBase, asked: Config, label: str
) -> list[tuple[str, evaluate.Trained]]:
  """The run to combine with and its system, under a label of its own; or []."""
  folder = asked.combine_with
  if not folder:
    return []
  other = evaluate.load_params(folder, kb)
  if other.label == label:
    other = other._replace(label=f"{label} of {folder}")
  return [(folder, other)]


def _combine(
  add: Callable[..., object],
  kb: data.KnowledgeBase,
  asked: Config,
  trained: evaluate.Trained,
  other: evaluate.Trained,
) -> None:
  """Computes the rows of the combination."""
  told = {}
  if kb.name == "wn18":
    ruled = trained.label.endswith("rules")
    told = {name: x for (name, on), x in thesis.WN18.items() if on == ruled}
  combination.combined_rows(
    add, kb, trained, other, asked.block, asked.unseen, told
  )


def _link(
  run: runlib.Run, kb: data.KnowledgeBase, asked: Config
) -> list[evaluate.Trained]:
  """Trains, ranks and writes; the systems."""
  _other(kb, asked, "")  # fails before training
  mesh = meshes.make_mesh(asked.mesh, ("batch",))
  training = train.prepare(kb, asked, mesh)
  params = train.train(run, kb, training)
  return _report(run, kb, training, params)


def _report(
  run: runlib.Run,
  kb: data.KnowledgeBase,
  training: train.Training,
  params: scores.Params,
) -> list[evaluate.Trained]:
  """Ranks and writes what was trained; the systems."""
  asked = training.config
  label = evaluate.label_of(kb, asked)
  trained = evaluate.Trained(asked.model, params, label)
  told = None
  if kb.name == "wn18":
    told = thesis.WN18.get((trained.name, label != trained.name))
  ranks = train.rank_facts(
    kb,
    asked.score_model,
    params,
    kb.splits.test.array,
    asked.block,
    asked.unseen,
    training.mesh,
  )
  name = f"{kb.name} {label}"
  evaluate.link_rows(run.row, kb, name, ranks, told)
  if kb.rules:
    checked = evaluate.violations(kb, training, params)
    run.row(name, "largest violation, sampled", checked.sampled.max())
    run.row(name, "largest violation, trained", checked.real.max())
  others = _other(kb, asked, label)
  for folder, other in others:
    _combine(run.row, kb, asked, trained, other)
    both = combination.name_of(kb, trained, other)
    combination.remember(run.directory, both, folder)
  evaluate.save_params(run.directory / "params.npz", kb, trained)
  run.vectors(kb.shown, params.entities)
  with files.atomic_write(run.directory / "relations.npz", "wb") as out:
    np.savez(out, names=np.array(kb.relations), vectors=params.relations)
  return [trained, *(other for _, other in others)]


def _finished(
  run: runlib.Run, kb: data.KnowledgeBase, asked: Config
) -> list[evaluate.Trained]:
  """The systems of a run that has ended; a new combination joins its rows."""
  trained = evaluate.load_params(str(run.directory), kb)
  others = _other(kb, asked, trained.label)
  for folder, other in others:
    both = combination.name_of(kb, trained, other)
    if combination.is_known(run.directory, both, folder):
      continue
    rows: list[dict[str, Any]] = []
    _combine(combination.collector(rows), kb, asked, trained, other)
    if processes.is_writer():
      combination.add_to_results(run.directory, both, folder, rows)
  return [trained, *(other for _, other in others)]


def _puzzle(run: runlib.Run, asked: Config) -> None:
  puzzle.puzzle_rows(
    run, asked.puzzle_runs, asked.seed, asked.mixing, asked.cap
  )


def run_vmapped(members: Sequence[vmapped_runs.Member]) -> list[str | None]:
  """Executes runs that differ in the flags of VMAP_OVER in one program.

  Args:
    members: the runs; the program's flags are those that they share.

  Returns:
    What went wrong in each run, None where nothing did.
  """
  common = elkb_config.from_flags(runlib.SEED.value)
  each = [elkb_config.from_values(member.flags) for member in members]
  with vmapped_runs.Group("elkb", members, _VOLATILE, _EXTENDABLE) as group:
    if common.task == "puzzle":
      for i in group.active():  # the compiled program serves all of them
        group.attempt(i, _puzzle, group.runs[i], each[i])
        group.finish(i)
      return group.failures
    # Files are the same for all seeds; WordNet's held-out facts are not.
    seeds = [each[0].seed if common.train else x.seed for x in each]
    kbs = {seed: data.load(each[seeds.index(seed)]) for seed in set(seeds)}
    ready: dict[int, vmapped_train.Member] = {}
    for i in group.active():
      kb = kbs[seeds[i]]
      training = group.attempt(i, train.prepare, kb, each[i])
      if training is not None:
        ready[i] = vmapped_train.Member(kb, training)
    trained = vmapped_train.train(group, ready)
    for i, params in trained.items():
      kb, training = ready[i]
      group.attempt(i, _report, group.runs[i], kb, training, params)
      group.finish(i)
    return group.failures


def main(argv: list[str]) -> None:
  """Runs the task that the flags name."""
  del argv
  asked = elkb_config.from_flags(runlib.SEED.value)
  systems: list[evaluate.Trained] = []
  with runlib.Run("elkb", volatile=_VOLATILE, extendable=_EXTENDABLE) as run:
    if asked.task == "puzzle":
      if not run.finished:
        _puzzle(run, asked)
    else:
      kb = data.load(asked)
      if asked.ask:
        query.parse_query(kb, asked.ask)  # a bad one fails before training
      again = run.finished and (run.directory / "params.npz").exists()
      systems = (_finished if again else _link)(run, kb, asked)
  for row in workdir.read_results(run.directory / "results.json")["rows"]:
    beside = f"  (thesis {row['thesis']})" if "thesis" in row else ""
    progress.say(f"{row['name']}: {row['metric']} {row['value']:.4g}{beside}")
  if asked.ask and processes.is_writer():
    _print_answers(kb, systems, asked)


if __name__ == "__main__":
  runlib.launch(main)
