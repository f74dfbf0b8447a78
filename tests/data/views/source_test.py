"""Single counts gathered in pieces, and names of views."""

import numpy as np
import pytest
import scipy.sparse

from repr_jax.data.views import vocab
from repr_jax.data.views.source import Gather, stem

_VOCAB = vocab.Vocab(("the", "dog", "cat", "runs"), [4, 3, 2, 1])


@pytest.mark.parametrize(
  ("path", "name"),
  [("a/b.txt.gz", "b"), ("x y.npz", "x-y"), ("..", "view"), ("m.de", "m.de")],
)
def test_a_view_is_named_after_its_file(path, name):
  assert stem(path) == name


def test_single_counts_are_passed_on_in_bounded_pieces():
  rng = np.random.default_rng(0)
  places = rng.integers(0, 4, (500, 2)).tolist()
  want = {"a": np.zeros((4, 4)), "b": np.zeros((4, 4))}
  with Gather(_VOCAB, ["a", "b"], 4, limit=7) as gather:
    for k, (row, column) in enumerate(places):
      key = "ab"[k % 3 == 0]
      gather.add(key, row, column)
      want[key][row, column] += 1
      assert gather.waiting < 7
    for key, counts in want.items():
      got = scipy.sparse.vstack(list(gather.blocks(key, 4))).toarray()
      np.testing.assert_array_equal(got, counts)
