"""A light experiment: keeps the contract of a run, and never sees JAX."""

import json
import pathlib
import signal
import sys
import time

from absl import app, flags

from experiments.run import workdir

_WORKDIR = flags.DEFINE_string("workdir", None, "Work directory.")
_SEED = flags.DEFINE_integer("seed", 0, "Seed.")
_X = flags.DEFINE_float("x", 0.5, "A number.")
_KIND = flags.DEFINE_enum("kind", "a", ["a", "b"], "A choice.")
_STEPS = flags.DEFINE_integer("steps", 0, "Steps of a tenth of a second.")
_NEEDS = flags.DEFINE_string("needs", None, "A file without which it fails.")


def main(argv):
  """Counts steps, which outlive an interruption, then writes a figure."""
  del argv
  folder = pathlib.Path(_WORKDIR.value)
  lock = workdir.Lock(folder)
  record = {"experiment": "fake", "flags": workdir.flag_values(), "seed": 0}
  workdir.claim(folder, json.loads(json.dumps(record)), {"workdir"})
  if _NEEDS.value and not pathlib.Path(_NEEDS.value).exists():
    print("error: what is needed is not there")
    sys.exit(2)
  memory = folder / "steps.txt"
  done = len(memory.read_text().split()) if memory.exists() else 0
  for step in range(done, _STEPS.value):
    with open(memory, "a") as out:
      out.write(f"{step}\n")
    time.sleep(0.1)
  row = {"name": f"fake {_KIND.value}", "metric": "accuracy"}
  row["value"] = 10 * _X.value + _SEED.value
  rows = [row, {"name": "fake", "metric": "steps", "value": _STEPS.value}]
  workdir.write_json(
    folder / "results.json", {"experiment": "fake", "rows": rows}
  )
  lock.release()


if __name__ == "__main__":
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
  try:
    app.run(main)
  except KeyboardInterrupt:
    sys.exit(130)
