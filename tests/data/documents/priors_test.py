"""p(entity | mention): counted, written, read, and bounded."""

import pytest

from repr_jax import errors
from repr_jax.data.documents import priors

_LINKS = [("US", "United States")] * 3 + [
  ("US", "Us (film)"),
  ("US", "Us Weekly"),
  ("Us", "Us (film)"),
]


def test_probabilities_by_count_then_name():
  prior = priors.count_links(_LINKS)
  assert prior.probabilities("US") == [
    ("United States", 0.6),
    ("Us (film)", 0.2),
    ("Us Weekly", 0.2),
  ]
  assert prior.probabilities("US", top=1) == [("United States", 0.6)]
  assert prior.probabilities("us") == []


def test_the_order_of_links_does_not_matter():
  forward, back = priors.count_links(_LINKS), priors.count_links(_LINKS[::-1])
  assert forward.probabilities("US") == back.probabilities("US")


def test_own_links_can_be_left_out():
  prior = priors.count_links(_LINKS)
  found = prior.probabilities("US", {"Us (film)": 1, "United States": 2})
  assert found == [("United States", 0.5), ("Us Weekly", 0.5)]


def test_memory_is_bounded_and_frequent_pairs_stay():
  rare = ((f"m{i}", f"e{i}") for i in range(1000))
  links = [("US", "United States")] * 50 + list(rare)
  prior = priors.count_links(links, limit=100)
  assert sum(map(len, prior.counts.values())) <= 100
  assert prior.counts["US"] == {"United States": 50}


def test_written_and_read_again(tmp_path):
  prior = priors.count_links(_LINKS)
  path = tmp_path / "p.txt.gz"
  priors.write_prior(path, prior)
  assert priors.read_prior(path) == prior
  assert priors.read_prior(path, top=1).counts["US"] == {"United States": 3}


def test_the_public_format(tmp_path):
  path = tmp_path / "p_e_m.txt"
  path.write_text(
    "Big Apple\t120\t645042,110,New_York_City\t17,10,Apple,_big\n"
    "Paris\t50\t22989,0.98,Paris\t4,0.02,Paris, Texas\t\n"
  )
  prior = priors.read_prior(path)
  assert prior.counts["Big Apple"] == {"New York City": 110, "Apple, big": 10}
  assert prior.probabilities("Paris") == [
    ("Paris", pytest.approx(0.98)),
    ("Paris, Texas", pytest.approx(0.02)),
  ]


@pytest.mark.parametrize("total", ["2\t", ""])
def test_without_counts_all_entities_are_as_likely(tmp_path, total):
  path = tmp_path / "yago_p_e_m.txt"
  path.write_text(
    f"NYC\t{total}645042,New_York_City\t2,Washington,_D.C.\t\n"
    f"Race\t{total}7,1,000_Guineas\t8,Ascot\n"
  )
  prior = priors.read_prior(path)
  assert prior.counts == {
    "NYC": {"New York City": 1, "Washington, D.C.": 1},
    "Race": {"1,000 Guineas": 1, "Ascot": 1},
  }
  assert prior.probabilities("NYC")[0] == ("New York City", 0.5)
  path.write_text(f"{path.read_text()}x\t{total}New_York_City\n")
  with pytest.raises(errors.InputError, match=r":3: expected .*id,title"):
    priors.read_prior(path)


@pytest.mark.parametrize(
  "line",
  ["x", "x\tmany\t1,2,X", "x\t3\t1,2", "x\t3\t1,-2,X", "x\t3\t1,nan,X",
   "x\tinf\t1,2,X", "\t3\t1,2,X"],
)  # fmt: skip
def test_bad_lines_are_named(tmp_path, line):
  (tmp_path / "p").write_text(f"a\t1\t1,1,A\n{line}\n")
  with pytest.raises(errors.InputError, match="p:2: "):
    priors.read_prior(tmp_path / "p")


def test_empty_files_and_names_with_tabs_are_refused(tmp_path):
  (tmp_path / "p").write_text("\n")
  with pytest.raises(errors.InputError, match="no mentions"):
    priors.read_prior(tmp_path / "p")
  with pytest.raises(errors.InputError, match="tab-separated"):
    priors.write_prior(tmp_path / "q", priors.count_links([("a\tb", "e")]))
  assert not (tmp_path / "q").exists()
