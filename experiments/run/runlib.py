"""Runs of experiments: work directory, log, checkpoints, results and launch.

```python
def main(argv):
  del argv
  with runlib.Run("rescal") as run:
    start, state = run.restore(init()) or (-1, init())
    for step in run.progress(range(start + 1, steps), "als"):
      state, info = update(state)
      run.log(step, loss=info.loss)
      if step % 100 == 99:
        run.save(step, state)
    run.row("WN18", "MRR", 0.94, thesis=0.93)


if __name__ == "__main__":
  runlib.launch(main)
```

Log a step before it is saved: on a resumed run the lines past the last
checkpoint are cut from `metrics.jsonl` and written again.
"""

import contextlib
import functools
import io
import os
import pathlib
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from absl import app, flags, logging

from experiments.run import (
  command_line,
  cpu_settings,
  event_files,
  presets,
  processes,
  progress,
  shutdown,
  workdir,
)
from repr_jax import errors
from repr_jax.data.io import files

T = TypeVar("T")

WORKDIR = flags.DEFINE_string(
  "workdir",
  None,
  "Directory of the run: flags, metrics, results, plots and checkpoints. The "
  "same command run again resumes there. Default: runs/EXPERIMENT.",
)
SEED = flags.DEFINE_integer(
  "seed", 0, "Seed of every random key of the run.", lower_bound=0
)
LOG_TO = flags.DEFINE_enum(
  "log_to",
  None,
  ["tensorboard"],
  "Also write the numbers of metrics.jsonl as an event file to the work "
  "directory. It needs the extra `tensorboard`.",
)

# Flags that may differ when a run is resumed: they do not change its result.
_VOLATILE = frozenset({"workdir", "log_every", "save_every", "port", "log_to"})


class NonFiniteError(ArithmeticError):
  """A value of the run is NaN or infinite, so the run ends."""


class Run:
  """One run of an experiment in its work directory; a context manager.

  In a job of several processes only the first has the work directory. Inside
  the `with` block, `directory` of the others is a scratch directory. All
  processes write checkpoints together.

  Attributes:
    directory: the work directory.
    finished: whether an earlier run with these flags has finished here. If the
      block then adds no rows, all files stay as they are.
  """

  def __init__(
    self,
    experiment: str,
    *,
    directory: str | os.PathLike | None = None,
    config: Mapping[str, Any] | None = None,
    volatile: Sequence[str] = (),
    extendable: Sequence[str] = (),
    keep: int = 2,
    devices: bool = True,
  ):
    """Names the run; nothing is touched before the `with` block.

    Args:
      directory: work directory; by default the flag `--workdir`, and where
        that is not given `runs/EXPERIMENT`.
      config: what identifies the run; by default all flags of the program.
      volatile: names in the configuration that may differ on resuming.
      extendable: names of numbers that may be larger than before, such as
        `epochs`: a finished run then goes on from its last checkpoint.
      keep: number of checkpoints to keep.
      devices: record the kind of device; False for a program that only starts
        others, since asking JAX for devices reserves them.
    """
    # JAX takes a while to import, for which --help does not wait.
    from experiments.run import checkpoints

    if directory is None:
      directory = WORKDIR.value or pathlib.Path("runs") / experiment
    self.directory = pathlib.Path(directory)
    self.finished = False
    self._experiment = experiment
    self._config = config
    self._devices = devices
    self._volatile = _VOLATILE | set(volatile)
    self._extendable = tuple(extendable)
    self._rows: list[dict[str, Any]] = []
    self._checkpoints = checkpoints.Checkpoints(
      self.directory / "checkpoints", keep
    )
    self._metrics = workdir.Metrics(self.directory / "metrics.jsonl")
    self._lock: workdir.Lock | None = None
    self._began = time.monotonic()

  def __enter__(self) -> "Run":
    self._began = time.monotonic()
    given = self.directory
    if processes.is_writer():
      self._lock = workdir.Lock(self.directory)
    else:
      self.directory = processes.scratch()
      self._metrics = workdir.Metrics(self.directory / "metrics.jsonl")
    try:
      if self._lock is not None:
        config = workdir.flag_values() if self._config is None else self._config
        if config.get("log_to") == "tensorboard":
          event_files.check_installed()
          self._metrics = workdir.Metrics(
            self.directory / "metrics.jsonl",
            event_files.EventFile(self.directory),
          )
        record = workdir.describe(self._experiment, config, self._devices)
        workdir.claim(self.directory, record, self._volatile, self._extendable)
      finished = (self.directory / "results.json").exists()
      self.finished = processes.agree(finished)
      if self.finished:
        self.directory = given  # there is nothing more to write, only to read
      self._metrics.open(self._checkpoints.latest(), keep=self.finished)
    except BaseException:
      self._close()
      raise
    return self

  def __exit__(
    self, kind: Any, error: BaseException | None, trace: Any
  ) -> None:
    del kind, trace
    try:
      if error is None:
        self._finish()
      elif isinstance(error, (KeyboardInterrupt, SystemExit, OSError)):
        progress.say(f"{self._experiment}: stopped; {self._where_to_resume()}")
      elif isinstance(error, errors.InputError) and self._lock is not None:
        # The directory does not keep refused flags.
        workdir.free(self.directory)
    finally:
      self._close()

  def _close(self) -> None:
    self._metrics.close()
    self._checkpoints.close()
    if self._lock is not None:
      self._lock.release()
      self._lock = None

  def _where_to_resume(self) -> str:
    with contextlib.suppress(Exception):
      step = self._checkpoints.latest()
      if step is not None:
        return (
          f"the same command with --workdir={self.directory} resumes after "
          f"step {step}"
        )
    return (
      f"the same command with --workdir={self.directory} starts again (there "
      "is no checkpoint yet)"
    )

  def _finish(self) -> None:
    """Writes the results, which say that the run has ended."""
    again = bool(self._rows) and self._lock is not None
    if self.finished and not again:
      return
    results = {
      "experiment": self._experiment,
      "rows": self._rows,
      "seconds": round(time.monotonic() - self._began, 3),
    }
    try:
      workdir.write_json(self.directory / "results.json", results)
    except OSError:
      progress.say(f"{self._experiment}: stopped; {self._where_to_resume()}")
      raise

  def _stop(self, name: str, value: Any, step: int | None) -> None:
    at = "" if step is None else f" at step {step}"
    last = self._checkpoints.latest()
    good = (
      "there is no checkpoint yet"
      if last is None
      else f"the last good checkpoint is step {last} in "
      f"{self.directory / 'checkpoints'}"
    )
    raise NonFiniteError(
      f"{self._experiment}: {name} is {value}{at}; {good}. Lower the step size "
      "or look at the input."
    )

  def log(self, step: int, **values: Any) -> None:
    """Writes one line of `metrics.jsonl`; stops on a non-finite value.

    Args:
      step: the step that the values belong to; steps never go back.
      **values: scalars, small arrays or text under their names.
    """
    plain = {name: _plain(value) for name, value in values.items()}
    for name, value in plain.items():
      if not _is_finite(value):
        self._stop(name, value, step)
    seconds = round(time.monotonic() - self._began, 3)
    self._metrics.append({"step": int(step), **plain, "seconds": seconds})

  def save(self, step: int, tree: Any, *, check: bool = True) -> None:
    """Writes a checkpoint: the state after `step`.

    Args:
      step: the last step that the state has seen.
      tree: a pytree of arrays and scalars.
      check: stop the run where the tree holds a non-finite value.
    """
    from experiments.run import checkpoints

    if check and (name := checkpoints.not_finite(tree)) is not None:
      self._stop(f"state{name}", "not finite", step)
    self._metrics.sync()
    self._checkpoints.save(int(step), tree)

  def restore(self, like: T) -> tuple[int, T] | None:
    """The last checkpoint as (step, tree of the form of `like`), or None."""
    restored = self._checkpoints.restore(like)
    if restored is not None:
      progress.say(f"{self._experiment}: resuming after step {restored[0]}")
    return restored

  def row(
    self,
    name: str,
    metric: str,
    value: float,
    *,
    thesis: float | None = None,
    lower: float | None = None,
    upper: float | None = None,
    tolerance: float | None = None,
    lower_is_better: bool | None = None,
  ) -> dict[str, Any]:
    """Adds one figure to `results.json` and returns it.

    Args:
      name: what was measured: the data set, the system, the setting.
      metric: the measure, with its unit.
      thesis: the thesis' figure, where it has one.
      lower: lower end of our figure's interval.
      upper: upper end of our figure's interval.
      tolerance: distance from the thesis' figure that counts as agreement,
        where there is no interval.
      lower_is_better: the better direction, where the metric's name does not
        say it (`directions.lower_is_better`).
    """
    row: dict[str, Any] = {"name": name, "metric": metric}
    numbers = {"value": value, "thesis": thesis, "lower": lower}
    numbers |= {"upper": upper, "tolerance": tolerance}
    for key, number in numbers.items():
      if number is not None:
        row[key] = _plain(number)
        if not _is_finite(row[key]):
          self._stop(f"{name}, {metric}, {key}", row[key], None)
    if lower_is_better is not None:
      row["lower_is_better"] = bool(lower_is_better)
    self._rows.append(row)
    return row

  def plot(self, name: str, figure: Any) -> pathlib.Path:
    """Writes a matplotlib figure (or PNG bytes) to `plots/NAME.png`."""
    path = self.directory / "plots" / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    with files.atomic_write(path, "wb") as out:
      out.write(figure if isinstance(figure, bytes) else figure_png(figure))
    return path

  def vectors(self, words: Sequence[str], array: Any) -> None:
    """Writes learned vectors as `vectors.npz` and in word2vec's text format.

    Args:
      words: the words or entities, one for each row.
      array: their vectors, [n, d].
    """
    from repr_jax.data import vectors

    rows = np.asarray(array, np.float32)
    if not np.isfinite(rows).all():
      bad = int(np.argmin(np.isfinite(rows).all(axis=1)))
      self._stop(f"the vector of {words[bad]!r}", "not finite", None)
    learned = vectors.Vectors(list(words), rows)
    vectors.write_vectors(self.directory / "vectors.npz", learned, "npz")
    # Names in word2vec's format have no spaces; if two become equal, the first
    # stays.
    joined: dict[str, int] = {}
    for row, word in enumerate(words):
      joined.setdefault("_".join(word.split()), row)
    text = vectors.Vectors(list(joined), rows[list(joined.values())])
    vectors.write_vectors(self.directory / "vectors.txt", text, "word2vec")

  def progress(
    self, items: Iterable[T], name: str, total: int | None = None
  ) -> Iterator[T]:
    """The items, with rate and time left on a terminal and in a log."""
    return progress.track(items, name, total)


def refuse_log(mode: str) -> None:
  """Raises an InputError if `--log_to` is given in a mode that logs nothing.

  Args:
    mode: the mode, as "with --mode=link".
  """
  if LOG_TO.name in flags.FLAGS and LOG_TO.value is not None:
    raise errors.InputError(f"--log_to is not read {mode}; leave it out")


def _plain(value: Any) -> Any:
  """The value in types of JSON: numbers, text, or lists of them."""
  if value is None or isinstance(value, (str, bool, int, float)):
    return value
  return np.asarray(value).tolist()


def _is_finite(value: Any) -> bool:
  if isinstance(value, list):
    return all(map(_is_finite, value))
  return not isinstance(value, float) or bool(np.isfinite(value))


def figure_png(figure: Any) -> bytes:
  """The PNG bytes of a matplotlib figure, the same for the same figure."""
  out = io.BytesIO()
  figure.savefig(
    out, format="png", dpi=150, bbox_inches="tight", metadata={"Software": None}
  )
  return out.getvalue()


def launch(
  main: Callable[[list[str]], Any],
  *,
  of_a_run: bool = True,
  logs: bool = False,
  arguments: bool = False,
) -> None:
  """Runs an experiment's `main(argv)` with its flags, settings and exit codes.

  Bad input, bad flags and file errors end with one line and code 2, a
  non-finite value with 3, Ctrl-C with 130 and a resumable work directory; a
  second Ctrl-C or SIGTERM does not wait for a compiled program to return.

  Args:
    main: the program; what it returns is the exit code.
    of_a_run: whether the program has a work directory, a seed and presets.
    logs: whether its runs log numbers, for which `--log_to` is defined.
    arguments: whether it takes more than flags.
  """
  if not any(argument.startswith("--help") for argument in sys.argv):
    cpu_settings.apply()
  warnings.formatwarning = progress.format_warning
  for holder in (WORKDIR, SEED, presets.PRESET, LOG_TO):
    if logs if holder is LOG_TO else of_a_run:
      # --help lists the flags of the program and these.
      flags.FLAGS.register_key_flag_for_module(
        sys.argv[0], flags.FLAGS[holder.name]
      )
    elif holder.name in flags.FLAGS:  # not in a second launch of the process
      delattr(flags.FLAGS, holder.name)

  def guarded(argv: list[str]) -> Any:
    try:
      if not flags.FLAGS["verbosity"].present:
        logging.set_verbosity(logging.WARNING)  # Orbax reports every file
      shutdown.on_signals()
      shutdown.with_parent()
      processes.join()
      if logs and LOG_TO.value is not None:
        event_files.check_installed()
      return main(argv)
    except BrokenPipeError:
      raise
    except (errors.InputError, OSError) as error:
      progress.say(f"error: {shutdown.describe(error)}")
      sys.exit(2)
    except NonFiniteError as error:
      progress.say(f"error: {error}")
      sys.exit(3)
    except KeyboardInterrupt:
      sys.exit(130)

  parser = functools.partial(command_line.parse_or_exit, arguments=arguments)
  with shutdown.without_reader():
    app.run(guarded, flags_parser=parser)
