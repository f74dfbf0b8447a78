"""Figures, answers and files of trained knowledge bases."""

import pathlib
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from experiments.elkb import data, train
from experiments.elkb.config import Config, load_model
from experiments.run import progress
from repr_jax import errors
from repr_jax.data import deduction
from repr_jax.data.io import array_files, files
from repr_jax.kb import certificates, link_prediction, rule_check, scores


class Trained(NamedTuple):
  """A system that has been trained.

  Attributes:
    model: the score model as `--model` names it.
    params: the tables.
    label: the model, and whether rules hold in it.
  """

  model: str
  params: scores.Params
  label: str

  @property
  def name(self) -> str:
    """The name of its score model."""
    return load_model(self.model).name


def label_of(kb: data.KnowledgeBase, config: Config) -> str:
  """The name of a system in results.

  Args:
    kb: the knowledge base.

  Returns:
    The model, and whether rules hold in it.
  """
  name = config.score_model.name
  return f"{name} + rules" if config.constrained and kb.rules else name


def link_rows(
  add: Callable[..., object],
  kb: data.KnowledgeBase,
  name: str,
  ranks: link_prediction.Ranks,
  thesis: tuple[float, ...] | None = None,
) -> None:
  """Writes raw and filtered figures of both sides, and of each relation.

  Args:
    add: takes a row, as `runlib.Run.row` does.
    kb: the knowledge base.
    ranks: of the test facts.
    thesis: its MRR, HITS@3 and HITS@10, compared with the raw figures
      of both sides (the thesis does not specify).
  """
  figures = dict(zip(("mrr", "hits@3", "hits@10"), thesis or ()))
  for filtered in (False, True):
    kind = "filtered" if filtered else "raw"
    for side in ("both", "head", "tail"):
      metrics = link_prediction.summary(ranks, side=side, filtered=filtered)
      for metric, value in metrics.items():
        if metric != "count":
          beside = figures.get(metric) if side == "both" else None
          add(name, f"{metric} {kind} {side}", value, thesis=beside)
  add(name, "test facts with unseen names", int(ranks.unseen.sum()))
  relations = kb.splits.test.array[:, 1]
  strange = int(np.isin(relations, kb.splits.unseen_relations).sum())
  add(name, "test facts with unseen relations", strange)
  each = link_prediction.per_relation(ranks, relations)
  for relation, metrics in each.items():
    label = f"{name} {kb.relations[relation]}"
    add(label, "mrr filtered both", metrics["mrr"])


def underivable_rows(
  add: Callable[..., object],
  kb: data.KnowledgeBase,
  name: str,
  ranks: link_prediction.Ranks,
) -> None:
  """Writes filtered figures of test facts that rules do not derive.

  Args:
    add: takes a row, as `runlib.Run.row` does.
    kb: the knowledge base, with rules.
  """
  known = np.concatenate([kb.splits.train.array, kb.dropped])
  made = deduction.deduce(known, kb.rules, kb.relations, kb.entities)
  sizes = len(kb.entities), len(kb.relations), len(kb.entities)
  test, closed = (
    np.ravel_multi_index(x.T, sizes) for x in (kb.splits.test.array, made.facts)
  )
  alone = ~np.isin(test, closed)
  add(name, "test facts that do not follow by rules", int(alone.sum()))
  if (alone & ranks.kept).any():
    figures = link_prediction.summary(ranks, subset=alone)
    for metric in ("mrr", "hits@1", "hits@3", "hits@10"):
      add(name, f"{metric} filtered both, underivable", figures[metric])


def validation_rows(
  add: Callable[..., object],
  kb: data.KnowledgeBase,
  name: str,
  config: Config,
  params: scores.Params,
) -> None:
  """Writes the filtered figures of the facts that chose the epoch.

  The first is the one that `--select_by` names; `launch.collect` chooses
  among settings by it.

  Args:
    add: takes a row, as `runlib.Run.row` does.
    kb: the knowledge base.
    params: the chosen tables.
  """
  facts = train.validation_facts(kb, config)
  ranks = train.rank_facts(
    kb, config.score_model, params, facts, config.block, config.unseen
  )
  figures = link_prediction.summary(ranks)
  for metric in dict.fromkeys((config.select_by, "mrr", "hits@1", "hits@10")):
    add(name, f"validation {metric}", figures[metric])
  reason = train.collapse(params.entities)
  if reason is not None:
    progress.say(f"{name}: the chosen model has collapsed: {reason}")
  add(name, "collapsed", int(reason is not None), lower_is_better=True)


def certificate_rows(
  add: Callable[..., object],
  kb: data.KnowledgeBase,
  name: str,
  config: Config,
  params: scores.Params,
) -> None:
  """Writes which rules are proven for all pairs of entities.

  Args:
    add: takes a row, as `runlib.Run.row` does.
    kb: the knowledge base, with rules.
  """
  try:
    proofs = certificates.certify(
      config.score_model, params, kb.rules, kb.relations, kb.entities
    )
  except errors.InputError as error:
    progress.say(f"{name}: {error}; violations are of sampled pairs alone")
    return
  if config.slack and config.constrained:
    add(name, "violation bound of one-way rules", one_way_bound(config))
  proven = sum(proof.holds for proof in proofs)
  worst = max(proofs, key=lambda proof: proof.bound)
  add(name, "rules proven for all pairs", proven, lower_is_better=False)
  add(name, "largest violation, all pairs", max(0.0, float(worst.bound)))
  if worst.bound > 0:
    where = ""
    if worst.worst is not None:
      names = ", ".join(kb.shown[i] for i in worst.worst)
      where = f", at ({names})"
    progress.say(
      f"{name}: {proven} of {len(proofs)} rules are proven for all pairs; "
      f"{worst.rule} fails by at most {float(worst.bound):.3g}{where}"
    )


def one_way_bound(config: Config) -> float:
  """How far one-way rules with `--slack` may fail, by their conditions.

  Args:
    config: the model, its size and the slack.

  Returns:
    The bound for any two entities of the box.
  """
  model = config.score_model
  model = model.base or model
  numbers = model.relation_size(config.dim)
  if model.ordered is not None:
    numbers = int(model.ordered(config.dim).sum())
  products = model.name not in ("A", "B")
  return config.rule_config.violation_bound(numbers, products)


def violations(
  kb: data.KnowledgeBase, training: train.Training, params: scores.Params
) -> rule_check.RuleCheck:
  """How far the rules of a knowledge base fail.

  Args:
    kb: the knowledge base.
    training: gives the model and the region of its entities.
  """
  return rule_check.check_rules(
    training.config.score_model,
    params,
    kb.rules,
    kb.relations,
    kb.entities,
    training.constraints,
  )


def save_params(
  path: pathlib.Path, kb: data.KnowledgeBase, trained: Trained
) -> None:
  """Writes tables with the names of their rows and of their system.

  Args:
    path: `params.npz` of a work directory.
    kb: gives the names.
  """
  with files.atomic_write(path, "wb") as out:
    np.savez(
      out,
      model=trained.model,
      label=trained.label,
      entity_names=np.array(kb.entities, np.str_),
      relation_names=np.array(kb.relations, np.str_),
      **trained.params._asdict(),
    )


def load_params(
  directory: str, kb: data.KnowledgeBase | None = None
) -> Trained:
  """Reads what `save_params` wrote.

  Args:
    directory: work directory of a finished run.
    kb: the knowledge base whose names the tables must have; None for any.

  Raises:
    InputError: there is no such file, it is damaged, or its entities or
      relations are not those of the knowledge base.
  """
  path = pathlib.Path(directory) / "params.npz"
  if not path.exists():
    raise errors.InputError(
      "no finished run of experiments.elkb is here (no params.npz)",
      path=directory,
    )
  arrays = array_files.read_npz(path)
  if "entity_names" not in arrays or "relation_names" not in arrays:
    raise errors.InputError(
      "does not say which entities and relations its tables have, as files of "
      "older versions do not; train again in another --workdir",
      path=path,
    )
  arrays = array_files.read_npz(path, [*scores.Params._fields, *_TEXTS])
  texts = {name: arrays.pop(name) for name in _TEXTS}
  for name, table in arrays.items():
    names = texts[_NAMES[name]]
    if table.dtype.kind != "f" or not np.isfinite(table).all():
      raise errors.InputError(f"{name} is no finite table", path=path)
    if table.ndim != 2 or names.shape != table.shape[:1]:
      raise errors.InputError(f"{name} and their names differ", path=path)
    wanted = None if kb is None else getattr(kb, name)
    if wanted is not None and names.tolist() != wanted:
      raise errors.InputError(
        f"has other {name} than this knowledge base: "
        f"{_difference(names.tolist(), wanted)}. Give the files that the run "
        "was trained on, or train again in another --workdir",
        path=path,
      )
  tables = jax.tree.map(jax.numpy.asarray, arrays)
  return Trained(
    str(texts["model"]),
    scores.Params(tables["entities"], tables["relations"]),
    str(texts["label"]),
  )


_NAMES = {"entities": "entity_names", "relations": "relation_names"}
_TEXTS = ("model", "label", *_NAMES.values())


def _difference(stored: list[str], wanted: list[str]) -> str:
  """The first name that only one of two lists has."""
  for names, others, where in (
    (stored, set(wanted), "only there"),
    (wanted, set(stored), "only here"),
  ):
    alone = [name for name in names if name not in others]
    if alone:
      more = f" and {len(alone) - 1:,} more are" if len(alone) > 1 else " is"
      return f"{alone[0]!r}{more} {where}"
  return "their order is another"
