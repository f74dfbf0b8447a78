"""Triples: names, columns, splits, repeats and bad lines."""

import gzip

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from repr_jax import errors
from repr_jax.data import triples

_SETTINGS = hypothesis.settings(
  suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
  deadline=None,
  max_examples=50,
)
_NAME = st.text(
  st.characters(codec="utf-8", exclude_characters="\0\n\r\t\ufeff"), min_size=1
).filter(lambda name: name == name.strip())


def _file(tmp_path, text, name="a"):
  path = tmp_path / name
  path.write_text(text)
  return path


def test_sorted_names_and_order_of_lines(tmp_path):
  got = triples.read_triples(_file(tmp_path, "b r2 a\n\na r1 c\n"))
  assert got.entities == ["a", "b", "c"]
  assert got.relations == ["r1", "r2"]
  assert got.array.dtype == np.int32
  assert got.array.tolist() == [[1, 1, 0], [0, 0, 2]]
  assert got.named() == [("b", "r2", "a"), ("a", "r1", "c")]
  assert got.path == tmp_path / "a" and got.lines.tolist() == [1, 3]


def test_columns_and_header(tmp_path):
  expected = [("New York", "in", "USA")]
  path = _file(tmp_path, "New York\tUSA\tin\n")
  assert triples.read_triples(path, "h,t,r").named() == expected
  path = _file(
    tmp_path, "score\tObject\tpredicate\tsubject\n1\tUSA\tin\tNew York\n"
  )
  assert triples.read_triples(path, "header").named() == expected
  path = _file(tmp_path, "x New_York in USA\n")
  got = triples.read_triples(path, "_,head,relation,tail").named()
  assert got == [("New_York", "in", "USA")]
  for columns in ["h,r", "h,r,t,t", "a,b,c", ""]:
    with pytest.raises(errors.InputError, match="columns"):
      triples.read_triples(path, columns)
  with pytest.raises(errors.InputError, match="columns") as caught:
    triples.read_triples(path, "header")
  assert caught.value.line == 1


@hypothesis.given(st.lists(st.tuples(_NAME, _NAME, _NAME), min_size=1))
@_SETTINGS
def test_round_trip(tmp_path, named):
  before = triples.from_named(named)
  assert before.named() == list(dict.fromkeys(named))
  triples.write_triples(tmp_path / "t.gz", before)
  after = triples.read_triples(tmp_path / "t.gz")
  assert after.named() == before.named()
  assert after.entities == sorted(set(after.entities))


def test_repeats(tmp_path):
  path = _file(tmp_path, "a r b\n\nc r d\na r b\na r b\n")
  with pytest.raises(
    errors.InputError, match="already on line 1; 2 "
  ) as caught:
    triples.read_triples(path)
  assert caught.value.line == 4
  got = triples.read_triples(path, duplicates="count")
  assert got.repeated == 2
  assert got.named() == [("a", "r", "b"), ("c", "r", "d")]
  assert got.lines.tolist() == [1, 3]
  with pytest.raises(errors.InputError, match="duplicates"):
    triples.read_triples(path, duplicates="drop")


@pytest.mark.parametrize(
  ("text", "line"),
  [
    ("a r b\na b\n", 2),
    ("a\tr\tb\na\tb\n", 2),
    ("a\tr\tb\nc\tr\tb\td\n", 2),
    ("a\tr\tb\na\t \tb\n", 2),
    ("a\tr\tb\na\0c\tr\tb\n", 2),
    ("", None),
    ("\n\n", None),
  ],
)
def test_bad_lines(tmp_path, text, line):
  path = _file(tmp_path, text)
  with pytest.raises(errors.InputError) as caught:
    triples.read_triples(path)
  assert caught.value.line == line
  assert caught.value.path == str(path)


def test_faulty_lines_are_told_together(tmp_path):
  path = _file(tmp_path, 'a,r\na,r,b\na,,b\n"a,r,b\n', "t.csv")
  told = r"t\.csv:1: expected 3 columns .* \(2 more faulty lines: 3, 4\)$"
  with pytest.raises(errors.InputError, match=told):
    triples.read_triples(path)
  path = _file(tmp_path, "a r b\n" + "a b\n" * 500)
  with pytest.raises(
    errors.InputError, match=r"at least 99 more .*6, 7, \.\.\."
  ):
    triples.read_triples(path)


def test_splits_share_ids_and_count_the_unseen(tmp_path):
  train = tmp_path / "train.gz"
  train.write_bytes(gzip.compress(b"b r b2\nc r b\n"))
  valid = _file(tmp_path, "a r b\n", "valid")
  test = _file(tmp_path, "c s z\n", "test")
  got = triples.read_splits(train, valid, test)
  assert got.train.entities is got.test.entities
  assert got.test.named() == [("c", "s", "z")]
  names = [got.train.entities[i] for i in got.unseen_entities]
  assert names == ["a", "z"]
  assert [got.train.relations[i] for i in got.unseen_relations] == ["s"]


def test_ids_outside_the_names_are_refused():
  for row in [[0, 0, 2], [0, 1, 0], [-1, 0, 0]]:
    with pytest.raises(errors.InputError):
      triples.Triples(np.array([row]), ["a", "b"], ["r"])


def test_names_that_do_not_fit_a_line(tmp_path):
  for name in ["a\tb", "", " a", "a\nb", "a\0"]:
    one = triples.from_named([(name, "r", "b")])
    with pytest.raises(errors.InputError):
      triples.write_triples(tmp_path / "t", one)
    assert not (tmp_path / "t").exists()


@hypothesis.given(
  st.integers(1, 8).flatmap(
    lambda n: st.tuples(
      st.just(n),
      st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))),
    )
  )
)
@_SETTINGS
def test_transitive_closure_against_boolean_powers(case):
  n, edges = case
  step = np.zeros((n, n), bool)
  for a, b in edges:
    step[a, b] = True
  reach = step.copy()
  for _ in range(n):
    reach |= (reach.astype(int) @ step.astype(int)) > 0
  got = triples.transitive_closure(np.array(edges, np.int32), n)
  np.testing.assert_array_equal(got, np.argwhere(reach))


def test_commas_quotes_and_a_header(tmp_path):
  path = tmp_path / "facts.csv"
  path.write_text(
    '\ufeffhead,relation,tail,source\n"Paris, TX",in,Texas,a\n'
    'Texas,in,"the ""US""",b\n'
  )
  read = triples.read_triples(path)
  assert read.named() == [
    ("Paris, TX", "in", "Texas"), ("Texas", "in", 'the "US"')
  ]  # fmt: skip
  tabs = tmp_path / "facts.tsv"
  tabs.write_text("tail\thead\trelation\nb\ta\tr\n")
  assert triples.read_triples(tabs).named() == [("a", "r", "b")]


@pytest.mark.parametrize(
  ("name", "text", "message"),
  [
    ("a.tsv", "a,r,b\n", "a.tsv:1: .*tabs expected, commas found"),
    ("a.csv", "a\tr\tb\n", "commas expected in a .csv file, tabs found"),
    ("a.csv", "a;r;b\n", "commas expected in a .csv file, semicolons found"),
    ("a.csv", "a,r\n", "a.csv:1: expected 3 columns"),
    ("a.csv", 'a,r,"b\n', "a.csv:1: unexpected end of data"),
    ("a.csv", "a,,b\n", "a.csv:1: a name is empty"),
  ],
)
def test_bad_separators_are_named(tmp_path, name, text, message):
  (tmp_path / name).write_text(text)
  with pytest.raises(errors.InputError, match=message):
    triples.read_triples(tmp_path / name)


def test_a_split_leaves_every_name_in_training():
  rng = np.random.default_rng(0)
  named = [
    (f"e{a}", f"r{b}", f"e{c}")
    for a, b, c in rng.integers([9, 2, 9], size=(80, 3))
  ]
  facts = triples.from_named(named)
  parts = triples.split(facts, (0.8, 0.1, 0.1), 3)
  sizes = [len(part) for part in parts[:3]]
  assert sum(sizes) == len(facts) and sizes[1] == round(0.1 * len(facts))
  together = np.concatenate([part.array for part in parts[:3]])
  assert len(np.unique(together, axis=0)) == len(facts)
  train = parts.train.array
  assert len(np.unique(train[:, [0, 2]])) == len(facts.entities)
  again = triples.split(facts, (0.8, 0.1, 0.1), 3)
  np.testing.assert_array_equal(again.test.array, parts.test.array)
  for shares in ((1.0, 0.0, 0.0), (0.5, 0.2, 0.2)):
    with pytest.raises(errors.InputError, match="add up to 1"):
      triples.split(facts, shares)
  with pytest.raises(errors.InputError, match="no 2 of 1 facts"):
    triples.split(triples.from_named([("a", "r", "b")]), (0.8, 0.1, 0.1))
