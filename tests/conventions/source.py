"""The project's own source, parsed, for the convention tests."""

import ast
import functools
import pathlib
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = ("repr_jax", "experiments", "launch")


def modules(*packages: str) -> list[str]:
  """Dotted names of the modules in these packages, in order."""
  paths = [path for name in packages for path in (ROOT / name).rglob("*.py")]
  return sorted(_dotted(path.relative_to(ROOT)) for path in paths)


def _dotted(path: pathlib.Path) -> str:
  parts = path.with_suffix("").parts
  return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def path_of(module: str) -> pathlib.Path:
  """The file of a module."""
  base = ROOT.joinpath(*module.split("."))
  return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


@functools.cache
def parse(module: str) -> ast.Module:
  """The syntax tree of a module."""
  return ast.parse(path_of(module).read_text("utf-8"))


def imports(module: str, tree: ast.Module) -> Iterator[tuple[str, int]]:
  """Full names that a module imports, wherever it does, with their lines."""
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      yield from ((alias.name, node.lineno) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      base = node.module or ""
      if node.level:
        inside = module.split(".")
        is_package = path_of(module).name == "__init__.py"
        above = inside[: len(inside) - node.level + is_package]
        base = ".".join([*above, base] if base else above)
      yield from ((f"{base}.{x.name}", node.lineno) for x in node.names)
