"""The report of entity relatedness."""

from collections.abc import Sequence
from typing import Any

from experiments import thesis
from experiments.relatedness.evaluate import Line
from experiments.run import report, runlib

_NOTE = (
  "The thesis learned from a whole dump of Wikipedia and asked the queries of "
  "Ceccarelli et al.; figures of other text or queries are not comparable. "
  "With both: python -m experiments.relatedness "
  "--preset=relatedness_thesis "
  "--corpus=enwiki-pages-articles.xml.bz2 --queries=relatedness/test.svm"
)


def make(lines: Sequence[Line]) -> report.Chapter:
  """The chapter of a run."""
  return report.Chapter(
    "Entity relatedness",
    "Cosines of entities' vectors, learned from pages (U1) and contexts of "
    "mentions (U2).",
    tables=tables(lines),
    notes=[_NOTE],
  )


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
