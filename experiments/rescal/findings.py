"""Claims, answer, table and charts of RESCAL for the report."""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.run import report, report_labels, report_verdicts

QUESTION = "Can RESCAL store a tree?"
_RIGHT = 95.0


def answer(rows: Sequence[Mapping[str, Any]]) -> str:
  """One sentence: the best setting's figure on its worst kind of pair."""
  worst = _worst(rows)
  best = max(worst, key=lambda name: worst[name][1])
  part, value = worst[best]
  setting = report_labels.label(best).text
  wrong = f"{100 - value:.0f} % of the {_part(part)} wrong"
  if value >= _RIGHT:
    return f"Yes: the best setting ({setting}) has only {wrong}."
  return f"No: the best setting ({setting}) still has {wrong}."


def claims(rows: Sequence[Mapping[str, Any]]) -> list[report.Claim]:
  """Tests the claims of chapter 5 on transitive relations.

  Args:
    rows: figures named by cell, with one metric for each kind of pair.
  """
  values = {(row["name"], row["metric"]): row["value"] for row in rows}
  names = list(dict.fromkeys(row["name"] for row in rows))
  compared = [row for row in rows if report_verdicts.verdict(row)]
  agree = [row for row in compared if report_verdicts.verdict(row) == "agrees"]
  worst = _worst(rows)
  tested = [
    report.claim(
      "RESCAL with one vector per entity cannot store a tree",
      "at best {best:.0f} % of the hardest kind of pair are right; "
      "{agree} of {compared} figures agree with the thesis",
      {
        "best": max(value for _, value in worst.values()),
        "agree": len(agree),
        "compared": len(compared),
      },
      lambda x: x["best"] < _RIGHT,
    )
  ]
  sub = [name for name in names if name.endswith("SubSet")]
  if sub:
    absent, reversed_ = ("E^c, % right", "E^rev, % right")
    tested.append(
      report.claim(
        "Trained on few absent pairs, RESCAL takes reversed pairs for true",
        "{reversed:.0f} % of reversed pairs are right, {absent:.0f} % of all "
        "absent pairs (smallest vectors)",
        {
          "reversed": values[sub[0], reversed_],
          "absent": values[sub[0], absent],
        },
        lambda x: x["reversed"] < x["absent"],
      )
    )
  return tested


def charts(
  cells: Sequence[tuple[str, int]], rows: Sequence[Mapping[str, Any]]
) -> list[report.Forest | report.Lines]:
  """Accuracy against the size of the vectors, for what is not at 100 %."""
  sizes = dict(cells)
  groups: dict[str, list[tuple[int, float]]] = {}
  for row in rows:
    if row["name"] not in sizes:
      continue
    dim = sizes[row["name"]]
    setting = report_labels.label(row["name"]).text.replace(f", d = {dim}", "")
    part = _part(row["metric"])
    groups.setdefault(f"{setting}: {part}", []).append((dim, row["value"]))
  drawn = {
    name: sorted(points)
    for name, points in groups.items()
    if min(value for _, value in points) < _RIGHT
  }
  if not drawn:
    return []
  if len({name.partition(",")[0] for name in drawn}) == 1:
    drawn = {name.partition(", ")[2]: drawn[name] for name in drawn}
  return [
    report.Lines(
      "Pairs that are right against the size of the vectors. FullSet is "
      "trained with all absent pairs, SubSet with as many as there are stored "
      f"ones; lines that stay above {_RIGHT:g} % are not drawn.",
      "size of the vectors, d",
      "right, %",
      [
        report.Series(name, [d for d, _ in points], [y for _, y in points])
        for name, points in drawn.items()
      ],
      limits=(0, 100),
    )
  ]


def table(rows: Sequence[Mapping[str, Any]]) -> report.Table:
  """Percent right of each kind of pair, a row for each cell."""
  metrics = list(dict.fromkeys(row["metric"] for row in rows))
  values = {(row["name"], row["metric"]): row["value"] for row in rows}
  names = list(dict.fromkeys(row["name"] for row in rows))
  return report.Table(
    "Right, %",
    ["", *(_part(metric) for metric in metrics)],
    [
      [name, *(f"{values[name, metric]:.1f}" for metric in metrics)]
      for name in names
    ],
  )


def _worst(
  rows: Sequence[Mapping[str, Any]],
) -> dict[str, tuple[str, float]]:
  """For each cell the kind of pair that is least often right."""
  worst: dict[str, tuple[str, float]] = {}
  for row in rows:
    value = row["value"]
    if row["name"] not in worst or value < worst[row["name"]][1]:
      worst[row["name"]] = (row["metric"], value)
  return worst


def _part(metric: str) -> str:
  """The kind of pair that a metric is about."""
  return report_labels.measure(metric).text.partition(",")[0]
