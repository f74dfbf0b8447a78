"""Knowledge bases whose vectors obey logical rules (thesis 5.4).

python -m experiments.elkb --task=puzzle
    the deduction puzzle, 10 runs in one program: seconds; MRR about .47
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

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from absl import flags

from experiments.elkb import combination, data, evaluate, puzzle, vmapped_train
from experiments.elkb import query as kb_query
from experiments.elkb import train as kb_training
from experiments.run import processes, progress, runlib, vmapped_runs, workdir
from repr_jax import errors
from repr_jax.data.io import files
from repr_jax.kb import scores
from repr_jax.ops import mesh as meshes

# Flags in which runs of one program may differ; see `run_vmapped`.
VMAP_OVER = ("seed", "eta", "alpha", "scale")

_VOLATILE = ("ask", "top", "block", "mesh", "combine_with")
_DEFAULT = kb_training.Setting()
_TASK = flags.DEFINE_enum(
  "task", "link", ["link", "puzzle"], "Link prediction, or the puzzle."
)
_TRAIN = flags.DEFINE_string(
  "train", None, "Training triples; WordNet's own relations where not given."
)
_VALID = flags.DEFINE_string("valid", None, "Validation triples.")
_TEST = flags.DEFINE_string("test", None, "Test triples.")
_COLUMNS = flags.DEFINE_string("columns", "h,r,t", "Order of the columns.")
_DUPLICATES = flags.DEFINE_enum(
  "duplicates", "error", ["error", "count"], "What a repeated triple is."
)
_RULES = flags.DEFINE_string(
  "rules", None, "File of rules; WordNet's own facts have some of their own."
)
_DROP_IMPLIED = flags.DEFINE_bool(
  "drop_implied",
  False,
  "Train without the facts that rules derive from others: what is known of "
  "them comes from the rules.",
)
_ROOT = flags.DEFINE_string(
  "below", None, "WordNet only: keep the synsets below this one."
)
_HELD_OUT = flags.DEFINE_integer(
  "held_out",
  2000,
  "WordNet only: facts for validation and for test.",
  lower_bound=1,
)
_MODEL = flags.DEFINE_enum(
  "model", _DEFAULT.model, scores.SCORES, "Score model."
)
_DIM = flags.DEFINE_integer(
  "dim", _DEFAULT.dim, "Numbers per entity.", lower_bound=1
)
_CONSTRAINED = flags.DEFINE_bool(
  "constrained", _DEFAULT.constrained, "Whether the rules hold by construction."
)
_NONNEGATIVE = flags.DEFINE_bool(
  "nonnegative",
  _DEFAULT.nonnegative,
  "With rules, keep entities nonnegative even where they do not need it.",
)
_TRAINER = flags.DEFINE_enum(
  "trainer",
  _DEFAULT.trainer,
  ["pairs", "many"],
  "pairs: the thesis' algorithm 2; many: all or many candidates per fact.",
)
_OPTIMIZER = flags.DEFINE_string(
  "optimizer", _DEFAULT.optimizer, "sgd, adagrad, adam or rmsprop."
)
_BATCH = flags.DEFINE_integer(
  "batch", _DEFAULT.batch, "Facts in a step.", lower_bound=1
)
_ETA = flags.DEFINE_float("eta", _DEFAULT.eta, "Step size.", lower_bound=0.0)
_ALPHA = flags.DEFINE_float(
  "alpha", _DEFAULT.alpha, "Weight of the penalty.", lower_bound=0.0
)
_NEGATIVES = flags.DEFINE_integer(
  "negatives",
  _DEFAULT.negatives,
  "pairs: unknown facts for each fact in an epoch.",
  lower_bound=1,
)
_UNKNOWN = flags.DEFINE_enum(
  "unknown",
  _DEFAULT.unknown,
  ["any", "corrupt"],
  "pairs: any unknown fact, or the fact with one entity replaced.",
)
_ORDER = flags.DEFINE_enum(
  "order",
  _DEFAULT.order,
  ["turns", "stay"],
  "pairs: facts take turns, one unknown fact at a time, or, as in the thesis, "
  "each batch stays until it has met all of its unknown facts.",
)
_CANDIDATES = flags.DEFINE_integer(
  "candidates",
  _DEFAULT.candidates,
  "many: entities drawn for each batch; 0 for all.",
  lower_bound=0,
)
_LOSS = flags.DEFINE_enum(
  "loss", _DEFAULT.loss, ["softmax", "bpr"], "many: the loss."
)
_PENALTY = flags.DEFINE_enum(
  "penalty", _DEFAULT.penalty, ["n3", "l2"], "many: the penalty."
)
_SCALE = flags.DEFINE_float("scale", _DEFAULT.scale, "Spread of the start.")
_MIXING = flags.DEFINE_float(
  "mixing", _DEFAULT.mixing, "lambda of PropTrans rules."
)
_CAP = flags.DEFINE_float("cap", _DEFAULT.cap, "Box of B's PropTrans, TypeImp.")
_RADIUS = flags.DEFINE_float("radius", _DEFAULT.radius, "Ball of T's RelImp.")
_EPOCHS = flags.DEFINE_integer("epochs", 20, "Epochs at most.", lower_bound=1)
_EVAL_EVERY = flags.DEFINE_integer(
  "eval_every",
  2,
  "Epochs between looks at the validation facts.",
  lower_bound=1,
)
_EVAL_LIMIT = flags.DEFINE_integer(
  "eval_limit",
  1000,
  "Validation facts looked at while training.",
  lower_bound=1,
)
_PATIENCE = flags.DEFINE_integer(
  "patience",
  3,
  "Looks without a better HITS@10 before training stops.",
  lower_bound=1,
)
_BLOCK = flags.DEFINE_integer(
  "block",
  256,
  "Queries scored at a time; memory is block * entities.",
  lower_bound=1,
)
_UNSEEN = flags.DEFINE_enum(
  "unseen",
  "last",
  ["last", "drop"],
  "Test facts with entities outside training: ranked last or left out.",
)
_RUNS = flags.DEFINE_integer("puzzle_runs", 10, "puzzle: runs.", lower_bound=2)
_COMBINE = flags.DEFINE_string(
  "combine_with", None, "Work directory of a finished run to combine with."
)
_ASK = flags.DEFINE_string(
  "ask", None, "A query to answer: relation(?, entity) or relation(entity, ?)."
)
_TOP = flags.DEFINE_integer("top", 5, "Answers to print.", lower_bound=1)
_MESH = flags.DEFINE_string(
  "mesh",
  None,
  "Devices, as batch:8, that share each batch in training and the entities in "
  "ranking; all of them or one.",
)

_THESIS_WN18 = {
  ("A", False): (0.0152, 0.016, 0.033),
  ("A", True): (0.0238, 0.03, 0.0514),
  ("B", False): (0.0677, 0.072, 0.137),
  ("B", True): (0.241, 0.283, 0.50),
  ("T", False): (0.311, 0.412, 0.66),
  ("B+T", True): (0.367, 0.475, 0.708),
}


def load_kb(seed: int) -> data.KnowledgeBase:
  """The knowledge base that the flags name.

  Args:
    seed: of the facts that are held out of WordNet.

  Returns:
    The knowledge base.
  """
  train, valid, test = _TRAIN.value, _VALID.value, _TEST.value
  if train and valid and test:
    kb = data.read(
      train, valid, test, _RULES.value, _COLUMNS.value, _DUPLICATES.value
    )
  elif train or valid or test:
    raise errors.InputError("--train, --valid and --test go together")
  elif _COLUMNS.value != _COLUMNS.default:
    raise errors.InputError(
      f"--columns={_COLUMNS.value} is about files: give --train, --valid and "
      "--test"
    )
  else:
    kb = data.from_wordnet(_HELD_OUT.value, seed, _ROOT.value, _RULES.value)
  if _DROP_IMPLIED.value:
    if not kb.rules:
      raise errors.InputError("--drop_implied needs rules: give --rules")
    kb = data.drop_implied(kb)
    progress.say(f"{kb.name}: {len(kb.dropped):,} facts left out of training")
  for note in data.notes(kb):
    progress.say(f"{kb.name}: {note}")
  if _UNSEEN.value == "drop" and kb.unseen.all():
    raise errors.InputError(
      "--unseen=drop leaves no test fact: all have entities outside training"
    )
  return kb


def setting_from(values: Mapping[str, Any]) -> kb_training.Setting:
  """The setting that a run's flags give.

  Args:
    values: the flags by name.

  Returns:
    The setting.
  """
  fields = dataclasses.fields(kb_training.Setting)
  return kb_training.Setting(
    **{field.name: values[field.name] for field in fields}
  )


def _schedule() -> kb_training.Schedule:
  return kb_training.Schedule(
    _EPOCHS.value,
    _EVAL_EVERY.value,
    _EVAL_LIMIT.value,
    _PATIENCE.value,
    _BLOCK.value,
  )


def _print_answers(
  kb: data.KnowledgeBase,
  systems: Sequence[evaluate.Trained],
  text: str,
  top: int,
) -> None:
  """Prints the answers of all systems side by side, and the rules."""
  query = kb_query.parse_query(kb, text)
  columns = []
  for one in systems:
    found = evaluate.answers(kb, one.model, one.params, query, top)
    lines = [
      f"  {i}. {x}  {value:.4f}" for i, (x, value) in enumerate(found, 1)
    ]
    columns.append([f"{text} by {one.label}:", *lines])
  for line in evaluate.side_by_side(columns):
    progress.say(line)
  name = kb.relations[query[0]]
  touching = [rule for rule in kb.rules if name in rule.relations]
  for rule in touching:
    progress.say(f"rule: {rule}")
  if not touching:
    progress.say("no rule touches this relation")


def _other(
  kb: data.KnowledgeBase, label: str
) -> list[tuple[str, evaluate.Trained]]:
  """The run to combine with and its system, under a label of its own; or []."""
  if not _COMBINE.value:
    return []
  other = evaluate.load_params(_COMBINE.value, kb)
  if other.label == label:
    other = other._replace(label=f"{label} of {_COMBINE.value}")
  return [(_COMBINE.value, other)]


def _combine(
  add: Callable[..., object],
  kb: data.KnowledgeBase,
  trained: evaluate.Trained,
  other: evaluate.Trained,
) -> None:
  """Computes the rows of the combination."""
  thesis = {}
  if kb.name == "wn18":
    ruled = trained.label.endswith("rules")
    thesis = {name: x for (name, on), x in _THESIS_WN18.items() if on == ruled}
  combination.combined_rows(
    add, kb, trained, other, _BLOCK.value, _UNSEEN.value, thesis
  )


def _link(run: runlib.Run, kb: data.KnowledgeBase) -> list[evaluate.Trained]:
  """Trains, ranks and writes; the systems."""
  setting = setting_from(flags.FLAGS.flag_values_dict())
  _other(kb, "")  # fails before training
  mesh = meshes.make_mesh(_MESH.value, ("batch",))
  system = kb_training.prepare(kb, setting, mesh)
  params = kb_training.train(run, kb, system, *_schedule())
  return _report(run, kb, system, params)


def _report(
  run: runlib.Run,
  kb: data.KnowledgeBase,
  system: kb_training.System,
  params: scores.Params,
) -> list[evaluate.Trained]:
  """Ranks and writes what was trained; the systems."""
  model = system.setting.model
  label = evaluate.label_of(kb, system.setting)
  trained = evaluate.Trained(model, params, label)
  thesis = None
  if kb.name == "wn18":
    thesis = _THESIS_WN18.get((model, label != model))
  ranks = kb_training.rank_facts(
    kb, model, params, kb.splits.test.array, _BLOCK.value, _UNSEEN.value,
    system.mesh,
  )  # fmt: skip
  name = f"{kb.name} {label}"
  evaluate.link_rows(run.row, kb, name, ranks, thesis)
  if kb.rules:
    checked = evaluate.violations(kb, system, params)
    run.row(name, "largest violation, sampled", checked.sampled.max())
    run.row(name, "largest violation, trained", checked.real.max())
  others = _other(kb, label)
  for folder, other in others:
    _combine(run.row, kb, trained, other)
    both = combination.name_of(kb, trained, other)
    combination.remember(run.directory, both, folder)
  evaluate.save_params(run.directory / "params.npz", kb, trained)
  run.vectors(kb.shown, params.entities)
  with files.atomic_write(run.directory / "relations.npz", "wb") as out:
    np.savez(out, names=np.array(kb.relations), vectors=params.relations)
  return [trained, *(other for _, other in others)]


def _finished(
  run: runlib.Run, kb: data.KnowledgeBase
) -> list[evaluate.Trained]:
  """The systems of a run that has ended; a new combination joins its rows."""
  trained = evaluate.load_params(str(run.directory), kb)
  others = _other(kb, trained.label)
  for folder, other in others:
    both = combination.name_of(kb, trained, other)
    if combination.is_known(run.directory, both, folder):
      continue
    rows: list[dict[str, Any]] = []
    _combine(combination.collector(rows), kb, trained, other)
    if processes.is_writer():
      combination.add_to_results(run.directory, both, folder, rows)
  return [trained, *(other for _, other in others)]


def _puzzle(run: runlib.Run, seed: int) -> None:
  puzzle.puzzle_rows(run, _RUNS.value, seed, _MIXING.value, _CAP.value)


def run_vmapped(members: Sequence[vmapped_runs.Member]) -> list[str | None]:
  """Executes runs that differ in the flags of VMAP_OVER in one program.

  Args:
    members: the runs; the program's flags are those that they share.

  Returns:
    What went wrong in each run, None where nothing did.
  """
  seeds = [member.flags["seed"] for member in members]
  with vmapped_runs.Group("elkb", members, _VOLATILE) as group:
    if _TASK.value == "puzzle":
      for i in group.active():  # the compiled program serves all of them
        group.attempt(i, _puzzle, group.runs[i], seeds[i])
        group.finish(i)
      return group.failures
    # Files are the same for all seeds; WordNet's held-out facts are not.
    one = bool(_TRAIN.value)
    kbs = {s: load_kb(s) for s in ({seeds[0]} if one else set(seeds))}
    systems: dict[int, vmapped_train.Member] = {}
    for i in group.active():
      kb = kbs[seeds[0] if one else seeds[i]]
      setting = setting_from(members[i].flags)
      system = group.attempt(i, kb_training.prepare, kb, setting)
      if system is not None:
        systems[i] = vmapped_train.Member(kb, system)
    trained = vmapped_train.train(group, systems, _schedule())
    for i, params in trained.items():
      kb, system = systems[i]
      group.attempt(i, _report, group.runs[i], kb, system, params)
      group.finish(i)
    return group.failures


def main(argv: list[str]) -> None:
  """Runs the task that the flags name."""
  del argv
  with runlib.Run("elkb", volatile=_VOLATILE) as run:
    if _TASK.value == "puzzle":
      _puzzle(run, runlib.SEED.value)
    else:
      kb = load_kb(runlib.SEED.value)
      if _ASK.value:
        kb_query.parse_query(kb, _ASK.value)  # a bad one fails before training
      again = run.finished and (run.directory / "params.npz").exists()
      systems = _finished(run, kb) if again else _link(run, kb)
  for row in workdir.read_results(run.directory / "results.json")["rows"]:
    beside = f"  (thesis {row['thesis']})" if "thesis" in row else ""
    progress.say(f"{row['name']}: {row['metric']} {row['value']:.4g}{beside}")
  if _TASK.value == "link" and _ASK.value:
    _print_answers(kb, systems, _ASK.value, _TOP.value)


if __name__ == "__main__":
  runlib.launch(main)
