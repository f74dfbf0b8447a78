"""Documents in the formats of AIDA and of Ganea and Hofmann."""

import pytest

from repr_jax import errors
from repr_jax.data.documents import linked_documents, linked_formats
from repr_jax.data.documents.linked_documents import LinkedMention

_AIDA = """-DOCSTART- (1 EU)
EU\tB\tEU\t--NME--
rejects
German\tB\tGerman\tGermany\thttp://en.wikipedia.org/wiki/Germany\t11867\t/m/0345h
.

Peter\tB\tPeter Blackburn\tPeter_Blackburn
Blackburn\tI\tPeter Blackburn\tPeter_Blackburn
-DOCSTART- (2 Rare)
BEIJING\tB\tBEIJING\tX\thttp://en.wikipedia.org/wiki/S%C3%A3o_Paulo\t1\t
BEIJING\tB\tBEIJING\tX\thttp://en.wikipedia.org/wiki/S%C3%A3o_Paulo\t1\t
"""


def test_aida(tmp_path):
  (tmp_path / "aida.tsv").write_text(_AIDA)
  first, second = linked_formats.read_aida(tmp_path / "aida.tsv")
  assert first.id == "1 EU"
  assert first.tokens == ("EU", "rejects", "German", ".", "Peter", "Blackburn")
  assert first.mentions == (
    LinkedMention(0, 1, "EU", None),
    LinkedMention(2, 3, "German", "Germany"),
    LinkedMention(4, 6, "Peter Blackburn", "Peter Blackburn"),
  )
  assert [m.entity for m in second.mentions] == ["São Paulo"] * 2
  assert [m.start for m in second.mentions] == [0, 1]


@pytest.mark.parametrize(
  ("name", "entity"),
  [
    (r"S\u0026P_500", "S&P 500"),
    (r"Ren\u00e9_\u0028x\u0029", "René (x)"),
    (r"\ud83d\ude00", "\U0001f600"),
    (r"A\ud83d", r"A\ud83d"),
    (r"A\u0000", r"A\u0000"),
  ],
)
def test_escapes_of_yago_are_read(tmp_path, name, entity):
  path = tmp_path / "aida.tsv"
  path.write_text(f"-DOCSTART- (1 A)\nx\tB\tx\t{name}\n")
  (found,) = linked_formats.read_aida(path)
  assert found.mentions[0].entity == entity


def test_parts_of_aida():
  names = ["1 EU", "947testa CRICKET", "1163testb SOCCER", "5 testa", "x"]
  assert [linked_formats.aida_part(name) for name in names] == [
    "train", "testa", "testb", "train", "train",
  ]  # fmt: skip


@pytest.mark.parametrize(
  ("text", "line", "message"),
  [
    ("word\n", 1, "before the first"),
    ("-DOCSTART- (1)\nx\tI\tx\tX\n", 2, "begun"),
    ("-DOCSTART- (1)\na\tB\ta\tA\nb\nx\tI\tx\tX\n", 4, "begun"),
    ("-DOCSTART- (1)\nx\tB\tx\n", 2, "expected"),
    ("-DOCSTART- (1)\nx\tQ\tx\tX\n", 2, "expected"),
    ("-DOCSTART- (1)\nx\tB\tx\t\n", 2, "no entity"),
  ],
)
def test_bad_aida_is_named(tmp_path, text, line, message):
  (tmp_path / "a.tsv").write_text(text)
  with pytest.raises(errors.InputError, match=f"a.tsv:{line}: ") as raised:
    list(linked_formats.read_aida(tmp_path / "a.tsv"))
  assert message in str(raised.value)


def _ganea(document, mention, left, right, candidates, gold):
  before = [document, document, mention, left, right, "CANDIDATES"]
  return "\t".join([*before, *candidates, "GT:", gold])


def test_ganea(tmp_path):
  lines = [
    _ganea("1", "EU", "EMPTYCTXT", "rejects call",
           ["9317,0.9,European_Union", "5,0.1,Eu, a place"],
           "0,9317,0.9,European_Union"),
    _ganea("1", "New York", "in", "EMPTYCTXT", ["EMPTYCAND"],
           "-1,645042,New York City"),
    _ganea("2", "x", "a", "b", ["5,0.1,X"], "-1"),
  ]  # fmt: skip
  (tmp_path / "g.csv").write_text("\n".join(lines) + "\n")
  first, second = linked_formats.read_ganea(tmp_path / "g.csv")
  assert first.mentions == (
    LinkedMention(0, 1, "EU", "European Union",
                  (("European Union", 0.9), ("Eu, a place", 0.1))),
    LinkedMention(4, 6, "New York", "New York City", ()),
  )  # fmt: skip
  around = linked_documents.context
  assert around(first, first.mentions[0], 9) == ("rejects", "call")
  assert around(first, first.mentions[1], 9) == ("in",)
  assert second.mentions[0].entity is None


def test_equal_candidates_of_ganea_are_added_up(tmp_path):
  line = _ganea("1", "eBay", "a", "b", ["1,0.5,eBay", "2,0.4,EBay", "3,0.1,X"],
                "1,1,0.5,eBay")  # fmt: skip
  (tmp_path / "g.csv").write_text(f"{line}\t\n")  # and a tab at the end
  (found,) = linked_formats.read_ganea(tmp_path / "g.csv")
  (mention,) = found.mentions
  assert mention.entity == "EBay"
  assert mention.candidates == (("EBay", pytest.approx(0.9)), ("X", 0.1))


@pytest.mark.parametrize(
  "line",
  [
    "a\tb",
    _ganea("1", "x", "a", "b", ["5;0.1;X"], "-1"),
    _ganea("1", "x", "a", "b", ["5,nan,X"], "-1"),
    _ganea("1", "x", "a", "b", ["5,0.1,X"], "7,5,0.1,X"),
    _ganea("1", "x", "a", "b", ["5,0.1,X"], "first"),
  ],
)
def test_bad_ganea_is_named(tmp_path, line):
  good = _ganea("1", "x", "a", "b", ["5,0.1,X"], "-1")
  (tmp_path / "g.csv").write_text(f"{good}\n{line}\n")
  with pytest.raises(errors.InputError, match=r"g\.csv:2: "):
    list(linked_formats.read_ganea(tmp_path / "g.csv"))
