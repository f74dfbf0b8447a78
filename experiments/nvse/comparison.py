"""All systems in one table: chosen on half of the queries, shown on the rest.

NVSE's candidates are all models with all rankings: each Gaussian score, plain
and mean-normalized; the cosine; and the decoder's features, with and without
the members' own. The line "nvse+bm25" adds the standardized scores of the
chosen candidate and of BM25; its share is chosen on the same half.
"""

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from experiments.nvse import figures as figure_lib
from experiments.run import workdir
from repr_jax.data import trec
from repr_jax.data.entities import features
from repr_jax.setexp import (
  expansion,
  feature_scores,
  gaussian_scores,
  systems,
)

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
# Shares of the members' own features, with exponents.
WAYS = ((0.0, 0.5), (0.0, 0.75), (0.35, 0.75), (0.5, 0.75))
_KEEP = 100


class Comparison(NamedTuple):
  """The outcome of one protocol.

  Attributes:
    chosen: label of NVSE's chosen configuration.
    best: that configuration.
    share: of NVSE in the ensemble.
    tried: mean of the measure of choice on the first half, by candidate.
    lines: of the table on the second half.
    figures: by system, on the second half.
    tasks: of the second half.
  """

  chosen: str
  best: systems.System
  share: float
  tried: dict[str, float]
  lines: list[figure_lib.Line]
  figures: dict[str, figure_lib.Figures]
  tasks: list[figure_lib.Task]


def candidates(
  models: Mapping[str, expansion.Model], ranking: systems.RankingConfig
) -> dict[str, Callable[[], systems.System]]:
  """Every model with every ranking score, made when asked for.

  Args:
    models: by label.
    ranking: of the run; gives the settings that are not varied.
  """
  ways = [
    dataclasses.replace(ranking, score=score, normalize=normalize)
    for score in gaussian_scores.SCORES
    for normalize in (False, True)
  ]
  ways += [
    systems.RankingConfig("features", power, share, pooling)
    for share, power in dict.fromkeys(
      (*WAYS, (ranking.member_share, ranking.power))
    )
    for pooling in feature_scores.POOLINGS
  ]
  ways += [
    dataclasses.replace(ranking, score="cosine", pooling=pooling)
    for pooling in ("mean", "product")
  ]
  return {
    label(name, way): functools.partial(systems.nvse, model, way)
    for name, model in models.items()
    for way in ways
  }


def label(model: str, ranking: systems.RankingConfig) -> str:
  """A candidate's name: its model and how that ranks."""
  if ranking.score == "features":
    return (
      f"{model}, features, {ranking.pooling}, member share "
      f"{ranking.member_share:g}, power {ranking.power:g}"
    )
  if ranking.score == "cosine":
    return f"{model}, cosine, {ranking.pooling}"
  suffix = ", normalized" if ranking.normalize else ""
  return f"{model}, {ranking.score}{suffix}"


def compare(
  tasks: Sequence[figure_lib.Task],
  choices: Mapping[str, Callable[[], systems.System]],
  baselines: Sequence[systems.System],
  measures: Sequence[str],
  *,
  fixed: str | None = None,
  share: float | None = None,
  say: Callable[[str], None] = lambda text: None,
) -> Comparison:
  """Chooses on the first half and reports on the second.

  Args:
    tasks: of one protocol.
    choices: NVSE's candidates by label.
    baselines: other systems; with "bm25" among them there is an ensemble too.
    measures: the columns of the table; the first decides the choice.
    fixed: a candidate's label, where nothing is to be chosen.
    share: of NVSE in the ensemble, where nothing is to be chosen.
    say: called with a line of text when something was done.

  Returns:
    The comparison.
  """
  first, second = figure_lib.halves(tasks)
  chosen = fixed
  tried: dict[str, float] = {}
  if chosen is None:
    chosen, tried = figure_lib.choose(choices, first, measures[0])
    say(f"chosen of {len(tried)}: {chosen}, {tried[chosen]:.4f}")
  best = choices[chosen]()
  shown = [best]
  lexical = next((x for x in baselines if x.name == "bm25"), None)
  if lexical is not None:
    if share is None:
      blends = {
        f"nvse+bm25, share {x}": functools.partial(
          systems.fuse, best, lexical, x
        )
        for x in SHARES
      }
      label, blended = figure_lib.choose(blends, first, measures[0])
      tried |= blended
      share = float(label.rpartition(" ")[2])
    shown.append(systems.fuse(best, lexical, share))
  figures = {}
  for system in (*shown, *baselines):
    measured = figure_lib.measure(system, second, measures, _KEEP)
    figures[system.name] = measured
    say(
      f"{system.name}: {measures[0]} {measured.values[measures[0]].mean():.4f}"
    )
  lines = figure_lib.compare(second, figures, best.name)
  return Comparison(chosen, best, share or 0.0, tried, lines, figures, second)


def write(
  folder: pathlib.Path,
  name: str,
  table: features.FeatureTable,
  compared: Comparison,
) -> None:
  """Writes run files, judgments, all candidates and the table.

  Args:
    folder: where.
    name: of the protocol, the start of each file's name.
    table: the entities.
    compared: the comparison.
  """
  (folder / "runs").mkdir(exist_ok=True)
  named = trec.plain_names(table.entities)
  ids = [named[x] for x in table.entities]
  tasks = trec.plain_names(task.id for task in compared.tasks)
  for system, figures in compared.figures.items():
    run = {
      tasks[task.id]: dict(zip((ids[i] for i in rows), scores.tolist()))
      for task, (rows, scores) in zip(compared.tasks, figures.runs)
    }
    tag = system.replace("+", "_")
    trec.write_run(folder / "runs" / f"{name}-{tag}.run.gz", run, tag=tag)
  judgments = {
    tasks[task.id]: {ids[i]: 1 for i in task.relevant}
    for task in compared.tasks
  }
  trec.write_judgments(folder / "runs" / f"{name}.qrels.gz", judgments)
  value: dict[str, Any] = {
    "chosen": compared.chosen,
    "share": compared.share,
    "tried": compared.tried,
    "lines": [
      {
        "system": line.system,
        "means": line.means,
        "against": {k: v._asdict() for k, v in line.against.items()},
      }
      for line in compared.lines
    ],
    "strata": strata(compared),
  }
  workdir.write_json(folder / f"{name}.json", value)


def strata(compared: Comparison) -> dict[str, dict[str, float]]:
  """Mean of the first measure by system and stratum."""
  table: dict[str, dict[str, float]] = {}
  labels = sorted({task.stratum for task in compared.tasks}, key=_first_number)
  for system, figures in compared.figures.items():
    values = next(iter(figures.values.values()))
    for label in labels:
      own = [v for t, v in zip(compared.tasks, values) if t.stratum == label]
      table.setdefault(system, {})[label] = float(sum(own) / len(own))
  return table


def precision_plot(compared: Comparison) -> Any:
  """Precision at k of all systems; None where matplotlib is not installed."""
  try:
    from matplotlib import figure
  except ImportError:
    return None
  picture = figure.Figure(figsize=(6, 4))
  axes = picture.subplots()
  for system, figures in compared.figures.items():
    style = "-" if system.startswith("nvse") else "--"
    axes.plot(
      range(1, len(figures.curve) + 1), figures.curve, style, label=system
    )
  axes.set(xlabel="k", ylabel="precision at k", ylim=(0, None))
  axes.grid(alpha=0.3)
  axes.legend(fontsize=8)
  return picture


def _first_number(label: str) -> int:
  head = label.partition("-")[0]
  return int(head) if head.isdecimal() else 0
