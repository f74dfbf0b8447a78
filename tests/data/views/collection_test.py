"""Collecting views from every kind of input, twice, and from bad input."""

import collections
import gzip
import json
import os
import warnings

import numpy as np
import pytest
import scipy.sparse

from repr_jax import errors
from repr_jax.data import vectors
from repr_jax.data.views import collection, sources, table_sources, vocab
from repr_jax.data.views.dependencies import RELATIONS
from repr_jax.data.views.source import Gather

_TEXT = "the cat sees the dog\nthe dog runs\nA Cat\n"
_VOCAB = vocab.Vocab(("the", "dog", "cat", "runs"), [4, 3, 2, 1])


def _collect(tmp_path, words=_VOCAB, **options):
  """Views by name, and the warnings."""
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    found = collection.collect(words, _sources(**options), tmp_path / "store")
  texts = [str(w.message) for w in caught]
  return {view.name: view for view in found}, texts


def _sources(
  text=(), bitext=(), dependencies=(), wordnet=(), counts=(), matrices=(),
  vectors=(), relations=RELATIONS, layout="conllu", limit=sources.LIMIT,
  **offsets,
):  # fmt: skip
  """Sources of each kind, as the experiment makes them."""
  made = []
  if text:
    made.append(sources.text_source(text, limit=limit, **offsets))
  for entry in bitext:
    paths = entry.split(":")
    made.append(sources.bitext_source(paths, align=_by_place))
  if dependencies:
    made.append(
      sources.dependency_source(
        dependencies, relations=relations, layout=layout
      )
    )
  if wordnet:
    made.append(sources.wordnet_source(wordnet))
  made += [table_sources.counts_source(p, limit=limit) for p in counts]
  made += [table_sources.matrix_source(m.split(":")) for m in matrices]
  return [*made, *(table_sources.vectors_source(p) for p in vectors)]


def _by_place(source, target):
  """An aligner: words of one place belong together."""
  links = [
    (k, i, i)
    for k, (one, other) in enumerate(zip(source, target))
    for i in range(min(len(one), len(other)))
  ]
  return np.array(links), 3


def _cell(view, word, column):
  row = _VOCAB.words.index(word)
  return view.matrix[row, list(view.columns).index(column)]


def _file(tmp_path, name, text):
  path = tmp_path / name
  if name.endswith(".gz"):
    path.write_bytes(gzip.compress(text.encode()))
  else:
    path.write_text(text)
  return str(path)


def test_text_behind_and_ahead(tmp_path):
  path = _file(tmp_path, "a.txt.gz", _TEXT)
  found, texts = _collect(tmp_path, text=[path], offsets=2, ahead=1)
  assert list(found) == ["text_behind_01", "text_behind_02", "text_ahead_01"]
  assert _cell(found["text_behind_01"], "dog", "the") == 2
  assert _cell(found["text_behind_02"], "runs", "the") == 1
  assert _cell(found["text_ahead_01"], "the", "dog") == 2
  assert list(found["text_ahead_01"].columns) == list(_VOCAB.words)
  assert texts == ["text: left out 2 tokens outside the vocabulary"]


def test_offsets_beyond_every_sentence_are_named(tmp_path):
  path = _file(tmp_path, "a", _TEXT)
  found, texts = _collect(tmp_path, text=[path], offsets=7)
  assert list(found) == [f"text_behind_{o:02d}" for o in (1, 2, 3, 4)]
  assert "view text_behind_07 has no entry" in texts[0]
  stored = set(os.listdir(tmp_path / "store"))
  assert stored == {*found, "text.json"}


def test_columns_are_the_most_frequent_words(tmp_path):
  path = _file(tmp_path, "a", _TEXT)
  found, _ = _collect(tmp_path, text=[path], offsets=1, columns=1)
  assert found["text_behind_01"].matrix.shape == (4, 1)


def test_second_call_reuses_and_changed_input_recounts(tmp_path):
  path = _file(tmp_path, "a", _TEXT)
  first, texts = _collect(tmp_path, text=[path], offsets=1)
  header = first["text_behind_01"].path / "header.json"
  stamp = header.stat().st_mtime_ns
  again, texts_again = _collect(tmp_path, text=[path], offsets=1)
  assert header.stat().st_mtime_ns == stamp
  assert texts_again == texts
  one, two = first["text_behind_01"].matrix, again["text_behind_01"].matrix
  assert (one != two).nnz == 0
  with open(path, "a") as stream:
    stream.write("the runs\n")
  changed, _ = _collect(tmp_path, text=[path], offsets=1)
  assert _cell(changed["text_behind_01"], "runs", "the") == 1
  other = vocab.Vocab(("dog", "the"), [1, 1])
  moved, _ = _collect(tmp_path, other, text=[path], offsets=1)
  assert moved["text_behind_01"].matrix.shape == (2, 2)
  (moved["text_behind_01"].path / "data.npy").write_bytes(b"")
  with pytest.raises(errors.InputError, match="damaged"):
    _collect(tmp_path, other, text=[path], offsets=1)


def test_bitext_with_alignments(tmp_path):
  source = _file(tmp_path, "t.en", "the dog\nthe cow\n")
  target = _file(tmp_path, "t.de", "der Hund\ndie kuh\n")
  links = _file(tmp_path, "t.links", "0-0 1-1\n0-0 1-1 1-0\n")
  found, texts = _collect(tmp_path, bitext=[f"{source}:{target}:{links}"])
  view = found["bitext_t.de"]
  assert sorted(view.columns) == ["der", "die", "hund"]
  assert _cell(view, "dog", "hund") == 1 and _cell(view, "the", "die") == 1
  assert view.matrix.sum() == 3
  assert texts == ["bitext_t.de: left out 1 words outside the vocabulary"]


def test_bitext_without_alignments(tmp_path):
  pairs = [("the dog", "der hund"), ("the cat", "der kater"), ("dog", "hund"),
           ("cat", "kater"), ("the", "der")]  # fmt: skip
  source = _file(tmp_path, "u.en", "\n".join(e for e, _ in pairs * 5) + "\n")
  target = _file(tmp_path, "u.de", "\n".join(f for _, f in pairs * 5) + "\n")
  found, texts = _collect(tmp_path, bitext=[f"{source}:{target}"])
  assert "3 sentences too long or empty to align" in texts[0]
  with pytest.raises(errors.InputError, match="has no alignments"):
    sources.bitext_source([source, target])
  view = found["bitext_u.de"]
  for one, two in (("the", "der"), ("dog", "hund"), ("cat", "kater")):
    row = view.matrix[[_VOCAB.words.index(one)]].toarray()[0]
    assert view.columns[int(row.argmax())] == two


def _tree(*rows):
  lines = [
    "\t".join([str(i), word, "_", "_", "_", "_", str(head), rel, "_", "_"])
    for i, (word, head, rel) in enumerate(rows, 1)
  ]
  return "\n".join(lines) + "\n\n"


def test_dependencies(tmp_path):
  one = _tree(("the", 2, "det"), ("dog", 3, "nsubj"), ("runs", 0, "root"))
  two = _tree(("cow", 2, "nsubj"), ("runs", 0, "root"))
  path = _file(tmp_path, "d.conllu", one + one + two)
  found, texts = _collect(tmp_path, dependencies=[path])
  assert list(found) == ["dep_nsubj"]
  assert _cell(found["dep_nsubj"], "dog", "runs") == 2
  assert "2 arcs of other relations" in texts[0]
  assert "1 arcs with a word outside the vocabulary" in texts[0]
  assert "view dep_prep_of has no entry" in texts[0]
  found, _ = _collect(tmp_path, dependencies=[path], relations=["det", "nsubj"])
  assert _cell(found["dep_det"], "the", "dog") == 2
  path = _file(tmp_path, "e.conll", "the\tDT\t2\ndog\tNN\t0\n")
  found, _ = _collect(tmp_path, dependencies=[path], layout="word-tag-head")
  assert _cell(found["dep_any"], "the", "dog") == 1


def test_counts_matrices_and_vectors(tmp_path):
  rows = "dog\tpet\t2\ndog\tpet\t0.5\ncat\tpet\ncow\tpet\t9\n\n"
  counts = _file(tmp_path, "frames.tsv", rows)
  matrix = scipy.sparse.csr_array(np.array([[0, 3.0], [4, 0], [5, 5]]))
  scipy.sparse.save_npz(tmp_path / "m.npz", matrix)
  names = _file(tmp_path, "m.rows", "cow\ncat\nthe\n")
  table = vectors.Vectors(["dog", "cow"], np.array([[1, 2.0], [3, 4]]))
  vectors.write_vectors(tmp_path / "v.txt", table)
  found, texts = _collect(
    tmp_path,
    counts=[counts],
    matrices=[f"{tmp_path / 'm.npz'}:{names}"],
    vectors=[str(tmp_path / "v.txt")],
  )
  assert list(found) == ["counts_frames", "matrix_m", "vectors_v"]
  assert _cell(found["counts_frames"], "dog", "pet") == 2.5
  assert _cell(found["counts_frames"], "cat", "pet") == 1
  np.testing.assert_array_equal(
    found["matrix_m"].matrix.toarray(), [[5, 5], [0, 0], [4, 0], [0, 0]]
  )
  np.testing.assert_array_equal(
    found["vectors_v"].matrix, [[0, 0], [1, 2], [0, 0], [0, 0]]
  )
  assert len(texts) == 3 and all(" 1 " in text for text in texts)


def test_wordnet(tmp_path):
  found, texts = _collect(tmp_path, wordnet=["synset", "lexname"])
  assert list(found) == ["wordnet_synset", "wordnet_lexname"]
  assert _cell(found["wordnet_synset"], "dog", "dog.n.01") == 1
  assert texts == ["wordnet: left out 1 words that WordNet does not have"]


def test_counting_with_a_small_limit_changes_nothing(tmp_path):
  rng = np.random.default_rng(0)
  lines = [
    " ".join(rng.choice(["the", "dog", "cat", "runs", "x"], 8))
    for _ in range(200)
  ]
  path = _file(tmp_path, "a", "\n".join(lines))
  pairs = "".join(
    f"{line.split()[0]}\t{line.split()[1]}\t1\n" for line in lines
  )
  counts = _file(tmp_path, "c.tsv", pairs)
  large, _ = _collect(tmp_path, text=[path], counts=[counts], offsets=3)
  want = {name: view.matrix.toarray() for name, view in large.items()}
  tiny, _ = _collect(
    tmp_path / "other", text=[path], counts=[counts], offsets=3, limit=6
  )
  for name, view in tiny.items():
    np.testing.assert_array_equal(view.matrix.toarray(), want[name])
  brute = collections.Counter(tuple(line.split()[:2]) for line in lines)
  assert _cell(tiny["counts_c"], "dog", "x") == brute["dog", "x"]


def test_nothing_in_common_is_an_error(tmp_path):
  cases = {
    "text": {"text": [_file(tmp_path, "a", "x y z\n")]},
    "counts": {"counts": [_file(tmp_path, "c.tsv", "x\ty\t1\n")]},
    "deps": {"dependencies": [_file(tmp_path, "d", _tree(("x", 0, "root")))]},
  }
  for options in cases.values():
    with pytest.raises(errors.InputError, match="no row in common"):
      _collect(tmp_path, **options)
  assert not [n for n in os.listdir(tmp_path / "store") if "json" in n]
  with pytest.raises(errors.InputError, match="no input"):
    _collect(tmp_path)
  with pytest.raises(errors.InputError, match="vocabulary is empty"):
    _collect(tmp_path, vocab.Vocab((), []), **cases["text"])


@pytest.mark.parametrize(
  "rows, line",
  [
    ("a\tb\t1\nc\n", 2),
    ("a\tb\tx\n", 1),
    ("a\tb\t-1\n", 1),
    ("a\tb\tnan\n", 1),
  ],
)
def test_bad_count_files_name_the_line(tmp_path, rows, line):
  path = _file(tmp_path, "c.tsv", rows)
  with pytest.raises(errors.InputError) as caught:
    _collect(tmp_path, counts=[path])
  assert (caught.value.path, caught.value.line) == (path, line)


def test_bad_matrices(tmp_path):
  good = scipy.sparse.csr_array(np.ones((2, 2)))
  scipy.sparse.save_npz(tmp_path / "g.npz", good)
  bad = scipy.sparse.csr_array(np.array([[1.0, -2], [1, 1]]))
  scipy.sparse.save_npz(tmp_path / "b.npz", bad)
  (tmp_path / "x.npz").write_bytes(b"no matrix")
  two = _file(tmp_path, "two", "the\ndog\n")
  three = _file(tmp_path, "three", "the\ndog\ncat\n")
  same = _file(tmp_path, "same", "the\nthe\n")
  cases = {
    f"g.npz:{three}": "names 3 rows",
    f"g.npz:{same}": "stands twice",
    f"b.npz:{two}": "row 0, column 1",
    f"x.npz:{two}": "save_npz",
    "g.npz": "file.npz:rows.txt",
  }
  for entry, message in cases.items():
    with pytest.raises(errors.InputError, match=message):
      _collect(tmp_path, matrices=[f"{tmp_path}/{entry}"])


def test_other_bad_input(tmp_path):
  path = _file(tmp_path, "a", _TEXT)
  os.makedirs(tmp_path / "sub")
  twin = _file(tmp_path / "sub", "a", _TEXT)
  with pytest.raises(errors.InputError, match="both be called counts_a"):
    _collect(tmp_path, counts=[path, twin])
  with pytest.raises(errors.InputError, match="no such file"):
    _collect(tmp_path, text=[str(tmp_path / "gone")])
  with pytest.raises(errors.InputError, match="source:target"):
    _collect(tmp_path, bitext=[path])
  _collect(tmp_path, text=[path], offsets=1)
  listing = tmp_path / "store" / "text.json"
  assert json.loads(listing.read_text())["views"] == ["text_behind_01"]
  listing.write_text("{")
  with pytest.raises(errors.InputError, match="damaged"):
    _collect(tmp_path, text=[path], offsets=1)


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
