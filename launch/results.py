"""Reads the results of many runs and sets equal figures side by side.

Runs of one experiment that differ only in their seed are one setting. The
figures of settings are compared where each has at least three seeds: Welch's t
test of each against the best one, with Holm's correction.
"""

import json
import math
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.run import directions, workdir
from repr_jax import errors
from repr_jax.data.io import json_files

LEVEL = 0.05
_LEAST_SEEDS = 3
# Flags that say nothing about a run's result.
_APART = frozenset(
  {"workdir", "seed", "log_every", "log_to", "save_every", "port"}
)


class Result(NamedTuple):
  """A finished run: its flags by name, and the rows of `results.json`."""

  directory: pathlib.Path
  experiment: str
  flags: dict[str, Any]
  rows: list[dict[str, Any]]


class Collection(NamedTuple):
  """The runs below some directories.

  Attributes:
    results: finished runs.
    broken: directories and files that cannot be read, each with the reason.
    unfinished: work directories of runs that have not ended.
  """

  results: list[Result]
  broken: list[str]
  unfinished: list[pathlib.Path]


class Line(NamedTuple):
  """One figure of one setting.

  Attributes:
    experiment: its name.
    name: what was measured.
    metric: the measure.
    setting: the flags in which settings of the experiment differ.
    values: of all seeds, in the order of the seeds.
    thesis: the thesis' figure, where there is one.
    interval: of a figure with a single seed, if it has an interval.
    slot: equal for figures that can be compared.
    p_value: of the difference from the best setting, None without a test.
    best: whether it is the best, or not significantly worse.
    lower_is_better: the better direction; None where it is unknown, and then
      nothing is marked.
  """

  experiment: str
  name: str
  metric: str
  setting: dict[str, Any]
  values: tuple[float, ...]
  thesis: float | None = None
  interval: tuple[float, float] | None = None
  slot: Any = None
  p_value: float | None = None
  best: bool = False
  lower_is_better: bool | None = None

  @property
  def mean(self) -> float:
    """Mean over seeds."""
    return float(np.mean(self.values))

  @property
  def spread(self) -> float | None:
    """Standard deviation over seeds, None for a single one."""
    return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None


def read(folders: Iterable[pathlib.Path]) -> Collection:
  """Reads every run below some directories.

  Args:
    folders: work directories, or directories above them.

  Returns:
    Each run once, in the order of paths.
  """
  collected = Collection([], [], [])
  seen: set[pathlib.Path] = set()
  for folder in folders:
    if not folder.is_dir():
      collected.broken.append(f"{folder}: there is no such directory")
      continue
    paths = sorted(folder.rglob("results.json"))
    begun = sorted(folder.rglob("flags.json"))
    if not paths and not begun:
      collected.broken.append(f"{folder}: no results.json is here or below")
    for path in paths:
      if path.resolve() not in seen:
        seen.add(path.resolve())
        try:
          collected.results.append(_read_one(path.parent))
        except errors.InputError as error:
          collected.broken.append(str(error))
    for path in begun:
      if not (path.parent / "results.json").exists():
        collected.unfinished.append(path.parent)
  return collected


def _read_one(directory: pathlib.Path) -> Result:
  path = directory / "results.json"
  record = workdir.read_results(path)
  if not isinstance(record.get("experiment"), str):
    raise errors.InputError("names no experiment", path=path)
  return Result(
    directory,
    record["experiment"],
    read_flags(directory / "flags.json"),
    [{**row, "value": float(row["value"])} for row in record["rows"]],
  )


def read_flags(path: pathlib.Path) -> dict[str, Any]:
  """The flags of a run, by name, from its `flags.json`."""
  record = json_files.read_json(path)
  flags = record.get("flags") if isinstance(record, dict) else None
  if not isinstance(flags, dict):
    raise errors.InputError("is not a record of flags", path=path)
  return flags


def swept_flags(results: Sequence[Result]) -> list[str]:
  """Names of the flags, other than the seed, in which some runs differ.

  A flag counts only among the runs that recorded it.
  """
  values: dict[str, set[str]] = {}
  for result in results:
    for name, value in result.flags.items():
      values.setdefault(name, set()).add(_key(value))
  return sorted(
    name for name in values.keys() - _APART if len(values[name]) > 1
  )


def _key(value: Any) -> str:
  return json.dumps(value, sort_keys=True, default=str)


def lines(
  results: Sequence[Result],
  wanted: Callable[[str], bool] = lambda text: True,
  better: Mapping[str, bool] = {},
) -> list[Line]:
  """One line for each figure of each setting, with marks.

  Args:
    results: runs of any experiments.
    wanted: which figures to take, by "NAME: METRIC".
    better: for metrics whose direction is given, whether less is better. For
      the others the row says it, or the metric's name.

  Returns:
    Lines in the order of experiments, figures and settings.
  """
  every: list[Line] = []
  for experiment in dict.fromkeys(result.experiment for result in results):
    own = [result for result in results if result.experiment == experiment]
    every += _lines_of(experiment, own, wanted, better)
  return every


def selected(lines: Sequence[Line]) -> list[tuple[Line, list[Line]]]:
  """The setting that validation figures choose, for each experiment.

  Returns:
    The best line of the first metric that starts with "validation ", and its
    setting's other figures, those of the same measure first. Experiments
    without such a metric, or with one setting, are omitted.
  """
  chosen = []
  for experiment in dict.fromkeys(line.experiment for line in lines):
    own = [line for line in lines if line.experiment == experiment]
    slots = [x.slot for x in own if x.metric.startswith("validation ")]
    same = [x for x in own if slots and x.slot == slots[0]]
    if len(same) < 2 or same[0].lower_is_better is None:
      continue
    sign = -1 if same[0].lower_is_better else 1
    top = max(same, key=lambda line: sign * line.mean)
    rest = [
      x
      for x in own
      if x.setting == top.setting and not x.metric.startswith("validation ")
    ]
    measure = top.metric.removeprefix("validation ")
    rest.sort(key=lambda x: (x.name != top.name, measure not in x.metric))
    chosen.append((top, rest))
  return chosen


def _lines_of(experiment, results, wanted, better) -> list[Line]:
  swept = swept_flags(results)
  metrics = {tuple(row["metric"] for row in x.rows) for x in results}
  # Names may contain the setting ("B + rules"). If all runs have the same
  # metrics in the same order, rows are compared by their place.
  by_place = len(metrics) == 1
  table: dict[Any, dict[str, list]] = {}
  for result in sorted(results, key=lambda x: _order(x.flags.get("seed") or 0)):
    setting = {name: result.flags.get(name) for name in swept}
    times: dict[tuple[str, str], int] = {}
    for place, row in enumerate(result.rows):
      label = row["name"], row["metric"]
      times[label] = times.get(label, 0) + 1
      slot = place if by_place else (*label, times[label])
      if wanted(": ".join(label)):
        settings = table.setdefault(slot, {})
        alike = _key([setting, sorted(result.flags)])
        settings.setdefault(alike, []).append((setting, row))
  order = sorted(table) if by_place else list(table)
  every: list[Line] = []
  for slot in order:
    same = [_line(experiment, slot, x, better) for x in table[slot].values()]
    same.sort(key=lambda line: [_order(v) for v in line.setting.values()])
    every += _marked(same)
  return every


def _order(value: Any) -> tuple:
  if isinstance(value, bool) or workdir.is_number(value):
    return (0, value, "")
  return (1, 0, str(value))


def _line(
  experiment: str, slot: Any, members: list, better: Mapping[str, bool]
) -> Line:
  setting, first = members[0]
  interval = None
  if len(members) == 1 and "lower" in first and "upper" in first:
    interval = first["lower"], first["upper"]
  metric = first["metric"]
  lower = first.get("lower_is_better", directions.lower_is_better(metric))
  return Line(
    experiment,
    first["name"],
    first["metric"],
    setting,
    tuple(row["value"] for _, row in members),
    first.get("thesis"),
    interval,
    slot,
    lower_is_better=better.get(metric, lower),
  )


def _marked(same: list[Line]) -> list[Line]:
  """Marks the best setting and those that are not significantly worse."""
  places = [i for i, x in enumerate(same) if len(x.values) >= _LEAST_SEEDS]
  less = same[0].lower_is_better
  if len(places) < 2 or less is None:
    return same
  top = min(places, key=lambda i: same[i].mean if less else -same[i].mean)
  others = [i for i in places if i != top]
  p_values = holm([welch(same[top].values, same[i].values) for i in others])
  marked = list(same)
  marked[top] = same[top]._replace(best=True)
  for i, p in zip(others, p_values):
    marked[i] = same[i]._replace(p_value=p, best=p >= LEVEL)
  return marked


def welch(one: Sequence[float], two: Sequence[float]) -> float:
  """Two-sided p of Welch's t test, also for figures that do not vary."""
  if np.ptp(one) == 0 and np.ptp(two) == 0:
    return 1.0 if math.isclose(one[0], two[0]) else 0.0
  # scipy's statistics take most of a second to import; sweeps need none.
  from scipy import stats

  return float(stats.ttest_ind(one, two, equal_var=False).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
  """Holm's correction of p values for their number, in their order."""
  order = np.argsort(p_values)
  corrected = [0.0] * len(p_values)
  highest = 0.0
  for rank, i in enumerate(order):
    highest = max(highest, min(1.0, (len(order) - rank) * p_values[i]))
    corrected[i] = highest
  return corrected
