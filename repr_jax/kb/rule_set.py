"""Rules as a user gives them: parsed, indexed, and turned into conditions."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from repr_jax import errors
from repr_jax.data.rule_kinds import RuleKind
from repr_jax.data.rules import Rule, parse_rule
from repr_jax.kb.condition_forms import Conditions, RuleConfig
from repr_jax.kb.score_model import ScoreModel
from repr_jax.kb.score_models import MODELS

Names = Sequence[str] | int
Indexed = list[tuple[RuleKind, tuple[int, ...]]]


def parse_rules(
  rules: Sequence[Rule | str], relations: Names = 0, entities: Names = 0
) -> list[Rule]:
  """Rules from objects and from text such as "RevImp(r, s)".

  Args:
    rules: rules, or text in a notation of `data.rules`.
    relations: names of the relations, which resolve ambiguous texts; or their
      number.
    entities: names of the entities, or their number.
  """
  if isinstance(rules, str) or not isinstance(rules, Iterable):
    raise errors.InputError(f"rules must be a list, not {rules!r}")
  kinds = None if isinstance(relations, int) else relations
  names = None if isinstance(entities, int) else entities
  parsed = []
  for rule in rules:
    if isinstance(rule, str):
      rule = parse_rule(rule, kinds, names)
    elif not isinstance(rule, Rule):
      raise errors.InputError(
        f"a rule is a kb.Rule or text such as 'RelImp(r, s)', not {rule!r}"
      )
    parsed.append(rule)
  return parsed


def index_rules(
  rules: Sequence[Rule | str], relations: Names, entities: Names
) -> Indexed:
  """Rules with ids in place of names; an unknown name is an error.

  Args:
    rules: the rules; arguments that are integers are ids already.
    relations: names of the relations in the order of their ids; or their
      number, if rules have ids only.
    entities: names of the entities in the order of their ids, or their
      number.

  Returns:
    The kind and the ids of each rule's arguments.
  """
  tables = {
    "r": ("relation", _table(relations)),
    "e": ("entity", _table(entities)),
  }
  indexed = []
  for rule in parse_rules(rules, relations, entities):
    ids = []
    for name, letter in zip(rule.arguments, rule.kind.signature):
      what, table = tables[letter]
      place = name if isinstance(name, int) else table.get(name, -1)
      if not 0 <= place < len(table):
        raise errors.InputError(
          f"rule {rule} names the unknown {what} {name!r}"
        )
      ids.append(place)
    indexed.append((rule.kind, tuple(ids)))
  return indexed


def condition_of(model: ScoreModel, kind: RuleKind) -> Callable | None:
  """The function that gives a kind's conditions in a model.

  Returns:
    The model's own function for the kind, else the kind's for the model,
    else None.
  """
  return model.conditions.get(kind.name) or kind.conditions.get(model.name)


def able(kind: RuleKind) -> list[str]:
  """Names of the built-in models that have conditions for a kind of rule.

  Returns:
    The names; ["none"] if there is no such model.
  """
  names = [x.name for x in MODELS.values() if condition_of(x, kind)]
  return names or ["none"]


def collect(
  model: ScoreModel, indexed: Indexed, config: RuleConfig
) -> Conditions:
  """The conditions of a rule set.

  Args:
    indexed: kind and ids of each rule, as from `index_rules`.
  """
  each = []
  for kind, ids in indexed:
    make = condition_of(model, kind)
    if make is None:
      raise errors.InputError(
        f"model {model.name} has no sufficient condition for {kind.name}; the "
        f"models that have one are {', '.join(able(kind))}"
      )
    each.append(make(ids, config))
  joined: dict[str, Any] = {}
  for name in Conditions._fields:
    values = [getattr(one, name) for one in each]
    flags = name in ("box", "orthant", "ball")
    joined[name] = any(values) if flags else list(itertools.chain(*values))
  return Conditions(**joined)


def _table(names: Names) -> dict[str, int]:
  listed = map(str, range(names)) if isinstance(names, int) else names
  return {name: i for i, name in enumerate(listed)}
