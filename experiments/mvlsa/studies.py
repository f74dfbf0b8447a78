"""The tables of chapter 3: each a set of systems over one pass of counting."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from experiments.mvlsa import baselines, data, evaluate, thesis
from experiments.mvlsa.config import Options
from experiments.mvlsa.fitting import Combination
from experiments.mvlsa.session import Session
from repr_jax.evaluation import similarity, tables

NAMES = ("n", "t", "m", "k", "v", "r", "ablation", "comparison")

Results = Mapping[str, similarity.Result]


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


def run(name: str, session: Session, values: Sequence[str] = ()) -> Study:
  """Runs a study.

  Args:
    name: one of `NAMES`.
    session: views and test sets.
    values: settings to try; by default those of the thesis' table as far as
      the views have them.

  Returns:
    The study; `cells` makes a table of it.
  """
  if name == "ablation":
    return _ablation(session)
  if name == "comparison":
    return _comparison(session)
  found: dict[str, Results] = {}
  axis = []
  best = None
  settings = list(_settings(name, session, values))
  # One SVD of each view at the largest rank, one combination at the largest
  # dimension: smaller ones are cut from them.
  rank = max(options.m for _, _, options in settings)
  whole = None
  for label, place, options in settings:
    factors = session.factors(dataclasses.replace(options, m=rank))
    if name != "k" or whole is None:
      most = max(options.k for _, _, options in settings)
      whole = session.combine(factors, dataclasses.replace(options, k=most))
    combined = _cut(whole, options.k)
    found[label] = session.score(combined.embedding)
    axis.append(place)
    session.report(f"{label}: tuning {evaluate.mean(found[label]):.1f}")
    figure = evaluate.mean(found[label])
    if best is None or figure > best[0]:
      best = (figure, combined)
  assert best is not None
  plot = () if name == "n" else axis
  return Study(name, found, (), plot, best[1].embedding, best[1].shares)


def cells(study: Study, session: Session) -> list[dict]:
  """The study as a table with the thesis' figures and the marks of MRDS."""
  published = thesis.FIGURES.get(study.name)
  return evaluate.table(study.systems, session.sets, published, study.gains)


def _settings(
  name: str, session: Session, values: Sequence[str]
) -> Iterator[tuple[str, float, Options]]:
  """Label, place on the axis and options of each system."""
  base = session.options
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
    most = len(session.views)
    default = sorted({1, max(1, most // 4), max(1, most // 2)})
    for v in map(int, values or default):
      yield f"v={v}", v, change(base, min_support=v)
  elif name == "r":
    for r in map(float, values or (1e-10, 1e-4, 1.0, 1e2, 1e4)):
      yield f"r={r:g}", r, change(base, ridge=r, relative_ridge=False)


def _cut(combined: Combination, k: int) -> Combination:
  """The first k dimensions."""
  return combined._replace(
    embedding=combined.embedding[:, :k], values=combined.values[:k]
  )


def _ablation(session: Session) -> Study:
  """All views, and all but one group at a time."""
  factors = session.factors()
  whole = session.combine(factors)
  found = {"all views": session.score(whole.embedding)}
  groups = list(dict.fromkeys(data.group(f.name) for f in factors))
  left_out = {"!" + group: {group} for group in groups} if groups[1:] else {}
  if {"text", "window"} <= set(groups):
    left_out["!text !window"] = {"text", "window"}
  for label, dropped in left_out.items():
    kept = [f for f in factors if data.group(f.name) not in dropped]
    if not kept:
      continue
    found[label] = session.score(session.combine(kept).embedding)
    session.report(f"{label}: tuning {evaluate.mean(found[label]):.1f}")
  gains = [
    tables.Gain(f"{label} loss", "all views", label)
    for label in list(found)[1:]
  ]
  return Study("ablation", found, gains, (), whole.embedding, whole.shares)


def _comparison(session: Session) -> Study:
  """Baselines, their fusion, text views, all views, and all of it fused."""
  tried: dict[str, tuple[Results, np.ndarray]] = {}
  for name, vectors in baselines.systems(session):
    tried[name] = (session.score(vectors), vectors)
    session.report(f"{name}: tuning {evaluate.mean(tried[name][0]):.1f}")
  found: dict[str, Results] = {}
  fused, notes = [], []
  for system in ("LSA", "PPMI-SVD", "skip-gram"):
    names = [name for name in tried if name.startswith(system)]
    best = max(names, key=lambda name: evaluate.mean(tried[name][0]))
    notes.append(f"{system} at its best of {len(names)} on {_TUNED}: {best}.")
    found[system] = tried[best][0]
    fused.append(baselines.as_view(system, tried[best][1]))
  own = session.factors()
  others = session.factors(views=fused)
  text = [f for f in own if data.group(f.name) in ("text", "window")]
  # k is cut where there are fewer singular vectors in all.
  for label, factors in {
    "baselines fused": others,
    "text views": text,
    "all views": own,
    "all fused": [*own, *others],
  }.items():
    combined = session.combine(factors)
    found[label] = session.score(combined.embedding)
    session.report(f"{label}: tuning {evaluate.mean(found[label]):.1f}")
    if label == "all views":
      kept = combined
  strongest = _best_of(found, ("LSA", "PPMI-SVD", "skip-gram"))
  found = {**found, "best baseline": strongest}
  gains = [
    tables.Gain("views gain", "all views", "text views"),
    tables.Gain("gain over best baseline", "all views", "best baseline"),
    tables.Gain("fusion gain", "all fused", "all views"),
  ]
  notes += _correlations(found)
  return Study(
    "comparison", found, gains, (), kept.embedding, kept.shares, notes
  )


_TUNED = ", ".join(evaluate.TUNING)


def _best_of(found: Mapping[str, Results], names: Sequence[str]) -> Results:
  """On each set the result of whichever system is best there."""
  sets = dict.fromkeys(s for name in names for s in found[name])
  return {
    s: max((found[n][s] for n in names if s in found[n]), key=lambda r: r.value)
    for s in sets
  }


def _correlations(found: Mapping[str, Results]) -> list[str]:
  """How much fusing brings the vectors closer to the baselines."""
  notes = []
  for system in ("PPMI-SVD", "skip-gram"):
    for name, result in found[system].items():
      if name.startswith("AN-") or name == "TOEFL":
        continue
      before, after = (
        100 * similarity.system_correlation(found[label][name], result)
        for label in ("all views", "all fused")
      )
      notes.append(
        f"{name}: correlation with {system} {before:.1f} before fusing, "
        f"{after:.1f} after."
      )
  return notes
