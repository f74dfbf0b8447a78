"""The price of each group of views, from stored factors alone.

The price of a group is the loss without it (leave one out), and its mean gain
over all orders of adding groups (Shapley value). Each view also gets the share
of its variance that the other groups predict on held-out words, and a p-value
against shuffled rows.
"""

import functools
import itertools
import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np

from experiments.mvlsa import data, evaluate, train
from experiments.mvlsa.train import Factors, Problem
from experiments.run import runlib, tables
from repr_jax import multiview
from repr_jax.data import testsets
from repr_jax.data.io import files
from repr_jax.errors import InputError
from repr_jax.evaluation import pooled, similarity
from repr_jax.multiview import agreement

_FOLDS = 5
_RESAMPLES = 200  # of the items of a test set, for standard errors
_RIDGE = 1e-3  # of the regression, in units of the mean squared column


class Price(NamedTuple):
  """A group's worth on one test set, times 100.

  Attributes:
    shapley: its value.
    error: standard error of the value: over items of the test set, and over
      the orders that were drawn; NaN if too few orders were drawn.
    lost: loss of all groups if this one is left out.
    lost_error: standard error of the loss over items of the test set.
  """

  shapley: float
  error: float
  lost: float
  lost_error: float


def shapley(
  players: Sequence[str],
  worth: Callable[[frozenset[str]], np.ndarray],
  orders: int,
  rng: np.random.Generator,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
  """Shapley values and their standard errors.

  Orders are drawn in pairs, each with its reverse. If `orders` is at least the
  number of all orders, each is used once.

  Args:
    worth: from a set of players to its figures [s]; should be cached.
    orders: how many orders to draw.

  Returns:
    Value and standard error of each player, [s]. The values add up to the
    worth of all minus that of none.
  """
  drawn = _orders(list(players), orders, rng)
  gains: dict[str, list[np.ndarray]] = {name: [] for name in players}
  for order in drawn:
    group: frozenset[str] = frozenset()
    for name in order:
      larger = group | {name}
      gains[name].append(worth(larger) - worth(group))
      group = larger
  values = {name: np.mean(x, axis=0) for name, x in gains.items()}
  exact = len(drawn) == _factorial(len(players))
  errors = {}
  for name, x in gains.items():
    pairs = np.array(x)
    if not exact and len(pairs) > 2:
      pairs = pairs.reshape(-1, 2, *pairs.shape[1:]).mean(axis=1)
    spread = pairs.std(axis=0, ddof=1) if len(pairs) > 1 else pairs[0] * np.nan
    errors[name] = 0 * spread if exact else spread / np.sqrt(len(pairs))
  return values, errors


def prices(
  problem: Problem, made: Factors, orders: int
) -> dict[str, dict[str, Price]]:
  """The price of each group on each test set.

  Args:
    made: factors by the name of the view.
    orders: how many orders of groups to draw.
  """
  groups = list(dict.fromkeys(map(data.group, made)))
  if len(groups) < 2:
    raise InputError("--study=price needs two groups of views or more")
  rng = np.random.default_rng(problem.config.seed)
  draws = [_resamples(one, rng) for one in problem.sets]

  @functools.cache
  def worth(chosen: frozenset[str]) -> np.ndarray:
    if not chosen:
      return np.zeros((len(draws), 1 + _RESAMPLES))
    kept = {n: f for n, f in made.items() if data.group(n) in chosen}
    fitted = train.fit(kept, problem.config, problem.labels)
    vectors = train.vectors(fitted, problem.config)
    scored = problem.score(vectors)
    problem.report(f"price: {', '.join(sorted(chosen))}")
    return np.stack(
      [
        _figures(scored.get(one.name), one, counts)
        for one, counts in zip(problem.sets, draws)
      ]
    )

  values, errors = shapley(groups, worth, orders, rng)
  whole = worth(frozenset(groups))
  table: dict[str, dict[str, Price]] = {}
  for group in groups:
    lost = whole - worth(frozenset(groups) - {group})
    error = np.hypot(values[group][:, 1:].std(axis=1), errors[group][:, 0])
    table[group] = {
      one.name: Price(
        float(values[group][i, 0]), float(error[i]),
        float(lost[i, 0]), float(lost[i, 1:].std()),
      )
      for i, one in enumerate(problem.sets)
    }  # fmt: skip
  return table


def _resamples(one: evaluate.TestSet, rng: np.random.Generator) -> np.ndarray:
  """How often each resample of a set has each of its items, [B, items]."""
  size = len(evaluate.items(one))
  return rng.multinomial(size, np.full(size, 1 / size), size=_RESAMPLES)


def _figures(
  result: similarity.Result | None, one: evaluate.TestSet, counts: np.ndarray
) -> np.ndarray:
  """The figure on a set, then on its resamples [B, items]; 0 if unscored."""
  if result is None:
    return np.zeros(1 + len(counts))
  scored = ~np.isnan(result.scores)
  scores, counts = result.scores[scored], counts[:, scored]
  if isinstance(one, testsets.SimilaritySet):
    truth = np.asarray(one.scores)[scored]
    drawn = pooled.resampled_spearman(scores, truth, counts)
  else:
    drawn = counts @ scores / np.maximum(counts.sum(axis=1), 1)
  # A tiny set may lose all its items in a resample.
  return np.append(result.value, 100 * np.nan_to_num(drawn))


def held_out_r2(problem: Problem, made: Factors) -> dict[str, float]:
  """How much of each view the other groups predict on words held out.

  The view's singular vectors, times their singular values, are regressed on
  the space of the other groups, in five folds of its words.

  Returns:
    1 - residual / whole by view.
  """
  groups = list(dict.fromkeys(map(data.group, made)))
  shares = {}
  for group in groups:
    others = {n: f for n, f in made.items() if data.group(n) != group}
    if not others:
      continue
    fitted = train.fit(others, problem.config, problem.labels)
    space = np.asarray(fitted.model.embedding)
    for name, factor in made.items():
      if data.group(name) == group:
        rows = np.asarray(factor.row_weights) > 0
        x = space[rows].astype(np.float64)
        y = (np.asarray(factor.left) * np.asarray(factor.s))[rows]
        shares[name] = _cross_validated(x, y, problem.config.seed)
  return shares


def p_values(
  made: Factors, problem: Problem, count: int
) -> tuple[np.ndarray, dict[str, float]]:
  """p of each dimension and view against views with shuffled rows.

  Args:
    count: how often rows are shuffled; p is at least 1 / (count + 1).

  Returns:
    p of each eigenvalue against the largest of shuffled views, [k], and p of
    each view's agreement with the others.
  """
  factors, config = list(made.values()), problem.config
  values = np.asarray(train.fit(made, config, problem.labels).model.values)
  agreed = np.asarray(agreement.view_agreement(factors))
  above = np.zeros(values.shape)
  beyond = np.zeros(agreed.shape)
  for key in jax.random.split(jax.random.key(config.seed), count):
    mixed = dict(zip(made, multiview.permuted_factors(factors, key)))
    null = np.asarray(train.fit(mixed, config, problem.labels).model.values)
    above += null[0] >= values
    beyond += (
      np.asarray(agreement.view_agreement(list(mixed.values()))) >= agreed
    )
    problem.report("p-values: one more shuffle")
  by_view = (1 + beyond) / (1 + count)
  return (1 + above) / (1 + count), dict(zip(made, by_view.tolist()))


def run(run: runlib.Run, problem: Problem) -> None:
  """Prints and writes prices, held-out R^2 and p-values of a run.

  Args:
    run: that gets rows, price.md and price.json.
    problem: views and test sets.
  """
  config = problem.config
  made = train.factors(problem)
  table = prices(problem, made, config.orders)
  r2 = held_out_r2(problem, made)
  by_dimension, by_view = p_values(made, problem, config.shuffles)
  names = [s.name for s in problem.sets]
  rows = []
  for group, by_set in table.items():
    for name, price in by_set.items():
      for figure, metric, value, error in (
        (f"price of {group}", "Shapley value x 100", *price[:2]),
        (f"{group} left out", "loss x 100", *price[2:]),
      ):
        margin = 1.96 * error if np.isfinite(error) else 0.0
        run.row(
          f"{figure}, {name}", metric, value,
          lower=value - margin, upper=value + margin,
        )  # fmt: skip
    rows.append([group, *map(_cell, by_set.values())])
  columns = [tables.Column("Group: Shapley / left out, with 95 %")]
  columns += [tables.Column(name, align="right") for name in names]
  print(tables.to_text(columns, rows))
  views = [
    [name, f"{100 * r2[name]:.1f}" if name in r2 else "", f"{p:.3f}"]
    for name, p in by_view.items()
  ]
  header = ["View", "R2 held out x 100", "p of its agreement"]
  others = [tables.Column(x, align="right") for x in header]
  others[0] = tables.Column(header[0])
  print(tables.to_text(others, views))
  real = int((by_dimension <= 0.05).sum())
  note = (
    f"{real} of {len(by_dimension)} dimensions are beyond those of shuffled "
    f"rows (p <= .05, {config.shuffles} shuffles)."
  )
  print(note)
  with files.atomic_write(run.directory / "price.md") as out:
    out.write(tables.to_markdown(columns, rows) + "\n\n")
    out.write(tables.to_markdown(others, views) + f"\n\n{note}\n")
  with files.atomic_write(run.directory / "price.json") as out:
    content = {
      "prices": {
        g: {s: p._asdict() for s, p in by_set.items()}
        for g, by_set in table.items()
      },
      "held_out_r2": r2,
      "p_views": by_view,
      "p_dimensions": by_dimension.tolist(),
    }
    json.dump(content, out, indent=1)


def _cell(price: Price) -> str:
  """Both figures with the half widths of their intervals."""
  return (
    f"{price.shapley:.1f} \N{PLUS-MINUS SIGN}{1.96 * price.error:.1f} / "
    f"{price.lost:.1f} \N{PLUS-MINUS SIGN}{1.96 * price.lost_error:.1f}"
  )


def _orders(players: list[str], count: int, rng) -> list[list[str]]:
  if _factorial(len(players)) <= count:
    return [list(order) for order in itertools.permutations(players)]
  drawn = []
  for _ in range((count + 1) // 2):
    order = [players[i] for i in rng.permutation(len(players))]
    drawn += [order, order[::-1]]
  return drawn


def _factorial(n: int) -> int:
  return int(np.prod(np.arange(1, n + 1, dtype=np.float64)))


def _cross_validated(x: np.ndarray, y: np.ndarray, seed: int) -> float:
  """R^2 of ridge regressions of y [n, m] on x [n, k], in five folds."""
  fold = np.random.default_rng(seed).integers(_FOLDS, size=len(x))
  missed = whole = 0.0
  for f in range(_FOLDS):
    a, b = x[fold != f], y[fold != f]
    gram = a.T @ a
    gram += _RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    predicted = x[fold == f] @ np.linalg.solve(gram, a.T @ b)
    missed += float(((y[fold == f] - predicted) ** 2).sum())
    whole += float((y[fold == f] ** 2).sum())
  return 1 - missed / whole if whole else 0.0
