"""Figures of a compiled program: memory, traffic, cycles, costliest parts.

They come from the compiler: `memory_analysis`, `cost_analysis`, and the text of
the program, in which the TPU's compiler notes the cycles of each operation. A
loop runs as often as the compiler notes or, where its condition compares a
counter with a constant, as the constant says (JAX counts from 0). Any other
loop counts once.
"""

import math
import re
from collections import defaultdict
from typing import Any, NamedTuple

_KINDS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
_COLLECTIVE = re.compile(rf"= (.*?) ({_KINDS})(?:-start)?\(")
_SHAPE = re.compile(r"([a-z]+)(\d+)\[([\d,]*)\]")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.-]+) \(.*\{$")
_NAME = re.compile(r"^\s+(?:ROOT )?%?([\w.-]+) = ")
_CYCLES = re.compile(r'"estimated_cycles":"?(\d+)')
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_CONDITION = re.compile(r"condition=%?([\w.-]+)")
_LIMIT = re.compile(r"^\s+%?([\w.-]+) = [su]32\[\]\S* constant\((\d+)\)")
_BELOW = re.compile(
  r"^\s+ROOT .* compare\(%?[\w.-]+, %?([\w.-]+)\), direction=LT"
)
_CALLED = re.compile(
  r"(?:body|to_apply|true_computation|false_computation)=%?([\w.-]+)"
  r"|branch_computations=\{([^}]*)\}"
)
_SOURCE = re.compile(r'op_name="([^"]*)"')


class Operation(NamedTuple):
  """One operation: its name, and its share of all cycles."""

  name: str
  share: float


class Figures(NamedTuple):
  """The compiler's figures of a program on one device.

  Attributes:
    memory: bytes of arguments, results and temporaries.
    flops: of one call, each loop body once; None if unknown.
    accessed: bytes read and written, loop bodies once; None if unknown.
    moved: bytes that a device exchanges, by kind of collective.
    cycles: estimated, loop bodies as often as they run; None if unknown.
    costliest: the three operations with most cycles.
  """

  memory: int
  flops: float | None
  accessed: float | None
  moved: dict[str, float]
  cycles: float | None
  costliest: tuple[Operation, ...]


def figures(program: Any, devices: int) -> Figures:
  """Figures of a compiled program.

  Args:
    program: from `jax.jit(...).lower(...).compile()`.
  """
  cost = program.cost_analysis() or {}
  if isinstance(cost, list):
    cost = cost[0] if cost else {}
  text = program.as_text()
  costs = cycles(text)
  total = sum(costs.values())
  most = sorted(costs.items(), key=lambda item: -item[1])[:3]
  return Figures(
    memory(program),
    cost.get("flops"),
    cost.get("bytes accessed"),
    moved(text, devices),
    total or None,
    tuple(Operation(name, value / total) for name, value in most if total),
  )


def memory(program: Any) -> int:
  """Bytes of arguments, results and temporaries on one device."""
  sizes = program.memory_analysis()
  return (
    sizes.argument_size_in_bytes
    + sizes.output_size_in_bytes
    - sizes.alias_size_in_bytes
    + sizes.temp_size_in_bytes
  )


def moved(text: str, devices: int) -> dict[str, float]:
  """Bytes that one device gives to, or gets from, each kind of collective.

  Args:
    text: a compiled program, in which a loop's body stands once.
    devices: in a group; a reduce-scatter's result is 1 / devices of its input.
  """
  total: dict[str, float] = defaultdict(float)
  for line in text.splitlines():
    match = _COLLECTIVE.search(line)
    if match is None:
      continue
    shapes, kind = match.groups()
    size = sum(
      int(bits) // 8 * math.prod(int(x) for x in dims.split(",") if x)
      for _, bits, dims in _SHAPE.findall(shapes)
    )
    total[kind] += size * (devices if kind == "reduce-scatter" else 1)
  return dict(total)


def cycles(text: str) -> dict[str, float]:
  """Cycles of each operation in all its repetitions.

  Args:
    text: a program that was compiled for a TPU; others note no cycles.

  Returns:
    Cycles by what the operation does and comes from.
  """
  counts = _loop_counts(text)
  own: dict[str, list[tuple[str, float]]] = defaultdict(list)
  calls: dict[str, list[tuple[str, int]]] = defaultdict(list)
  entry = here = ""
  for line in text.splitlines():
    start = _COMPUTATION.match(line)
    if start:
      here = start.group(1)
      if line.startswith("ENTRY"):
        entry = here
      continue
    name = _NAME.match(line)
    if name is None:
      continue
    trips = _trips(line, counts)
    for one, several in _CALLED.findall(line):
      for called in [one] if one else several.replace("%", "").split(", "):
        calls[here].append((called, trips))
    noted = _CYCLES.search(line)
    if noted:
      source = _SOURCE.search(line)
      label = source.group(1) if source else name.group(1)
      own[here].append((label, float(noted.group(1))))
  total: dict[str, float] = defaultdict(float)

  def visit(computation: str, times: float) -> None:
    for label, count in own[computation]:
      total[label] += times * count
    for called, trips in calls[computation]:
      visit(called, times * trips)

  visit(entry, 1.0)
  return dict(total)


def _loop_counts(text: str) -> dict[str, int]:
  """The constant in each loop condition that compares with a constant."""
  counts: dict[str, int] = {}
  limits: dict[str, int] = {}
  here = ""
  for line in text.splitlines():
    start = _COMPUTATION.match(line)
    if start:
      here, limits = start.group(1), {}
    constant = _LIMIT.match(line)
    if constant:
      limits[constant.group(1)] = int(constant.group(2))
    below = _BELOW.match(line)
    if below and below.group(1) in limits:
      counts[here] = limits[below.group(1)]
  return counts


def _trips(line: str, counts: dict[str, int]) -> int:
  """How often the body of a loop runs; 1 for any other operation."""
  noted, condition = _TRIPS.search(line), _CONDITION.search(line)
  if noted:
    return int(noted.group(1))
  return counts.get(condition.group(1), 1) if condition else 1
