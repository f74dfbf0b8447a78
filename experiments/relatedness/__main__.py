"""Entity vectors, and how well they rank related entities (thesis 6.2).

python -m experiments.relatedness                 (WordNet, about two minutes)
python -m experiments.relatedness --corpus=enwiki-pages-articles.xml.bz2
    --queries=relatedness/test.svm --workdir=runs/relatedness

Learns max-margin vectors on pages (U1) and then on contexts of mentions (U2),
and posterior means of a trained and of an untrained autoencoder.
--corpus is streamed, so that a whole dump of Wikipedia, which the thesis
used, needs memory for its entities alone. --queries are SVMlight files of
Ceccarelli et al. (NDCG@1, 5, 10 and MAP; the thesis' best: .646, .611, .639
and .576) or KORE (Spearman's correlation for each seed); by default they are
made of WordNet's classes: a seed, five of its class and twenty of others.
--workdir gets the figures as report.html, the vectors of each objective, and
those of the first one, with contexts, as vectors.npz and in word2vec's format.
"""

from experiments.relatedness import chapter, evaluate
from experiments.relatedness.config import Config
from experiments.run import config as config_lib
from experiments.run import progress, report_page, runlib

config_lib.define(Config, skip=("seed",))


def main(argv: list[str]) -> None:
  """Learns and measures the vectors that the flags name."""
  del argv
  config = config_lib.from_flags(Config)
  with runlib.Run("relatedness") as run:
    if run.finished:
      progress.say(f"relatedness: finished before; see {run.directory}")
      return
    lines = evaluate.evaluate(run, config, progress.say)
    page = {"relatedness": chapter.make(lines)}
    report_page.write_report(page, run.directory)
    chapter.rows(run, lines)


if __name__ == "__main__":
  runlib.launch(main)
