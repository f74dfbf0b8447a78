"""Every door compiles for a TPU: the compiler needs no device."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from doors import kb, linking, multiview, ops, setexp
from jax.sharding import Mesh

import repr_jax
from launch import topologies
from launch.shapes import Shapes

pytest.importorskip("libtpu", reason="needs extra 'tpu-compile'")

# The cache of compiled programs cannot load one without a device.
pytestmark = pytest.mark.filterwarnings("ignore:Error reading persistent")
_DOORS = {
  door.name: door
  for table in (ops, multiview, setexp, kb, linking)
  for door in table.DOORS
  if door.host is None
}


@pytest.fixture(scope="module")
def device():
  return topologies.find("v5e:2x2").devices[0]


def _call(name, device):
  if name == "ops.sharded_top_k":  # its row has a mesh of the CPU
    mesh = Mesh(np.array([device]), ("items",))
    return functools.partial(repr_jax.ops.sharded_top_k, k=2, mesh=mesh)
  if name == "setexp.expand_sharded":
    return functools.partial(_DOORS[name].call, device=device)
  package, function, *_ = name.split(".")
  return _DOORS[name].call or getattr(getattr(repr_jax, package), function)


@pytest.mark.parametrize("name", _DOORS)
def test_door_compiles_for_a_tpu(name, device):
  arguments = _DOORS[name].args(0, np.float32)
  shapes = Shapes(None, device).like(jax.tree.map(jnp.asarray, arguments))
  program = jax.jit(_call(name, device)).lower(*shapes).compile()
  assert "is_scheduled=true" in program.as_text()
