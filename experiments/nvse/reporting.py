"""The evaluation of a model: all protocols, files, tables and plots."""

import dataclasses
import hashlib
import math
import pathlib
from collections.abc import Callable, Sequence

from experiments.nvse import comparison, data, protocols, train
from experiments.nvse import evaluate as evaluating
from experiments.nvse.config import Options, variant
from experiments.run import runlib
from experiments.run.expander import Expander
from repr_jax.data.entities import judged as judged_files
from repr_jax.data.io import files
from repr_jax.evaluation import judgments
from repr_jax.setexp import expansion, from_scipy, systems

# First places of all judged queries, of which a file may hold a part.
_THESIS = {
  "NVSE": 193, "BM25": 171, "BS": 117, "SETEXPAN": 86, "W2V": 87,
}  # fmt: skip
_THESIS_SECOND = {"NVSE": 307}


@dataclasses.dataclass(frozen=True)
class Plan:
  """What is evaluated.

  Attributes:
    gold: file of gold sets; None for WordNet's classes.
    judged: file of judged queries; None for no protocols (b) and (c).
    sizes: members of the queries of protocol (a).
    per_set: queries of each set, size and stratum.
    variants: changes of options, one more model for each.
    fixed: take the model's ranking and `fusion` instead of choosing.
    fusion: share of the autoencoder in the ensemble, if fixed.
    baselines: systems to compare with.
  """

  gold: str | None = None
  judged: str | None = None
  sizes: tuple[int, ...] = (3, 5)
  per_set: int = 3
  variants: tuple[str, ...] = ()
  fixed: bool = False
  fusion: float = 0.5
  baselines: tuple[str, ...] = systems.BASELINES


def evaluate(
  directory: pathlib.Path,
  opened: Expander,
  options: Options,
  plan: Plan,
  say: Callable[[str], None] = lambda text: None,
) -> dict[str, comparison.Comparison]:
  """Runs the protocols that the plan has data for.

  Args:
    directory: of the model; evaluation-.../ in it gets tables, run files and
      plots.
    opened: the model and its entities.
    options: of the model's training.
    plan: what to do.
    say: called with a line of text when something was done.

  Returns:
    Comparisons by protocol, "gold" and "judged".
  """
  config = dataclasses.asdict(plan) | dataclasses.asdict(options)
  del config["store"]  # where features are kept changes no figure
  mark = hashlib.sha256(repr(sorted(config.items())).encode()).hexdigest()[:8]
  folder = directory / f"evaluation-{mark}"
  found = {}
  with runlib.Run("nvse_evaluation", directory=folder, config=config) as run:
    models = _models(directory, opened, options, plan)
    peers = [opened.system(name) for name in plan.baselines]
    peers += systems.ablations(opened.model, opened.ranking.pooling)
    texts = []
    if plan.gold is not None or plan.judged is None:
      sets = data.gold_sets(options, plan.gold)
      tasks = protocols.gold_tasks(
        opened.table, sets, plan.sizes, plan.per_set, seed=options.seed
      )
      say(f"{len(tasks):,} queries from gold sets")
      found["gold"] = _compare(tasks, models, peers, opened, plan, say)
      texts += _record(run, "gold", opened, found["gold"], protocols.GOLD)
    if plan.judged is not None:
      queries = judged_files.read_judged_queries(plan.judged)
      tasks = protocols.judged_tasks(opened.table, queries)
      say(f"{len(tasks):,} hidden members of judged queries")
      found["judged"] = _compare(
        tasks, models, peers, opened, plan, say, protocols.JUDGED
      )
      texts += _record(run, "judged", opened, found["judged"], protocols.JUDGED)
      texts += _judges(run, opened, found["judged"], peers, queries)
    with files.atomic_write(run.directory / "tables.txt") as out:
      out.write("\n".join(texts) + "\n")
  print("\n".join(texts))
  print(f"Files: {folder}")
  return found


def _compare(
  tasks, models, peers, opened, plan, say, measures=protocols.GOLD
) -> comparison.Comparison:
  fixed = share = None
  if plan.fixed:
    fixed = comparison.label("nvse", opened.ranking)
    share = plan.fusion
  candidates = comparison.candidates(models, opened.ranking)
  return comparison.compare(
    tasks, candidates, peers, measures, fixed=fixed, share=share, say=say
  )


def _models(
  directory: pathlib.Path, opened: Expander, options: Options, plan: Plan
) -> dict[str, expansion.Model]:
  """The session's model and those of the variants, by label."""
  models = {"nvse": opened.model}
  for text in plan.variants:
    changed = variant(options, text)
    name = hashlib.sha256(text.encode()).hexdigest()[:8]
    loaded = train.run_training(
      directory / "variants" / name, changed, opened.table
    )
    models[text] = from_scipy.model_from_scipy(*loaded, opened.table.counts)
  return models


def _record(
  run: runlib.Run,
  name: str,
  opened: Expander,
  found: comparison.Comparison,
  measures: Sequence[str],
) -> list[str]:
  """Rows, files and plot of one protocol; returns the table as text."""
  for line in found.lines:
    for measure, (value, lower, upper) in line.means.items():
      run.row(
        f"{name}: {line.system}", measure, value, lower=lower, upper=upper
      )
    for measure, difference in line.against.items():
      label = f"{name}: nvse less {line.system}"
      run.row(
        label, measure, difference.value, lower=difference.lower,
        upper=difference.upper,
      )  # fmt: skip
      if not math.isnan(difference.p_value):  # one query has no p
        run.row(label, f"p, {measure}", difference.p_value)
  comparison.write(run.directory, name, opened.table, found)
  picture = comparison.precision_plot(found)
  if picture is not None:
    run.plot(f"precision-{name}", picture)
  header, rows = evaluating.rows_of(found.lines, measures)
  strata = comparison.strata(found)
  labels = list(next(iter(strata.values())))
  return [
    f"{name}: {len(found.tasks):,} queries of the second half; nvse is "
    f"{found.chosen}; share in nvse+bm25 {found.share}",
    evaluating.to_text(header, rows),
    f"{measures[0]} by number of sentences",
    evaluating.to_text(
      ["system", *labels],
      [[s, *(f"{v[x]:.3f}" for x in labels)] for s, v in strata.items()],
    ),
    "",
  ]


def _judges(run, opened, found, peers, queries) -> list[str]:
  """Protocol (c): places given by judges, and who agrees with them."""
  texts = ["first places given by judges"]
  for group, counts in sorted(judgments.first_places(queries).items()):
    for system, count in counts.items():
      second = group == "2" and system in _THESIS_SECOND
      thesis = (_THESIS_SECOND if second else _THESIS).get(system)
      run.row(f"group {group}: {system}", "first places", count, thesis=thesis)
    shown = ", ".join(f"{k} {v}" for k, v in counts.items())
    texts.append(f"  group {group}: {shown}")
  texts.append("share of judged pairs of lists ordered as by the judges")
  best = found.best
  lexical = [x for x in peers if x.name == "bm25"]
  fused = [systems.fuse(best, x, found.share) for x in lexical]
  for system in (best, *fused, *peers):
    result = protocols.agreement(opened.table, system, queries)
    value, lower, upper = (
      0.5 + x for x in (result.value, result.lower, result.upper)
    )
    run.row(
      f"agreement: {system.name}", "share", value, lower=lower, upper=upper
    )
    texts.append(f"  {system.name}: {value:.3f} [{lower:.3f}, {upper:.3f}]")
  return texts
