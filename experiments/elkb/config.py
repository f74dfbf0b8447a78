"""The options of `experiments.elkb`, each declared once."""

import dataclasses

from absl import flags

from experiments.run import config, extension, progress
from repr_jax.data import rules as rule_files
from repr_jax.data.rule_kinds import RuleKind
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


@dataclasses.dataclass(frozen=True)
class Config:
  """Knowledge base, model, training and evaluation."""

  task: str = config.flag(
    "link",
    "Link prediction, the puzzle, rules mined from the training facts alone, "
    "which rules.tsv in the work directory gets, or a curator's page on the "
    "finished run in --workdir. --mode is the same.",
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
  train: str | None = config.flag(
    None,
    "Training triples; WordNet's own relations where not given.",
    only=_BOTH,
  )
  valid: str | None = config.flag(None, "Validation triples.", only=_LINK)
  test: str | None = config.flag(None, "Test triples.", only=_LINK)
  valid_negatives: str | None = config.flag(
    None,
    "False triples, which choose thresholds of classification.",
    only=_FACTS,
  )
  test_negatives: str | None = config.flag(
    None, "False triples, which test the classification.", only=_FACTS
  )
  split: tuple[str, ...] = config.flag(
    (),
    "Shares of training, validation and test, such as .9,.05,.05: --train is "
    "split at random by --seed.",
    only=_LINK,
  )
  columns: str = config.flag(
    "h,r,t",
    "Order of the columns; a first line that names them goes before it.",
    only=_FILES,
  )
  duplicates: str = config.flag(
    "error",
    "Whether a repeated triple is an error or counted and left out.",
    choices=("error", "count"),
    only=_FILES,
  )
  rules: str | None = config.flag(
    None,
    "File of rules; WordNet's own facts have some of their own. A kind of "
    "rule is a built-in one or module:NAME. Files of AMIE and AnyBURL and "
    "_cons files are read too.",
    only=_LINK,
  )
  min_confidence: float = config.flag(
    0.8,
    "Least confidence of a rule that is mined, or read from a file of another "
    "program.",
    minimum=0,
    maximum=1,
    only=_BOTH,
  )
  min_support: int = config.flag(
    20, "Least support of a mined rule.", minimum=1, only=_MINE
  )
  kinds: tuple[str, ...] = config.flag(
    (), "Kinds of rules to mine; all where not given.", only=_MINE
  )
  add_implied: bool = config.flag(
    False,
    "Train also on the facts that rules derive from training facts, in any "
    "number of steps.",
    only=_LINK,
  )
  drop_implied: bool = config.flag(
    False,
    "Train without the facts that rules derive from others: what is known of "
    "them comes from the rules.",
    only=_LINK,
  )
  below: str | None = config.flag(
    None, "Keep the synsets of WordNet below this one.", only=_WORDNET
  )
  held_out: int = config.flag(
    2000,
    "Facts of WordNet for validation and for test.",
    minimum=1,
    only=_WORDNET,
  )
  model: str = config.flag(
    "B",
    f"Score model: {', '.join(MODELS)}, or module:NAME of a kb.ScoreModel.",
    only=_BOTH,
  )
  dim: int = config.flag(100, "Numbers per entity.", minimum=1, only=_LINK)
  reciprocal: bool = config.flag(
    False,
    "A row of its own for the inverse of each relation, which answers "
    "questions for heads.",
    only=_CANDIDATES,
  )
  order_share: float = config.flag(
    1.0,
    "complex and distmult: share of the numbers that carry the order of "
    "one-way rules. Entities are nonnegative there alone; relations of a rule "
    "are equal elsewhere.",
    above=0,
    maximum=1,
    only=_BOTH,
  )
  constrained: bool = config.flag(
    True, "Whether the rules hold by construction.", only=_LINK
  )
  nonnegative: bool = config.flag(
    True,
    "With rules, keep entities nonnegative even where they do not need it.",
    only=_BOTH,
  )
  trainer: str = config.flag(
    "projected_sgd",
    "projected_sgd: the thesis' algorithm 2; candidate_softmax: all or many "
    "candidates per fact, with any optimizer.",
    choices=("projected_sgd", "candidate_softmax"),
    only=_LINK,
  )
  optimizer: str = config.flag(
    "sgd",
    "Optimizer.",
    choices=("sgd", "adagrad", "adam", "rmsprop"),
    only=_CANDIDATES,
  )
  batch_size: int = config.flag(10, "Facts in a step.", minimum=1, only=_LINK)
  learning_rate: float = config.flag(0.125, "Step size.", minimum=0, only=_LINK)
  decay: float = config.flag(
    1.0,
    "Factor of the step size after each epoch.",
    above=0,
    maximum=1,
    only=_CANDIDATES,
  )
  penalty: float = config.flag(
    0.001, "Weight of the regularizer.", minimum=0, only=_LINK
  )
  dropout: float = config.flag(
    0.0,
    "Share of the numbers of a question's entity and of its query vector that "
    "each step drops.",
    minimum=0,
    maximum=0.9,
    only=_CANDIDATES,
  )
  num_negatives: int = config.flag(
    200, "Unknown facts for each fact in an epoch.", minimum=1, only=_SGD
  )
  negative_sampling: str = config.flag(
    "any",
    "any unknown fact, or the fact with one entity replaced (corrupt).",
    choices=("any", "corrupt"),
    only=_SGD,
  )
  order: str = config.flag(
    "turns",
    "Facts take turns, one unknown fact at a time, or, as in the thesis, each "
    "batch stays until it has met all of its unknown facts.",
    choices=("turns", "stay"),
    only=_SGD,
  )
  gradients: str = config.flag(
    "twice",
    "Whether the entities' gradient is taken at the relations that have just "
    "moved (twice) or with theirs (once), as algorithm 2 is printed.",
    choices=("once", "twice"),
    only=_SGD,
  )
  num_candidates: int = config.flag(
    0, "Entities drawn for each batch; 0 for all.", minimum=0, only=_CANDIDATES
  )
  group_answers: int = config.flag(
    0,
    "Ask each question once for up to so many of its facts and compare with "
    "all entities; --batch_size counts questions. 0: each fact asks.",
    minimum=0,
    only=_FULL_SOFTMAX,
  )
  loss: str = config.flag(
    "softmax", "The loss.", choices=("softmax", "bpr"), only=_CANDIDATES
  )
  regularizer: str = config.flag(
    "l2",
    "Cubed moduli (n3) or squares (l2).",
    choices=("n3", "l2"),
    only=_CANDIDATES,
  )
  scale: float = config.flag(0.1, "Spread of the start.", only=_LINK)
  mixing: float = config.flag(
    0.8,
    "lambda of PropTrans, Path and Inter rules.",
    only={"task": ("link", "puzzle", "mine")},
  )
  cap: float = config.flag(
    0.2,
    "Box of B's PropTrans, TypeImp, Path and Disj, and of --slack.",
    only={"task": ("link", "puzzle", "mine")},
  )
  region: str = config.flag(
    "box",
    "Where B's PropTrans and TypeImp keep entities: in the box [0, --cap], or, "
    "as in the thesis, in the orthant and a ball.",
    choices=("box", "ball"),
    only={"task": ("link", "puzzle", "mine")},
  )
  radius: float = config.flag(1.0, "Ball of T's RelImp.", only=_BOTH)
  slack: float = config.flag(
    0.0,
    "How far numbers of the antecedent of a one-way rule may exceed those of "
    "its consequent: 0 holds it exactly, more holds it up to a bound that the "
    "results state. Entities then lie in the box [0, --cap] where rules are "
    "ordered.",
    minimum=0,
    only=_LINK,
  )
  epochs: int = config.flag(
    20,
    "Epochs at most; a finished run goes on where they are raised.",
    minimum=1,
    only=_LINK,
  )
  eval_every: int = config.flag(
    2, "Epochs between validations.", minimum=1, only=_LINK
  )
  eval_limit: int = config.flag(
    1000, "Validation facts ranked while training.", minimum=1, only=_LINK
  )
  patience: int = config.flag(
    3,
    "Validations without a better figure before training stops.",
    minimum=1,
    only=_LINK,
  )
  select_by: str = config.flag(
    "mrr",
    "Filtered figure of validation facts that chooses the epoch.",
    choices=("mrr", "hits@1", "hits@3", "hits@10", "mean_rank"),
    only=_LINK,
  )
  block: int = config.flag(
    256,
    "Queries scored at a time; memory is block * entities.",
    minimum=1,
    only=_LINK,
  )
  unseen: str = config.flag(
    "last",
    "Test facts with entities outside training: ranked last or left out.",
    choices=("last", "drop"),
    only=_LINK,
  )
  puzzle_runs: int = config.flag(
    10, "Runs of the puzzle.", minimum=2, only={"task": "puzzle"}
  )
  combine_with: str | None = config.flag(
    None, "Work directory of a finished run to combine with.", only=_LINK
  )
  ask: str | None = config.flag(
    None,
    "A query to answer: relation(?, entity) or relation(entity, ?).",
    only=_LINK,
  )
  coverage: float = config.flag(
    0.9,
    "Probability that the answer set of a question holds the right answer.",
    above=0,
    maximum=0.999,
    only=_LINK,
  )
  types: str | None = config.flag(
    None,
    "File of entity<TAB>class lines. Answers and discoveries have a class that "
    "the relation's training facts have in that place. Without it the classes "
    "are the places of relations that an entity stands in.",
    only={"task": ("link", "serve")},
  )
  discover: int = config.flag(
    0, "Print this many of the most probable new facts.", minimum=0, only=_LINK
  )
  violations: bool = config.flag(
    False,
    "Print facts that rules derive and that no split has, by rule.",
    only=_LINK,
  )
  top: int = config.flag(
    5,
    "Answers of each kind, missing facts of each rule or mined rules to print.",
    minimum=1,
    only=_BOTH,
  )
  json: bool = config.flag(False, "Print the answers as JSON.", only=_ASK)
  mesh: str | None = config.flag(
    None,
    "Devices, as batch:8, that share each batch and the entities; all of them "
    "or one.",
    only=_LINK,
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
    """The name by which `load_model` finds the model that was trained."""
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

  Returns:
    The model.
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

  Returns:
    The kind.
  """
  if ":" in name:
    return extension.load(name, RuleKind, "rules")
  return rule_files.kind_by_name(name)


def from_flags(seed: int) -> Config:
  """The configuration of the parsed flags, checked.

  Args:
    seed: of the run.

  Returns:
    The configuration.
  """
  made = config.from_flags(Config, seed=seed)
  if not made.constrained:
    for name in (
      "nonnegative", "mixing", "cap", "region", "radius", "slack",
      "order_share",
    ):  # fmt: skip
      if config.is_given(name):
        progress.say(f"--{name} is not read with --noconstrained")
  _ = made.rule_config, made.score_model.relation_size(made.dim)
  return made
