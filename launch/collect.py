"""Collects the results of runs into one table, with plots.

python -m launch.collect runs/sweeps/NAME
    all runs below: prints the table as Markdown and writes collected.csv,
    collected.md and plots/*.png there
python -m launch.collect runs/sweeps/NAME --format=parquet
    collected.parquet in place of collected.csv
python -m launch.collect runs/elkb runs/sweeps/* --output=out
    --figures="mrr filtered both,hits@10"
    several directories, some figures, another place for the files

Runs that differ only in their seed are one line: thesis, ours (the mean over
seeds), its spread (standard deviation) and the number of seeds. A flag in
which runs differ is a column. Where settings have three seeds or more, the
best is bold, and so are those not significantly worse; the others carry a
dagger. Where runs have validation figures, the setting that is best by the
first of them is named below the table. A metric whose better direction is
unknown gets no marks. Each swept flag gets a plot of the figures against it.
Directories that are empty or broken are named, the others still collected; the
exit code is then 1.
"""

import importlib.util
import pathlib
import re
import sys

from absl import flags

from experiments.run import progress, runlib
from launch import plots, results, tables
from repr_jax import errors
from repr_jax.data.io import files

_OUTPUT = flags.DEFINE_string(
  "output", None, "Directory for the files. Default: the first one given."
)
_FIGURES = flags.DEFINE_list(
  "figures",
  [],
  'Only figures whose "NAME: METRIC" contains one of these. Default: all.',
)
_LOWER = flags.DEFINE_list(
  "lower_is_better",
  [],
  "Metrics of which less is better. Losses, perplexities, times, errors, "
  "violations and ranks need not be named.",
)
_HIGHER = flags.DEFINE_list(
  "higher_is_better",
  [],
  "Metrics of which more is better. Accuracies, correlations, MRR, MAP, F1 and "
  "the like need not be named. In other metrics the best is not marked.",
)
_FORMAT = flags.DEFINE_enum(
  "format", "csv", ["csv", "parquet"], "Format of the file of all figures."
)
_PLOTS = flags.DEFINE_bool("plots", True, "Plot figures against swept flags.")


def _write(folder: pathlib.Path, lines: list[results.Line]) -> None:
  text = tables.to_csv(lines).encode()
  if _FORMAT.value == "parquet":
    text = _to_parquet(text)
  folder.mkdir(parents=True, exist_ok=True)
  for name, content in (
    (f"collected.{_FORMAT.value}", text),
    ("collected.md", tables.to_markdown(lines).encode()),
  ):
    with files.atomic_write(folder / name, "wb") as out:
      out.write(content)
  if not _PLOTS.value:
    return
  try:
    import matplotlib  # noqa: F401
  except ImportError:
    progress.say("no plots: pip install 'repr_jax[plot]', or --noplots")
    return
  for name, figure in plots.against_flags(lines):
    clean = re.sub(r"[^\w.-]+", "_", name)
    path = folder / "plots" / f"{clean}.png"
    path.parent.mkdir(exist_ok=True)
    with files.atomic_write(path, "wb") as out:
      out.write(runlib.figure_png(figure))


def _to_parquet(text: bytes) -> bytes:
  """A CSV file as Parquet, with the types that its columns have."""
  import pyarrow
  from pyarrow import csv, parquet

  out = pyarrow.BufferOutputStream()
  parquet.write_table(csv.read_csv(pyarrow.py_buffer(text)), out)
  return out.getvalue().to_pybytes()


def _wanted(text: str) -> bool:
  parts = _FIGURES.value
  return not parts or any(part in text for part in parts)


def main(argv: list[str]) -> int | None:
  """Collects the directories on the command line; returns the exit code."""
  folders = [pathlib.Path(argument) for argument in argv[1:]]
  if not folders:
    raise errors.InputError("which directories? python -m launch.collect DIR")
  if _FORMAT.value == "parquet" and not importlib.util.find_spec("pyarrow"):
    raise errors.InputError(
      "--format=parquet needs pyarrow: pip install 'repr_jax[launch]'"
    )
  runs = results.read(folders)
  for problem in runs.broken:
    progress.say(f"error: {problem}")
  if runs.unfinished:
    names = ", ".join(map(str, runs.unfinished))
    progress.say(f"note: not finished, left out: {names}")
  if not runs.results:
    raise errors.InputError("no finished run was found")
  better = dict.fromkeys(_LOWER.value, True)
  better |= dict.fromkeys(_HIGHER.value, False)
  lines = results.lines(runs.results, _wanted, better)
  if not lines:
    raise errors.InputError(
      f"--figures: none of {len(runs.results)} runs has such a figure"
    )
  _write(pathlib.Path(_OUTPUT.value or folders[0]), lines)
  sys.stdout.write(tables.to_markdown(lines))
  return 1 if runs.broken else None


if __name__ == "__main__":
  runlib.launch(main, of_a_run=False, arguments=True)
