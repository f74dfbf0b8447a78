"""PageRank from best candidates against loops over candidates."""

import numpy as np
import pytest

from repr_jax import linking


@pytest.fixture(scope="module")
def world():
  rng = np.random.default_rng(0)
  nodes = np.array([[0, 1, -1], [2, 3, 4], [2, 5, -1], [6, -1, -1]])
  edges = rng.integers(7, size=(12, 2))
  evidence = linking.Evidence(
    features=np.zeros((4, 3, 1)), nodes=nodes, edges=edges,
    groups=np.array([0, 1, 1, 2]), shapes=np.where(nodes >= 0, 0, -1),
    degrees=np.ones(7, np.float32), gold=np.full(4, -1),
  )  # fmt: skip
  chances = np.where(nodes >= 0, rng.random(nodes.shape), 0)
  return evidence, chances / chances.sum(axis=1, keepdims=True)


def _by_loops(evidence, chances, restart, own):
  links = np.zeros((7, 7))
  for a, b in evidence.edges:
    if a != b:
      links[a, b] = links[b, a] = 1
  walk = links / np.maximum(links.sum(axis=1, keepdims=True), 1)
  ranks = np.eye(7)
  for _ in range(5):
    ranks = restart * np.eye(7) + (1 - restart) * ranks @ walk
  scores = np.zeros(chances.shape)
  groups = evidence.groups
  for i, row in enumerate(evidence.nodes):
    others = set(groups.tolist()) - {groups[i]}
    for c, node in enumerate(row):
      for text in others if node >= 0 else ():
        members = [j for j in range(4) if groups[j] == text]
        best = [
          max(
            chances[j, k] * ranks[s, node]
            for k, s in enumerate(evidence.nodes[j])
            if s >= 0
          )
          for j in members
        ]
        scores[i, c] += np.mean(best) / len(others)
  mean = scores[evidence.nodes >= 0].mean()
  return scores + own * mean * chances


@pytest.mark.parametrize("restart, own", [(0.2, 1.0), (0.5, 0.0)])
def test_scores_are_those_of_the_definition(world, restart, own):
  evidence, chances = world
  got = linking.best_pagerank(evidence, chances, restart, own)
  expected = _by_loops(evidence, chances, restart, own)
  np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


def test_a_mention_alone_has_no_rank(world):
  evidence, chances = world
  alone = evidence._replace(groups=np.array([0, -1, -1, -1]))
  got = linking.best_pagerank(alone, chances, own=0.0)
  assert (np.asarray(got) == 0).all()
