"""Packages name their doors; modules have tests of their own."""

import importlib
import inspect
import pkgutil
import re

import known
import pytest
import source

import repr_jax

_LIBRARY = [f"repr_jax.{name}" for name in repr_jax.__all__]


def _exports(package: str) -> list[str]:
  """Faults of what a package exports."""
  module = importlib.import_module(package)
  if not hasattr(module, "__all__"):
    return [f"{package}: no __all__"]
  faults = [
    f"{package}: exports the module {name}"
    for name in module.__all__
    if inspect.ismodule(getattr(module, name))
  ]
  inside = {x.name for x in pkgutil.iter_modules(module.__path__)}
  return faults + [
    f"{package}: a module has the name of {name}"
    for name in module.__all__
    if name in inside
  ]


@pytest.mark.parametrize("package", _LIBRARY)
def test_packages_export_functions_and_types(package):
  known.check(set(_exports(package)), known.EXPORTS)


def _is_stub(module: str) -> bool:
  """Whether a module has no definitions of its own to test."""
  return not any(hasattr(node, "name") for node in source.parse(module).body)


def test_every_module_has_a_test_file():
  files = {
    path.stem.removesuffix("_test")
    for path in (source.ROOT / "tests").rglob("*_test.py")
  }
  missing = set()
  for module in source.modules("repr_jax"):
    name = module.rpartition(".")[2]
    is_package = source.path_of(module).name == "__init__.py"
    if not is_package and not _is_stub(module) and name not in files:
      missing.add(module)
  known.check(missing, known.UNTESTED)


# Jitted functions behind a check of types or shapes.
_CHECKED = {"unit_rows", "violating_triple"}


@pytest.mark.parametrize(
  "name", ["kb", "linking", "multiview", "ops", "setexp"]
)
def test_the_page_lists_every_function_once(name):
  page = (source.ROOT / "repr_jax" / "README.md").read_text("utf-8")
  (section,) = re.findall(rf"^## `{name}`: .*\n([^#]*)", page, re.M)
  package = importlib.import_module(f"repr_jax.{name}")
  rows = [x.split("|") for x in section.splitlines() if "`" in x]
  jitted = {f for row in rows for f in re.findall(r"`(\w+)`", row[2])}
  listed = re.findall(r"`(\w+)`", section)
  assert sorted(listed) == sorted(x for x in package.__all__ if x[0].islower())
  assert jitted == {
    f for f in listed if f in _CHECKED or hasattr(getattr(package, f), "lower")
  }
