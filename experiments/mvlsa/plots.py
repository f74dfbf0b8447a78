"""Pictures of a study: figure against setting, shares of views, losses."""

from typing import Any

from experiments.mvlsa.evaluate import Study


def figures(study: Study) -> dict[str, Any]:
  """The study's matplotlib figures by name; none where it is not installed."""
  try:
    from matplotlib import figure
  except ImportError:
    return {}
  pictures = {}
  if len(study.axis) > 1:
    pictures[study.name] = _lines(study, figure.Figure(figsize=(7, 4)))
  elif len(study.systems) > 1:
    pictures[study.name] = _bars(study, figure.Figure(figsize=(9, 4)))
  if study.shares:
    pictures["shares"] = _shares(study, figure.Figure(figsize=(7, 6)))
  return pictures


def _lines(study: Study, picture):
  """One line for each test set over the settings."""
  axes = picture.subplots()
  _draw_lines(study, axes)
  axes.set(xlabel=study.name, ylabel="correlation or accuracy x 100")
  axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
  return picture


def _draw_lines(study: Study, axes) -> None:
  sets = list(dict.fromkeys(s for r in study.systems.values() for s in r))
  for name in sets:
    values = [
      results[name].value if name in results else float("nan")
      for results in study.systems.values()
    ]
    axes.plot(study.axis, values, "o-", label=name)
  if min(study.axis) > 0 and max(study.axis) / min(study.axis) > 20:
    axes.set_xscale("log")
  axes.grid(alpha=0.3)


def _bars(study: Study, picture):
  """A group of bars for each test set, one bar for each system."""
  axes = picture.subplots()
  sets = list(dict.fromkeys(s for r in study.systems.values() for s in r))
  width = 0.8 / len(study.systems)
  for i, (system, results) in enumerate(study.systems.items()):
    places = [j + i * width for j in range(len(sets))]
    values = [results[s].value if s in results else 0 for s in sets]
    axes.bar(places, values, width, label=system)
  axes.set_xticks([j + 0.4 - width / 2 for j in range(len(sets))], sets)
  axes.set(ylabel="correlation or accuracy x 100")
  axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
  return picture


def _shares(study: Study, picture):
  """Explained share of the vectors by each view."""
  axes = picture.subplots()
  shares = dict(sorted((study.shares or {}).items(), key=lambda x: x[1]))
  axes.barh(list(shares), list(shares.values()))
  axes.tick_params(axis="y", labelsize=6)
  axes.set(xlabel="explained share of the vectors", xlim=(0, 1))
  return picture
