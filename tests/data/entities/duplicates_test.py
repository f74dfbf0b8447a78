import json

import pytest

from repr_jax.data.entities import Sentence
from repr_jax.data.entities.duplicates import merge_duplicates, read_duplicates
from repr_jax.errors import InputError

_SENTENCES = [
  Sentence("d", ("Bach", "wrote"), ((0, 1, "bach"),)),
  Sentence("d", ("J.S.", "met", "Bach"), ((0, 1, "js"), (2, 3, "bach"))),
]


def _read(tmp_path, groups):
  path = tmp_path / "same.json"
  path.write_text(json.dumps(groups), encoding="utf-8")
  return read_duplicates(str(path))


def test_mentions_name_the_kept_entity(tmp_path):
  kept = _read(tmp_path, [["bach", "js"]])
  merged = list(merge_duplicates(_SENTENCES, kept, "f"))
  assert merged[0] == _SENTENCES[0]
  assert merged[1].mentions == ((0, 1, "bach"), (2, 3, "bach"))


@pytest.mark.parametrize(
  ("groups", "message"),
  [
    ({"bach": ["js"]}, "lists of two"),
    (["bach"], "lists of two"),
    ([["bach"]], "lists of two"),
    ([["bach", 3]], "lists of two"),
    ([["bach", "js"], ["handel", "js"]], "'js' stands in two"),
    ([["bach", "bach"]], "'bach' stands in two"),
  ],
)
def test_files_that_are_refused(groups, message, tmp_path):
  with pytest.raises(InputError, match=f"same.json: .*{message}"):
    _read(tmp_path, groups)


def test_an_id_that_the_corpus_lacks_is_refused(tmp_path):
  kept = _read(tmp_path, [["bach", "telemann"]])
  with pytest.raises(InputError, match=r"same.json: .*'telemann'"):
    list(merge_duplicates(_SENTENCES, kept, "same.json"))
