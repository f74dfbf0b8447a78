"""Questions to a knowledge base: `relation(?, entity)`."""

import difflib
import itertools

from experiments.elkb import data
from repr_jax import errors
from repr_jax.data import rules as rule_files

_COMPARED = 200_000  # Names among which suggestions are sought.
_NAMED = 10  # Most known names in a message.


def parse_query(kb: data.KnowledgeBase, text: str) -> tuple[int, int, str]:
  """Understands `relation(?, entity)` or `relation(entity, ?)`.

  Args:
    kb: the knowledge base.
    text: the query. The leading underscore of a relation may be omitted. An
      entity is named as in the file, by its readable name, or by the lemma with
      which that name begins. Names may contain blanks, commas and brackets, or
      stand in double quotes.

  Returns:
    Relation, entity and the open side, "head" or "tail".
  """
  readings = [
    (relation, *((second, "head") if first == "?" else (first, "tail")))
    for relation, first, second in rule_files.split_atom(text, ("?",))
    if (first == "?") != (second == "?")
  ]
  if not readings:
    raise errors.InputError(
      f"--ask {text!r}: expected relation(?, entity) or relation(entity, ?); "
      'an entity that is called ? is written "?"'
    )
  relations = {name: i for i, name in enumerate(kb.relations)}
  entities: dict[str, int] = {}
  for names in (kb.entities, kb.shown):
    for i, name in enumerate(names):
      entities.setdefault(name, i)
  for names in (kb.entities, kb.shown):  # names go before lemmas
    for i, name in enumerate(names):
      entities.setdefault(name.split(".")[0], i)
  for relation, entity, side in readings:
    r, e = _find(relation, relations), _find(entity, entities)
    if r is not None and e is not None:
      return r, e, side
  relation, entity, _ = readings[0]
  if _find(relation, relations) is None:
    raise _unknown("relation", relation, relations)
  raise _unknown("entity", entity, entities)


def _find(name: str, table: dict[str, int]) -> int | None:
  plain = rule_files.unquote(name)
  forms = (name, plain, f"_{plain}")
  return next((table[form] for form in forms if form in table), None)


def _unknown(what: str, name: str, table: dict[str, int]) -> errors.InputError:
  plain = rule_files.unquote(name)
  names = list(table)[:_COMPARED]
  close = difflib.get_close_matches(plain, names, n=3)
  part = plain.casefold()
  holding = (x for x in names if part in x.casefold() and x not in close)
  close += itertools.islice(holding, 3 - len(close))
  some = ", ".join(itertools.islice(table, _NAMED))
  some += ", ..." * (len(table) > _NAMED)
  hint = f"did you mean {', '.join(close)}?" if close else f"known: {some}"
  return errors.InputError(f"--ask: unknown {what} {plain!r}; {hint}")
