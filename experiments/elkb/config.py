"""The options of `experiments.elkb`, each declared once."""

import dataclasses
import functools

from absl import flags

from experiments.run import config, extension, progress
from repr_jax.data import rules as rule_files
from repr_jax.data.rule_kinds import RuleKind
from repr_jax.errors import InputError
from repr_jax.kb.condition_forms import RuleConfig
from repr_jax.kb.score_model import ScoreModel
from repr_jax.kb.score_models import MODELS, get_model, order_block, reciprocal

_LINK = {"task": "link"}
_MINE = {"task": "mine"}
_SERVE = {"task": "serve"}
_BOTH = {"task": ("link", "mine")}
_FILES = {"task": ("link", "mine"), "train": config.GIVEN}
_FACTS = {"task": "link", "train": config.GIVEN}
_WORDNET = {"task": "link", "train": None}
_SGD = {"task": "link", "trainer": "projected_sgd"}
_CANDIDATES = {"task": "link", "trainer": "candidate_softmax"}
_FULL_SOFTMAX = _CANDIDATES | {"loss": "softmax", "num_candidates": 0}
_RECIPROCAL = "reciprocal:"
_ASK = {"task": "link", "ask": config.GIVEN}

_link = functools.partial(config.flag, only=_LINK)
_both = functools.partial(config.flag, only=_BOTH)
_sgd = functools.partial(config.flag, only=_SGD)
_candidates = functools.partial(config.flag, only=_CANDIDATES)


@dataclasses.dataclass(frozen=True)
class Config:
  """Knowledge base, model, training and evaluation."""

  task: str = config.flag(
    "link",
    "link: link prediction. puzzle: the deduction puzzle. mine: mine rules "
    "from training facts and write rules.tsv. serve: a curator's page on the "
    "finished run in --workdir. --mode is the same flag.",
    choices=("link", "puzzle", "mine", "serve"),
  )
  host: str = config.flag(
    "127.0.0.1",
    "Address to listen at; 0.0.0.0 lets other machines in, without a password.",
    only=_SERVE,
  )
  port: int = config.flag(
    8000,
    "Port to listen at; 0 for any free one.",
    minimum=0,
    maximum=65535,
    only=_SERVE,
  )
  train: str | None = _both(
    None, "Training triples; by default WordNet's relations."
  )
  valid: str | None = _link(None, "Validation triples.")
  test: str | None = _link(None, "Test triples.")
  valid_negatives: str | None = config.flag(
    None,
    "False triples that choose the thresholds of classification.",
    only=_FACTS,
  )
  test_negatives: str | None = config.flag(
    None, "False triples that test classification.", only=_FACTS
  )
  split: tuple[str, ...] = _link(
    (),
    "Split --train at random into training, validation and test, in these "
    "shares, as .9,.05,.05.",
  )
  columns: str = config.flag(
    "h,r,t",
    "Order of the columns, unless the first line names them.",
    only=_FILES,
  )
  duplicates: str = config.flag(
    "error",
    "Whether a repeated triple is an error or counted and left out.",
    choices=("error", "count"),
    only=_FILES,
  )
  rules: str | None = _link(
    None,
    "File of rules, also as AMIE, AnyBURL or _cons files; WordNet's facts come "
    "with rules. The kind of a rule is a built-in one (see "
    "experiments/README.md) or module:NAME.",
  )
  min_confidence: float = _both(
    0.8,
    "Least confidence of a rule that is mined or read from AMIE, AnyBURL or "
    "_cons files.",
    minimum=0,
    maximum=1,
  )
  min_support: int = config.flag(
    20, "Least support of a mined rule.", minimum=1, only=_MINE
  )
  kinds: tuple[str, ...] = config.flag(
    (),
    "Kinds of rules to mine, as RelImp,RevImp. Default: all but Path, Inter "
    "and Disj, which are not mined.",
    only=_MINE,
  )
  add_implied: bool = _link(
    False,
    "Train also on the facts that rules derive from training facts, in any "
    "number of steps.",
  )
  drop_implied: bool = _link(
    False,
    "Train without the facts that rules derive from others, so that the model "
    "knows them by the rules alone.",
  )
  below: str | None = config.flag(
    None, "Only synsets of WordNet below this one are kept.", only=_WORDNET
  )
  held_out: int = config.flag(
    2000,
    "Facts of WordNet for validation and for test.",
    minimum=1,
    only=_WORDNET,
  )
  model: str = _both(
    "B",
    f"Score model: {', '.join(MODELS)}, or module:NAME of a kb.ScoreModel. "
    "See --order_share for one-way rules.",
  )
  dim: int = _link(100, "Numbers per entity.", minimum=1)
  reciprocal: bool = _candidates(
    False,
    "Give the inverse of each relation a row of its own; it answers questions "
    "for heads.",
  )
  order_share: float = _both(
    1.0,
    "complex, distmult and blocks: share of the dimensions in which one-way "
    "rules are inequalities and entities nonnegative. In the others the "
    "relations of a rule are equal. With many one-way rules --model=blocks "
    "--order_share=.5 loses least accuracy; choose on validation facts.",
    above=0,
    maximum=1,
  )
  constrained: bool = _link(True, "Whether the rules hold by construction.")
  nonnegative: bool = _both(
    True, "Keep entities nonnegative even if no rule needs it."
  )
  trainer: str = _link(
    "projected_sgd",
    "projected_sgd: the thesis' algorithm 2; candidate_softmax: all or many "
    "candidates per fact, with any optimizer.",
    choices=("projected_sgd", "candidate_softmax"),
  )
  optimizer: str = _candidates(
    "sgd", "Optimizer.", choices=("sgd", "adagrad", "adam", "rmsprop")
  )
  batch_size: int = _link(10, "Facts in a step.", minimum=1)
  learning_rate: float = _link(0.125, "Step size.", minimum=0)
  decay: float = _candidates(
    1.0, "Factor of the step size after each epoch.", above=0, maximum=1
  )
  penalty: float = _link(0.001, "Weight of the regularizer.", minimum=0)
  dropout: float = _candidates(
    0.0,
    "Dropout rate of the components of a question's entity vector and of its "
    "query vector.",
    minimum=0,
    maximum=0.9,
  )
  relation_dropout: float = _candidates(
    0.0,
    "Dropout rate of the components of a question's relation.",
    minimum=0,
    maximum=0.9,
  )
  relation_weight: float = config.flag(
    0.0,
    "Weight of the loss that predicts each fact's relation. It is added to the "
    "loss that predicts the entities.",
    minimum=0,
    only=_FULL_SOFTMAX,
  )
  num_negatives: int = _sgd(
    200, "Unknown facts for each fact in an epoch.", minimum=1
  )
  negative_sampling: str = _sgd(
    "any",
    "any unknown fact, or the fact with one entity replaced (corrupt).",
    choices=("any", "corrupt"),
  )
  order: str = _sgd(
    "turns",
    "turns: each pass compares a fact with one unknown fact. stay: a batch "
    "meets all of its unknown facts before the next batch (thesis).",
    choices=("turns", "stay"),
  )
  gradients: str = _sgd(
    "twice",
    "twice: the entities' gradient uses the updated relations. once: it uses "
    "the old ones, as algorithm 2 is printed.",
    choices=("once", "twice"),
  )
  num_candidates: int = _candidates(
    0, "Entities drawn for each batch; 0 for all.", minimum=0
  )
  group_answers: int = config.flag(
    0,
    "Most facts with the same question that share one row of scores; "
    "--batch_size then counts questions. 0: one row for each fact.",
    minimum=0,
    only=_FULL_SOFTMAX,
  )
  loss: str = _candidates("softmax", "The loss.", choices=("softmax", "bpr"))
  regularizer: str = _candidates(
    "l2",
    "Cubed moduli (n3), squares (l2), or squares of query vectors and answers "
    "(dura, for models whose score is a product).",
    choices=("n3", "l2", "dura"),
  )
  scale: float = _link(0.1, "Standard deviation of the initial values.")
  mixing: float = config.flag(
    0.8,
    "Weight lambda of the first antecedent in PropTrans, Path and Inter rules.",
    only={"task": ("link", "puzzle", "mine")},
  )
  cap: float = config.flag(
    0.2,
    "Largest coordinate of an entity where rules need a box: PropTrans, "
    "TypeImp, Path and Disj in model B, and --slack.",
    only={"task": ("link", "puzzle", "mine")},
  )
  region: str = config.flag(
    "box",
    "Where B's PropTrans and TypeImp keep entities: in the box [0, --cap], or, "
    "as in the thesis, in the orthant and a ball.",
    choices=("box", "ball"),
    only={"task": ("link", "puzzle", "mine")},
  )
  radius: float = _both(
    1.0, "Radius of the ball of entities for RelImp in model T."
  )
  slack: float = _link(
    0.0,
    "Slack of the inequalities of one-way rules. 0 holds them exactly; above 0 "
    "they hold up to a bound that the results state, and entities lie in the "
    "box [0, --cap] where rules are ordered.",
    minimum=0,
  )
  epochs: int = _link(
    20, "Most epochs; a larger number continues a finished run.", minimum=1
  )
  eval_every: int = _link(2, "Epochs between validations.", minimum=1)
  eval_limit: int = _link(
    1000, "Validation facts ranked while training.", minimum=1
  )
  patience: int = _link(
    3, "Validations without a better figure before training stops.", minimum=1
  )
  select_by: str = _link(
    "mrr",
    "Filtered validation figure that chooses the epoch.",
    choices=("mrr", "hits@1", "hits@3", "hits@10", "mean_rank"),
  )
  block: int = _link(
    256, "Queries scored at a time; memory is block * entities.", minimum=1
  )
  unseen: str = _link(
    "last",
    "Test facts with entities outside training: ranked last or left out.",
    choices=("last", "drop"),
  )
  puzzle_runs: int = config.flag(
    10, "Runs of the puzzle.", minimum=2, only={"task": "puzzle"}
  )
  combine_with: str | None = _link(
    None, "Work directory of a finished run to combine with."
  )
  ask: str | None = _link(
    None, "A query to answer: relation(?, entity) or relation(entity, ?)."
  )
  coverage: float = _link(
    0.9,
    "Probability that an answer set contains the right answer.",
    above=0,
    maximum=0.999,
  )
  types: str | None = config.flag(
    None,
    "File of entity<TAB>class lines. Answers must have a class that occurs in "
    "that place of the relation in training. By default an entity's classes "
    "are the places of relations where it occurs.",
    only={"task": ("link", "serve")},
  )
  discover: int = _link(
    0, "Print this many of the most probable new facts.", minimum=0
  )
  violations: bool = _link(
    False, "Print, by rule, derived facts that are in no split."
  )
  top: int = _both(
    5,
    "Number of answers of each kind, facts of each rule or mined rules.",
    minimum=1,
  )
  json: bool = config.flag(False, "Print the answers as JSON.", only=_ASK)
  mesh: str | None = _link(
    None,
    "Devices that share each batch and the entities, as batch:8: all devices "
    "or one.",
  )
  seed: int = 0

  @property
  def score_model(self) -> ScoreModel:
    """The score model that `model` names."""
    model = load_model(self.model)
    if self.order_share < 1:
      model = order_block(model, self.order_share)
    return reciprocal(model) if self.reciprocal else model

  @property
  def stored_model(self) -> str:
    """The name of the trained model, as `load_model` takes it."""
    return f"{_RECIPROCAL}{self.model}" if self.reciprocal else self.model

  @property
  def rule_config(self) -> RuleConfig:
    """Numbers of the rules' conditions."""
    return RuleConfig(
      self.mixing, self.cap, self.radius, self.slack, self.region
    )


def define_mode() -> None:
  """Defines `--mode`, another name of `--task`."""
  flags.DEFINE_alias("mode", "task")


def load_model(name: str) -> ScoreModel:
  """A built-in score model, or one of a user's own module.

  Args:
    name: a key of `kb.MODELS`, or module:NAME; after "reciprocal:" the
      reciprocal model of it.
  """
  if name.startswith(_RECIPROCAL):
    return reciprocal(load_model(name.removeprefix(_RECIPROCAL)))
  if ":" in name:
    return extension.load(name, ScoreModel, "model")
  return get_model(name)


def load_kind(name: str) -> RuleKind:
  """A built-in kind of rule, or one of a user's own module.

  Args:
    name: a key of `kb.RULE_KINDS`, or module:NAME.
  """
  if ":" in name:
    return extension.load(name, RuleKind, "rules")
  return rule_files.kind_by_name(name)


def from_flags(seed: int) -> Config:
  """The configuration of the parsed flags, checked."""
  made = config.from_flags(Config, seed=seed)
  if not made.constrained:
    for name in (
      "nonnegative", "mixing", "cap", "region", "radius", "slack",
      "order_share",
    ):  # fmt: skip
      if config.is_given(name):
        progress.say(f"--{name} is not read with --noconstrained")
  if made.region != "box" and made.task != "puzzle" and made.model != "B":
    raise InputError(
      f"--region={made.region} is for --model=B; --model={made.model} does not "
      "read it: leave it out"
    )
  _ = made.rule_config, made.score_model.relation_size(made.dim)
  return made
