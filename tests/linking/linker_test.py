"""A linker from documents: right answers, reasons that add up, refusals."""

import jax
import numpy as np
import pytest

from repr_jax import data, linking
from repr_jax.data.documents.linked_documents import make_document
from repr_jax.errors import InputError
from repr_jax.linking import linker

_TOPICS = {
  "player": "goal match team coach ball league",
  "senator": "vote law party election bill committee",
}


@pytest.fixture(scope="module")
def fitted():
  rng = np.random.default_rng(0)
  documents = []
  for number in range(40):
    topic = ("player", "senator")[number % 2]
    words = rng.choice(_TOPICS[topic].split(), 6).tolist()
    text = f"Smith {' '.join(words)} Jones"
    spans = [(0, 5, f"Smith ({topic})")]
    spans.append((len(text) - 5, len(text), f"Jones ({topic})"))
    documents.append(make_document(f"d{number}", text, spans))
  words = " ".join(_TOPICS.values()).split()
  vectors = data.Vectors(words, np.eye(len(words), dtype=np.float32))
  return linking.fit(documents, vectors, key=0, epochs=20)


@pytest.mark.parametrize("topic", _TOPICS)
def test_context_decides_and_reasons_add_up(fitted, topic):
  word = _TOPICS[topic].split()[1]
  text = f"Smith {word} Nobody {word} Jones"
  starts = [text.index(name) for name in ("Smith", "Nobody", "Jones")]
  smith, nobody, jones = fitted.link(
    text, [(starts[0], 5), (starts[1], starts[1] + 6), (starts[2], len(text))]
  )
  assert nobody == []
  assert smith[0].entity == f"Smith ({topic})"
  assert jones[0].entity == f"Jones ({topic})"
  for links in (smith, jones):
    assert len(links) == 2
    assert links[0].score > links[1].score
    assert links[0].context > links[1].context
    for link in links:
      parts = link.prior + link.context + link.coherence
      assert parts == pytest.approx(link.score, abs=1e-5)


def test_the_score_is_that_of_the_door(fitted):
  document = make_document("x", "Smith goal", [(0, 5, None)])
  (links,) = fitted.link(document)
  ids = [fitted.entities[f"Smith ({t})"] for t in ("player", "senator")]
  packed = linking.Packed(
    np.array([ids]),
    np.log(np.full((1, 2), 0.5, np.float32)),
    np.array([[fitted.words["goal"]]]),
    np.array([-1]),
  )
  answer = linking.disambiguate(
    fitted.config, fitted.params, fitted.tables, packed
  )
  scores = {x.entity: x.score for x in links}
  np.testing.assert_allclose(
    answer.scores[0],
    [scores["Smith (player)"], scores["Smith (senator)"]],
    rtol=1e-3,
  )


def test_a_document_may_have_more_mentions_than_the_widest_shape(fitted):
  count = linker._WIDTHS[-1] + 3
  text = "Smith goal " * count
  spans = [(11 * i, 11 * i + 5) for i in range(count)]
  answers = fitted.link(text, spans)
  assert [x[0].entity for x in answers] == ["Smith (player)"] * count


def test_documents_without_links_and_spans_outside_are_refused(fitted):
  vectors = data.Vectors(["a"], np.ones((1, 2), np.float32))
  empty = make_document("x", "Smith", [(0, 5, None)])
  with pytest.raises(InputError, match="no linked mention"):
    linking.fit([empty], vectors, key=jax.random.key(0))
  with pytest.raises(InputError, match="outside the text"):
    fitted.link("Smith", [(0, 9)])
  with pytest.raises(InputError, match="document must be a LinkedDocument"):
    fitted.link(None)


@pytest.mark.parametrize(
  "change", [{"keep": -1}, {"hidden": 0}, {"iterations": 1.5}, {"damping": 1.0}]
)
def test_numbers_that_no_model_has_are_named(change):
  (name,) = change
  with pytest.raises(InputError, match=f"{name} must"):
    linking.Config(**change)


_DOCUMENT = make_document("x", "Smith a", [(0, 5, "Smith")])


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"documents": ["Smith"]}, "document 0 must be a LinkedDocument"),
    ({"word_vectors": np.eye(2)}, "word_vectors must be a Vectors"),
    ({"word_vectors": data.Vectors(["A"], np.ones((1, 2)))}, "no word of the"),
    ({"word_vectors": data.Vectors([], np.ones((0, 2)))}, "no word of the"),
    ({"config": None}, "config must be a Config"),
    ({"optimizer": "adam"}, "optimizer must be a GradientTransformation"),
    ({"epochs": 1.5}, "epochs must be a whole number"),
    ({"top": 0}, "top must be a whole number, 1 or more"),
    ({"margin": float("nan")}, "margin must be finite"),
    ({"key": 0.5}, "key must be"),
  ],
)
def test_bad_input_is_named_before_training(change, message):
  vectors = data.Vectors(["a"], np.ones((1, 2), np.float32))
  given = {"documents": iter([_DOCUMENT]), "word_vectors": vectors, **change}
  with pytest.raises(InputError, match=message):
    linking.fit(**given)
