"""Names in plain text."""

import pytest

from repr_jax.data.documents import mention_finder


def _names(text, **options):
  return [
    text[x.start : x.end] for x in mention_finder.find_mentions(text, **options)
  ]


@pytest.mark.parametrize(
  "text, names",
  [
    ("He met Franz Schubert there.", ["Franz Schubert"]),
    ("She read Ludwig van Beethoven's letters.", ["Ludwig van Beethoven"]),
    ("She joined the Bank of America in May.", ["Bank of America"]),
    ("The visit of Iraqi President Saddam Hussein ended.",
     ["Iraqi", "Saddam Hussein"]),
    ("They left the U.S. on Monday.", ["U.S."]),
    ("We asked Mr. J. Smith about AT&T.", ["J. Smith", "AT&T"]),
    ("He flew to New Zealand and Fiji.", ["New Zealand", "Fiji"]),
    ("It was in June that I left.", []),
    ("", []),
  ],
)  # fmt: skip
def test_names_are_found(text, names):
  assert _names(text) == names


def test_a_word_that_opens_a_sentence_needs_other_evidence():
  plain = "Rivers are long. The rivers run. We like rivers."
  assert _names(plain) == []
  named = "Rivers sings. We like Rivers."
  assert _names(named) == ["Rivers", "Rivers"]


def test_statistics_of_the_corpus_decide():
  text = "Storms came. He saw."
  cases = mention_finder.count_cases(["the storms and the storms"])
  assert _names(text, cases=cases) == []
  cases = mention_finder.count_cases(["the band Storms, and then Storms"])
  assert _names(text, cases=cases) == ["Storms"]


def test_a_short_form_takes_the_only_full_name_of_its_document():
  text = "They met Clara Schumann. Later they heard Schumann play."
  spans = mention_finder.find_mentions(text)
  assert [x.name for x in spans] == ["Clara Schumann"] * 2
  two = "We saw Clara Schumann, Robert Schumann and, later, Schumann."
  assert mention_finder.find_mentions(two)[-1].name == "Schumann"


def test_a_gazetteer_adds_names_and_goes_first():
  text = "The study of graph theory by Euler in Old Town Hall."
  names = _names(text, gazetteer=["graph theory", "Old Town"])
  assert names == ["graph theory", "Euler", "Old Town", "Hall"]
  assert _names("graphs theorys", gazetteer=["graph"]) == []


def test_spans_are_in_order_and_apart():
  text = "Anna Karenina met Boris in Saint Petersburg. THE END OF IT ALL HERE"
  spans = mention_finder.find_mentions(text, gazetteer=["Boris in Saint"])
  ends = [0]
  for span in spans:
    assert span.start >= ends[-1]
    ends.append(span.end)
