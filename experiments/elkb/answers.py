"""Answers with their grounds: known, implied by rules, or predicted.

A fact of any split is known. A fact is implied where rules derive it from known
ones; its proof is shown. All others are predicted, with the probability
softmax(score / temperature) over the entities that give a new fact; the
temperature is fitted on validation facts. Entities of classes that do
not fit are not listed, but keep their share: if only one entity fits, its
probability does not rise.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from experiments.elkb import data, evaluate
from experiments.elkb.config import Config, load_model
from repr_jax import kb
from repr_jax.data import deduction, rules
from repr_jax.evaluation import calibration

_FACTS = 300  # facts at most, to fit or test the probabilities
_TEMPERATURES = np.geomspace(0.1, 10.0, 25)


class Answer(NamedTuple):
  """An entity for an open slot.

  Attributes:
    entity: its name.
    kind: "known", "implied" or "predicted".
    probability: 1 unless predicted.
    score: of the model.
    proof: for an implied answer, a line for each step, the last step first.
  """

  entity: str
  kind: str
  probability: float
  score: float
  proof: list[str]


class Grounds:
  """Known facts of a knowledge base and what rules derive from them."""

  def __init__(self, kb: data.KnowledgeBase):
    """Derives all that the rules imply."""
    self._kb = kb
    # Training facts may include implied ones; these are not given facts.
    sizes = len(kb.entities), len(kb.relations), len(kb.entities)
    train, implied = (
      np.ravel_multi_index(x.T, sizes)
      for x in (kb.splits.train.array, kb.implied)
    )
    said = [kb.splits.train.array[~np.isin(train, implied)], kb.dropped]
    said += [kb.splits.valid.array, kb.splits.test.array]
    known = np.concatenate(said)
    self.made = deduction.deduce(known, kb.rules, kb.relations, kb.entities)
    self._index: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    self._size = len(kb.entities)
    self._reflexive = _reflexive(known)

  def rows(self, relation: int, entity: int, side: str) -> dict[int, int]:
    """Rows of the known and implied facts that answer a query, by entity."""
    fixed, free = (2, 0) if side == "head" else (0, 2)
    facts = self.made.facts
    if side not in self._index:
      keys = facts[:, 1].astype(np.int64) * self._size + facts[:, fixed]
      order = np.argsort(keys, kind="stable")
      self._index[side] = order, keys[order]
    order, keys = self._index[side]
    key = relation * self._size + entity
    first, last = np.searchsorted(keys, [key, key + 1])
    places = order[first:last]
    return dict(zip(facts[places, free].tolist(), places.tolist()))

  def is_reflexive(self, relation: int) -> bool:
    """Whether some known fact of a relation has one entity in both places."""
    return relation in self._reflexive

  def proof(self, row: int) -> list[str]:
    """The steps of a proof as text, the last one first."""
    return [
      f"{self.fact(fact)} by {self._kb.rules[rule]} from "
      + " and ".join(map(self.fact, premises))
      for fact, rule, premises in self.made.proof(row)
    ]

  def fact(self, row: int) -> str:
    """A fact as text."""
    head, relation, tail = self.made.facts[row].tolist()
    first, second = (rules.quoted(self._kb.shown[i]) for i in (head, tail))
    return f"{self._kb.relations[relation]}({first}, {second})"


def _reflexive(facts):
  """Relations that some fact has with one entity in both places."""
  return set(facts[facts[:, 0] == facts[:, 2], 1].tolist())


@dataclasses.dataclass(frozen=True)
class Answerer:
  """A trained system that answers queries, with its grounds.

  A query is relation, entity and open side, as from `query.parse_query`. An
  entity is predicted for itself only if some known fact of the relation has one
  entity in both places.

  Attributes:
    kb: the knowledge base.
    trained: the system.
    grounds: what is known and implied.
    temperature: of the probabilities.
    allowed: (relation, side) -> entities whose types fit, bool [E].
  """

  kb: data.KnowledgeBase
  trained: evaluate.Trained
  grounds: Grounds
  temperature: float
  allowed: Callable[[int, str], np.ndarray] | None = None

  def best(self, query: tuple[int, int, str], top: int) -> list[Answer]:
    """The best answers of each kind: known, then implied, then predicted."""
    values, mass = self._one_query(query)
    rows = self.grounds.rows(*query)
    given = self.grounds.made.given
    ordered = np.argsort(-values, kind="stable").tolist()
    groups = (
      ("known", [i for i in ordered if rows.get(i, given) < given]),
      ("implied", [i for i in ordered if rows.get(i, -1) >= given]),
      ("predicted", [i for i in ordered if mass[i] >= 0][:top]),
    )
    return [
      Answer(
        self.kb.shown[i],
        kind,
        float(mass[i]) if kind == "predicted" else 1.0,
        float(values[i]),
        self.grounds.proof(rows[i]) if kind == "implied" else [],
      )
      for kind, places in groups
      for i in places[:top]
    ]

  def best_new(
    self, query: tuple[int, int, str], top: int
  ) -> list[tuple[int, float]]:
    """The most probable answers that give a new fact, by id."""
    _, mass = self._one_query(query)
    best = np.argsort(-mass, kind="stable")[:top]
    return [(int(i), float(mass[i])) for i in best if mass[i] >= 0]

  def _one_query(self, query):
    """Scores and probabilities of all entities; -1 if the fact is not new."""
    relation, entity, side = query
    score_all = kb.score_all_heads if side == "head" else kb.score_all_tails
    params = self.trained.params
    values = np.asarray(
      score_all(
        load_model(self.trained.model),
        params.relations[relation][None],
        params.entities[entity][None],
        params.entities,
      )[0],
      np.float64,
    )
    new = np.ones(len(values), bool)
    new[list(self.grounds.rows(*query))] = False
    if not self.grounds.is_reflexive(relation):
      new[entity] = False
    mass = softmax(np.where(new, values / self.temperature, -np.inf)[None])[0]
    if self.allowed is not None:
      new &= self.allowed(relation, side)
    return values, np.where(new, mass, -1.0)

  def discover(
    self, count: int, block: int
  ) -> list[tuple[float, str, str, str]]:
    """The most probable new facts (h, r, t), each query scored once.

    Queries are (h, r, ?) for every head h of a known fact of r.

    Args:
      count: how many facts.
      block: queries scored at a time.

    Returns:
      Probability, head, relation and tail, the most probable first.
    """
    kb, grounds = self.kb, self.grounds
    queries = np.unique(grounds.made.facts[:, :2], axis=0)
    best = np.zeros((0, 4))
    for rows, values in _score_blocks(self.trained, queries, "tail", block):
      fits = np.ones(values.shape, bool)
      for i, (head, relation) in enumerate(rows.tolist()):
        values[i, list(grounds.rows(relation, head, "tail"))] = -np.inf
        if not grounds.is_reflexive(relation):
          values[i, head] = -np.inf
        if self.allowed is not None:
          fits[i] = self.allowed(relation, "tail")
      mass = softmax(values / self.temperature) * fits
      keep = min(count, mass.size)
      places = np.argpartition(-mass.ravel(), keep - 1)[:keep]
      query, tail = np.divmod(places, mass.shape[1])
      chosen = [mass.ravel()[places], *rows[query].T, tail]
      best = np.concatenate([best, np.stack(chosen, axis=1)])
      best = best[np.argsort(-best[:, 0], kind="stable")[:count]]
    return [
      (float(p), kb.shown[int(h)], kb.relations[int(r)], kb.shown[int(t)])
      for p, h, r, t in best.tolist()
      if p > 0
    ]


def missing(kb: data.KnowledgeBase, grounds: Grounds, top: int) -> str:
  """Facts that rules derive and no split has, and facts that rules forbid.

  Args:
    kb: the knowledge base.
    grounds: what is known and implied.
    top: most facts shown of each rule.

  Returns:
    The text.
  """
  made = grounds.made
  lines = [f"{len(made.derived):,} facts follow by rules and are in no split"]
  for place, rule in enumerate(kb.rules):
    rows = np.flatnonzero(made.rule == place)
    if not len(rows):
      continue
    lines.append(f"{rule}: {len(rows):,} missing")
    for row in rows[:top].tolist():
      premises = [x for x in made.premises[row].tolist() if x >= 0]
      because = " and ".join(map(grounds.fact, premises))
      lines.append(f"  {grounds.fact(row)} is missing, though {because}")
  broken = deduction.breaches(made, kb.rules, kb.relations, kb.entities)
  for place in sorted({place for place, _, _ in broken}):
    own = [one for one in broken if one[0] == place]
    lines.append(f"{kb.rules[place]}: {len(own):,} broken")
    for _, row, premises in own[:top]:
      because = " and ".join(map(grounds.fact, premises))
      lines.append(f"  {grounds.fact(row)} is there, though {because}")
  return "\n".join(lines)


def calibrate(
  kb: data.KnowledgeBase, trained: evaluate.Trained, config: Config
) -> tuple[float, float, float]:
  """Fits the temperature on validation facts and tests it.

  Each fact asks for its tail and for its head; other known answers are left
  out. The temperature minimizes the negative log likelihood of the answers.

  Args:
    kb: the knowledge base.
    trained: the system.
    config: gives the block.

  Returns:
    The temperature, and the expected calibration error of the most probable
    answer on test facts with that temperature and with temperature 1.
  """
  losses = np.zeros(len(_TEMPERATURES))
  for values, answers in filtered_queries(
    kb, trained, kb.splits.valid.array, config
  ):
    for i, temperature in enumerate(_TEMPERATURES):
      mass = softmax(values / temperature)
      right = mass[np.arange(len(answers)), answers]
      losses[i] -= np.log(np.maximum(right, 1e-30)).sum()
  temperature = float(_TEMPERATURES[int(np.argmin(losses))])
  tops: tuple[list, list] = ([], [])
  hits: list = []
  for values, answers in filtered_queries(
    kb, trained, kb.splits.test.array, config
  ):
    hits.append(values.argmax(axis=1) == answers)
    for top, divisor in zip(tops, (temperature, 1.0), strict=True):
      top.append(softmax(values / divisor).max(axis=1))
  hit = np.concatenate(hits)
  fitted, plain = (
    calibration.reliability(np.concatenate(x), hit).error for x in tops
  )
  return temperature, fitted, plain


def softmax(values: np.ndarray) -> np.ndarray:
  """Probabilities by row.

  Args:
    values: scores, [b, E]; -inf leaves an entity out.

  Returns:
    [b, E].
  """
  top = values.max(axis=1, keepdims=True)
  mass = np.exp(values - np.where(np.isfinite(top), top, 0))
  return mass / np.maximum(mass.sum(axis=1, keepdims=True), 1e-300)


def filtered_queries(
  kb: data.KnowledgeBase,
  trained: evaluate.Trained,
  facts: np.ndarray,
  config: Config,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
  """Questions of facts for tails and for heads, in blocks.

  Args:
    kb: the knowledge base.
    trained: the system.
    facts: int [n, 3]; a fixed random sample is used.
    config: gives the block.

  Yields:
    Scores [b, E] and answers [b]. Scores are -inf for other known answers and,
    unless the relation is reflexive, for the query's entity.
  """
  reflexive = _reflexive(kb.known)
  order = np.random.default_rng(0).permutation(len(facts))[:_FACTS]
  facts = facts[order]
  for side, anchor, free in (("tail", 0, 2), ("head", 2, 0)):
    known: dict[tuple[int, int], list[int]] = {}
    for row in kb.known.tolist():
      known.setdefault((row[anchor], row[1]), []).append(row[free])
    start = 0
    queries = facts[:, [anchor, 1]]
    for rows, values in _score_blocks(trained, queries, side, config.block):
      answers = facts[start : start + len(rows), free]
      start += len(rows)
      for query, value, one in zip(rows.tolist(), values, answers.tolist()):
        right = value[one]
        value[known.get((query[0], query[1]), [])] = -np.inf
        if query[1] not in reflexive:
          value[query[0]] = -np.inf
        value[one] = right
      yield values, answers


def _score_blocks(
  trained: evaluate.Trained, queries: np.ndarray, side: str, block: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
  """Queries (entity, relation) [b, 2] with the scores of all entities."""
  score_all = kb.score_all_heads if side == "head" else kb.score_all_tails
  model, params = load_model(trained.model), trained.params
  for start in range(0, len(queries), block):
    rows = queries[start : start + block]
    padded = np.pad(rows, ((0, block - len(rows)), (0, 0)), mode="edge")
    values = score_all(
      model,
      params.relations[jnp.asarray(padded[:, 1])],
      params.entities[jnp.asarray(padded[:, 0])],
      params.entities,
    )
    yield rows, np.array(values[: len(rows)], np.float64)
