"""The promises of a pure JAX function, each as a check of one door.

Each takes the row of a door and the function to call, and raises
`AssertionError` where the promise is broken.
"""

import doctest
import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from doors.door import Door

from repr_jax.ops.precision import enable_x64

_PLATFORMS = ("cuda", "tpu")


def _is_key(x: Any) -> bool:
  return jnp.issubdtype(jnp.asarray(x).dtype, jax.dtypes.prng_key)


def _is_float(x: Any) -> bool:
  return jnp.issubdtype(jnp.asarray(x).dtype, jnp.floating)


def _floats(tree: Any) -> list[jax.Array]:
  return [x for x in map(jnp.asarray, jax.tree.leaves(tree)) if _is_float(x)]


def _numbers(tree: Any) -> Any:
  """The leaves in numpy, whose operations need no programs; keys as data."""
  return jax.tree.map(
    lambda x: np.asarray(jax.random.key_data(x) if _is_key(x) else x), tree
  )


def _stacked(*parts: Any) -> Any:
  """Equal leaves of some trees as one, with an axis for the trees."""
  if _is_key(parts[0]):
    return jnp.stack(parts)
  return np.stack([np.asarray(x) for x in parts])


def _assert_close(
  one: Any, other: Any, tolerance: float, least: float = 0.0
) -> None:
  ours, theirs = jax.tree.leaves(one), jax.tree.leaves(other)
  assert jax.tree.structure(one) == jax.tree.structure(other)
  for x, y in zip(_numbers(ours), _numbers(theirs)):
    scale = np.max(np.abs(y), initial=1e-6, where=np.isfinite(y))
    np.testing.assert_allclose(
      x, y, rtol=tolerance, atol=max(tolerance * scale, least)
    )


def example(name: str, function: Callable[..., Any]) -> None:
  """The docstring has an example, and it gives what it says."""
  text = inspect.getdoc(function) or ""
  test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
  assert test.examples, f"{name} has no example"
  said: list[str] = []
  flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
  runner = doctest.DocTestRunner(verbose=False, optionflags=flags)
  runner.run(test, out=said.append)
  assert not runner.failures, "".join(said)


def _compiled(call: Callable[..., Any]) -> Callable[..., Any]:
  """The call as one program; a door that is jitted has it already."""
  inner = call.func if isinstance(call, functools.partial) else call
  return call if isinstance(inner, jax.stages.Wrapped) else jax.jit(call)


def jit(door: Door, call: Callable[..., Any]) -> None:
  """Compiled and step by step it gives the same."""
  arguments = door.args(0, np.float32)
  with jax.disable_jit():
    expected = call(*arguments)
  tolerance = max(door.tolerance, 1e-3)
  found = _compiled(call)(*arguments)
  _assert_close(found, expected, tolerance, door.absolute)


def one_compilation(door: Door, call: Callable[..., Any], count: Any) -> None:
  """Other values of equal shapes use the program that is there."""
  one, two = door.args(0, np.float32), door.args(1, np.float32)
  assert jax.tree.map(jnp.shape, one) == jax.tree.map(jnp.shape, two)
  jax.block_until_ready(call(*one))
  assert count.during(lambda: call(*two)) == 0


def vmap(door: Door, call: Callable[..., Any]) -> None:
  """One call of three stacked examples equals three calls."""
  calls = [door.args(seed, np.float32) for seed in (0, 1, 2)]
  axes = (
    door.vmap if isinstance(door.vmap, tuple) else (door.vmap,) * len(calls[0])
  )
  assert any(axis is not None for axis in jax.tree.leaves(axes))
  stacked = [
    parts[0] if axis is None else jax.tree.map(_stacked, *parts)
    for axis, *parts in zip(axes, *calls)
  ]
  many = _numbers(jax.jit(jax.vmap(call, in_axes=axes))(*stacked))
  for i, arguments in enumerate(calls):
    own = [
      first if axis is None else x
      for axis, first, x in zip(axes, calls[0], arguments)
    ]
    one = jax.tree.map(lambda x, i=i: x[i], many)
    alone = _numbers(_compiled(call)(*own))
    _assert_close(one, alone, door.tolerance, door.absolute)


def gradient(door: Door, call: Callable[..., Any]) -> None:
  """Reverse-mode derivatives equal finite differences, in float64."""
  with enable_x64():
    arguments = list(door.args(0, np.float64))
    chosen = [arguments[place] for place in door.grad]
    leaves, structure = jax.tree.flatten(chosen)
    smooth = [i for i, x in enumerate(leaves) if _is_float(x)]
    assert smooth, "no floating argument"

    def value(parts):
      whole = list(leaves)
      for i, x in zip(smooth, parts):
        whole[i] = x
      given = list(arguments)
      for place, x in zip(door.grad, jax.tree.unflatten(structure, whole)):
        given[place] = x
      results = _floats(call(*given))
      assert results, "no floating result"
      # Scores of padding are -inf and have no gradient.
      results = [jnp.where(jnp.isneginf(x), 0, x) for x in results]
      return sum(
        jnp.sum(x * jnp.cos(1 + jnp.arange(x.size).reshape(x.shape)))
        for x in results
      )

    place = [np.asarray(leaves[i]) for i in smooth]
    rng = np.random.default_rng(0)
    way = [rng.standard_normal(x.shape) for x in place]
    program = jax.jit(jax.value_and_grad(value))  # one for all that is asked
    slopes = program(place)[1]
    found = sum(np.sum(np.asarray(x) * y) for x, y in zip(slopes, way))
    ends = [
      float(program([x + step * y for x, y in zip(place, way)])[0])
      for step in (1e-5, -1e-5)
    ]
    expected = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=1e-4)


def float_types(door: Door, call: Callable[..., Any]) -> None:
  """Results have the float type of the arguments, with 64 bits allowed."""
  with enable_x64():
    for dtype in (np.float32, np.float64):
      arguments = door.args(0, dtype)
      given = {x.dtype for x in _floats(arguments)}
      assert given <= {np.dtype(dtype)}, f"the row makes {given}"
      results = {x.dtype for x in _floats(call(*arguments))}
      assert results <= {np.dtype(dtype)}, f"{results} from {np.dtype(dtype)}"


def mask(door: Door, call: Callable[..., Any]) -> None:
  """Masked places do not change the result, whatever they hold."""
  arguments = door.args(0, np.float32)
  changed = door.mask(*arguments)
  pairs = zip(jax.tree.leaves(arguments), jax.tree.leaves(changed))
  differ = [
    not np.array_equal(np.asarray(x), np.asarray(y))
    for x, y in pairs
    if not _is_key(x)
  ]
  assert any(differ), "the row's mask changes nothing"
  one, other = (_compiled(call)(*x) for x in (changed, arguments))
  _assert_close(one, other, 1e-6, door.absolute)


def lowering(door: Door, call: Callable[..., Any]) -> None:
  """XLA gets a program for CUDA and for TPUs, without either at hand."""
  export = jax.export.export(jax.jit(call), platforms=_PLATFORMS)
  lowered = export(*door.args(0, np.float32))
  assert lowered.platforms == _PLATFORMS
