"""Names are found in any case; the nearest are suggested."""

import numpy as np
import pytest

from repr_jax import errors
from repr_jax.data import entities
from repr_jax.data.entities import features, names


def _table():
  found = {
    "bach.1": "Johann Sebastian Bach",
    "bach.2": "Bach",
    "e1": "Victoria",
    "e2": "victoria",
    "Victoria": "Someone Else",
    "e3": "Barack_Obama",
    "e4": "Straße",
    "e5": "two\nlines",
  }
  sentences = [
    entities.Sentence("", ("a",), ((0, 1, entity),)) for entity in found
  ]
  return features.build(sentences, found, drop_most_frequent=0, min_count=1)


@pytest.mark.parametrize(
  ("name", "entity"),
  [
    ("bach.2", "bach.2"),
    ("Johann Sebastian", "bach.1"),
    ("obama", "e3"),
    ("barack", "e3"),
    ("bach.1", "bach.1"),
    ("JOHANN  sebastian_bach", "bach.1"),
    ("Victoria", "Victoria"),
    (" barack obama ", "e3"),
    ("STRASSE", "e4"),
    ("two lines", "e5"),
  ],
)
def test_names_are_resolved(name, entity):
  table = _table()
  got = names.resolve_names(table, [name, "e1"])
  assert got.dtype == np.int32
  assert [table.entities[row] for row in got] == [entity, "e1"]


def test_a_name_of_several():
  with pytest.raises(errors.InputError, match=r"2 entities.*e1: a.*e2: a"):
    names.resolve_names(_table(), ["VICTORIA"])


def test_a_name_that_is_the_last_word_of_others_is_never_taken_silently():
  with pytest.raises(errors.InputError, match=r"2 entities.*bach\.1.*bach\.2"):
    names.resolve_names(_table(), ["Bach"])


def test_frequent_entities_come_first_and_rare_ones_do_not_interfere():
  ids = {"a": "Paris", "b": "Treaty of Paris", "c": "Gaston Paris"}
  counts = {"a": 3, "b": 5, "c": 1}
  sentences = [
    entities.Sentence("", (f"w{i}", "x"), ((0, 1, entity),))
    for entity, n in counts.items()
    for i in range(n)
  ]
  table = features.build(sentences, ids, drop_most_frequent=0, min_count=1)
  assert names.choices(table, "paris") == [table.rows["a"]]
  assert names.choices(table, "gaston") == [table.rows["c"]]
  assert names.choices(table, "treaty") == [table.rows["b"]]
  assert names.choices(table, "of") == [table.rows["b"]]
  assert names.choices(table, "") == []


@pytest.mark.parametrize(
  "name", ["Barak Obama", "obama barack", "Barack Obma", "barackobama"]
)
def test_an_unknown_name(name):
  with pytest.raises(errors.InputError, match=r"Barack_Obama' \(e3\)"):
    names.resolve_names(_table(), [name])


def test_an_unknown_last_name_is_compared_with_last_names():
  index = names.NameIndex(
    ["Rembrandt", "Wolfgang Amadeus Mozart", "Mozambique"]
  )
  assert index.suggest("mozrat")[0] == 1
  assert index.suggest("mozambik")[0] == 2


def test_all_names_that_are_not_there_are_told():
  with pytest.raises(errors.InputError, match=r"'zzz'; .*'Victorya'.*\(e1\)"):
    names.resolve_names(_table(), ["zzz", "e1", "Victorya"])


@pytest.mark.parametrize("name", ["", "zzzz", "\n\n", "q" * 10_000, "\ud800"])
def test_nothing_near(name):
  with pytest.raises(errors.InputError, match="no entity is called"):
    names.resolve_names(_table(), [name])
  assert names.NameIndex([]).suggest(name) == []


def test_a_misspelt_name_is_found_among_many():
  rng = np.random.default_rng(0)
  letters = np.array(list("abcdefghij "))
  many = ["".join(rng.choice(letters, 12)) for _ in range(5_000)]
  index = names.NameIndex(many)
  for place in (0, 2_500, 4_999):
    wanted = many[place]
    broken = f"{wanted[:4]}x{wanted[5:]}"
    assert place in index.suggest(broken)[:2]
    assert place in index.find(wanted.upper())


def test_names_are_found_by_their_beginning():
  index = names.NameIndex(
    ["Johann Bach", "Bach", "Bacharach", "Carl-Bach", "Offenbach", "two\nbacs"]
  )
  assert index.begin("bach") == [1, 2, 0, 3]
  assert index.begin("BACH", 3) == [1, 2, 0]
  assert index.begin("johann  b") == [0]
  assert index.begin("bach ") == []
  assert index.begin("two_bacs") == [5]
  assert index.begin("  ") == index.begin("\n") == []
  assert names.NameIndex([]).begin("a") == []


def test_preparing_changes_no_answer():
  many = ["Bach", "Barack Obama", "Bach", "Boccherini"]
  ready, plain = names.NameIndex(many), names.NameIndex(many)
  ready.prepare()
  assert ready.find("bach") == plain.find("bach") == [0, 2]
  assert ready.suggest("Obma Barack") == plain.suggest("Obma Barack") == [1]
