"""Every door of the library keeps the promises of a pure JAX function."""

import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers
from doors import baselines, checks, kb, linking, multiview, ops, setexp
from doors.door import Door

import repr_jax

_PACKAGES = ("ops", "multiview", "setexp", "kb", "linking")
_TABLES = (ops, multiview, setexp, baselines, kb, linking)
DOORS = {door.name: door for table in _TABLES for door in table.DOORS}
_PURE = [name for name, door in DOORS.items() if door.host is None]
_TOP = [name for name in DOORS if name.count(".") == 1]


def _function(name):
  package, function, *_ = name.split(".")
  return getattr(getattr(repr_jax, package), function)


def _call(name):
  return DOORS[name].call or _function(name)


def _with(field):
  """Names of the pure doors whose field is not a reason."""
  return [n for n in _PURE if not isinstance(getattr(DOORS[n], field), str)]


@pytest.mark.parametrize("package", _PACKAGES)
def test_every_exported_function_has_a_row(package):
  module = getattr(repr_jax, package)
  for name in module.__all__:
    value = getattr(module, name)
    assert not inspect.ismodule(value), f"{package}.{name} is a module"
    if callable(value) and not inspect.isclass(value):
      assert f"{package}.{name}" in DOORS, f"no row for {package}.{name}"


@pytest.mark.parametrize("name", DOORS)
def test_every_row_is_an_exported_function(name):
  package, function, *_ = name.split(".")
  assert function in getattr(repr_jax, package).__all__
  # The init and update of a pair stand beside the function that makes them.
  assert f"{package}.{function}" in DOORS
  assert DOORS[name].call or name in _TOP


def test_no_door_has_two_rows():
  assert set(_SLOW_STEPS) <= set(_PURE)
  assert sum(len(table.DOORS) for table in _TABLES) == len(DOORS)


@pytest.mark.long  # each has shapes of its own to compile for
@pytest.mark.parametrize("name", _TOP)
def test_the_example_of_the_docstring_runs(name):
  checks.example(name, _function(name))


@pytest.mark.parametrize("name", [name for name in _TOP if name in _PURE])
def test_door_is_jitted(name):
  door = DOORS[name]
  function = door.jitted() if door.jitted else _function(name)
  assert isinstance(function, jax.stages.Wrapped)


# Loops that take long step by step.
_SLOW_STEPS = (
  "kb.candidate_softmax.update",
  "kb.rescal.init",
  "linking.disambiguate",
  "linking.disambiguator.update",
  "linking.max_margin.update",
  "multiview.heldout_weights",
  "multiview.label_weights",
  "ops.truncated_svd",
  "setexp.setexpan_score",
  "setexp.vae.update",
)


@pytest.mark.long  # eager calls compile each operation
@pytest.mark.parametrize(
  "name",
  [
    pytest.param(name, marks=pytest.mark.long if name in _SLOW_STEPS else ())
    for name in _PURE
  ],
)
def test_door_under_jit_equals_eager_calls(name):
  checks.jit(DOORS[name], _call(name))


# In the checks that compile, the everyday tier has one door of three.
@pytest.mark.parametrize(
  "name", tiers.some(filter(_TOP.__contains__, _PURE), 3)
)
def test_door_compiles_once_for_equal_shapes(name, compilations):
  checks.one_compilation(DOORS[name], _call(name), compilations)


@pytest.mark.parametrize(
  "name", tiers.some([n for n in _PURE if n not in _TOP], 3)
)
def test_pair_compiles_once_for_equal_shapes(name, compilations):
  checks.one_compilation(DOORS[name], jax.jit(_call(name)), compilations)


@pytest.mark.parametrize("name", tiers.some(_with("vmap"), 3))
def test_door_under_vmap_equals_single_calls(name):
  checks.vmap(DOORS[name], _call(name))


@pytest.mark.parametrize("name", tiers.some(_with("grad"), 3))
def test_gradient_equals_finite_differences(name):
  checks.gradient(DOORS[name], _call(name))


@pytest.mark.long
@pytest.mark.parametrize("name", _with("dtypes"))
def test_door_keeps_the_float_type(name):
  checks.float_types(DOORS[name], _call(name))


@pytest.mark.parametrize("name", tiers.some(_with("mask"), 3))
def test_masked_garbage_changes_nothing(name):
  checks.mask(DOORS[name], _call(name))


@pytest.mark.long
@pytest.mark.parametrize("name", _PURE)
def test_door_lowers_for_cuda_and_tpu(name):
  checks.lowering(DOORS[name], _call(name))


# Doors that break one promise each, to see that its check notices.


def _toy_args(seed, dtype):
  x = np.random.default_rng(seed).normal(size=4).astype(dtype)
  return jnp.asarray(x), jnp.asarray(np.array(0.5 + seed, dtype))


_TOY = Door(
  "toy.door", _toy_args, grad=(0, 1), mask=lambda x, a: (x.at[3].set(7), a)
)


@jax.jit
def _good(x, a):
  return jnp.where(jnp.arange(4) < 3, jnp.sin(a * x), 0)


@functools.partial(jax.jit, static_argnums=1)
def _static(x, a):
  return a * x


@jax.custom_batching.custom_vmap
def _unbatched(x, a):
  return _good(x, a)


@_unbatched.def_vmap
def _first_of_the_batch(size, batched, x, a):
  del batched
  return jnp.broadcast_to(_good(x[0], a[0]), (size, 4)), True


@jax.custom_jvp
def _no_slope(x, a):
  return _good(x, a)


_no_slope.defjvp(
  lambda primals, tangents: (_good(*primals), jnp.zeros_like(primals[0]))
)


def _traced(x, a):
  return _good(x, a) + isinstance(x, jax.core.Tracer)


def _single(x, a):
  return _good(x, a).astype(jnp.float32)


def _only_on_cpu(x, a):
  return jax.lax.linalg.schur(jnp.diag(x) * a)[0]


_BROKEN = {
  "jit": _traced,
  "vmap": _unbatched,
  "gradient": _no_slope,
  "float_types": _single,
  "mask": lambda x, a: jnp.sin(a * x),
  "lowering": _only_on_cpu,
}


@pytest.mark.parametrize("check", _BROKEN)
def test_a_broken_promise_is_noticed(check):
  getattr(checks, check)(_TOY, _good)
  with pytest.raises((AssertionError, NotImplementedError)):
    getattr(checks, check)(_TOY, _BROKEN[check])


def test_a_second_compilation_is_noticed(compilations):
  checks.one_compilation(_TOY, _good, compilations)
  with pytest.raises(AssertionError):
    checks.one_compilation(
      _TOY, lambda x, a: _static(x, float(a)), compilations
    )


def test_a_wrong_example_is_noticed():
  def door():
    """Adds.

    >>> 1 + 1
    3
    """

  with pytest.raises(AssertionError, match="Got"):
    checks.example("toy.door", door)
  with pytest.raises(AssertionError, match="no example"):
    checks.example("toy.door", lambda: None)


def test_a_mask_that_changes_nothing_is_noticed():
  row = Door("toy.door", _toy_args, mask=lambda *arguments: arguments)
  with pytest.raises(AssertionError, match="changes nothing"):
    checks.mask(row, _good)
