"""The choice between two trained systems for each query (thesis 5.4.6).

A finished run can be combined with another later: the rows of the combination
are added to its results. `combined.json` records the tables that they were
computed from, so that they are computed once.
"""

import hashlib
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from experiments.elkb import data as kb_data
from experiments.elkb import evaluate, train
from experiments.elkb.config import load_model
from experiments.run import workdir
from repr_jax.data.io import json_files
from repr_jax.kb import combine, link_prediction

_RECORD = "combined.json"


def combined_ranks(
  kb: kb_data.KnowledgeBase,
  first: evaluate.Trained,
  second: evaluate.Trained,
  block: int,
  unseen: str = "last",
) -> tuple[link_prediction.Ranks, float]:
  """Ranks of test facts by the system that a classifier picks per query.

  Args:
    kb: the knowledge base; the classifier is fitted on its validation facts.
    block: queries at a time.
    unseen: "last" or "drop", for test facts with entities outside training.

  Returns:
    The ranks, and the accuracy of the choice on facts that the systems rank
    differently.
  """
  valid, test = kb.splits.valid.array, kb.splits.test.array
  systems = [(load_model(x.model), x.params) for x in (first, second)]
  ours, theirs = (train.rank_facts(kb, *one, valid, block) for one in systems)
  one, two = (
    train.rank_facts(kb, *each, test, block, unseen) for each in systems
  )
  chosen, right, total = {}, 0.0, 0.0
  for side in ("head", "tail"):
    features = [
      combine.choice_features(
        facts,
        len(kb.relations),
        *(combine.sureness(*each, facts, side, block) for each in systems),
      )
      for facts in (valid, test)
    ]
    labels, weights = combine.better(ours, theirs, side)
    w = np.asarray(combine.fit_logistic(features[0], labels, weights))
    chosen[side] = features[1] @ w > 0
    labels, weights = combine.better(one, two, side)
    weights = weights * one.kept
    right += float(np.sum(weights * (chosen[side] == labels)))
    total += float(weights.sum())
  merged = combine.merge_ranks(one, two, chosen["head"], chosen["tail"])
  return merged, right / max(total, 1.0)


def combined_rows(
  add: Callable[..., object],
  kb: kb_data.KnowledgeBase,
  first: evaluate.Trained,
  second: evaluate.Trained,
  block: int,
  unseen: str,
  thesis: Mapping[str, tuple[float, ...]],
) -> None:
  """Writes the figures of a combination.

  Args:
    add: takes a row, as `runlib.Run.row` does.
    kb: the knowledge base.
    block: queries at a time.
    unseen: as for `combined_ranks`.
  """
  merged, right = combined_ranks(kb, first, second, block, unseen)
  name = name_of(kb, first, second)
  figures = thesis.get(f"{first.name}+{second.name}")
  evaluate.link_rows(add, kb, name, merged, figures)
  add(name, "accuracy of the choice", right, thesis=0.7)


def name_of(
  kb: kb_data.KnowledgeBase,
  first: evaluate.Trained,
  second: evaluate.Trained,
) -> str:
  """The name of a combination in results.

  Args:
    kb: the knowledge base.

  Returns:
    The names of the knowledge base and of both models.
  """
  return f"{kb.name} {first.name}+{second.name}"


def collector(rows: list[dict[str, Any]]) -> Callable[..., None]:
  """A function that adds rows to a list, as `runlib.Run.row` makes them."""

  def add(
    name: str, metric: str, value: float, thesis: float | None = None
  ) -> None:
    beside = {} if thesis is None else {"thesis": thesis}
    rows.append({"name": name, "metric": metric, "value": value, **beside})

  return add


def remember(directory: pathlib.Path, name: str, other: str) -> None:
  """Records the run with which a run was combined.

  Args:
    directory: the run's work directory.
    other: the other run's work directory.
  """
  record = {**_record(directory), name: _digest(other)}
  workdir.write_json(directory / _RECORD, record)


def is_known(directory: pathlib.Path, name: str, other: str) -> bool:
  """Whether a run has the figures of a combination with these tables.

  Args:
    directory: the run's work directory.
    name: of the combination.
    other: the other run's work directory.

  Returns:
    Whether it has.
  """
  return _record(directory).get(name) == _digest(other)


def add_to_results(
  directory: pathlib.Path, name: str, other: str, rows: list[dict[str, Any]]
) -> None:
  """Puts the rows of a combination into the results of a run that has ended.

  Args:
    directory: the run's work directory, whose lock this process has.
    name: of the combination; its earlier rows are removed.
    other: the other run's work directory.
  """
  # In this order, so that a kill leaves no record without its results.
  record = {key: x for key, x in _record(directory).items() if key != name}
  workdir.write_json(directory / _RECORD, record)
  results = workdir.read_results(directory / "results.json")
  kept = [
    row
    for row in results["rows"]
    if not f"{row['name']} ".startswith(f"{name} ")
  ]
  results = {**results, "rows": kept + rows}
  workdir.write_json(directory / "results.json", results)
  remember(directory, name, other)


def _record(directory: pathlib.Path) -> dict[str, Any]:
  path = directory / _RECORD
  record = json_files.read_json(path) if path.exists() else {}
  return record if isinstance(record, dict) else {}


def _digest(directory: str) -> str:
  data = (pathlib.Path(directory) / "params.npz").read_bytes()
  return hashlib.sha256(data).hexdigest()
