"""The command of the thesis' WN18 table."""

import pytest

from experiments.elkb import thesis_table
from repr_jax.errors import InputError

_OF_A_RELATION = {
  "name": "wn18 A _hypernym", "metric": "mrr filtered both", "value": 0.77,
}  # fmt: skip


def test_each_system_has_its_command(tmp_path):
  root, made = thesis_table.commands(
    ["--preset=elkb_fast", f"--workdir={tmp_path}"]
  )
  assert root == tmp_path and list(made) == [
    "A",
    "A_rules",
    "B",
    "T",
    "B_rules",
  ]
  assert made["A"][1:] == [
    "--model=A", f"--workdir={tmp_path / 'A'}", "--noconstrained",
  ]  # fmt: skip
  assert made["B_rules"][-1] == f"--combine_with={tmp_path / 'T'}"
  for wrong in (["--model=A", "--workdir=x"], ["--dim=4"], ["x"]):
    with pytest.raises(InputError):
      thesis_table.commands(wrong)
  assert thesis_table.main(["--dim=4"]) == 2


def test_six_rows_beside_the_thesis():
  def rows(label, value):
    return [
      {"name": f"wn18 {label}", "metric": f"{metric} {kind} both",
       "value": value}
      for metric in ("mrr", "hits@3", "hits@10") for kind in ("raw", "filtered")
    ] + [_OF_A_RELATION]  # fmt: skip

  results = {x: rows(x, i / 10) for i, (x, *_) in enumerate(thesis_table.RUNS)}
  results["B_rules"] += rows("B+T", 0.9)
  lines = thesis_table.table(results).splitlines()
  assert len(lines) == 8 and "0.77" not in "".join(lines)
  assert "B + T" in lines[-1] and ".900" in lines[-1] and "0.367" in lines[-1]
  assert "B + rules" in lines[5] and ".400" in lines[5] and "0.241" in lines[5]
