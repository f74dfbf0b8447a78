"""Rules: both notations, arities, names and bad lines."""

import random

import pytest

from repr_jax import errors
from repr_jax.data import rules, triples


@pytest.mark.parametrize(
  ("text", "kind", "arguments"),
  [
    ("RevImp\thypernym\thyponym", "RevImp", "hypernym hyponym"),
    ("RevImp(hypernym, hyponym)", "RevImp", "hypernym hyponym"),
    (' TypeImp ( r ,"a,b", s)', "TypeImp", "r a,b s"),
    ("r(x,y)==>s(x,y)", "RelImp", "r s"),
    ("r(y,x)==>s(y,x)", "RelImp", "r s"),
    ("_r(x,y) ==> _s(y,x)", "RevImp", "_r _s"),
    ("r(x,y)==>r(y,x)", "Symm", "r"),
    ("r(x,e)==>s(x,f)", "Entail_B", "r e s f"),
    ("r(e,y)==>s(f,y)", "Entail_A", "r e s f"),
    ("r(x,y)&s(y,e)==>t(x,f)", "PropTrans", "r s e t f"),
    ("s(y,e) & r(x,y) ==> t(x,f)", "PropTrans", "r s e t f"),
    ("r(x,y)==>s(x,Person)", "TypeImp", "r Person s"),
    ('"r"(x,y)==>r(y,x)', "Symm", "r"),
    ("r(x,y)==>in(x,A_(b))", "TypeImp", "r A_(b) in"),
    ("r(x,y)&s(y,AT&T)==>t(x,f)", "PropTrans", "r s AT&T t f"),
    ('r(x,y)==>s(x,"y")', "TypeImp", "r y s"),
    ('r(x,y)&s(y,":)&")==>t(x,"a,b")', "PropTrans", "r s :)& t a,b"),
  ],
)
def test_notations(text, kind, arguments):
  assert rules.parse_rule(text) == rules.Rule(kind, tuple(arguments.split()))


def test_names_with_blanks_and_commas():
  text = 'is in(x,New York, NY)==>"lives (in)"(x, New York State )'
  got = rules.parse_rule(text)
  names = ("is in", "New York, NY", "lives (in)", "New York State")
  assert got == rules.Rule("Entail_B", names)
  # What is known decides between two readings, and about odd brackets.
  text = "r(x,a,y)==>s(x,b,y)"
  for kind, names in (
    ("Entail_B", ["a,y", "b,y"]),
    ("Entail_A", ["x,a", "x,b"]),
  ):
    got = rules.parse_rule(text, ["r", "s"], names)
    assert got == rules.Rule(kind, ("r", names[0], "s", names[1]))
  text = "r(x,y)==>s(x,:))"
  assert rules.parse_rule(text, ["r", "s"], [":)"]).entities == (":)",)
  with pytest.raises(errors.InputError, match="expected relation"):
    rules.parse_rule(text)


def test_origin_is_told_and_not_compared(tmp_path):
  path = tmp_path / "rules"
  path.write_text("\nSymm\tr\n")
  (got,) = rules.read_rules(path)
  assert got == rules.Rule("Symm", ("r",))
  assert str(got) == f"Symm(r) ({path}:2)"


@pytest.mark.parametrize(
  "text",
  [
    "RevImp\ta",
    "RevImp a b",
    "Symm\ta\tb",
    "Revimp\ta\tb",
    "RelImp\ta\t",
    "r(x,y)==>",
    "==>s(x,y)",
    "r(x)==>s(x,y)",
    "r(x,y)==>s(x,z)",
    "r(x,x)==>s(x,x)",
    "r(x,y)==>s(e,y)",
    "r(x,y)==>s(e,f)",
    "r(e,f)==>s(e,f)",
    "r(x,e)==>s(f,x)",
    "r(x,y)&s(x,e)==>t(x,f)",
    "r(x,y)&s(z,y)==>t(x,z)",
    "r(x,x)&s(x,e)==>t(x,f)",
    "r(x,y)&s(y,e)&u(x,y)==>t(x,f)",
  ],
)
def test_what_is_no_rule(tmp_path, text):
  path = tmp_path / "rules"
  path.write_text(f"# comment\n\nSymm\tr\n{text}\n")
  with pytest.raises(errors.InputError) as caught:
    rules.read_rules(path)
  assert caught.value.line == 4


def test_names_are_checked_with_a_suggestion(tmp_path):
  path = tmp_path / "rules"
  path.write_text("TypeImp\tborn_in\tPersn\tis_a\n")
  assert rules.read_rules(path)[0].relations == ("born_in", "is_a")
  assert rules.read_rules(path)[0].entities == ("Persn",)
  with pytest.raises(errors.InputError, match=r"entity 'Persn'.*'Person'"):
    rules.read_rules(path, ["born_in", "is_a"], ["Person", "Place"])
  with pytest.raises(errors.InputError, match=r"relation 'is_a'.*'isa'"):
    rules.read_rules(path, ["born_in", "isa"], ["Persn"])
  with pytest.raises(errors.InputError, match=r"Revmp.*did you mean 'RevImp'"):
    rules.Rule("Revmp", ("a", "b"))


def test_repeated_rule(tmp_path):
  path = tmp_path / "rules"
  path.write_text("RevImp\tr\ts\nr(x,y)==>s(y,x)\n")
  with pytest.raises(errors.InputError, match="line 1") as caught:
    rules.read_rules(path)
  assert caught.value.line == 2


def test_round_trip(tmp_path):
  rng = random.Random(0)
  before = [
    rules.Rule(kind, [f"{c}{rng.randrange(99)} b" for c in kind.letters])
    for kind in rules.KINDS.values()
  ]
  rules.write_rules(tmp_path / "rules", before)
  assert rules.read_rules(tmp_path / "rules") == before
  with pytest.raises(errors.InputError):
    rules.write_rules(tmp_path / "bad", [rules.Rule("Symm", ("a\tb",))])
  assert not (tmp_path / "bad").exists()


def test_rules_of_wn18(shared_data):
  folder = shared_data / "wn18"
  splits = triples.read_splits(
    folder / "train.txt.gz", folder / "valid.txt", folder / "test.txt"
  )
  assert [len(part) for part in splits[:3]] == [141_442, 5_000, 5_000]
  assert len(splits.train.entities) == 40_943
  assert len(splits.unseen_entities) == len(splits.unseen_relations) == 0
  found = rules.read_rules(folder / "rules.tsv", splits.train.relations)
  assert [rule.kind.name for rule in found] == ["RevImp"] * 14
