"""WordNet views against walks over single synsets."""

import collections
import re

import numpy as np
import pytest

from repr_jax import errors
from repr_jax.data import wordnet
from repr_jax.data.views import wordnet_views

_WORDS = re.findall(
  r"\w+",
  "dog cat animal happiness happy give running better dogs good bad the of "
  "tree leaf paris writer shakespeare quickly quick run zzzz",
)


@pytest.fixture(name="wn", scope="module")
def _wn():
  return wordnet.load()


@pytest.fixture(name="found", scope="module")
def _found(wn):
  options = wordnet_views.Config(levels=2, decay=0.5, gloss_offsets=(2, -1))
  made = wordnet_views.views(wn, _WORDS, options=options)
  return {view.name.removeprefix("wordnet_"): view for view in made}


def _row(view, word):
  row = view.matrix[[_WORDS.index(word)]].tocoo()
  names = (view.columns[c] for c in row.coords[1])
  return dict(zip(names, row.data.tolist()))


def _senses(wn, word):
  found = set(wn.senses(word))
  if not found:
    for part in "nvar":
      for base in wn.morphy(word, part):
        found |= set(wn.senses(base, part))
  return found


def test_matrices_are_canonical_and_have_no_empty_column(found):
  for view in found.values():
    assert view.matrix.dtype == np.float32
    assert view.matrix.shape == (len(_WORDS), len(view.columns))
    assert view.matrix.has_canonical_format
    assert np.all(np.bincount(view.matrix.indices) > 0)
    assert np.all(view.matrix.data > 0)


def test_synsets_and_lexicographer_files(wn, found):
  for word in _WORDS:
    senses = _senses(wn, word)
    want = {wn.synset(row).name: 1.0 for row in senses}
    assert _row(found["synset"], word) == want
    files = collections.Counter(wn.synset(row).lexname for row in senses)
    assert _row(found["lexname"], word) == files
  assert _row(found["synset"], "dogs") and not _row(found["synset"], "zzzz")


def test_hypernyms_by_level_and_with_decay(wn, found):
  for word in _WORDS:
    distance = dict.fromkeys(_senses(wn, word), 0)
    frontier = list(distance)
    while frontier:
      above = []
      for row in frontier:
        for relation in ("hypernym", "instance_hypernym"):
          for up in wn.targets(row, relation).tolist():
            if up not in distance:
              distance[up] = distance[row] + 1
              above.append(up)
      frontier = above
    for level in (1, 2):
      want = {wn.names[r]: 1.0 for r, d in distance.items() if d == level}
      assert _row(found[f"hypernym_{level}"], word) == want
    want = {wn.names[r]: 0.5**d for r, d in distance.items()}
    got = _row(found["hypernyms"], word)
    assert got.keys() == want.keys()
    assert all(abs(got[k] - want[k]) < 1e-6 for k in want)
  assert "hypernym_3" not in found


def test_relations(wn, found):
  assert "bad" in _row(found["antonym"], "good")
  parts = collections.Counter()
  for row in wn.senses("tree"):
    parts.update(wn.names[r] for r in wn.targets(row, "has_part").tolist())
  assert _row(found["has_part"], "tree") == parts


def test_glosses(wn, found):
  def tokens(row):
    gloss = wn.synset(row).gloss.lower()
    return re.findall(r"[a-z0-9]+(?:['-][a-z0-9]+)*", gloss)

  bag = collections.Counter()
  for row in wn.senses("dog"):
    bag.update(t for t in tokens(row) if t in _WORDS)
  assert _row(found["gloss_bag"], "dog") == bag
  behind, ahead, used = (collections.Counter() for _ in range(3))
  for row in range(len(wn)):
    gloss = tokens(row)
    used[wn.names[row]] += gloss.count("dog")
    for p, token in enumerate(gloss):
      if token != "dog":
        continue
      if p >= 2 and gloss[p - 2] in _WORDS:
        behind[gloss[p - 2]] += 1
      if p + 1 < len(gloss) and gloss[p + 1] in _WORDS:
        ahead[gloss[p + 1]] += 1
  assert _row(found["gloss_behind_02"], "dog") == behind
  assert _row(found["gloss_ahead_01"], "dog") == ahead
  assert _row(found["gloss_of"], "dog") == +used


def test_forms(found):
  derived = _row(found["derivation"], "happiness")
  assert derived == {"happy": 1.0, "happiness": 1.0}
  assert "happiness" in _row(found["derivation"], "happy")
  assert "quick" in _row(found["derivation"], "quickly")
  assert _row(found["inflection"], "dogs") == {"dog.n": 1.0, "dog.v": 1.0}
  assert "run.v" in _row(found["inflection"], "running")
  assert "a:good>better" in _row(found["ending"], "better")
  assert _row(found["ending"], "dogs") == {"n:>s": 1.0, "v:>s": 1.0}


def test_frames(wn, found):
  texts = wn.tables.frame_texts
  want = collections.Counter()
  for row in wn.senses("give", "v"):
    numbers = {
      frame
      for frame, number in wn.tables.frames[row]
      if number in (0, wn.tables.lemmas[row].index("give") + 1)
    }
    want.update(texts.get(n) or f"frame_{n}" for n in numbers)
  assert _row(found["frame"], "give") == want


def test_only_the_groups_asked_for(wn):
  names = [v.name for v in wordnet_views.views(wn, _WORDS, ["lexname"])]
  assert names == ["wordnet_lexname"]
  with pytest.raises(errors.InputError, match="etymology"):
    list(wordnet_views.views(wn, _WORDS, ["etymology"]))
  with pytest.raises(errors.InputError, match="rhymes"):
    wordnet_views.Config(relations=("rhymes",))
  with pytest.raises(errors.InputError, match="decay"):
    wordnet_views.Config(decay=0)
