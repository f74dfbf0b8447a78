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


def test_words_that_open_a_sentence_are_judged_by_their_form():
  assert _names("Interviewed at home, she left. Recently it hurt.") == []
  text = "Top-seeded Muster won. Epidemics spread. They sat at the top."
  assert _names(text + " It was an epidemic.") == ["Muster"]
  assert _names("We flew Boeing jets. Boeing builds them.") == ["Boeing"] * 2


def test_unseen_openings_are_judged_by_words_of_the_same_ending():
  known = mention_finder.count_cases(
    ["they saw the station, a nation and no ration, by Albert and Herbert"]
  )
  assert _names("Inflation rose. Wiltbert fell.", cases=known) == ["Wiltbert"]
  two = mention_finder.count_cases(["they saw the station and a nation"])
  assert _names("Inflation rose.", cases=two) == ["Inflation"]


@pytest.mark.parametrize(
  ("text", "names"),
  [
    ("We saw Austrian Thomas Muster.", ["Austrian", "Thomas Muster"]),
    ("We saw Brian De Palma.", ["Brian De Palma"]),
    ("The British Oil Party is a party.", ["British Oil Party"]),
    ("We saw the American League.", ["American League"]),
    ("The Canadian Pacific Railway won.", ["Canadian Pacific Railway"]),
    ("The Belgian Grand Prix began.", ["Belgian Grand Prix"]),
    ("We saw Marian Wright Edelman.", ["Marian Wright Edelman"]),
  ],
)
def test_an_origin_before_a_person_is_a_name_of_its_own(text, names):
  assert _names(text) == names


def test_arabic_articles_go_on_with_a_name():
  text = "They met Abdul-Karim al-Kabariti in al-jazeera."
  assert _names(text) == ["Abdul-Karim al-Kabariti"]


def test_spans_of_months_and_numbers_are_no_names():
  assert _names("Fifteen fell in January-June. Hundreds left in May.") == []


def test_days_end_a_name_unless_they_belong_to_it():
  assert _names("The Cleveland Indians Wednesday won.") == ["Cleveland Indians"]
  assert _names("On Black Friday they wore black.") == ["Black Friday"]
  assert _names("We saw Theresa May.") == ["Theresa May"]


def test_capitalized_nouns_go_on_with_of():
  text = "She led the Movement of Socialist Democrats, a movement of old."
  assert _names(text) == ["Movement of Socialist Democrats"]
  text = "He left the Ministry of Trade and Industry for Peru and Chile."
  assert _names(text) == ["Ministry of Trade and Industry", "Peru", "Chile"]


def test_lines_in_capitals_hold_names_that_other_lines_know():
  text = "TORONTO BEATS CHICAGO AGAIN\nThey left Toronto for Chicago today."
  assert _names(text) == ["TORONTO", "CHICAGO", "Toronto", "Chicago"]


def test_titles_are_no_names():
  text = "The President met King Hussein and the Prince of Wales."
  assert _names(text) == ["Hussein", "Prince of Wales"]


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
