"""Facts that are not known, drawn at random.

Known facts are held as a bit table on the device (a Bloom filter with two
bits a fact). It never takes a known fact for an unknown one. In a universe
of up to 2^26 facts the table is exact; in a larger one about one unknown
fact in a thousand or fewer is taken for known and never drawn.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from repr_jax.errors import InputError

_EXACT = 1 << 26
_BITS_PER_FACT = 64


class Known(NamedTuple):
  """Known facts of a universe of E entities and R relations.

  Attributes:
    words: the bits, uint32 [w]; w is a power of two.
    num_entities: E, int32 scalar.
    num_relations: R, int32 scalar.
  """

  words: jax.Array
  num_entities: jax.Array
  num_relations: jax.Array


class Drawn(NamedTuple):
  """Unknown facts.

  Attributes:
    triples: head, relation, tail, int32 [n, 3].
    valid: False where all tries drew known facts, bool [n].
  """

  triples: jax.Array
  valid: jax.Array


def known_facts(
  triples: np.ndarray, num_entities: int, num_relations: int
) -> Known:
  """Builds the table of known facts.

  >>> import numpy as np
  >>> from repr_jax import kb
  >>> known = kb.known_facts(np.array([[0, 0, 1]]), 3, 2)
  >>> print(kb.is_known(known, np.array([[0, 0, 1], [1, 0, 0]])))
  [ True False]

  Args:
    triples: facts as head, relation, tail, int [n, 3].
    num_entities: E.
    num_relations: R.

  Returns:
    The table, on the device.

  Raises:
    InputError: names the first fact with an id outside the universe.
  """
  _check_ids(np.asarray(triples), num_entities, num_relations)
  universe = num_entities * num_entities * num_relations
  bits = universe if universe <= _EXACT else _BITS_PER_FACT * len(triples)
  words = 1 << max(int(np.ceil(np.log2(max(bits / 32, 1)))), 0)
  table = np.zeros(words, np.uint32)
  exact = universe <= words * 32
  facts = np.asarray(triples, np.uint32).T
  for place in _places(np, facts, num_entities, num_relations, words, exact):
    np.bitwise_or.at(table, place >> 5, np.uint32(1) << (place & 31))
  return Known(
    jnp.asarray(table), jnp.int32(num_entities), jnp.int32(num_relations)
  )


def is_known(known: Known, triples: jax.Array) -> jax.Array:
  """Whether facts are in the table; no known fact is missed.

  >>> import numpy as np
  >>> from repr_jax import kb
  >>> known = kb.known_facts(np.array([[0, 0, 1]]), 3, 2)
  >>> print(kb.is_known(known, np.array([0, 0, 1])))
  True

  Args:
    known: the table.
    triples: head, relation, tail, int32 [..., 3].

  Returns:
    bool [...].
  """
  words = known.words.shape[0]
  facts = jnp.moveaxis(triples, -1, 0).astype(jnp.uint32)
  entities = known.num_entities.astype(jnp.uint32)
  relations = known.num_relations.astype(jnp.uint32)
  # The product is taken in floats, where it cannot wrap around.
  size = entities.astype(jnp.float32) ** 2 * relations.astype(jnp.float32)
  exact = size <= words * 32.0
  hit = jnp.ones(triples.shape[:-1], bool)
  for place in _places(jnp, facts, entities, relations, words, exact):
    bit = known.words[place >> 5] >> (place & 31)
    hit &= (bit & 1) == 1
  return hit


def draw_any(known: Known, key: jax.Array, count: int, tries: int = 4) -> Drawn:
  """Draws unknown facts uniformly (thesis algorithm 2).

  Args:
    count: n.
    tries: draws for each fact before it is given up.

  Returns:
    n facts, fields [n, 3] and [n].
  """
  highs = jnp.stack(
    [known.num_entities, known.num_relations, known.num_entities]
  )
  drawn = jax.random.randint(key, (tries, count, 3), 0, highs)
  return _first_unknown(known, drawn)


def corrupt(
  known: Known, key: jax.Array, facts: jax.Array, tries: int = 2
) -> tuple[Drawn, jax.Array, jax.Array]:
  """Replaces the head or the tail of each fact by another entity.

  Args:
    facts: head, relation, tail, int32 [n, 3].
    tries: draws for each fact before it is given up.

  Returns:
    n facts, their new entities [n], and whether these are tails, bool [n].
  """
  count = facts.shape[0]
  bits = jax.random.bits(key, (tries + 1, count), jnp.uint32)
  is_tail = (bits[0] & 1) == 1
  entity = _scale_down(bits[1:], known.num_entities)
  heads = jnp.where(is_tail, facts[:, 0], entity)
  tails = jnp.where(is_tail, entity, facts[:, 2])
  relations = jnp.broadcast_to(facts[:, 1], heads.shape)
  drawn = _first_unknown(known, jnp.stack([heads, relations, tails], axis=-1))
  put_in = jnp.where(is_tail, drawn.triples[:, 2], drawn.triples[:, 0])
  return drawn, put_in, is_tail


def _check_ids(triples, num_entities, num_relations):
  """Refuses ids outside the universe, which would mark another fact."""
  if (
    triples.ndim != 2
    or triples.shape[1] != 3
    or (triples.size and triples.dtype.kind not in "iu")
  ):
    raise InputError(
      f"facts must be whole numbers [n, 3], not {triples.dtype} of shape "
      f"{list(triples.shape)}"
    )
  sizes = np.array([num_entities, num_relations, num_entities])
  bad = np.flatnonzero(((triples < 0) | (triples >= sizes)).any(axis=1))
  if bad.size:
    raise InputError(
      f"fact {bad[0]}, {triples[bad[0]].tolist()}, has an id outside the "
      f"{num_entities} entities and {num_relations} relations"
    )


def _first_unknown(known, drawn):
  """Of tries [k, n, 3] the first that is not known."""
  valid = ~is_known(known, drawn)
  first = jnp.argmax(valid, axis=0)
  chosen = jnp.take_along_axis(drawn, first[None, :, None], axis=0)[0]
  return Drawn(chosen, valid.any(axis=0))


def _scale_down(bits, limit):
  """Integers below `limit` from 32 random bits (24 of them where enough)."""
  share = (bits >> 8).astype(jnp.float32) * (1.0 / (1 << 24))
  number = (share * limit.astype(jnp.float32)).astype(jnp.int32)
  return jnp.minimum(number, limit - 1)


def _places(np_or_jnp, facts, entities, relations, words, exact):
  """The bits that stand for each fact: one where exact, else two hashes."""
  head, relation, tail = facts
  unsigned = np_or_jnp.uint32
  entities, relations = unsigned(entities), unsigned(relations)
  with np.errstate(over="ignore"):
    plain = (head * relations + relation) * entities + tail
    mixed = _mix(
      unsigned,
      head * unsigned(0x9E3779B1)
      ^ _mix(unsigned, tail * unsigned(0x85EBCA77) + relation),
    )
    again = _mix(unsigned, mixed + unsigned(0x27D4EB2F))
  mask = unsigned(words * 32 - 1)
  for hashed in (mixed, again):
    yield np_or_jnp.where(exact, plain, hashed) & mask


def _mix(unsigned, x):
  """A bijection of 32-bit numbers in which every bit moves every other."""
  x = (x ^ (x >> unsigned(16))) * unsigned(0x7FEB352D)
  x = (x ^ (x >> unsigned(15))) * unsigned(0x846CA68B)
  return x ^ (x >> unsigned(16))
