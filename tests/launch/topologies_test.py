"""Names of devices, and what is said where there are none."""

import importlib.util

import pytest

from launch import topologies
from repr_jax.errors import InputError


@pytest.mark.parametrize(
  "name", ["v9:2x2", "v5e:3x5", "v5e", "h100x0", "h100", "cpu:0", "cpu", ""]
)
def test_a_name_that_there_is_not(name):
  with pytest.raises(InputError, match="there are v5e:2x2"):
    topologies.find(name)


@pytest.mark.parametrize(
  ("name", "package", "install"),
  [
    ("v5e:2x2", "libtpu", "pip install libtpu"),
    ("h100x8", "jax_cuda12_plugin", r"pip install .jax\[cuda12\]"),
  ],
)
def test_a_missing_compiler_is_named(name, package, install):
  if importlib.util.find_spec(package):
    pytest.skip(f"{package} is installed")
  with pytest.raises(InputError, match=install) as caught:
    topologies.find(name)
  assert "\n" not in str(caught.value)
