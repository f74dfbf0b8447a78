"""Tables of a run: the thesis' own, the steps to it, and where errors are."""

import numpy as np

from experiments import thesis
from experiments.ned import findings
from experiments.ned.config import Config
from experiments.ned.systems import PRIOR, Results, System, listed, local
from experiments.run import report, runlib
from repr_jax import evaluation
from repr_jax.data.documents import candidates
from repr_jax.evaluation import linking, significance

_RANKS = (1, 2, 3, 6, 11)
_FREQUENCIES = (0, 1, 10, 100)
_DASH = "-"


def thesis_figure(system: System, test: str) -> float | None:
  """The thesis' micro F1 of a system, in percent, where it has one."""
  published = thesis.NED_F1.get((system.objective, system.contexts))
  if published is None or test not in thesis.NED_TESTS or not system.coherence:
    return None
  return published[thesis.NED_TESTS.index(test)]


def rows(run: runlib.Run, results: Results, config: Config) -> list[dict]:
  """Figures for `results.json`: recall of candidates and micro F1 in %."""
  made = []
  for test in results.corpus.tests:
    recall = results.corpus.tests[test].recall.share
    made.append(
      run.row(
        test,
        "recall of candidates, %",
        100 * recall,
        thesis=thesis.NED_RECALL.get(test),
      )
    )
    for name in results.answers:
      told = next(
        (thesis_figure(s, test) for s in listed(config) if s.name == name), None
      )
      result = results.result(name, test)
      label = f"{test}: {name}"
      made.append(run.row(label, "micro F1, %", 100 * result.f1, thesis=told))
      share = 100 * result.in_candidates
      made.append(run.row(label, "right among candidates, %", share))
  return made


def thesis_table(results: Results, config: Config) -> report.Table:
  """Objective by mention contexts, with recall in the header."""
  tests = list(results.corpus.tests)
  header = ["objective", "U2"]
  for test in tests:
    part = results.corpus.tests[test].recall
    header += [f"{test} ({part.mentions}) ({part.share:.1%})", "thesis"]
  lines = [_line(["prior alone", _DASH], results, PRIOR, tests, None)]
  for system in listed(config):
    if system.coherence:
      mark = "yes" if system.contexts == "u2" else "no"
      start = [system.objective.replace("_", "-"), mark]
      lines.append(_line(start, results, system.name, tests, system))
  title = "Micro F1 of the global model, % (mentions, recall of candidates)"
  return report.Table(title, header, lines)


def _line(start, results, name, tests, system):
  cells = list(start)
  for test in tests:
    told = thesis_figure(system, test) if system else None
    cells.append(round(100 * results.result(name, test).f1, 1))
    cells.append(_DASH if told is None else told)
  return cells


def steps_table(results: Results) -> report.Table:
  """All systems over mentions whose entity is among the candidates."""
  tests = ["validation", *results.corpus.tests]
  lines = [
    [
      name,
      *(
        round(100 * results.result(name, test).in_candidates, 2)
        for test in tests
      ),
    ]
    for name in results.answers
  ]
  return report.Table(
    "Micro F1 over mentions whose entity is among the candidates, %",
    ["system", *tests],
    lines,
  )


def gains(results: Results, config: Config) -> findings.Gains:
  """Local against prior, global against local, max-margin against VAE.

  Paired over mentions whose entity is among the candidates, in points.
  """
  alone = local(config)
  full = System(alone.objective, alone.contexts, True)
  pairs = [(PRIOR, alone.name), (alone.name, full.name)]
  vae = System("vae", alone.contexts, True)
  if vae.name in results.answers and alone.objective == "max_margin":
    pairs.append((vae.name, full.name))
  rng = np.random.default_rng(config.seed)
  made = {}
  for test in results.corpus.tests:
    for a, b in pairs:
      first, second = (_reach(results, name, test) for name in (a, b))
      if len(first):
        gain = evaluation.paired_bootstrap(first, second, rng, samples=2000)
        value, lower, upper = (100 * x for x in gain[:3])
        made[test, b, a] = significance.Difference(
          value, lower, upper, gain.p_value
        )
  return made


def gains_table(made: findings.Gains) -> report.Table:
  """The gains with their intervals."""
  return report.Table(
    "Gains over the same mentions, points, with 95 % intervals (bootstrap)",
    ["test", "difference", "gain", "lower", "upper", "p"],
    [
      [test, f"{b} - {a}", *(round(x, 2) for x in gain[:3]),
       round(gain.p_value, 4)]
      for (test, b, a), gain in made.items()
    ],
  )  # fmt: skip


def _reach(results: Results, name: str, test: str) -> np.ndarray:
  """Which mentions with their entity among the candidates are right."""
  predicted, gold = results.answers[name][test]
  among = gold >= 0
  return (predicted[among] == gold[among]).astype(float)


def error_tables(results: Results, test: str) -> list[report.Table]:
  """Accuracy of each system by rank of the entity and by frequency."""
  mentions = results.mentions(test)
  linked = np.asarray([m.entity is not None for m in mentions], bool)
  folded = results.corpus.lookup.folded.counts
  seen = np.asarray(
    [sum(folded.get(candidates.normalize(m.surface), {}).values())
     for m in mentions]
  )  # fmt: skip
  tables = []
  for title, edges in (
    ("rank of the entity among the candidates (0: absent)", (0, *_RANKS)),
    ("frequency of the mention in training", _FREQUENCIES),
  ):
    lines, header = [], ["system"]
    for name, answers in results.answers.items():
      predicted, gold = (x[linked] for x in answers[test])
      values = gold + 1 if "rank" in title else seen[linked]
      correct = (predicted == gold) & (gold >= 0)
      parts = linking.accuracy_by(values, correct, edges)
      header = ["system", *(f"{p.label} ({p.mentions})" for p in parts)]
      cells = [
        _DASH if np.isnan(p.accuracy) else round(100 * p.accuracy, 1)
        for p in parts
      ]
      lines.append([name, *cells])
    tables.append(
      report.Table(f"{test}: % right by {title} (mentions)", header, lines)
    )
  return tables
