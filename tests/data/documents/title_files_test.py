"""Titles of further files."""

import json

import pytest

from repr_jax.data.documents import title_files
from repr_jax.data.documents.candidate_features import Links
from repr_jax.data.documents.entity_base import Entity
from repr_jax.errors import InputError


def test_articles_have_the_links_of_their_lines(tmp_path):
  path = tmp_path / "links.txt"
  path.write_text("Bonn\tto\tGermany\nRhine\tto\tGermany\nRhine\tto\tBonn\n\n")
  made = title_files.read_titles(path)
  assert made.entities == [
    Entity("Bonn", in_links=1, out_links=1, links=("Germany",)),
    Entity("Germany", in_links=2),
    Entity("Rhine", out_links=2, links=("Bonn", "Germany")),
  ]
  assert made.links == Links({}, {})


def test_links_of_documents_are_counted(tmp_path):
  path = tmp_path / "docs.jsonl"
  mentions = [
    {"start": 0, "end": 4, "wikipedia_title": "Bonn"},
    {"start": 8, "end": 12, "wikipedia_title": "Bonn_F.C."},
    {"start": 5, "end": 7},
  ]
  record = {"doc_id": "1", "text": "Bonn at Bonn", "mentions": mentions}
  path.write_text(json.dumps(record))
  made = title_files.read_titles(path)
  assert made.entities == [
    Entity("Bonn", in_links=1), Entity("Bonn F.C.", in_links=1),
  ]  # fmt: skip
  assert made.links.mentions["bonn"] == {"Bonn": 1, "Bonn F.C.": 1}
  joined = title_files.join_links(Links({"bonn": {"Bonn": 2}}, {}), made.links)
  assert joined.mentions["bonn"] == {"Bonn": 3, "Bonn F.C.": 1}
  assert joined.entities == made.links.entities


def test_a_dump_names_titles_links_and_aliases(tmp_path):
  def page(title, text, to=None):
    redirect = f'<redirect title="{to}" />' if to else ""
    return (
      f"<page><title>{title}</title><ns>0</ns>{redirect}"
      f"<revision><text>{text}</text></revision></page>"
    )

  pages = [
    page("Bonn", "Bonn lies on the [[Rhine River|river]] in [[Germany]]."),
    page("Rhine River", "", to="Rhine"),
    page("Rhine", "The Rhine flows by [[Bonn]]. It is in [[Germany]]."),
  ]
  path = tmp_path / "dump.xml"
  path.write_text(f"<mediawiki>{''.join(pages)}</mediawiki>")
  made = title_files.read_titles(path)
  assert made.entities == [
    Entity("Bonn", (), "", 1, 2, ("Germany", "Rhine")),
    Entity("Germany", in_links=2),
    Entity("Rhine", ("Rhine River",), "", 1, 2, ("Bonn", "Germany")),
  ]
  assert made.links.mentions["river"] == {"Rhine": 1}
  assert made.links.entities == {"Bonn": 1, "Germany": 2, "Rhine": 1}
  (known,) = title_files.join_entities([Entity("Rhine", ("Rhein",))], made)[:1]
  assert known == Entity("Rhine", ("Rhein", "Rhine River"))


def test_links_of_new_entities_are_scaled():
  known = [Entity("A", in_links=50, out_links=4), Entity("B", in_links=7)]
  more = title_files.Titles(
    [Entity("A", in_links=5, out_links=8), Entity("C", in_links=3)],
    Links({}, {}),
  )
  joined = title_files.join_entities(known, more)
  assert joined == [*known, Entity("C", in_links=30)]


@pytest.mark.parametrize("text", ["A\tB\n", "A\tto\t \n", "[]\n"])
def test_lines_of_another_form_are_refused(tmp_path, text):
  path = tmp_path / "links.txt"
  path.write_text("A\tto\tB\n" + text)
  with pytest.raises(InputError, match=r"links.txt:2: expected article"):
    title_files.read_titles(path)


@pytest.mark.parametrize("text", ["\n", '{"doc_id": "1", "text": "x"}\n'])
def test_a_file_without_titles_is_refused(tmp_path, text):
  path = tmp_path / "links.txt"
  path.write_text(text)
  with pytest.raises(InputError, match="names no title"):
    title_files.read_titles(path)
