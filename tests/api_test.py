"""Every door of the library keeps the promises of a pure JAX function."""

import doctest
import functools
import inspect

import jax
import jax.export
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest
from doors import kb, linking, multiview, ops, setexp

import repr_jax
from repr_jax.ops.precision import enable_x64

_PACKAGES = ("ops", "multiview", "setexp", "kb", "linking")
_TABLES = {x.__name__: x.DOORS for x in (kb, linking, multiview, ops, setexp)}
DOORS = {door.name: door for table in _TABLES.values() for door in table}
_PURE = [name for name, door in DOORS.items() if door.host is None]
_TOP = [name for name in DOORS if name.count(".") == 1]


def _function(name):
  package, function, *_ = name.split(".")
  return getattr(getattr(repr_jax, package), function)


def _call(name):
  return DOORS[name].call or _function(name)


def _with(name, field):
  """Names of the pure doors whose field is not a reason."""
  return [n for n in _PURE if not isinstance(getattr(DOORS[n], field), str)]


def _floats(tree):
  return [
    x
    for x in map(jnp.asarray, jax.tree.leaves(tree))
    if jnp.issubdtype(x.dtype, jnp.floating)
  ]


def _assert_close(one, other, tolerance):
  ours, theirs = jax.tree.leaves(one), jax.tree.leaves(other)
  assert len(ours) == len(theirs)
  for x, y in zip(ours, theirs):
    if jnp.issubdtype(jnp.asarray(x).dtype, jax.dtypes.prng_key):
      x, y = jax.random.key_data(x), jax.random.key_data(y)
    x, y = np.asarray(x), np.asarray(y)
    scale = np.max(np.abs(y), initial=1e-6, where=np.isfinite(y))
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * scale)


def test_every_exported_function_has_a_row():
  for package in _PACKAGES:
    module = getattr(repr_jax, package)
    for name in module.__all__:
      value = getattr(module, name)
      assert not inspect.ismodule(value), f"{package}.{name} is a module"
      if callable(value) and not inspect.isclass(value):
        assert f"{package}.{name}" in DOORS, f"no row for {package}.{name}"


def test_every_row_is_an_exported_function():
  for name in _TOP:
    package, function = name.split(".")
    assert function in getattr(repr_jax, package).__all__, name


@pytest.mark.parametrize("name", _TOP)
def test_the_example_of_the_docstring_runs(name):
  text = inspect.getdoc(_function(name)) or ""
  test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
  assert test.examples, f"{name} has no example"
  said: list[str] = []
  flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
  runner = doctest.DocTestRunner(verbose=False, optionflags=flags)
  runner.run(test, out=said.append)
  assert not runner.failures, "".join(said)


@pytest.mark.parametrize("name", _PURE)
def test_door_is_jitted(name):
  door = DOORS[name]
  function = door.jitted() if door.jitted else _function(name)
  assert isinstance(function, jax.stages.Wrapped), f"{name} is not jitted"
  arguments = door.args(0, np.float32)
  jitted = jax.jit(_call(name))(*arguments)
  with jax.disable_jit():
    _assert_close(jitted, _call(name)(*arguments), max(door.tolerance, 1e-3))


@pytest.mark.parametrize("name", _PURE)
def test_door_compiles_once_for_equal_shapes(name, compilations):
  door = DOORS[name]
  one, two = door.args(0, np.float32), door.args(1, np.float32)
  call = jax.jit(_call(name))
  jax.block_until_ready(call(*one))
  assert compilations.during(lambda: call(*two)) == 0


@pytest.mark.parametrize("name", _with("", "vmap"))
def test_door_under_vmap_equals_single_calls(name):
  door = DOORS[name]
  calls = [door.args(seed, np.float32) for seed in (0, 1, 2)]
  axes = (
    door.vmap if isinstance(door.vmap, tuple) else (door.vmap,) * len(calls[0])
  )
  stacked = [
    parts[0] if axis is None else jax.tree.map(lambda *x: jnp.stack(x), *parts)
    for axis, *parts in zip(axes, *calls)
  ]
  many = jax.jit(jax.vmap(_call(name), in_axes=axes))(*stacked)
  for i, arguments in enumerate(calls):
    arguments = [
      first if axis is None else own
      for axis, first, own in zip(axes, calls[0], arguments)
    ]
    alone = _call(name)(*arguments)
    _assert_close(
      jax.tree.map(lambda x, i=i: x[i], many), alone, door.tolerance
    )


@pytest.mark.parametrize("name", _with("", "grad"))
def test_gradient_equals_finite_differences(name):
  door = DOORS[name]
  with enable_x64():
    arguments = list(door.args(0, np.float64))

    def value(*chosen):
      whole = list(arguments)
      for place, x in zip(door.grad, chosen):
        whole[place] = x
      parts = _floats(_call(name)(*whole))
      return sum(
        jnp.sum(x * jnp.cos(1 + jnp.arange(x.size).reshape(x.shape)))
        for x in parts
      )

    chosen = [arguments[place] for place in door.grad]
    jax.test_util.check_grads(
      value, chosen, order=1, modes=("rev",), atol=1e-4, rtol=1e-4
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", _with("", "dtypes"))
def test_door_keeps_the_float_type(name, dtype):
  with enable_x64():
    result = _call(name)(*DOORS[name].args(0, dtype))
    assert {x.dtype for x in _floats(result)} <= {np.dtype(dtype)}


@pytest.mark.parametrize("name", _with("", "mask"))
def test_masked_garbage_changes_nothing(name):
  door = DOORS[name]
  arguments = door.args(0, np.float32)
  changed = door.mask(*arguments)
  differs = [
    not np.array_equal(np.asarray(x), np.asarray(y), equal_nan=False)
    for x, y in zip(jax.tree.leaves(arguments), jax.tree.leaves(changed))
    if not jnp.issubdtype(jnp.asarray(x).dtype, jax.dtypes.prng_key)
  ]
  assert any(differs), "the row's mask changes nothing"
  call = functools.partial(_call(name))
  _assert_close(call(*changed), call(*arguments), 1e-6)


@pytest.mark.parametrize("name", _PURE)
def test_door_lowers_for_cuda_and_tpu(name):
  arguments = DOORS[name].args(0, np.float32)
  lowered = jax.export.export(jax.jit(_call(name)), platforms=["cuda", "tpu"])(
    *arguments
  )
  assert set(lowered.platforms) == {"cuda", "tpu"}
