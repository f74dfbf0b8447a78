"""The table of test sets: their sizes and smallest significant differences."""

from collections.abc import Sequence

from experiments.mvlsa import evaluate
from experiments.run import runlib
from experiments.run import tables as text_tables
from repr_jax.data import testsets
from repr_jax.data.io import files
from repr_jax.evaluation import tables

_LEVELS = (0.01, 0.05)
_CORRELATIONS = (0.5, 0.7, 0.9)
_NOTE = (
  "MRDS p/r: a difference as large has p at most p for any two systems that "
  "correlate by r or more. A smaller one may be significant too: test the "
  "pair of systems (Williams)."
)


def run(run: runlib.Run, sets: Sequence[evaluate.TestSet]) -> None:
  """Prints the sets with their MRDS, and writes sets.md and rows.

  Args:
    run: that gets the rows.
  """
  levels = [(p, r) for p in _LEVELS for r in _CORRELATIONS]
  header = ["Test set", "items", *(f"MRDS {p:g}/{r:g}" for p, r in levels)]
  columns = [text_tables.Column(name, align="right") for name in header]
  columns[0] = text_tables.Column(header[0])
  rows = []
  for test_set in sets:
    size = len(evaluate.items(test_set))
    similar = isinstance(test_set, testsets.SimilaritySet)
    kind = "correlation" if similar else "accuracy"
    cells = []
    for p, r in levels:
      value = tables.threshold(size, kind, p0=p, r=r)
      run.row(f"MRDS of {test_set.name}, {p:g}/{r:g}", "x 100", value)
      cells.append(f"{value:.1f}")
    rows.append([test_set.name, f"{size:,}", *cells])
  with files.atomic_write(run.directory / "sets.md") as out:
    out.write(text_tables.to_markdown(columns, rows) + f"\n\n{_NOTE}\n")
  print(text_tables.to_text(columns, rows))
  print(_NOTE)
