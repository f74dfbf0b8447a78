"""Claims, answer, table and charts of set expansion for the report."""

from collections.abc import Mapping, Sequence

from experiments.run import report
from repr_jax.evaluation import significance

QUESTION = "Does the autoencoder expand sets better than simpler methods?"
_OWN = "nvse"
_MEMBERS, _GAUSSIAN, _BM25 = "nvse-members", "nvse-xi", "bm25"
_OTHERS = ("bernoulli", "poisson", "gaussian", "word2vecf", "setexpan")

# Mean and ends of its interval by system.
Means = Mapping[str, tuple[float, float, float]]
# NVSE minus the system, by system.
Gaps = Mapping[str, significance.Difference]


def answer(means: Means, gaps: Gaps) -> str:
  """One sentence: NVSE, BM25, and the members' own features."""
  return (
    f"Better than BM25 by {gaps[_BM25].value:+.3f} MAP, but not clearly better "
    f"than the members' own features ({gaps[_MEMBERS].value:+.3f})."
    if report.is_gain(gaps[_BM25]) and not report.is_gain(gaps[_MEMBERS])
    else f"MAP {means[_OWN][0]:.3f}: {gaps[_BM25].value:+.3f} against BM25, "
    f"{gaps[_MEMBERS].value:+.3f} against the members' own features."
  )


def claims(means: Means, gaps: Gaps) -> list[report.Claim]:
  """Tests the claims of chapter 4.

  Args:
    means: MAP with its interval, by system.
    gaps: paired differences in MAP of NVSE minus the system.
  """
  tested = [
    report.gain_claim(
      sentence,
      evidence,
      {"ours": means[_OWN][0], "other": means[other][0]},
      gaps[other],
    )
    for other, sentence, evidence in (
      (
        _BM25,
        "The autoencoder (NVSE) expands sets better than BM25",
        "MAP {ours:.3f}, BM25 {other:.3f}, p = {p:.2g}",
      ),
      (
        _MEMBERS,
        "The autoencoder adds to the members' own features",
        "MAP {ours:.3f} with it, {other:.3f} without, p = {p:.2g}",
      ),
    )
    if other in gaps
  ]
  others = [name for name in _OTHERS if name in gaps]
  if others:
    best = max(others, key=lambda name: means[name][0])
    tested.append(
      report.claim(
        "NVSE beats Bayesian Sets, SetExpan and word2vecf",
        "MAP {ours:.3f}, the best of them {best:.3f}; largest p = {p:.2g}",
        {
          "ours": means[_OWN][0],
          "best": means[best][0],
          "gain": min(gaps[name].value for name in others),
          "p": max(gaps[name].p_value for name in others),
        },
        lambda x: x["gain"] > 0 and x["p"] < 0.05,
      )
    )
  if _GAUSSIAN in means and _BM25 in means:
    tested.append(
      report.claim(
        "The thesis' own ranking, by Gaussians, beats BM25",
        "MAP {gaussian:.3f}, BM25 {bm25:.3f}",
        {
          "gaussian": means[_GAUSSIAN][0],
          "lower": means[_GAUSSIAN][1],
          "bm25": means[_BM25][0],
        },
        lambda x: x["lower"] > x["bm25"],
      )
    )
  return tested


def table(means: Means, ranks: Means) -> report.Table:
  """The best eight systems: MAP and reciprocal rank with intervals."""
  best = sorted(means, key=lambda name: -means[name][0])[:8]
  return report.Table(
    "The eight best systems, with 95 % intervals",
    ["system", "MAP", "interval", "reciprocal rank", "interval"],
    [
      [
        name,
        f"{means[name][0]:.3f}",
        _interval(means[name]),
        f"{ranks[name][0]:.3f}",
        _interval(ranks[name]),
      ]
      for name in best
    ],
  )


def charts(
  gaps: Gaps,
  precision: Mapping[str, tuple[Sequence[float], Sequence[float]]],
  objective: tuple[Sequence[float], Sequence[float]],
) -> list[report.Forest | report.Lines]:
  """NVSE against each system; precision at k; the objective in training.

  Args:
    gaps: paired differences in MAP of NVSE minus the system.
    precision: ranks and the mean precision at them, by system.
  """
  order = sorted(gaps, key=lambda name: gaps[name].value)
  made: list[report.Forest | report.Lines] = [
    report.Forest(
      "NVSE minus each system, with 95 % intervals (paired bootstrap over "
      "queries).",
      "difference in MAP",
      [
        report.Point(name, gaps[name].value, gaps[name].lower, gaps[name].upper)
        for name in order
      ],
      sides=("NVSE worse", "NVSE better"),
    )
  ]
  if precision:
    made.append(
      report.Lines(
        "Precision of the first k answers.", "k", "precision",
        [report.Series(name, *held) for name, held in precision.items()],
        limits=(0, 1),
      )
    )  # fmt: skip
  if len(objective[0]):
    made.append(
      report.Lines(
        "The objective in training.", "epoch", "ELBO, nats",
        [report.Series("training", *objective)],
      )
    )  # fmt: skip
  return made


def _interval(mean: tuple[float, float, float]) -> str:
  return f"{mean[1]:.3f} to {mean[2]:.3f}"
