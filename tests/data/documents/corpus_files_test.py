"""Forms of files are told by content; documents are read by sentence."""

import json

import pytest

from repr_jax.data.documents import corpus_files
from repr_jax.errors import InputError


def test_forms_are_told_by_content(tmp_path):
  path = tmp_path / "x"
  path.write_text('{"id": "a", "sentences": ["b"]}\n')
  assert corpus_files.form_of(str(path)) == "entities"
  path.write_text('{"tokens": ["a"], "mentions": []}\n')
  assert corpus_files.form_of(str(path)) == "sentences"
  path.write_text("<mediawiki>\n")
  assert corpus_files.form_of(str(path)) == "wikipedia"
  path.write_text("plain text\n")
  with pytest.raises(InputError, match="form"):
    corpus_files.form_of(str(path))


@pytest.mark.parametrize(
  ("record", "form"),
  [
    ({"doc_id": "d", "text": "a", "mentions": []}, "documents"),
    ({"text": "a", "unlinked_mentions": []}, "documents"),
    ({"text": "a", "mentions": [{"wikidata_id": "Q1"}]}, "documents"),
    ({"doc": "d", "mentions": [{"surface": "a"}]}, "documents"),
    ({"doc": "d", "text": "a", "mentions": []}, "sentences"),
    ({"doc": "d", "doc_id": 1, "text": "a", "mentions": []}, "sentences"),
    ({"doc_id": "d", "tokens": ["a"], "mentions": []}, "sentences"),
    ({"text": "a", "mentions": [{"entity": "b"}]}, "sentences"),
    ({"text": "a", "mentions": 3}, "sentences"),
  ],
)
def test_documents_are_told_by_their_first_record(record, form, tmp_path):
  path = tmp_path / "x"
  path.write_text(f"\n{json.dumps(record)}\n")
  assert corpus_files.form_of(str(path)) == form


def test_documents_are_read_by_their_sentences(tmp_path):
  path = tmp_path / "documents.jsonl"
  text = "Bach wrote fugues. Nobody came. Krebs wrote fugues."
  places = ((0, 4, "bach"), (32, 37, "krebs"))
  mentions = [
    {"start": a, "end": b, "wikipedia_title": name} for a, b, name in places
  ]
  record = {"doc_id": "d", "text": text, "mentions": mentions}
  path.write_text(json.dumps(record) + "\n")
  first, second = corpus_files.read_linked(str(path), "documents")
  assert first.tokens == ("Bach", "wrote", "fugues", ".")
  assert second.mentions == ((0, 1, "Krebs"),)
  table = tmp_path / "aida.tsv"
  table.write_text("-DOCSTART- (1 EU)\nGerman\tB\tGerman\tGermany\ncall\n")
  assert corpus_files.form_of(str(table)) == "documents"
  (sentence,) = corpus_files.read_linked(str(table), "documents")
  assert sentence.mentions == ((0, 1, "Germany"),)
