"""The report in a real browser: it loads whole, and nothing sticks out."""

import re

import pytest

from experiments.run import report, report_page

# Elements whose text is wider than they are, or that reach past the page.
_OVERFLOWS = """
() => [...document.querySelectorAll("body *")].filter(node => {
  const box = node.getBoundingClientRect();
  if (!box.width || node.closest("thead")) return false;
  const outside = box.right > document.documentElement.clientWidth + 1
      || box.left < -1;
  const cut = !node.closest("svg") && node.scrollWidth > node.clientWidth + 1
      && getComputedStyle(node).display !== "inline";
  return outside || cut;
}).map(node => node.tagName + ": " + node.textContent.slice(0, 60))
"""
# Boxes of the names at the lines of a chart that cover each other.
_COVERED = """
() => [...document.querySelectorAll(".names")].flatMap(names => {
  const boxes = [...names.children].map(x => x.getBoundingClientRect());
  return boxes.filter((a, i) => boxes.some(
      (b, j) => j > i && a.top < b.bottom - 1 && b.top < a.bottom - 1));
}).length
"""
_OPEN = "() => document.querySelectorAll('details').forEach(x => x.open = true)"


def _chapters() -> dict[str, report.Chapter]:
  rows = [
    {"name": "a system with a rather long name, " * 2, "metric": "filtered mrr",
     "value": 0.5, "thesis": 0.7, "lower": 0.45, "upper": 0.55},
    {"name": "W" * 90, "metric": "MRR", "value": 1.0, "thesis": 0.2,
     "lower": 0.9, "upper": 1.08},
    {"name": "tree V=2047 d=50 SubSet", "metric": "E^rev, % right",
     "value": 51.5, "thesis": 52, "tolerance": 1.0},
    {"name": "b", "metric": "violation", "value": 1.848e-07},
  ]  # fmt: skip
  wide = report.Table(
    "A table that is wider than a phone",
    ["word", *(f"column number {i}" for i in range(9))],
    [["x" * 60, *(12345.678 + i for i in range(9))]] * 9,
    command="python -m experiments.mvlsa --flag=" + "long" * 40,
  )
  answers = report.Table(
    "Asked with a, b; because of: " + ", ".join(["feature"] * 20),
    ["answer", "score", "justification"],
    [["Franz Schubert", 1.5, "Austrian composer known for songs. " * 9]],
  )
  pairs = report.Table(
    "Reversed pairs taken for true ones",
    ["cell", "argument 1", "argument 2", "margin"],
    [["tree V=2047 d=100 SubSet", "v138", "v69", 0.4817]],
  )
  forest = report.Forest(
    "Differences " * 20,
    "difference in MAP",
    [
      report.Point("vae:decoder=multilabel:epochs=1:latent=40+bm25", 0.4, 0.1,
                   0.7),
      report.Point("a system of a rather long name " * 3, -0.4, -0.7, -0.1),
      report.Point("Y" * 80, 0.0, -0.1, 0.1, "p 0.5"),
    ],
    sides=("worse than BM25", "better than BM25"),
  )  # fmt: skip
  lines = report.Lines(
    "Curves", "k", "precision",
    [
      report.Series(f"a line with a long name {i}", [1, 5, 10], [1, 0.5, 0.4])
      for i in range(5)
    ],
    limits=(0, 1),
  )  # fmt: skip
  claims = [
    report.claim(f"Claim {i} of some length about systems", "MAP {x}, " * 5,
                 {"x": 0.5}, lambda x, i=i: bool(i % 2))
    for i in range(8)
  ]  # fmt: skip
  return {
    "one": report.Chapter(
      "A chapter", "What was run. " * 8, rows, [wide, answers, pairs],
      [forest, lines], ["note " * 80, "u" * 300],
      "python -m experiments.one", seconds=1234.0, claims=claims,
      question="Is this a question of some length, or is it not?",
      answer="It is, by 0.5.",
    ),
    "two": report.Chapter(
      "Another", "Failed early.", error="Traceback\n" + "  at " * 100
    ),
  }  # fmt: skip


def _open(browser, tmp_path, width, scheme="light", **more):
  """A context with the report opened from disk, and what the page said."""
  path = report_page.write_report(
    _chapters(), tmp_path, ["Size quick; " * 12], "A sentence. " * 9
  )
  context = browser.new_context(
    viewport={"width": width, "height": 800}, color_scheme=scheme, **more
  )
  page = context.new_page()
  said: list[str] = []
  page.on("console", lambda message: said.append(message.text))
  page.on("pageerror", lambda error: said.append(str(error)))
  page.on("requestfailed", lambda request: said.append(request.url[:80]))
  page.goto(path.as_uri())
  return page, said


_PLACES = pytest.mark.parametrize(
  ("width", "scheme"),
  [
    (360, "light"),
    (1280, "dark"),
    pytest.param(360, "dark", marks=pytest.mark.long),
    pytest.param(1280, "light", marks=pytest.mark.long),
  ],
)


@_PLACES
def test_the_page_fits_and_loads(browser, tmp_path, width, scheme):
  page, said = _open(browser, tmp_path, width, scheme)
  assert page.evaluate(_OVERFLOWS) == []
  # The first screen is about the whole run.
  assert page.locator(".counts").bounding_box()["y"] < 400
  for link in page.locator("nav a").all():
    link.click()
    target = page.url.partition("#")[2]
    assert page.locator(f"#{target}").is_visible()
  page.evaluate(_OPEN)
  page.screenshot(path=tmp_path / f"report-{width}-{scheme}.png")
  assert page.evaluate(_OVERFLOWS) == []
  assert page.evaluate(_COVERED) == 0
  assert said == []
  page.context.close()


def test_charts_have_the_colors_of_the_page(browser, tmp_path):
  colors = {}
  for scheme in ("light", "dark"):
    page, _ = _open(browser, tmp_path, 1280, scheme)
    page.evaluate(_OPEN)
    colors[scheme] = page.evaluate(
      """() => [
        getComputedStyle(document.body).backgroundColor,
        getComputedStyle(document.querySelector(".thesis")).stroke,
        getComputedStyle(document.querySelector("li.above circle")).fill,
        getComputedStyle(document.querySelector("li.below circle")).fill,
        getComputedStyle(document.querySelector(".curve")).stroke]"""
    )
    # Nothing in a chart has paper of its own.
    assert page.evaluate(
      """() => [...document.querySelectorAll("figure, figure *")].every(
        x => getComputedStyle(x).backgroundColor === "rgba(0, 0, 0, 0)")"""
    )
    page.context.close()
  assert all(a != b for a, b in zip(colors["light"], colors["dark"]))
  assert colors["light"][2] != colors["light"][3]


def test_the_page_fits_on_paper(browser, tmp_path):
  # A4 at 96 pixels an inch, less the margins of the page's own style.
  page, _ = _open(browser, tmp_path, 794 - 106)
  page.emulate_media(media="print")
  assert page.evaluate(_OVERFLOWS) == []
  page.evaluate(_OPEN)
  assert page.evaluate(_OVERFLOWS) == []
  content = page.pdf(format="A4", prefer_css_page_size=True)
  assert len(re.findall(rb"/Type /Page\b", content)) >= 2
  page.context.close()


def test_the_check_sees_what_sticks_out(browser, tmp_path):
  page, _ = _open(browser, tmp_path, 360)
  page.add_style_tag(content="table { min-width: 30rem; }")
  assert any(x.startswith("TABLE") for x in page.evaluate(_OVERFLOWS))
  page.add_style_tag(content=".names span { top: 0 !important; }")
  page.evaluate(_OPEN)
  assert page.evaluate(_COVERED) > 0
  page.context.close()


@_PLACES
def test_axe_has_no_serious_finding(browser, tmp_path, axe, width, scheme):
  page, _ = _open(browser, tmp_path, width, scheme, bypass_csp=True)
  page.evaluate(_OPEN)
  page.add_script_tag(path=axe)
  found = page.evaluate("async () => (await axe.run()).violations")
  serious = [
    (x["id"], x["nodes"][0]["html"][:100])
    for x in found
    if x["impact"] in ("serious", "critical")
  ]
  assert serious == []
  page.context.close()
