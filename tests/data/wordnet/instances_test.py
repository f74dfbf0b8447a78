"""WordNet's instances as a corpus and as gold sets."""

import pytest

from repr_jax import errors
from repr_jax.data import entities, wordnet
from repr_jax.data.wordnet import instances as we


@pytest.fixture(scope="module", name="wn")
def _wn():
  return wordnet.load()


@pytest.mark.parametrize(
  ("gloss", "pieces"),
  [
    ("a town (near Rome; on a hill)", ["a town (near Rome; on a hill)"]),
    (
      'one; two; "An example; it says"; three',
      ["one", "two", "An example; it says", "three"],
    ),
    ('the "Iron Lady" of England; "she led"', None),
    ("(music) ; ;", ["(music)"]),
    ('"only an example"', ["only an example"]),
    ("", []),
  ],
)
def test_glosses_are_cut(gloss, pieces):
  if pieces is None:
    pieces = ['the "Iron Lady" of England', "she led"]
  assert we.split_gloss(gloss) == pieces


def test_glosses_are_the_sentences(wn):
  found = list(we.wordnet_instances(wn))
  assert len(found) == len({info.id for info, _ in found}) == 7_730
  assert all(sentences for _, sentences in found)
  for info, sentences in found[::50]:
    gloss = wn.synset(info.id).gloss
    for sentence in sentences:
      assert sentence.doc == info.id and sentence.mentions == ((0, 0, info.id),)
    tokens = [t for s in sentences for t in s.tokens if t.isalnum()]
    assert tokens == [t for t in entities.tokenize(gloss) if t.isalnum()]


def test_names(wn):
  names = {info.id: info.name for info, _ in we.wordnet_instances(wn)}
  assert names["bach.n.01"] == "Johann Sebastian Bach"
  assert names["niger.n.02"] == "Niger"
  found = we.wordnet_instances(wn, with_name=True)
  sentences = next(x for info, x in found if info.id == "bach.n.01")
  assert sentences[0].tokens[:4] == ("Johann", "Sebastian", "Bach", ":")
  assert sentences[0].mentions == ((0, 3, "bach.n.01"),)


def test_links_lead_to_other_instances(wn):
  inside = [s for _, x in we.wordnet_instances(wn, "instances") for s in x]
  every = [s for _, x in we.wordnet_instances(wn, "all") for s in x]
  assert len(every) == len(set(every)) and set(inside) <= set(every)
  canal = next(s for s in every if s.doc == "panama_canal.n.01")
  linked = {
    " ".join(canal.tokens[a:b]): entity for a, b, entity in canal.mentions
  }
  assert linked == {
    "": "panama_canal.n.01",
    "Isthmus of Panama": "isthmus_of_panama.n.01",
    "United States": "united_states.n.01",
  }
  instances = {wn.names[row] for row in wn.instances()}
  for sentence in every[::20]:
    for start, end, entity in sentence.mentions:
      assert entity in instances
      lemma = "_".join(sentence.tokens[start:end])
      if lemma and lemma.isalpha():
        assert lemma in wn.synset(entity).lemmas
  with pytest.raises(errors.InputError, match="some"):
    next(we.wordnet_instances(wn, "some"))


def test_gold_sets(wn):
  sets = we.wordnet_instance_sets(wn)
  assert len(sets["writer.n.01"]) == 337
  assert len(sets["composer.n.01"]) == 133
  assert len(sets["national_capital.n.01"]) == 180
  assert sum(map(len, sets.values())) == len(wn.edges("instance_hypernym"))
  big = we.wordnet_instance_sets(wn, min_members=100)
  assert big == {k: v for k, v in sets.items() if len(v) >= 100}
  whole = we.wordnet_instance_sets(wn, closure=True)
  assert len(whole["entity.n.01"]) == 7_730
  assert set(sets["poet.n.01"]) <= set(whole["writer.n.01"])
  assert all(set(members) <= set(whole[k]) for k, members in sets.items())
