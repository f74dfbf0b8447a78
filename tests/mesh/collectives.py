"""Memory of a compiled program on a device, and its communication."""

import math
import re
from collections import defaultdict
from typing import Any

import jax

_KINDS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
_LINE = re.compile(rf"= (.*?) ({_KINDS})(?:-start)?\(")
_SHAPE = re.compile(r"([a-z]+)(\d+)\[([\d,]*)\]")


def moved(text: str, devices: int) -> dict[str, float]:
  """Bytes that one device gives to, or gets from, each kind of collective.

  Args:
    text: a compiled program, in which a loop's body stands once.
    devices: in a group, for what a reduce-scatter started from.
  """
  found: dict[str, float] = defaultdict(float)
  for line in text.splitlines():
    match = _LINE.search(line)
    if match is None:
      continue
    shapes, kind = match.groups()
    size = sum(
      int(bits) // 8 * math.prod(int(x) for x in dims.split(",") if x)
      for _, bits, dims in _SHAPE.findall(shapes)
    )
    found[kind] += size * (devices if kind == "reduce-scatter" else 1)
  return dict(found)


def memory(program: Any) -> int:
  """Bytes of arguments, results and temporaries on one device."""
  found = program.memory_analysis()
  return (
    found.argument_size_in_bytes
    + found.output_size_in_bytes
    - found.alias_size_in_bytes
    + found.temp_size_in_bytes
  )


def argument_bytes(tree: Any) -> int:
  """Bytes of the arrays of a tree on the first device."""
  return sum(x.addressable_shards[0].data.nbytes for x in jax.tree.leaves(tree))
