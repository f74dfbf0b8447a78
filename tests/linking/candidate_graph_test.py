"""Graph features against loops in numpy, and identities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax import linking
from repr_jax.linking import candidate_graph


def _evidence(seed=0, m=4, c=3, u=8):
  rng = np.random.default_rng(seed)
  nodes = np.stack([rng.permutation(u)[:c] for _ in range(m)])
  nodes[0, -1] = -1
  edges = rng.integers(u, size=(14, 2))
  edges[-1] = -1
  edges = edges[(edges[:, 0] != edges[:, 1]) | (edges[:, 0] < 0)]
  shapes = rng.integers(3, size=(m, c))
  groups = np.array([0, 1, 0, 2][:m])
  evidence = linking.Evidence(
    features=np.zeros((m, c, 1), np.float32), nodes=nodes, edges=edges,
    groups=groups, shapes=np.where(nodes >= 0, shapes, -1),
    degrees=np.ones(u, np.float32), gold=np.full(m, -1),
  )  # fmt: skip
  scores = rng.random((m, c)) * (nodes >= 0)
  return evidence, scores / scores.sum(axis=1, keepdims=True)


def _mass(evidence, probabilities, place):
  """Mass of the other texts on each node, by loops."""
  mass = np.zeros(len(evidence.degrees))
  groups = evidence.groups.tolist()
  for j, group in enumerate(groups):
    if group != groups[place]:
      for node, p in zip(evidence.nodes[j], probabilities[j]):
        if node >= 0:
          mass[node] += p / groups.count(group)
  return mass


def _neighbors(evidence):
  pairs = [(a, b) for a, b in evidence.edges.tolist() if a >= 0]
  return {
    n: {b for a, b in pairs if a == n} | {a for a, b in pairs if b == n}
    for n in range(len(evidence.degrees))
  }


@pytest.mark.parametrize("seed", range(3))
def test_coherence_is_the_mean_mass_of_neighbors(seed):
  evidence, probabilities = _evidence(seed)
  got = linking.coherence(evidence, probabilities)
  near = _neighbors(evidence)
  for i, row in enumerate(evidence.nodes):
    mass = _mass(evidence, probabilities, i)
    for a, node in enumerate(row):
      expected = sum(mass[x] for x in near[node]) / 2 if node >= 0 else 0
      assert got[i, a] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_pagerank_solves_its_linear_equations(seed):
  evidence, probabilities = _evidence(seed)
  near = _neighbors(evidence)
  walk = np.zeros((len(near), len(near)))
  for a in near:
    for b in near[a]:
      walk[a, b] = 1 / len(near[a])
  got = linking.pagerank(evidence, probabilities, 0.6)
  for i, row in enumerate(evidence.nodes):
    mass = _mass(evidence, probabilities, i)
    ranks = np.linalg.solve(
      np.eye(len(near)) - 0.4 * walk.T, 0.6 * mass / mass.sum()
    )
    there = row >= 0
    np.testing.assert_allclose(got[i][there], ranks[row[there]], atol=2e-4)


@pytest.mark.parametrize("seed", range(3))
def test_directed_links_count_once_each(seed):
  evidence, probabilities = _evidence(seed)
  edges = evidence.edges[:6]
  # Repeats, both directions, a loop, padding and a candidate that is unknown.
  more = [edges[0], edges[1][::-1], [3, 3], [-1, 2], [2, -1], [8, 1], [1, 8]]
  given = evidence._replace(edges=np.concatenate([edges, more]))
  pairs = {(a, b) for a, b in [*edges, more[1]] if min(a, b) >= 0}
  table = linking.graph_features(given, probabilities)
  places = [
    candidate_graph.NAMES.index(f"coherence by links {x}")
    for x in ("in either direction", "to others", "from others")
  ] + [candidate_graph.NAMES.index("log neighbors")]
  for i, row in enumerate(evidence.nodes):
    mass = _mass(evidence, probabilities, i)
    for a, node in enumerate(row):
      to = {y for x, y in pairs if x == node}
      of = {x for x, y in pairs if y == node}
      expected = [sum(mass[x] for x in own) / 2 for own in (to | of, to, of)]
      expected.append(np.log1p(len(to | of)))
      if node < 0:
        expected = [0] * 4
      np.testing.assert_allclose(table[i, a, places], expected, atol=1e-6)


def test_messages_add_up_to_the_coherence():
  evidence, probabilities = _evidence(5)
  parts = linking.messages(evidence, probabilities)
  np.testing.assert_allclose(
    parts.sum(axis=1), linking.coherence(evidence, probabilities), atol=1e-6
  )
  assert np.abs(parts).max() > 0.1
  # Mentions with the same text say nothing to each other.
  assert not np.asarray(parts[0, 2]).any()


def test_features_hold_coherence_and_pagerank():
  evidence, probabilities = _evidence(1)
  table = linking.graph_features(evidence, probabilities)
  names = candidate_graph.NAMES
  assert table.shape[-1] == len(names)
  linked = table[..., names.index("coherence by links in either direction")]
  np.testing.assert_allclose(
    linked, linking.coherence(evidence, probabilities), atol=1e-6
  )
  rank = linking.pagerank(evidence, probabilities)
  share = rank / rank.sum(axis=1, keepdims=True)
  np.testing.assert_allclose(
    table[..., names.index("share of PageRank")], share, atol=1e-6
  )


def test_common_neighbors_are_cosines_of_closed_rows():
  evidence, probabilities = _evidence(2)
  near = _neighbors(evidence)
  size = len(near)
  closed = np.eye(size)
  for a in near:
    closed[a, list(near[a])] = 1
  closed /= np.linalg.norm(closed, axis=1, keepdims=True)
  cosines = closed @ closed.T - np.eye(size)
  table = linking.graph_features(evidence, probabilities)
  place = candidate_graph.NAMES.index("coherence by common neighbors")
  for i, row in enumerate(evidence.nodes):
    expected = cosines @ _mass(evidence, probabilities, i) / 2
    np.testing.assert_allclose(
      np.asarray(table[i, :, place])[row >= 0], expected[row[row >= 0]],
      atol=1e-5,
    )  # fmt: skip


def test_titles_of_one_shape_count_but_shape_zero_does_not():
  evidence, probabilities = _evidence(3)
  table = linking.graph_features(evidence, probabilities)
  got = np.asarray(
    table[..., candidate_graph.NAMES.index("titles of the same shape")]
  )
  groups = evidence.groups.tolist()
  for i, j in np.ndindex(*evidence.nodes.shape):
    expected = 0
    if evidence.shapes[i, j] > 0:
      for k, group in enumerate(groups):
        if group != groups[i]:
          same = evidence.shapes[k] == evidence.shapes[i, j]
          expected += probabilities[k][same].sum() / groups.count(group)
    assert got[i, j] == pytest.approx(expected / 2, abs=1e-6)


def test_documents_may_be_padded_and_vmapped():
  evidence, probabilities = _evidence(4)
  alone = linking.graph_features(evidence, probabilities)
  wide = evidence._replace(
    nodes=np.pad(evidence.nodes, ((0, 2), (0, 1)), constant_values=-1),
    shapes=np.pad(evidence.shapes, ((0, 2), (0, 1)), constant_values=-1),
    groups=np.pad(evidence.groups, (0, 2), constant_values=-1),
    edges=np.pad(evidence.edges, ((0, 3), (0, 0)), constant_values=-1),
    degrees=np.ones(11, np.float32),
  )
  padded = np.pad(probabilities, ((0, 2), (0, 1)))
  stacked = jax.tree.map(lambda x: jnp.stack([jnp.asarray(x)] * 2), wide)
  both = jax.jit(jax.vmap(linking.graph_features))(
    stacked, jnp.stack([padded] * 2)
  )
  np.testing.assert_allclose(both[1, :4, :3], alone, atol=1e-5)
