"""The evaluation of a model: all protocols, files, tables and plots."""

import dataclasses
import hashlib
import math
import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from experiments import thesis
from experiments.nvse import (
  comparison,
  cuts,
  data,
  deletion,
  figures,
  negatives,
  protocols,
  train,
)
from experiments.nvse.config import Config
from experiments.nvse.variants import variant
from experiments.run import expander, runlib, tables
from experiments.run.expander import Expander
from repr_jax.data.entities import features
from repr_jax.data.entities import judged as judged_files
from repr_jax.data.io import files
from repr_jax.errors import InputError
from repr_jax.evaluation import judgments
from repr_jax.setexp import expansion, from_scipy, systems

_REASONED = 50  # queries whose reasons are added up


class Prepared(NamedTuple):
  """An evaluation whose input is read and checked, before any training.

  Attributes:
    config: of the run.
    gold: tasks from gold sets; empty for none.
    judged: judged queries; empty for none.
    judged_tasks: hidden members of those.
    variants: other models to train, by label.
    seeds: queries with negative seeds; empty for none.
  """

  config: Config
  gold: list[figures.Task]
  judged: list[judged_files.JudgedQuery]
  judged_tasks: list[figures.Task]
  variants: dict[str, Config]
  seeds: list[negatives.Seeds]


def prepare(config: Config, table: features.FeatureTable) -> Prepared:
  """Reads everything that an evaluation needs.

  Raises:
    InputError: a file, system or variant cannot be used, or no query names an
      entity of the table.
  """
  for name in config.systems:
    if name != expander.GCCA:
      systems.find_baseline(name)
  variants = {text: variant(config, text) for text in config.variants}
  gold, judged, judged_tasks, seeds = [], [], [], []
  if config.judged is not None:
    judged = judged_files.read_judged_queries(config.judged)
    judged_tasks = protocols.judged_tasks(table, judged)
  if config.gold is not None or config.judged is None:
    sets = data.gold_sets(config, config.gold)
    gold = protocols.gold_tasks(
      table, sets, config.sizes, config.per_set, seed=config.seed,
      unit=config.unit,
    )  # fmt: skip
    if config.chances and not all(figures.halves(gold)):
      raise InputError(
        "--chances needs queries in both halves: give more gold sets, or "
        "--unit=query"
      )
    if config.negatives:
      seeds = negatives.pairs(table, sets, seed=config.seed)
      if not seeds:
        raise InputError("--negatives: no two of the gold sets share an entity")
  return Prepared(config, gold, judged, judged_tasks, variants, seeds)


def evaluate(
  run: runlib.Run,
  opened: Expander,
  prepared: Prepared,
  say: Callable[[str], None] = lambda text: None,
) -> dict[str, comparison.Comparison]:
  """Runs each protocol that has tasks.

  Args:
    run: gets rows; evaluation-.../ in its directory gets tables, run files
      and plots.
    opened: the model and its entities.

  Returns:
    Comparisons by protocol, "gold" and "judged"; empty if the same evaluation
    has ended before.
  """
  config = prepared.config
  values = dataclasses.asdict(config)
  # These change no figure.
  for name in ("store", "mode", "model", "mesh"):
    del values[name]
  values |= dataclasses.asdict(opened.ranking)
  mark = hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()[:8]
  folder = run.directory / f"evaluation-{mark}"
  path = folder / "tables.txt"
  if run.finished:
    if path.exists():
      print(path.read_text(encoding="utf-8") + f"Files: {folder}")
      return {}
    train.keep_rows(run)
  folder.mkdir(parents=True, exist_ok=True)
  models = _models(run.directory, opened, prepared)
  peers = [opened.system(name) for name in config.systems]
  if config.lsa_plain:
    peers.append(_plain_lsa(config, opened.table, say))
  peers += systems.ablations(opened.model, opened.ranking.pooling)
  compared, texts = {}, []
  for name, tasks, measures in (
    ("gold", prepared.gold, protocols.GOLD),
    ("judged", prepared.judged_tasks, protocols.JUDGED),
  ):
    if tasks:
      say(f"{len(tasks):,} queries, {name}")
      result = _compare(tasks, models, peers, opened, config, say, measures)
      texts += _record(run, folder, name, opened, result, measures)
      texts += _deletions(run, name, opened, result, peers)
      compared[name] = result
  texts += _chances(run, opened, prepared)
  texts += _negatives(run, opened, prepared)
  if prepared.judged:
    texts += _judges(run, opened, compared["judged"], peers, prepared.judged)
  with files.atomic_write(path) as out:
    out.write("\n".join(texts) + "\n")
  print("\n".join(texts))
  print(f"Files: {folder}")
  return compared


def _compare(
  tasks, models, peers, opened, config, say, measures
) -> comparison.Comparison:
  fixed = share = None
  if config.fixed:
    fixed = comparison.label("nvse", opened.ranking)
    share = opened.fusion
  candidates = comparison.candidates(models, opened.ranking)
  return comparison.compare(
    tasks, candidates, peers, measures, fixed=fixed, share=share, say=say
  )


def _plain_lsa(config, table, say) -> systems.System:
  """LSA at its defaults, of all features of the corpus but contexts."""
  plain = dataclasses.replace(config, contexts=False, max_features=0)
  wide = data.open_table(plain, say)
  assert wide.entities == table.entities
  fitted = systems.baseline("lsa", wide.counts, config.seed)
  named = systems.with_features(fitted, wide.counts, wide.features)
  return named._replace(name="lsa-plain")


def _models(
  directory: pathlib.Path, opened: Expander, prepared: Prepared
) -> dict[str, expansion.Model]:
  """The opened model and those of the variants, by label."""
  models = {"nvse": opened.model}
  for text, changed in prepared.variants.items():
    name = hashlib.sha256(text.encode()).hexdigest()[:8]
    loaded = train.run_training(
      directory / "variants" / name, changed, opened.table
    )
    model = from_scipy.model_from_scipy(*loaded, opened.table.counts)
    models[text] = systems.prepare(model, opened.ranking)
  return models


def _record(
  run: runlib.Run,
  folder: pathlib.Path,
  name: str,
  opened: Expander,
  compared: comparison.Comparison,
  measures: Sequence[str],
) -> list[str]:
  """Rows, files and plot of one protocol; returns the table as text."""
  for line in compared.lines:
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
        least = figures.detectable(difference)
        run.row(label, f"smallest detectable difference, {measure}", least)
  comparison.write(folder, name, opened.table, compared)
  picture = comparison.precision_plot(compared)
  if picture is not None:
    run.plot(f"precision-{name}", picture)
  header, rows = figures.rows_of(compared.lines, measures)
  strata = comparison.strata(compared)
  labels = list(next(iter(strata.values())))
  return [
    f"{name}: {len(compared.tasks):,} queries of the second half, "
    f"{len({task.unit for task in compared.tasks}):,} units; nvse is "
    f"{compared.chosen}; share in nvse+bm25 {compared.share}",
    tables.to_text(header, rows),
    f"{measures[0]} by number of sentences",
    tables.to_text(
      ["system", *labels],
      [[s, *(f"{v[x]:.3f}" for x in labels)] for s, v in strata.items()],
    ),
    "",
  ]


def _deletions(run, name, opened, compared, peers) -> list[str]:
  """The test of reasons, for nvse and for LSA beside it."""
  texts = [
    "first result after 10 listed features are deleted: share of its lead that "
    "it loses, and its new rank"
  ]
  for system in (compared.best, *(x for x in peers if x.name == "lsa")):
    outcome = deletion.deletion(system, opened.table.counts, compared.tasks)
    shown = []
    for kind, (lost, place) in outcome.items():
      label = f"{name}: {system.name} without {kind}"
      run.row(label, "score lost", lost)
      run.row(label, "place", place)
      shown.append(f"{kind} {lost:.2f}, rank {place:g}")
    texts.append(f"  {system.name}: {'; '.join(shown)}")
  texts.append(
    "share of the first 10 scores that 10 printed features account for: one "
    "list for all results, and a list for each"
  )
  asked = sample(compared.tasks, _REASONED, 0)
  kinds = {
    "queries": [task.query for task in asked],
    "random sets": deletion.random_queries(opened.table.counts, _REASONED),
  }
  for kind, queries in kinds.items():
    shares = deletion.printed_shares(
      compared.best, opened.table.counts, queries
    )
    for which, value in shares._asdict().items():
      run.row(f"{name}: printed features, {kind}", which, value)
    texts.append(f"  {kind}: {shares.whole:.2f}, {shares.each:.2f}")
  return [*texts, ""]


def _chances(run, opened, prepared) -> list[str]:
  """Chances and cuts of nvse and, if it is asked for, of LSA."""
  if not prepared.config.chances:
    return []
  texts = []
  halves = figures.halves(prepared.gold)
  for name in ("nvse", *(x for x in prepared.config.systems if x == "lsa")):
    outcome = cuts.evaluate(opened.system(name), *halves)
    label = f"chances: {name}"
    for way, value in outcome.f1.items():
      run.row(label, f"F1, {way}", value)
    run.row(label, "calibration error", outcome.error, lower_is_better=True)
    texts += [f"{name}: {line}" for line in cuts.to_text(outcome)]
    opened.chances[name] = outcome.weights
  expander.save_chances(run.directory, opened)
  return [*texts, ""]


def _negatives(run, opened, prepared) -> list[str]:
  """Negative seeds of nvse and, if it is asked for, of LSA."""
  texts = []
  for name in ("nvse", *(x for x in prepared.config.systems if x == "lsa")):
    outcome = None
    if prepared.seeds:
      system = opened.system(name)
      outcome = negatives.evaluate(system, opened.table, prepared.seeds)
    if outcome is not None:
      for how, value, unwanted in zip(
        ("without", "with"), outcome.map, outcome.unwanted
      ):
        run.row(f"negative seeds: {name}", f"map, {how}", value)
        label = f"unwanted in 20, {how}"
        run.row(
          f"negative seeds: {name}", label, unwanted, lower_is_better=True
        )
      texts += negatives.to_text(name, outcome)
  return texts


def sample(
  tasks: Sequence[figures.Task], count: int, seed: int
) -> list[figures.Task]:
  """Some of the tasks, drawn without replacement, in their order."""
  drawn = np.random.default_rng(seed).permutation(len(tasks))[:count]
  return [tasks[i] for i in sorted(drawn.tolist())]


def places_table(queries: Sequence[judged_files.JudgedQuery]) -> str:
  """A table of the judges' places by group, query size and stratum."""
  counted = judgments.place_counts(queries)
  rows = [
    [cell.group, str(cell.size), cell.stratum, system, *map(str, places)]
    for cell, row in counted.items()
    for system, places in row.items()
  ]
  header = ["group", "size", "sentences", "system", "1st", "2nd", "3rd"]
  return tables.to_text(header, rows)


def _judges(run, opened, compared, peers, queries) -> list[str]:
  """Protocol (c): places given by judges, and who agrees with them."""
  texts = ["first places given by judges"]
  for group, counts in sorted(judgments.first_places(queries).items()):
    for system, count in counts.items():
      published = thesis.FIRST_PLACES.get((group, system))
      run.row(
        f"group {group}: {system}", "first places", count, thesis=published
      )
    shown = ", ".join(f"{k} {v}" for k, v in counts.items())
    texts.append(f"  group {group}: {shown}")
  texts += ["first, second and third places", places_table(queries)]
  texts.append("share of judged pairs of lists ordered as by the judges")
  best = compared.best
  lexical = [x for x in peers if x.name == "bm25"]
  fused = [systems.fuse(best, x, compared.share) for x in lexical]
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
