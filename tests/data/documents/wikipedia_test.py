"""Dumps of Wikipedia: mentions are read, damage is named."""

import bz2
import importlib.util
import pathlib

import pytest

from repr_jax import errors
from repr_jax.data.documents import wikipedia
from repr_jax.data.entities import features

_PAGE = """  <page>
    <title>{title}</title>
    <ns>{ns}</ns>
    <id>1</id>{redirect}
    <revision><text xml:space="preserve">{text}</text></revision>
  </page>
"""


def _dump(*pages):
  body = "".join(
    _PAGE.format(
      title=title,
      ns=ns,
      redirect=f'\n<redirect title="{to}" />' if to else "",
      text=text.replace("&", "&amp;").replace("<", "&lt;"),
    )
    for title, ns, to, text in pages
  )
  space = "http://www.mediawiki.org/xml/export-0.10/"
  return f'<mediawiki xmlns="{space}">\n{body}</mediawiki>\n'.encode()


def test_mentions_of_a_dump(tmp_path):
  path = tmp_path / "dump.xml.bz2"
  path.write_bytes(
    bz2.compress(
      _dump(
        ("JSB", 0, "Johann Bach", "#REDIRECT [[Johann Bach]]"),
        ("Johann Bach", 0, "Bach (composer)", "#REDIRECT"),
        ("Round", 0, "Circle", "#REDIRECT"),
        ("Circle", 0, "Round", "#REDIRECT"),
        ("Talk:Fugue", 1, None, "[[JSB]] is talked about."),
        ("Bach (composer)", 0, None, "Bach wrote [[fugue]]s. Nothing here."),
        ("Fugue", 0, None, "The [[JSB|master]] of [[Round]] & more."),
      )
    )
  )
  assert wikipedia.read_redirects(path) == {
    "JSB": "Bach (composer)",
    "Johann Bach": "Bach (composer)",
  }
  bach, fugue = wikipedia.linked_sentences(path)
  assert bach.doc == "Bach (composer)"
  assert bach.tokens == ("Bach", "wrote", "fugues", ".")
  assert bach.mentions == ((0, 1, "Bach (composer)"), (2, 3, "Fugue"))
  assert fugue.mentions == ((1, 2, "Bach (composer)"), (3, 4, "Round"))
  pages = list(wikipedia.read_pages(path))
  assert [page.namespace for page in pages] == [0, 0, 0, 0, 1, 0, 0]
  assert pages[0].redirect == "Johann Bach" and pages[6].redirect is None


@pytest.mark.parametrize(
  "text",
  ["#REDIRECT [[johann_Bach]]", "\n#redirect: [[Johann Bach#Life|x]] {{R}}"],
)
def test_redirects_may_be_told_by_the_text_alone(tmp_path, text):
  path = tmp_path / "dump.xml"
  path.write_bytes(
    _dump(("JSB", 0, None, text), ("Fugue", 0, None, "By [[JSB|him]]."))
  )
  assert wikipedia.read_redirects(path) == {"JSB": "Johann Bach"}
  (found,) = wikipedia.linked_sentences(path, all_sentences=True)
  assert found.mentions == ((1, 2, "Johann Bach"),)


def test_damaged_dumps(tmp_path):
  good = _dump(*((f"P{i}", 0, None, "x [[y]]" * 50) for i in range(400)))
  lines = good.split(b"\n")
  # A page begins on the line before its title.
  untitled = next(i for i, x in enumerate(lines) if b"<title>P399<" in x)
  cases = {
    "empty": (b"", "not the XML", 1),
    "text": (b"plain text\n", "not the XML", 1),
    "cut": (b"\n".join(lines[:20]), "truncated", 20),
    "latin": (good.replace(b"P0", b"P\xe9"), "UTF-8", 3),
    "bz2": (bz2.compress(good)[:-30], "truncated", None),
    "other": (b"<html></html>", "no page", None),
    "untitled": (good.replace(b"<title>P399<", b"<title><"), "title", untitled),
    "namespace": (good.replace(b"<ns>0<", b"<ns>x<"), "namespace", 2),
  }
  for name, (content, words, line) in cases.items():
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(errors.InputError) as caught:
      list(wikipedia.linked_sentences(path))
    assert words in str(caught.value) and str(path) in str(caught.value)
    assert caught.value.line == line, name
  with pytest.raises(errors.InputError, match="no such file"):
    list(wikipedia.read_pages(tmp_path / "absent"))


def test_the_dump_that_comes_with_gensim():
  spec = importlib.util.find_spec("gensim")
  if spec is None or spec.origin is None:
    pytest.skip("gensim, which brings a dump, is not installed")
  folder = pathlib.Path(spec.origin).parent / "test" / "test_data"
  path = folder / "enwiki-table-markup.xml.bz2"
  assert len(list(wikipedia.read_pages(path))) == 5
  sentences = list(wikipedia.linked_sentences(path, {}))
  assert len(sentences) > 150
  tokens = [token for s in sentences for token in s.tokens]
  assert not {"{", "}", "[["} & set(tokens)
  assert sum(token == "|" for token in tokens) < len(tokens) / 1000
  table = features.build(sentences, drop_most_frequent=20)
  blocks = {feature.partition(":")[0] for feature in table.features}
  assert blocks == {"word", "doc", "link"}
  assert "Estonia" in table.rows
