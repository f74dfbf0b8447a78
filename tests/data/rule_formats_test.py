"""Rules as other programs write them."""

import os
import pathlib

import pytest

from repr_jax import errors
from repr_jax.data import rule_formats
from repr_jax.data.rules import Rule

_AMIE = """Loading files...
Rule\tHead Coverage\tStd Confidence\tPCA Confidence\tPositive Examples
?b  r1  ?a   => ?a  r2  ?b\t0.1\t0.8\t0.9\t10
?a  r1  ?b   => ?a  r2  ?b\t0.1\t0.7\t0.9\t10
?a  r1  ?h  ?h  r2  ?b   => ?a  r3  ?b\t0.1\t0.6\t0.9\t10
?a  r1  ?h  ?h  r2  ?c  ?c  r1  ?b   => ?a  r3  ?b\t0.1\t0.6\t0.9\t10
Mining done in 3 s
"""
_ANYBURL = """14\t11\t0.78\tr2(X,Y) <= r1(Y,X)
14\t11\t0.5\tr2(X,e,(1)) <= r1(X,f)
14\t11\t0.5\tr2(e,Y) <= r1(f,Y)
14\t11\t0.5\tr2(X,e) <= r1(X,A)
14\t11\t0.5\tr2(X,e) <=\x20
14\t11\t0.5\tr1(X,Y) <= r1(Y,X)
14\t11\t0.5\tr2(X,e) <= r1(X,A), r1(A,f)
14\t11\t0.5\tr2(X,Y) <= r1(X,A), r1(B,A), r1(B,Y)
14\t11\t0.5\tr2(X,e) <= r1(f,X)
"""
_CONS = "-r1,r2\t0.9\nr1,r2\t1\nr1,r1\t1\n-r1,r1\t.8\n"


def _read(tmp_path, text, **changes):
  path = tmp_path / "rules"
  path.write_text(text)
  form = rule_formats.detect_format(path)
  return form, rule_formats.read_foreign(path, form, **changes)


def test_amie(tmp_path):
  form, read = _read(tmp_path, _AMIE)
  assert form == "amie"
  assert read.rules[:2] == [
    Rule("RevImp", ("r1", "r2")), Rule("RelImp", ("r1", "r2"))
  ]  # fmt: skip
  assert read.rules[2] == Rule("Path", ("r1", "r2", "r3"))
  assert read.skipped == {"a body of 3 atoms": 1}


def test_anyburl(tmp_path):
  form, read = _read(tmp_path, _ANYBURL)
  assert form == "anyburl"
  assert read.rules == [
    Rule("RevImp", ("r1", "r2")),
    Rule("Entail_B", ("r1", "f", "r2", "e,(1)")),
    Rule("Entail_A", ("r1", "f", "r2", "e")),
    Rule("TypeImp", ("r1", "e", "r2")),
    Rule("Symm", ("r1",)),
    Rule("PropTrans", ("r1", "r1", "f", "r2", "e")),
  ]
  assert read.skipped == {
    "no body": 1,
    "a body of 3 atoms": 1,
    "a body of one atom, of another shape with constants": 1,
  }


def test_cons(tmp_path):
  form, read = _read(tmp_path, _CONS, min_confidence=0.85)
  assert form == "cons"
  assert read.rules == [
    Rule("RevImp", ("r1", "r2")), Rule("RelImp", ("r1", "r2"))
  ]  # fmt: skip
  assert read.skipped == {
    "says nothing: its head is in its body": 1,
    "confidence below the least": 1,
  }


def test_unknown_names_are_counted(tmp_path):
  _, read = _read(tmp_path, _CONS, relations={"r2"})
  assert read.rules == [] and read.skipped["names an unknown relation"] == 4
  _, read = _read(tmp_path, _ANYBURL, entities={"f"})
  assert read.skipped["names an unknown entity"] >= 3


@pytest.mark.parametrize(
  ("form", "text", "message"),
  [
    ("cons", "r1,r2\tmuch\n", "rules:1: expected a number"),
    ("cons", "r1,r2\t.5\nr1\t.5\n", "rules:2: expected r,s"),
    ("anyburl", "1\t2\t.5\tr(X,Y)\n", "rules:1: expected head <= body"),
    ("anyburl", "1\t2\n", "rules:1: expected 4 tab-separated columns"),
    ("anyburl", "1\t2\t.5\tr(X,Y) <= s\n", "rules:1: expected relation"),
    ("amie", "?a  r   => ?a  s  ?b\t1\t1\t1\n", "rules:1: expected three"),
    ("amie", "nothing\n", "holds no rules as amie"),
    ("prolog", "", "unknown format"),
  ],
)
def test_bad_lines_are_named(tmp_path, form, text, message):
  path = tmp_path / "rules"
  path.write_text(text)
  with pytest.raises(errors.InputError, match=message):
    rule_formats.read_foreign(path, form)


def test_files_of_our_own_form_are_not_foreign(tmp_path):
  path = tmp_path / "rules"
  path.write_text("RelImp\tr\ts\nr(x,y)==>s(y,x)\n")
  assert rule_formats.detect_format(path) is None


def test_samples():
  root = os.environ.get("REPR_JAX_DATA")
  folder = pathlib.Path(root or "/nonexistent") / "mined_rules"
  if not folder.exists():
    pytest.skip("REPR_JAX_DATA has no mined_rules")
  for path in sorted(folder.iterdir()):
    form = rule_formats.detect_format(path)
    assert form == path.name.split("_")[-1].split(".")[0] or form in path.name
    read = rule_formats.read_foreign(path, form)
    assert len(read.rules) + sum(read.skipped.values()) == {
      "amie_codex_s.tsv": 26, "amie_fb15k.txt": 636, "wn18_cons.txt": 17,
      "anyburl_fb15k237.txt": 1287, "anyburl_wn18rr.txt": 149,
      "db100k_cons.txt": 56, "fb15k_cons.txt": 535,
    }[path.name], path  # fmt: skip
