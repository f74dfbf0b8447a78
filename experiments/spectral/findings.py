"""Claims, answer, table and charts of the spectral core for the report."""

from collections.abc import Mapping, Sequence

import numpy as np

from experiments.run import report, report_labels

QUESTION = "Is the spectral core exact, and does it cope with missing rows?"
# A figure is drawn at this height if it is smaller.
_FLOOR = 1e-9


def answer(
  errors: Mapping[str, float],
  shares: Sequence[float],
  recovered: Mapping[str, Sequence[float]],
) -> str:
  """One sentence; the arguments are those of `claims`."""
  error = report_labels.number(errors["implicit centering"], 1)
  return (
    f"Centering inside the SVD is right to {error}; "
    f"with {100 * shares[-1]:.0f} % of the rows missing GCCA still recovers "
    f"{100 * recovered['left out'][-1]:.0f} % of the planted space."
  )


def claims(
  errors: Mapping[str, float],
  shares: Sequence[float],
  recovered: Mapping[str, Sequence[float]],
) -> list[report.Claim]:
  """Tests the claims of chapter 3 about centering, missing rows, streams.

  Args:
    errors: mean relative error of the singular values by method.
    shares: shares of missing rows.
    recovered: recovered share of the planted space by treatment of missing
      rows, for each share.
  """
  last = {name: 100 * values[-1] for name, values in recovered.items()}
  return [
    report.claim(
      "Centering inside the SVD is exact",
      "relative error {inside:.1g}; {after:.2g} if a rank-one update centers "
      "afterwards",
      {
        "inside": errors["implicit centering"],
        "after": errors["rank-one update"],
      },
      lambda x: x["inside"] < 1e-4,
    ),
    report.claim(
      "GCCA should leave missing rows out, not treat them as zeros",
      "with {missing:.0f} % missing it recovers {out:.0f} % of a planted "
      "space, {zeros:.0f} % with zeros",
      {
        "out": last["left out"],
        "zeros": last["as zeros"],
        "missing": 100 * shares[-1],
      },
      lambda x: x["out"] > x["zeros"],
    ),
    report.claim(
      "GCCA over a stream of views equals GCCA in memory",
      "{stream:.1f} % and {memory:.1f} % recovered",
      {"stream": last["left out, streamed"], "memory": last["left out"]},
      lambda x: abs(x["stream"] - x["memory"]) < 1,
    ),
  ]


def charts(
  curve: Mapping[str, np.ndarray],
  shares: Sequence[float],
  recovered: Mapping[str, Sequence[float]],
) -> list[report.Forest | report.Lines]:
  """Recovery against missing rows; the errors of singular values.

  Args:
    curve: relative "error" and "bound" of each singular value.
    shares: shares of missing rows.
    recovered: recovered share by treatment of missing rows.
  """
  percent = [100 * share for share in shares]
  recovery = report.Lines(
    "How much of a planted space GCCA recovers as rows go missing.",
    "missing rows, %",
    "recovered, %",
    [
      report.Series(name, percent, [100 * value for value in values])
      for name, values in recovered.items()
    ],
  )
  error, bound = (np.maximum(curve[x], _FLOOR) for x in ("error", "bound"))
  caption = "Relative error of each singular value, and its bound."
  over = int(np.sum(curve["error"] > curve["bound"]))
  if over:
    caption += (
      f" The bound is that of exact arithmetic: {over} of {len(error)} errors "
      "are above it, because float32 rounds."
    )
  index = list(range(1, len(error) + 1))
  return [
    recovery,
    report.Lines(
      caption,
      "singular value",
      "relative error",
      [
        report.Series("error", index, error.tolist()),
        report.Series(
          "bound, without rounding" if over else "bound",
          index,
          bound.tolist(),
          dashed=True,
        ),
      ],
      log=True,
    ),
  ]
