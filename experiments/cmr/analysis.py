"""Error analysis: which queries each system wins, and of what kind."""

import itertools
import pathlib
from collections.abc import Sequence

import numpy as np

from experiments.cmr import data as task_lib
from experiments.cmr import evaluate, reporting
from experiments.cmr.evaluate import Line
from experiments.run import report
from repr_jax.data.documents import mentions
from repr_jax.data.io import files


def pairs(lines: Sequence[Line], seed: int = 0) -> report.Table:
  """Each two systems compared, alone and in their ensembles.

  Args:
    lines: from `evaluate.evaluate`.

  Returns:
    A table of differences with intervals and p, the better system first.
  """
  kinds = (
    ("alone", [x for x in lines[1:] if x.weight is None]),
    ("with BM25", [x for x in lines[1:] if x.name.endswith("+bm25")]),
  )
  rows = []
  for kind, group in kinds:
    order = sorted(group, key=lambda line: -line.means["map"])
    for better, worse in itertools.combinations(order, 2):
      gaps = evaluate.compare(worse.values, better.values, seed)
      cells = [
        reporting.show(gaps[x]) if x in gaps else "" for x in ("map", "infAP")
      ]
      rows.append([kind, better.name, worse.name, *cells])
  header = ["", "better in AP", "than", "AP, difference", "infAP, difference"]
  return report.Table("Each two systems", header, rows)


def tables(task: task_lib.Task, lines: Sequence[Line]) -> list[report.Table]:
  """Which queries each system wins, by frequency and by ambiguity.

  Args:
    lines: from `evaluate`.

  Returns:
    Two tables: average precision in each group of queries, with the shares
    of queries that a system ranks better and worse than BM25.
  """
  shown = [line for line in lines if not line.name.endswith(" mean")]
  made = []
  for title, groups in _groups(task).items():
    rows = []
    for name, queries in groups.items():
      asked = [q for q in queries if q in lines[0].values]
      if asked:
        rows.append(
          [name, len(asked), *(_cell(x, lines[0], asked) for x in shown)]
        )
    header = ["queries", "number", *(line.name for line in shown)]
    made.append(
      report.Table(f"{title}: AP (better / worse than BM25, %)", header, rows)
    )
  return made


def write_queries(
  path: pathlib.Path, task: task_lib.Task, lines: Sequence[Line]
) -> None:
  """Writes each query with the figures of each system.

  Args:
    path: a tab-separated table with a line for each query with figures: its
      mention, entity and name, the groups of `tables`, and AP and infAP of
      each system; a query outside the pool has no infAP.
    lines: from `evaluate`.
  """
  kinds = [
    {query: name for name, queries in groups.items() for query in queries}
    for groups in _groups(task).values()
  ]
  cells = ["query", "entity", "name", "relevant", "ambiguity"]
  cells += [f"{x.name} {y}" for x in lines for y in ("AP", "infAP")]
  with files.atomic_write(path) as out:
    out.write("\t".join(cells) + "\n")
    for row in task.queries.tolist():
      asked = task.mentions[row]
      if asked.id not in lines[0].values:
        continue
      cells = [asked.id, asked.entity, " ".join(asked.words)]
      cells += [kind[asked.id] for kind in kinds]
      for line in lines:
        values = line.values[asked.id]
        for name in ("map", "infAP"):
          cells.append(f"{values[name]:.4f}" if name in values else "")
      out.write("\t".join(" ".join(x.split()) for x in cells) + "\n")


def _groups(task: task_lib.Task) -> dict[str, dict[str, list[str]]]:
  """Kinds of queries by the title of their table."""
  return {
    "By number of relevant mentions": _frequency(task),
    "By ambiguity of the name": _ambiguity(task),
  }


def _cell(line: Line, base: Line, queries: Sequence[str]) -> str:
  own = np.array([line.values[q]["map"] for q in queries])
  if line is base:
    return f"{own.mean():.3f}"
  gap = own - np.array([base.values[q]["map"] for q in queries])
  better, worse = (gap > 1e-9).mean(), (gap < -1e-9).mean()
  return f"{own.mean():.3f} ({better:.0%} / {worse:.0%})"


def _frequency(task: task_lib.Task) -> dict[str, list[str]]:
  groups: dict[str, list[str]] = {
    "1": [],
    "2-3": [],
    "4-9": [],
    "10 or more": [],
  }
  for query, relevance in task.judgments.items():
    count = sum(value > 0 for value in relevance.values())
    name = "1" if count == 1 else "2-3" if count < 4 else "4-9"
    groups["10 or more" if count > 9 else name].append(query)
  return groups


def _ambiguity(task: task_lib.Task) -> dict[str, list[str]]:
  """Whether other entities have the query's name, or a word of it."""
  whole: dict[tuple[str, ...], set[str]] = {}
  single: dict[str, set[str]] = {}
  for mention in task.mentions:
    words = tuple(mentions.content_words(mention.words))
    whole.setdefault(words, set()).add(mention.entity)
    for word in words:
      single.setdefault(word, set()).add(mention.entity)
  groups: dict[str, list[str]] = {
    "name of one entity alone": [], "others share a word": [],
    "others have the same name": [],
  }  # fmt: skip
  alone, shared, same = groups.values()
  for row in task.queries.tolist():
    mention = task.mentions[row]
    words = tuple(mentions.content_words(mention.words))
    if len(whole[words]) > 1:
      same.append(mention.id)
    elif any(len(single[word]) > 1 for word in words):
      shared.append(mention.id)
    else:
      alone.append(mention.id)
  return groups
