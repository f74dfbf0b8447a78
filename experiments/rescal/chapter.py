"""Chapter 5's first half in the main job: RESCAL on transitive relations."""

import pathlib

from experiments import thesis
from experiments.rescal import data, evaluate, findings, train
from experiments.rescal.config import Config
from experiments.run import report, runlib


def chapter(size: str, workdir: pathlib.Path) -> report.Chapter:
  """Fits the cells of the thesis' tables."""
  sizes, dims = [2047], [50, 100]
  if size == "full":
    sizes, dims = [2047, 4095, 8191], list(thesis.RESCAL_DIMS)
  relations = [data.tree(vertices) for vertices in sizes]
  cells = list(data.cells_of(relations, dims, ["full", "sub"], False))
  if size == "full":
    below = [data.hyponyms("living_thing.n.01")]
    cells += data.cells_of(below, dims, ["full", "sub"], False)
    cells += data.cells_of(below, dims, ["sub"], True)
  config = {"size": size}
  with runlib.Run("rescal", directory=workdir, config=config) as run:
    figures, wrong = train.run_cells(run, cells, Config())
    rows = evaluate.rows_of(run, cells, figures)
    run.plot("accuracy", evaluate.figure(cells, figures))
  listed = [
    (label, *edge) for label, edges in wrong.items() for edge in edges[:3]
  ]
  header = ["cell", "argument 1", "argument 2", "margin"]
  title = "Reversed pairs taken for true ones, most wrong first"
  return report.Chapter(
    title="RESCAL and transitive relations",
    summary=(
      f"RESCAL fitted by alternating least squares to closures of trees, "
      f"{len(cells)} cells of 5 runs."
    ),
    rows=rows,
    tables=[report.Table(title, header, listed)] if listed else [],
    charts=findings.charts([(cell.label, cell.dim) for cell in cells], rows),
    question=findings.QUESTION,
    answer=findings.answer(rows),
    table=findings.table(rows),
    claims=findings.claims(rows),
    notes=[
      "FullSet agrees if it is within a point of the thesis. SubSet agrees if "
      "the thesis lies in the range of our five runs, widened by half a point "
      "for rounding. FullSet's slices sum to 11', of rank one, so all but one "
      "vector of its eigenvector start are random."
    ],
  )
