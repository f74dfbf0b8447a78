"""Mines rules from training facts for `experiments.elkb --task=mine`."""

import collections
import pathlib

import jax

from experiments.elkb.config import Config
from experiments.run import progress, runlib
from repr_jax import errors
from repr_jax.data import rule_mining, triples
from repr_jax.data.rules import Rule
from repr_jax.kb import rule_compiler, rule_set, rule_start, scores

_CHECKED = 30  # Rules that are checked for conflicts, which takes a while.


def mine(run: runlib.Run, config: Config) -> pathlib.Path:
  """Finds rules in the training facts and writes `rules.tsv`.

  Validation and test facts are not read. Says which rules `--model` cannot
  hold, and which it cannot hold together.

  Args:
    run: gets the counts, and the file in its directory.
  """
  if not config.train:
    raise errors.InputError("--task=mine needs --train=FILE")
  facts = triples.read_triples(config.train, config.columns, config.duplicates)
  kinds = config.kinds or rule_mining.MINABLE
  mined = rule_mining.mine(
    facts.array,
    len(facts.entities),
    len(facts.relations),
    min_support=config.min_support,
    min_confidence=config.min_confidence,
    kinds=kinds,
  )
  path = run.directory / "rules.tsv"
  rules = rule_mining.write_mined(path, mined, facts.relations, facts.entities)
  counts = collections.Counter(rule.kind.name for rule in rules)
  for kind in kinds:
    run.row("mined rules", kind, counts[kind])
  told = ", ".join(f"{kind} {counts[kind]:,}" for kind in kinds)
  progress.say(f"{path}: {len(rules):,} rules ({told})")
  for item in mined[: config.top]:
    rule = rules[mined.index(item)]
    progress.say(
      f"{rule}: support {item.support:,}, confidence {item.confidence:.3f}, "
      f"PCA confidence {item.pca_confidence:.3f}"
    )
  for line in problems(config, rules, facts):
    progress.say(line)
  return path


def problems(
  config: Config, rules: list[Rule], facts: triples.Triples
) -> list[str]:
  """Rules that a model cannot hold, alone or together.

  Returns:
    A line for each kind without a condition, and one for rules that
    contradict each other; nothing where all can hold.
  """
  model = config.score_model
  lacking = collections.Counter(
    rule.kind.name
    for rule in rules
    if rule_set.condition_of(model, rule.kind) is None
  )
  lines = [
    f"--model={config.model} cannot hold {kind} ({count:,} rules)"
    for kind, count in lacking.items()
  ]
  able = [rule for rule in rules if rule.kind.name not in lacking]
  if not able:
    return lines
  if len(able) > _CHECKED:
    lines.append(
      f"whether rules conflict is checked for the best {_CHECKED} of "
      f"{len(able):,}"
    )
    able = able[:_CHECKED]
  named = able, facts.relations, facts.entities
  sizes = len(facts.entities), len(facts.relations)
  params = scores.init_params(model, jax.random.key(0), *sizes, 4)
  try:
    compiled = rule_compiler.compile_rules(
      model, *named, config.rule_config, config.nonnegative
    )
    rule_start.checked_start(compiled, params, *named, config.rule_config)
  except errors.InputError as error:
    lines.append(f"conflict: {error}")
  return lines
