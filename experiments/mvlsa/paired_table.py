"""The table of paired tests: each system against others, set by set."""

from experiments.mvlsa import evaluate
from experiments.run import runlib, tables
from repr_jax.data.io import files

_MEAN = "mean [95 % interval]"


def run(run: runlib.Run, study: evaluate.Study) -> None:
  """Writes and prints gain, r_s and p of each pair of systems by set.

  For a gain that is not significant, the table also has the number of pairs of
  the set and the number that the gain needs.

  Args:
    run: the run to which rows and tests.md are written.
  """
  by_set: dict[str, dict[str, str]] = {}
  for test in study.tests:
    label = f"{test.system} over {test.over}"
    run.row(f"{label}, {test.name}", "p (Williams)", test.p_value)
    shown = f"{test.gain:+.1f}, r {test.correlation:.2f}, p {test.p_value:.2g}"
    if test.p_value >= 0.05 and test.needed < 1e6:
      shown += f", {test.pairs:,} of {test.needed:,.0f} pairs"
    by_set.setdefault(label, {})[test.name] = shown
  names = list(dict.fromkeys(test.name for test in study.tests))
  for one in study.pooled:
    label, gain = f"{one.system} over {one.over}", one.gain
    run.row(f"{label}, mean of sets", "p (bootstrap)", gain.p_value)
    by_set[label][_MEAN] = (
      f"{gain.value:+.1f} [{gain.lower:.1f}, {gain.upper:.1f}], "
      f"p {gain.p_value:.2g}"
    )
  names += [_MEAN] * bool(study.pooled)
  columns = [tables.Column("Gain, r_s, p (Williams); pairs, of pairs needed")]
  columns += [tables.Column(name, align="right") for name in names]
  rows = [
    [label, *(cells.get(name, "-") for name in names)]
    for label, cells in by_set.items()
  ]
  with files.atomic_write(run.directory / "tests.md") as out:
    out.write(tables.to_markdown(columns, rows) + "\n")
  print(tables.to_text(columns, rows))
