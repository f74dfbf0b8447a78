"""Two passes learn what one cannot: coherence between mentions."""

import jax
import numpy as np
import pytest

from repr_jax import linking
from repr_jax.data.documents import evidence as evidence_lib
from repr_jax.data.documents.candidate_files import Candidate, Document, Mention
from repr_jax.errors import InputError
from repr_jax.linking import fit_ranker


def _documents(count, seed):
  """A certain mention, and one that is right where it links to the first."""
  rng = np.random.default_rng(seed)
  documents, features = [], []
  for number in range(count):
    right = int(rng.integers(2))
    certain = (Candidate(1, "Sure", 5, 1, (2 + right,)),)
    open_ = (Candidate(2, "Left", 5, 1, ()), Candidate(3, "Right", 5, 1, ()))
    gold = open_[right].title
    mentions = (
      Mention(0, 4, "Sure", "Sure", certain),
      Mention(5, 9, "Open", gold, open_),
      Mention(10, 14, "None", "None", ()),
    )
    documents.append(Document(f"d{number}", "Sure Open None", mentions))
    features.append(
      [rng.random((len(m.candidates), 2), np.float32) for m in mentions]
    )
  return evidence_lib.pack_evidence(
    documents, features, shapes=((4, 8),), top=3
  )


@pytest.fixture(scope="module")
def rankers():
  members = linking.fit_rankers(
    _documents(60, 0), jax.random.key(0), members=2, hidden=8, epochs=30,
    learning_rate=1e-2,
  )  # fmt: skip
  first, second = members
  assert first.first is second.first
  assert np.abs(first.second.inner - second.second.inner).max() > 0.1
  return first


def test_the_second_pass_reads_links(rankers):
  groups = _documents(40, 1)
  decision = linking.decide(rankers, groups, 120)
  gold = groups[0].evidence.gold[:, 1]
  assert (decision.best[1::3] == gold).mean() > 0.95
  assert (decision.first[1::3].argmax(1) == gold).mean() < 0.8


def test_mentions_without_candidates_have_no_answer(rankers):
  decision = linking.decide(rankers, _documents(4, 2), 12)
  assert (decision.best[2::3] == -1).all()
  assert not decision.probabilities[2::3].any()
  np.testing.assert_allclose(decision.probabilities[1::3].sum(1), 1, rtol=1e-5)


def test_blocks_have_few_sizes_and_hold_all_documents(monkeypatch):
  (group,) = _documents(7, 4)
  own = group.evidence
  cells = 4 * (8 + 2 * own.edges.shape[1] + 3 * (2 + 16))
  monkeypatch.setattr(fit_ranker, "_CELLS", 5 * cells)
  sizes = []

  def call(part, more):
    sizes.append(len(part.gold))
    assert (part.nodes[np.asarray(more) == 0] == -1).all()
    return {"nodes": part.nodes, "more": more + 1}

  made = fit_ranker.in_blocks(call, own, np.arange(1.0, 8))
  assert sizes == [4, 4]
  np.testing.assert_array_equal(made["nodes"], own.nodes)
  np.testing.assert_array_equal(made["more"], np.arange(2.0, 9))


def test_the_decision_is_that_of_the_door(rankers):
  groups = _documents(3, 3)
  decision = linking.decide(rankers, groups, 9)
  one = jax.tree.map(lambda x: x[1], groups[0].evidence)
  alone = linking.rank_document(*rankers, one)
  np.testing.assert_allclose(
    decision.probabilities[3:5], alone.probabilities[:2], atol=1e-5
  )
  scores = linking.candidate_scores(
    rankers.second, alone.features, one.nodes >= 0
  )
  there = one.nodes >= 0
  np.testing.assert_allclose(alone.scores[there], scores[there], rtol=1e-5)


def test_nothing_to_learn_or_to_decide_is_refused():
  groups = _documents(3, 4)
  bare = groups[0].evidence._replace(gold=np.full((3, 4), -1))
  with pytest.raises(InputError, match="nothing to learn"):
    linking.fit_rankers([groups[0]._replace(evidence=bare)], jax.random.key(0))
  with pytest.raises(InputError, match="no mention"):
    linking.decide(linking.Rankers(None, None), [], 0)
