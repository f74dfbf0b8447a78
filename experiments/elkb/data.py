"""Knowledge bases for the experiments: files of triples, or WordNet itself."""

import dataclasses
import functools
from collections import Counter

import numpy as np

from experiments.elkb import names as kb_names
from experiments.elkb.config import Config, load_kind
from experiments.run import progress
from repr_jax import errors
from repr_jax.data import deduction, rule_formats, triples, wordnet
from repr_jax.data import rules as rule_files

_SHOWN = 3  # Names outside training that a note lists.
_MANY = 10  # Facts of a file whose first line may be told from a header.

# Inverse pairs among WN18's relations, and those that are symmetric.
_INVERSES = (
  ("_hypernym", "_hyponym"),
  ("_instance_hypernym", "_instance_hyponym"),
  ("_member_meronym", "_member_holonym"),
  ("_has_part", "_part_of"),
  ("_synset_domain_topic_of", "_member_of_domain_topic"),
  ("_synset_domain_usage_of", "_member_of_domain_usage"),
  ("_synset_domain_region_of", "_member_of_domain_region"),
)
_SYMMETRIC = ("_derivationally_related_form", "_similar_to", "_verb_group")


@dataclasses.dataclass(frozen=True)
class KnowledgeBase:
  """Facts in three splits with the rules over them.

  Attributes:
    name: what it is called in results.
    splits: the facts.
    rules: the rules.
    shown: a readable name for each entity.
    dropped: facts that are known and not trained on, [m, 3].
    implied: facts that are trained on because rules derive them, [k, 3].
  """

  name: str
  splits: triples.Splits
  rules: list[rule_files.Rule]
  shown: list[str]
  dropped: np.ndarray = dataclasses.field(
    default_factory=lambda: np.zeros((0, 3), np.int32)
  )
  implied: np.ndarray = dataclasses.field(
    default_factory=lambda: np.zeros((0, 3), np.int32)
  )

  @property
  def relations(self) -> list[str]:
    """Names of the relations."""
    return self.splits.train.relations

  @property
  def entities(self) -> list[str]:
    """Names of the entities, as in the files."""
    return self.splits.train.entities

  @property
  def known(self) -> np.ndarray:
    """All facts of all splits, [n, 3]."""
    parts = [part.array for part in self.splits[:3]]
    return np.concatenate([*parts, self.dropped])

  @property
  def unseen(self) -> np.ndarray:
    """Which test facts have an entity outside training, bool [n]."""
    return ~self.seen[self.splits.test.array[:, [0, 2]]].all(axis=1)

  @property
  def seen(self) -> np.ndarray:
    """Which entities the training split has, bool [E]."""
    seen = np.ones(len(self.entities), bool)
    seen[self.splits.unseen_entities] = False
    return seen


def load(config: Config) -> KnowledgeBase:
  """The knowledge base that a configuration names.

  Args:
    config: its seed chooses the facts that are held out of WordNet.
  """
  train, valid, test = config.train, config.valid, config.test
  if config.split:
    kb = read_and_split(config)
  elif train and valid and test:
    kb = read(config)
  elif train or valid or test:
    raise errors.InputError(
      "--train, --valid and --test go together; to split one file give "
      "--train and --split=.9,.05,.05"
    )
  else:
    kb = from_wordnet(config)
  for name in ("drop_implied", "add_implied"):
    if getattr(config, name) and not kb.rules:
      raise errors.InputError(f"--{name} needs rules: give --rules")
  if config.drop_implied and config.add_implied:
    raise errors.InputError("give --add_implied or --drop_implied, not both")
  if config.add_implied:
    before = len(kb.splits.train)
    kb = add_implied(kb)
    more = len(kb.splits.train) - before
    progress.say(f"{kb.name}: rules derive {more:,} facts for training")
  if config.drop_implied:
    kb = drop_implied(kb)
    progress.say(f"{kb.name}: {len(kb.dropped):,} facts left out of training")
  for note in notes(kb):
    progress.say(f"{kb.name}: {note}")
  if config.unseen == "drop" and kb.unseen.all():
    raise errors.InputError(
      "--unseen=drop leaves no test fact: all have entities outside training"
    )
  return kb


def read(config: Config) -> KnowledgeBase:
  """Reads the three files of facts; their folder names the knowledge base."""
  train, valid, test = map(str, (config.train, config.valid, config.test))
  splits = triples.read_splits(
    train, valid, test, config.columns, config.duplicates
  )
  check_header(splits.train)
  parts = train.rstrip("/").split("/")
  name = parts[-2] if len(parts) > 1 else parts[-1]
  rules = read_rules(config, splits.train)
  return KnowledgeBase(name, splits, rules, kb_names.readable(splits))


def read_and_split(config: Config) -> KnowledgeBase:
  """Reads one file of facts and splits it at random.

  Args:
    config: names the file and the shares; its seed is that of the choice.
  """
  if config.valid or config.test or not config.train:
    raise errors.InputError(
      "--split takes --train alone, without --valid and --test"
    )
  try:
    train, valid, test = map(float, config.split)
  except ValueError:
    raise errors.InputError(
      f"--split={','.join(config.split)}: give three shares, such as .9,.05,.05"
    ) from None
  facts = triples.read_triples(config.train, config.columns, config.duplicates)
  check_header(facts)
  splits = triples.split(facts, (train, valid, test), config.seed)
  sizes = ", ".join(f"{len(part):,}" for part in splits[:3])
  progress.say(f"{config.train}: split into {sizes} facts (seed {config.seed})")
  rules = read_rules(config, facts)
  name = config.train.rstrip("/").split("/")[-1]
  return KnowledgeBase(name, splits, rules, kb_names.readable(splits))


def check_header(facts: triples.Triples) -> None:
  """Refuses a file whose first line looks like a header of other names.

  Args:
    facts: in the order of the file.

  Raises:
    InputError: the three names of the first fact occur in no other one.
  """
  head, relation, tail = facts.array[0]
  rest = facts.array[1:]
  if len(rest) < _MANY or relation in rest[:, 1]:
    return
  if np.isin((head, tail), rest[:, [0, 2]]).any():
    return
  names = facts.named()[0]
  raise errors.InputError(
    f"{', '.join(names)} occur in no other line and look like a header: call "
    "these columns head, relation and tail, or move the line if it is a fact",
    path=facts.path,
    line=None if facts.lines is None else int(facts.lines[0]),
  )


def read_rules(config: Config, facts: triples.Triples) -> list[rule_files.Rule]:
  """Reads rules in the project's form, or as other programs write them.

  Args:
    config: names the file and the least confidence.
    facts: have the names of relations and entities.

  Returns:
    The rules, none without a file; those that cannot be expressed are counted
    in the log.
  """
  path = config.rules
  form = rule_formats.detect_format(path) if path else None
  if form is None and config.min_confidence != Config.min_confidence:
    raise errors.InputError(
      "--min_confidence is only read with --task=mine, or with --rules of "
      "AMIE, AnyBURL or _cons files"
    )
  if not path:
    return []
  if form is None:
    rules = rule_files.read_rules(
      path, facts.relations, facts.entities, load_kind
    )
    if not rules:
      progress.say(f"{path}: holds no rules")
    return rules
  names = set(facts.relations), set(facts.entities)
  read = rule_formats.read_foreign(path, form, *names, config.min_confidence)
  progress.say(f"{path}: {len(read.rules):,} rules of {form}'s form")
  for reason, count in sorted(read.skipped.items(), key=lambda x: -x[1]):
    progress.say(f"{path}: {count:,} left out: {reason}")
  if not read.rules:
    raise errors.InputError("no rule of this file can be used", path=path)
  return read.rules


def drop_implied(kb: KnowledgeBase) -> KnowledgeBase:
  """Removes training facts that rules derive from the remaining ones.

  A model then knows these facts from the rules alone. Only rules
  r(x,y) ==> s(x,y) and r(x,y) ==> s(y,x) are used. Of two facts that imply each
  other, the one whose relation a rule names first stays.

  Args:
    kb: the knowledge base.

  Returns:
    The same with fewer training facts, the others in `dropped`.
  """
  train = kb.splits.train
  facts, kept = train.array, np.ones(len(train.array), bool)
  place = {name: i for i, name in enumerate(kb.relations)}
  sizes = len(kb.entities), len(kb.relations), len(kb.entities)
  keys = np.ravel_multi_index(facts.T, sizes)
  for rule in kb.rules:
    (body, *more), head = rule.kind.bind(rule.arguments)
    if more or sorted(body[1:]) != sorted(head[1:]):
      continue
    if rule.entities:
      continue
    first, second = place[body.relation], place[head.relation]
    same_way = body[1:] == head[1:]
    if first == second and same_way:
      continue  # the rule derives each fact from itself
    reason = facts[kept & (facts[:, 1] == first)]
    if first == second:  # of a fact and its reverse, one stays
      reason = reason[reason[:, 0] < reason[:, 2]]
    order = [0, 1, 2] if same_way else [2, 1, 0]
    derived = reason[:, order]
    derived[:, 1] = second
    kept &= ~np.isin(keys, np.ravel_multi_index(derived.T, sizes))
  left = triples.Triples(facts[kept], train.entities, train.relations)
  splits = kb.splits._replace(
    train=left,
    unseen_entities=_absent(left.array[:, [0, 2]], len(kb.entities)),
    unseen_relations=_absent(left.array[:, 1], len(kb.relations)),
  )
  return dataclasses.replace(
    kb,
    name=f"{kb.name} without implied facts",
    splits=splits,
    dropped=facts[~kept],
  )


def add_implied(kb: KnowledgeBase) -> KnowledgeBase:
  """Adds all facts that rules derive from training facts, in any steps.

  Args:
    kb: the knowledge base.

  Returns:
    The same with more training facts; those of other splits stay there too.
  """
  train = kb.splits.train
  made = deduction.deduce(train.array, kb.rules, kb.relations, kb.entities)
  more = triples.Triples(made.facts, train.entities, train.relations)
  splits = kb.splits._replace(
    train=more,
    unseen_entities=_absent(more.array[:, [0, 2]], len(kb.entities)),
    unseen_relations=_absent(more.array[:, 1], len(kb.relations)),
  )
  return dataclasses.replace(kb, splits=splits, implied=made.derived)


def notes(kb: KnowledgeBase) -> list[str]:
  """Remarks on the facts that a reader of the figures needs.

  Args:
    kb: the knowledge base.

  Returns:
    Repeated triples, test facts that training has too, and those with names
    outside training. Empty categories are omitted.
  """
  notes = []
  for part in kb.splits[:3]:
    if part.repeated:
      notes.append(f"{part.path}: {part.repeated:,} repeated triples left out")
    if part.unread:
      notes.append(f"{part.path}: not read: column {', '.join(part.unread)}")
  test = kb.splits.test
  trained = np.concatenate([kb.splits.train.array, kb.dropped])
  notes += _forbidden(kb, trained)
  sizes = len(kb.entities), len(kb.relations), len(kb.entities)
  tested, trained, implied = (
    np.ravel_multi_index(x.T, sizes) for x in (test.array, trained, kb.implied)
  )
  derived = np.isin(tested, implied)
  if derived.any():
    notes.append(f"{derived.sum():,} test facts follow from training by rules")
  both = np.isin(tested, trained) & ~derived
  if both.any():
    notes.append(f"{both.sum():,} test facts are training facts too")
  for what, columns, ids, names in (
    ("entities", [0, 2], kb.splits.unseen_entities, kb.entities),
    ("relations", [1], kb.splits.unseen_relations, kb.relations),
  ):
    strange = np.isin(test.array[:, columns], ids)
    rows = np.flatnonzero(strange.any(axis=1))
    if len(rows):
      first = [
        _place(test, row, columns, strange[row], names) for row in rows[:_SHOWN]
      ]
      more = ", ..." if len(rows) > _SHOWN else ""
      notes.append(
        f"{len(rows):,} test facts have {what} outside training: "
        f"{', '.join(first)}{more}"
      )
  return list(dict.fromkeys(notes))  # parts of one file share notes


def _forbidden(kb: KnowledgeBase, facts: np.ndarray) -> list[str]:
  """For each rule that forbids facts, the number of facts that break it."""
  if not any(rule.kind.negated for rule in kb.rules):
    return []
  named = kb.rules, kb.relations, kb.entities
  broken = deduction.breaches(deduction.deduce(facts, *named), *named)
  counts = Counter(place for place, _, _ in broken)
  return [
    f"{kb.rules[place]} forbids {count:,} training facts, or facts that rules "
    "derive from these; --violations lists them: drop the rule or mend them"
    for place, count in sorted(counts.items())
  ]


def _place(part, row, columns, strange, names) -> str:
  """A name outside training with the line of its fact."""
  column = columns[int(np.argmax(strange))]
  name = names[part.array[row, column]]
  if part.lines is None:
    return repr(name)
  return f"{name!r} ({part.path}:{part.lines[row]})"


def _absent(ids: np.ndarray, size: int) -> np.ndarray:
  return np.setdiff1d(np.arange(size, dtype=np.int32), ids)


def from_wordnet(config: Config) -> KnowledgeBase:
  """WordNet's 18 relations, some facts held out, with their inverse rules."""
  root = config.below
  facts, entities, relations = _wordnet_facts(root)
  array = np.random.default_rng(config.seed).permutation(facts)
  splits = _hold_out(array, entities, relations, config.held_out)
  label = "WordNet" if root is None else f"WordNet below {root}"
  rules = read_rules(config, splits.train) or _wordnet_rules(relations)
  return KnowledgeBase(label, splits, rules, entities)


@functools.lru_cache(maxsize=1)  # runs that share a program share these
def _wordnet_facts(
  root: str | None,
) -> tuple[np.ndarray, list[str], list[str]]:
  """All facts [n, 3] of WordNet, or of a subtree; entities; relations."""
  database = wordnet.load()
  everything = database.triples()
  named = everything.array
  names = everything.entities
  if root is not None:
    tree = database.subtree(root)
    inside = {database.names[row] for row in tree.rows.tolist()}
    kept = np.array([name in inside for name in names])
    named = named[kept[named[:, 0]] & kept[named[:, 2]]]
  used, place = np.unique(named[:, [0, 2]], return_inverse=True)
  kinds, kind = np.unique(named[:, 1], return_inverse=True)
  place = place.reshape(-1, 2)
  array = np.stack([place[:, 0], kind, place[:, 1]], axis=1)
  entities = [names[i] for i in used]
  return array, entities, [everything.relations[i] for i in kinds]


def _wordnet_rules(relations: list[str]) -> list[rule_files.Rule]:
  rules = []
  for first, second in _INVERSES:
    if first in relations and second in relations:
      rules.append(rule_files.Rule("RevImp", (first, second)))
      rules.append(rule_files.Rule("RevImp", (second, first)))
  rules += [
    rule_files.Rule("Symm", (name,)) for name in _SYMMETRIC if name in relations
  ]
  return rules


def _hold_out(array, entities, relations, count) -> triples.Splits:
  """Holds out facts so that each entity and relation keeps a fact."""
  held = triples.hold_out(
    triples.Triples(array, entities, relations), 2 * count
  )
  if len(held) < 2 * count:
    raise errors.InputError(
      f"cannot hold out {2 * count} facts of {len(array)}; ask for fewer"
    )
  rest = np.setdiff1d(np.arange(len(array)), held)
  train, valid, test = (
    triples.Triples(array[part], entities, relations)
    for part in (rest, held[:count], held[count:])
  )
  none = np.zeros(0, np.int32)
  return triples.Splits(train, valid, test, none, none)
