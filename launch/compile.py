"""Compiles an experiment's programs for devices that you do not have.

python -m launch.compile --experiment=mvlsa --topology=v5e:2x2
python -m launch.compile --topology=v5e:16x16 --mesh=rows:256 --words=10000000
python -m launch.compile --experiment=nvse --topology=h100x8 --mesh=features:8
python -m launch.compile --experiment=rescal --topology=cpu:1 --json=out.json

For each program: seconds to compile, memory of a device and its limit, flops,
bytes of memory and of collectives, the time that the TPU's compiler estimates,
and the three costliest operations. A loop counts once if the compiler does not
know how often it runs. Without --mesh, programs are compiled for one device.
"""

import math
import re
import time
from typing import Any

import jax
from absl import flags

from experiments.run import tables, workdir
from launch import command, compiled, programs, topologies
from launch.shapes import Program
from repr_jax.errors import InputError


def define() -> None:
  """Defines the flags; not on import, as other programs share the names."""
  flags.DEFINE_enum(
    "experiment",
    "mvlsa",
    list(programs.EXPERIMENTS),
    "Experiment whose programs are compiled.",
  )
  flags.DEFINE_string("topology", "v5e:2x2", topologies.NAMES)
  flags.DEFINE_string("mesh", None, "As the experiment's --mesh.")
  flags.DEFINE_string("json", None, "File for the figures.")
  flags.DEFINE_string(
    "program", None, "Only programs whose names contain this text."
  )
  for name, text in programs.TEXTS.items():
    values = ", ".join(
      f"{experiment} {given.sizes[name]}"
      for experiment, given in programs.EXPERIMENTS.items()
      if name in given.sizes
    )
    flags.DEFINE_integer(
      name, None, f"{text} Default: {values}.", lower_bound=1
    )


def record(
  program: Program, topology: topologies.Topology, mesh: str | None
) -> dict[str, Any]:
  """Compiles one program.

  Args:
    mesh: of the program; None for one device.
  """
  count = len(topology.devices) if mesh else 1
  began = time.monotonic()
  try:
    made = program.lower().compile()
  except jax.errors.JaxRuntimeError as error:
    if "RESOURCE_EXHAUSTED" not in str(error):
      raise
    needed = _bytes_needed(str(error))
    raise InputError(_too_large(program, topology, needed, count)) from error
  seconds = time.monotonic() - began
  figures = compiled.figures(made, count)
  if topology.memory is not None and figures.memory > topology.memory:
    raise InputError(_too_large(program, topology, figures.memory, count))
  estimate = None
  if figures.cycles and topology.clock:
    estimate = figures.cycles / topology.clock
  return {
    "program": program.name,
    "topology": topology.name,
    "mesh": mesh,
    "compile_seconds": seconds,
    "memory_bytes": figures.memory,
    "memory_limit": topology.memory,
    "flops": figures.flops,
    "bytes_accessed": figures.accessed,
    "bytes_moved": figures.moved,
    "estimated_seconds": estimate,
    "costliest": [x._asdict() for x in figures.costliest],
  }


def _too_large(
  program: Program,
  topology: topologies.Topology,
  needed: float | None,
  devices: int,
) -> str:
  """One line: what does not fit, and what would.

  Args:
    needed: bytes of a device; None where the compiler does not tell.
    devices: that share the program.
  """
  limit = topology.memory or 0.0
  line = f"{program.name!r} does not fit a device of {topology.name}"
  if needed is None or not limit:
    more = "share it by --mesh over more devices or " if program.shared else ""
    return f"{line}; {more}lower the sizes"
  times = needed / limit
  line += f": it needs {needed / 2**30:.1f} of {limit / 2**30:.1f} GiB; "
  if program.shared:
    count = 1 << math.ceil(math.log2(devices * times))
    held = topologies.holding(count) if topology.platform == "tpu" else ""
    line += f"tables over {count} devices fit" + f" ({held})" * bool(held)
    line += ", or "
  return line + f"sizes of {math.floor(100 / times)} % of these fit"


def _bytes_needed(said: str) -> float | None:
  """Bytes in the compiler's message that memory ran out."""
  amounts = re.findall(r"([\d.]+)([MG])\b", said)
  sizes = [float(x) * {"M": 2**20, "G": 2**30}[unit] for x, unit in amounts]
  return max(sizes, default=None)


def table(records: list[dict[str, Any]]) -> str:
  """The figures as lines of text."""
  columns = (
    "program",
    tables.Column("compiled in s", ".0f"),
    tables.Column("GB a device", ".2f"),
    tables.Column("of GB", align="right"),
    tables.Column("Gflop", align="right"),
    tables.Column("GB read and written", align="right"),
    tables.Column("MB exchanged", ".1f"),
    tables.Column("estimated ms", align="right"),
  )
  rows = [
    (
      x["program"],
      x["compile_seconds"],
      x["memory_bytes"] / 1e9,
      _number(x["memory_limit"], 1e9),
      _number(x["flops"], 1e9),
      _number(x["bytes_accessed"], 1e9),
      sum(x["bytes_moved"].values()) / 1e6,
      _number(x["estimated_seconds"], 1e-3),
    )
    for x in records
  ]
  lines = [tables.to_text(columns, rows)]
  for x in records:
    lines += [
      f"{x['program']}: {y['share']:.0%} {y['name']}" for y in x["costliest"]
    ]
  return "\n".join(lines)


def _number(value: float | None, unit: float) -> str:
  return "" if value is None else f"{value / unit:,.2f}"


def main(argv: list[str]) -> None:
  """Compiles, prints and writes what the flags ask for."""
  del argv
  given: Any = flags.FLAGS
  sizes = {name: given[name].value for name in programs.TEXTS}
  try:
    topology = topologies.find(given.topology)
    made = list(
      programs.programs(given.experiment, sizes, given.mesh, topology.devices)
    )
    chosen = [x for x in made if (given.program or "") in x.name]
    if not chosen:
      names = ", ".join(repr(x.name) for x in made)
      raise InputError(f"--program={given.program}: there are {names}")
    records = [record(x, topology, given.mesh) for x in chosen]
  except InputError as error:
    command.fail(str(error))
  print(table(records))
  if given.json:
    workdir.write_json(given.json, records)


if __name__ == "__main__":
  jax.config.update("jax_platforms", "cpu")
  define()
  command.start(main)
