"""Candidates: forms of a mention, ties, fallbacks, recall."""

import pytest

from repr_jax import errors
from repr_jax.data.documents import candidates, priors
from repr_jax.data.documents.linked_documents import (
  LinkedDocument,
  LinkedMention,
)

_PRIOR = priors.count_links(
  [("Japan", "Japan")] * 6
  + [("Japan", "Japan national football team")] * 2
  + [("JAPAN", "Japan national football team")] * 3
  + [("US", "United States"), ("Bob Nardelli", "Robert Nardelli")]
  + [("Georgia", "Georgia (country)"), ("Georgia", "Georgia (U.S. state)")]
)
_INDEX = candidates.build_index(_PRIOR, ["Paris", "Paris, Texas"])


def _names(surface, **options):
  return [e for e, _ in candidates.candidates(_INDEX, surface, **options)]


def _document(*mentions):
  return LinkedDocument(
    "d", (), tuple(LinkedMention(0, 0, m, e) for m, e in mentions)
  )


@pytest.mark.parametrize(
  ("surface", "key"),
  [
    ("The Hague", "hague"),
    ("U.S.", "us"),
    ("Iraq's", "iraq"),
    ("workers’", "workers"),
    ("All-Star  Game", "all star game"),
    ("the", "the"),
    ("...", "..."),
  ],
)
def test_forms(surface, key):
  assert candidates.normalize(surface) == key


def test_the_form_as_written_counts_most():
  assert _names("Japan")[0] == "Japan"
  assert _names("JAPAN")[0] == "Japan national football team"
  # 6 * 0.1 + 0.1 against 5 * 0.1, once the form itself is unknown.
  assert _names("japan") == ["Japan", "Japan national football team"]


def test_probabilities_sum_to_one_and_ties_go_by_name():
  found = candidates.candidates(_INDEX, "Georgia")
  assert [e for e, _ in found] == ["Georgia (U.S. state)", "Georgia (country)"]
  assert sum(p for _, p in found) == pytest.approx(1)
  assert _names("Georgia", top=1) == ["Georgia (U.S. state)"]
  assert candidates.candidates(_INDEX, "Georgia", 1)[0][1] == pytest.approx(1)


def test_forms_and_titles_are_fallbacks():
  assert _names("U.S.") == ["United States"]
  assert _names("United States's") == ["United States"]
  assert _names("paris") == ["Paris", "Paris, Texas"]
  assert _names("Atlantis") == []


def test_a_part_of_a_longer_mention_is_the_same():
  document = _document(("Nardelli", None), ("Bob Nardelli", None))
  first, second = candidates.document_candidates(_INDEX, document)
  assert first == second
  assert first[0][0] == "Robert Nardelli"
  (alone,) = candidates.document_candidates(_INDEX, _document(("bob", None)))
  assert alone == []


def test_a_document_does_not_vote_for_itself():
  team = "Japan national football team"
  document = _document(*[("JAPAN", team)] * 3)
  (found, *_) = candidates.document_candidates(_INDEX, document, leave_out=True)
  # Of 8 links of the folded form 6 + 2 stay, none of the exact one.
  assert found[0][0] == "Japan"
  assert found[1] == (team, pytest.approx(0.2 / (0.2 + 0.6 + 0.1)))
  only = _document(("Bob Nardelli", "Robert Nardelli"))
  assert candidates.document_candidates(_INDEX, only, leave_out=True) == [[]]


def test_other_forms_in_the_document_leave_the_exact_counts_alone():
  here = _document(("Germany", "Germany"), ("germany", "Germany"))
  others = [("Germany", "Germany"), ("Germany", "German team")]
  links = [*((m.surface, m.entity) for m in here.mentions), *others]
  index = candidates.build_index(priors.count_links(links))
  alone = candidates.build_index(priors.count_links(others))
  found = candidates.document_candidates(index, here, leave_out=True)
  expected = candidates.document_candidates(alone, here)
  for mine, true in zip(found, expected):
    assert dict(mine) == pytest.approx(dict(true))
  assert dict(found[0])["Germany"] == pytest.approx(1.2 / 2.3)


def test_a_candidate_that_is_given_twice_counts_once():
  given = (("A", 0.3), ("B", 0.4), ("A", 0.2))
  mention = LinkedMention(0, 1, "Japan", "A", given)
  document = LinkedDocument("d", ("Japan",), (mention,))
  (found,) = candidates.document_candidates(_INDEX, document)
  assert found == [("A", 0.5), ("B", 0.4)]


def test_candidates_of_the_file_come_first():
  given = (("B", 0.2), ("A", 0.2), ("C", 0.6))
  mention = LinkedMention(0, 1, "Japan", "A", given)
  document = LinkedDocument("d", ("Japan",), (mention,))
  (found,) = candidates.document_candidates(_INDEX, document, 2)
  assert found == [("C", 0.6), ("A", 0.2)]


def test_recall_counts_what_is_missing():
  document = _document(
    ("Japan", "Japan"), ("Japan", "Elsewhere"), ("Atlantis", "Atlantis"),
    ("Japan", None),
  )  # fmt: skip
  lists = candidates.document_candidates(_INDEX, document)
  found = candidates.recall([(document, lists)])
  assert found == candidates.Recall(mentions=3, without=1, covered=1)
  assert found.share == pytest.approx(1 / 3)


def test_no_candidates_wanted_is_an_error():
  with pytest.raises(errors.InputError, match="top"):
    candidates.candidates(_INDEX, "Japan", 0)
