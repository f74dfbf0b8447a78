"""Every public name is documented, and arrays have their shapes."""

import ast
import re
from collections.abc import Iterator

import known
import pytest
import source

_SHAPE = re.compile(r"\[[^\[\]\n]*\]|any shape|scalar")
_ARRAYS = {"Array", "ndarray", "ArrayLike"}
_Definition = ast.FunctionDef | ast.ClassDef


def _public(body: list[ast.stmt]) -> Iterator[_Definition]:
  for node in body:
    if isinstance(node, _Definition) and not node.name.startswith("_"):
      yield node


def _is_overload(node: _Definition) -> bool:
  return any("overload" in ast.unparse(x) for x in node.decorator_list)


def _annotations(node: _Definition) -> Iterator[ast.expr]:
  """Types of what a function takes and returns, or of a class' fields."""
  if isinstance(node, ast.FunctionDef):
    arguments = node.args
    for argument in (
      arguments.posonlyargs + arguments.args + arguments.kwonlyargs
    ):
      if argument.annotation is not None:
        yield argument.annotation
    if node.returns is not None:
      yield node.returns
  else:
    for field in node.body:
      if isinstance(field, ast.AnnAssign):
        yield field.annotation


def _has_arrays(node: _Definition) -> bool:
  """Whether an array is among them; callables and named sets do not count."""
  for annotation in _annotations(node):
    text = ast.unparse(annotation)
    if "Callable" in text or text.startswith("dict[str, "):
      continue
    if set(re.findall(r"\w+", text)) & _ARRAYS:
      return True
  return False


def _undocumented(tree: ast.Module) -> list[str]:
  missing = [] if ast.get_docstring(tree) else ["the module"]
  for node in _public(tree.body):
    if _is_overload(node):
      continue
    text = ast.get_docstring(node)
    if not text:
      missing.append(node.name)
    elif _has_arrays(node) and not _SHAPE.search(text):
      missing.append(f"{node.name} (shapes)")
    if isinstance(node, ast.ClassDef):
      for method in _public(node.body):
        if not ast.get_docstring(method):
          missing.append(f"{node.name}.{method.name}")
  return missing


@pytest.mark.parametrize("module", source.modules("repr_jax"))
def test_public_names_are_documented(module):
  assert not _undocumented(source.parse(module))


def test_programs_say_what_they_do():
  missing = {
    f"{module}: {name}"
    for module in source.modules("experiments", "launch")
    for name in _undocumented(source.parse(module))
    if "(" not in name
  }
  assert not missing


def _begins_with_what(tree: ast.Module) -> list[str]:
  """Definitions whose docstring begins with "What" instead of a noun."""
  kinds = (ast.Module, ast.FunctionDef, ast.ClassDef)
  return [
    getattr(node, "name", "the module")
    for node in ast.walk(tree)
    if isinstance(node, kinds)
    and re.match(r"What\b", ast.get_docstring(node) or "")
  ]


def test_no_docstring_begins_with_what():
  wrong = {
    f"{module}: {name}"
    for module in source.modules(*source.PACKAGES, "tests")
    for name in _begins_with_what(source.parse(module))
  }
  known.check(wrong, known.WHAT)


@pytest.mark.parametrize(
  "text",
  [
    "def f(x):\n  '''Doc.'''",
    "'''Doc.'''\ndef f(x):\n  return x",
    "'''Doc.'''\ndef f(x: jax.Array):\n  '''Of an array.'''",
    "'''Doc.'''\ndef f(x) -> tuple[np.ndarray, int]:\n  '''An array.'''",
    "'''Doc.'''\nclass F(NamedTuple):\n  '''One.'''\n  x: jax.Array",
    "'''Doc.'''\nclass F:\n  '''One.'''\n  def g(self):\n    return 1",
  ],
)
def test_a_missing_text_is_noticed(text):
  assert _undocumented(ast.parse(text))


def test_a_docstring_that_begins_with_what_is_noticed():
  text = "class F:\n  def g(self):\n    '''What it is.'''"
  assert _begins_with_what(ast.parse(text)) == ["g"]
