"""SVD and GCCA in the main job."""

import pathlib
from typing import Any

from experiments.run import report
from experiments.spectral import evaluate, findings
from experiments.spectral.config import Config


def chapter(size: str, workdir: pathlib.Path) -> report.Chapter:
  """The report's chapter on SVD and GCCA."""
  del workdir
  return make(Config() if size == "quick" else Config(rows=20_000))


def make(config: Config) -> report.Chapter:
  """Solves the problems and compares their figures with the thesis' claims."""
  n, k, seed = config.rows, config.rank, config.seed
  errors = evaluate.centering(n, k, seed)
  curve = evaluate.spectrum(n, k, seed)
  rows = evaluate.missing_rows(n, seed)
  figures: list[dict[str, Any]] = [
    {"name": name, "metric": "mean relative error of singular values",
     "value": value}
    for name, value in errors.items()
  ]  # fmt: skip
  figures.append(
    {
      "name": "known singular values i^-0.7, float32",
      "metric": "worst relative error of singular values",
      "value": float(curve["error"].max()),
    }
  )
  recovery = rows["shares"], rows["recovered"]
  return report.Chapter(
    title="SVD and GCCA",
    summary=(
      f"Truncated SVD and GCCA of generated matrices with {n:,} rows whose "
      "answers are known."
    ),
    rows=figures,
    charts=findings.charts(curve, *recovery),
    notes=[
      "Centering inside the SVD is exact; the rank-one update that the thesis "
      "applies afterwards is exact only at full rank.",
      "GCCA leaves missing rows out of the fit. As zeros they would pull the "
      "shared space toward themselves.",
    ],
    question=findings.QUESTION,
    answer=findings.answer(errors, *recovery),
    claims=findings.claims(errors, *recovery),
  )
