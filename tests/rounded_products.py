"""Products as accelerators compute them: `pytest --products=bfloat16|tf32`.

A float32 product whose precision is not asked for rounds its inputs to 8 bits
of mantissa on a TPU and to 11 on a recent GPU. With this option the tests'
processor does the same, so that a product which a promise rests on, and which
does not ask for its precision, fails the promise's test here. Products `@`
of arrays outside of a compiled function, as tests write them to compute what
they expect, stay exact.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax import lax
from jax._src.lax import lax as rules  # the rule has no public name
from jax.extend.core import primitives
from jax.interpreters import mlir

MANTISSA = {"bfloat16": 7, "tf32": 10}  # bits that are stored
_EXACT = (lax.Precision.HIGH, lax.Precision.HIGHEST)


def install(name: str) -> None:
  """Rounds the inputs of float32 products from now on.

  Args:
    name: a key of `MANTISSA`.
  """
  bits = MANTISSA[name]
  primitive = primitives.dot_general_p

  def lower(ctx: Any, left: Any, right: Any, **details: Any) -> Any:
    asked = details["precision"]
    exact = isinstance(asked, tuple) and all(x in _EXACT for x in asked)
    single = all(x.dtype == "float32" for x in ctx.avals_in)
    if exact or not single:
      return rules._dot_general_lower(
        ctx, left, right, platform="cpu", **details
      )

    def product(left: jax.Array, right: jax.Array) -> Any:
      rounded = [lax.reduce_precision(x, 8, bits) for x in (left, right)]
      finest = (lax.Precision.HIGHEST,) * 2
      return primitive.bind(*rounded, **{**details, "precision": finest})

    return mlir.lower_fun(product, multiple_results=False)(ctx, left, right)

  mlir.register_lowering(primitive, lower, platform="cpu")
  arrays: Any = type(jax.numpy.zeros(()))
  for method in ("__matmul__", "__rmatmul__"):
    setattr(arrays, method, _exactly(getattr(arrays, method)))


def _exactly(product: Callable[..., Any]) -> Callable[..., Any]:
  def exact(*operands: Any) -> Any:
    with jax.default_matmul_precision("highest"):
      return product(*operands)

  return exact
