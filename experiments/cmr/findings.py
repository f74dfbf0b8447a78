"""Claims, answer, table and charts of mention retrieval for the report."""

from collections.abc import Mapping, Sequence

from experiments.run import report, report_labels
from repr_jax.evaluation import significance

QUESTION = "Do learned representations help to find coreferent mentions?"
_BM25 = "bm25"
_ENSEMBLE = "+bm25"
_TRAINING = "Training the autoencoder improves mention retrieval"
_DECODER = "The multinomial decoder beats the multilabel one"
# Representations alone; the thesis' are on news of TAC 2014.
_TOLD = {
  _TRAINING: "AP {first:.3f} trained, {second:.3f} untrained, p = {p:.2g} "
  "(thesis: infAP 50.3 and 50.7)",
  _DECODER: "AP {first:.3f} and {second:.3f}, p = {p:.2g} "
  "(thesis: infAP 50.9 and 41.0)",
}

# Average precision minus that of BM25, by system.
Gaps = Mapping[str, significance.Difference]


def answer(means: Mapping[str, float], gaps: Gaps) -> str:
  """One sentence: the best ensemble against BM25."""
  ensembles = _ensembles(gaps)
  if not ensembles:
    return f"BM25 alone reaches {means[_BM25]:.3f} AP."
  best = max(ensembles, key=lambda name: means[name])
  gap = gaps[best]
  start = "Yes, a little" if report.is_gain(gap) else "Not clearly"
  return (
    f"{start}: {report_labels.label(best).text} reaches {means[best]:.3f} AP, "
    f"BM25 alone {means[_BM25]:.3f} (p = {gap.p_value:.2g})."
  )


def claims(
  means: Mapping[str, float],
  gaps: Gaps,
  pairs: Mapping[tuple[str, str], significance.Difference],
) -> list[report.Claim]:
  """Tests the claims of chapter 6 on mention retrieval.

  Args:
    means: average precision by system.
    gaps: differences to BM25 by system.
    pairs: differences of the first system minus the second.
  """
  tested = []
  ensembles = _ensembles(gaps)
  if ensembles:
    best = max(ensembles, key=lambda name: means[name])
    tested.append(
      report.gain_claim(
        "A learned representation improves BM25",
        f"AP {{ours:.3f}} with {_words(best)}, {{bm25:.3f}} without, "
        "p = {p:.2g}",
        {"ours": means[best], "bm25": means[_BM25]},
        gaps[best],
      )
    )
  for sentence, evidence in _TOLD.items():
    tested += [
      report.gain_claim(
        sentence,
        evidence,
        {"first": means[first], "second": means[second]},
        gap,
      )
      for (first, second), gap in pairs.items()
      if _question(first, second) == sentence
    ]
  return tested


def asked(names: Sequence[str]) -> list[tuple[str, str]]:
  """Pairs of systems that a claim compares, the one said to be better first."""
  return [
    (first, second)
    for first in names
    for second in names
    if _question(first, second)
  ]


def table(means: Mapping[str, float], gaps: Gaps) -> report.Table:
  """The best eight systems and their difference to BM25."""
  best = sorted(means, key=lambda name: -means[name])[:8]
  rows = []
  for name in best:
    gap = gaps.get(name)
    told = name != _BM25 and gap is not None
    rows.append(
      [
        name,
        round(means[name], 3),
        f"{gap.value:+.3f}" if told and gap else "",
        f"{gap.lower:+.3f} to {gap.upper:+.3f}" if told and gap else "",
        f"{gap.p_value:.2g}" if told and gap else "",
      ]
    )
  header = ["system", "AP", "minus BM25", "95 % interval", "p"]
  return report.Table("The best systems", header, rows)


def charts(gaps: Gaps) -> list[report.Forest | report.Lines]:
  """Ensembles against BM25, and representations alone against it."""
  made: list[report.Forest | report.Lines] = []
  for names, what in (
    (_ensembles(gaps), "Each representation together with BM25"),
    (_alone(gaps), "Each representation alone"),
  ):
    if names:
      made.append(
        report.Forest(
          f"{what}, minus BM25, with 95 % intervals (paired bootstrap over "
          "queries).",
          "difference in AP",
          [
            report.Point(x, gaps[x].value, gaps[x].lower, gaps[x].upper)
            for x in sorted(names, key=lambda name: -gaps[name].value)
          ],
          sides=("worse than BM25", "better than BM25"),
        )
      )
  return made


def _question(first: str, second: str) -> str:
  """The claim that compares two systems alone, empty if there is none."""
  a, b = (_settings(name) for name in (first, second))
  if a is None or b is None:
    return ""
  trained = a.get("epochs") != "0", b.get("epochs") != "0"
  kinds = a.get("decoder", "multinomial"), b.get("decoder", "multinomial")
  same = a.get("decoder") == b.get("decoder")
  if same and trained == (True, False):
    return _TRAINING
  if kinds == ("multinomial", "multilabel") and trained == (True, True):
    return _DECODER
  return ""


def _settings(name: str) -> dict[str, str] | None:
  """Settings of an autoencoder alone, None for any other system."""
  kind, *parts = name.split(":")
  if kind != "vae" or name.endswith((_ENSEMBLE, " mean")):
    return None
  return dict(part.split("=", 1) for part in parts if "=" in part)


def _ensembles(gaps: Gaps) -> list[str]:
  return [name for name in gaps if name.endswith(_ENSEMBLE)]


def _alone(gaps: Gaps) -> list[str]:
  return [
    name
    for name in gaps
    if not name.startswith(_BM25) and _ENSEMBLE not in name
  ]


def _words(name: str) -> str:
  return report_labels.label(name.removesuffix(_ENSEMBLE)).text
