"""Jobs of several processes: joining one, and which process writes files.

`launch.multihost` sets the variables below; without them a program is alone.
All processes run the same program over all devices. The first writes the work
directory; the others write to directories that are removed at the end.
"""

import atexit
import os
import pathlib
import shutil
import tempfile

# Number of processes; "auto" on SLURM and on TPU and GPU pods.
PROCESSES = "REPR_JAX_PROCESSES"
ADDRESS = "REPR_JAX_COORDINATOR"
NUMBER = "REPR_JAX_PROCESS"


def join() -> None:
  """Joins the job that the environment names, before JAX has devices."""
  count = os.environ.get(PROCESSES)
  if not count:
    return
  import jax

  # Collectives of CPU devices; other devices ignore this setting.
  jax.config.update("jax_cpu_collectives_implementation", "gloo")
  if count == "auto":
    jax.distributed.initialize()
  else:
    jax.distributed.initialize(
      coordinator_address=os.environ[ADDRESS],
      num_processes=int(count),
      process_id=int(os.environ[NUMBER]),
    )


def several() -> bool:
  """Whether this process is one of several."""
  if not os.environ.get(PROCESSES):
    return False
  import jax

  return jax.process_count() > 1


def is_writer() -> bool:
  """Whether this process writes the files of the job."""
  if not several():
    return True
  import jax

  return jax.process_index() == 0


def agree(value: bool) -> bool:
  """Gives all processes the value of the first; waits until all have called."""
  if not several():
    return value
  import numpy as np
  from jax.experimental import multihost_utils

  return bool(multihost_utils.broadcast_one_to_all(np.asarray(value)))


def scratch() -> pathlib.Path:
  """A directory that is removed when the process ends."""
  folder = pathlib.Path(tempfile.mkdtemp(prefix="repr_jax-"))
  atexit.register(shutil.rmtree, folder, ignore_errors=True)
  return folder
