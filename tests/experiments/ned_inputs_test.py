"""Files of linked documents as flags name them: names and parts."""

import pytest

from experiments.ned import data, inputs
from experiments.ned.config import Config
from repr_jax.errors import InputError


def test_a_path_that_exists_as_it_stands_wins(tmp_path):
  (tmp_path / "x=y").mkdir()
  for name in ("x=y/a.tsv", "b#train.tsv", "b.tsv"):
    (tmp_path / name).write_text("")

  def parse(entry):
    name, path, part = inputs.parse(entry, tmp_path, "tests")
    return name, str(path.relative_to(tmp_path)), part

  assert parse("x=y/a.tsv") == ("a", "x=y/a.tsv", None)
  assert parse("N=x=y/a.tsv#testa") == ("N", "x=y/a.tsv", "testa")
  assert parse("b#train.tsv") == ("b#train", "b#train.tsv", None)
  assert parse("b.tsv#testb") == ("b#testb", "b.tsv", "testb")
  assert parse("N=none.tsv#train") == ("N", "none.tsv", "train")
  with pytest.raises(InputError, match="--tests: there is no part 'test'"):
    parse("b.tsv#test")


def test_parts_of_one_table(tmp_path):
  path = tmp_path / "aida.tsv"
  names = [*(f"{i} X" for i in range(1, 7)), "7testa X", "8testb X", "9testb X"]
  lines = []
  for number, name in enumerate(names):
    entity = ("Paris", "Paris_Hilton")[number % 2]
    lines += [f"-DOCSTART- ({name})", "in", f"Paris\tB\tParis\t{entity}", ""]
  path.write_text("\n".join(lines))
  options = {part: (f"{path}#{part}",) for part in ("train", "testa", "testb")}
  found = data.open_corpus(
    Config(train=options["train"], validation=options["testa"],
            tests=options["testb"])
  )  # fmt: skip
  assert [d.id for d in found.train.documents] == names[:6]
  assert [d.id for d in found.validation.documents] == names[6:7]
  assert [d.id for d in found.tests["aida#testb"].documents] == names[7:]
  for train, tests in ((str(path), str(path)), (str(path), f"{path}#testb")):
    with pytest.raises(InputError, match=r"both name this file.*PATH#train"):
      data.open_corpus(Config(train=[train], tests=[tests]))
  other = tmp_path / "other.tsv"
  other.write_text(path.read_text())
  with pytest.raises(InputError, match="parts testa and train; name those"):
    data.open_corpus(Config(train=[str(path)], tests=[str(other)]))
  path.write_text("\n".join(lines[:4]))
  with pytest.raises(InputError, match="has no document of testb"):
    data.open_corpus(Config(train=options["train"], tests=options["testb"]))
