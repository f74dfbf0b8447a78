"""The tables of chapter 3: each a set of systems over one pass of counting."""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from experiments import thesis
from experiments.mvlsa import (
  comparison,
  data,
  evaluate,
  lexicon_fit,
  train,
  weights,
)
from experiments.mvlsa.config import Config
from experiments.mvlsa.evaluate import Results, Study
from experiments.mvlsa.train import Problem
from experiments.run import report_labels
from repr_jax import multiview
from repr_jax.evaluation import tables

# Groups that an ablation also leaves out together: text as a whole, and as in
# the thesis' table morphology with frames, and these with bitext.
_TOGETHER = (
  ("text", "window"),
  ("derivation", "inflection"),
  ("derivation", "inflection", "frame"),
  ("derivation", "inflection", "frame", "bitext"),
)


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
    return comparison.run(problem)
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
      wide = dataclasses.replace(config, k=most)
      whole = train.fit(made, wide, problem.labels, earlier=whole, keep=True)
    vectors = train.vectors(whole.truncate(config.k), config)
    results[label] = problem.score(vectors)
    axis.append(place)
    figure = evaluate.mean(results[label])
    problem.report(f"{label}: tuning halves {figure:.1f}")
    if best is None or figure > best[0]:
      names = train.weighted(made, config)
      best = (figure, vectors, train.shares(whole, names))
  assert best is not None
  plot = () if name == "n" else axis
  return Study(name, results, (), plot, best[1], best[2])


def fit(problem: Problem) -> Study:
  """One fit with the run's own settings; scored if there are test sets."""
  config = problem.config
  fitted = train.fit_views(problem)
  vectors = train.vectors(fitted, config)
  names = train.names(problem)
  dropped = int((~fitted.kept).sum())
  least = config.min_support
  rare = "no view" if least == 1 else f"fewer than {least} views"
  notes = [
    f"{dropped:,} of {len(fitted.kept):,} words are in {rare} and have no "
    "vector."
  ]
  if config.view_weights != "given":
    notes.append(weights.remark(names, fitted.view_weights))
  if config.method == "stream":
    notes.append(
      f"Streaming dropped {100 * fitted.lost:.2f} % of the views' energy."
    )
  if config.synonyms:
    vectors = lexicon_fit.fitted(
      vectors, problem.lexicons, config.lexicon_steps
    )
    notes += problem.lexicons.notes
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


def _ablation(problem: Problem) -> Study:
  """All views, and all but one group at a time."""
  config = problem.config
  made = train.factors(problem)
  whole = train.fit(made, config, problem.labels)
  vectors = train.vectors(whole, config)
  results = {"all views": problem.score(vectors)}
  groups = list(dict.fromkeys(map(data.group, train.weighted(made, config))))
  left_out = {"!" + group: {group} for group in groups} if groups[1:] else {}
  for together in _TOGETHER:
    if set(together) <= set(groups):
      left_out[" ".join("!" + group for group in together)] = set(together)
  for label, dropped in left_out.items():
    kept = {n: f for n, f in made.items() if data.group(n) not in dropped}
    if not kept:
      continue
    fitted = train.fit(kept, config, problem.labels)
    other = train.vectors(fitted, config)
    results[label] = problem.score(other)
    figure = evaluate.mean(results[label])
    words = report_labels.label(label).text
    problem.report(f"{words}: tuning halves {figure:.1f}")
  gains = [
    tables.Gain(f"{label} loss", "all views", label)
    for label in list(results)[1:]
  ]
  shares = train.shares(whole, train.weighted(made, config))
  return Study("ablation", results, gains, (), vectors, shares)
