"""The report in a real browser: it loads whole, and nothing sticks out."""

import pytest

from experiments.run import report

# Elements whose text is wider than they are, or that reach past the page;
# what scrolls by itself may hold wider things.
_OVERFLOWS = """
() => [...document.querySelectorAll("body *")].filter(node => {
  const box = node.getBoundingClientRect();
  if (!box.width || node.closest("svg")) return false;
  let scroller = node.closest(".scroll");
  if (scroller && getComputedStyle(scroller).overflowX !== "auto")
    scroller = null;
  const outside = box.right > document.documentElement.clientWidth + 1;
  const cut = node.scrollWidth > node.clientWidth + 1
      && getComputedStyle(node).display !== "inline";
  return scroller ? (node === scroller && outside) : (outside || cut);
}).map(node => node.tagName + ": " + node.textContent.slice(0, 60))
"""


def _chapters() -> dict[str, report.Chapter]:
  figure = pytest.importorskip("matplotlib.figure")
  picture = figure.Figure(figsize=(12, 4))
  picture.subplots().plot([1, 2, 3])
  rows = [
    {"name": "a system with a rather long name, " * 2, "metric": "filtered mrr",
     "value": 0.5, "thesis": 0.7, "lower": 0.45, "upper": 0.55},
    {"name": "W" * 90, "metric": "violation", "value": 1.848e-07},
  ]  # fmt: skip
  wide = report.Table(
    "A table that is wider than a phone",
    ["word", *(f"column number {i}" for i in range(9))],
    [["x" * 60, *(12345.678 + i for i in range(9))]],
    command="python -m experiments.mvlsa --flag=" + "long" * 40,
  )
  answers = report.Table(
    "Asked with a, b; because of: " + ", ".join(["feature"] * 20),
    ["answer", "score", "justification"],
    [["Franz Schubert", 1.5, "Austrian composer known for songs. " * 9]],
  )
  return {
    "one": report.Chapter(
      "A chapter", "What was run. " * 8, rows, [wide, answers],
      [report.Plot("A caption " * 20, picture)], ["note " * 80, "u" * 300],
      "python -m experiments.one", seconds=1234.0,
    ),
    "two": report.Chapter(
      "Another", "Failed early.", error="Traceback\n" + "  at " * 100
    ),
  }  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_and_loads(browser, tmp_path, width, scheme):
  path = report.write_report(_chapters(), tmp_path, ["Preset quick; " * 12])
  context = browser.new_context(
    viewport={"width": width, "height": 800}, color_scheme=scheme
  )
  page = context.new_page()
  said: list[str] = []
  page.on("console", lambda message: said.append(message.text))
  page.on("pageerror", lambda error: said.append(str(error)))
  page.on("requestfailed", lambda request: said.append(request.url[:80]))
  page.goto(path.as_uri())
  page.screenshot(path=tmp_path / f"report-{width}-{scheme}.png")
  assert said == []
  assert page.evaluate(
    "() => [...document.images].every(x => x.complete && x.naturalWidth > 0)"
  )
  assert page.locator("img").count() == 1
  assert page.evaluate(_OVERFLOWS) == []
  # Every line of the top leads to its chapter.
  for link in page.locator("nav a").all():
    link.click()
    target = page.url.partition("#")[2]
    assert page.locator(f"#{target}").is_visible()
  context.close()


def test_the_check_sees_what_sticks_out(browser, tmp_path):
  path = report.write_report(_chapters(), tmp_path)
  text = path.read_text("utf-8")
  path.write_text(text.replace("overflow-x: auto;", "", 1), "utf-8")
  page = browser.new_page(viewport={"width": 360, "height": 800})
  page.goto(path.as_uri())
  assert any(x.startswith("TABLE") for x in page.evaluate(_OVERFLOWS))
  page.close()
