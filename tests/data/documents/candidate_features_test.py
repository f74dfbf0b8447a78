"""Features of candidates against values worked out by hand."""

import numpy as np
import pytest

from repr_jax.data.documents import candidate_features
from repr_jax.data.documents.candidate_files import Candidate, Document, Mention


def _document(entity="Bush (band)"):
  listed = (
    Candidate(1, "George W. Bush", 99, 9, ()),
    Candidate(2, "Bush (band)", 0, 0, ()),
    Candidate(3, "Bush, Texas", 0, 0, ()),
  )
  return Document(
    "d",
    "George W. Bush and Bush of Texas heard the band",
    (
      Mention(0, 14, "George W. Bush", "George W. Bush", listed[:1]),
      Mention(19, 23, "Bush", entity, listed),
    ),
  )


def _column(name, document=None, **settings):
  place = candidate_features.NAMES.index(name)
  document = document or _document()
  links = settings.pop("links", candidate_features.Links({}, {}))
  tables = candidate_features.document_features(
    document, links, settings.pop("popularity", {}), **settings
  )
  return tables[1][:, place]


@pytest.mark.parametrize(
  ("name", "values"),
  [
    ("log in-links", [np.log(100), 0, 0]),
    ("log share of in-links", np.log(np.array([100, 1, 1]) / 102)),
    ("most in-links", [1, 0, 0]),
    ("mention not in training", [1, 1, 1]),
    ("title is the mention", [0, 0, 0]),
    ("title without brackets is the mention", [0, 1, 0]),
    ("title up to the comma is the mention", [0, 1, 1]),
    ("has brackets", [0, 1, 0]),
    ("has a comma", [0, 0, 1]),
    ("words in brackets in the text", [0, 1, 0]),
    ("words after the comma in the text", [0, 0, 1]),
    ("other words of the title in the text", [2, 1, 1]),
    ("a longer mention is the title", [1, 0, 0]),
    ("there is a longer mention", [1, 1, 1]),
    ("one candidate", [0, 0, 0]),
  ],
)
def test_features_by_hand(name, values):
  np.testing.assert_allclose(_column(name), values, rtol=1e-6)


def test_training_links_give_a_smoothed_prior():
  links = candidate_features.count_links([_document(), _document()])
  got = _column("log p(e|m) of training links", links=links)
  share = np.array([100, 1, 1]) / 102
  expected = np.log((np.array([0, 2, 0]) + share) / 3)
  np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_a_document_left_out_of_the_links_sees_none_of_its_own():
  links = candidate_features.count_links([_document()])
  for name in candidate_features.NAMES:
    own = _column(name, links=links, without=links)
    np.testing.assert_allclose(own, _column(name))


def test_popularity_is_compared_with_the_most():
  got = _column("popularity against the most", popularity={"Bush, Texas": 4.0})
  np.testing.assert_allclose(got, [-4, -4, 0])


def test_gold_entities_are_not_features():
  for name in candidate_features.NAMES:
    np.testing.assert_allclose(_column(name), _column(name, _document(None)))


def test_each_feature_has_a_group_and_a_name_of_its_own():
  assert len(candidate_features.GROUPS) == len(set(candidate_features.NAMES))


def test_the_shape_of_a_title_replaces_the_mention():
  shape = candidate_features.title_shape
  assert shape("Spain", "Spain national team") == "* national team"
  assert shape("Spain", "Spain") == "*"
  assert shape("Spa", "Spain") == "spain"
