"""Every public function has a caller outside the tests, or is a door."""

import ast
import collections
import re

import known
import pytest
import source

_NAME = re.compile(r"\w+")
# Names that Python, JAX or absl call.
_CALLED_FROM_OUTSIDE = {"main", "tree_flatten", "tree_unflatten"}


def _exported(tree: ast.Module) -> set[str]:
  """Names in a module's `__all__`, and those it assigns from them."""
  for node in tree.body:
    if isinstance(node, ast.Assign) and "__all__" in map(
      ast.unparse, node.targets
    ):
      return set(ast.literal_eval(node.value))
  return set()


def _definitions(tree: ast.Module) -> dict[str, ast.AST]:
  """Public functions and classes of a module, and their public methods."""
  defined: dict[str, ast.AST] = {}
  for node in tree.body:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
      if not node.name.startswith("_"):
        defined[node.name] = node
      for method in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(method, ast.FunctionDef) and method.name[0] != "_":
          defined[f"{node.name}.{method.name}"] = method
  return defined


def _words(tree: ast.AST) -> collections.Counter[str]:
  """How often each name is used: read, imported, or in a text of code."""
  count: collections.Counter[str] = collections.Counter()
  for node in ast.walk(tree):
    if isinstance(node, ast.Name):
      count[node.id] += 1
    elif isinstance(node, ast.Attribute):
      count[node.attr] += 1
    elif isinstance(node, ast.keyword) and node.arg:
      count[node.arg] += 1
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
      # A name given as text, such as "module:name"; a sentence is no use.
      words = node.value if " " not in node.value else ""
      count.update(_NAME.findall(words))
  return count


def _uncalled(trees: dict[str, ast.Module]) -> list[str]:
  """Public definitions that no module uses, but for themselves."""
  used = sum((_words(tree) for tree in trees.values()), collections.Counter())
  doors = set().union(*map(_exported, trees.values()))
  missing = []
  for module, tree in trees.items():
    for name, node in _definitions(tree).items():
      last = name.rpartition(".")[2]
      # Methods of an exported class are for its users.
      if {last, name.partition(".")[0]} & (doors | _CALLED_FROM_OUTSIDE):
        continue
      if used[last] <= _words(node)[last]:
        lines = (node.end_lineno or 0) - node.lineno + 1
        missing.append(f"{module}.{name} ({lines} lines)")
  return missing


def test_public_functions_have_callers_outside_the_tests():
  trees = {x: source.parse(x) for x in source.modules(*source.PACKAGES)}
  missing = {x.partition(" ")[0] for x in _uncalled(trees)}
  known.check(missing, known.UNCALLED)


@pytest.mark.parametrize(
  ("text", "missing"),
  [
    ("def f(): pass", ["m.f (1 lines)"]),
    ("def f(): return f()", ["m.f (1 lines)"]),
    ("def f(): pass\nf()", []),
    ("__all__ = ['f']\ndef f(): pass", []),
    ("class A:\n  def f(self): pass\nA()", ["m.A.f (1 lines)"]),
    ("class A:\n  def f(self): pass\nA().f()", []),
    ("__all__ = ['A']\nclass A:\n  def f(self): pass", []),
    ("def f(): '''Calls f.'''", ["m.f (1 lines)"]),
    ("def f(): pass\nx = 'm:f'", []),
  ],
)
def test_a_function_without_a_caller_is_noticed(text, missing):
  assert _uncalled({"m": ast.parse(text)}) == missing
