"""Arrays flow one way: packages import only what stands before them."""

import ast

import known
import pytest
import source

_METHODS = ("multiview", "setexp", "kb")
_BASE = ("errors", "ops", "data")
_ALLOWED = {
  "errors": (),
  "ops": ("errors",),
  "data": ("errors",),
  **dict.fromkeys(_METHODS, _BASE),
  "linking": _BASE + _METHODS,
  "evaluation": _BASE + _METHODS,
}
_OURS = ("repr_jax", "experiments", "launch", "tests")
# Shared by experiments, and programs that run several of them.
_SHARED = ("run", "thesis")
_PROGRAMS = ("reproduce", "bench")


def _is_allowed(module: str, name: str) -> bool:
  """Whether a module may import a name of ours."""
  top, *below = module.split(".")
  target, *inside = name.split(".")
  part = below[0] if below else ""
  other = inside[0] if inside else ""
  if top == "repr_jax":
    return target == "repr_jax" and (
      not other
      or other.startswith("__")
      or other == part
      or other in _ALLOWED.get(part, ())
    )
  if target == "repr_jax" or target == top == "launch":
    return True
  if target == "experiments" and top == "experiments":
    return not other or other in (part, *_SHARED) or part in _PROGRAMS
  if target == "experiments" and top == "launch":
    return not other or other == "run"
  return False


def _forbidden(module: str, tree: ast.Module) -> list[str]:
  """Imports of a module that go against the direction."""
  names = [name for name, _ in source.imports(module, tree)]
  ours = [name for name in names if name.split(".")[0] in _OURS]
  return [f"{module}: {x}" for x in ours if not _is_allowed(module, x)]


def test_imports_go_one_way():
  modules = source.modules(*source.PACKAGES)
  wrong = {x for m in modules for x in _forbidden(m, source.parse(m))}
  known.check(wrong, known.IMPORTS)


def test_every_package_has_its_place():
  parts = {
    name.split(".")[1] for name in source.modules("repr_jax") if "." in name
  }
  assert parts <= set(_ALLOWED)


@pytest.mark.parametrize(
  ("module", "line"),
  [
    ("repr_jax.kb.rescal_als", "from repr_jax.multiview import cca"),
    ("repr_jax.kb.rescal_als", "import repr_jax.setexp.autoencoder"),
    ("repr_jax.kb.rescal_als", "from repr_jax import evaluation"),
    ("repr_jax.kb.rescal_als", "from ..evaluation import similarity"),
    ("repr_jax.ops.sparse", "from repr_jax.data import files"),
    ("repr_jax.data.io.files", "from repr_jax import ops"),
    ("repr_jax.data.io.files", "def f():\n  from experiments import runlib"),
    ("experiments.run.runlib", "import launch.sweep"),
    ("experiments.run.runlib", "from experiments.nvse import config"),
    ("experiments.nvse.data", "from experiments.elkb import config"),
    ("experiments.nvse.data", "from experiments.explorer import app"),
    ("launch.sweep", "from tests.conventions import source"),
    ("launch.sweep", "from experiments.nvse import config"),
  ],
)
def test_a_wrong_import_is_noticed(module, line):
  assert _forbidden(module, ast.parse(line))


@pytest.mark.parametrize(
  ("module", "line"),
  [
    ("repr_jax.kb.rescal_als", "from repr_jax.ops import sparse"),
    ("experiments.nvse.data", "from experiments.run import config"),
    ("experiments.nvse.data", "from experiments import thesis"),
    ("experiments.bench.serve", "from experiments.explorer import app"),
    ("launch.sweep", "from experiments.run import config"),
  ],
)
def test_a_right_import_is_allowed(module, line):
  assert not _forbidden(module, ast.parse(line))
