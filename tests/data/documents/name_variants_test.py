"""Other forms of names."""

import pytest

from repr_jax.data.documents import name_variants


@pytest.mark.parametrize(
  "surface, form",
  [
    ("Exxon Mobil Corp.", "exxon mobil"),
    ("Exxon Mobil Corp.", "exxonmobil"),
    ("U.S. Congress", "united states congress"),
    ("W. Va", "west virginia"),
    ("Fla.", "florida"),
    ("Brazilians", "brazilian"),
    ("Munich, Germany", "munich"),
  ],
)
def test_forms_under_which_a_name_may_be_known(surface, form):
  assert form in name_variants.name_forms(surface)


def test_a_plain_name_has_no_other_form():
  assert name_variants.name_forms("Bonn") == []
  assert name_variants.name_forms("Inc.") == []


def test_acronyms_and_initials():
  assert name_variants.is_acronym("U.S.") and name_variants.is_acronym("WTO")
  for surface in ("Us", "A", "WTO talks", "TOOLONGX"):
    assert not name_variants.is_acronym(surface)
  assert name_variants.initials("Bank of the West") == "bw"
  assert name_variants.initials("Bonn") == ""
