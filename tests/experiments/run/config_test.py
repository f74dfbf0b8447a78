"""Configurations: flags from fields, values checked, unread flags refused."""

import dataclasses
import functools
import re
import types

import killing
import pytest
from absl import flags

from experiments.nvse.config import Config as NvseConfig
from experiments.run import config
from repr_jax.errors import InputError


@dataclasses.dataclass(frozen=True)
class Config:
  """A configuration of each kind of field."""

  trainer: str = config.flag("pairs", "Trainer.", choices=("pairs", "many"))
  rate: float = config.flag(0.1, "Step size.", above=0)
  count: int = config.flag(
    3, "How many.", minimum=1, maximum=9, only={"trainer": "many"}
  )
  sizes: tuple[int, ...] = config.flag((1, 2), "Sizes.", minimum=1)
  name: str | None = config.flag(None, "A name.")
  quick: bool = config.flag(False, "Quickly.", only={"trainer": ("pairs",)})
  parts: tuple[str, ...] = config.flag(
    ("full", "sub"), "Parts.", choices=("full", "sub")
  )
  bound: float = config.flag(0.5, "A bound.", only={"parts": "full"})
  files: tuple[str, ...] = config.flag((), "Files.")
  layout: str = config.flag("plain", "Layout.", only={"files": config.GIVEN})
  inner: int = 7


@pytest.fixture
def parse(monkeypatch):
  """Parses a command line and builds the configuration."""
  values = flags.FlagValues()
  monkeypatch.setattr(config.flags, "FLAGS", values)
  for kind in ("string", "integer", "float", "bool", "list", "enum"):
    define = getattr(flags, f"DEFINE_{kind}")

    def defined(*arguments, _define=define, **more):
      return _define(*arguments, flag_values=values, **more)

    monkeypatch.setattr(config.flags, f"DEFINE_{kind}", defined)
  config.define(Config)

  def build(*arguments, **fixed):
    values.unparse_flags()
    values(["program", *arguments])
    return config.from_flags(Config, **fixed)

  return build


def test_defaults_and_values_have_the_types_of_the_fields(parse):
  assert parse() == Config()
  given = parse(
    "--trainer=many", "--rate=2", "--count=4", "--sizes=5,6", "--name=x"
  )
  assert given == Config("many", 2.0, 4, (5, 6), "x")
  assert isinstance(given.rate, float) and parse(inner=8).inner == 8


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    (["--rate=0"], "--rate=0.0: give more than 0"),
    (["--trainer=many", "--count=0"], "--count=0: give 1 or more"),
    (["--trainer=many", "--count=10"], "--count=10: give 9 or less"),
    (["--sizes=1,0"], "--sizes=0: give 1 or more"),
    (["--sizes=1,x"], "'x' is not a whole number"),
    (["--parts=sub,all"], "'all' is not one of full, sub"),
    (["--count=3"], "--count is not read with --trainer=pairs"),
    (["--trainer=many", "--quick"], "--quick is not read with --trainer=many"),
    (["--parts=sub", "--bound=1"], "--bound is not read with --parts=sub"),
    (["--layout=x"], "--layout is not read without --files"),
  ],
)
def test_a_flag_that_cannot_be_used_is_refused_by_name(
  parse, arguments, message
):
  with pytest.raises(InputError, match=message):
    parse(*arguments)


def test_a_tuple_reads_a_flag_where_one_of_its_elements_does(parse):
  assert parse("--bound=1").bound == 1.0
  assert parse("--files=a", "--layout=x").layout == "x"
  assert config.unread(parse("--parts=sub"), "bound") is not None
  assert config.unread(parse("--parts=full"), "bound") is None


def test_the_help_names_the_modes():
  @dataclasses.dataclass(frozen=True)
  class Modes:
    a: str = config.flag("x", "", choices=("x", "y", "z"))
    b: bool = config.flag(True, "")

  fields = {field.name: field for field in dataclasses.fields(Modes)}

  def told(only):
    return config._only_text(only, fields)

  assert told({"a": "x", "b": True}) == " Only with --a=x and --b=true."
  assert told({"a": ("y", "z")}) == " Only with --a=y or z."
  assert told({"a": ("x", "y")}) == " Not with --a=z."
  both = " Only with --b=true. Not with --a=z."
  assert told({"a": ("x", "y"), "b": True}) == both
  assert told({"a": ("x", "y", "z")}) == " Only with --a=x or y or z."
  assert told({}) == ""


def _helps(kind, monkeypatch):
  """The help of each flag of `kind`, defined apart from those of programs."""
  values = flags.FlagValues()
  own = {
    name: functools.partial(getattr(flags, name), flag_values=values)
    for name in dir(flags)
    if name.startswith("DEFINE_")
  }
  own["FLAGS"] = values
  monkeypatch.setattr(config, "flags", types.SimpleNamespace(**own))
  config.define(kind)
  return {name: values[name].help for name in values}


def test_the_help_names_a_mode_once_that_most_flags_are_not_read_in(
  monkeypatch,
):
  def one():
    return config.flag(1, "One.", only={"mode": "fit"})

  @dataclasses.dataclass(frozen=True)
  class Program:
    mode: str = config.flag("fit", "Mode.", choices=("fit", "ask"))
    most_a: int = one()
    most_b: int = one()
    most_c: int = one()
    most_d: int = one()
    asked: int = config.flag(1, "Asked.", only={"mode": "ask"})
    always: int = config.flag(1, "Always.")

  told = _helps(Program, monkeypatch)
  words = "Flags whose help does not name --mode are not read with --mode=ask;"
  assert words in told["mode"]
  assert {told[f"most_{x}"] for x in "abcd"} == {"One."}
  assert told["asked"] == "Asked. Only with --mode=ask."
  assert told["always"] == "Always. With any --mode."


def test_the_help_names_a_flag_once_without_which_many_flags_are_read(
  monkeypatch,
):
  def own(**other):
    return config.flag(1, "Own.", only={"model": None, **other})

  @dataclasses.dataclass(frozen=True)
  class Program:
    mode: str = config.flag("fit", "Mode.", choices=("fit", "ask", "b", "c"))
    model: str | None = config.flag(None, "Model.", only={"mode": "ask"})
    own_a: int = own()
    own_b: int = own(scale="log")
    own_c: int = own(mode="ask")
    own_d: int = own()
    asked: int = config.flag(1, "Asked.", only={"mode": ("ask", "b", "c")})
    scale: str = config.flag("log", "Scale.", choices=("log", "one"))

  told = _helps(Program, monkeypatch)
  words = "Flags whose help names neither --mode nor --model are not read with"
  assert f" {words} --model; --preset," in told["model"]
  assert told["own_a"] == told["own_d"] == "Own."
  assert told["own_b"] == "Own. Not with --scale=one."
  assert told["own_c"] == "Own. Only with no --model and --mode=ask."
  assert told["asked"] == "Asked. Not with --mode=fit."
  assert told["scale"] == "<log|one>: Scale. Also with --model."


def test_the_help_of_nvse_tells_once_what_a_trained_model_does_not_read():
  printed = killing.call("experiments.nvse", "--help").stdout
  _, *parts = re.split(r"\n  --(?:\[no\])?(\w+): ", printed)
  unnamed = {
    name
    for name, told in zip(parts[::2], parts[1::2])
    if "--mode" not in told and "--model" not in told
  }
  asked = NvseConfig(mode="query", model="exported")
  # The program itself refuses --log_to where a model is given.
  others = {"mode", "log_to", "preset", "seed", "workdir"}
  assert others <= unnamed
  read = {x for x in unnamed - others if not config.unread(asked, x)}
  assert len(unnamed) > 40 and not read
  text = " ".join(printed.split())
  assert text.count("no --model") == 1  # --lsa_plain, which names --mode
  assert "names neither --mode nor --model" in text
  assert "to rank by. " in text and text.count("Also with --model.") == 5


def test_values_by_name_are_converted_and_checked():
  built = config.from_values(Config, {"sizes": ["3"], "rate": "0.5"})
  assert built.sizes == (3,) and built.rate == 0.5
  with pytest.raises(InputError, match="give more than 0"):
    config.from_values(Config, {"rate": -1})


def test_a_configuration_comes_from_all_flags_of_a_program():
  values = {**dataclasses.asdict(Config()), "workdir": "x", "sizes": ["4"]}
  assert config.from_mapping(Config, values) == Config(sizes=(4,))


def test_an_export_refuses_settings_of_systems_that_it_does_not_hold():
  export = NvseConfig(mode="export")
  fitted = {"lsa_rank", "gcca_ridge", "setexpan_samples"}
  assert all(config.unread(export, name) for name in fitted)
  assert not config.unread(export, "word2vecf_dim")
