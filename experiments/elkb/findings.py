"""Claims, answer, table and charts of rules for the report."""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.run import report

QUESTION = "Do rules let embeddings of a knowledge base deduce facts?"
_RULES = " + rules"
_WORST = "largest rule violation"
_ENTAILED = "MAP (all entailed facts)"


def answer(rows: Sequence[Mapping[str, Any]]) -> str:
  """One sentence: the puzzle without and with rules."""
  plain, ruled = ("puzzle A", "MRR"), ("puzzle A" + _RULES, "MRR")
  values, lower = _values(rows), _values(rows, "lower")
  start = "Yes" if lower[ruled] > values[plain] else "Not clearly"
  return (
    f"{start}, in the puzzle: the reciprocal rank of the entailed facts is "
    f"{values[plain]:.2f} without and {values[ruled]:.2f} with rules (model A)."
  )


def claims(rows: Sequence[Mapping[str, Any]]) -> list[report.Claim]:
  """Tests the claims of chapter 5 on rules.

  Args:
    rows: figures of the puzzle and of link prediction.
  """
  values = _values(rows)
  lower, thesis = (_values(rows, end) for end in ("lower", "thesis"))
  ruled = [
    (name, value)
    for (name, metric), value in values.items()
    if metric == _WORST and name.endswith(_RULES)
  ]
  with_a, with_b = f"puzzle A{_RULES}", f"puzzle B{_RULES}"
  tested = [
    report.claim(
      "Rules make the puzzle solvable",
      "MRR {plain:.2f} without, {ruled:.2f} with rules (model A)",
      {
        "plain": values["puzzle A", "MRR"],
        "ruled": values[with_a, "MRR"],
        "lower": lower[with_a, "MRR"],
      },
      lambda x: x["lower"] > x["plain"],
    ),
    report.claim(
      "Rules hold in every trained model",
      "largest violation {worst:.0e} in {count} models",
      {"worst": max(value for _, value in ruled), "count": len(ruled)},
      lambda x: x["worst"] < 1e-5,
    ),
    report.claim(
      "With rules, model A solves the puzzle better than model B",
      "MRR {a:.2f} and {b:.2f} (thesis {thesis_a:.2f} and {thesis_b:.2f})",
      {
        "a": values[with_a, "MRR"],
        "thesis_a": thesis[with_a, "MRR"],
        "thesis_b": thesis[with_b, "MRR"],
        "b": values[with_b, "MRR"],
        "lower": lower[with_a, "MRR"],
      },
      lambda x: x["lower"] > x["b"],
    ),
  ]
  pairs = _pairs(values)
  if pairs:
    shown = [
      f"{_model(plain)} {{plain_{i}:.3f}} without, {{ruled_{i}:.3f}} with rules"
      for i, (plain, _) in enumerate(pairs)
    ]
    figures = {
      f"{kind}_{i}": values[name, "filtered mrr"]
      for i, pair in enumerate(pairs)
      for kind, name in zip(("plain", "ruled"), pair)
    }
    tested.append(
      report.claim(
        "Rules improve link prediction",
        f"filtered MRR: {'; '.join(shown)}",
        figures,
        lambda x: all(
          x[f"ruled_{i}"] > x[f"plain_{i}"] for i in range(len(pairs))
        ),
      )
    )
  return tested


def table(rows: Sequence[Mapping[str, Any]]) -> report.Table:
  """Each system without and with rules: its figure, its worst violation."""
  values = _values(rows)
  lines = []
  for (name, metric), value in values.items():
    other = name + _RULES
    if metric in ("MRR", "filtered mrr") and (other, metric) in values:
      lines.append(
        [
          name,
          round(value, 3),
          round(values[other, metric], 3),
          values[name, _WORST],
          values[other, _WORST],
        ]
      )
  header = ["", "MRR", "MRR with rules", _WORST, "violation with rules"]
  return report.Table("What rules change", header, lines)


def charts(
  rows: Sequence[Mapping[str, Any]],
  history: Mapping[str, Sequence[tuple[float, float]]],
) -> list[report.Forest | report.Lines]:
  """The puzzle with intervals, and validation MRR in training.

  Args:
    history: epoch and validation MRR of each system.
  """
  points = [
    report.Point(
      row["name"], row["value"], max(row["lower"], 0.0), min(row["upper"], 1.0)
    )
    for row in rows
    if row["metric"] == _ENTAILED
  ]
  made: list[report.Forest | report.Lines] = [
    report.Forest(
      "The deduction puzzle: average precision over all entailed facts, with "
      "95 % intervals over ten runs.",
      "MAP of the entailed facts",
      points,
      limits=(0, 1),
    )
  ]
  lines = [
    report.Series(name, [x for x, _ in held], [y for _, y in held])
    for name, held in history.items()
    if held
  ]
  if lines:
    caption = "Link prediction on WordNet: validation MRR in training."
    made.append(
      report.Lines(caption, "epoch", "MRR, filtered", lines, limits=(0, 1))
    )
  return made


def _values(
  rows: Sequence[Mapping[str, Any]], key: str = "value"
) -> dict[tuple[str, str], float]:
  return {(row["name"], row["metric"]): row[key] for row in rows if key in row}


def _pairs(values: Mapping[tuple[str, str], float]) -> list[tuple[str, str]]:
  """Systems of link prediction without rules, and with them."""
  return [
    (name.removesuffix(_RULES), name)
    for name, metric in values
    if metric == "filtered mrr" and name.endswith(_RULES)
  ]


def _model(name: str) -> str:
  model = name.rpartition(", ")[2]
  return model if len(model) > 1 else f"model {model}"
