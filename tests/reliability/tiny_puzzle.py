"""The deduction puzzle with one model twice, which is compiled once."""

from typing import Any

from experiments import elkb, kb_puzzle

_solve = kb_puzzle.solve_puzzle


def _solve_one(model: str, *arguments: Any) -> Any:
  del model
  return _solve("B", *arguments)


def main(argv: list[str]) -> None:
  """The program."""
  kb_puzzle.solve_puzzle = _solve_one
  elkb.main(argv)
