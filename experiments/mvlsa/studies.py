"""The tables of chapter 3: each a set of systems over one pass of counting."""

import dataclasses
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from experiments import thesis
from experiments.mvlsa import baselines, data, evaluate, train
from experiments.mvlsa.config import Config
from experiments.mvlsa.train import Factors, Problem
from repr_jax import multiview
from repr_jax.errors import InputError
from repr_jax.evaluation import similarity, tables

Results = Mapping[str, similarity.Result]

# Groups that an ablation also leaves out together: text as a whole, and as in
# the thesis' table morphology with frames, and these with bitext.
_TOGETHER = (
  ("text", "window"),
  ("derivation", "inflection"),
  ("derivation", "inflection", "frame"),
  ("derivation", "inflection", "frame", "bitext"),
)


class Study(NamedTuple):
  """The systems of a table.

  Attributes:
    name: of the table.
    systems: results of each system by test set.
    gains: columns of differences.
    axis: place of each system on the axis of a plot; empty for none.
    vectors: of the system that is kept, [n, k].
    shares: explained share by view of that system.
    notes: remarks for the reader.
  """

  name: str
  systems: Mapping[str, Results]
  gains: Sequence[tables.Gain] = ()
  axis: Sequence[float] = ()
  vectors: np.ndarray | None = None
  shares: Mapping[str, float] | None = None
  notes: Sequence[str] = ()


def run(name: str, problem: Problem, values: Sequence[str] = ()) -> Study:
  """Runs a study.

  Args:
    name: one of `config.TABLES`.
    problem: views and test sets.
    values: settings to try; by default some of the thesis' table. A k above
      the number of singular vectors of all views is refused.

  Returns:
    The study; `cells` makes a table of it.
  """
  if name == "ablation":
    return _ablation(problem)
  if name == "comparison":
    return _comparison(problem)
  results: dict[str, Results] = {}
  axis = []
  best: tuple[float, np.ndarray, dict[str, float]] | None = None
  settings = list(_settings(name, problem, values))
  # One SVD of each view at the largest rank, one combination at the largest
  # dimension: smaller ones are cut from them.
  rank = max(config.m for _, _, config in settings)
  most = max(config.k for _, _, config in settings)
  whole: multiview.MVLSA | None = None
  for label, place, config in settings:
    if name != "k" or whole is None:
      made = train.factors(problem, dataclasses.replace(config, m=rank))
      whole = train.fit(made, dataclasses.replace(config, k=most))
    vectors = train.vectors(whole.truncate(config.k), config)
    results[label] = problem.score(vectors)
    axis.append(place)
    figure = evaluate.mean(results[label])
    problem.report(f"{label}: tuning {figure:.1f}")
    if best is None or figure > best[0]:
      best = (figure, vectors, train.shares(whole, _names(made, config)))
  assert best is not None
  plot = () if name == "n" else axis
  return Study(name, results, (), plot, best[1], best[2])


def fit(problem: Problem) -> Study:
  """One fit with the run's own settings; scored if there are test sets."""
  config = problem.config
  fitted = train.fit_views(problem)
  vectors = train.vectors(fitted, config)
  names = [view.name for view in problem.data.views]
  weights = train.view_weights(names, config)
  names = [name for name in names if weights[name] > 0]
  dropped = int((~fitted.kept).sum())
  notes = [
    f"{dropped:,} of {len(fitted.kept):,} words are in fewer than "
    f"{config.min_support} views and have no vector."
  ]
  if config.method == "stream":
    notes.append(
      f"Streaming dropped {100 * fitted.lost:.2f} % of the views' energy."
    )
  return Study(
    "comparison", {}, (), (), vectors, train.shares(fitted, names), notes
  )


def cells(study: Study, problem: Problem) -> list[dict]:
  """The study as a table with the thesis' figures and the marks of MRDS."""
  published = thesis.WORD_VECTORS.get(study.name)
  return evaluate.table(study.systems, problem.sets, published, study.gains)


def _settings(
  name: str, problem: Problem, values: Sequence[str]
) -> Iterator[tuple[str, float, Config]]:
  """Label, place on the axis and configuration of each system."""
  base = problem.config
  change = dataclasses.replace
  if name == "n":
    kinds = values or ("log", "identity", "power", "ppmi")
    for kind in kinds:
      label = {"identity": "count", "power": f"count^{base.power:g}"}
      one = change(base, nonlinearity=kind, group_nonlinearity=())
      yield label.get(kind, kind), 0.0, one
  elif name == "t":
    for t in map(int, values or (3125, 6250, 12500, 20000)):
      yield f"t={t}", t, change(base, t=t)
  elif name == "m":
    for m in map(int, values or (50, 100, 200, 300)):
      yield f"m={m}", m, change(base, m=m)
  elif name == "k":
    for k in map(int, values or (10, 25, 50, 100, 200, 300)):
      yield f"k={k}", k, change(base, k=k)
  elif name == "v":
    most = len(problem.data.views)
    default = sorted({1, max(1, most // 4), max(1, most // 2)})
    for v in map(int, values or default):
      yield f"v={v}", v, change(base, min_support=v)
  elif name == "r":
    for r in map(float, values or (1e-10, 1e-4, 1.0, 1e2, 1e4)):
      yield f"r={r:g}", r, change(base, ridge=r, relative_ridge=False)


def _names(made: Factors, config: Config) -> list[str]:
  """Views that have a weight."""
  weights = train.view_weights(list(made), config)
  return [name for name in made if weights[name] > 0]


def _ablation(problem: Problem) -> Study:
  """All views, and all but one group at a time."""
  config = problem.config
  made = train.factors(problem)
  whole = train.fit(made, config)
  vectors = train.vectors(whole, config)
  results = {"all views": problem.score(vectors)}
  groups = list(dict.fromkeys(map(data.group, _names(made, config))))
  left_out = {"!" + group: {group} for group in groups} if groups[1:] else {}
  for together in _TOGETHER:
    if set(together) <= set(groups):
      left_out[" ".join("!" + group for group in together)] = set(together)
  for label, dropped in left_out.items():
    kept = {n: f for n, f in made.items() if data.group(n) not in dropped}
    if not kept:
      continue
    other = train.vectors(train.fit(kept, config), config)
    results[label] = problem.score(other)
    problem.report(f"{label}: tuning {evaluate.mean(results[label]):.1f}")
  gains = [
    tables.Gain(f"{label} loss", "all views", label)
    for label in list(results)[1:]
  ]
  shares = train.shares(whole, _names(made, config))
  return Study("ablation", results, gains, (), vectors, shares)


def _comparison(problem: Problem) -> Study:
  """Baselines, their fusion, text views, all views, and all of it fused."""
  config = problem.config
  tried: dict[str, tuple[Results, np.ndarray]] = {}
  for name, vectors in baselines.systems(problem):
    tried[name] = (problem.score(vectors), vectors)
    problem.report(f"{name}: tuning {evaluate.mean(tried[name][0]):.1f}")
  results: dict[str, Results] = {}
  fused, notes = [], []
  for system in ("LSA", "PPMI-SVD", "skip-gram"):
    names = [name for name in tried if name.startswith(system)]
    best = max(names, key=lambda name: evaluate.mean(tried[name][0]))
    notes.append(f"{system} at its best of {len(names)} on {_TUNED}: {best}.")
    results[system] = tried[best][0]
    fused.append(baselines.as_view(system, tried[best][1]))
  own = train.factors(problem)
  results["best view"], view = _best_view(problem, own)
  notes.append(f"The best single view on {_TUNED}: {view}.")
  more, remarks = _given_vectors(problem, own, view)
  results |= more
  notes += remarks
  others = train.factors(problem, views=fused)
  text = {n: f for n, f in own.items() if data.group(n) in ("text", "window")}
  for label, made in {
    "baselines fused": others,
    "text views": text,
    "all views": own,
    "all fused": {**own, **others},
  }.items():
    fitted = train.fit(made, config)
    vectors = train.vectors(fitted, config)
    results[label] = problem.score(vectors)
    problem.report(f"{label}: tuning {evaluate.mean(results[label]):.1f}")
    if label == "all views":
      kept = vectors, train.shares(fitted, _names(made, config))
  strongest = _best_of(results, ("LSA", "PPMI-SVD", "skip-gram"))
  results = {**results, "best baseline": strongest}
  gains = [
    tables.Gain("views gain", "all views", "text views"),
    tables.Gain("gain over best baseline", "all views", "best baseline"),
    tables.Gain("gain over best view", "all views", "best view"),
    tables.Gain("fusion gain", "all fused", "all views"),
  ]
  notes += _correlations(results)
  return Study("comparison", results, gains, (), *kept, notes)


def _best_view(problem: Problem, made: Factors) -> tuple[Results, str]:
  """The strongest view alone, by the tuning sets, and its name.

  A view alone goes through the same transform as all of them: its vectors
  are its k first left singular vectors. Sets that a view knows no word of
  count as 0 for it.
  """
  tried = {}
  for name, factor in made.items():
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")  # small views know few words
      try:
        tried[name] = problem.score(_alone(factor, problem.config))
      except InputError:
        continue

  def figure(name: str) -> float:
    known = [s.name for s in problem.sets if s.name in evaluate.TUNING]
    values = [
      tried[name][s].value if s in tried[name] else 0.0
      for s in known or list(tried[name])
    ]
    return float(np.mean(values))

  best = max(tried, key=figure)
  problem.report(f"best single view, {best}: tuning {figure(best):.1f}")
  return tried[best], best


def _alone(factor: multiview.ViewFactor, config: Config) -> np.ndarray:
  """Vectors of one view by itself, [n, k] at most."""
  return np.asarray(factor.left)[:, : config.k]


def _given_vectors(
  problem: Problem, made: Factors, best: str
) -> tuple[dict[str, Results], list[str]]:
  """Other systems' vectors, raw and transformed, and lexicons added plainly.

  Lexicons are added to each of the other systems' vectors, or to the best
  view where there are none.
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
  if not config.synonyms:
    return results, []
  synonyms, one = baselines.lexicon_pairs(config.synonyms, problem)
  antonyms, two = baselines.lexicon_pairs(config.antonyms, problem)
  for name, base in (
    bases or {"best view": _alone(made[best], config)}
  ).items():
    for how, vectors in baselines.with_lexicons(base, synonyms, antonyms):
      results[f"{name} {how}"] = problem.score(vectors)
  return results, [one, two] if config.antonyms else [one]


_TUNED = ", ".join(evaluate.TUNING)


def _best_of(results: Mapping[str, Results], names: Sequence[str]) -> Results:
  """On each set the result of whichever system is best there."""
  sets = dict.fromkeys(s for name in names for s in results[name])
  return {
    s: max(
      (results[n][s] for n in names if s in results[n]), key=lambda r: r.value
    )
    for s in sets
  }


def _correlations(results: Mapping[str, Results]) -> list[str]:
  """How much fusing brings the vectors closer to the baselines."""
  notes = []
  for system in ("PPMI-SVD", "skip-gram"):
    for name, result in results[system].items():
      if name.startswith("AN-") or name == "TOEFL":
        continue
      before, after = (
        100 * similarity.system_correlation(results[label][name], result)
        for label in ("all views", "all fused")
      )
      notes.append(
        f"{name}: correlation with {system} {before:.1f} before fusing, "
        f"{after:.1f} after."
      )
  return notes
