"""Compiles an experiment's programs for devices that need not be here.

python -m launch.compile --experiment=mvlsa --topology=v5e:2x2
python -m launch.compile --topology=v5e:16x16 --mesh=rows:256 --words=10000000
python -m launch.compile --experiment=nvse --topology=h100x8 --mesh=features:8
python -m launch.compile --experiment=rescal --topology=cpu:1 --json=out.json

For each program: seconds to compile, memory of a device and its limit, flops,
bytes of memory and of collectives, the time that the TPU's compiler estimates,
and the three costliest operations. Loops whose count is not known to the
compiler count once. Without a mesh the first device is compiled for.
"""

import time
from typing import Any

import jax
from absl import flags

from experiments.run import tables, workdir
from launch import command, compiled, programs, topologies
from repr_jax.errors import InputError


def define() -> None:
  """Defines the flags: of the program alone, since others have such names."""
  flags.DEFINE_enum(
    "experiment", "mvlsa", programs.EXPERIMENTS, "Whose programs."
  )
  flags.DEFINE_string("topology", "v5e:2x2", topologies.NAMES)
  flags.DEFINE_string("mesh", None, "As the experiment's --mesh.")
  flags.DEFINE_string("json", None, "File for the figures.")
  for name, (value, text) in programs.SIZES.items():
    flags.DEFINE_integer(name, value, text, lower_bound=1)


def record(
  program: programs.Program, topology: topologies.Topology, mesh: str | None
) -> dict[str, Any]:
  """Compiles one program.

  Args:
    program: the program.
    topology: what to compile for.
    mesh: of the program; None for one device.

  Returns:
    Its figures by name.
  """
  began = time.monotonic()
  try:
    made = program.lower().compile()
  except jax.errors.JaxRuntimeError as error:
    if "RESOURCE_EXHAUSTED" not in str(error):
      raise
    raise InputError(_too_large(program.name, topology, str(error))) from error
  seconds = time.monotonic() - began
  count = len(topology.devices) if mesh else 1
  figures = compiled.figures(made, count)
  if topology.memory is not None and figures.memory > topology.memory:
    used = f"{figures.memory / 2**30:.1f} GiB"
    raise InputError(_too_large(program.name, topology, used))
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


def _too_large(name: str, topology: topologies.Topology, said: str) -> str:
  """One line: what does not fit, and what would."""
  sizes = " ".join(said.split())[:160]
  return (
    f"{name!r} does not fit a device of {topology.name} "
    f"({(topology.memory or 0) / 2**30:.1f} GiB): {sizes}; "
    "share it with --mesh over more devices, or lower the sizes"
  )


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
  sizes = {name: given[name].value for name in programs.SIZES}
  try:
    topology = topologies.find(given.topology)
    made = programs.programs(
      given.experiment, sizes, given.mesh, topology.devices
    )
    records = [record(x, topology, given.mesh) for x in made]
  except InputError as error:
    command.fail(str(error))
  print(table(records))
  if given.json:
    workdir.write_json(given.json, records)


if __name__ == "__main__":
  jax.config.update("jax_platforms", "cpu")
  define()
  command.start(main)
