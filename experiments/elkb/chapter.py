"""Chapter 5's second half in the main job: rules, from WordNet alone.

The deduction puzzle, and link prediction on a part of WordNet's own relations
with and without rules.
"""

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import NamedTuple

from experiments.elkb import data, evaluate, findings, train
from experiments.elkb import puzzle as kb_puzzle
from experiments.elkb.config import Config
from experiments.run import progress, report, report_labels, runlib
from repr_jax.kb import link_prediction

_COMMAND = (
  "python -m experiments.elkb --task=puzzle; python -m experiments.elkb"
)


class _Outcome(NamedTuple):
  """Figures of one system."""

  relations: dict[str, tuple[int, float]]  # test facts and filtered MRR
  history: list[dict]


def chapter(size: str, workdir: pathlib.Path) -> report.Chapter:
  """Solves the puzzle and ranks the held-out facts of WordNet."""
  quick = size == "quick"
  kb = data.from_wordnet(
    Config(held_out=500, below="animal.n.01")
    if quick
    else Config(held_out=5000)
  )
  rows: list[dict] = []
  outcomes = {}
  for label, config in _systems(quick).items():
    folder = workdir / label.replace(" ", "").replace("+", "_")
    outcomes[label] = _train(kb, label, config, folder, size, rows)
  folder = workdir / "puzzle"
  with runlib.Run("elkb", directory=folder, config={"size": size}) as run:
    kb_puzzle.puzzle_rows(run, Config())
  puzzle = json.loads((folder / "results.json").read_text())["rows"]
  history = {
    label: [(x["step"] + 1, x["mrr"]) for x in outcome.history if "mrr" in x]
    for label, outcome in outcomes.items()
  }
  return report.Chapter(
    title="Knowledge bases under logical constraints",
    summary=f"The deduction puzzle (10 runs), and link prediction on {kb.name} "
    f"({len(kb.splits.train):,} facts, {len(kb.entities):,} entities) with "
    f"{len(kb.rules)} rules.",
    rows=puzzle + rows,
    tables=[_by_relation(outcomes)],
    charts=findings.charts(puzzle, history),
    notes=[_NOTE],
    command=_COMMAND,
    question=findings.QUESTION,
    answer=findings.answer(puzzle),
    table=findings.table(puzzle + rows),
    claims=findings.claims(puzzle + rows),
  )


_NOTE = (
  "With rules, score(consequent) >= min(score(antecedents)) holds for every "
  "entity that the constraints allow; the largest violation is rounding. "
  "Without them it is what training left. Intervals of the puzzle are 95 % "
  "over its ten runs, widened by the thesis' rounding."
)


def _systems(quick: bool) -> dict[str, Config]:
  base = Config(
    model="B", dim=32 if quick else 100, trainer="candidate_softmax",
    optimizer="adagrad", batch_size=500, learning_rate=0.1, penalty=1e-3,
    num_candidates=500, loss="bpr", scale=0.1, nonnegative=False,
    epochs=10 if quick else 30, eval_every=2, eval_limit=500, patience=3,
    block=128,
  )  # fmt: skip
  change = dataclasses.replace
  rich = change(
    base, model="complex", loss="softmax", regularizer="n3", scale=0.01
  )
  return {
    "B": change(base, constrained=False),
    "B + rules": base,
    "ComplEx": change(rich, constrained=False),
    "ComplEx + rules": rich,
  }


def _train(
  kb: data.KnowledgeBase,
  label: str,
  config: Config,
  folder: pathlib.Path,
  size: str,
  rows: list[dict],
) -> _Outcome:
  """Trains one system and adds its figures to the rows."""
  name = f"{kb.name}, {label}"
  progress.say(f"elkb: {report_labels.label(label).text}")
  told = {"size": size, **dataclasses.asdict(config)}
  with runlib.Run("elkb", directory=folder, config=told) as run:
    training = train.prepare(kb, config)
    params = train.train(run, kb, training)
    test = kb.splits.test.array
    ranks = train.rank_facts(kb, config.score_model, params, test)
    for metric in ("mrr", "hits@10"):
      value = link_prediction.summary(ranks)[metric]
      rows.append(run.row(name, f"filtered {metric}", value))
    worst = evaluate.violations(kb, training, params).worst
    rows.append(run.row(name, "largest rule violation", worst))
  each = link_prediction.per_relation(ranks, test[:, 1])
  relations = {
    kb.relations[relation]: (int(value["count"]), value["mrr"])
    for relation, value in each.items()
  }
  lines = (folder / "metrics.jsonl").read_text().splitlines()
  return _Outcome(relations, [json.loads(line) for line in lines])


def _by_relation(outcomes: Mapping[str, _Outcome]) -> report.Table:
  """Filtered MRR of each relation, the most frequent first."""
  counts = next(iter(outcomes.values())).relations
  order = sorted(counts, key=lambda name: -counts[name][0])
  return report.Table(
    "Filtered MRR by relation",
    ["relation", "test facts", *outcomes],
    [
      [
        name,
        counts[name][0],
        *(outcome.relations[name][1] for outcome in outcomes.values()),
      ]
      for name in order
    ],
  )
