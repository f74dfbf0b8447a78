"""Filtered ranking against a plain loop, and against PyKEEN's evaluator."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers

from repr_jax import kb
from repr_jax.errors import InputError
from repr_jax.kb import link_prediction as lp
from repr_jax.kb import score_models, scores
from repr_jax.ops import precision

ENTITIES, RELATIONS = 37, 3


def _tails(table, heads, relations):
  return table[relations, heads]


def _heads(table, relations, tails):
  return table[relations, :, tails]


def _setting(seed=0, levels=5, facts=60):
  """A table of scores with many ties, test facts and known facts."""
  rng = np.random.default_rng(seed)
  table = rng.integers(0, levels, (RELATIONS, ENTITIES, ENTITIES))
  triples = rng.integers(0, (ENTITIES, RELATIONS, ENTITIES), (facts, 3))
  known = rng.integers(0, (ENTITIES, RELATIONS, ENTITIES), (700, 3))
  known[300:500, 0] = 4  # one query with many answers
  known = np.concatenate([known, known[:50], triples])
  return table.astype(np.float32), triples, known


def _rank(table, triples, known, **options):
  table = jnp.asarray(table)
  return lp.rank(
    jax.tree_util.Partial(_heads, table),
    jax.tree_util.Partial(_tails, table),
    triples,
    known,
    **options,
  )


def _brute(table, triples, known):
  """Bounds [n, side, raw or filtered, end] by a loop over everything."""
  facts = {tuple(row) for row in known.tolist()}
  result = np.zeros((len(triples), 2, 2, 2))
  for i, (h, r, t) in enumerate(triples.tolist()):
    for side in range(2):
      for filtered in range(2):
        own = table[r, h, t]
        above = level = 0
        for other in range(ENTITIES):
          fact = (other, r, t) if side == 0 else (h, r, other)
          if filtered and fact in facts and fact != (h, r, t):
            continue
          value = table[fact[1], fact[0], fact[2]]
          above += value > own
          level += value == own
        result[i, side, filtered] = above + 1, above + level
  return result


def _ends(ranks):
  return np.array(
    [
      [[*kind] for kind in (side.raw, side.filtered)]
      for side in (ranks.head, ranks.tail)
    ]
  ).transpose(3, 0, 1, 2)


@pytest.mark.parametrize("block", [1, 16, 60, 200])
def test_ranks_against_a_loop(block):
  table, triples, known = _setting()
  ranks = _rank(table, triples, known, block=block)
  np.testing.assert_array_equal(_ends(ranks), _brute(table, triples, known))
  assert not ranks.unseen.any() and ranks.kept.all()


def test_no_known_facts_means_filtered_is_raw():
  table, triples, _ = _setting(1)
  ends = _ends(_rank(table, triples, np.zeros((0, 3), int)))
  np.testing.assert_array_equal(ends[:, :, 0], ends[:, :, 1])


def test_one_compiled_block_serves_other_facts_and_parameters():
  table, triples, known = _setting(2)
  lp.rank_block.clear_cache()
  _rank(table, triples, known, block=16)
  size = lp.rank_block._cache_size()
  assert size == 2  # one for each side
  _rank(table + 1, triples[:21], known[:300], block=16)
  assert lp.rank_block._cache_size() == size


def test_summary_against_numpy_and_relations_add_up():
  table, triples, known = _setting(3)
  ranks = _rank(table, triples, known)
  brute = _brute(table, triples, known)
  realistic = brute.mean(-1)
  for column, side in enumerate(("head", "tail")):
    for filtered in (False, True):
      values = realistic[:, column, int(filtered)]
      found = lp.summary(ranks, side=side, filtered=filtered)
      assert found["mrr"] == pytest.approx(np.mean(1 / values))
      assert found["mean_rank"] == pytest.approx(np.mean(values))
      assert found["hits@3"] == pytest.approx(np.mean(values <= 3))
  both = lp.summary(ranks)
  assert both["mrr"] == pytest.approx(np.mean(1 / realistic[:, :, 1]))
  parts = lp.per_relation(ranks, triples[:, 1])
  total = sum(part["count"] for part in parts.values())
  mrr = sum(part["mrr"] * part["count"] for part in parts.values()) / total
  assert total == 2 * len(triples) and mrr == pytest.approx(both["mrr"])
  ends = [
    lp.summary(ranks, ties=t)["mrr"] for t in ("pessimistic", "optimistic")
  ]
  assert ends[0] < both["mrr"] < ends[1]


def test_unseen_names_are_counted_and_ranked_last_or_dropped():
  table, triples, known = _setting(4)
  strange = triples.copy()
  strange[0, 0] = -1
  strange[1, 2] = ENTITIES + 5
  strange[2, 1] = -1
  strange[3, 1] = RELATIONS
  seen = np.ones(ENTITIES, bool)
  seen[strange[4, 2]] = False
  options: dict = {"num_relations": RELATIONS, "seen": seen}
  with pytest.raises(InputError, match=f"entity {ENTITIES + 5}.*unseen"):
    _rank(table, strange, known, **options)
  options["num_entities"] = ENTITIES
  last = _rank(table, strange, known, **options)
  assert last.unseen[:5].all() and last.kept.all()
  assert last.head.filtered.optimistic[0] == ENTITIES + 1
  assert last.tail.raw.optimistic[0] == ENTITIES
  assert last.tail.raw.pessimistic[2] == ENTITIES
  drop = _rank(table, strange, known, unseen="drop", **options)
  count = int((~last.unseen).sum())
  assert lp.summary(drop)["count"] == 2 * count
  kept = _rank(table, strange[~last.unseen], known)
  np.testing.assert_array_equal(_ends(last)[~last.unseen], _ends(kept))


def test_nothing_left_to_summarize_is_not_a_number():
  table, triples, known = _setting(5)
  triples[:, 0] = -1
  ranks = _rank(table, triples, known, unseen="drop")
  assert np.isnan(lp.summary(ranks)["mrr"])
  assert lp.summary(ranks)["count"] == 0


def test_bad_input_is_named():
  table, triples, known = _setting(6)
  with pytest.raises(InputError, match=r"triples must be integers.*\[n, 3\]"):
    _rank(table, triples[:, :2], known)
  with pytest.raises(InputError, match="no facts"):
    _rank(table, triples[:0], known)
  with pytest.raises(InputError, match="block"):
    _rank(table, triples, known, block=0)
  with pytest.raises(InputError, match="'last' or 'drop'"):
    _rank(table, triples, known, unseen="ignore")
  table[tuple(triples[7, [1, 0, 2]])] = np.nan
  with pytest.raises(InputError, match="fact 7 is not a number"):
    _rank(table, triples, known)


def test_a_relation_that_the_model_lacks_has_no_rank():
  params = kb.init_params("T", jax.random.key(0), 5, 2, 4)
  facts = np.array([[0, 1, 1], [2, 2, 0]])
  with pytest.raises(InputError, match="fact 1 is not a number"):
    kb.rank(*kb.scorers("T", params), facts, known=facts)


@pytest.mark.parametrize("model", tiers.some(score_models.MODELS, 3))
def test_every_score_model_ranks_as_its_own_scores_say(model):
  with precision.enable_x64(True):
    params = kb.init_params(
      model, jax.random.key(0), ENTITIES, RELATIONS, 6, dtype=jnp.float64
    )
    _, triples, known = _setting(7)
    ranks = lp.rank(*lp.scorers(model, params), triples, known, block=32)
    one = jax.vmap(
      lambda r, h, t: kb.score(
        model, params.relations[r], params.entities[h], params.entities[t]
      )
    )
    grid = jnp.meshgrid(
      *(jnp.arange(n) for n in (RELATIONS, ENTITIES, ENTITIES)), indexing="ij"
    )
    table = np.asarray(one(*(axis.ravel() for axis in grid)))
    table = np.round(table.reshape(RELATIONS, ENTITIES, ENTITIES), 12)
  np.testing.assert_array_equal(_ends(ranks), _brute(table, triples, known))


@pytest.mark.parametrize("name", ["DistMult", "ComplEx"])
def test_equal_to_pykeen(name):
  pykeen = pytest.importorskip(
    "pykeen.evaluation", reason="needs pykeen, extra 'bench'"
  )
  torch = pytest.importorskip("torch", reason="needs torch, extra 'bench'")
  from pykeen import models
  from pykeen.triples import CoreTriplesFactory

  _, triples, known = _setting(8, facts=40)
  known = np.unique(known, axis=0)
  known = known[~(known[:, None] == triples[None]).all(-1).any(1)]
  triples = np.unique(triples, axis=0)
  factory = CoreTriplesFactory.create(torch.as_tensor(known))
  assert (factory.num_entities, factory.num_relations) == (ENTITIES, RELATIONS)
  kind = getattr(models, name)
  parts = 2 if name == "ComplEx" else 1
  model = kind(triples_factory=factory, embedding_dim=8 // parts, random_seed=0)
  # Whole numbers, so that scores are exact and ties are many.
  rng = np.random.default_rng(0)
  entities = rng.integers(-1, 2, (ENTITIES, 8)).astype(np.float32)
  relations = rng.integers(-1, 2, (RELATIONS, 8)).astype(np.float32)
  for table, whose in (
    (entities, model.entity_representations),
    (relations, model.relation_representations),
  ):
    # Their real and imaginary numbers alternate.
    turned = table.reshape(len(table), parts, -1).swapaxes(1, 2)
    with torch.no_grad():
      weight = whose[0]._embeddings.weight
      weight.copy_(torch.as_tensor(turned.reshape(weight.shape)))
  params = scores.Params(jnp.asarray(entities), jnp.asarray(relations))
  facts = np.concatenate([known, triples])
  ranks = lp.rank(*lp.scorers(name.lower(), params), triples, facts)
  for filtered in (False, True):
    evaluator = pykeen.RankBasedEvaluator(filtered=filtered)
    tensor = torch.as_tensor(triples)
    if filtered:
      theirs = evaluator.evaluate(
        model,
        mapped_triples=tensor,
        additional_filter_triples=torch.as_tensor(known),
        use_tqdm=False,
      )
    else:  # evaluate() of pykeen 1.11 forgets the score of the fact itself
      for column, side in ((0, "head"), (2, "tail")):
        table = model.predict(hrt_batch=tensor, target=side)
        own = table.gather(1, tensor[:, [column]])
        evaluator.process_scores_(tensor, side, table, own)
      theirs = evaluator.finalize()
    for side in lp.SIDES:
      for ties in ("realistic", "optimistic", "pessimistic"):
        ours = lp.summary(ranks, side=side, ties=ties, filtered=filtered)
        for key, metric in (
          ("mrr", "inverse_harmonic_mean_rank"),
          ("mean_rank", "arithmetic_mean_rank"),
          ("hits@1", "hits_at_1"),
          ("hits@3", "hits_at_3"),
          ("hits@10", "hits_at_10"),
        ):
          value = theirs.get_metric(f"{side}.{ties}.{metric}")
          assert ours[key] == pytest.approx(value, rel=1e-6), (side, ties)


def test_scorers_that_do_not_fit_are_refused():
  table, triples, known = _setting()
  table = jnp.asarray(table)
  tails = jax.tree_util.Partial(_tails, table)
  few = jax.tree_util.Partial(_heads, table[:, :-3])
  with pytest.raises(InputError, match="scores 34 entities and score_tails 37"):
    lp.rank(few, tails, triples, known, block=8)
  heads = jax.tree_util.Partial(_heads, table)
  narrow = jax.tree_util.Partial(_tails, table[:, :, :-3])
  for first, second in ((triples, known[:0]), (triples[:1] * 0, triples)):
    with pytest.raises(InputError, match="scorers score 34 entities"):
      lp.rank(few, narrow, first, second, block=8)
  with pytest.raises(InputError, match="fewer than num_entities=40"):
    lp.rank(heads, tails, triples, known, block=8, num_entities=40)
  with pytest.raises(InputError, match=r"score_heads must return one array"):
    lp.rank(lambda r, t: heads(r, t)[0], tails, triples, known, block=8)
