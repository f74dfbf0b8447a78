"""The report: whole, escaped, and readable without anything else."""

import base64
import html.parser
import io
import json
import re
import struct
import zlib

import numpy as np
import pytest

from experiments.run import report
from repr_jax import errors

_VOID = {"meta", "img", "br", "hr", "link", "input"}


class _Page(html.parser.HTMLParser):
  """Collects the elements of a page and checks that tags close in order."""

  def __init__(self, text: str):
    super().__init__()
    self.open: list[str] = []
    self.seen: list[tuple[str, dict[str, str | None]]] = []
    self.words: list[str] = []
    self.feed(text)
    self.close()
    assert not self.open

  def handle_starttag(self, tag, attrs):
    self.seen.append((tag, dict(attrs)))
    if tag not in _VOID:
      self.open.append(tag)

  def handle_endtag(self, tag):
    assert self.open.pop() == tag

  def handle_data(self, data):
    self.words.append(data)

  def all(self, tag: str) -> list[dict[str, str | None]]:
    return [attrs for name, attrs in self.seen if name == tag]


def _png() -> bytes:
  """One grey pixel."""

  def chunk(kind: bytes, data: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + check

  header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
  parts = (
    (b"IHDR", header),
    (b"IDAT", zlib.compress(b"\0\x80")),
    (b"IEND", b""),
  )
  return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def _chapters() -> dict[str, report.Chapter]:
  rows = [
    {"name": "SimLex", "metric": "rho", "value": 0.43, "thesis": 0.42,
     "lower": 0.40, "upper": 0.46},
    {"name": "WS353", "metric": "rho", "value": 0.50, "thesis": 0.70,
     "lower": 0.45, "upper": 0.55},
    {"name": "RG", "metric": "rho", "value": 0.7, "thesis": 0.71,
     "tolerance": 0.02},
    {"name": "MEN", "metric": "rho", "value": np.float32(0.7), "thesis": 0.71},
    {"name": "words", "metric": "count", "value": 123456},
  ]  # fmt: skip
  table = report.Table(
    "Neighbors <of> words",
    ["word", "near"],
    [["cat", "dog & <b>wolf</b>"], ["x" * 400, 3]],
    command="python -m experiments.mvlsa --mode=neighbors",
    marked=[[0, 1]],
  )
  return {
    "mvlsa": report.Chapter(
      "Multiview <script>alert(1)</script>",
      "46 views.",
      rows,
      [table],
      [report.Plot('rho against "k"', _png())],
      ["A note with https://example.org in it."],
      "python -m experiments.mvlsa",
      seconds=12.3,
    ),
    "rescal": report.Chapter("rescal", "No.", error="Traceback\n<Boom> & so"),
  }


def test_agreement_follows_interval_then_tolerance():
  verdicts = [report.agrees(row) for row in _chapters()["mvlsa"].rows]
  assert verdicts == [True, False, True, None, None]


def test_page_is_well_formed_and_needs_nothing_else(tmp_path):
  path = report.write_report(_chapters(), tmp_path, ["Preset <quick>"])
  text = path.read_text("utf-8")
  page = _Page(text)
  assert not page.all("script") and not page.all("link") and not page.all("b")
  for attributes in (attrs for _, attrs in page.seen):
    for name in ("src", "href"):
      value = attributes.get(name)
      assert value is None or value.startswith(("data:image/png", "#"))
  assert "url(" not in text and "@import" not in text
  assert page.all("html")[0]["lang"]
  assert any(attrs.get("name") == "viewport" for attrs in page.all("meta"))
  anchors = {attrs["href"] for attrs in page.all("a")}
  assert anchors == {f"#{attrs['id']}" for attrs in page.all("section")}
  for image in page.all("img"):
    assert image["alt"] == 'rho against "k"'
    assert base64.b64decode(image["src"].split(",")[1]) == _png()
  boxes = [x for x in page.all("div") if x.get("class") == "scroll"]
  assert len(boxes) == len(page.all("table")) == 2


def test_page_says_what_failed_beside_what_did_not(tmp_path):
  page = report.write_report(_chapters(), tmp_path).read_text("utf-8")
  words = " ".join("".join(_Page(page).words).split())
  assert "46 views.12 s; 2 of 3 figures agree with the thesis" in words
  assert "1 without an interval" in words
  assert "failed: <Boom> & so" in words
  assert "This chapter failed." in words
  assert "Made by python -m experiments.mvlsa --mode=neighbors" in words
  assert "dog & <b>wolf</b>" in words
  assert "123,456" in words
  assert re.search(r'<td class="differs">differs</td>', page)
  assert page.count('<td class="number differs">0.5</td>') == 1


def test_markdown_has_the_same_content(tmp_path):
  report.write_report(_chapters(), tmp_path)
  text = (tmp_path / "report.md").read_text("utf-8")
  assert "46 views; 12 s; 2 of 3 figures agree with the thesis" in text
  assert "| SimLex | rho | 0.43 | 0.4 to 0.46 | 0.42 | agrees |" in text
  assert "<script>" not in text.replace("\\<script\\>", "")
  (image,) = re.findall(r"!\[.*\]\((.*)\)", text)
  assert (tmp_path / image).read_bytes() == _png()


def test_a_chapter_comes_back_from_its_file(tmp_path):
  chapter = _chapters()["mvlsa"]
  report.save(tmp_path / "chapter.json", chapter)
  back = report.load(tmp_path / "chapter.json")
  assert back.rows[0] == chapter.rows[0]
  assert back.rows[3]["value"] == pytest.approx(0.7)
  assert back.plots == chapter.plots
  assert back.tables == chapter.tables
  assert (back.title, back.seconds) == (chapter.title, 12.3)


def test_a_chapter_of_another_version_is_refused(tmp_path):
  path = tmp_path / "chapter.json"
  report.save(path, _chapters()["mvlsa"])
  held = json.loads(path.read_text())["chapter"]
  fewer = {k: v for k, v in held.items() if k != "tables"}
  renamed = [{**table, "name": table["title"]} for table in held["tables"]]
  for value in (
    {**held, "color": "red"},
    fewer,
    {**held, "tables": renamed},
    {**held, "plots": [{"caption": "no picture"}]},
    {**held, "plots": None},
  ):
    digest = report._digest(value)
    path.write_text(json.dumps({"fingerprint": digest, "chapter": value}))
    with pytest.raises(errors.InputError, match=r"chapter\.json.*--rerun"):
      report.load(path)


def test_a_figure_becomes_a_picture():
  figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(2, 1))
  figure.subplots().plot([1, 2])
  image = pytest.importorskip("matplotlib.image")
  pixels = image.imread(io.BytesIO(report.Plot("c", figure).png()))
  assert pixels.ndim == 3 and pixels.std() > 0
