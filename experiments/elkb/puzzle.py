"""The deduction puzzle of thesis 5.4.5, with and without rules."""

import jax
import numpy as np
from scipy import stats

from experiments import thesis
from experiments.elkb.config import Config
from experiments.run import runlib
from repr_jax.data.deduction import deduce
from repr_jax.kb import pair_training, rule_check, rule_compiler
from repr_jax.kb import puzzle as deduction

_ROUNDING = 0.005  # error of two-digit figures


def solve_puzzle(
  model: str, asked: Config
) -> dict[bool, tuple[deduction.Metrics, float]]:
  """The puzzle with and without rules, from the same starts.

  Args:
    model: "A" or "B".
    asked: runs, seed and numbers of the rules.

  Returns:
    Metrics and the largest violation in all runs, by whether rules held.
  """
  puzzle = deduction.criminal_puzzle()
  names = puzzle.relations, puzzle.entities
  right = deduce(puzzle.facts, puzzle.rules, *names).derived
  keys = jax.random.split(jax.random.key(asked.seed), asked.puzzle_runs)
  config = pair_training.SGDConfig(
    len(puzzle.entities), len(puzzle.relations), model, dim=25, batch_size=1
  )
  outcome = {}
  for constrained in (False, True):
    compiled = None
    if constrained:
      compiled = rule_compiler.compile_rules(
        model, puzzle.rules, *names, asked.rule_config
      )
    params, values = deduction.solve(config, compiled, puzzle, keys, scale=0.5)
    worst = max(
      rule_check.check_rules(
        model,
        jax.tree.map(lambda x, i=i: x[i], params),
        puzzle.rules,
        *names,
        compiled,
        samples=512,
      ).worst
      for i in range(asked.puzzle_runs)
    )
    metrics = deduction.rank_metrics(np.asarray(values), puzzle.facts, right)
    outcome[constrained] = metrics, worst
  return outcome


def puzzle_rows(run: runlib.Run, asked: Config) -> None:
  """Writes the puzzle's figures for models A and B."""
  for model in ("A", "B"):
    outcome = solve_puzzle(model, asked)
    for constrained, (metrics, worst) in outcome.items():
      name = f"puzzle {model}{' + rules' if constrained else ''}"
      told = thesis.PUZZLE[model, constrained]
      rows = (
        ("P@10", metrics.precision, told[0]),
        ("MRR", metrics.reciprocal, told[1]),
        (
          "MAP (entailed facts in the first ten)",
          metrics.average_at_10,
          told[2],
        ),
        ("MAP (all entailed facts)", metrics.average, None),
      )
      for metric, values, figure in rows:
        lower, upper = _interval(values)
        run.row(
          name, metric, values.mean(), thesis=figure, lower=lower, upper=upper
        )
      run.row(name, "largest rule violation", worst)
    for metric, p in paired_tests(outcome[False][0], outcome[True][0]).items():
      run.row(f"puzzle {model}", f"paired t-test of {metric}, p", p)


def paired_tests(
  before: deduction.Metrics, after: deduction.Metrics
) -> dict[str, float]:
  """Two-sided paired t-tests over runs from the same starts.

  Args:
    before: metrics of the runs without rules.
    after: metrics of the same runs with rules.

  Returns:
    The p-value of each metric; 1 where all runs are equal, 0 where all differ
    by the same amount.
  """
  pairs = {
    "P@10": (after.precision, before.precision),
    "MRR": (after.reciprocal, before.reciprocal),
    "MAP": (after.average, before.average),
  }
  values = {}
  for metric, (new, old) in pairs.items():
    gain = np.asarray(new) - np.asarray(old)
    if np.ptp(gain) < 1e-12:
      values[metric] = float(abs(gain[0]) < 1e-12)
    else:
      values[metric] = float(stats.ttest_rel(new, old).pvalue)
  return values


def _interval(values: np.ndarray) -> tuple[float, float]:
  """95 % interval of the mean over runs, widened by the thesis' rounding."""
  half = _ROUNDING
  if len(values) > 1:
    half += stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
  return float(values.mean() - half), float(values.mean() + half)
