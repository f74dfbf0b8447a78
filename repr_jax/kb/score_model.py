"""Score models: objects of pure functions, with the conditions of rules.

As a function of one entity z with the rest of a fact fixed, a model is
<q, z> + c - w norm2(z), or -|q - z| + c with an L1 or L2 norm. So scoring all
entities is one matrix product (but for L1), and a model is defined by its two
queries q, c and its weight w or its norm.

A model of your own is such an object too; the functions of `repr_jax.kb` take
it in place of a name:

```python
def _ask(relation, known):
  return kb.Query(relation * known, jnp.zeros((), known.dtype))

MODEL = kb.ScoreModel("mine", tail_query=_ask, head_query=_ask)
```
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import numpy as np


class Query(NamedTuple):
  """One open slot: the score of z is <vector, z> + constant - w norm2(z).

  Where the model has a distance, it is -|vector - z| + constant.

  Attributes:
    vector: [d].
    constant: scalar; the same for all candidates, so ranks ignore it.
  """

  vector: jax.Array
  constant: jax.Array


def _square(x: jax.Array) -> jax.Array:
  return x * x


@dataclasses.dataclass(frozen=True, eq=False)
class ScoreModel:
  """Scores of facts (relation r, (head e, tail f)); higher is more likely.

  Objects are compared by identity, so that they can be static arguments of
  `jax.jit`.

  Attributes:
    name: its name in results and messages.
    tail_query: (relation [p], head [d]) -> Query, what (r, (e, ?)) asks.
    head_query: (relation [p], tail [d]) -> Query, what (r, (?, f)) asks.
    norm_weight: w, the weight of norm2 of an entity, subtracted from the score.
    distance: "l1" or "l2" where the score of z is -|q - z| + c in that norm;
      None for <q, z> + c - w norm2(z).
    relation_size: numbers of a relation, p, for entities of d numbers.
    exact_score: (relation, head, tail) -> score, which rounds distances less
      than `tail_query`; None to use `tail_query`.
    batch_queries: (relations [R, p], one-hot [B, R], heads [B, d], tails
      [B, d]) -> queries of heads and of tails, which is faster for few
      relations than gathering each fact's relation; None if there is none.
    moduli: rows [.., p] -> squared moduli of their numbers, [.., q].
    parts: number of nodes of a relation; conditions of rules refer to nodes.
    to_nodes: relations [R, p] -> nodes [R * parts, n]; None to cut each
      relation into `parts` equal parts.
    from_nodes: the inverse of `to_nodes`, where that is given.
    signed: whether entities may be negative even if rules are compiled with
      `nonnegative`.
    ordered: d -> which numbers of an entity a one-way rule makes
      nonnegative, bool [d]; None for all.
    base: the model from which a reciprocal one is built: a relation then has
      two rows of that model, one for tails and one for heads.
    conditions: by the name of a rule kind, a function of the ids of the
      rule's arguments and a `RuleConfig` that returns the `Conditions` under
      which the rule holds in this model.
  """

  name: str
  tail_query: Callable[[jax.Array, jax.Array], Query]
  head_query: Callable[[jax.Array, jax.Array], Query]
  norm_weight: float = 0.0
  distance: str | None = None
  relation_size: Callable[[int], int] = lambda dim: dim
  exact_score: Callable[..., jax.Array] | None = None
  batch_queries: Callable[..., tuple[Query, Query]] | None = None
  moduli: Callable[[jax.Array], jax.Array] = _square
  parts: int = 1
  to_nodes: Callable[[jax.Array], jax.Array] | None = None
  from_nodes: Callable[[jax.Array], jax.Array] | None = None
  signed: bool = False
  ordered: Callable[[int], np.ndarray] | None = None
  base: "ScoreModel | None" = None
  conditions: Mapping[str, Callable] = dataclasses.field(default_factory=dict)

  def __repr__(self) -> str:
    return f"ScoreModel({self.name!r})"

  def score(
    self, relation: jax.Array, head: jax.Array, tail: jax.Array
  ) -> jax.Array:
    """The score of one fact, for rows [p], [d] and [d]."""
    if self.exact_score is not None:
      return self.exact_score(relation, head, tail)
    query = self.tail_query(relation, head)
    value = query.vector @ tail + query.constant
    if self.norm_weight:
      value -= self.norm_weight * (tail @ tail)
    return value

  def nodes(self, relations: jax.Array) -> jax.Array:
    """Relations [R, p] as the nodes of conditions, [R * parts, n]."""
    if self.to_nodes is not None:
      return self.to_nodes(relations)
    return relations.reshape(self.parts * relations.shape[0], -1)

  def relations(self, nodes: jax.Array) -> jax.Array:
    """Relations [R, p] of nodes [R * parts, n]."""
    if self.from_nodes is not None:
      return self.from_nodes(nodes)
    return nodes.reshape(nodes.shape[0] // self.parts, -1)
