"""The graph of a document's candidates: PageRank and coherence.

Nodes are the distinct candidates of a document, edges the links between their
pages. Every function takes one document and the probabilities of its
candidates so far; vmap it over padded documents. A mention is supported by
the mentions with another text only, and each text counts once.
"""

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


def adjacency(evidence: Evidence) -> jax.Array:
  """Links between the candidates of one document.

  Args:
    evidence: arrays of one document; edges [e, 2].

  Returns:
    1 where the first candidate links to the second, [u, u]; 0 elsewhere and
    on the diagonal.
  """
  count = evidence.degrees.shape[-1]
  first, second = jnp.asarray(evidence.edges).T
  fits = (first >= 0) & (second >= 0) & (first != second)
  first = jnp.where(fits, first, count)
  dtype = jnp.asarray(evidence.degrees).dtype
  links = jnp.zeros((count, count), dtype)
  return links.at[first, jnp.where(fits, second, count)].set(1, mode="drop")


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
    ids: what candidates are counted as, int [m, c] below `count`; -1 is none.
    count: number of ids.

  Returns:
    b, [m, count].
  """
  groups = jnp.asarray(evidence.groups)
  known = groups >= 0
  same = (groups[:, None] == groups) & known[:, None] & known
  mass = jnp.where(ids >= 0, probabilities, 0)
  rows = jnp.arange(ids.shape[0])[:, None]
  table = jnp.zeros((ids.shape[0], count), mass.dtype)
  table = table.at[rows, jnp.where(ids >= 0, ids, count)].add(mass, mode="drop")
  table = table / jnp.maximum(same.sum(axis=1, keepdims=True), 1)
  apart = ~same & known[:, None] & known
  return apart.astype(mass.dtype) @ table


def pagerank(
  evidence: Evidence,
  probabilities: jax.Array,
  restart: jax.Array | float = 0.15,
) -> jax.Array:
  """Personalized PageRank of candidates, seen from the other mentions.

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
  links = adjacency(evidence)
  ranks = _ranks(evidence, jnp.maximum(links, links.T), probabilities, restart)
  return _at_candidates(evidence, ranks[0])


@chosen_products
def coherence(evidence: Evidence, probabilities: jax.Array) -> jax.Array:
  """Mean probability of the other mentions' candidates that are linked.

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
  links = adjacency(evidence)
  mass = others(
    evidence, probabilities, jnp.asarray(evidence.nodes), links.shape[0]
  )
  total = mass @ jnp.maximum(links, links.T) / _count(evidence, mass.dtype)
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
    Entry [i, j, a]: what mention j adds to candidate a of mention i; the sum
    over j is the coherence. [m, m, c].
  """
  count = jnp.asarray(evidence.nodes).shape[0]

  def one(place):
    alone = jnp.where(jnp.arange(count)[:, None] == place, probabilities, 0)
    return coherence(evidence, alone)

  return jnp.swapaxes(jax.vmap(one)(jnp.arange(count)), 0, 1)


@chosen_products
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
  links = adjacency(evidence)
  either = jnp.maximum(links, links.T)
  mass = others(evidence, probabilities, nodes, links.shape[0])
  number = _count(evidence, mass.dtype)
  closed = either + jnp.eye(links.shape[0], dtype=either.dtype)
  closed = closed / jnp.linalg.norm(closed, axis=1, keepdims=True)
  common = (mass @ closed) @ closed.T - mass
  ranks, step = _ranks(evidence, either, probabilities, restart)

  def at(values):
    return _at_candidates(evidence, values)

  linked, rank = at(mass @ either) / number, at(ranks)
  log_rank = jnp.log(rank + _FLOOR)
  shared = at(common) / number
  # A title that is the mention, shape 0, says nothing of the others'.
  kinds = jnp.where(mask & (shapes > 0), shapes, -1)
  size = shapes.shape[0] * shapes.shape[1] + 1
  alike = jnp.take_along_axis(
    others(evidence, probabilities, kinds, size), jnp.maximum(kinds, 0), axis=1
  )
  alike = jnp.where(kinds >= 0, alike, 0)
  degrees = jnp.broadcast_to(either.sum(axis=1), mass.shape)

  def against(values):
    most = jnp.where(mask, values, -jnp.inf).max(axis=1, keepdims=True)
    return values - jnp.where(mask.any(axis=1, keepdims=True), most, 0)

  table = [
    linked,
    at(mass @ links.T) / number,
    at(mass @ links) / number,
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


@chosen_products
def _ranks(evidence, either, probabilities, restart):
  """PageRank and the first step of it, [m, u]."""
  nodes = jnp.asarray(evidence.nodes)
  mass = others(evidence, probabilities, nodes, either.shape[0])
  total = mass.sum(axis=1, keepdims=True)
  start = mass / jnp.where(total > 0, total, 1)
  walk = either / jnp.maximum(either.sum(axis=1, keepdims=True), 1)

  def join(walked):
    return restart * start + (1 - restart) * walked

  first = start @ walk
  ranks, _ = jax.lax.scan(
    lambda ranks, _: (join(ranks @ walk), None), join(first), length=9
  )
  return ranks, first


def _count(evidence, dtype):
  """Texts of other mentions, at least 1."""
  groups = jnp.asarray(evidence.groups)
  known = groups >= 0
  same = (groups[:, None] == groups) & known[:, None] & known
  share = jnp.where(known, 1 / jnp.maximum(same.sum(axis=1), 1), 0)
  return jnp.maximum(share.sum() - 1, 1).astype(dtype)


def _at_candidates(evidence, values):
  """Values [m, u] of the nodes at each mention's candidates, [m, c]."""
  nodes = jnp.asarray(evidence.nodes)
  taken = jnp.take_along_axis(values, jnp.maximum(nodes, 0), axis=1)
  return jnp.where(nodes >= 0, taken, 0)
