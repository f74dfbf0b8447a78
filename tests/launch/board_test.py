"""The display of a sweep and its best run."""

import io
import json
import time

from launch import board


class _Terminal(io.StringIO):
  def isatty(self):
    return True


def test_the_table_is_drawn_over_on_a_terminal_only(tmp_path):
  log = tmp_path / "log.txt"
  log.write_text("[now] command\nepoch: 1/9\repoch: 2/9, 3/s")
  counts = board.Counts(1, 2, 0, 4)
  job = ("eta=0.1", time.monotonic() - 65, log)
  screen, paper = _Terminal(), io.StringIO()
  for stream in (screen, paper):
    shown = board.Board("tried", stream)
    shown.draw(counts, "MRR 0.5 (eta=0.1)", [job] * 14)
    shown.say("done     eta=0.3")
  text = screen.getvalue()
  assert "1 done, 2 running, 0 failed, 4 waiting" in text
  assert "best: MRR 0.5" in text and "0:01:05  epoch: 2/9, 3/s" in text
  assert "and 2 more" in text
  assert "\x1b[15F\x1b[J" in text  # as many lines as were drawn
  assert paper.getvalue() == "done     eta=0.3\n"


def test_the_best_is_by_the_figure_asked_for(tmp_path):
  rows = [
    {"name": "a", "metric": "loss", "value": 3.0},
    {"name": "b", "metric": "MRR", "value": 0.25, "thesis": 0.2},
    {"name": "c", "metric": "MRR", "value": 0.5},
  ]
  (tmp_path / "results.json").write_text(json.dumps({"rows": rows}))
  assert board.Best().add("one", tmp_path) == "MRR 0.25"
  assert board.Best("c: MRR").add("one", tmp_path) == "MRR 0.5"
  assert board.Best("recall").add("one", tmp_path) == ""
  unknown = board.Best("KL")
  kl = {"name": "d", "metric": "KL", "value": 9.0}
  (tmp_path / "results.json").write_text(json.dumps({"rows": [*rows, kl]}))
  assert unknown.add("one", tmp_path) == "KL 9" and unknown.text == ""
  valid = {"name": "b", "metric": "validation mrr", "value": 0.125}
  (tmp_path / "results.json").write_text(json.dumps({"rows": [*rows, valid]}))
  assert board.Best().add("one", tmp_path) == "validation mrr 0.125"
  least = board.Best("loss")
  least.add("one", tmp_path)
  rows[0]["value"] = 2.0
  (tmp_path / "results.json").write_text(json.dumps({"rows": rows}))
  least.add("two", tmp_path)
  assert least.text == "loss 2 (two)"
