"""Answers and verdicts of a curator's page on a trained knowledge base.

An entity has known facts, facts that rules imply (with proofs) and predicted
ones (with probabilities). A curator accepts or rejects facts; verdicts are kept
in `decisions.tsv` of the work directory, and the accepted facts can be exported
in the form that `--train` reads.
"""

import pathlib
import threading
from typing import Any

import numpy as np

from experiments.elkb import answers
from repr_jax.data.io import files
from repr_jax.errors import InputError

VERDICTS = ("accept", "reject")
_SHOWN = 200  # facts of a kind on the page
_AROUND = 24  # entities of the graph


class Curator:
  """Facts around entities, and the verdicts on them.

  Attributes:
    kb: the knowledge base.
    label: the system that predicts.
  """

  def __init__(self, answering: answers.Answerer, path: pathlib.Path):
    """Reads earlier verdicts.

    Args:
      answering: the system with what the rules imply.
    """
    self.kb, self.label = answering.kb, answering.trained.label
    self._answering, self._grounds = answering, answering.grounds
    kb = self.kb
    self._names = [name.casefold() for name in kb.shown]
    self._path = path
    self._lock = threading.Lock()
    self._places = {name: i for i, name in enumerate(kb.entities)}
    self._relations = {name: i for i, name in enumerate(kb.relations)}
    self._verdicts = self._read()

  def search(self, text: str, count: int = 20) -> list[dict[str, Any]]:
    """Entities whose names hold a text, those that begin with it first.

    Args:
      text: part of a name; case does not matter.
      count: how many at most.

    Returns:
      Ids and names.
    """
    wanted = text.strip().casefold()
    if not wanted:
      return []
    places = [i for i, name in enumerate(self._names) if wanted in name]
    places.sort(
      key=lambda i: (
        not self._names[i].startswith(wanted),
        len(self._names[i]),
        self._names[i],
      )
    )
    return [{"id": i, "name": self.kb.shown[i]} for i in places[:count]]

  def entity(self, place: int, top: int = 5) -> dict[str, Any]:
    """Known, implied and predicted facts of an entity.

    Args:
      place: the entity's id.
      top: predictions of each question about it.

    Returns:
      Its name; lists of facts, each with its verdict, implied ones with the
      lines of their proof and predicted ones with their probability and
      whether no other entity fits; and the graph of entities around it.
    """
    if not 0 <= place < len(self.kb.entities):
      raise InputError(f"there is no entity with the id {place}")
    facts = self._grounds.made.facts
    given = self._grounds.made.given
    rows = np.flatnonzero((facts[:, 0] == place) | (facts[:, 2] == place))
    known = [self._fact(*facts[i]) for i in rows[rows < given][:_SHOWN]]
    implied = [
      self._fact(*facts[i], proof=self._grounds.proof(int(i)))
      for i in rows[rows >= given][:_SHOWN]
    ]
    return {
      "id": place,
      "name": self.kb.shown[place],
      "known": known,
      "known_count": int((rows < given).sum()),
      "implied": implied,
      "implied_count": int((rows >= given).sum()),
      "predicted": self._predicted(place, rows, top),
      "graph": self._graph(place, rows),
    }

  def decide(self, fact: tuple[int, int, int], verdict: str | None) -> None:
    """Keeps a verdict, in memory and in the file.

    Args:
      fact: ids of head, relation and tail.
      verdict: "accept" or "reject"; None takes an earlier one back.
    """
    sizes = len(self.kb.entities), len(self.kb.relations), len(self.kb.entities)
    if not all(0 <= x < size for x, size in zip(fact, sizes, strict=True)):
      raise InputError(f"no fact has the ids {list(fact)}")
    if verdict is not None and verdict not in VERDICTS:
      raise InputError(f"a verdict is accept or reject, not {verdict!r}")
    with self._lock:
      if verdict is None:
        self._verdicts.pop(fact, None)
      else:
        self._verdicts[fact] = verdict
      with files.atomic_write(self._path, "w") as out:
        out.write(self._text(None))

  def counts(self) -> dict[str, int]:
    """How many facts have each verdict."""
    each = list(self._verdicts.values())
    return {verdict: each.count(verdict) for verdict in VERDICTS}

  def export(self, verdict: str = "accept") -> str:
    """The facts with a verdict as head<TAB>relation<TAB>tail lines.

    Args:
      verdict: "accept" or "reject".
    """
    if verdict not in VERDICTS:
      raise InputError(f"a verdict is accept or reject, not {verdict!r}")
    return self._text(verdict)

  def _fact(self, head, relation, tail, **more):
    fact = int(head), int(relation), int(tail)
    shown = self.kb.shown
    return {
      "fact": list(fact),
      "head": shown[fact[0]],
      "relation": self.kb.relations[fact[1]],
      "tail": shown[fact[2]],
      "verdict": self._verdicts.get(fact),
      **more,
    }

  def _predicted(self, place, rows, top):
    """New facts by the questions that the entity's facts suggest."""
    facts = self._grounds.made.facts[rows]
    asked = {(int(r), "tail") for h, r, _ in facts if h == place}
    asked |= {(int(r), "head") for _, r, t in facts if t == place}
    listed = []
    for relation, side in sorted(asked):
      best = self._answering.best_new((relation, place, side), top)
      for other, probability in best:
        ends = (place, other) if side == "tail" else (other, place)
        listed.append(
          self._fact(
            ends[0],
            relation,
            ends[1],
            probability=probability,
            only=len(best) == 1 < top,
          )
        )
    listed.sort(key=lambda fact: -fact["probability"])
    return listed[:_SHOWN]

  def _graph(self, place, rows):
    """The entity, some that it has facts with, and facts among all of these."""
    facts = self._grounds.made.facts
    near: dict[int, None] = {place: None}
    for row in rows:
      for end in (int(facts[row, 0]), int(facts[row, 2])):
        if len(near) <= _AROUND:
          near.setdefault(end)
    ids = np.array(list(near))
    inside = np.isin(facts[:, 0], ids) & np.isin(facts[:, 2], ids)
    edges = np.flatnonzero(inside)[: 10 * _AROUND]
    return {
      "nodes": [{"id": i, "name": self.kb.shown[i]} for i in near],
      "edges": [
        {
          "from": int(facts[i, 0]),
          "to": int(facts[i, 2]),
          "relation": self.kb.relations[facts[i, 1]],
          "implied": bool(i >= self._grounds.made.given),
        }
        for i in edges
      ],
    }

  def _text(self, verdict):
    lines = []
    for (head, relation, tail), given in self._verdicts.items():
      names = self.kb.entities[head], self.kb.relations[relation]
      fields = [*names, self.kb.entities[tail]]
      if verdict is None:
        lines.append("\t".join([*fields, given]) + "\n")
      elif given == verdict:
        lines.append("\t".join(fields) + "\n")
    return "".join(lines)

  def _read(self) -> dict[tuple[int, int, int], str]:
    """Verdicts of an earlier visit."""
    verdicts: dict[tuple[int, int, int], str] = {}
    if not self._path.exists():
      return verdicts
    for line, text in enumerate(files.open_text(self._path), 1):
      fields = text.rstrip("\n").split("\t")
      if len(fields) != 4 or fields[3] not in VERDICTS:
        raise InputError(
          "expected head<TAB>relation<TAB>tail<TAB>accept or reject",
          path=self._path,
          line=line,
        )
      head, relation, tail, verdict = fields
      if not {head, tail} <= self._places.keys():
        raise InputError(
          "names an entity that the run lacks", path=self._path, line=line
        )
      if relation not in self._relations:
        raise InputError(
          "names a relation that the run lacks", path=self._path, line=line
        )
      fact = self._places[head], self._relations[relation], self._places[tail]
      verdicts[fact] = verdict
    return verdicts
