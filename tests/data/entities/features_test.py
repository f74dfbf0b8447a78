"""Features against counters; what is stored comes back as it was."""

import collections
import json

import numpy as np
import pytest
import scipy.sparse

from repr_jax import errors
from repr_jax.data import entities, synthetic_corpora
from repr_jax.data.entities import feature_counts, features, sentences


def _corpus(seed=0, count=300, people=25, words=40):
  """Random sentences with nested, repeated and empty mentions."""
  rng = np.random.default_rng(seed)
  vocabulary = [f"w{i}" for i in range(words)] + ["W1", ",", "Ünï", "--"]
  chance = 1 / np.arange(1, len(vocabulary) + 1)
  found = []
  for _ in range(count):
    length = int(rng.integers(0, 12))
    draw = rng.choice(len(vocabulary), length, p=chance / chance.sum())
    mentions = []
    for _ in range(rng.integers(0, 4)):
      start, end = sorted(rng.integers(0, length + 1, 2).tolist())
      mentions.append((start, end, f"e{rng.integers(people) ** 2 // people}"))
    doc = f"d{rng.integers(9)}" if rng.random() < 0.8 else ""
    tokens = tuple(vocabulary[i] for i in draw)
    found.append(entities.Sentence(doc, tokens, tuple(mentions)))
  return found


def _count(corpus, most=None):
  """The features of each entity, one at a time."""
  counts = collections.defaultdict(collections.Counter)
  used = collections.Counter()
  for sentence in corpus:
    for entity in {mention[2] for mention in sentence.mentions}:
      used[entity] += 1
      if most is not None and used[entity] > most:
        continue
      row = counts[entity]
      for i, token in enumerate(sentence.tokens):
        if any(c.isalnum() for c in token):
          row[f"word:{token.lower()}"] += 1
          if any(a <= i < b for a, b, _ in sentence.mentions):
            row[f"link:{token.lower()}"] += 1
      if sentence.doc:
        row[f"doc:{sentence.doc}"] += 1
  return counts


def _prune(counts, drop, least):
  total = sum(counts.values(), collections.Counter())
  ranked = sorted(total, key=lambda f: (-total[f], f))
  kept = [f for f in ranked[drop:] if total[f] >= least]
  return sorted(
    kept,
    key=lambda f: (
      ["word", "doc", "link"].index(f[: f.index(":")]),
      -total[f],
      f,
    ),
  )


@pytest.mark.parametrize("block", [1, 7, 1 << 16])
@pytest.mark.parametrize(("drop", "least"), [(0, 1), (7, 3), (30, 5)])
@pytest.mark.parametrize("most", [None, 3])
def test_counts_equal_those_of_a_loop(monkeypatch, block, drop, least, most):
  monkeypatch.setattr(feature_counts, "_BLOCK", block)
  corpus = _corpus()
  table = features.build(
    iter(corpus), drop_most_frequent=drop, min_count=least, max_sentences=most
  )
  counts = _count(corpus, most)
  assert table.features == _prune(counts, drop, least)
  assert table.entities == table.names == sorted(counts)
  dense = np.array(
    [[counts[e][f] for f in table.features] for e in table.entities]
  )
  np.testing.assert_array_equal(table.counts.toarray(), dense)
  assert table.counts.dtype == np.float32
  assert table.counts.has_canonical_format
  assert (np.diff(table.counts.indptr) >= 0).all()
  again = table.counts.copy()
  again.has_canonical_format = False
  again.sum_duplicates()
  assert again.nnz == table.counts.nnz


def test_a_new_entity_gets_the_row_that_building_gives():
  corpus = _corpus(1)
  table = features.build(corpus, drop_most_frequent=5, min_count=2)
  for row, entity in enumerate(table.entities):
    own = [s for s in corpus if any(m[2] == entity for m in s.mentions)]
    got = features.featurize(table, own)
    expected = table.counts[[row]]
    np.testing.assert_array_equal(got.indices, expected.indices)
    np.testing.assert_array_equal(got.data, expected.data)
    assert got.shape == expected.shape and got.dtype == np.float32
  nothing = features.featurize(table, [])
  assert nothing.shape == (1, len(table.features)) and nothing.nnz == 0
  assert features.featurize(table, ["never seen"]).nnz == 0
  with pytest.raises(errors.InputError):
    features.featurize(table, "one string")


def test_plain_text_counts_as_words():
  corpus = _corpus(2)
  table = features.build(corpus, drop_most_frequent=0, min_count=1)
  got = features.featurize(table, ["w2, w3 W2!"]).tocoo()
  named = {table.features[c]: n for c, n in zip(got.col, got.data)}
  assert named == {"word:w2": 2, "word:w3": 1}


def test_rows_of_stored_sentences():
  corpus = [s for s in _corpus(3) if s.mentions]
  table = features.build(corpus, drop_most_frequent=5, min_count=2)
  held = table.sentences
  chosen = np.array([4, 0, 9, 4, len(corpus) - 1])
  got = features.sentence_rows(table, chosen)
  for i, sentence in enumerate(chosen):
    expected = features.featurize(table, [corpus[sentence]])
    assert (got[[i]] != expected).nnz == 0
  for row in range(len(table.entities)):
    total = features.sentence_rows(table, held.of(row)).sum(axis=0)
    np.testing.assert_array_equal(total, table.counts[[row]].toarray()[0])
  assert features.sentence_rows(table, np.zeros(0, int)).shape[0] == 0


def test_sentences_can_be_read():
  text = "He (Bach) wrote: fugues, masses; Bach's best."
  mention = [(4, 8, "bach")]
  stream = [
    entities.Sentence("", ("passed", "over")),
    entities.sentence_from_text(text, mention),
    entities.sentence_from_text("Bach again", [(0, 4, "bach"), (0, 4, "bach")]),
  ]
  held, ids = sentences.collect(stream, ["adam"])
  assert ids == ["adam", "bach"]
  assert held.of(0).tolist() == [] and held.of(1).tolist() == [0, 1]
  assert held.text(0) == text
  with pytest.raises(errors.InputError, match="sentence 1"):
    sentences.collect([entities.Sentence("", ("a",), ((0, 2, "e"),))])
  with pytest.raises(errors.InputError):
    sentences.collect(stream, max_sentences=0)


def test_entities_come_with_names_and_empty_rows():
  corpus = _corpus(4)
  pairs = [
    (entities.EntityInfo("zoe", "Zoe Z."), corpus),
    (entities.EntityInfo("e0", "Eve"), []),
    (
      entities.EntityInfo("rare", "Rare"),
      [entities.Sentence("", ("hapax",), ((0, 1, "rare"),))],
    ),
  ]
  table = features.build_from_entities(iter(pairs), drop_most_frequent=3)
  names = dict(zip(table.entities, table.names))
  assert names["zoe"] == "Zoe Z." and names["e0"] == "Eve"
  assert names["e1"] == "e1"
  for entity in ("zoe", "rare"):
    assert table.counts[[table.rows[entity]]].nnz == 0
  assert table.counts[[table.rows["e0"]]].nnz > 0


def test_a_corpus_that_pruning_empties():
  hapaxes = [
    entities.Sentence("", (f"w{i}",), ((0, 1, f"e{i}"),)) for i in range(50)
  ]
  with pytest.raises(errors.InputError, match="no feature is left"):
    features.build(hapaxes)
  with pytest.raises(errors.InputError, match="no feature is left"):
    features.build(_corpus(), drop_most_frequent=10_000)
  for empty in ([], [entities.Sentence("d", ("a",))]):
    with pytest.raises(errors.InputError, match="no sentence"):
      features.build(empty)
  for options in ({"min_count": 0}, {"drop_most_frequent": -1}):
    with pytest.raises(errors.InputError):
      features.build(_corpus(), **options)


def _same(first, second):
  assert (first.counts != second.counts).nnz == 0
  for name in ("data", "indices", "indptr"):
    a, b = getattr(first.counts, name), getattr(second.counts, name)
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)
  for name in ("entities", "names", "features", "fingerprint"):
    assert getattr(first, name) == getattr(second, name)
  for a, b in zip(first.sentences, second.sentences):
    np.testing.assert_array_equal(a, b)


def test_round_trip_is_exact_and_mapped(tmp_path):
  corpus = [
    *_corpus(5),
    entities.Sentence("a\nb", ("x\ty",) * 9, ((0, 1, "\n"),)),
  ]
  table = features.build(corpus, {"e1": 'Eve "E"\n'}, drop_most_frequent=9)
  features.save(tmp_path / "t", table)
  loaded = features.load(tmp_path / "t")
  _same(table, loaded)
  assert isinstance(loaded.counts.data.base, np.memmap)
  assert isinstance(loaded.counts.indices.base, np.memmap)
  assert isinstance(loaded.sentences.tokens, np.memmap)
  features.save(tmp_path / "t", loaded)  # Replaces what it is mapped from.
  _same(table, features.load(tmp_path / "t"))
  assert [p.name for p in tmp_path.iterdir()] == ["t"]
  np.testing.assert_array_equal(
    loaded.counts @ np.ones(len(loaded.features)), table.counts.sum(axis=1)
  )
  a = features.sentence_rows(loaded, np.arange(5))
  assert (a != features.sentence_rows(table, np.arange(5))).nnz == 0


def test_a_changed_store_is_refused(tmp_path):
  table = features.build(_corpus(6), min_count=1, drop_most_frequent=2)

  def stored():
    features.save(tmp_path / "t", table)
    return tmp_path / "t"

  changed = ["word:other", *table.features[1:]]
  (stored() / "features.json").write_text(json.dumps(changed), "utf-8")
  with pytest.raises(errors.InputError, match="features were changed"):
    features.load(tmp_path / "t")
  (stored() / "features.json").write_text(json.dumps(changed[1:]), "utf-8")
  with pytest.raises(errors.InputError, match="damaged"):
    features.load(tmp_path / "t")
  data = np.load(stored() / "counts_data.npy")
  np.save(tmp_path / "t" / "counts_data.npy", data + 1)
  with pytest.raises(errors.InputError, match="checksum"):
    features.load(tmp_path / "t")
  array = stored() / "tokens.npy"
  array.write_bytes(array.read_bytes()[:-5])
  with pytest.raises(errors.InputError, match="damaged"):
    features.load(tmp_path / "t")
  (stored() / "names.json").unlink()
  with pytest.raises(errors.InputError, match="no such file"):
    features.load(tmp_path / "t")
  for text in ("{", "[]", "{}", '{"format": 1, "kind": "x"}'):
    (stored() / "header.json").write_text(text, "utf-8")
    with pytest.raises(errors.InputError, match="damaged"):
      features.load(tmp_path / "t")
  with pytest.raises(errors.InputError, match="no such file"):
    features.load(tmp_path / "absent")


def test_other_files_are_not_overwritten(tmp_path):
  table = features.build(_corpus(7), min_count=1, drop_most_frequent=2)
  (tmp_path / "notes.txt").write_text("keep me")
  for target in (tmp_path, tmp_path / "notes.txt"):
    with pytest.raises(errors.InputError, match="another directory"):
      features.save(target, table)
  assert (tmp_path / "notes.txt").read_text() == "keep me"


def test_fingerprints_tell_lists_apart():
  marks = {
    features.fingerprint(x)
    for x in ([], [""], ["a"], ["a", "b"], ["b", "a"], ["ab"], ["a\nb"])
  }
  assert len(marks) == 7


def test_planted_sets_survive_the_pass():
  world = synthetic_corpora.entity_sets(np.random.default_rng(0))
  corpus = []
  for row in range(world.counts.shape[0]):
    part = world.counts[[row]]
    tokens = np.repeat(part.indices, part.data.astype(int))
    corpus.append(
      entities.Sentence("", tuple(map(str, tokens)), ((0, 0, f"{row:03d}"),))
    )
  table = features.build(corpus, drop_most_frequent=0, min_count=1)
  column = [int(f.removeprefix("word:")) for f in table.features]
  assert (table.counts != world.counts[:, column]).nnz == 0


def test_features_that_spread_as_by_chance():
  rng = np.random.default_rng(0)
  dense = np.zeros((100, 5), np.float32)
  dense[:, 0] = rng.poisson(1, 100)  # as a function word
  dense[:40, 1] = 8  # often where it comes at all
  dense[:14, 2] = 1  # too few entities have it
  dense[:, 3] = rng.integers(50, 150, 100)
  even = feature_counts.spread_evenly(scipy.sparse.csr_array(dense))
  assert even.tolist() == [True, False, False, True, False]
  length, total = dense.sum(axis=1), dense.sum(axis=0)
  for i in range(4):
    expected = sum(1 - np.exp(-total[i] * x / length.sum()) for x in length)
    share = np.count_nonzero(dense[:, i]) / 100
    assert even[i] == (share > 0.15 and share * 100 > 0.8 * expected)
  none = scipy.sparse.csr_array((3, 2), dtype=np.float32)
  assert not feature_counts.spread_evenly(none).any()


def test_features_that_spread_as_by_chance_are_dropped_on_demand():
  corpus = [
    entities.Sentence(
      "", ("the", "x", f"topic{i % 3}", "of"), ((1, 2, f"e{i % 30}"),)
    )
    for i in range(120)
  ]
  table = features.build(corpus, drop_most_frequent=None, min_count=1)
  assert table.features == ["word:topic0", "word:topic1", "word:topic2"]
  np.testing.assert_array_equal(table.counts.sum(axis=1), 4)
