"""Views from text, bitext, dependency trees and WordNet."""

import collections
import os

import numpy as np
import pytest
from collecting import TEXT, VOCAB, cell, collect, tree, write

from repr_jax import errors
from repr_jax.data.views import collection, sources


def test_text_behind_and_ahead(tmp_path):
  path = write(tmp_path, "a.txt.gz", TEXT)
  found, texts = collect(tmp_path, text=[path], offsets=2, ahead=1)
  assert list(found) == ["text_behind_01", "text_behind_02", "text_ahead_01"]
  assert cell(found["text_behind_01"], "dog", "the") == 2
  assert cell(found["text_behind_02"], "runs", "the") == 1
  assert cell(found["text_ahead_01"], "the", "dog") == 2
  assert list(found["text_ahead_01"].columns) == list(VOCAB.words)
  assert texts == ["text: left out 2 tokens outside the vocabulary"]


def test_offsets_beyond_every_sentence_are_named(tmp_path):
  path = write(tmp_path, "a", TEXT)
  found, texts = collect(tmp_path, text=[path], offsets=7)
  assert list(found) == [f"text_behind_{o:02d}" for o in (1, 2, 3, 4)]
  assert "view text_behind_07, which has no entry" in texts[0]
  stored = set(os.listdir(tmp_path / "store"))
  assert stored == {*found, "text.json"}


def test_columns_are_the_most_frequent_words(tmp_path):
  path = write(tmp_path, "a", TEXT)
  found, _ = collect(tmp_path, text=[path], offsets=1, columns=1)
  assert found["text_behind_01"].matrix.shape == (4, 1)


def test_documents_are_runs_of_sentences(tmp_path):
  one = write(tmp_path, "a", TEXT)
  two = write(tmp_path, "b", "the cat\n")
  source = sources.document_source([one, two], lines=2)
  with pytest.warns(UserWarning, match="2 tokens outside"):
    (view,) = collection.collect(VOCAB, [source], tmp_path / "store")
  assert view.name == "text_documents_2" and len(view.columns) == 2
  expected = [[3, 1], [2, 0], [1, 2], [1, 0]]  # the, dog, cat, runs
  np.testing.assert_array_equal(view.matrix.toarray(), expected)


def test_bitext_with_alignments(tmp_path):
  source = write(tmp_path, "t.en", "the dog\nthe cow\n")
  target = write(tmp_path, "t.de", "der Hund\ndie kuh\n")
  links = write(tmp_path, "t.links", "0-0 1-1\n0-0 1-1 1-0\n")
  found, texts = collect(tmp_path, bitext=[f"{source}:{target}:{links}"])
  view = found["bitext_t.de"]
  assert sorted(view.columns) == ["der", "die", "hund"]
  assert cell(view, "dog", "hund") == 1 and cell(view, "the", "die") == 1
  assert view.matrix.sum() == 3
  assert texts == ["bitext_t.de: left out 1 words outside the vocabulary"]


def test_bitext_without_alignments(tmp_path):
  pairs = [("the dog", "der hund"), ("the cat", "der kater"), ("dog", "hund"),
           ("cat", "kater"), ("the", "der")]  # fmt: skip
  source = write(tmp_path, "u.en", "\n".join(e for e, _ in pairs * 5) + "\n")
  target = write(tmp_path, "u.de", "\n".join(f for _, f in pairs * 5) + "\n")
  found, texts = collect(tmp_path, bitext=[f"{source}:{target}"])
  assert "3 sentences too long or empty to align" in texts[0]
  with pytest.raises(errors.InputError, match="has no alignments"):
    sources.bitext_source([source, target])
  view = found["bitext_u.de"]
  for one, two in (("the", "der"), ("dog", "hund"), ("cat", "kater")):
    row = view.matrix[[VOCAB.words.index(one)]].toarray()[0]
    assert view.columns[int(row.argmax())] == two


def test_dependencies(tmp_path):
  one = tree(("the", 2, "det"), ("dog", 3, "nsubj"), ("runs", 0, "root"))
  two = tree(("cow", 2, "nsubj"), ("runs", 0, "root"))
  path = write(tmp_path, "d.conllu", one + one + two)
  found, texts = collect(tmp_path, dependencies=[path])
  assert list(found) == ["dep_nsubj"]
  assert cell(found["dep_nsubj"], "dog", "runs") == 2
  assert "2 arcs of other relations" in texts[0]
  assert "1 arcs with a word outside the vocabulary" in texts[0]
  assert "view dep_prep_of, which has no entry" in texts[0]
  found, _ = collect(tmp_path, dependencies=[path], relations=["det", "nsubj"])
  assert cell(found["dep_det"], "the", "dog") == 2
  path = write(tmp_path, "e.conll", "the\tDT\t2\ndog\tNN\t0\n")
  found, _ = collect(tmp_path, dependencies=[path], layout="word-tag-head")
  assert cell(found["dep_any"], "the", "dog") == 1


def test_wordnet(tmp_path):
  found, texts = collect(tmp_path, wordnet=["synset", "lexname"])
  assert list(found) == ["wordnet_synset", "wordnet_lexname"]
  assert cell(found["wordnet_synset"], "dog", "dog.n.01") == 1
  assert texts == ["wordnet: left out 1 words that WordNet does not have"]


def test_counting_with_a_small_limit_changes_nothing(tmp_path):
  rng = np.random.default_rng(0)
  lines = [
    " ".join(rng.choice(["the", "dog", "cat", "runs", "x"], 8))
    for _ in range(200)
  ]
  path = write(tmp_path, "a", "\n".join(lines))
  pairs = "".join(
    f"{line.split()[0]}\t{line.split()[1]}\t1\n" for line in lines
  )
  counts = write(tmp_path, "c.tsv", pairs)
  large, _ = collect(tmp_path, text=[path], counts=[counts], offsets=3)
  want = {name: view.matrix.toarray() for name, view in large.items()}
  tiny, _ = collect(
    tmp_path / "other", text=[path], counts=[counts], offsets=3, limit=6
  )
  for name, view in tiny.items():
    np.testing.assert_array_equal(view.matrix.toarray(), want[name])
  brute = collections.Counter(tuple(line.split()[:2]) for line in lines)
  assert cell(tiny["counts_c"], "dog", "x") == brute["dog", "x"]
