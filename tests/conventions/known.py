"""Exceptions from the conventions; these lists may only shrink."""


def check(wrong: set[str], allowed: set[str]) -> None:
  """Fails for what is wrong and not among the exceptions."""
  assert wrong <= allowed, "\n".join(sorted(wrong - allowed))


# Public names that no module outside the tests uses.
UNCALLED = {
  "repr_jax.setexp.baselines.setexpan.skip_gram_counts",
}


# Imports against the direction.
IMPORTS: set[str] = set()


# Docstrings that begin with "What".
WHAT = {
  "repr_jax.setexp.baselines.bayesian_sets: Model",
  "repr_jax.setexp.baselines.bayesian_sets: _own_features",
  "repr_jax.setexp.baselines.bayesian_sets: contributions",
  "repr_jax.setexp.baselines.bayesian_sets: rationale",
  "repr_jax.setexp.baselines.bm25: _eager",
  "repr_jax.setexp.baselines.bm25: contributions",
  "repr_jax.setexp.baselines.bm25: weigh_rows",
  "repr_jax.setexp.baselines.setexpan: _similarity_parts",
  "repr_jax.setexp.baselines.setexpan: contributions",
  "repr_jax.setexp.baselines.word2vecf: contributions",
}


# Names that say nothing, or in British spelling.
NAMES: set[str] = set()


# Faults of what packages export.
EXPORTS: set[str] = set()


# Modules without a test file of their own name.
UNTESTED = {
  "repr_jax.setexp.baselines.baseline",
  "repr_jax.setexp.baselines.conjugate",
  "repr_jax.setexp.baselines.sgns",
  "repr_jax.setexp.systems",
}
