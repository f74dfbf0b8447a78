"""SVD and GCCA on problems with known answers (thesis 3.3).

python -m experiments.spectral --workdir=runs/spectral        (half a minute)

Centering inside the SVD is exact, but the rank-one update of a truncated SVD is
not (thesis 3.3.1); missing rows are best left out of the fit (3.3.2); the
streamed GCCA agrees with the one in memory. Expect errors of about 1e-6 for the
first, and a recovered share of the true space above 0.9.
"""

from experiments.run import config as configs
from experiments.run import report_page, runlib
from experiments.spectral import chapter
from experiments.spectral.config import Config

configs.define(Config)


def main(argv: list[str]) -> None:
  """Runs the problems and writes their figures."""
  del argv
  config = configs.from_flags(Config, seed=runlib.SEED.value)
  with runlib.Run("spectral") as run:
    if run.finished:
      return
    done = chapter.make(config)
    for row in done.rows:
      run.row(row["name"], row["metric"], row["value"])
      print(f"{row['name']}: {row['metric']} {row['value']:.3g}")
    report_page.write_report({"spectral": done}, run.directory)


if __name__ == "__main__":
  runlib.launch(main)
