"""Metrics of a run as an event file of TensorBoard, `--log_to=tensorboard`."""

import importlib.util
import pathlib
import time
from collections.abc import Iterable, Mapping
from typing import Any

from repr_jax import errors
from repr_jax.data.io import files

_PATTERN = "events.out.tfevents.*"
_FLUSH_SECONDS = 5.0
_APART = frozenset({"step", "seconds"})


def check_installed() -> None:
  """Raises an InputError that names the package, where it is missing."""
  if importlib.util.find_spec("tensorboardX") is None:
    raise errors.InputError(
      "--log_to=tensorboard needs tensorboardX: pip install "
      "'repr_jax[tensorboard]'"
    )


def _numbers(record: Mapping[str, Any]) -> dict[str, float]:
  numbers = {}
  for name, value in record.items():
    listed = isinstance(value, list)
    for place, part in enumerate(value if listed else [value]):
      if name not in _APART and type(part) in (int, float):
        numbers[f"{name}/{place}" if listed else name] = part
  return numbers


class EventFile:
  """The numbers of `metrics.jsonl` for TensorBoard.

  A run has one event file. A resumed run writes a new one, which begins with
  the kept lines of `metrics.jsonl`, so no step occurs twice. The numbers of a
  list NAME are NAME/0, NAME/1 and so on; text stays in `metrics.jsonl` alone.
  """

  def __init__(self, directory: pathlib.Path):
    """Names the directory; nothing is written before the first record."""
    self._directory = directory
    self._writer: Any = None
    self._flushed = 0.0

  def exists(self) -> bool:
    """Whether the directory has an event file."""
    return any(self._directory.glob(_PATTERN))

  def replace(self, records: Iterable[Mapping[str, Any]]) -> None:
    """Starts the file again with the records that stay.

    Args:
      records: lines of `metrics.jsonl`.
    """
    self.close()
    for path in self._directory.glob(_PATTERN):
      path.unlink(missing_ok=True)
    # The log does not have the date, only seconds from the start of the run.
    start = self._directory / "flags.json"
    began = start.stat().st_mtime if start.exists() else time.time()
    for record in records:
      self._write(record, began + record.get("seconds", 0.0))
    self.flush()

  def append(self, record: Mapping[str, Any]) -> None:
    """Adds the numbers of one record, which has its step."""
    self._write(record, time.time())
    if time.monotonic() - self._flushed > _FLUSH_SECONDS:
      self.flush()

  def _write(self, record: Mapping[str, Any], at: float) -> None:
    from tensorboardX import event_file_writer, summary
    from tensorboardX.proto import event_pb2

    numbers = _numbers(record)
    if not numbers:
      return
    with files.naming(self._directory):
      if self._writer is None:
        # Its asynchronous writer would hide a full disk.
        self._writer = event_file_writer.EventsWriter(
          str(self._directory / "events")
        )
        # An open page of TensorBoard drops its numbers of an earlier file.
        restart = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._writer.write_event(
          event_pb2.Event(wall_time=at, step=0, session_log=restart)
        )
      values = [
        part
        for name, value in numbers.items()
        for part in summary.scalar(name, value).value
      ]
      event = event_pb2.Event(wall_time=at, step=record["step"])
      event.summary.value.extend(values)
      self._writer.write_event(event)

  def flush(self) -> None:
    """Waits until the numbers are on the disk."""
    self._flushed = time.monotonic()
    if self._writer is not None:
      with files.naming(self._directory):
        self._writer.flush()

  def close(self) -> None:
    """Ends the file."""
    if self._writer is not None:
      writer, self._writer = self._writer, None
      with files.naming(self._directory):
        writer.close()
