"""The graph of a document's candidates: PageRank and coherence.

Nodes are the distinct candidates of a document, edges the links between their
pages. Every function takes one document and the current probabilities of its
candidates; vmap it over padded documents. Only mentions with another text
support a mention, and each text counts once.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from repr_jax.data.documents.evidence import Evidence
from repr_jax.ops.precision import chosen_products

NAMES = (
  "coherence by links in either direction",
  "coherence by links to others",
  "coherence by links from others",
  "coherence by common neighbors",
  "log coherence",
  "log PageRank",
  "share of PageRank",
  "log PageRank against the most",
  "log probability of one step",
  "log titles of the same shape",
  "titles of the same shape",
  "probability as another mention's entity",
  "log neighbors",
  "coherence against the most",
  "common neighbors against the most",
  "log probability so far",
)
_FLOOR = 1e-5


class Links(NamedTuple):
  """Links of one document as pairs of candidates, each in both orders.

  The cost of a product is linear in the number of links. An adjacency matrix
  of all candidates would cost many times that.

  Attributes:
    first: first candidate of each pair, ascending, int [2 e]; u for padding.
    second: second candidate of each pair, int [2 e].
    either: 1 for pairs that are linked, 0 for padding and repeats, [2 e].
    outward: 1 where the first links to the second, [2 e].
    inward: 1 where the second links to the first, [2 e].
    degrees: distinct neighbors of each candidate, [u].
  """

  first: jax.Array
  second: jax.Array
  either: jax.Array
  outward: jax.Array
  inward: jax.Array
  degrees: jax.Array

  def sums(self, weights: jax.Array, values: jax.Array) -> jax.Array:
    """Weighted sums of the values of each candidate's neighbors.

    Args:
      weights: of the pairs, [2 e].
      values: of the candidates, [u, ...].

    Returns:
      The sums, [u, ...].
    """
    count = len(self.degrees)
    rows = values[jnp.minimum(self.second, count - 1)]
    rows = rows * weights.reshape(-1, *[1] * (values.ndim - 1))
    return jax.ops.segment_sum(rows, self.first, count, indices_are_sorted=True)

  def walk(self) -> jax.Array:
    """Probability of a random walk's step from second to first, [2 e]."""
    source = self.degrees[jnp.minimum(self.second, len(self.degrees) - 1)]
    return self.either / jnp.maximum(source, 1)


def links_of(evidence: Evidence) -> Links:
  """Links between the candidates of one document, without repeats.

  Args:
    evidence: arrays of one document; edges [e, 2], degrees [u].
  """
  degrees = jnp.asarray(evidence.degrees)
  count = len(degrees)
  edges = jnp.asarray(evidence.edges)
  fits = ((edges >= 0) & (edges < count)).all(axis=1)
  fits &= edges[:, 0] != edges[:, 1]
  first, second = jnp.where(fits[:, None], edges, count).T
  backward = jnp.repeat(jnp.arange(2), len(first))
  first, second, backward = jax.lax.sort(
    (
      jnp.concatenate([first, second]),
      jnp.concatenate([second, first]),
      backward,
    ),
    num_keys=3,
  )
  # Equal pairs are adjacent; those that link outward come first.
  new = (jnp.diff(first, prepend=-1) != 0) | (jnp.diff(second, prepend=-1) != 0)
  turned = new | (jnp.diff(backward, prepend=-1) != 0)
  there = first < count
  either, outward, inward = (
    (there & x).astype(degrees.dtype)
    for x in (new, new & (backward == 0), turned & (backward == 1))
  )
  near = jax.ops.segment_sum(either, first, count, indices_are_sorted=True)
  return Links(first, second, either, outward, inward, near)


@chosen_products
def others(
  evidence: Evidence, probabilities: jax.Array, ids: jax.Array, count: int
) -> jax.Array:
  """Probability mass of the other mentions on each id.

  b_i(x) = sum over texts t other than that of i of the mean, over mentions j
  with text t, of the sum of p_j(e) over candidates e with id x.

  Args:
    evidence: arrays of one document.
    probabilities: of its candidates, [m, c].
    ids: id of each candidate, int [m, c] below `count`; -1 for none.
    count: number of ids.

  Returns:
    b, [m, count].
  """
  return _apart(evidence, probabilities.dtype) @ _mass(
    evidence, probabilities, ids, count
  )


def _same(evidence):
  """Which mentions have the same text, bool [m, m]."""
  groups = jnp.asarray(evidence.groups)
  return (groups[:, None] == groups) & (groups >= 0)


def _apart(evidence, dtype):
  """1 for mentions with different texts, [m, m]."""
  known = jnp.asarray(evidence.groups) >= 0
  both = known[:, None] & known
  return (both & ~_same(evidence)).astype(dtype)


def _mass(evidence, probabilities, ids, count):
  """Mass of each mention on each id, [m, count]; it sums to 1 for each text."""
  mass = jnp.where(ids >= 0, probabilities, 0)
  rows = jnp.arange(ids.shape[0])[:, None]
  table = jnp.zeros((ids.shape[0], count), mass.dtype)
  table = table.at[rows, jnp.where(ids >= 0, ids, count)].add(mass, mode="drop")
  return table / jnp.maximum(_same(evidence).sum(axis=1, keepdims=True), 1)


def pagerank(
  evidence: Evidence,
  probabilities: jax.Array,
  restart: jax.Array | float = 0.15,
) -> jax.Array:
  """Personalized PageRank of candidates, restarted at the other mentions'.

  x = r b + (1 - r) x T by 10 rounds, where b is the normalized probability of
  the other mentions' candidates and T walks along links in either direction.

  >>> import jax.numpy as jnp
  >>> from repr_jax import linking
  >>> evidence = linking.Evidence(  # the second candidate of mention 0 links
  ...   features=jnp.zeros((2, 2, 1)), nodes=jnp.array([[0, 1], [2, -1]]),
  ...   edges=jnp.array([[1, 2]]), groups=jnp.array([0, 1]),
  ...   shapes=jnp.array([[0, 0], [0, -1]]), degrees=jnp.ones(3),
  ...   gold=jnp.array([1, 0]),
  ... )
  >>> even = jnp.array([[0.5, 0.5], [1, 0]])
  >>> linking.pagerank(evidence, even)[0].argmax()
  Array(1, dtype=int32)

  Args:
    evidence: arrays of one document: nodes [m, c], edges [e, 2], groups [m],
      degrees [u].
    probabilities: of its candidates, [m, c].
    restart: r, scalar.

  Returns:
    PageRank [m, c]; 0 in masked places.
  """
  links = links_of(evidence)
  mass = _node_mass(evidence, probabilities)
  return _at_candidates(evidence, _ranks(links, mass, restart)[0])


def coherence(evidence: Evidence, probabilities: jax.Array) -> jax.Array:
  """Mean probability of other mentions' candidates linked to a candidate.

  >>> import jax.numpy as jnp
  >>> from repr_jax import linking
  >>> evidence = linking.Evidence(
  ...   features=jnp.zeros((2, 2, 1)), nodes=jnp.array([[0, 1], [2, -1]]),
  ...   edges=jnp.array([[1, 2]]), groups=jnp.array([0, 1]),
  ...   shapes=jnp.array([[0, 0], [0, -1]]), degrees=jnp.ones(3),
  ...   gold=jnp.array([1, 0]),
  ... )
  >>> linking.coherence(evidence, jnp.array([[0.5, 0.5], [1, 0]]))[0]
  Array([0., 1.], dtype=float32)

  Args:
    evidence: arrays of one document.
    probabilities: of its candidates, [m, c].

  Returns:
    Coherence [m, c], from 0 to 1; 0 in masked places.
  """
  links = links_of(evidence)
  mass = _node_mass(evidence, probabilities)
  total = links.sums(links.either, mass) / _count(evidence, mass.dtype)
  return _at_candidates(evidence, total)


def messages(evidence: Evidence, probabilities: jax.Array) -> jax.Array:
  """Parts of `coherence` by the mention that they come from.

  >>> import jax.numpy as jnp
  >>> from repr_jax import linking
  >>> evidence = linking.Evidence(
  ...   features=jnp.zeros((2, 2, 1)), nodes=jnp.array([[0, 1], [2, -1]]),
  ...   edges=jnp.array([[1, 2]]), groups=jnp.array([0, 1]),
  ...   shapes=jnp.array([[0, 0], [0, -1]]), degrees=jnp.ones(3),
  ...   gold=jnp.array([1, 0]),
  ... )
  >>> linking.messages(evidence, jnp.array([[0.5, 0.5], [1, 0]]))[0]
  Array([[0., 0.],
         [0., 1.]], dtype=float32)

  Args:
    evidence: arrays of one document.
    probabilities: of its candidates, [m, c].

  Returns:
    Entry [i, j, a]: part of mention j in candidate a of mention i; the sum
    over j is the coherence. [m, m, c].
  """
  nodes, links = jnp.asarray(evidence.nodes), links_of(evidence)
  mass = _mass(evidence, probabilities, nodes, len(links.degrees))
  near = links.sums(links.either, mass.T)[jnp.maximum(nodes, 0)]  # [m, c, m]
  near = jnp.where(nodes[..., None] >= 0, near, 0).swapaxes(1, 2)
  apart = _apart(evidence, mass.dtype) / _count(evidence, mass.dtype)
  return near * apart[..., None]


def graph_features(
  evidence: Evidence,
  probabilities: jax.Array,
  restart: jax.Array | float = 0.15,
) -> jax.Array:
  """Features of candidates by the other mentions' candidates.

  >>> import jax.numpy as jnp
  >>> from repr_jax import linking
  >>> evidence = linking.Evidence(
  ...   features=jnp.zeros((2, 2, 1)), nodes=jnp.array([[0, 1], [2, -1]]),
  ...   edges=jnp.array([[1, 2]]), groups=jnp.array([0, 1]),
  ...   shapes=jnp.array([[0, 0], [0, -1]]), degrees=jnp.ones(3),
  ...   gold=jnp.array([1, 0]),
  ... )
  >>> even = jnp.array([[0.5, 0.5], [1, 0]])
  >>> linking.graph_features(evidence, even).shape
  (2, 2, 16)

  Args:
    evidence: arrays of one document: nodes and shapes [m, c], edges [e, 2],
      groups [m], degrees [u].
    probabilities: of its candidates, [m, c].
    restart: of PageRank, scalar.

  Returns:
    Features [m, c, 16] in the order of `NAMES`; 0 in masked places.
  """
  chex.assert_rank([evidence.nodes, evidence.edges, probabilities], 2)
  nodes, shapes = jnp.asarray(evidence.nodes), jnp.asarray(evidence.shapes)
  mask = nodes >= 0
  probabilities = jnp.where(mask, probabilities, 0)
  links = links_of(evidence)
  mass = _node_mass(evidence, probabilities)
  number = _count(evidence, mass.dtype)
  # Cosines of adjacency rows in which each candidate is its own neighbor.
  norms = jnp.sqrt(links.degrees + 1)[:, None]
  reached = mass / norms
  reached = links.sums(links.either, reached) + reached
  reached = (links.sums(links.either, reached) + reached) / norms
  ranks, step = _ranks(links, mass, restart)

  def at(values):
    return _at_candidates(evidence, values)

  linked = at(links.sums(links.either, mass)) / number
  rank, shared = at(ranks), at(reached - mass) / number
  log_rank = jnp.log(rank + _FLOOR)
  # Shape 0, a title equal to its mention, is not compared with other titles.
  kinds = jnp.where(mask & (shapes > 0), shapes, -1)
  size = shapes.shape[0] * shapes.shape[1] + 1
  alike = jnp.take_along_axis(
    others(evidence, probabilities, kinds, size), jnp.maximum(kinds, 0), axis=1
  )
  alike = jnp.where(kinds >= 0, alike, 0)
  degrees = jnp.broadcast_to(links.degrees[:, None], mass.shape)

  def against(values):
    most = jnp.where(mask, values, -jnp.inf).max(axis=1, keepdims=True)
    return values - jnp.where(mask.any(axis=1, keepdims=True), most, 0)

  table = [
    linked,
    at(links.sums(links.outward, mass)) / number,
    at(links.sums(links.inward, mass)) / number,
    shared,
    jnp.log1p(linked * number),
    log_rank,
    rank / jnp.maximum(rank.sum(axis=1, keepdims=True), 1e-9),
    against(log_rank),
    jnp.log(at(step) + _FLOOR),
    jnp.log1p(alike),
    alike / number,
    jnp.minimum(at(mass), 2),
    jnp.log1p(at(degrees)),
    against(linked),
    against(shared),
    jnp.log(probabilities + 1e-4),
  ]
  return jnp.where(mask[..., None], jnp.stack(table, axis=-1), 0)


def _node_mass(evidence, probabilities):
  """Mass of the other mentions on each distinct candidate, [u, m]."""
  nodes, count = jnp.asarray(evidence.nodes), len(evidence.degrees)
  return others(evidence, probabilities, nodes, count).T


def _ranks(links, mass, restart):
  """PageRank and its first step, [u, m]."""
  total = mass.sum(axis=0)
  start = mass / jnp.where(total > 0, total, 1)
  walk = links.walk()

  def join(walked):
    return restart * start + (1 - restart) * walked

  first = links.sums(walk, start)
  ranks, _ = jax.lax.scan(
    lambda ranks, _: (join(links.sums(walk, ranks)), None),
    join(first),
    length=9,
  )
  return ranks, first


def _count(evidence, dtype):
  """Number of texts of other mentions, at least 1."""
  known = jnp.asarray(evidence.groups) >= 0
  size = jnp.maximum(_same(evidence).sum(axis=1), 1)
  share = jnp.where(known, 1 / size, 0)
  return jnp.maximum(share.sum() - 1, 1).astype(dtype)


def _at_candidates(evidence, values):
  """Values [u, m] of nodes, read at each mention's candidates, [m, c]."""
  nodes = jnp.asarray(evidence.nodes)
  taken = values[jnp.maximum(nodes, 0), jnp.arange(len(nodes))[:, None]]
  return jnp.where(nodes >= 0, taken, 0)
