"""Knowledge bases whose vectors obey logical rules (thesis 5.4).

python -m experiments.elkb --task=puzzle
    the deduction puzzle, 10 runs in one program: seconds; MRR .49 for A
python -m experiments.elkb
    model B with rules on WordNet's own 18 relations: minutes on two cores
python -m experiments.elkb --preset=elkb_complex
    --train=DIR/train.txt.gz --valid=DIR/valid.txt --test=DIR/test.txt
    --rules=DIR/rules.tsv
    ComplEx with exact rules on WN18
python -m experiments.elkb --mode=mine --train=DIR/train.txt.gz
    rules of all kinds with support, confidence and PCA confidence: rules.tsv
python -m experiments.elkb ... --ask="hypernym(?, flowering_shrub)"
    the same run (finished runs are not trained again), and then the answers:
    known, implied with the proof, or predicted with a probability
python -m experiments.elkb ... --discover=20 --violations
    the most probable new facts; derived facts that are in no split
python -m experiments.elkb --train=facts.csv --split=.9,.05,.05
    one file of facts, split at random
python -m experiments.elkb --mode=serve --workdir=runs/elkb
    a page on a finished run: facts of an entity with proofs, accept and reject
python -m experiments.elkb ... --combine_with=runs/elkb_t
    for each query also picks the better of this system and that one; a
    finished run is not trained again
"""

import functools
import json
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from experiments import thesis
from experiments.elkb import (
  answers,
  classification,
  combination,
  conformal,
  curator,
  data,
  evaluate,
  mining,
  puzzle,
  query,
  train,
  types,
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
  web_server,
  workdir,
)
from repr_jax import errors
from repr_jax.data.io import files
from repr_jax.data.rules import quoted
from repr_jax.kb import scores
from repr_jax.ops import mesh as meshes

# Flags in which runs of one program may differ; see `run_vmapped`.
VMAP_OVER = (
  "seed",
  "learning_rate",
  "penalty",
  "dropout",
  "relation_dropout",
  "relation_weight",
  "scale",
)

_VOLATILE = (
  "ask", "top", "json", "block", "mesh", "combine_with", "types", "discover",
  "violations",
)  # fmt: skip
_EXTENDABLE = ("epochs", "patience")

config.define(Config)
elkb_config.define_mode()


def _print_answers(
  kb: data.KnowledgeBase, systems: Sequence[evaluate.Trained], asked: Config
) -> None:
  """Prints the answers of all systems with their grounds."""
  grounds, allowed = answers.Grounds(kb), types.allowed(kb, asked.types)
  able = [
    answers.Answerer(
      kb, system, grounds, answers.calibrate(kb, system, asked)[0], allowed
    )
    for system in (systems if asked.ask or asked.discover else ())
  ]
  if asked.ask:
    _print_query(able, asked)
  for one in able if asked.discover else ():
    print(f"new facts by {one.trained.label}:")
    columns: list[str | tables.Column] = [
      tables.Column("probability", ".3f"), "head", "relation", "tail"
    ]  # fmt: skip
    print(tables.to_text(columns, one.discover(asked.discover, asked.block)))
  if asked.violations:
    print(answers.missing(kb, grounds, asked.top))


def _print_query(able: Sequence[answers.Answerer], asked: Config) -> None:
  kb = able[0].kb
  parsed = query.parse_query(kb, asked.ask or "")
  told: list[dict[str, Any]] = []
  for one in able:
    least = conformal.fitted_threshold(kb, one.trained, asked, one.temperature)
    new = one.best_new(parsed, len(kb.entities))
    told.append(
      {
        "system": one.trained.label,
        "temperature": one.temperature,
        "answers": [x._asdict() for x in one.best(parsed, asked.top)],
        "answer_set": [kb.shown[i] for i, mass in new if mass >= least],
        "fitting": len(new),
      }
    )
  if asked.json:
    asking = {"query": asked.ask, "systems": told}
    print(json.dumps(asking, ensure_ascii=False))
    return
  print(f"{asked.ask}:")
  for record in told:
    columns: list[str | tables.Column] = [
      f"by {record['system']}", "kind", tables.Column("probability", ".3f"),
      tables.Column("score", ".4f"),
    ]  # fmt: skip
    rows = [list(x.values())[:4] for x in record["answers"]]
    print(tables.to_text(columns, rows))
    members = record["answer_set"]
    shown = ", ".join(map(quoted, members[: asked.top])) + ", ..." * (
      len(members) > asked.top
    )
    print(
      f"new answers at {asked.coverage:.0%} coverage: {len(members)}"
      f"{': ' if members else ''}{shown}"
    )
    if record["fitting"] == 1:
      print("only one entity is left that fits")
  for one in told[0]["answers"]:
    for depth, line in enumerate(one["proof"]):
      print(f"{'  ' * min(depth, 1)}{line}")


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
  classification.read_negatives(kb, asked)
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
  """Ranks facts by the trained systems, writes figures, returns the systems."""
  asked = training.config
  label = evaluate.label_of(kb, asked)
  trained = evaluate.Trained(asked.stored_model, params, label)
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
  evaluate.validation_rows(run.row, kb, name, asked, params)
  heat, fitted, plain = answers.calibrate(kb, trained, asked)
  run.row(name, "temperature", heat)
  run.row(name, "calibration error", fitted, lower_is_better=True)
  run.row(name, "calibration error, temperature 1", plain, lower_is_better=True)
  conformal.rows(run.row, kb, name, trained, asked, heat)
  negatives = classification.read_negatives(kb, asked)
  if negatives is not None:
    classification.classification_rows(run.row, kb, name, trained, negatives)
  evaluate.link_rows(run.row, kb, name, ranks, told)
  if kb.rules:
    evaluate.underivable_rows(run.row, kb, name, ranks)
    checked = evaluate.violations(kb, training, params)
    run.row(name, "largest violation, sampled", checked.sampled.max())
    run.row(name, "largest violation, sampled trained", checked.real.max())
    evaluate.certificate_rows(run.row, kb, name, asked, params)
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


def finished_run(
  directory: pathlib.Path,
) -> tuple[data.KnowledgeBase, evaluate.Trained, Config]:
  """The knowledge base, the system and the flags of a finished run.

  Returns:
    The three, as `--mode=serve` shows them.
  """
  path = directory / "flags.json"
  if not path.exists():
    raise errors.InputError(
      "no run of experiments.elkb is here: train one, and name its --workdir",
      path=directory,
    )
  record = json.loads(path.read_text())
  values = record.get("flags") if isinstance(record, dict) else None
  if not isinstance(values, dict) or values.get("task") != "link":
    raise errors.InputError("is no run of link prediction", path=directory)
  values = {**values, "seed": values.get("seed", 0)}
  made = config.from_mapping(Config, values)
  kb = data.load(made)
  return kb, evaluate.load_params(str(directory), kb), made


def _serve(asked: Config) -> None:
  """Serves the curator's page until SIGINT or SIGTERM."""
  web_server.require("the curator's page")
  from experiments.elkb import curator_app

  directory = pathlib.Path(runlib.WORKDIR.value or "runs/elkb")
  # The port is taken before the run is read.
  with web_server.bind(asked.host, asked.port) as listening:
    kb, trained, made = finished_run(directory)
    heat = answers.calibrate(kb, trained, made)[0]
    answering = answers.Answerer(
      kb, trained, answers.Grounds(kb), heat, types.allowed(kb, asked.types)
    )
    opened = curator.Curator(answering, directory / "decisions.tsv")
    page = curator_app.build(opened, hosts=web_server.host_names(listening))
    web_server.serve(page, listening, lambda x: progress.say(f"elkb: {x}"))


def run_vmapped(members: Sequence[vmapped_runs.Member]) -> list[str | None]:
  """Executes runs that differ in the flags of VMAP_OVER in one program."""
  common = elkb_config.from_flags(runlib.SEED.value)
  if common.task == "serve":
    raise errors.InputError("--mode=serve runs alone, not in a sweep")
  with vmapped_runs.Group("elkb", members, _VOLATILE, _EXTENDABLE) as group:
    each = group.prepare(functools.partial(config.from_mapping, Config))
    if common.task in ("puzzle", "mine"):
      execute = puzzle.puzzle_rows if common.task == "puzzle" else mining.mine
      for i, asked in each.items():  # the compiled program serves all of them
        group.attempt(i, execute, group.runs[i], asked)
        group.finish(i)
      return group.failures
    # Files are the same for all seeds; WordNet's held-out facts and random
    # splits are not.
    same = bool(common.train) and not common.split
    kbs: dict[int, data.KnowledgeBase] = {}
    ready: dict[int, vmapped_train.Member] = {}
    for i, asked in each.items():
      seed = 0 if same else asked.seed
      if seed not in kbs:
        kbs[seed] = data.load(asked)
      training = group.attempt(i, train.prepare, kbs[seed], asked)
      if training is not None:
        ready[i] = vmapped_train.Member(kbs[seed], training)
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
  if asked.task in ("puzzle", "mine", "serve"):
    runlib.refuse_log(f"with --task={asked.task}")
  if asked.task == "serve":
    _serve(asked)
    return
  systems: list[evaluate.Trained] = []
  with runlib.Run("elkb", volatile=_VOLATILE, extendable=_EXTENDABLE) as run:
    if asked.task == "puzzle":
      if not run.finished:
        puzzle.puzzle_rows(run, asked)
    elif asked.task == "mine":
      if not run.finished:
        mining.mine(run, asked)
    else:
      kb = data.load(asked)
      if asked.ask:
        query.parse_query(kb, asked.ask)  # a bad one fails before training
      if asked.types:
        types.read_types(asked.types, kb)
      again = run.finished and (run.directory / "params.npz").exists()
      systems = (_finished if again else _link)(run, kb, asked)
  for row in workdir.read_results(run.directory / "results.json")["rows"]:
    beside = f"  (thesis {row['thesis']})" if "thesis" in row else ""
    progress.say(f"{row['name']}: {row['metric']} {row['value']:.4g}{beside}")
  wanted = asked.top and (asked.ask or asked.discover or asked.violations)
  if wanted and systems and processes.is_writer():
    _print_answers(kb, systems, asked)


if __name__ == "__main__":
  runlib.launch(main, logs=True)
