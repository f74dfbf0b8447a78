"""Word vectors of a run by `multiview.fit`, each view's SVD made once."""

import dataclasses
import functools
import pathlib
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from experiments.mvlsa import data, evaluate, lexicon_fit, weights
from experiments.mvlsa.config import Config
from repr_jax import multiview, ops
from repr_jax.data import testsets
from repr_jax.data.io import array_files
from repr_jax.data.views import spelling, store
from repr_jax.data.views.collection import View
from repr_jax.errors import InputError
from repr_jax.evaluation import similarity
from repr_jax.multiview import factoring, host_views, sharding
from repr_jax.multiview.gcca import ViewFactor
from repr_jax.ops import mesh as meshes

Factors = dict[str, ViewFactor]  # by the name of the view

SPELLING = "spelling"  # the view of --spelling
_PREDICTED = 200  # leading dimensions that spelling predicts


@dataclasses.dataclass(frozen=True)
class Problem:
  """Words, views and test sets of one run, and the factors made so far.

  Attributes:
    config: of the run.
    data: vocabulary and views.
    sets: test sets.
    report: called with a line of text when something long is done.
    development: halves of test sets that weights are fitted to.
    lexicons: pairs that vectors are fitted to at the end.
    held: factors by view, weighting, rank and weights of rows.
    pool: factors of all runs of a group, by what they depend on; None for a
      run alone.
  """

  config: Config
  data: data.Data
  sets: Sequence[evaluate.TestSet] = ()
  report: Callable[[str], None] = lambda text: None
  development: Sequence[testsets.SimilaritySet] = ()
  lexicons: lexicon_fit.Pairs = dataclasses.field(
    default_factory=lexicon_fit.Pairs
  )
  held: dict[tuple, ViewFactor] = dataclasses.field(default_factory=dict)
  pool: dict[tuple, ViewFactor] | None = None

  @functools.cached_property
  def index(self) -> dict[str, int]:
    """Row of each word."""
    return similarity.index_words(self.data.words.words)

  @functools.cached_property
  def labels(self) -> weights.Labels | None:
    """Pairs and scores that weights are fitted to; None if they are not."""
    if self.config.view_weights != "labels":
      return None
    return weights.labels(self.development, self.index)

  @functools.cached_property
  def grams(self) -> Any:
    """Character n-grams that words share; None without a view of spelling."""
    if not self.config.spelled:
      return None
    features = spelling.ngram_features(self.data.words.words)
    return features if features.nnz else None

  def score(self, vectors: np.ndarray) -> dict[str, similarity.Result]:
    """Results of vectors [n, d] of the vocabulary on every set."""
    return evaluate.evaluate(vectors, self.index, self.sets)

  def tuning(self, vectors: np.ndarray) -> float:
    """Mean figure of vectors [n, d] on the sets that choose settings.

    These are the tuning halves, if sets are halved. Sets of which no pair is
    known count as 0.
    """
    sets = self.development or self.sets
    names = evaluate.chosen_on(one.name for one in sets)
    chosen = [one for one in sets if one.name in names]
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")  # small views know few words
      try:
        results = evaluate.evaluate(vectors, self.index, chosen)
      except InputError:
        return 0.0
    return evaluate.mean(results, names)


def prepare(
  config: Config,
  sets: Sequence[evaluate.TestSet] = (),
  report: Callable[[str], None] = lambda text: None,
  shared: data.Data | None = None,
  pool: dict[tuple, ViewFactor] | None = None,
) -> Problem:
  """Counts, or finds, everything that the configuration asks for.

  Args:
    sets: test sets; one of them must have words of the vocabulary, unless
      they are the bundled ones and the run is one fit.
    report: called with a line of text when something long is done.
    shared: words and views, where another run has loaded them.
    pool: factors of other runs of the group, to be used and added to.
  """
  text: list[str] = []
  if shared is None:
    text = data.prepare_text(config)
    words = data.vocabulary(config, text)
  else:
    words = shared.words
  # Refused before the first log line, so that the directory stays free.
  if config.study == "fit" and config.k > len(words):
    raise InputError(
      f"--k={config.k} is above the {len(words):,} words of the vocabulary"
    )
  unscored = ""
  try:
    evaluate.check_known(sets, words.words)
  except InputError as error:
    if config.testsets or config.similarity or config.study != "fit":
      raise
    sets, unscored = (), str(error)
  pairs = lexicon_fit.read(config, similarity.index_words(words.words))
  report(f"vocabulary of {len(words):,} words")
  if unscored:
    report(f"{unscored}; the vectors are written without figures")
  development: list[testsets.SimilaritySet] = []
  if config.view_weights == "labels" or config.held_out:
    development, sets = evaluate.halves(sets)
    report("figures of the tuning sets are of halves that chose no setting")
  if config.view_weights == "labels":
    weights.labels(development, similarity.index_words(words.words))
    report("weights are fitted to the other halves")
  made = data.load(config, words, text) if shared is None else shared
  report(f"{len(made.views)} views of {len(made.counted)} counted")
  return Problem(config, made, sets, report, development, pairs, pool=pool)


def factors(
  problem: Problem,
  config: Config | None = None,
  views: Sequence[View] | None = None,
) -> Factors:
  """Factors of views, each computed once for the same settings.

  Args:
    config: other than that of the run.
    views: other than all of the fit.
  """
  config = config or problem.config
  views = problem.data.views if views is None else views
  hosts, weights = _observed(views, config)
  cache = pathlib.Path(config.store) / "factors"
  made = {}
  for j, (view, host) in enumerate(zip(views, hosts)):
    rows = zlib.crc32(np.ascontiguousarray(weights[j]).data.cast("B"))
    key = (view.name, host.how, config.m, rows)
    if key not in problem.held:
      path = None
      if config.keep_factors and view.path is not None:
        path = cache / f"{view.name}-{_mark(view, key, config)[:16]}.npz"
      # All that the factors of a view depend on.
      on = (*key, config.seed, config.tolerance, config.svd_cycles, config.t)
      made_before = None if problem.pool is None else problem.pool.get(on)
      factor = made_before or _factor(host, weights[j], config, path)
      if problem.pool is not None:
        problem.pool[on] = factor
      problem.held[key] = factor
      problem.report(f"factor of {view.name}")
    made[view.name] = problem.held[key]
  if problem.grams is not None and views is problem.data.views:
    whole = (SPELLING, *made, str(config))
    if whole not in problem.held:
      problem.held[whole] = _spelling(problem, config, made)
      problem.report(f"factor of {SPELLING}")
    made[SPELLING] = problem.held[whole]
  return made


def fit(
  made: Factors,
  config: Config,
  labels: weights.Labels | None = None,
  earlier: multiview.MVLSA | None = None,
  keep: bool = False,
) -> multiview.MVLSA:
  """The common space of some views by their factors.

  Args:
    made: factors by the name of the view.
    config: m, k, ridge and the weights of views.
    labels: of the problem, for --view_weights=labels.
    earlier: a fit with `keep`, of which other settings reuse what they can.
    keep: whether the fit keeps what other settings can reuse.
  """
  names = weighted(made, config)
  if not names:
    raise InputError("--group_weights: every view has the weight 0")
  given = weights.given(list(made), config)
  chosen = {name: made[name] for name in names}
  learned = weights.learned(chosen, config, labels)
  factors: Any = list(chosen.values())
  if earlier is not None and earlier.factors is not None:
    same = len(factors) == len(earlier.factors)
    if same and all(a is b for a, b in zip(factors, earlier.factors)):
      factors = earlier
  return multiview.fit(
    (),
    config.k,
    m=config.m,
    ridge=config.ridge,
    relative_ridge=config.relative_ridge,
    view_weights=[given[name] * learned[name] for name in names],
    factors=factors,
    keep_factors=keep,
    projections=False,
    key=config.seed,
  )


def fit_views(problem: Problem) -> multiview.MVLSA:
  """One fit of all views, streamed or over a mesh if the run asks for it."""
  config, views = problem.config, problem.data.views
  if config.method == "memory" and not config.mesh:
    return fit(factors(problem), config, problem.labels)
  given = weights.given([view.name for view in views], config)
  views = [view for view in views if given[view.name] > 0]
  if not views:
    raise InputError("--group_weights: every view has the weight 0")
  return multiview.fit(
    [view.matrix for view in views],
    config.k,
    m=config.m,
    ridge=config.ridge,
    relative_ridge=config.relative_ridge,
    view_weights=[given[view.name] for view in views],
    min_support=config.min_support,
    row_weights=_row_weights(views, config),
    weighting=_weightings(views, config),
    method=config.method,
    tolerance=config.tolerance,
    max_cycles=config.svd_cycles,
    projections=config.method == "memory",
    key=config.seed,
    report=lambda j, error: problem.report(
      f"SVD of {views[j].name}, error {error:.1e}"
    ),
    mesh=meshes.make_mesh(config.mesh, sharding.AXES),
  )


def vectors(fitted: multiview.MVLSA, config: Config) -> np.ndarray:
  """Word vectors [n, k], their columns scaled by the eigenvalues as told."""
  values = np.asarray(fitted.model.values)
  scale = values ** values.dtype.type(config.eigenvalue_power)
  return np.asarray(fitted.model.embedding) * scale


def shares(fitted: multiview.MVLSA, names: Sequence[str]) -> dict[str, float]:
  """Explained share of the vectors by each view; empty where not computed."""
  return dict(zip(names, np.asarray(fitted.model.shares).tolist()))


def names(problem: Problem) -> list[str]:
  """The views of the run's fit."""
  known = [view.name for view in problem.data.views]
  if problem.grams is not None:
    known.append(SPELLING)
  return weighted(known, problem.config)


def weighted(names: Iterable[str], config: Config) -> list[str]:
  """The views whose group has a weight."""
  by_view = weights.given(list(names), config)
  return [name for name, weight in by_view.items() if weight > 0]


def _spelling(problem: Problem, config: Config, made: Factors) -> ViewFactor:
  """Factors of what spelling predicts of the other views' vectors."""
  fitted = fit(made, config, problem.labels)
  targets = ops.unit_rows(vectors(fitted, config)[:, :_PREDICTED])
  predicted = multiview.predict_from_features(
    ops.from_scipy(problem.grams), targets, fitted.kept
  )
  matrix = np.asarray(ops.unit_rows(predicted))
  columns = [f"dimension_{c}" for c in range(matrix.shape[1])]
  alone = dataclasses.replace(config, min_support=1)
  (host,), weights = _observed([View(SPELLING, matrix, columns)], alone)
  return _factor(host, weights[0] * fitted.kept, config, None)


def _observed(views: Sequence[View], config: Config):
  """The views as a fit reads them, and W_j K_j [J, n]."""
  hosts = host_views.open_views(
    [view.matrix for view in views], _weightings(views, config)
  )
  weights, _ = host_views.observe(
    hosts, config.min_support, _row_weights(views, config)
  )
  if not weights.any():
    raise InputError(
      f"no word is in {config.min_support} of the {len(views)} views; lower "
      "--min_support"
    )
  return hosts, weights


def _weightings(views: Sequence[View], config: Config):
  """Weighting of each view; dense ones are features, not counts."""
  return [
    config.weighting(data.group(view.name))
    if scipy.sparse.issparse(view.matrix)
    else None
    for view in views
  ]


def _row_weights(
  views: Sequence[View], config: Config
) -> list[np.ndarray] | None:
  if not config.row_power:
    return None
  weights = []
  for view in views:
    if scipy.sparse.issparse(view.matrix):
      summed = host_views.of_rows(
        lambda x: np.asarray(x.sum(axis=1)).reshape(-1, 1),
        view.matrix,
        data.own_part(config, view.matrix.shape[0]),
      )
      totals = jnp.asarray(summed)
      weights.append(
        np.asarray(multiview.row_weights(totals, config.row_power))
      )
    else:
      weights.append(np.ones(view.matrix.shape[0], np.float32))
  return weights


def _mark(view: View, key: tuple, config: Config) -> str:
  """Fingerprint of a view's factors."""
  options = {
    "key": [str(part) for part in key],
    "fields": ViewFactor._fields,
    "tolerance": config.tolerance,
    "max_cycles": config.svd_cycles,
    "seed": config.seed,
  }
  assert view.path is not None
  return store.fingerprint(options, [view.path / "header.json"])


def _factor(
  host: host_views.HostView,
  weights: np.ndarray,
  config: Config,
  path: pathlib.Path | None,
) -> ViewFactor:
  """The factors of a view, or those kept in a file."""
  if path is not None and path.exists():
    kept = array_files.read_npz(path, list(ViewFactor._fields))
    return ViewFactor._make(kept[name] for name in ViewFactor._fields)
  ((factor, _),) = factoring.factor_views(
    [host], config.m, weights[None], jax.random.key(config.seed),
    tolerance=config.tolerance, max_cycles=config.svd_cycles, widest=config.t,
  )  # fmt: skip
  made = jax.tree.map(np.asarray, factor)
  if path is not None:
    path.parent.mkdir(parents=True, exist_ok=True)
    array_files.write_npz(path, **made._asdict())
  return made
