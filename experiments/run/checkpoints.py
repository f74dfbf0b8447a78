"""Checkpoints of a run: any pytree of arrays, through Orbax, atomically.

Leaves are stored flat under their path in the tree, so that NamedTuples,
empty arrays, Python scalars and typed random keys all come back as they were.
"""

import contextlib
import errno
import os
import pathlib
import shutil
import sys
from collections.abc import Iterator
from typing import Any, TypeVar

import jax
import numpy as np
from absl import logging

from experiments.run import processes
from repr_jax import errors
from repr_jax.data.io import files

T = TypeVar("T")

_SPARE = 1 << 20  # bytes beside a checkpoint's arrays
_FULL = ("no space left", "disk quota", "file too large", "resource_exhausted")


def _is_key(leaf: Any) -> bool:
  return hasattr(leaf, "dtype") and jax.dtypes.issubdtype(
    leaf.dtype, jax.dtypes.prng_key
  )


def _to_array(leaf: Any) -> Any:
  if _is_key(leaf):
    return jax.random.key_data(leaf)
  if isinstance(leaf, jax.Array):
    # All processes hold equal copies of a fully addressable array.
    alone = processes.several() and leaf.is_fully_addressable
    return np.asarray(leaf) if alone else leaf
  if isinstance(leaf, jax.ShapeDtypeStruct):
    return leaf
  return np.asarray(leaf)


def _like_leaf(leaf: Any, stored: Any) -> Any:
  """Converts a stored array to the type of the caller's leaf."""
  if _is_key(leaf):
    return jax.random.wrap_key_data(stored, impl=jax.random.key_impl(leaf))
  if isinstance(leaf, (bool, int, float, complex)):
    return type(leaf)(np.asarray(stored).item())
  if isinstance(leaf, np.generic):
    return np.asarray(stored)[()]
  return stored


def _flatten(tree: Any) -> dict[str, Any]:
  """The tree's leaves as arrays by path, empty arrays included."""
  leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
  # A tree of one array has an empty path, which some versions of Orbax refuse.
  return {
    jax.tree_util.keystr(path) or "value": _to_array(leaf)
    for path, leaf in leaves
  }


def _template(leaf: Any) -> Any:
  if isinstance(leaf, jax.Array):
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
  return leaf


def not_finite(tree: Any) -> str | None:
  """Path of the first floating-point leaf that holds a NaN or an infinity."""
  for path, leaf in _flatten(tree).items():
    if jax.dtypes.issubdtype(leaf.dtype, np.inexact):
      xp = jax.numpy if isinstance(leaf, jax.Array) else np
      if not bool(xp.all(xp.isfinite(leaf))):
        return path
  return None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
  """Suppresses tracebacks that Orbax prints besides raising the error.

  After a failure its threads also fail later, one by one, on a closed event
  loop; these errors are ignored from then on.
  """
  before, hook = logging.get_verbosity(), sys.unraisablehook

  def filtered(caught: Any) -> None:
    if "Event loop is closed" not in str(caught.exc_value):
      hook(caught)

  logging.set_verbosity(logging.FATAL)
  sys.unraisablehook = filtered
  try:
    yield
    sys.unraisablehook = hook
  finally:
    logging.set_verbosity(before)


@contextlib.contextmanager
def _reading(folder: pathlib.Path) -> Iterator[None]:
  """Raises errors of a damaged checkpoint as `InputError` with its folder."""
  try:
    with _quiet():
      yield
  except (errors.InputError, MemoryError):
    raise
  except Exception as error:
    absent = isinstance(error, (FileNotFoundError, NotADirectoryError))
    if isinstance(error, OSError) and not absent:
      raise  # an error of the disk, which names the file
    reason = str(error).strip().splitlines() or [type(error).__name__]
    raise errors.InputError(
      f"the checkpoint is damaged ({reason[0][:200]}); without its folder the "
      "run goes on from the checkpoint before it, or from its start",
      path=folder,
    ) from error


class Checkpoints:
  """The numbered checkpoints of one directory; the last few are kept.

  A checkpoint is complete or absent: Orbax writes a temporary folder and
  renames it. The next start removes what a killed process left unfinished.
  """

  def __init__(self, directory: str | os.PathLike, keep: int = 2):
    self._directory = pathlib.Path(directory).absolute()
    self._keep = keep
    self._manager: Any = None

  def _open(self) -> Any:
    # Orbax takes most of a second to import; many runs never save.
    import orbax.checkpoint as ocp

    if self._manager is None:
      options = ocp.CheckpointManagerOptions(
        max_to_keep=self._keep,
        enable_async_checkpointing=False,
        cleanup_tmp_directories=True,
      )
      with _reading(self._directory):
        self._manager = ocp.CheckpointManager(
          self._directory,
          item_handlers=ocp.StandardCheckpointHandler(),
          options=options,
        )
      for step in sorted(self._manager.all_steps())[: -self._keep]:
        self._manager.delete(step)  # left by a process that was killed
    return self._manager

  def latest(self) -> int | None:
    """Step of the newest whole checkpoint, None where there is none."""
    if not self._directory.is_dir():
      return None
    return self._open().latest_step()

  def save(self, step: int, tree: Any) -> None:
    """Writes the tree as checkpoint `step`; steps only grow."""
    import orbax.checkpoint as ocp

    latest = self.latest()
    if latest is not None and step <= latest:
      if step == latest:
        return
      raise ValueError(f"checkpoint {step} is older than the last, {latest}")
    # Orbax cannot store empty arrays; the caller's tree has their shapes.
    # "step" keeps an empty tree saveable.
    flat = {name: leaf for name, leaf in _flatten(tree).items() if leaf.size}
    flat["step"] = np.asarray(step)
    try:
      self._require(sum(leaf.nbytes for leaf in flat.values()))
      with _quiet(), files.naming(self._directory):
        self._open().save(step, args=ocp.args.StandardSave(flat), force=True)
    except OSError:
      raise
    except Exception as error:
      # The storage layer has its own errors for a full disk.
      if any(mark in str(error).lower() for mark in _FULL):
        raise OSError(
          errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._directory)
        ) from error
      raise

  def _require(self, size: int) -> None:
    """Fails early on a full disk, before Orbax' threads print errors."""
    place = self._directory
    while not place.exists():
      place = place.parent
    if shutil.disk_usage(place).free < size + _SPARE:
      raise OSError(
        errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._directory)
      )

  def restore(self, like: T) -> tuple[int, T] | None:
    """The newest checkpoint in the form of `like`, None where there is none.

    Args:
      like: a tree with the structure, shapes and dtypes that were saved;
        arrays or `jax.ShapeDtypeStruct`. Its sharding is the result's.

    Returns:
      The step and the tree, or None.

    Raises:
      InputError: the checkpoint has other leaves, shapes or dtypes, or is
        damaged.
    """
    import orbax.checkpoint as ocp

    step = self.latest()
    if step is None:
      return None
    flat = _flatten(like)
    wanted = {name: leaf for name, leaf in flat.items() if leaf.size}
    wanted["step"] = np.asarray(step)
    template = {name: _template(leaf) for name, leaf in wanted.items()}
    args = ocp.args.StandardRestore(template)
    with _reading(self._directory / str(step)):
      self._check(step, wanted)
      stored = self._open().restore(step, args=args)
      if int(stored.pop("step")) != step:
        raise ValueError("it is that of another step")
    leaves, treedef = jax.tree_util.tree_flatten(like)
    restored = [
      _like_leaf(leaf, stored[name]) if name in stored else leaf
      for leaf, name in zip(leaves, flat)
    ]
    return step, jax.tree_util.tree_unflatten(treedef, restored)

  def _check(self, step: int, wanted: dict[str, Any]) -> None:
    stored = dict(self._open().item_metadata(step).items())
    for name in sorted(set(wanted) | set(stored)):
      ours, theirs = (
        f"{tree[name].dtype}{list(tree[name].shape)}"
        if name in tree
        else "absent"
        for tree in (wanted, stored)
      )
      if ours != theirs:
        raise errors.InputError(
          f"the checkpoint has {theirs} at {name} where this run has {ours}; "
          "use another --workdir, or the code that wrote it",
          path=self._directory / str(step),
        )

  def close(self) -> None:
    """Releases what Orbax holds."""
    if self._manager is not None:
      self._manager.close()
      self._manager = None
