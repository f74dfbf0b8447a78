"""Answers of baselines about a fitted model, as functions of one query."""

from repr_jax.setexp import systems


def score(baseline):
  """Scores of all entities, from a model and a query."""
  return lambda model, query: systems.bind(baseline, model).score_batch(
    [query]
  )[0]


def score_rows(baseline):
  """Scores of rows, from a model, a query and the rows."""
  return lambda model, query, rows: systems.bind(baseline, model).score_rows(
    query, rows
  )


def rationale(baseline):
  """Weights of features, from a model and a query."""
  return lambda model, query: systems.bind(baseline, model).rationale(query)


def contributions(baseline):
  """Parts of an entity's score, from a model, a query and the entity."""
  return lambda model, query, entity: systems.bind(
    baseline, model
  ).contributions(query, [entity])[0]
