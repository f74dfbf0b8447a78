"""Names by spaCy, which is not installed here: a stand-in takes its place."""

import sys
import types

import pytest

from repr_jax.data.documents import ner, plain_text
from repr_jax.errors import InputError


def _fake(models):
  def load(model):
    if model not in models:
      raise OSError(model)

    def pipeline(text):
      spans = []
      for word, label in (("bach", "PERSON"), ("1750", "DATE")):
        at = text.find(word)
        while at >= 0:
          spans.append(
            types.SimpleNamespace(
              start_char=at, end_char=at + len(word), label_=label
            )
          )
          at = text.find(word, at + 1)
      spans.sort(key=lambda x: x.start_char)
      return types.SimpleNamespace(ents=spans)

    return pipeline

  return types.SimpleNamespace(load=load)


def test_names_of_a_tagger_become_entities(monkeypatch, tmp_path):
  monkeypatch.setitem(sys.modules, "spacy", _fake(["small"]))
  path = tmp_path / "a.txt"
  path.write_text("here bach wrote. in 1750 bach died, says Wolff\n")
  tagger = ner.load_tagger("spacy:small")
  sentences = list(plain_text.read_sentences(str(path), tagger=tagger))
  names = {name for x in sentences for _, _, name in x.mentions}
  assert names == {"bach"}


def test_what_cannot_be_loaded_is_refused(monkeypatch):
  monkeypatch.setitem(sys.modules, "spacy", None)
  with pytest.raises(InputError, match="pip install spacy"):
    ner.load_tagger("spacy:small")
  monkeypatch.setitem(sys.modules, "spacy", _fake([]))
  with pytest.raises(InputError, match="spacy download small"):
    ner.load_tagger("spacy:small")
  for name in ("small", "spacy:", "stanza:en"):
    with pytest.raises(InputError, match="spacy:MODEL"):
      ner.load_tagger(name)
