"""Every product of the methods says which precision it needs."""

import ast

import source

_METHODS = (
  "repr_jax/ops",
  "repr_jax/multiview",
  "repr_jax/setexp",
  "repr_jax/kb",
  "repr_jax/linking",
  "repr_jax/evaluation",
)
_CALLS = {"einsum", "dot", "vdot", "tensordot", "matmul", "dot_general"}
_SAID = {"exact_products", "chosen_products"}


def _is_product(node: ast.AST) -> bool:
  if isinstance(node, ast.BinOp):
    return isinstance(node.op, ast.MatMult)
  return (
    isinstance(node, ast.Call)
    and isinstance(node.func, ast.Attribute)
    and node.func.attr in _CALLS
    and not any(x.arg == "precision" for x in node.keywords)
  )


def _says(node: ast.AST) -> bool:
  """Whether products inside of a node have a precision by a decorator."""
  if isinstance(node, ast.FunctionDef):
    named = node.decorator_list
  elif isinstance(node, ast.Call):
    named = [node.func]
  else:
    return False
  return any(isinstance(x, ast.Name) and x.id in _SAID for x in named)


def _on_host(node: ast.AST) -> bool:
  """Whether a function uses numpy and nothing of JAX."""
  if not isinstance(node, ast.FunctionDef):
    return False
  names = {x.id for x in ast.walk(node) if isinstance(x, ast.Name)}
  return "np" in names and not names & {"jnp", "jax", "lax"}


def _silent(node: ast.AST) -> list[int]:
  """Lines of products that no decorator around them covers."""
  if _says(node) or _on_host(node):
    return []
  lines = (
    [node.lineno] if isinstance(node, ast.expr) * _is_product(node) else []
  )
  return lines + [x for y in ast.iter_child_nodes(node) for x in _silent(y)]


def _uses_jax(module: str) -> bool:
  names = [x for x, _ in source.imports(module, source.parse(module))]
  return any(x == "jax.numpy" for x in names)


def test_products_name_their_precision():
  modules = [m for m in source.modules(*_METHODS) if _uses_jax(m)]
  assert len(modules) > 50
  wrong = {m: x for m in modules if (x := _silent(source.parse(m)))}
  assert not wrong


def test_a_product_without_a_precision_is_seen():
  silent = ast.parse("def f(x):\n  return x @ x\n")
  said = ast.parse("@exact_products\ndef f(x):\n  return x @ x\n")
  inline = ast.parse("f = jax.jit(chosen_products(lambda x: x @ x))\n")
  given = ast.parse("y = jnp.dot(x, x, precision=HIGHEST)\n")
  assert _silent(silent) == [2]
  assert not (_silent(said) or _silent(inline) or _silent(given))
