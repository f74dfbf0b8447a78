"""Chapter 6 in the main job: relatedness of entities by their vectors.

The thesis' queries need a dump of Wikipedia. The main job asks for WordNet's
classes instead: a seed, five instances of its class and twenty others.
"""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments import thesis
from experiments.relatedness import evaluate
from experiments.relatedness.config import Config
from experiments.relatedness.evaluate import Line
from experiments.run import progress, report, report_labels, runlib
from repr_jax.evaluation import significance

_FULL = Config()
_QUICK = Config(dim=50, steps=100, epochs=2, vocabulary=20_000)
_MEASURE = "MAP"
_QUESTION = "Do vectors of entities tell which entities are related?"
# Vectors that the thesis says are better, and worse.
_CLAIMS = (
  ("Contexts of mentions add to pages", "max_margin U1+U2", "max_margin U1"),
  ("Max-margin vectors beat the autoencoder's", "max_margin U1+U2",
   "vae U1+U2"),
  ("Training the autoencoder improves relatedness", "vae U1", "null U1"),
)  # fmt: skip

_NOTE = (
  "The thesis learned from a whole dump of Wikipedia and asked the queries of "
  "Ceccarelli et al.; figures of other text or queries are not comparable. "
  "With both: python -m experiments.relatedness "
  "--preset=relatedness_thesis "
  "--corpus=enwiki-pages-articles.xml.bz2 --queries=relatedness/test.svm"
)


def chapter(size: str, workdir: pathlib.Path) -> report.Chapter:
  """Learns vectors of WordNet's instances and asks for their classes."""
  config = _QUICK if size == "quick" else _FULL
  identity = dataclasses.asdict(config)
  with runlib.Run("relatedness", directory=workdir, config=identity) as run:
    lines = evaluate.evaluate(run, config, progress.say)
    rows(run, lines)
  return make(lines)


def make(lines: Sequence[Line]) -> report.Chapter:
  """The chapter of a run."""
  first = lines[0].queries if lines else ""
  own = {x.vectors: x.figures for x in lines if x.queries == first}
  shown = next((list(x.means) for x in own.values() if x.means), [])
  gaps = _gaps(own)
  covered = ", ".join(
    f"{name} {_percent(figures.coverage)}" for name, figures in own.items()
  )
  return report.Chapter(
    "Entity relatedness",
    "Cosines of entities' vectors, learned from pages (U1) and contexts of "
    "mentions (U2).",
    rows=[
      {"name": f"{first}: {name}", "metric": metric, "value": value}
      for name, figures in own.items()
      for metric, value in [*figures.means.items(),
                            ("coverage", figures.coverage)]
    ],
    tables=tables(lines),
    notes=[f"Candidates with a vector: {covered}.", _NOTE],
    question=_QUESTION,
    answer=_answer(own),
    table=report.Table(
      f"Vectors on {first}",
      ["vectors", *shown, "coverage"],
      [
        [name, *(f"{figures.means[x]:.3f}" for x in shown
                 if x in figures.means), f"{figures.coverage:.3f}"]
        for name, figures in own.items()
      ],
    ),
    charts=_charts(gaps),
    claims=_claims(gaps),
  )  # fmt: skip


def _answer(own) -> str:
  """One sentence: the best vectors."""
  known = {n: x.means for n, x in own.items() if x.means}
  if not known:
    return "No query could be scored."
  metric = next(iter(dict.fromkeys(m for x in known.values() for m in x)))
  metric = _MEASURE if all(_MEASURE in x for x in known.values()) else metric
  best = max(known, key=lambda name: known[name][metric])
  return (
    f"The best vectors are {report_labels.label(best).text}, with {metric} "
    f"{known[best][metric]:.3f}; {_percent(own[best].coverage)} of the "
    "candidates have a vector."
  )


def _percent(share: float) -> str:
  return f"{100 * share:.1f} %"


def _gaps(own) -> list[tuple[tuple[str, str, str], list[float], Any]]:
  """Each claim with both means and the gain, by bootstrap over queries."""
  made = []
  for claim in _CLAIMS:
    _, better, worse = claim
    if better not in own or worse not in own:
      continue
    first, second = own[better].queries, own[worse].queries
    asked = [q for q in first if q in second and _MEASURE in first[q]]
    if len(asked) < 2:
      continue
    pair = [np.array([x[q][_MEASURE] for q in asked]) for x in (second, first)]
    gap = significance.paired_bootstrap(
      pair[0], pair[1], np.random.default_rng(0)
    )
    made.append((claim, [float(x.mean()) for x in pair], gap))
  return made


def _claims(gaps) -> list[report.Claim]:
  """The thesis' order of vectors."""
  return [
    report.gain_claim(
      sentence,
      "MAP {first:.3f} and {second:.3f}, p = {p:.2g}",
      {"first": first, "second": second},
      gap,
    )
    for (sentence, _, _), (second, first), gap in gaps
  ]


def _charts(gaps) -> list[report.Forest]:
  """The gains that the claims are about."""
  points = [
    report.Point(
      f"{report_labels.label(better).text} minus "
      f"{report_labels.label(worse).text}",
      gap.value, gap.lower, gap.upper,
    )
    for (_, better, worse), _, gap in gaps
  ]  # fmt: skip
  caption = "Gains with 95 % intervals (paired bootstrap over queries)."
  measure = f"difference in {_MEASURE}"
  sides = ("worse", "better")
  return [report.Forest(caption, measure, points, sides=sides)][: len(points)]


def rows(run: runlib.Run, lines: Sequence[Line]) -> None:
  """Adds the figures to `results.json`."""
  for label, name, figures in lines:
    published = thesis_figures(label, name)
    for metric, value in figures.means.items():
      run.row(f"{name}: {label}", metric, value, thesis=published.get(metric))
    run.row(f"{name}: {label}", "coverage", figures.coverage)
    run.row(f"{name}: {label}", "queries skipped", len(figures.skipped))
    if "Spearman" in figures.means:
      for seed, row in figures.queries.items():
        run.row(f"{name}: {label}: {seed}", "Spearman", row["Spearman"])


def tables(lines: Sequence[Line]) -> list[report.Table]:
  """A table for each file of queries, a line for each kind of vectors.

  Args:
    lines: from `evaluate`.

  Returns:
    The tables; a measure that the thesis has is followed by its figure.
  """
  made = []
  for name in dict.fromkeys(line.queries for line in lines):
    own = [(x.vectors, x.figures) for x in lines if x.queries == name]
    measured = list(next((x.means for _, x in own if x.means), {}))
    cells: list[list[Any]] = []
    for label, figures in own:
      published = thesis_figures(label, name)
      row: list[Any] = [label]
      for metric in measured:
        value = figures.means.get(metric)
        row.append("" if value is None else round(value, 3))
        row += [published[metric]] if metric in published else []
      counts = [len(figures.queries), len(figures.skipped)]
      cells.append([*row, *counts, f"{figures.coverage:.0%}"])
    header = ["vectors"]
    for metric in measured:
      known = metric in thesis_figures(own[0][0], name)
      header += [metric] + ["thesis"] * known
    header += ["queries", "skipped", "candidates with a vector"]
    made.append(report.Table(name, header, cells))
  return made


def thesis_figures(label: str, name: str) -> dict[str, float]:
  """The thesis' figures of vectors, on queries in Ceccarelli's format."""
  if not name.endswith((".svm", ".svm.gz")):
    return {}
  objective, contexts = label.split()
  figures = thesis.RELATEDNESS[objective, contexts]
  return dict(zip(thesis.RELATEDNESS_MEASURES, figures))
