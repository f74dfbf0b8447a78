"""Claims, answer, table and charts of multiview LSA for the report."""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.run import report, report_labels, report_verdicts

QUESTION = "Does WordNet alone, without any text, give good word vectors?"
_ALL = "all views"
_SETTINGS = {
  "k": "the number of dimensions",
  "m": "the number of singular vectors of a view",
  "t": "the number of contexts of a view",
}


def answer(rows: Sequence[Mapping[str, Any]]) -> str:
  """One sentence on the figures that have a counterpart in the thesis."""
  parts = [
    f"{row['value']:.1f} on {_set(row)} (thesis: {row['thesis']:.1f})"
    for row in _compared(rows)
  ]
  return (
    f"Spearman's correlation with human scores x 100 is {', '.join(parts)}; "
    "the thesis also uses billions of words of text."
  )


def claims(rows: Sequence[Mapping[str, Any]]) -> list[report.Claim]:
  """Tests whether WordNet's views reach the thesis' figures."""
  compared = _compared(rows)
  if not compared:
    return []
  parts = [
    f"{_set(row)} {{ours_{i}:.1f}} (thesis {{thesis_{i}:.1f}})"
    for i, row in enumerate(compared)
  ]
  figures = {}
  for i, row in enumerate(compared):
    figures[f"ours_{i}"] = row["value"]
    figures[f"thesis_{i}"] = row["thesis"]
  below = [row for row in compared if report_verdicts.verdict(row) == "below"]
  return [
    report.claim(
      "WordNet alone gives word vectors as good as the thesis'",
      ", ".join(parts),
      {**figures, "below": len(below)},
      lambda x: x["below"] == 0,
    )
  ]


def table(cells: Sequence[Mapping[str, Any]]) -> report.Table:
  """The ablation: all views, and without each group, largest loss first."""
  sets = list(dict.fromkeys(cell["set"] for cell in cells))
  values = {(cell["system"], cell["set"]): cell["value"] for cell in cells}
  order = sorted(_losses(cells), key=lambda loss: -abs(loss[2]))
  groups = list(dict.fromkeys(name for name, *_ in order))
  rows = [
    [system, *(_shown(values.get((system, name))) for name in sets)]
    for system in (_ALL, *groups)
  ]
  title = "With all views, and without one group of views"
  return report.Table(title, ["views", *sets], rows)


def charts(
  cells: Sequence[Mapping[str, Any]],
) -> list[report.Forest | report.Lines]:
  """The difference that each group of views makes to each set."""
  made: list[report.Forest | report.Lines] = []
  for name in dict.fromkeys(cell["set"] for cell in cells):
    losses = [loss for loss in _losses(cells) if loss[1] == name]
    made.append(
      report.Forest(
        f"{_words(name)} without one group of views, minus all views. "
        "Bands: the difference that is significant at .05 if both correlate "
        "by .9 (MRDS).",
        "difference in Spearman x 100",
        [
          report.Point(group, -value, -value - mrds, -value + mrds)
          for group, _, value, mrds in sorted(losses, key=lambda x: -x[2])
        ],
        sides=("worse", "better"),
      )
    )
  return made


def sweep(
  setting: str,
  places: Sequence[float],
  values: Mapping[str, Sequence[float]],
) -> report.Lines:
  """Figures against one setting.

  Args:
    setting: its letter in the thesis: k, m or t.
    values: the figure of each test set at each place.
  """
  return report.Lines(
    f"Figures against {_SETTINGS[setting]}, all other settings as above.",
    f"{setting}: {_SETTINGS[setting]}",
    "Spearman x 100",
    [report.Series(name, places, held) for name, held in values.items()],
  )


def shares(explained: Mapping[str, float]) -> report.Forest:
  """How much of the vectors each view explains, the largest first."""
  order = sorted(explained, key=lambda name: -explained[name])
  return report.Forest(
    "How much of the vectors each view explains.",
    "explained share",
    [report.Point(name, explained[name]) for name in order],
    limits=(0, 1),
  )


def _losses(
  cells: Sequence[Mapping[str, Any]],
) -> list[tuple[str, str, float, float]]:
  """Group left out, set, loss and MRDS of each cell of differences.

  Cells of groups left out together are not among them.
  """
  return [
    (cell["system"].removesuffix(" loss"), cell["set"], cell["value"],
     cell["mrds"])
    for cell in cells
    if cell["system"].endswith(" loss")
    and " !" not in cell["system"]
    and None not in (cell["value"], cell["mrds"])
  ]  # fmt: skip


def _compared(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
  return [row for row in rows if report_verdicts.verdict(row) is not None]


def _set(row: Mapping[str, Any]) -> str:
  return _words(row["name"].partition(",")[0])


def _shown(value: float | None) -> str:
  return "-" if value is None else f"{value + 0.0:.1f}"


def _words(code: str) -> str:
  return report_labels.label(code.removeprefix("!")).text
