"""Chapter 3 in the main job: word vectors from WordNet alone.

Glosses at each offset, the gloss as a bag, synsets, hypernyms, relations,
derivation, frames, lexicographer files and walks on the graph; the test sets
are those that come with gensim. The ablation, and the figures against the
numbers of dimensions (k), of singular vectors of a view (m) and of contexts
(t).
"""

import dataclasses
import pathlib

from experiments import thesis
from experiments.mvlsa import evaluate, findings, plots, studies, train
from experiments.mvlsa.config import Config
from experiments.run import progress, report, runlib
from repr_jax.data.views.wordnet_views import GROUPS
from repr_jax.evaluation import significance, similarity

_QUICK = Config(
  wordnet=GROUPS,
  walks=True,
  vocabulary_size=12_000,
  min_rows=500,
  nonlinearity="ppmi",
  t=6_000,
  m=100,
  k=200,
  svd_cycles=1,
  group_weights=(
    "walks:3", "gloss:2", "frame:0.1", "inflection:0.1", "derivation:0.3",
    "lexname:0.3", "synset:0.3", "relation:0.3",
  ),
  balance=True,
  eigenvalue_power=1.0,
)  # fmt: skip
_FULL = dataclasses.replace(
  _QUICK, vocabulary_size=50_000, t=12_500, m=200, k=300
)
_VALUES = {
  "quick": {
    "k": ("10", "25", "50", "100", "200"),
    "m": ("25", "50", "100"),
    "t": ("1500", "3000", "6000"),
  },
  "full": {
    "k": ("10", "25", "50", "100", "200", "300"),
    "m": ("50", "100", "200"),
    "t": ("3125", "6250", "12500"),
  },
}
_ASKED = ("doctor", "music", "river", "angry", "run", "quickly")


def chapter(size: str, workdir: pathlib.Path) -> report.Chapter:
  """Fits WordNet's views, leaves one group out at a time, and scores all."""
  settings = _QUICK if size == "quick" else _FULL
  settings = dataclasses.replace(settings, store=str(workdir / "store"))
  sets = evaluate.load_sets(None, analogies=size == "full")
  config = dataclasses.asdict(settings)
  with runlib.Run("mvlsa", directory=workdir, config=config) as run:

    def say(text: str) -> None:
      progress.say(f"mvlsa: {text}")

    problem = train.prepare(settings, sets, say)
    study = studies.run("ablation", problem)
    assert study.vectors is not None
    run.vectors(problem.data.words.words, study.vectors)
    rows = [_row(run, result) for result in study.systems["all views"].values()]
    swept = [
      studies.run(name, problem, values)
      for name, values in _VALUES[size].items()
    ]
    for name, picture in plots.figures(study).items():
      run.plot(name, picture)
  cells = studies.cells(study, problem)
  return report.Chapter(
    title="Multiview LSA",
    summary=(
      f"Word vectors of {len(problem.data.words):,} words from "
      f"{len(problem.data.views)} views of WordNet, no text."
    ),
    rows=rows,
    tables=[_neighbors(problem, study)],
    charts=[
      *findings.charts(cells),
      *(_sweep(each) for each in swept),
      *([findings.shares(study.shares)] if study.shares else []),
    ],
    question=findings.QUESTION,
    answer=findings.answer(rows),
    table=findings.table(cells),
    claims=findings.claims(rows),
    notes=[_NOTE],
  )


# All views fused with GloVe and skip-gram, from 300 times more text.
_THESIS = {
  name: thesis.WORD_VECTORS["comparison"]["all fused"][name]
  for name in ("SIMLEX", "WS")
}
_NOTE = (
  "The thesis' figures come from text of billions of words with 46 views; "
  "here no text is read. Intervals are 95 % over the pairs of words. The "
  "weights of groups were the best of five choices on MEN, RW, SCWS, SIMLEX "
  "and MTURK, so SIMLEX is not held out. MRDS: .05/.9."
)


def _row(run: runlib.Run, result: similarity.Result) -> dict:
  """A figure with its interval; accuracies have none."""
  name, published = f"{result.name}, WordNet alone", _THESIS.get(result.name)
  if result.name.startswith("AN"):
    return run.row(name, "accuracy x 100", result.value, thesis=published)
  lower, upper = significance.spearman_interval(
    result.value / 100, result.scored
  )
  return run.row(
    name, "Spearman x 100", result.value, thesis=published, lower=100 * lower,
    upper=100 * upper,
  )  # fmt: skip


def _neighbors(problem: train.Problem, study: evaluate.Study) -> report.Table:
  """The nearest words of a few."""
  assert study.vectors is not None
  near = evaluate.neighbors(problem.data.words.words, study.vectors, _ASKED)
  return report.Table(
    "Nearest words by cosine",
    ["word", "nearest first"],
    [[word, ", ".join(names)] for word, names in near.items()],
  )


def _sweep(study: evaluate.Study) -> report.Lines:
  """The figures of a study against its setting."""
  sets = next(iter(study.systems.values()))
  values = {
    name: [results[name].value for results in study.systems.values()]
    for name in sets
  }
  return findings.sweep(study.name, study.axis, values)
