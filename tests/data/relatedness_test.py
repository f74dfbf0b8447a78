"""Files of entity relatedness: both forms, and what is wrong with others."""

import os
import pathlib

import pytest

from repr_jax.data import relatedness
from repr_jax.errors import InputError

_SVM = """1 qid:7 1:0.5 2:0 # 100-200
0 qid:7 1:0.1 2:1 # 100-300

1 qid:9 1:2 # 5-6
"""


def _write(tmp_path, text):
  path = tmp_path / "queries.txt"
  path.write_text(text)
  return path


def test_labeled_queries(tmp_path):
  found = relatedness.read_relatedness(_write(tmp_path, _SVM))
  assert found == [
    relatedness.RelatednessQuery("7", "100", ("200", "300"), (1.0, 0.0)),
    relatedness.RelatednessQuery("9", "5", ("6",), (1.0,)),
  ]


def test_names_may_have_hyphens(tmp_path):
  """All lines of a query have one seed, and queries share names."""
  text = (
    "1 qid:1 # Jean-Luc_Godard-Paris\n"
    "0 qid:1 # Jean-Luc_Godard-Stratford-upon-Avon\n"
    "1 qid:2 # Paris-Jean-Luc_Godard\n"
    "0 qid:2 # Paris-Rome\n"
    "1 qid:3 # Rome-Jean-Luc_Godard\n"
    "1 qid:4 # Rome-Jean-Luc_Godard\n"
    "0 qid:4 # Rome-Jean-Paul_Sartre\n"
  )
  found = relatedness.read_relatedness(_write(tmp_path, text))
  assert [query.seed for query in found] == [
    "Jean-Luc_Godard", "Paris", "Rome", "Rome"
  ]  # fmt: skip
  assert found[0].candidates == ("Paris", "Stratford-upon-Avon")
  assert found[2].candidates == ("Jean-Luc_Godard",)
  assert found[3].candidates == ("Jean-Luc_Godard", "Jean-Paul_Sartre")


def test_a_line_without_features_is_fine(tmp_path):
  found = relatedness.read_relatedness(_write(tmp_path, "1 qid:3 # 8-9\n"))
  assert found[0].candidates == ("9",)


def test_ranked_queries(tmp_path):
  text = "Apple_Inc.\t1\tSteve_Jobs\nApple_Inc.\t2\tMac_Pro\n"
  (found,) = relatedness.read_relatedness(_write(tmp_path, text))
  assert found.seed == "Apple_Inc."
  assert found.candidates == ("Steve_Jobs", "Mac_Pro")
  assert found.gold[0] > found.gold[1]


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("2 qid:1 1:1 # 3-4\n", "txt:1: .*expected label"),
    ("1 qid:1 1:1\n", "expected label"),
    (_SVM + "0 qid:7 # 100-300\n", "txt:5: .*300 occurs twice"),
    (_SVM + "0 qid:7 # 101-9\n", "two seeds, 100 and 101"),
    (
      _SVM + "1 qid:8 # Jean-Luc_Godard-Nice\n",
      "txt:5: .*the seed 'Jean' or 'Jean-Luc_Godard'",
    ),
    ("1 qid:1 # -\n", "expected label"),
    ("a\tfirst\tb\n", "txt:1: .*expected seed"),
    ("a\t1\tb\na\t2\tb\n", "txt:2: .*b occurs twice"),
    ("\n", "no line"),
  ],
)
def test_other_lines_are_named(tmp_path, text, message):
  with pytest.raises(InputError, match=message):
    relatedness.read_relatedness(_write(tmp_path, text))


def test_kore():
  root = pathlib.Path(os.environ.get("REPR_JAX_DATA", "../shared/data"))
  path = root / "relatedness" / "kore.tsv"
  if not path.exists():
    pytest.skip(f"{path} is absent")
  found = relatedness.read_relatedness(path)
  assert len(found) == 21
  assert {len(query.candidates) for query in found} == {20}
