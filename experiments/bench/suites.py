"""The suites of the benchmark: modules beside this one, with their cases."""

import importlib
import pkgutil

from experiments import bench
from experiments.bench import harness
from repr_jax import errors


def names() -> list[str]:
  """Names of the suites there are."""
  own = {"harness", "suites", "worker", "__main__"}
  modules = {module.name for module in pkgutil.iter_modules(bench.__path__)}
  return sorted(modules - own)


def choose(
  suite: str | None, size: str, cases: list[str] | None, scaling: bool
) -> list[harness.Case]:
  """The cases that the flags ask for; InputError where there is none."""
  if suite not in names():
    raise errors.InputError(
      f"--suite: there is no suite {suite!r}; there are "
      f"{', '.join(names()) or 'none yet'}"
    )
  every = importlib.import_module(f"{bench.__name__}.{suite}").cases(size)
  known = [case.name for case in every if bool(case.sizes) == scaling]
  for name in cases or ():
    if name not in known:
      raise errors.InputError(
        f"--cases: the suite {suite} has no case {name!r}; with --scaling="
        f"{str(scaling).lower()} there are {', '.join(known) or 'none'}"
      )
  chosen = known if cases is None else cases
  if not chosen:
    raise errors.InputError(f"--scaling: the suite {suite} has no such case")
  return [case for case in every if case.name in chosen]
