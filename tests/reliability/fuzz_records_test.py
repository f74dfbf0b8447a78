"""Readers of JSON lines and of XML, on damaged files: see `fuzz_cases`."""

import fuzz_cases
import pytest
from fuzz_cases import Reader

from repr_jax.data import entities
from repr_jax.data.documents import linked_documents, wikipedia
from repr_jax.data.entities import judged


def _named(names) -> None:
  for name in names:
    assert isinstance(name, str) and name.strip()
    name.encode()


def _check_sentences(sentences) -> None:
  for sentence in sentences:
    assert isinstance(sentence.doc, str)
    "".join((sentence.doc, *sentence.tokens)).encode()
    for start, end, entity in sentence.mentions:
      _named([entity])
      assert 0 <= start <= end <= len(sentence.tokens)


def _check_entities(found) -> None:
  for info, sentences in found:
    _named(info)
    _check_sentences(sentences)
    for sentence in sentences:
      assert any(entity == info.id for _, _, entity in sentence.mentions)
  assert len({info.id for info, _ in found}) == len(found)


def _check_documents(documents) -> None:
  for document in documents:
    "".join((document.id, *document.tokens)).encode()
    for mention in document.mentions:
      assert 0 <= mention.start <= mention.end <= len(document.tokens)
      mention.surface.encode()
      if mention.entity is not None:
        _named([mention.entity])


def _check_titles(titles) -> None:
  _named(titles)
  _named(titles.values())


def _check_judged(queries) -> None:
  for query in queries:
    _named(member.name for member in query.members)
    for member in query.members:
      _named(member.candidate_ids)
    for row in query.systems.values():
      _named(row)
    assert query.members and set(query.places) <= set(query.systems)
    assert all(place is None or place > 0 for place in query.places.values())
    "".join((query.qid, query.group, query.stratum, query.category)).encode()


def _read_dump(path):
  pages = list(wikipedia.read_pages(path))
  return pages, list(wikipedia.linked_sentences(path, all_sentences=True))


def _check_dump(result) -> None:
  pages, sentences = result
  _named(page.title for page in pages)
  assert all(isinstance(page.text, str) for page in pages)
  _check_sentences(sentences)


_SENTENCES = (
  '{"doc": "d1", "text": "Bach wrote fugues in Köthen.", "mentions": '
  '[{"start": 0, "end": 4, "entity": "bach"}, '
  '{"start": 21, "end": 27, "entity": 7}]}\n'
  '{"tokens": ["A", "fugue"], "mentions": [{"start": 1, "end": 1, '
  '"entity": "fugue"}]}\n'
).encode()
_ENTITIES = (
  b'{"id": "bach", "name": "J. S. Bach", "sentences": ["J. S. Bach wrote it", '
  b'{"text": "He wrote.", "mentions": []}]}\n'
  b'{"id": 8, "sentences": ["8 is even", "no name"]}\n'
)
_DOCUMENTS = (
  b'{"doc_id": "d1", "text": "Bach was born in Eisenach.", "mentions": '
  b'[{"start": 0, "end": 4, "surface": "Bach", "wikipedia_title": "Bach", '
  b'"wikidata_id": "Q1"}], "unlinked_mentions": [{"start": 17, "end": 25}]}\n'
  b'{"doc": 5, "mentions": [{"surface": "New York", "wikidata_id": "Q60"}, '
  b'{"surface": "it", "wikipedia_title": null, "entity": "x"}]}\n'
)
_JUDGED = (
  b'{"qid": 102, "stratum": "1", "n_entities": 2, "category": "Composers", '
  b'"entities": [{"name": "Bach", "abstract": "Bach was", "candidate_ids": '
  b'["e7"]}, {"name": "Zelenka"}], "group": 1, "systems": {"NVSE": ["e1", '
  b'"e9"], "BM25": ["e4"]}, "judgement": {"NVSE": 1, "BM25": null}}\n'
)
_DUMP = (
  '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/">\n'
  "<siteinfo><sitename>W</sitename></siteinfo>\n"
  "<page><title>Bach</title><ns>0</ns><id>3</id><revision><id>9</id>"
  "<text>'''Bach''' was a [[composer|musician]] of {{lang|de|Köthen}}.&lt;"
  "ref&gt;x&lt;/ref&gt; He wrote [[fugue]]s. == See also ==\n* [[X]]\n"
  "{| a\n| b\n|}\n&amp;nbsp; &lt;!-- c --&gt; [http://x y] [[File:A.jpg|Z]]\n"
  "</text></revision></page>\n"
  '<page><title>JSB</title><ns>0</ns><redirect title="Bach" />'
  "<revision><text>#REDIRECT [[Bach]]</text></revision></page>\n"
  "<page><title>Talk:Bach</title><ns>1</ns></page>\n</mediawiki>\n"
).encode()

_READERS = (
  Reader(
    "sentences",
    (_SENTENCES,),
    lambda path: list(entities.read_sentences(path)),
    _check_sentences,
    "json",
  ),
  Reader(
    "entities",
    (_ENTITIES,),
    lambda path: list(entities.read_entity_file(path)),
    _check_entities,
    "json",
  ),
  Reader(
    "documents",
    (_DOCUMENTS,),
    lambda path: list(linked_documents.read_documents(path)),
    _check_documents,
    "json",
  ),
  Reader(
    "titles",
    (_DOCUMENTS,),
    lambda path: linked_documents.read_titles([path]),
    _check_titles,
    "json",
  ),
  Reader(
    "judged queries",
    (_JUDGED,),
    judged.read_judged_queries,
    _check_judged,
    "json",
  ),
  Reader("Wikipedia", (_DUMP,), _read_dump, _check_dump, None),
)


@pytest.mark.counted
@pytest.mark.parametrize("reader", _READERS, ids=lambda reader: reader.name)
def test_a_damaged_file_is_refused_with_its_place(reader):
  fuzz_cases.check_mutated(reader)


@pytest.mark.counted
@pytest.mark.parametrize(
  "reader",
  [reader for reader in _READERS if reader.joint],
  ids=lambda reader: reader.name,
)
def test_a_nearly_valid_file_is_refused_with_its_place(reader):
  fuzz_cases.check_structured(reader)
