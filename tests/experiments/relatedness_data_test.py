"""Text and queries of entity vectors: every form, one kind of sentence."""

import json

import pytest

from experiments.relatedness import data
from repr_jax.data import relatedness, wordnet
from repr_jax.data.wordnet import instances
from repr_jax.errors import InputError


@pytest.fixture(scope="module")
def opened():
  return wordnet.load()


def test_classes_make_queries_with_five_related(opened):
  found = data.class_queries(opened, seed=0, count=20)
  assert len(found) == 20
  sets = instances.wordnet_instance_sets(opened)
  for query in found:
    kind = query.name.partition("-")[2]
    assert query.seed in sets[kind]
    assert sum(query.gold) == 5
    assert query.seed not in query.candidates
    assert len(set(query.candidates)) == len(query.candidates)
    together = {x for own in sets.values() if query.seed in own for x in own}
    for name, gold in zip(query.candidates, query.gold):
      assert (name in together) == bool(gold)
  assert data.class_queries(opened, 0, 20) == found
  assert data.class_queries(opened, 1, 20) != found


def test_forms_give_sentences_with_the_entity_as_document(tmp_path):
  one = tmp_path / "entities.jsonl"
  one.write_text('{"id": "bach", "sentences": ["Bach wrote fugues"]}\n')
  (sentence,) = data.stream([str(one)], "auto", None)
  assert sentence.doc == "bach"
  two = tmp_path / "documents.jsonl"
  record = {
    "doc_id": "J._S._Bach",
    "text": "He taught Krebs.",
    "mentions": [
      {"start": 10, "end": 15, "surface": "Krebs", "wikipedia_title": "J_Krebs"}
    ],
  }
  two.write_text(json.dumps(record) + "\n")
  (document,) = data.stream([str(two)], "documents", None)
  assert [document] == list(data.stream([str(two)], "auto", None))
  assert document.doc == "J. S. Bach"
  assert document.mentions == ((2, 3, "J Krebs"),)


def test_numbers_of_pages_are_those_of_the_small_dump(tmp_path):
  pytest.importorskip("gensim", reason="gensim has the dump")
  path = tmp_path / "test.svm"
  path.write_text("1 qid:1 # 12-25\n")
  known = {"Anarchism", "Autism"}
  read = relatedness.read_relatedness(path)
  (query,) = data.rename(read, ["wikipedia"], known)
  assert (query.seed, query.candidates) == ("Anarchism", ("Autism",))


def test_files_of_one_name_are_told_by_their_folders():
  paths = ["k.tsv", "a/k.tsv", "x/b/m.svm", "/y/c/m.svm", "a/z.tsv"]
  found = data.query_names(paths)
  assert list(found.values()) == paths
  assert list(found) == ["k.tsv", "a/k.tsv", "b/m.svm", "c/m.svm", "z.tsv"]
  with pytest.raises(InputError, match="twice"):
    data.query_names(["k.tsv", "./k.tsv"])


def test_names_are_written_as_the_corpus_has_them(tmp_path):
  path = tmp_path / "kore.tsv"
  path.write_text("A_B\t1\tC_D\nA_B\t2\tE_F\n")
  read = relatedness.read_relatedness(path)
  (query,) = data.rename(read, [], {"A B", "C_D"})
  assert query.seed == "A B"
  assert query.candidates == ("C_D", "E F")
