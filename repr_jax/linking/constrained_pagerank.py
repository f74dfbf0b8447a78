"""PageRank in which each other mention supports only its best candidate.

Pershina, He and Grishman (2015): a walk starts from every candidate of the
document. Of each other mention, only the candidate with the largest
contribution counts. Wrong candidates then add no noise.
"""

import jax
import jax.numpy as jnp

from repr_jax.data.documents.evidence import Evidence
from repr_jax.linking import candidate_graph
from repr_jax.ops.precision import chosen_products

_ROUNDS = 5  # steps of a walk, as published


@chosen_products
def best_pagerank(
  evidence: Evidence,
  probabilities: jax.Array,
  restart: jax.Array | float = 0.2,
  own: jax.Array | float = 1.0,
) -> jax.Array:
  """PageRank of candidates, seen from the best candidate of each mention.

  x_i(e) = mean over texts t other than that of mention i, and over mentions j
  of t, of max over candidates s of j of p_j(s) P(s -> e), plus own times the
  mean of these maxima over the document times p_i(e). P(s -> e) is the
  personalized PageRank of e from s by 5 steps along links in either direction.

  >>> import jax.numpy as jnp
  >>> from repr_jax import linking
  >>> evidence = linking.Evidence(  # the second candidate of mention 0 links
  ...   features=jnp.zeros((2, 2, 1)), nodes=jnp.array([[0, 1], [2, -1]]),
  ...   edges=jnp.array([[1, 2]]), groups=jnp.array([0, 1]),
  ...   shapes=jnp.array([[0, 0], [0, -1]]), degrees=jnp.ones(3),
  ...   gold=jnp.array([1, 0]),
  ... )
  >>> even = jnp.array([[0.5, 0.5], [1, 0]])
  >>> linking.best_pagerank(evidence, even)[0].argmax()
  Array(1, dtype=int32)

  Args:
    evidence: arrays of one document: nodes [m, c], edges [e, 2], groups [m].
    probabilities: of its candidates, [m, c]: the initial similarities.
    restart: chance that a walk goes back to its start, scalar.
    own: weight of a candidate's own similarity, scalar.

  Returns:
    Scores [m, c]; 0 in masked places.
  """
  nodes = jnp.asarray(evidence.nodes)
  mask = nodes >= 0
  chances = jnp.where(mask, probabilities, 0)
  links = candidate_graph.links_of(evidence)
  walk = links.walk()
  start = jnp.eye(len(links.degrees), dtype=links.degrees.dtype)

  def step(ranks, _):
    walked = links.sums(walk, ranks)
    return restart * start + (1 - restart) * walked, None

  ranks = jax.lax.scan(step, start, length=_ROUNDS)[0].T

  def best(own_nodes, own_chances):
    arriving = ranks[jnp.maximum(own_nodes, 0)] * own_chances[:, None]
    return arriving.max(axis=0)

  arriving = jax.lax.map(lambda x: best(*x), (nodes, chances))  # [m, u]
  groups = jnp.asarray(evidence.groups)
  known = groups >= 0
  same = (groups[:, None] == groups) & known[:, None] & known
  share = 1 / jnp.maximum(same.sum(axis=1), 1)
  apart = (~same & known[:, None] & known) * share
  weights = apart / jnp.maximum(apart.sum(axis=1, keepdims=True), 1e-9)
  total = weights.astype(arriving.dtype) @ arriving
  scores = jnp.take_along_axis(total, jnp.maximum(nodes, 0), axis=1)
  scores = jnp.where(mask, scores, 0)
  count = jnp.maximum(mask.sum(), 1).astype(scores.dtype)
  return scores + own * scores.sum() / count * chances
