"""Claims, answer, table and charts of disambiguation for the report."""

from collections.abc import Mapping

from experiments.run import report, report_labels
from repr_jax.evaluation import significance

QUESTION = "Do context and coherence disambiguate better than the prior?"
_PRIOR = "prior alone"

# Gains in points by test set, better system and worse system.
Gains = Mapping[tuple[str, str, str], significance.Difference]


def answer(gains: Gains) -> str:
  """One sentence: the gain over the prior on the first test set."""
  for (_, _, worse), gain in gains.items():
    if worse == _PRIOR:
      start = "Yes" if report.is_gain(gain) else "Not here"
      return (
        f"{start}: {gain.value:+.1f} points against the prior alone "
        f"(p = {gain.p_value:.2g})."
      )
  return "No mention has its entity among the candidates."


def claims(gains: Gains) -> list[report.Claim]:
  """Tests the claims of chapter 6 on disambiguation.

  Args:
    gains: paired gains in points over mentions whose entity is among the
      candidates.
  """
  tested = []
  for (test, better, worse), gain in gains.items():
    sentence = "Coherence between mentions adds to their contexts"
    if worse == _PRIOR:
      sentence = "Disambiguation by context beats the prior"
    elif better.partition(" ")[0] != worse.partition(" ")[0]:
      sentence = f"{_start(better)} vectors beat {_start(worse)} vectors"
      sentence = sentence[0].upper() + sentence[1:]
    where = report_labels.label(test).text
    tested.append(
      report.gain_claim(
        f"{sentence} ({where})",
        "{gain:+.1f} points, 95 % interval {lower:+.1f} to {upper:+.1f}, "
        "p = {p:.2g}",
        {"lower": gain.lower, "upper": gain.upper},
        gain,
      )
    )
  return tested


def table(right: Mapping[str, float], f1: Mapping[str, float]) -> report.Table:
  """All systems on the first test set.

  Args:
    right: percent right among mentions with their entity in the candidates.
    f1: micro F1 over all mentions, in percent.
  """
  return report.Table(
    "All systems, %",
    ["system", "right if the entity is a candidate", "micro F1"],
    [[name, f"{right[name]:.1f}", f"{f1[name]:.1f}"] for name in right][:8],
  )


def charts(gains: Gains) -> list[report.Forest | report.Lines]:
  """The gains with their intervals."""
  if not gains:
    return []
  tests = {test for test, *_ in gains}
  points = []
  for (test, better, worse), gain in gains.items():
    start = f"{report_labels.label(test).text}: " if len(tests) > 1 else ""
    label = f"{start}{_words(better)} minus {_words(worse)}"
    points.append(report.Point(label, gain.value, gain.lower, gain.upper))
  return [
    report.Forest(
      "Gains over the same mentions, with 95 % intervals (paired bootstrap).",
      "difference in percent right, points",
      points,
      sides=("worse", "better"),
    )
  ]


def _words(system: str) -> str:
  return report_labels.label(system).text


def _start(system: str) -> str:
  return system.partition(" ")[0]
