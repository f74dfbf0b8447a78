"""Plain text as a corpus of entities."""

import pytest

from repr_jax.data.documents import plain_text
from repr_jax.errors import InputError

_TEXTS = (
  "Clara Schumann played in Leipzig. Schumann was praised by Brahms.",
  "In Leipzig the young Brahms waited. He met Clara Schumann there.",
)


def test_a_folder_has_a_document_in_each_file(tmp_path):
  (tmp_path / "inner").mkdir()
  (tmp_path / "a.txt").write_text(_TEXTS[0])
  (tmp_path / "inner" / "b.txt").write_text(_TEXTS[1])
  (tmp_path / "c.md").write_text("Nothing Here")
  names = [name for name, _ in plain_text.read_texts(str(tmp_path))]
  assert names == ["a.txt", "inner/b.txt"]
  sentences = list(plain_text.read_sentences(str(tmp_path)))
  mentioned = [sorted(x[2] for x in s.mentions) for s in sentences]
  assert mentioned == [
    ["Clara Schumann", "Leipzig"],
    ["Brahms", "Clara Schumann"],
    ["Brahms", "Leipzig"],
    ["Clara Schumann"],
  ]
  for sentence in sentences:
    for start, end, entity in sentence.mentions:
      assert entity.endswith(" ".join(sentence.tokens[start:end]))


def test_a_file_has_a_document_on_each_line(tmp_path):
  path = tmp_path / "news.txt"
  path.write_text("\n".join((_TEXTS[0], "", _TEXTS[1])))
  assert [x for x, _ in plain_text.read_texts(str(path))] == [
    "news:1",
    "news:3",
  ]
  assert {s.doc for s in plain_text.read_sentences(str(path))} == {
    "news:1",
    "news:3",
  }


def test_paths_of_text_are_told_by_name(tmp_path):
  assert plain_text.is_text(str(tmp_path))
  assert plain_text.is_text("a.txt.gz")
  assert not plain_text.is_text("a.jsonl.gz")


def test_bad_input_is_named(tmp_path):
  with pytest.raises(InputError, match="no file called"):
    plain_text.text_files(str(tmp_path))
  path = tmp_path / "a.txt"
  path.write_text("nothing is named here\n")
  with pytest.raises(InputError, match=r"a\.txt.*no name is found"):
    list(plain_text.read_sentences(str(path)))
  path.write_text("\n")
  with pytest.raises(InputError, match=r"a\.txt.*has no text"):
    list(plain_text.read_sentences(str(path)))
  path.write_bytes(b"Bach \xff\n")
  with pytest.raises(InputError, match="UTF-8"):
    list(plain_text.read_sentences(str(path)))
  names = tmp_path / "names"
  names.write_text("Bach\n\nBach\n")
  with pytest.raises(InputError, match="line 1 already"):
    plain_text.read_gazetteer(str(names))
  names.write_text("\n")
  with pytest.raises(InputError, match="no name"):
    plain_text.read_gazetteer(str(names))
  names.write_text("counterpoint\n Bach\n")
  assert plain_text.read_gazetteer(str(names)) == ["counterpoint", "Bach"]


def test_a_folder_with_an_unreadable_file_is_refused(tmp_path):
  (tmp_path / "a.txt").write_text("Bach met Bach.")
  (tmp_path / "b.txt").symlink_to(tmp_path / "gone")
  with pytest.raises(InputError, match=r"b\.txt.*cannot be read"):
    list(plain_text.read_sentences(str(tmp_path)))
