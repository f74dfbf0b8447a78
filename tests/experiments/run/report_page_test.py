"""The page and the Markdown: whole, escaped, the important things first."""

import html.parser
import re

import pytest

from experiments.run import report, report_page

_VOID = {"meta", "br", "hr", "link", "input"}
_HOSTILE = '<script>alert("1")</script>'


class _Page(html.parser.HTMLParser):
  """Collects the elements of a page and checks that tags close in order."""

  def __init__(self, text: str):
    super().__init__()
    self.open: list[str] = []
    self.seen: list[tuple[str, dict[str, str | None]]] = []
    self.words: list[str] = []
    self.folded: list[str] = []
    self.feed(text)
    self.close()
    assert not self.open

  def handle_starttag(self, tag, attrs):
    self.seen.append((tag, dict(attrs)))
    if tag not in _VOID:
      self.open.append(tag)

  def handle_startendtag(self, tag, attrs):
    self.seen.append((tag, dict(attrs)))

  def handle_endtag(self, tag):
    assert self.open.pop() == tag

  def handle_data(self, data):
    if "style" not in self.open and "title" not in self.open:
      (self.folded if "details" in self.open else self.words).append(data)

  def all(self, tag: str) -> list[dict[str, str | None]]:
    return [attrs for name, attrs in self.seen if name == tag]

  @property
  def shown(self) -> str:
    return " ".join(" ".join(self.words).split())

  @property
  def hidden(self) -> str:
    return " ".join(" ".join(self.folded).split())


def _chapters() -> dict[str, report.Chapter]:
  rows = [
    {"name": "SIMLEX", "metric": "Spearman x 100", "value": 47.0,
     "thesis": 43.9, "lower": 41.4, "upper": 52.3},
    {"name": "WS", "metric": "Spearman x 100", "value": 50.0, "thesis": 70.1,
     "lower": 45.0, "upper": 55.0},
    {"name": "puzzle A", "metric": "MRR", "value": 0.99, "thesis": 0.2,
     "lower": 0.9, "upper": 1.08},
    {"name": "bm25", "metric": "infAP", "value": 0.71, "thesis": 0.5453},
    {"name": "words", "metric": "count", "value": 123456},
  ]  # fmt: skip
  claims = [
    report.claim("Rules hold", "violation {x:.0e}", {"x": 1e-7},
                 lambda x: x["x"] < 1e-5),
    report.claim("Training helps", "p = {p}", {"p": 0.42},
                 lambda x: x["p"] < 0.05),
  ]  # fmt: skip
  return {
    "mvlsa": report.Chapter(
      f"Multiview {_HOSTILE}",
      "46 views.",
      rows,
      [report.Table(f"Neighbors {_HOSTILE}", ["word", _HOSTILE],
                    [["cat", f"dog & {_HOSTILE}"], ["x" * 400, 3]],
                    command="python -m experiments.mvlsa --mode=neighbors")],
      [report.Forest(_HOSTILE, "MAP", [report.Point(_HOSTILE, 1.0)])],
      [f"A note with https://example.org in it. {_HOSTILE}"],
      "python -m experiments.mvlsa",
      seconds=12.3,
      question=f"Is it so? {_HOSTILE}",
      answer=f"Yes, 47.0. {_HOSTILE}",
      claims=claims,
    ),
    "rescal": report.Chapter("Trees", "No.", error="Traceback\n<Boom> & so"),
    "ned": report.Chapter("Names", "Nothing to compare."),
  }  # fmt: skip


def _written(tmp_path, chapters=None, **more) -> _Page:
  path = report_page.write_report(
    _chapters() if chapters is None else chapters, tmp_path, **more
  )
  return _Page(path.read_text("utf-8"))


def test_the_page_needs_nothing_else_and_runs_nothing(tmp_path):
  page = _written(tmp_path, about=[f"Size {_HOSTILE}"], lead=_HOSTILE)
  text = (tmp_path / "report.html").read_text("utf-8")
  for tag in ("script", "link", "img", "b"):
    assert not page.all(tag)
  for _, attributes in page.seen:
    assert attributes.get("src") is None
    assert (attributes.get("href") or "#").startswith("#")
    assert not any(name.startswith("on") for name in attributes)
  assert "url(" not in text and "@import" not in text
  assert "<script" not in text
  assert page.shown.count(_HOSTILE) >= 5 and _HOSTILE in page.hidden
  assert page.all("html")[0]["lang"]
  assert any(attrs.get("name") == "viewport" for attrs in page.all("meta"))
  anchors = {attrs["href"] for attrs in page.all("a")}
  assert anchors == {f"#{attrs['id']}" for attrs in page.all("section")}


def test_the_first_screen_counts_and_names_what_failed(tmp_path):
  first = _written(tmp_path).shown.partition("46 views")[0]
  assert "1 figure agrees 1 above the thesis 1 below the thesis" in first
  assert "1 chapter has no figure to compare 1 chapter failed" in first
  assert "Trees failed: <Boom> & so" in first
  whole = {"ned": _chapters()["ned"]}
  assert "failed" not in _written(tmp_path, whole).shown


def test_claims_stand_on_the_side_that_their_figures_are_on(tmp_path):
  shown = _written(tmp_path).shown
  holds, _, rest = shown.partition("Does not hold here")
  _, _, holds = holds.partition("Holds")
  assert "Rules hold : violation 1e-7." in holds
  assert "Training helps" not in holds
  assert rest.strip().startswith(
    "Training helps : p\xa0=\xa00.42.".replace("\xa0", " ")
  )
  twice = {
    "a": report.Chapter("a", "b", claims=_chapters()["mvlsa"].claims * 2)
  }
  folded = _written(tmp_path, twice)
  assert folded.shown.count("Rules hold") == 1
  assert "1 more Rules hold" in folded.hidden
  none = report.Chapter("a", "b")
  page = _written(tmp_path, {"a": none})
  assert "Holds" not in page.shown and "Does not hold" not in page.shown


def test_all_comparable_figures_are_in_one_chart(tmp_path):
  page = (report_page.page(_chapters(), [], "")).partition("<section")[0]
  for text in ("47 / 43.9", "50 / 70.1", "0.99 / 0.2"):
    assert page.count(text) == 1
  # Neither what has no interval nor what the thesis does not have.
  assert "0.71" not in page and "123,456" not in page


def test_figures_that_cannot_be_compared_do_not_stand_side_by_side(tmp_path):
  page = _written(tmp_path)
  (line,) = re.findall(r"BM25 infAP 0.71(.*?)words", page.shown)
  assert "0.5453" not in line
  assert "not compared here: BM25, infAP: 0.5453." in page.hidden


def test_intervals_in_tables_stay_within_the_range(tmp_path):
  shown = _written(tmp_path).shown
  assert "0.9 to 1 0.2 above" in shown and "1.08" not in shown


def test_a_chapter_shows_a_question_an_answer_and_a_small_table(tmp_path):
  rows = [[f"system {i}", i] for i in range(20)]
  chapter = report.Chapter(
    "Short",
    "Run on data.",
    [{"name": "a", "metric": "MRR", "value": 0.25}],
    table=report.Table("Systems", ["system", "score"], rows),
    question="Which is best?",
    answer="System 0.",
    charts=[report.Forest(f"Picture {i}", "MAP", []) for i in range(2)],
    command="python -m experiments.x",
  )
  page = _written(tmp_path, {"x": chapter})
  assert "Which is best? System 0. Run on data; no comp" in page.shown
  assert "system 7" in page.shown and "system 8" not in page.shown
  assert "system 8" in page.hidden and "0.25" in page.hidden
  assert "Picture 0" in page.shown and "Picture 1" in page.hidden
  assert "More: tables, pictures, command" in page.hidden
  assert "Made by python -m experiments.x" in page.hidden


def test_without_a_table_the_first_figures_are_shown(tmp_path):
  rows = [{"name": f"r{i}", "metric": "MRR", "value": 0.1} for i in range(9)]
  page = _written(tmp_path, {"x": report.Chapter("X", "", rows)})
  assert "The first 8 figures" in page.shown and "r8" not in page.shown
  assert "r8" in page.hidden
  page = _written(tmp_path, {"x": report.Chapter("X", "", rows[:8])})
  assert "r7" in page.shown and "r7" not in page.hidden


@pytest.mark.parametrize("error", [None, "", "boom"])
def test_an_empty_chapter_is_a_chapter(tmp_path, error):
  page = _written(tmp_path, {"x": report.Chapter("Empty", "", error=error)})
  assert "Empty" in page.shown
  assert ("This chapter failed." in page.shown) is (error is not None)
  _written(tmp_path, {})


def test_a_wide_table_of_few_rows_is_turned():
  table = report.Table(
    "T", ["kind", *(f"s{i}" for i in range(12))],
    [["a", *range(12)], ["b", *range(12)]],
  )  # fmt: skip
  text = report_page.table_html(table)
  assert text.count("<tr>") == 13
  assert "cards" not in text
  many = report.Table("T", table.header, [["a", *range(12)]] * 9)
  assert 'class="cards"' in report_page.table_html(many)


def test_markdown_has_the_same_content(tmp_path):
  _written(tmp_path, lead="Small data.", about=["2 cores"])
  text = (tmp_path / "report.md").read_text("utf-8")
  assert "46 views; 12 s; 1 of 3 figures agree with the thesis" in text
  assert "| SimLex-999 | Spearman x 100 | 47 | 41.4 to 52.3 | 43.9 |" in text
  assert "## Holds\n\n- Rules hold: violation 1e-7." in text
  assert "## Does not hold here\n\n- Training helps" in text
  assert "<script>" not in text.replace("\\<script\\>", "")
  assert "Small data." in text and "2 cores" in text
  assert "Made by `python -m experiments.mvlsa --mode=neighbors`" in text
