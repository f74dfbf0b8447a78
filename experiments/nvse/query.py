"""Queries as people write them, and answers as people read them."""

import json
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from experiments.run import expander
from repr_jax.data import entities
from repr_jax.data.entities import features
from repr_jax.data.entities.names import resolve_names
from repr_jax.data.entities.query_text import Member
from repr_jax.data.io import files
from repr_jax.errors import InputError
from repr_jax.setexp import explain, systems
from repr_jax.setexp.query import Query, best, exclude, make_query


class Result(NamedTuple):
  """One answer with its reasons and supporting sentences.

  The chance to belong to the set is None if none was fitted.
  """

  id: str
  name: str
  score: float
  chance: float | None
  reasons: list[explain.Named]
  justifications: list[explain.Justification]


class Answer(NamedTuple):
  """A system's answer to a query.

  Attributes:
    system: its name.
    members: of the query.
    rationale: reasons of all results together.
    kind: of the rationale, "contributions" or "decoder".
    results: best first.
    size: estimated number of results that belong to the set; None without
      fitted chances.
  """

  system: str
  members: list[Member]
  rationale: list[explain.Named]
  kind: str
  results: list[Result]
  size: int | None


def read_new(
  path: str, table: features.FeatureTable
) -> dict[str, sp.csr_array]:
  """Features of entities that the corpus does not have.

  Args:
    path: JSON lines as in entity files; or text with one sentence on each
      line, about one entity that has the name of the file.
    table: the table whose features are counted.

  Returns:
    Features [1, F] by name.
  """
  first = next((x.strip() for x in files.open_text(path) if x.strip()), "")
  if first.startswith("{"):
    rows = {
      info.name: features.featurize(table, given)
      for info, given in entities.read_entity_file(path)
    }
  else:
    lines = [x.strip() for x in files.open_text(path) if x.strip()]
    name = pathlib.Path(path).name.partition(".")[0].replace("_", " ")
    rows = {name: features.featurize(table, lines)}
  for name, row in rows.items():
    if row.nnz == 0:
      raise InputError(
        f"{name!r} has no feature that the corpus knows", path=path
      )
  return rows


def build(
  table: features.FeatureTable,
  members: Sequence[Member],
  new: dict[str, sp.csr_array],
) -> Query:
  """The query of named members.

  Args:
    members: names or ids with weights.
    new: features of new entities by name.

  Returns:
    The query; an unknown name is an `InputError` with the nearest ones.
  """
  by_key = {name.casefold(): row for name, row in new.items()}
  old = [m for m in members if m.name.casefold() not in by_key]
  added = [m for m in members if m.name.casefold() in by_key]
  rows = resolve_names(table, [member.name for member in old])
  first: dict[int, str] = {}
  for member, row in zip(old, rows.tolist()):
    if row in first:
      raise InputError(
        f"{first[row]!r} and {member.name!r} are both {table.names[row]!r}: "
        "name it once and raise its weight"
      )
    first[row] = member.name
    if table.counts.indptr[row] == table.counts.indptr[row + 1]:
      raise InputError(
        f"{member.name!r} has no features left after pruning: leave it out, "
        "or count the corpus with a lower --min_count"
      )
  stacked = None
  if added:
    stacked = sp.csr_array(
      sp.vstack([by_key[m.name.casefold()] for m in added], format="csr")
    )
  weights = [member.weight for member in (*old, *added)]
  return make_query(table.counts, rows, weights, stacked)


def with_new(
  members: Sequence[Member], new: dict[str, sp.csr_array]
) -> list[Member]:
  """Members and, with weight 1, the new entities that they do not name."""
  named = {member.name.casefold() for member in members}
  return [*members] + [
    Member(name, 1.0) for name in new if name.casefold() not in named
  ]


def answer(
  table: features.FeatureTable,
  system: systems.System,
  members: Sequence[Member],
  *,
  new: dict[str, sp.csr_array] | None = None,
  results: int = 10,
  reasons: int = 10,
  sentences: int = 1,
  rationale: str = "contributions",
  dimensions: Sequence[str] = (),
  chances: np.ndarray | None = None,
) -> Answer:
  """Asks a system.

  Args:
    members: names or ids with weights.
    new: features of new entities by name; those that the members do not name
      join them with weight 1.
    reasons: features of the rationale and of each result.
    sentences: for each result.
    rationale: "contributions", the parts of the score summed over the results,
      or "decoder", the system's weights of the query's features.
    dimensions: names of latent dimensions.
    chances: weights of the evidence for this system, [5]; None for none.

  Returns:
    The answer; members are never among the results.
  """
  members = with_new(members, new or {})
  query = build(table, members, new or {})
  scores = np.asarray(system.score_batch([query])[0])
  rows = best(exclude(scores, query), results)
  given, size = expander.set_chances(chances, scores, query)
  parts = system.contributions(query, rows.tolist())
  names = table.features if system.features is None else system.features
  why = [
    explain.named_parts([part], names, reasons, dimensions) for part in parts
  ]
  answers = [
    Result(
      table.entities[row],
      table.names[row],
      float(scores[row]),
      None if given is None else float(given[row]),
      reason,
      _justify(table, system, query, row, sentences),
    )
    for row, reason in zip(rows.tolist(), why)
  ]
  if rationale == "decoder":
    weights = system.rationale(query)
    heaviest = explain.top_features(weights, names, reasons)
    whole = [feature for feature in heaviest if feature.weight]
  else:
    whole = explain.named_parts(parts, names, reasons, dimensions)
  return Answer(system.name, members, whole, rationale, answers, size)


def dimension_names(decoder: np.ndarray, names: Sequence[str]) -> list[str]:
  """Latent dimensions of the autoencoder by the features they stand for."""
  return [
    f"dimension {j} ({', '.join(show_feature(x.name) for x in side.positive)})"
    for j, side in enumerate(explain.concept_table(decoder, names, 3))
  ]


def concepts_text(decoder: np.ndarray, names: Sequence[str], count: int) -> str:
  """A line for each sign of each latent dimension: its heaviest features.

  Args:
    decoder: weights with the biases in the last column, [F, d + 1].
    names: of the features, F of them.
  """
  lines = []
  concepts = explain.concept_table(decoder, names, count, both_signs=True)
  for j, concept in enumerate(concepts):
    for sign, side in (("+", concept.positive), ("-", concept.negative)):
      shown = ", ".join(show_feature(x.name) for x in side)
      lines.append(f"{sign}e_{j}: {shown}")
  return "\n".join(lines)


def _justify(table, system, query, row, count) -> list[explain.Justification]:
  held = table.sentences
  texts = {held.text(i): i for i in held.of(row).tolist()} if count else {}
  return explain.justifications(
    lambda rows: system.score_rows(query, rows),
    lambda text: features.sentence_rows(table, np.array([texts[text]])),
    list(texts),
    count,
  )


def to_text(answer: Answer) -> str:
  """An answer to be read on a terminal."""
  asked = ", ".join(
    m.name if m.weight == 1 else f"{m.name}:{m.weight:g}"
    for m in answer.members
  )
  lines = [f"{answer.system}: {asked}"]
  shown = [f"{show_feature(x.name)} {x.weight:.3g}" for x in answer.rationale]
  label = "because of" if answer.kind == "contributions" else "decoded"
  lines.append(f"{label}: " + ", ".join(shown))
  if answer.size is not None:
    lines.append(f"about {answer.size} more belong to the set")
  for place, result in enumerate(answer.results, 1):
    line = f"{place:4d}. {result.name}  {result.score:.4g}"
    if result.chance is not None:
      line += f"  {result.chance:.0%}"
    if place == answer.size and place < len(answer.results):
      line += "  (the set ends here)"
    lines.append(line)
    lines += [f"        {x.sentence}" for x in result.justifications]
  return "\n".join(lines)


def to_json(answer: Answer) -> str:
  """An answer for programs."""
  value: dict[str, Any] = {
    "system": answer.system,
    "query": [x._asdict() for x in answer.members],
    "rationale": [x._asdict() for x in answer.rationale],
    "rationale_kind": answer.kind,
    "size": answer.size,
    "results": [
      {
        **x._asdict(),
        "reasons": [reason._asdict() for reason in x.reasons],
        "justifications": [j._asdict() for j in x.justifications],
      }
      for x in answer.results
    ],
  }
  return json.dumps(value, ensure_ascii=False, indent=1)


def show_feature(name: str) -> str:
  """The name of a feature, without the prefix of the default block."""
  return name.removeprefix("word:")


def prompt(
  names: Sequence[str],
  respond: Callable[[str], str],
  settings: Callable[[str], str],
) -> None:
  """Asks for queries until the input ends.

  Args:
    names: names that TAB completes after the last comma.
    respond: maps the text of a query to the text to print.
    settings: maps a line that starts with ":" to the text to print.
  """
  _complete(names)
  print('Names between commas, with weights as in "Bach:2"; :help, :quit')
  while True:
    try:
      line = input("expand> ").strip()
    except EOFError:
      return
    if line in (":quit", ":q"):
      return
    if not line:
      continue
    try:
      print(settings(line) if line.startswith(":") else respond(line))
    except InputError as error:
      print(f"error: {error}")


def _complete(names: Sequence[str]) -> None:
  """Lets TAB complete names, if the input is a terminal with readline."""
  if not sys.stdin.isatty():
    return
  try:
    import readline
  except ImportError:
    return
  ordered = sorted(set(names))
  readline.set_completer_delims(",")
  readline.set_completer(lambda text, state: completion(ordered, text, state))
  readline.parse_and_bind("tab: complete")


def completion(names: Sequence[str], text: str, state: int) -> str | None:
  """The state-th name that begins with the text; case is ignored.

  Args:
    names: sorted.
    text: what stands after the last comma.
    state: 0, 1, ... as readline counts.
  """
  start = text.lstrip()
  if not start:
    return None
  blanks = text[: len(text) - len(start)]
  key = start.casefold()
  matching = (name for name in names if name.casefold().startswith(key))
  for place, name in enumerate(matching):
    if place == state:
      return blanks + (f'"{name}"' if "," in name else name)
  return None
