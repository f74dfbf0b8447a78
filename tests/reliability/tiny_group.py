"""Two runs of a knowledge base in one program, as a sweep starts them."""

import json
import pathlib
import sys

from experiments.run import shutdown
from launch import vmapped_group
from repr_jax.data.io import files

_FLAG = "--workdir="


def launch() -> None:
  """Takes the flags of one run, and makes a second one with another seed."""
  shared = [x for x in sys.argv[1:] if not x.startswith(_FLAG)]
  (given,) = (x for x in sys.argv if x.startswith(_FLAG))
  folder = pathlib.Path(given[len(_FLAG) :])
  folders = (folder, folder.with_name("second"))
  runs = [
    {
      "directory": str(place),
      "arguments": [*shared, f"--seed={seed}", f"{_FLAG}{place}"],
    }
    for seed, place in enumerate(folders)
  ]
  group = folder.with_name("group.json")
  try:
    with files.atomic_write(group, "w") as out:
      json.dump({"experiment": "experiments.elkb", "runs": runs}, out)
  except OSError as error:  # the sweep's own file
    print(f"error: {shutdown.describe(error)}")
    sys.exit(1)
  sys.exit(vmapped_group.main([f"--group={group}"]))
