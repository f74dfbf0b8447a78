"""All views against their best view, baselines and retrofitted vectors."""

from collections.abc import Mapping, Sequence

import numpy as np

from experiments.mvlsa import (
  baselines,
  data,
  evaluate,
  lexicon_fit,
  train,
  weights,
)
from experiments.mvlsa.config import Config
from experiments.mvlsa.evaluate import Results, Study
from experiments.mvlsa.train import Factors, Problem
from repr_jax import multiview
from repr_jax.data.views.collection import View
from repr_jax.evaluation import tables
from repr_jax.multiview import gcca

_TEXT = ("text", "window", "document")


def run(problem: Problem) -> Study:
  """Compares all views with text baselines, single views and lexicons.

  Args:
    problem: views and test sets. Without text there are no baselines.

  Returns:
    The study, with Williams' tests of all views against every other system.
  """
  config = problem.config
  results, fused, notes = _baselines(problem)
  singles = list(results)
  own = train.factors(problem)
  results["best view"], view = _best_view(problem, own)
  notes.append(f"The best single view on {_judged(problem)}: {view}.")
  if train.SPELLING in own:
    alone = _alone(own[train.SPELLING], config)
    results["spelling alone"] = problem.score(alone)
  results |= _given_vectors(problem, own, view)
  notes += problem.lexicons.notes
  others = train.factors(problem, views=fused) if fused else {}
  text = {n: f for n, f in own.items() if data.group(n) in _TEXT}
  contexts = {n: f for n, f in own.items() if n != train.SPELLING}
  for label, made in {
    **({"baselines fused": others} if others else {}),
    **({"text views": text} if text else {}),
    **({"without spelling": contexts} if train.SPELLING in own else {}),
    "all views": own,
    **({"all fused": {**own, **others}} if others else {}),
  }.items():
    fitted = train.fit(made, config, problem.labels)
    vectors = train.vectors(fitted, config)
    results[label] = problem.score(vectors)
    problem.report(f"{label}: tuning {problem.tuning(vectors):.1f}")
    if label == "all views":
      results |= _with_lexicons(problem, label, vectors)
      if config.synonyms:
        steps = config.lexicon_steps
        vectors = lexicon_fit.fitted(vectors, problem.lexicons, steps)
      names = train.weighted(made, config)
      kept = vectors, train.shares(fitted, names)
      if config.view_weights != "given":
        notes.append(weights.remark(names, fitted.view_weights))
  if singles:
    results["best baseline"] = _best_of(results, singles)
  gains = [
    gain
    for gain in (
      tables.Gain("views gain", "all views", "text views"),
      tables.Gain("gain over best baseline", "all views", "best baseline"),
      tables.Gain("gain over best view", "all views", "best view"),
      tables.Gain("fusion gain", "all fused", "all views"),
    )
    if gain.system in results and gain.over in results
  ]
  tests, pooled = [], []
  for pair in _tested(results):
    tests += evaluate.paired(results, problem.sets, *pair)
    pooled += evaluate.pooled(results, problem.sets, *pair)
  return Study("comparison", results, gains, (), *kept, notes, tests, pooled)


def _baselines(
  problem: Problem,
) -> tuple[dict[str, Results], list[View], list[str]]:
  """Scores LSA, PPMI-SVD and skip-gram at their best settings.

  Without text there are none.

  Returns:
    Their results, their vectors as views, and a note on each setting.
  """
  tried: dict[str, float] = {}
  best: dict[str, tuple[str, np.ndarray]] = {}
  for name, vectors in baselines.systems(problem) if problem.data.text else ():
    system = name.partition(" ")[0]
    tried[name] = problem.tuning(vectors)
    problem.report(f"{name}: tuning {tried[name]:.1f}")
    if system not in best or tried[name] > tried[best[system][0]]:
      best[system] = name, vectors
  results: dict[str, Results] = {}
  views, notes = [], []
  for system, (name, vectors) in best.items():
    count = sum(other.startswith(system) for other in tried)
    notes.append(
      f"{system} at its best of {count} on {_judged(problem)}: {name}."
    )
    results[system] = problem.score(vectors)
    views.append(baselines.as_view(system, vectors))
  return results, views, notes


def _judged(problem: Problem) -> str:
  """The names of the sets that settings were chosen on."""
  halved = bool(problem.development)
  names = evaluate.chosen_on(
    s.name for s in problem.development or problem.sets
  )
  return f"{'halves of ' * halved}{', '.join(names)}"


def _tested(results: Mapping[str, Results]) -> list[tuple[str, str]]:
  """Pairs of systems that are tested against each other.

  If there are lexicons, all views with lexicons are tested against the other
  systems, both with lexicons and without.
  """
  left_out = ("all views", "all fused", "best baseline", "text views")
  plain = [
    name
    for name in results
    if name not in left_out and not name.endswith("fitted")
  ]
  pairs = [("all views", name) for name in plain]
  for how in ("retrofitted", "counter-fitted"):
    fitted = f"all views {how}"
    if fitted in results:
      pairs += [(fitted, name) for name in ("all views", *plain)]
      pairs += [
        (fitted, name)
        for name in results
        if name.endswith(f" {how}") and name != fitted
      ]
  pairs += [
    ("text views", name)
    for name in ("best view", "skip-gram")
    if {"text views", name} <= set(results)
  ]
  return pairs + [("all fused", "all views")] * ("all fused" in results)


def _best_view(problem: Problem, made: Factors) -> tuple[Results, str]:
  """The strongest view alone, by the tuning sets, and its name.

  A view alone goes through the same transform as all views together. Spelling
  is left out: its view is learned from all others.
  """
  tried = {
    name: problem.tuning(_alone(factor, problem.config))
    for name, factor in made.items()
    if name != train.SPELLING
  }
  for name, figure in tried.items():
    problem.report(f"{name} alone: tuning {figure:.1f}")
  best = max(tried, key=lambda name: tried[name])
  return problem.score(_alone(made[best], problem.config)), best


def _alone(factor: multiview.ViewFactor, config: Config) -> np.ndarray:
  """Vectors of a fit to one view, [n, k] at most.

  Such a fit's eigenvalues are T^2, T the shrinkage of the singular values; its
  eigenvectors are the view's left singular vectors.
  """
  ridges = gcca.view_ridges([factor], config.ridge, config.relative_ridge)
  values = np.asarray(gcca.shrinkage(factor.s, ridges[0])) ** 2
  scaled = np.asarray(factor.left) * values**config.eigenvalue_power
  return scaled[:, : config.k]


def _given_vectors(
  problem: Problem, made: Factors, best: str
) -> dict[str, Results]:
  """Other systems' vectors: raw, as the only view, and retrofitted.

  Lexicons are added to each of the other systems' vectors and to the best
  view.
  """
  config = problem.config
  results: dict[str, Results] = {}
  bases: dict[str, np.ndarray] = {}
  for view in problem.data.views:
    if data.group(view.name) == "vectors":
      bases[view.name] = np.asarray(view.matrix)
      results[view.name] = problem.score(bases[view.name])
      alone = _alone(made[view.name], config)
      results[f"{view.name} transformed"] = problem.score(alone)
  bases["best view"] = _alone(made[best], config)
  for name, base in bases.items():
    results |= _with_lexicons(problem, name, base)
  return results


def _with_lexicons(
  problem: Problem, name: str, base: np.ndarray
) -> dict[str, Results]:
  """Rows of a system's vectors [n, d] fitted to the lexicons, if any."""
  if not problem.config.synonyms:
    return {}
  steps = problem.config.lexicon_steps
  return {
    f"{name} {how}": problem.score(vectors)
    for how, vectors in lexicon_fit.variants(base, problem.lexicons, steps)
  }


def _best_of(results: Mapping[str, Results], names: Sequence[str]) -> Results:
  """On each set the result of whichever system is best there."""
  sets = dict.fromkeys(s for name in names for s in results[name])
  return {
    s: max(
      (results[n][s] for n in names if s in results[n]), key=lambda r: r.value
    )
    for s in sets
  }
