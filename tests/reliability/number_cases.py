"""Public functions with arguments, for tests of bad numbers."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from repr_jax import evaluation, kb, linking, multiview, ops, setexp
from repr_jax.data import relatedness, testsets
from repr_jax.data.rules import Rule
from repr_jax.linking import entity_vectors, posterior_means
from repr_jax.multiview import host_views
from repr_jax.ops import pca, spectral, topk
from repr_jax.setexp import autoencoder, fitting, systems
from repr_jax.setexp.query import best

_KEY = jax.random.key(0)


class Case(NamedTuple):
  """A function and what it takes: an array, a sparse matrix or a number."""

  run: Callable[..., Any]
  slots: dict[str, Any]


def _normal(*shape: int) -> np.ndarray:
  return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _counts(rows: int, columns: int) -> sp.csr_array:
  found = np.random.default_rng(0).poisson(0.7, (rows, columns))
  found[:, :2] += 1  # a row and a column without counts would be another case
  return sp.csr_array(found.astype(np.float32))


def _spectral(rows: int) -> dict[str, Case]:
  x, y = _normal(rows, 6), _normal(rows, 5)
  svd = functools.partial(ops.truncated_svd, k=2, key=_KEY)
  fit = functools.partial(ops.pca_fit, k=2, key=_KEY)
  fitted = fit(jnp.asarray(x))
  wide = _normal(rows, 120)  # many columns: the iteration, not one QR
  weights = np.ones(rows, np.float32)
  return {
    "ops.truncated_svd": Case(lambda x: svd(jnp.asarray(x))[0].s, {"x": x}),
    "ops.truncated_svd of many columns": Case(
      lambda x: svd(jnp.asarray(x))[0], {"x": wide}
    ),
    "ops.from_scipy": Case(ops.from_scipy, {"matrix": _counts(rows, 4)}),
    "ops.pca_fit": Case(lambda x: fit(jnp.asarray(x)).variances, {"x": x}),
    "ops.ppca_log_likelihood": Case(
      lambda x: ops.ppca_log_likelihood(fitted, x), {"x": x}
    ),
    "pca.pca_transform": Case(
      lambda x: pca.pca_transform(fitted, jnp.asarray(x)), {"x": x}
    ),
    "spectral.tall_svd": Case(lambda x: spectral.tall_svd(x).s, {"x": x}),
    "topk.top_k": Case(
      lambda x: topk.top_k(jnp.asarray(x), 3)[0], {"x": _normal(rows)}
    ),
    "multiview.cca_fit": Case(
      lambda x, y: multiview.cca_fit(x, y, 2).correlations, {"x": x, "y": y}
    ),
    "multiview.gcca_exact": Case(
      lambda x, y: multiview.gcca_exact([x, y], 2).embedding, {"x": x, "y": y}
    ),
    "multiview.fit": Case(
      lambda x, y, weights, tolerance: multiview.fit(
        [x, y], 2, row_weights=[weights] * 2, tolerance=tolerance
      ),
      {"x": x, "y": y, "weights": weights, "tolerance": 1e-3},
    ),
    "host_views.weigh": Case(
      lambda matrix: host_views.weigh(matrix, multiview.Weighting()),
      {"matrix": _counts(rows, 4)},
    ),
  }


def _bases(rows: int) -> dict[str, Case]:
  params = kb.init_params("A", _KEY, rows, 2, 2)
  tables = {name: np.asarray(x) for name, x in params._asdict().items()}
  rules, names = [Rule("RelImp", ("r", "s"))], (["r", "s"], range(rows))
  named = names[0], [f"e{i}" for i in names[1]]
  compiled = kb.compile_rules("A", rules, *named)
  facts = np.array([[3, 0, 3], [3, 1, 3]])
  x, labels = _normal(rows, 3), (np.arange(rows) % 2).astype(np.float32)

  def on_tables(function):
    return Case(lambda **x: function(kb.Params(**x)), tables)

  def _step(params):
    config = kb.SGDConfig(rows, 2, "A", 2, batch_size=2)
    state = kb.SGDState(params, jnp.float32(0.1), jnp.float32(0))
    known = kb.known_facts(facts, rows, 2)
    pairs = kb.draw_pairs(known, facts, _KEY)
    return kb.projected_sgd(config)[1](state, pairs)

  return {
    "kb.check_rules": on_tables(
      lambda p: kb.check_rules("A", p, rules, *named).worst
    ),
    "kb.checked_start": on_tables(
      lambda p: kb.checked_start(compiled, p, rules, *named)
    ),
    "kb.certify": on_tables(
      lambda p: [float(x.bound) for x in kb.certify("A", p, rules, *named)]
    ),
    "kb.project": on_tables(lambda p: kb.project(compiled, p)),
    "kb.violation": on_tables(lambda p: kb.violation(compiled, p)),
    "kb.score": Case(
      lambda relation, head, tail: kb.score("A", relation, head, tail),
      {"relation": _normal(4), "head": _normal(2), "tail": _normal(2)},
    ),
    "kb.score_all_tails": on_tables(
      lambda p: kb.score_all_tails(
        "A", jnp.asarray(p[1][1:]), p[0][3:4], jnp.asarray(p[0])
      )
    ),
    "kb.score_all_heads": on_tables(
      lambda p: kb.score_all_heads(
        "A", jnp.asarray(p[1][1:]), p[0][3:4], jnp.asarray(p[0])
      )
    ),
    # Of entities that no fact names: they would not show in its rank.
    "kb.scorers": on_tables(
      lambda p: kb.rank(*kb.scorers("A", p), facts - [[1, 0, 1]], facts)
    ),
    "kb.sureness": on_tables(lambda p: kb.sureness("A", p, facts, "tail")),
    "kb.choice_features": Case(
      lambda sure: kb.choice_features(facts, 2, sure, np.ones((2, 2))),
      {"sure": _normal(2, 2)},
    ),
    "kb.make_slices": Case(
      lambda matrix: kb.make_slices([sp.csr_matrix(matrix)]),
      {"matrix": _normal(5, 5)},
    ),
    "kb.projected_sgd": on_tables(_step),
    "kb.fit_logistic": Case(
      kb.fit_logistic,
      {"features": x, "labels": labels, "weights": labels + 1, "ridge": 1.0},
    ),
    "kb.init_params": Case(
      lambda scale: kb.init_params("A", _KEY, 3, 2, 2, scale), {"scale": 0.1}
    ),
    "kb.violating_triple": Case(
      kb.violating_triple, {"matrix": _normal(70, 70)}
    ),
  }


def _sets(rows: int) -> dict[str, Case]:
  counts = _counts(rows, 8)
  config = autoencoder.Config(dim=2, hidden=(3,))
  statistics = autoencoder.statistics_from_scipy(config, counts)
  inputs = statistics.inputs
  params = autoencoder.init(config, _KEY, statistics)
  query = setexp.make_query(counts, [0, 1])

  def build(table, decoder, idf, counts):
    changed = params._replace(table=table, decoder=decoder)
    built = setexp.model_from_scipy(
      config, changed, inputs._replace(idf=idf), counts
    )
    return systems.nvse(built, systems.RankingConfig("xi")).score_batch([query])

  def fit(counts, rate, beta, smoothing):
    hyper = setexp.Hyper(rate, beta, smoothing)
    return fitting.fit(counts, config, _KEY, epochs=1, hyper=hyper).params

  return {
    "setexp.model_from_scipy": Case(
      build,
      {
        "table": np.asarray(params.table),
        "decoder": np.asarray(params.decoder),
        "idf": np.asarray(inputs.idf),
        "counts": counts,
      },
    ),
    "fitting.fit": Case(
      fit,
      {"counts": _counts(70, 8), "rate": 1e-3, "beta": 1.0, "smoothing": 0.1},
    ),
    "setexp.rows_from_scipy": Case(setexp.rows_from_scipy, {"matrix": counts}),
    "setexp.statistics_from_scipy": Case(
      lambda counts: setexp.statistics_from_scipy(config, counts),
      {"counts": counts},
    ),
    "setexp.fit": Case(
      lambda counts: setexp.fit(counts, epochs=1), {"counts": counts}
    ),
    "setexp.make_query": Case(
      lambda weights: setexp.make_query(counts, [0, 1], weights),
      {"weights": np.ones(2)},
    ),
    "query.best": Case(
      lambda scores: scores[best(scores, 3)], {"scores": _normal(rows)}
    ),
    "setexp.bm25_fit": Case(setexp.bm25_fit, {"counts": counts}),
    "setexp.bayesian_sets_fit": Case(
      lambda counts: setexp.bayesian_sets_fit(counts, "poisson"),
      {"counts": counts},
    ),
    "setexp.word2vecf_fit": Case(
      lambda counts: setexp.word2vecf_fit(counts, epochs=1), {"counts": counts}
    ),
    "setexp.lsa_fit": Case(
      lambda counts: setexp.lsa_fit(counts, rank=2), {"counts": counts}
    ),
    "setexp.setexpan_fit": Case(
      lambda counts: setexp.setexpan_fit(counts).idf, {"counts": counts}
    ),
    "setexp.make_ranking": Case(
      lambda power, share: (
        setexp.make_ranking("features", power=power, member_share=share).scores
      ),
      {"power": 0.5, "share": 0.3},
    ),
  }


def _vectors(rows: int) -> dict[str, Case]:
  vectors = _normal(rows, 4)
  index = {str(i): i for i in range(rows)}
  four = [("0", "1", "3", "2"), ("3", "1", "0", "2"), ("4", "3", "2", "1")]
  analogies = testsets.AnalogySet("a", four, ["s"] * 3)
  pairs = [("0", "3"), ("1", "2"), ("3", "4")]
  similar = testsets.SimilaritySet("s", pairs, np.arange(3.0))
  choices = testsets.ChoiceSet("c", ["0"], [["1", "3"]], np.array([0]))
  related = relatedness.RelatednessQuery("q", "0", ("1", "2", "3", "4"), ())
  offsets, words = np.array([0, 2, 4]), np.array([0, 1, 2, 3])
  fit = functools.partial(
    entity_vectors.fit_max_margin,
    offsets=offsets,
    words=words,
    key=_KEY,
    steps=2,
  )
  return {
    "evaluation.evaluate_analogies": Case(
      lambda array: evaluation.evaluate_analogies(array, index, analogies),
      {"array": vectors},
    ),
    "evaluation.solve_analogies": Case(
      lambda array: evaluation.solve_analogies(
        array, jnp.array([0, 1, 2]), jnp.array([[0, 1, 2]])
      ),
      {"array": vectors},
    ),
    "evaluation.evaluate_similarity": Case(
      lambda array: evaluation.evaluate_similarity(array, index, similar),
      {"array": vectors},
    ),
    "evaluation.spearman": Case(
      evaluation.spearman, {"x": vectors[:, 0], "y": vectors[:, 1]}
    ),
    "evaluation.evaluate_choices": Case(
      lambda array: evaluation.evaluate_choices(array, index, choices),
      {"array": vectors},
    ),
    "evaluation.evaluate_relatedness": Case(
      lambda array, gold: evaluation.evaluate_relatedness(
        [related._replace(gold=tuple(gold))], array, index
      ),
      {"array": vectors, "gold": np.array([1.0, 0, 1, 0])},
    ),
    "posterior_means.fit_posterior_means": Case(
      lambda counts, rate: posterior_means.fit_posterior_means(
        counts, key=_KEY, epochs=1, hyper=setexp.Hyper(rate)
      ),
      {"counts": _counts(20, 8), "rate": 1e-3},
    ),
    "linking.rerank": Case(
      lambda array: linking.rerank(array, 0, jnp.arange(rows)),
      {"array": vectors},
    ),
    "linking.ensemble": Case(
      linking.ensemble, {"scores": vectors.T, "weights": np.ones(4)}
    ),
    "linking.unigram_noise": Case(
      linking.unigram_noise, {"counts": np.ones(rows), "alpha": 0.6}
    ),
    "entity_vectors.fit_max_margin": Case(
      lambda **x: fit(**x),
      {
        "word_vectors": vectors,
        "unigram": np.ones(rows),
        "margin": 0.1,
        "alpha": 0.6,
        "learning_rate": 0.3,
      },
    ),
  }


def _rankers(rows: int) -> dict[str, Case]:
  def group(features):
    count = len(features)  # documents of one mention with two candidates
    evidence = linking.Evidence(
      features=features[:, None],
      nodes=np.tile(np.arange(2), (count, 1, 1)),
      edges=np.full((count, 1, 2), -1),
      groups=np.zeros((count, 1), int),
      shapes=np.zeros((count, 1, 2), int),
      degrees=np.ones((count, 2), np.float32),
      gold=np.zeros((count, 1), int),
    )
    return [linking.EvidenceGroup(np.arange(count)[:, None], evidence)]

  def fit(features, **settings):
    given = group(features)
    return linking.fit_rankers(given, _KEY, hidden=4, epochs=1, **settings)

  features = _normal(rows, 2, 1)
  (fitted,) = fit(features)
  settings = {"learning_rate": 2e-3, "decay": 1e-3}
  return {
    "linking.fit_rankers": Case(fit, {"features": features, **settings}),
    "linking.decide": Case(
      lambda features: linking.decide(fitted, group(features), rows),
      {"features": features},
    ),
  }


def _kinds(rows: int) -> dict[str, Case]:
  known = linking.Vocabulary({"x": 0}, {"a": 0, "b": 1})

  def arrays(log_links):
    count = len(log_links)  # mentions of two candidates
    return linking.KindArrays(
      np.zeros((count, 1), int),
      np.tile([[0], [1]], (count, 1, 1)),
      log_links,
      np.ones((count, 2), bool),
      np.ones(count, int),
    )

  def fit(log_links, **settings):
    given = arrays(log_links)
    return linking.fit_kinds(given, known, _KEY, dim=2, epochs=1, **settings)

  links = _normal(rows, 2, 1)[..., 0]
  settings = {"learning_rate": 1e-2, "decay": 0.1}
  fitted = fit(links)
  return {
    "linking.fit_kinds": Case(fit, {"log_links": links, **settings}),
    "linking.apply_kinds": Case(
      lambda log_links, weights: linking.apply_kinds(
        fitted._replace(contexts=weights), arrays(log_links)
      ),
      {"log_links": links, "weights": fitted.contexts},
    ),
    "linking.cross_kinds": Case(
      lambda log_links: linking.cross_kinds(
        arrays(log_links), known, np.arange(rows) % 2, _KEY
      ),
      {"log_links": links},
    ),
  }


def _measures(rows: int) -> dict[str, Case]:
  ranked = (np.arange(rows) % 3 == 0).astype(float)
  one = {"ranked": ranked}
  return {
    "evaluation.average_precision": Case(
      lambda ranked: evaluation.average_precision(ranked, 3), one
    ),
    "evaluation.inferred_ap": Case(
      lambda ranked: evaluation.inferred_ap(ranked, 3), one
    ),
    "evaluation.ndcg": Case(
      evaluation.ndcg, {"ranked": ranked, "judged": ranked}
    ),
    "evaluation.reciprocal_rank": Case(evaluation.reciprocal_rank, one),
    "evaluation.precision": Case(
      lambda ranked: evaluation.precision(ranked, 5), one
    ),
    "evaluation.r_precision": Case(
      lambda ranked: evaluation.r_precision(ranked, 5), one
    ),
    "evaluation.recall": Case(
      lambda ranked: evaluation.recall(ranked, 5, 5), one
    ),
    "evaluation.hits": Case(lambda ranked: evaluation.hits(ranked, 5), one),
    "evaluation.evaluate_run": Case(
      lambda scores, judged: evaluation.evaluate_run(
        {"q": dict(zip("abcd", scores))}, {"q": dict(zip("abcd", judged))}
      ),
      {"scores": np.arange(4.0), "judged": np.array([1.0, 0, 1, 0])},
    ),
    "evaluation.rank_documents": Case(
      lambda scores: bool(evaluation.rank_documents(dict(zip("abcd", scores)))),
      {"scores": np.arange(4.0)},
    ),
    "evaluation.mean_measures": Case(
      lambda values: evaluation.mean_measures({"q": dict(zip("abcd", values))}),
      {"values": np.arange(4.0)},
    ),
  }


def _beliefs(rows: int) -> dict[str, Case]:
  size = 5 if rows < 5000 else 20  # 400 pairs of 16 states
  mask = np.ones((size, 4), bool)
  pairwise = _normal(size, size, 4, 4)
  pairwise = pairwise + pairwise.transpose(1, 0, 3, 2)
  return {
    "ops.max_product": Case(
      lambda unary, pairwise: ops.max_product(unary, pairwise, mask),
      {"unary": _normal(size, 4), "pairwise": pairwise},
    ),
    "ops.product_of_experts": Case(
      lambda xi, precision, weights: ops.product_of_experts(
        ops.Natural(xi, precision), weights
      ),
      {
        "xi": _normal(rows, 2),
        "precision": np.abs(_normal(rows, 2)),
        "weights": np.ones(rows, np.float32),
      },
    ),
  }


def _significance(rows: int) -> dict[str, Case]:
  x, y = np.float64(_normal(2, rows))
  rng = np.random.default_rng(0)
  return {
    "evaluation.paired_bootstrap": Case(
      lambda a, b, level: evaluation.paired_bootstrap(
        a, b, rng, samples=20, level=level
      ),
      {"a": x, "b": y, "level": 0.9},
    ),
    "evaluation.paired_permutation": Case(
      lambda a, b: evaluation.paired_permutation(a, b, rng, samples=20).value,
      {"a": x, "b": y},
    ),
    "evaluation.pooled_gain": Case(
      lambda **arrays: evaluation.pooled_gain(
        [evaluation.ScoredSet(range(len(x)), **arrays)], rng, samples=20
      ),
      {"truth": x, "a": x, "b": y},
    ),
    "evaluation.spearman_interval": Case(
      lambda value: evaluation.spearman_interval(value, 30), {"value": 0.5}
    ),
    "evaluation.williams_test": Case(
      lambda **r: evaluation.williams_test(**r, n=30),
      {"r_at": 0.5, "r_bt": 0.6, "r_ab": 0.7},
    ),
    "evaluation.williams_pairs": Case(
      lambda **r: evaluation.williams_pairs(**r),
      {"r_at": 0.5, "r_bt": 0.6, "r_ab": 0.7},
    ),
    "evaluation.mrds_correlation": Case(
      lambda p0, r: evaluation.mrds_correlation(30, p0, r),
      {"p0": 0.05, "r": 0.9},
    ),
    "evaluation.mrds_accuracy": Case(
      lambda p0: evaluation.mrds_accuracy(30, p0), {"p0": 0.05}
    ),
    "evaluation.beta_inferiority": Case(
      lambda a, b, prior: evaluation.beta_inferiority(a, b, 9, prior=prior),
      {"a": 4.0, "b": 5.0, "prior": 1.0},
    ),
  }


GROUPS = (
  *(_spectral, _bases, _sets, _vectors, _rankers, _kinds, _measures, _beliefs),
  _significance,
)
