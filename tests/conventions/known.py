"""Exceptions from the conventions; these lists may only shrink."""


def check(wrong: set[str], allowed: set[str]) -> None:
  """Fails for what is wrong and not among the exceptions."""
  assert wrong <= allowed, "\n".join(sorted(wrong - allowed))


# Public names that no module outside the tests uses.
UNCALLED: set[str] = set()


# Imports against the direction.
IMPORTS: set[str] = set()


# Docstrings that begin with "What".
WHAT: set[str] = set()


# Names that say nothing, or in British spelling.
NAMES: set[str] = set()


# Faults of what packages export.
EXPORTS: set[str] = set()


# Modules without a test file of their own name.
UNTESTED: set[str] = set()
