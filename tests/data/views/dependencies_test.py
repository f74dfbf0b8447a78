"""CoNLL files: trees, folded relations, and errors with their line."""

import os
import pathlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repr_jax import errors
from repr_jax.data.views import dependencies


def _conllu(*rows):
  lines = []
  for i, (word, head, relation) in enumerate(rows, 1):
    middle = ["_"] * 4
    lines.append(
      "\t".join([str(i), word, *middle, str(head), relation, "_", "_"])
    )
  return "\n".join(lines) + "\n"


def _read(tmp_path, text, **options):
  path = tmp_path / "trees"
  path.write_text(text)
  return list(dependencies.read_conll(path, **options))


def _named(sentence, **options):
  words = sentence.words
  return {
    (relation, words[head], words[i])
    for i, head, relation in dependencies.arcs(sentence, **options)
  }


def test_comments_multiword_tokens_and_empty_nodes(tmp_path):
  first = _conllu(("Dogs", 2, "nsubj"), ("bark", 0, "root"))
  lines = first.splitlines()
  lines.insert(0, "# text = Dogs bark")
  lines.insert(1, "1-2\tDogsbark" + "\t_" * 8)
  lines.insert(3, "1.1\tdo" + "\t_" * 8)
  text = "\n".join(lines) + "\n\n\n" + first
  trees = _read(tmp_path, text)
  assert len(trees) == 2
  assert trees[0].words == ["dogs", "bark"]
  assert trees[0].heads == [1, -1]
  assert _named(trees[1]) == {("nsubj", "bark", "dogs")}


def test_stanford_and_universal_prepositions_agree(tmp_path):
  stanford = _conllu(
    ("cat", 2, "nsubj"), ("sat", 0, "root"), ("on", 2, "prep"),
    ("mat", 3, "pobj"),
  )  # fmt: skip
  universal = _conllu(
    ("cat", 2, "nsubj"), ("sat", 0, "root"), ("on", 4, "case"),
    ("mat", 2, "obl"),
  )  # fmt: skip
  one, two = _read(tmp_path, stanford + "\n" + universal)
  want = {
    ("nsubj", "sat", "cat"),
    ("prep_on", "sat", "mat"),
    ("pobj", "on", "mat"),
  }
  assert _named(one) == want
  assert _named(two) == want
  assert _named(one, collapse=False) == {
    ("nsubj", "sat", "cat"), ("prep", "sat", "on"), ("pobj", "on", "mat"),
  }  # fmt: skip


def test_agents_conjunctions_open_complements_and_names(tmp_path):
  passive = _conllu(
    ("it", 3, "nsubj:pass"), ("was", 3, "aux:pass"), ("seen", 0, "root"),
    ("by", 5, "case"), ("john", 3, "obl"), ("and", 7, "cc"),
    ("mary", 5, "conj"),
  )  # fmt: skip
  control = _conllu(
    ("she", 2, "nsubj"), ("wants", 0, "root"), ("to", 4, "mark"),
    ("see", 2, "xcomp"), ("him", 4, "obj"),
  )  # fmt: skip
  basic = _conllu(
    ("cats", 0, "root"), ("but", 1, "cc"), ("dogs", 1, "conj"),
    ("seen", 3, "acl:relcl"), ("by", 4, "prep"), ("us", 5, "pobj"),
    ("were", 4, "auxpass"),
  )  # fmt: skip
  one, two, three = _read(tmp_path, f"{passive}\n{control}\n{basic}")
  assert ("agent", "seen", "john") in _named(one)
  assert ("conj_and", "john", "mary") in _named(one)
  assert ("xsubj", "see", "she") in _named(two)
  assert ("dobj", "see", "him") in _named(two)
  assert ("conj_but", "cats", "dogs") in _named(three)
  assert ("rcmod", "dogs", "seen") in _named(three)
  assert ("agent", "seen", "us") in _named(three)


def test_the_thesis_relations():
  assert len(dependencies.RELATIONS) == len(set(dependencies.RELATIONS)) == 21


@settings(max_examples=60, deadline=None)
@given(heads=st.lists(st.integers(0, 6), min_size=6, max_size=6))
def test_cycles_are_found_exactly(tmp_path_factory, heads):
  tmp_path = tmp_path_factory.mktemp("c")
  cyclic = False
  for start in range(1, 7):
    node, steps = start, 0
    while node and steps < 10:
      node, steps = heads[node - 1], steps + 1
    cyclic |= steps == 10
  text = _conllu(*((f"w{i}", head, "x") for i, head in enumerate(heads)))
  if cyclic:
    with pytest.raises(errors.InputError, match="cycle"):
      _read(tmp_path, text)
  else:
    (tree,) = _read(tmp_path, text)
    assert [head + 1 for head in tree.heads] == heads


def test_errors_name_the_line(tmp_path):
  good = _conllu(("a", 2, "x"), ("b", 0, "root"))
  cases = {
    "has 9 columns": good + "\n" + good.replace("\t_\n", "\n", 1),
    "governor '7'": good + "\n" + _conllu(("a", 7, "x")),
    "governor '_'": good + "\n" + _conllu(("a", "_", "x")),
    "cycle": good + "\n" + _conllu(("a", 1, "x")),
    "word number 2 where 1": good + "\n2" + _conllu(("a", 0, "x"))[1:],
    "not a word number": good + "\nx" + _conllu(("a", 0, "x"))[1:],
  }
  for message, text in cases.items():
    with pytest.raises(errors.InputError, match=message) as caught:
      _read(tmp_path, text)
    assert caught.value.line == 4
  with pytest.raises(errors.InputError, match="layout"):
    _read(tmp_path, good, layout="xml")


def test_three_columns_get_one_relation(tmp_path):
  text = "Pierre\tNNP\t2\nVinken\tNNP\t0\n"
  (tree,) = _read(tmp_path, text, layout="word-tag-head", unlabeled="any")
  assert _named(tree) == {("any", "vinken", "pierre")}


def test_the_treebank_sample():
  root = os.environ.get("REPR_JAX_DATA", "")
  here = pathlib.Path(__file__).resolve().parents[2]
  root = pathlib.Path(root) if root else here.parent / "shared" / "data"
  path = root / "corpora" / "dependency_treebank.conll.gz"
  if not path.exists():
    pytest.skip("no dependency treebank: set REPR_JAX_DATA")
  trees = list(dependencies.read_conll(path, "word-tag-head"))
  assert len(trees) == 3914
  assert sum(len(tree.words) for tree in trees) == 94_084
