"""Devices that programs are compiled for, by name, without having them."""

import os
import re
from typing import Any, NamedTuple

import jax
from jax.experimental import topologies

from repr_jax.errors import InputError

NAMES = "v5e:2x2 (or 4x4, 8x8, 16x16), h100x8, cpu:8"
_SIDES = (2, 4, 8, 16)
_H100 = """gpu_device_info { threads_per_block_limit: 1024 threads_per_warp: 32
shared_memory_per_block: 49152 shared_memory_per_core: 233472
threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
device_memory_size: 84929347584 shared_memory_per_block_optin: 232448
cuda_compute_capability { major: 9 } registers_per_core_limit: 65536
registers_per_block_limit: 65536 } platform_name: "CUDA"
dnn_version_info { major: 9 minor: 7 }
runtime_version { major: 12 minor: 8 patch: 0 }
device_description_str: "NVIDIA H100 80GB HBM3" """


class Topology(NamedTuple):
  """Devices of one kind.

  Attributes:
    name: as it was asked for.
    platform: tpu, cuda or cpu.
    devices: to compile for.
    memory: bytes of a device; None where it is that of the machine.
    clock: cycles a second; None where no cycles are estimated.
  """

  name: str
  platform: str
  devices: list[Any]
  memory: float | None
  clock: float | None


def find(name: str) -> Topology:
  """The devices of a topology.

  Args:
    name: such as v5e:2x2, h100x8 or cpu:8.

  Returns:
    The devices. Raises `InputError` for an unknown name, or if the compiler is
    not installed; the message says what to install.
  """
  tpu = re.fullmatch(r"v5e:(\d+)x(\d+)", name)
  gpu = re.fullmatch(r"h100x(\d+)", name)
  cpu = re.fullmatch(r"cpu:(\d+)", name)
  if tpu:
    sides = int(tpu.group(1)), int(tpu.group(2))
    if sides not in [(side, side) for side in _SIDES]:
      raise InputError(f"--topology={name}: there are {NAMES}")
    # The compiler would ask a TPU machine for these values.
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    os.environ.setdefault("TPU_WORKER_HOSTNAMES", "localhost")
    os.environ.setdefault("TPU_ACCELERATOR_TYPE", "v5litepod-4")
    # No device is opened, so processes need not wait for each other.
    os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
    devices = _describe(name, "libtpu", platform="tpu", topology_name=name)
    return Topology(name, "tpu", devices, 15.75 * 2**30, 1.5e9)
  if gpu and int(gpu.group(1)) > 0:
    devices = _describe(
      name, '"jax[cuda12]"', platform="cuda", target_config=_H100,
      topology=f"1x1x{gpu.group(1)}",
    )  # fmt: skip
    return Topology(name, "cuda", devices, 84929347584.0, None)
  if cpu and int(cpu.group(1)) > 0:
    count = int(cpu.group(1))
    jax.config.update("jax_num_cpu_devices", count)
    return Topology(name, "cpu", list(jax.devices("cpu")), None, None)
  raise InputError(f"--topology={name}: there are {NAMES}")


def holding(count: int) -> str:
  """The smallest TPU topology with as many devices, as a flag."""
  side = next((x for x in _SIDES if x * x >= count), None)
  if side is None:
    return f"more than {_SIDES[-1] ** 2}"
  return f"--topology=v5e:{side}x{side}"


def _describe(name: str, package: str, **details: Any) -> list[Any]:
  try:
    return list(topologies.get_topology_desc(**details).devices)
  except Exception as error:
    raise InputError(
      f"--topology={name} needs a compiler that is not here: "
      f"pip install {package} ({str(error).splitlines()[0][:80]})"
    ) from error
