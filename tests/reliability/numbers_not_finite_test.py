"""One NaN or infinity in any slot of a public function: refused or shown.

Each case is a function and its arguments, by slots; each slot gets the value
in turn, in a place where it counts. The function must raise, or its result
must hold a value that is not finite (-1 where it holds rows). Cases with 5,000
rows are there because compiled maxima of 4,096 numbers or more may pass over
a NaN that they show in fewer.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest
import scipy.sparse as sp
from number_cases import GROUPS, Case

from repr_jax import evaluation, kb, linking, multiview, ops, setexp

_LARGE = 5000


@functools.cache
def _cases(group: Callable[[int], dict[str, Case]], size: int):
  return group(size)


def _spoilt(slot: Any, value: float) -> Any:
  """The argument with the value in its fourth row, or last one."""
  if isinstance(slot, float):
    return value
  if sp.issparse(slot):
    found = slot.tolil(copy=True)
    found[3, 0] = value
    return sp.csr_array(found)
  found = np.array(slot)
  place = min(3, len(found) - 1)
  found[(place,) + (0,) * (found.ndim - 1)] = value
  if found.ndim == 4:  # pairs of one variable with itself are never read
    found[1, 2, 0, 3] = found[2, 1, 3, 0] = value
  return found


def _shows(result: Any) -> bool:
  """Whether some number of a result is not finite, or is a row of -1."""
  for leaf in jax.tree.leaves(result):
    array = np.asarray(leaf)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
      return True
    if array.dtype.kind == "i" and (array == -1).any():
      return True
  return False


def _outcomes(case: Case) -> Iterator[str]:
  """Faults of a case, if any."""
  if _shows(case.run(**case.slots)):
    yield "sound numbers are taken for bad ones"
  for slot in case.slots:
    for value in (np.nan, np.inf):
      slots = {**case.slots, slot: _spoilt(case.slots[slot], value)}
      try:
        result = case.run(**slots)
      except ValueError:
        continue
      if not _shows(result):
        yield f"{slot}: {value} is neither refused nor shown"


@pytest.mark.long
@pytest.mark.parametrize("size", [60, _LARGE])
@pytest.mark.parametrize("group", GROUPS, ids=lambda x: x.__name__)
def test_it_is_refused_or_shown(group, size):
  cases = _cases(group, size)
  assert cases
  wrong = {name: list(_outcomes(case)) for name, case in cases.items()}
  assert not {name: found for name, found in wrong.items() if found}


# Functions of whole numbers, names and text; or of what others in the table
# have made: parameters that were checked, ranks, a scorer's answers.
_OTHERS = {
  "evaluation": "accuracy_by compare evaluate_expansion evaluate_linking "
  "first_places gold_queries grid held_out_ranks index_words leave_one_out "
  "pair_agreement rank_summary system_correlation",
  "kb": "better candidate_softmax compile_rules fit group_queries known_facts "
  "merge_ranks order_block per_relation rank reciprocal rescal summary",
  "linking": "disambiguator fit index_fields index_mentions kind_ranker "
  "make_queries max_margin ranker",
  "multiview": "",
  "ops": "to_scipy unit_rows",
  "setexp": "pad_queries place_model vae",
}


@pytest.mark.parametrize(
  "package", [evaluation, kb, linking, multiview, ops, setexp]
)
def test_every_public_function_is_in_the_table(package):
  """So that a new one is not forgotten."""
  own = package.__name__.split(".")[-1]
  named = {
    name.split(" ")[0] for group in GROUPS for name in _cases(group, _LARGE)
  }
  public = {
    f"{own}.{name}"
    for name, value in vars(package).items()
    if callable(value)
    and not isinstance(value, type)
    and name[0].islower()
    and not isinstance(value, jax.stages.Wrapped)  # these propagate NaN
  }
  others = {f"{own}.{name}" for name in _OTHERS[own].split()}
  assert public - named == others
