"""Figures, answers and combinations of trained knowledge bases."""

import pathlib

import jax
import numpy as np

from experiments import kb_data, kb_training, runlib
from repr_jax import errors
from repr_jax.data import files
from repr_jax.kb import combine, link_prediction, rule_check, scores


def link_rows(
  run: runlib.Run,
  kb: kb_data.KnowledgeBase,
  name: str,
  ranks: link_prediction.Ranks,
  thesis: tuple[float, ...] | None = None,
) -> None:
  """Writes raw and filtered figures of both sides, and of each relation.

  Args:
    run: takes the rows.
    kb: the knowledge base.
    name: of the system.
    ranks: of the test facts.
    thesis: its MRR, HITS@3 and HITS@10, set beside the raw figures of both
      sides (the text does not say which it means).
  """
  figures = dict(zip(("mrr", "hits@3", "hits@10"), thesis or ()))
  for filtered in (False, True):
    kind = "filtered" if filtered else "raw"
    for side in ("both", "head", "tail"):
      found = link_prediction.summary(ranks, side=side, filtered=filtered)
      for metric, value in found.items():
        if metric != "count":
          beside = figures.get(metric) if side == "both" else None
          run.row(name, f"{metric} {kind} {side}", value, thesis=beside)
  run.row(name, "test facts with unseen names", int(ranks.unseen.sum()))
  relations = kb.splits.test.array[:, 1]
  for relation, found in link_prediction.per_relation(ranks, relations).items():
    label = f"{name} {kb.relations[relation]}"
    run.row(label, "mrr filtered both", found["mrr"])


def violations(
  kb: kb_data.KnowledgeBase, system: kb_training.System, params: scores.Params
) -> rule_check.RuleCheck:
  """How far the rules of a knowledge base fail.

  Args:
    kb: the knowledge base.
    system: gives the model and the region of its entities.
    params: the tables.

  Returns:
    The check.
  """
  return rule_check.check_rules(
    system.setting.model,
    params,
    kb.rules,
    kb.relations,
    kb.entities,
    system.constraints,
  )


def answers(
  kb: kb_data.KnowledgeBase,
  model: str,
  params: scores.Params,
  query: tuple[int, int, str],
  top: int,
) -> list[tuple[str, float]]:
  """The best entities for a query, by name, with their scores.

  Args:
    kb: the knowledge base.
    model: one of `kb.scores.SCORES`.
    params: the tables.
    query: relation, entity and open side, as from `kb_data.parse_query`.
    top: how many.

  Returns:
    Names and scores, best first.
  """
  relation, entity, side = query
  score_all = (
    scores.score_all_heads if side == "head" else scores.score_all_tails
  )
  values = score_all(
    model,
    params.relations[relation][None],
    params.entities[entity][None],
    params.entities,
  )[0]
  best = jax.lax.top_k(values, min(top, values.size))
  return [
    (kb.shown[i], float(value))
    for value, i in zip(best[0].tolist(), best[1].tolist())
  ]


def save_params(path: pathlib.Path, model: str, params: scores.Params) -> None:
  """Writes tables and the name of their model.

  Args:
    path: `params.npz` of a work directory.
    model: one of `kb.scores.SCORES`.
    params: the tables.
  """
  with files.atomic_write(path, "wb") as out:
    np.savez(out, model=model, **params._asdict())


def load_params(directory: str) -> tuple[str, scores.Params]:
  """Reads what `save_params` wrote.

  Args:
    directory: work directory of a finished run.

  Returns:
    The model and its tables.
  """
  path = pathlib.Path(directory) / "params.npz"
  if not path.exists():
    raise errors.InputError(
      "no finished run of experiments.elkb is here (no params.npz)",
      path=directory,
    )
  found = files.read_npz(path, ["entities", "relations", "model"])
  model = str(found.pop("model"))
  for name, table in found.items():
    if table.dtype.kind != "f" or not np.isfinite(table).all():
      raise errors.InputError(f"{name} is no finite table", path=path)
  tables = jax.tree.map(jax.numpy.asarray, found)
  return model, scores.Params(tables["entities"], tables["relations"])


def combined_ranks(
  kb: kb_data.KnowledgeBase,
  first: tuple[str, scores.Params],
  second: tuple[str, scores.Params],
  block: int,
) -> tuple[link_prediction.Ranks, float]:
  """Ranks of test facts by the system that a classifier picks per query.

  Args:
    kb: the knowledge base; the classifier is fitted on its validation facts.
    first: a model and its tables.
    second: another.
    block: queries at a time.

  Returns:
    The ranks, and how often the pick was right where it mattered.
  """
  valid, test = kb.splits.valid.array, kb.splits.test.array
  ours, theirs = (
    kb_training.rank_facts(kb, *one, valid, block) for one in (first, second)
  )
  one, two = (
    kb_training.rank_facts(kb, *each, test, block) for each in (first, second)
  )
  chosen, right, total = {}, 0.0, 0.0
  for side in ("head", "tail"):
    features = [
      combine.choice_features(
        facts,
        len(kb.relations),
        combine.sureness(*first, facts, side, block),
        combine.sureness(*second, facts, side, block),
      )
      for facts in (valid, test)
    ]
    labels, weights = combine.better(ours, theirs, side)
    w = np.asarray(combine.fit_logistic(features[0], labels, weights))
    chosen[side] = features[1] @ w > 0
    labels, weights = combine.better(one, two, side)
    right += float(np.sum(weights * (chosen[side] == labels)))
    total += float(weights.sum())
  merged = combine.merge_ranks(one, two, chosen["head"], chosen["tail"])
  return merged, right / max(total, 1.0)
