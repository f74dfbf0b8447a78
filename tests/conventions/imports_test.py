"""Arrays flow one way: packages import only what stands before them."""

import ast

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


def _forbidden(module: str, tree: ast.Module) -> list[str]:
  """Imports of a module that go against the direction."""
  top, *below = module.split(".")
  found = []
  for name, line in source.imports(module, tree):
    target, *inside = name.split(".")
    if target not in _OURS:
      continue
    if top == "repr_jax":
      part = below[0] if below else ""
      fine = target == "repr_jax" and (
        not inside
        or inside[0].startswith("__")
        or inside[0] == part
        or inside[0] in _ALLOWED.get(part, ())
      )
    else:
      order = _OURS.index(top)
      fine = _OURS.index(target) <= order
    if not fine:
      found.append(f"{module}:{line} imports {name}")
  return found


@pytest.mark.parametrize("module", source.modules(*source.PACKAGES))
def test_imports_go_one_way(module):
  assert not _forbidden(module, source.parse(module))


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
    ("launch.sweep", "from tests.conventions import source"),
  ],
)
def test_a_wrong_import_is_noticed(module, line):
  assert _forbidden(module, ast.parse(line))
