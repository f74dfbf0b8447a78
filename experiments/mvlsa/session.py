"""What the systems of one run share: words, views, factors and test sets."""

import dataclasses
import pathlib
from collections.abc import Callable, Sequence

import numpy as np

from experiments.mvlsa import data, evaluate, fitting
from experiments.mvlsa.config import Options
from repr_jax.data.views import vocab
from repr_jax.data.views.collection import View
from repr_jax.evaluation import similarity
from repr_jax.multiview import mvlsa, sharding
from repr_jax.ops import mesh as meshes


@dataclasses.dataclass
class Session:
  """One pass of counting and what is made of it.

  Attributes:
    options: of the run.
    words: the vocabulary.
    text: paths of tokenized text.
    counted: every view that was counted.
    views: those of the fit.
    sets: test sets.
    report: called with a line of text when something long is done.
  """

  options: Options
  words: vocab.Vocab
  text: Sequence[str]
  counted: Sequence[View]
  views: Sequence[View]
  sets: Sequence[evaluate.TestSet]
  report: Callable[[str], None] = lambda text: None

  def __post_init__(self):
    self._index = similarity.index_words(self.words.words)
    self._factors: dict[tuple, fitting.Factor] = {}

  def score(self, array: np.ndarray) -> dict[str, similarity.Result]:
    """Results of vectors [n, d] of the vocabulary on every set."""
    return evaluate.evaluate(array, self._index, self.sets)

  def factors(
    self, options: Options | None = None, views: Sequence[View] | None = None
  ) -> list[fitting.Factor]:
    """Left factors of views, each computed once for the same options.

    Args:
      options: other than those of the run.
      views: other than all.
    """
    options = options or self.options
    views = self.views if views is None else views
    weights = fitting.row_weights(
      views, options.row_power or None, options.min_support
    )
    cache = None
    if options.keep_factors:
      cache = pathlib.Path(options.store) / "factors"
    found = []
    for view, rows in zip(views, weights):
      how = options.weighting(data.group(view.name))
      key = (view.name, how, options.m, fitting.hash_array(rows))
      if key not in self._factors:
        self._factors[key] = fitting.factor(
          view, rows, how, options.m, tolerance=options.tolerance,
          max_cycles=options.svd_cycles, seed=options.seed, cache=cache,
        )  # fmt: skip
        self.report(f"factor of {view.name}")
      found.append(self._factors[key])
    return found

  def combine(
    self, factors: Sequence[fitting.Factor], options: Options | None = None
  ) -> fitting.Combination:
    """Word vectors of some factors, their columns scaled as told."""
    options = options or self.options
    found = fitting.combine(
      factors,
      options.k,
      m=options.m,
      ridge=options.ridge,
      relative=options.relative_ridge,
      view_weights=view_weights([f.name for f in factors], options),
      seed=options.seed,
    )
    scale = found.values ** np.float32(options.eigenvalue_power)
    return found._replace(embedding=found.embedding * scale)


def view_weights(names: Sequence[str], options: Options) -> dict[str, float]:
  """Weight of each view: its group's, shared by the group if balanced."""
  groups = [data.group(name) for name in names]
  weights = {}
  for name, group in zip(names, groups):
    weight = options.group_weight(group)
    weights[name] = weight / (groups.count(group) if options.balance else 1)
  return weights


def open_session(
  options: Options,
  sets: Sequence[evaluate.TestSet],
  report: Callable[[str], None] = lambda text: None,
) -> Session:
  """Counts, or finds, everything that the options ask for.

  Args:
    options: of the run.
    sets: test sets.
    report: called with a line of text when something long is done.
  """
  text = data.prepare_text(options)
  words = data.vocabulary(options, text)
  report(f"vocabulary of {len(words):,} words")
  counted = data.collect(options, words, text)
  views = data.choose(options, counted)
  report(f"{len(views)} views of {len(counted)} counted")
  return Session(options, words, text, counted, views, sets, report)


def fit(session: Session) -> mvlsa.MVLSA:
  """One fit with projections by the library, in memory or streamed."""
  options = session.options
  names = [view.name for view in session.views]
  strength = view_weights(names, options)
  weights = fitting.row_weights(
    session.views, options.row_power or None, options.min_support
  )
  weights = [
    np.float32(np.sqrt(strength[name])) * rows
    for name, rows in zip(names, weights)
  ]

  def loader(view: View):
    how = options.weighting(data.group(view.name))
    return lambda: fitting.weighted(view, how)

  return mvlsa.fit(
    [loader(view) for view in session.views],
    options.k,
    m=options.m,
    ridge=options.ridge,
    min_support=options.min_support,
    row_weights=weights,
    method=options.method,
    tolerance=options.tolerance,
    projections=options.method == "memory",
    seed=options.seed,
    report=lambda j, error: session.report(
      f"SVD of {names[j]}, error {error:.1e}"
    ),
    mesh=meshes.make_mesh(options.mesh, sharding.AXES),
  )
