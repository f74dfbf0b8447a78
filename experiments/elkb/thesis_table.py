"""The thesis' table of WN18 (5.4.6) by one command: six systems, six rows.

python -m experiments.elkb.thesis_table --preset=elkb_fast --workdir=runs/table
    --train=DIR/train.txt.gz --valid=DIR/valid.txt --test=DIR/test.txt
    --rules=DIR/rules.tsv

Trains A and B without and with rules and T, each as `experiments.elkb` with
these flags in a folder of its own, and combines B with rules and T. The same
command resumes: what has ended is not trained again. The work directory gets
`table.md`: raw and filtered figures beside the thesis', which does not say
which of the two it has.
"""

import pathlib
import subprocess
import sys
from typing import Any

from experiments import thesis
from experiments.run import progress, tables, workdir
from repr_jax.data.io import files
from repr_jax.errors import InputError

# Folder, model and whether rules hold; T comes before what combines it.
RUNS = (
  ("A", "A", False),
  ("A_rules", "A", True),
  ("B", "B", False),
  ("T", "T", False),
  ("B_rules", "B", True),
)
_ROWS = ("A", "A_rules", "B", "B_rules", "T")
_OWN = ("model", "constrained", "noconstrained", "combine_with", "task", "mode")
_METRICS = ("mrr", "hits@3", "hits@10")


def commands(arguments: list[str]) -> tuple[pathlib.Path, dict[str, list[str]]]:
  """The commands that train the systems.

  Args:
    arguments: flags of `experiments.elkb`, with --workdir.

  Returns:
    The work directory, and the flags of each run by its folder.

  Raises:
    InputError: there is no --workdir, or a flag is this program's own.
  """
  shared, directory = [], None
  for argument in arguments:
    name, _, value = argument.lstrip("-").partition("=")
    if not argument.startswith("-"):
      raise InputError(f"{argument!r} is no flag; write --name=value")
    if name in _OWN:
      raise InputError(f"--{name} is chosen for each of the six systems")
    if name == "workdir":
      directory = value
    else:
      shared.append(argument)
  if not directory:
    raise InputError("--workdir=DIR is needed: each system has a folder there")
  root = pathlib.Path(directory)
  made = {}
  for folder, model, ruled in RUNS:
    own = [f"--model={model}", f"--workdir={root / folder}"]
    own.append("--constrained" if ruled else "--noconstrained")
    if folder == "B_rules":
      own.append(f"--combine_with={root / 'T'}")
    made[folder] = [*shared, *own]
  return root, made


def table(results: dict[str, list[dict[str, Any]]]) -> str:
  """The six rows in Markdown.

  Args:
    results: rows of `results.json` of each run, by folder.

  Returns:
    Raw and filtered MRR, HITS@3 and HITS@10 beside the thesis' figures.
  """
  named = {folder: (model, ruled) for folder, model, ruled in RUNS}
  systems = [(folder, folder, False) for folder in _ROWS]
  systems.append(("B + T", "B_rules", True))
  columns = ["system"]
  for kind in ("raw", "filtered", "thesis"):
    columns += [f"{x.replace('hits', 'HITS').upper()} {kind}" for x in _METRICS]
  rows = []
  for label, folder, joint in systems:
    values: dict[str, float] = {}
    for row in results[folder]:
      if ("B+T" in row["name"]) == joint:
        # The system's own row comes before those of its relations.
        values.setdefault(row["metric"], row["value"])
    key = ("B+T", True) if joint else named[folder]
    cells = [
      values.get(f"{metric} {kind} both")
      for kind in ("raw", "filtered")
      for metric in _METRICS
    ]
    shown = [None if x is None else f"{x:.3f}" for x in cells]
    rows.append(
      [label.replace("_", " + "), *shown, *map(str, thesis.WN18[key])]
    )
  return tables.to_markdown(columns, rows)


def main(arguments: list[str]) -> int:
  """Trains what has not ended, writes and prints the table.

  Returns:
    The exit status.
  """
  if {"--help", "-h"} & set(arguments):
    print(__doc__)
    return 0
  try:
    root, made = commands(arguments)
  except InputError as error:
    print(f"thesis_table: {error}", file=sys.stderr)
    return 2
  results = {}
  for folder, flags in made.items():
    progress.say(f"thesis_table: {folder}")
    ended = subprocess.run([sys.executable, "-m", "experiments.elkb", *flags])
    if ended.returncode:
      return ended.returncode
    path = root / folder / "results.json"
    results[folder] = workdir.read_results(path)["rows"]
  text = table(results)
  with files.atomic_write(root / "table.md", "w") as out:
    out.write(text + "\n")
  print(text)
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
