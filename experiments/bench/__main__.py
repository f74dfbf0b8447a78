"""Measures speed and memory beside other packages.

python -m experiments.bench --suite=NAME [--size=small] [--output=bench.json]

Prints, for each case, the median seconds of each contender, the ratio of its
time to ours with its spread over the rounds (above 1: ours is faster), the
peak memory of its process with the increase over its data, and the quality of
its result. Ratios mean more than seconds on a machine that others use.
"""

import pathlib

from absl import flags

from experiments import bench
from experiments.bench import harness, suites
from experiments.run import runlib, workdir
from repr_jax import errors
from repr_jax.data.io import files

_SUITE = flags.DEFINE_string(
  "suite", None, f"The suite: {', '.join(suites.names())}."
)
_SIZE = flags.DEFINE_enum(
  "size", "small", ["small", "full"], "Size of the problems."
)
_REPEATS = flags.DEFINE_integer(
  "repeats", 5, "Number of rounds, after one that warms up.", lower_bound=1
)
_CASES = flags.DEFINE_list(
  "cases", None, "Cases of the suite to run; all by default."
)
_OUTPUT = flags.DEFINE_string("output", None, "File for the results as JSON.")
_SCALING = flags.DEFINE_bool(
  "scaling",
  False,
  "Measure the cases that have sizes at each of them, and plot time and memory "
  "beside --output as PNG.",
)
_TIMEOUT = flags.DEFINE_float(
  "timeout", 1800.0, "Seconds after which a call is aborted."
)


def main(argv: list[str]) -> None:
  """Runs the suite that the flags name."""
  del argv
  suite, size = _SUITE.value, _SIZE.value
  cases = suites.choose(suite, size, _CASES.value, _SCALING.value)
  output = None if _OUTPUT.value is None else pathlib.Path(_OUTPUT.value)
  if output is not None and not output.parent.is_dir():
    raise errors.InputError("--output: there is no such directory", path=output)
  results = harness.run_suite(
    f"{bench.__name__}.{suite}",
    size,
    cases,
    repeats=_REPEATS.value,
    timeout=_TIMEOUT.value,
  )
  around = harness.environment()
  print(harness.table(results))
  print(f"{around['cores']} cores, {around['processor']}")
  print(", ".join(f"{k} {v}" for k, v in around["versions"].items()))
  print(", ".join(f"{k}={v}" for k, v in around["settings"].items()))
  if output is not None:
    record = {"suite": suite, "size": size, "repeats": _REPEATS.value}
    workdir.write_json(output, {**record, **around, "cases": results})
  if _SCALING.value:
    picture = (output or pathlib.Path(f"{suite}.json")).with_suffix(".png")
    with files.atomic_write(picture, "wb") as out:
      out.write(runlib.figure_png(harness.scaling_plot(results, cases)))
    print(f"Plot: {picture}")


if __name__ == "__main__":
  runlib.launch(main)
