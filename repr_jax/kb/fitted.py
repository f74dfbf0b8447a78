"""A knowledge base in one call: names in, predictions by name out.

A thin layer over the functions of `repr_jax.kb`: rules are compiled and checked
first, `candidate_softmax` trains, and the fitted object answers by name.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from repr_jax.data import triples as triple_files
from repr_jax.data.rules import Rule
from repr_jax.data.triples import Triples
from repr_jax.errors import InputError, did_you_mean
from repr_jax.kb import (
  candidate_training,
  negatives,
  rule_check,
  rule_compiler,
  rule_set,
  rule_start,
  scores,
)
from repr_jax.kb.candidate_loss import CandidateConfig
from repr_jax.kb.condition_forms import RuleConfig
from repr_jax.kb.rule_compiler import Constraints
from repr_jax.kb.score_model import ScoreModel
from repr_jax.kb.score_models import get_model
from repr_jax.ops import inputs


def _adagrad(learning_rate) -> optax.GradientTransformation:
  return optax.adagrad(learning_rate, initial_accumulator_value=0.0, eps=1e-24)


# Shared by all fits: the rate is in the state, so it compiles once.
_ADAGRAD = optax.inject_hyperparams(_adagrad)(learning_rate=0.1)


class Prediction(NamedTuple):
  """An entity for an open slot, with its score."""

  entity: str
  score: float


class Fitted(NamedTuple):
  """A trained knowledge base.

  Attributes:
    model: its score model.
    params: entities [E, d] and relations [R, p].
    entities: names of the entities, in order of their ids.
    relations: names of the relations, in order of their ids.
    rules: the rules that hold in it.
    constraints: the compiled rules; None without rules.
    losses: mean loss of each epoch.
  """

  model: ScoreModel
  params: scores.Params
  entities: list[str]
  relations: list[str]
  rules: list[Rule]
  constraints: Constraints | None
  losses: list[float]

  def predict(
    self,
    relation: str,
    *,
    head: str | None = None,
    tail: str | None = None,
    top: int = 10,
  ) -> list[Prediction]:
    """The best entities for the slot that is not given.

    Args:
      head: name of the head, if tails are predicted.
      tail: name of the tail, if heads are predicted.
      top: how many.

    Returns:
      Names and scores, best first.
    """
    if (head is None) == (tail is None):
      raise InputError("give head or tail, and the other is predicted")
    inputs.check_whole(0, top=top)
    r = _place(self.relations, relation, "relation")
    known = _place(self.entities, head if tail is None else tail, "entity")
    score_all = _score_all_tails if tail is None else _score_all_heads
    values = score_all(
      self.model,
      self.params.relations[r][None],
      self.params.entities[known][None],
      self.params.entities,
    )[0]
    best, places = jax.lax.top_k(values, min(top, values.size))
    return [
      Prediction(self.entities[i], value)
      for value, i in zip(best.tolist(), places.tolist())
    ]

  def score(self, head: str, relation: str, tail: str) -> float:
    """The score of one fact; higher is more likely.

    Args:
      head: name of the head.
      relation: name of the relation.
      tail: name of the tail.

    Returns:
      The score.
    """
    r = _place(self.relations, relation, "relation")
    h, t = (_place(self.entities, name, "entity") for name in (head, tail))
    table = self.params.entities
    value = scores.score(
      self.model, self.params.relations[r], table[h], table[t]
    )
    return float(value)

  def violations(self) -> dict[str, float]:
    """Largest violation of each rule over sampled and trained entities.

    Returns:
      Rule as text to violation, min(antecedents) - consequent or 0.
    """
    checked = rule_check.check_rules(
      self.model,
      self.params,
      self.rules,
      self.relations,
      self.entities,
      self.constraints,
    )
    worst = np.maximum(checked.sampled, checked.real)
    return {str(rule): float(x) for rule, x in zip(self.rules, worst)}


def fit(
  triples: Triples | Sequence[tuple[str, str, str]],
  rules: Sequence[Rule | str] = (),
  *,
  model: ScoreModel | str = "complex",
  dim: int = 100,
  epochs: int = 20,
  learning_rate: float = 0.1,
  penalty: float = 0.01,
  batch_size: int = 1000,
  num_candidates: int = 1000,
  scale: float = 0.01,
  rule_config: RuleConfig | None = None,
  key: jax.Array | int = 0,
) -> Fitted:
  """Trains vectors of a knowledge base in which the rules hold.

  >>> from repr_jax import kb
  >>> facts = [("oak", "is_a", "tree"), ("elm", "is_a", "tree"),
  ...          ("tree", "has_kind", "oak")]
  >>> rules = ["RevImp(is_a, has_kind)"]
  >>> fitted = kb.fit(facts, rules, dim=16, epochs=50, penalty=0.001)
  >>> sorted(x.entity for x in fitted.predict("has_kind", head="tree", top=2))
  ['elm', 'oak']
  >>> max(fitted.violations().values()) < 1e-5
  True

  Args:
    triples: (head, relation, tail) names, or what `data.read_triples` gives.
    rules: `Rule` objects, or text as in rule files.
    model: a score model or its name.
    dim: numbers per entity.
    epochs: passes over the triples.
    learning_rate: of Adagrad.
    penalty: weight of N3.
    batch_size: facts in a step; all facts where there are fewer.
    num_candidates: entities drawn for each batch; all where there are fewer.
    scale: standard deviation of the start.
    rule_config: numbers that some rules' conditions depend on.
    key: random key, or a seed.

  Returns:
    The trained knowledge base.
  """
  if not isinstance(triples, Triples):
    inputs.check_types(triples=(triples, Iterable))
    triples = triple_files.from_named(list(triples))
  if not len(triples):
    raise InputError("there are no triples to train on")
  inputs.check_whole(0, epochs=epochs, num_candidates=num_candidates)
  inputs.check_whole(1, dim=dim, batch_size=batch_size)
  if not (learning_rate > 0 and penalty >= 0):
    raise InputError(
      f"need learning_rate > 0 and penalty >= 0; got {learning_rate}, {penalty}"
    )
  score_model, named = get_model(model), (triples.relations, triples.entities)
  rules = rule_set.parse_rules(rules, *named)
  count = len(triples.entities)
  config = CandidateConfig(
    count,
    len(triples.relations),
    score_model,
    dim,
    batch_size=min(batch_size, len(triples)),
    num_candidates=0 if num_candidates >= count else num_candidates,
  )
  start_key, train_key = jax.random.split(inputs.as_key(key))
  params = scores.init_params(
    score_model, start_key, count, config.num_relations, dim, scale
  )
  constraints = None
  if rules:
    constraints = rule_compiler.compile_rules(
      score_model, rules, *named, rule_config
    )
    params = rule_start.checked_start(
      constraints, params, rules, *named, rule_config
    )
  state = candidate_training.from_params(config, _ADAGRAD, params, penalty)
  rate = jnp.asarray(learning_rate, config.dtype)
  state.optimizer.hyperparams["learning_rate"] = rate
  facts = jnp.asarray(triples.array)
  known = negatives.known_facts(triples.array, count, config.num_relations)
  losses = []
  for epoch in range(epochs):
    state, loss = candidate_training.train(
      config,
      _ADAGRAD,
      constraints,
      known,
      facts,
      state,
      jax.random.fold_in(train_key, epoch),
    )
    losses.append(float(loss))
  scores.check_tables(state.params)
  return Fitted(
    score_model, state.params, *named[::-1], rules, constraints, losses
  )


_score_all_tails = jax.jit(scores.score_all_tails, static_argnums=0)
_score_all_heads = jax.jit(scores.score_all_heads, static_argnums=0)


def _place(names: list[str], name: str | None, what: str) -> int:
  if name not in names:
    close = did_you_mean(str(name), names)
    raise InputError(f"there is no {what} {name!r}{close}")
  return names.index(name)
