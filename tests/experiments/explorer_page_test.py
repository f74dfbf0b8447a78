"""The explorer's page in a real browser, as an analyst uses it."""

import csv
import json
import re
import shutil

import pytest

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect
_CHROMIUM = next(
  filter(
    None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
  ),
  None,
)
pytestmark = pytest.mark.skipif(
  _CHROMIUM is None, reason="no Chromium is installed"
)


@pytest.fixture(scope="module")
def browser():
  with playwright.sync_playwright() as started:
    opened = started.chromium.launch(
      executable_path=_CHROMIUM, args=["--no-sandbox"]
    )
    yield opened
    opened.close()


@pytest.fixture
def context(browser, request):
  wanted = getattr(request, "param", (1280, "light"))
  opened = browser.new_context(
    viewport={"width": wanted[0], "height": 800}, color_scheme=wanted[1]
  )
  opened.set_default_timeout(20_000)
  yield opened
  opened.close()


@pytest.fixture
def said():
  """Messages on the page's console; any is an error."""
  found = []
  yield found
  assert found == []


@pytest.fixture
def page(context, explored, said):
  """An empty page."""
  opened = context.new_page()
  opened.on("console", lambda message: said.append(message.text))
  opened.on("pageerror", lambda error: said.append(str(error)))
  opened.on("dialog", lambda dialog: said.append("a dialog opened"))
  opened.goto(explored.url)
  expect(opened.locator(".example").first).to_be_visible()
  return opened


def _add(page, text):
  page.get_by_role("combobox", name="Add an entity").fill(text)
  option = page.locator("#found [aria-selected=true]")
  expect(option).to_contain_text(re.compile(re.escape(text), re.I))
  page.keyboard.press("Enter")
  expect(page.locator("#found")).to_be_hidden()


def _settled(page, change):
  """Waits until a change of the page has all its answers."""
  before = page.evaluate("document.body.dataset.settled ?? ''")
  change()
  page.wait_for_function(
    "before => (document.body.dataset.settled ?? '') !== before", arg=before
  )


def _names(page, place=0):
  return page.locator(f"[data-list='{place}'] .name").all_inner_texts()


def _words(page):
  return page.locator("#shares .feature").all_inner_texts()


def test_a_query_is_built_turned_and_shared(page, context, tmp_path):
  _settled(page, lambda: _add(page, "River 1"))
  _settled(page, lambda: _add(page, "Composer 2"))
  names, words = _names(page), _words(page)
  assert len(names) == 10 and len(words) > 3
  assert page.locator(".sentences p").count() >= 10
  assert page.locator(".sentences mark").count() > 0
  slider = page.get_by_role("slider", name="Weight of Composer 2")
  slider.focus()

  def turn():
    for _ in range(18):
      page.keyboard.press("ArrowLeft")

  _settled(page, turn)
  assert slider.input_value() == "-0.8"
  expect(page.locator(".chips li.away output")).to_have_text("−0.8")
  expect(slider).to_be_focused()
  turned = _names(page)
  assert turned != names and _words(page) != words
  rivers = sum(x.startswith("River") for x in turned)
  assert rivers > sum(x.startswith("River") for x in names)
  assert page.locator("#entered .feature").count() > 0
  assert page.locator("#left .feature").count() > 0
  assert page.locator("#dimensions li").count() == 4
  assert page.locator("#concept-features li").count() == 12

  shared = context.new_page()
  shared.goto(page.url)
  expect(shared.locator(".chips .name")).to_have_text(["River 1", "Composer 2"])
  other = shared.get_by_role("slider", name="Weight of Composer 2")
  assert other.input_value() == "-0.8"
  expect(shared.locator("[data-list='0'] .name")).to_have_text(turned)

  page.go_back()
  expect(page.locator(".chips .name")).to_have_text(["River 1"])


def _percents(texts):
  found = [re.search(r"(−?)([\d.]+) %$", text) for text in texts]
  return [float(x[2]) * (-1 if x[1] else 1) for x in found]


@pytest.mark.parametrize("system", ["nvse", "nvse+bm25"])
def test_shares_of_the_scores_are_shown_and_add_up(page, system):
  _settled(page, lambda: page.locator(".example").first.click())
  if system != "nvse":
    _settled(page, lambda: page.locator("#system").select_option(system))
  whole = _percents(page.locator("#shares .score").all_inner_texts())
  assert len(whole) == 13 and sum(whole) == pytest.approx(100, abs=2)
  assert whole[:12] == sorted(whole[:12], key=abs, reverse=True)
  expect(page.locator("#shares li").last).to_contain_text("the rest")
  for result in page.locator(".result .because").all()[:5]:
    parts = result.locator(".part").all_inner_texts()
    assert len(parts) == 5 and parts[-1].startswith("the rest")
    assert sum(_percents(parts)) == pytest.approx(100, abs=1.5)
    # What the list on the side sums up is what the results show.
    words = set(result.locator(".feature").all_inner_texts())
    assert words & set(_words(page))
  if system == "nvse":
    _settled(page, lambda: page.locator("#ranking").select_option("xi"))
    expect(page.locator("#shares li").first).to_contain_text("dimension")


def test_results_join_the_query_from_either_side(page):
  _settled(page, lambda: page.locator(".example").first.click())
  expect(page.locator(".chips li")).to_have_count(3)
  first = _names(page)[0]
  _settled(
    page,
    lambda: page.get_by_role(
      "button", name=f"Add to query: {first}", exact=True
    ).click(),
  )
  assert first not in _names(page)
  second = _names(page)[0]
  _settled(
    page,
    lambda: page.get_by_role(
      "button", name=f"Not like this: {second}", exact=True
    ).click(),
  )
  expect(page.locator(".chips li.away .name")).to_have_text(second)
  expect(page.locator(".chips li.away output")).to_have_text("−0.1")
  _settled(
    page, lambda: page.get_by_role("button", name=f"Remove {second}").click()
  )
  expect(page.locator(".chips li")).to_have_count(4)
  page.keyboard.press("Delete")
  expect(page.locator(".chips li")).to_have_count(3)
  page.get_by_role("button", name="Clear").click()
  expect(page.locator(".example").first).to_be_visible()
  expect(page.get_by_role("combobox", name="Add an entity")).to_be_focused()


def test_two_systems_stand_side_by_side_and_are_exported(page, tmp_path):
  _settled(page, lambda: _add(page, "River 3"))
  _settled(page, lambda: page.get_by_label("Compare with another").check())
  assert len(_names(page, 1)) == 10
  _settled(
    page, lambda: page.locator("#other-system").select_option("setexpan")
  )
  expect(page.locator("#list-1")).to_have_text("SetExpan")
  _settled(page, lambda: page.locator("#ranking").select_option("xi"))
  _settled(page, lambda: page.locator("#other-system").select_option("nvse"))
  expect(page.locator("#list-1")).to_have_text("NVSE, features")
  expect(page.locator("#list-0")).to_have_text("NVSE, natural parameters")
  for kind in ("CSV", "JSON"):
    with page.expect_download() as download:
      page.get_by_role("button", name=kind).click()
    download.value.save_as(tmp_path / kind)
  rows = list(csv.DictReader((tmp_path / "CSV").open(newline="")))
  assert [x["name"] for x in rows[:10]] == _names(page, 0)
  assert {x["ranking"] for x in rows} == {"xi", "features"}
  assert {x["query"] for x in rows} == {"River 3:1"}
  assert all(x["sentence"] for x in rows if x["name"] != "Mute")
  assert all("word:" in x["reasons"] for x in rows[10:])
  found = json.loads((tmp_path / "JSON").read_text())
  assert [x["name"] for x in found["lists"][1]["results"]] == _names(page, 1)
  assert found["concept"]["features"] and found["lists"][0]["members"]
  assert all(x["reasons"]["sum"]["parts"] for x in found["lists"])


def test_a_list_is_pasted_and_names_stay_text(page):
  page.get_by_text("Paste a list").click()
  page.locator("#paste-text").fill("River 1:0.5\nRivr 2, Mute")
  _settled(page, lambda: page.get_by_role("button", name="Add all").click())
  expect(page.locator("#paste-report")).to_contain_text("Added 1.")
  expect(page.locator("#paste-report")).to_contain_text("Mute has no features")
  suggestion = page.locator("#paste-report").get_by_role(
    "button", name="River 2", exact=True
  )
  _settled(page, suggestion.click)
  expect(page.locator(".chips .name")).to_have_text(["River 1", "River 2"])
  _settled(page, lambda: _add(page, "<img src"))
  expect(page.locator(".chips .name").last).to_contain_text("<img src=x")
  assert page.locator("main img").count() == 0
  page.reload()
  expect(page.locator(".chips .name").last).to_contain_text("<img src=x")


def test_errors_and_zero_weights_are_told(page, said):
  _settled(page, lambda: _add(page, "River 1"))
  page.get_by_role("slider", name="Weight of River 1").focus()
  for _ in range(10):
    page.keyboard.press("ArrowLeft")
  expect(page.locator("#status")).to_contain_text("All weights are zero")
  expect(page.locator(".result")).to_have_count(0)
  page.route("**/api/expand", lambda route: route.abort())
  page.keyboard.press("ArrowRight")
  expect(page.get_by_role("alert")).to_contain_text("does not answer")
  page.unroute("**/api/expand")
  said.clear()  # The browser tells of the lost request too.
  _settled(page, lambda: page.keyboard.press("ArrowRight"))
  expect(page.get_by_role("alert")).to_be_hidden()


def test_an_entity_opens_and_joins_the_query(page):
  _settled(page, lambda: _add(page, "River 1"))
  first = page.locator(".result button.name").first
  name = first.inner_text()
  first.click()
  opened = page.get_by_role("dialog", name=name)
  expect(opened.get_by_role("listitem").first).to_be_visible()
  assert opened.locator(".feature").count() > 3
  near = opened.locator(".words button").first
  other = near.inner_text()
  near.click()
  opened = page.get_by_role("dialog", name=other)
  expect(opened).to_be_visible()
  _settled(
    page, lambda: opened.get_by_role("button", name="Not like this").click()
  )
  expect(page.locator(".chips li.away .name")).to_have_text(other)


def test_duplicates_become_one_and_are_undone(page, context, tmp_path):
  _settled(page, lambda: _add(page, "River 1"))
  names = _names(page)

  def join(name, other):
    page.get_by_role("button", name=f"Same as another: {name}").click()
    opened = page.get_by_role("dialog", name=f"The same entity as {name}")
    opened.get_by_role("button", name=other, exact=True).click()

  _settled(page, lambda: join(names[1], names[0]))
  assert _names(page) == [names[0], *names[2:]]
  _settled(page, lambda: join(names[2], "River 1"))
  assert names[2] not in _names(page)
  expect(page.locator(".chips .name")).to_have_text(["River 1"])
  for button, file in (("Save duplicates", "same.json"), ("CSV", "csv")):
    with page.expect_download() as download:
      page.get_by_role("button", name=button).click()
    download.value.save_as(tmp_path / file)
  groups = json.loads((tmp_path / "same.json").read_text())
  assert [len(x) for x in groups] == [2, 2]
  (row, *_) = csv.DictReader((tmp_path / "csv").open(newline=""))
  assert row["query"] == f"River 1:0.5; {names[2]}:0.5"
  shared = context.new_page()
  shared.goto(page.url)
  expect(shared.locator("#same li")).to_have_count(2)
  for _ in range(2):
    undo = page.get_by_role("button", name=re.compile("^Undo "))
    _settled(page, undo.last.click)
  assert _names(page) == names
  expect(page.locator("#merged")).to_be_hidden()


def test_the_focus_stays_in_the_list(page):
  _settled(page, lambda: _add(page, "River 1"))
  buttons = page.get_by_role("button", name=re.compile("^Add to query: "))
  buttons.nth(1).focus()
  _settled(page, lambda: page.keyboard.press("Enter"))
  expect(buttons.nth(1)).to_be_focused()


def test_bars_begin_at_zero(page):
  _settled(page, lambda: page.locator(".example").first.click())
  scores = page.locator(".result .score").all_inner_texts()
  values = [float(x.split()[-1].replace("−", "-")) for x in scores]
  widths = page.evaluate(
    """() => [...document.querySelectorAll(".result > .bar > .fill")]
      .map((x) => parseFloat(x.style.width))"""
  )
  for value, width in zip(values, widths, strict=True):
    assert width == pytest.approx(100 * value / max(values), abs=1)


@pytest.mark.parametrize(
  "context",
  [(360, "light"), pytest.param((1280, "dark"), marks=pytest.mark.long)],
  indirect=True,
)
def test_axe_finds_nothing(page, context, axe):
  _settled(page, lambda: page.locator(".example").first.click())
  _settled(page, lambda: page.get_by_label("Compare with another").check())
  page.evaluate(axe.read_text("utf-8"))
  page.locator(".result button.name").first.click()
  expect(page.locator("#page")).to_be_visible()
  for closed in (False, True):
    if closed:
      page.keyboard.press("Escape")
    outcome = page.evaluate("axe.run()")
    broken = [(x["id"], x["nodes"][0]["html"]) for x in outcome["violations"]]
    assert broken == []


def test_keys_reach_everything(page):
  page.keyboard.press("/")
  find = page.get_by_role("combobox", name="Add an entity")
  expect(find).to_be_focused()
  page.keyboard.type("river 1")
  expect(page.locator("#found li").nth(2)).to_be_visible()
  page.keyboard.press("ArrowDown")
  chosen = page.locator("#found [aria-selected=true]").inner_text()
  active = find.get_attribute("aria-activedescendant")
  assert page.locator(f"#{active}").inner_text() == chosen
  page.keyboard.press("Escape")
  expect(page.locator("#found")).to_be_hidden()
  find.fill("river 10")
  _settled(page, lambda: page.keyboard.press("Enter"))  # Before the list.
  expect(page.locator(".chips .name")).to_have_text("River 10")
  order = []
  for _ in range(9):
    page.keyboard.press("Tab")
    order.append(
      page.evaluate(
        "document.activeElement.ariaLabel ?? document.activeElement.id ?? ''"
      )
      or page.evaluate("document.activeElement.tagName")
    )
  assert order[:5] == [
    "SUMMARY", "Remove River 10", "Weight of River 10", "clear", "share",
  ]  # fmt: skip
  page.locator("#results-heading").focus()
  page.keyboard.press("?")
  help_ = page.get_by_role("dialog")
  expect(help_).to_contain_text("Share of the scores")
  page.keyboard.press("Escape")
  expect(help_).to_be_hidden()
  page.get_by_role("button", name="Help").click()
  page.get_by_role("button", name="Close").click()
  expect(help_).to_be_hidden()


@pytest.mark.parametrize(
  "context",
  [
    (360, "light"),
    (1280, "dark"),
    pytest.param((360, "dark"), marks=pytest.mark.long),
    pytest.param((768, "light"), marks=pytest.mark.long),
  ],
  indirect=True,
)
def test_nothing_overflows_and_controls_have_names(page, context, tmp_path):
  _settled(page, lambda: page.locator(".example").first.click())
  _settled(page, lambda: _add(page, "<img src"))
  _settled(page, lambda: page.get_by_label("Compare with another").check())
  page.screenshot(path=tmp_path / "explorer.png", full_page=True)
  width, inner = page.evaluate(
    "[document.documentElement.scrollWidth, window.innerWidth]"
  )
  assert width <= inner
  outside = page.evaluate(
    """() => [...document.querySelectorAll("main *")]
      .filter((x) => x.getClientRects().length && !x.matches(".hidden"))
      .filter((x) => x.getBoundingClientRect().right > window.innerWidth + 1)
      .map((x) => x.outerHTML.slice(0, 80))"""
  )
  assert outside == []
  for role, name in (
    ("region", "Query"), ("region", "Results"), ("region", "Why"),
    ("list", "Share of the scores"), ("list", "Concept of the query"),
  ):  # fmt: skip
    expect(page.get_by_role(role, name=name, exact=True)).to_be_visible()
  small = page.evaluate(
    """() => [...document.querySelectorAll("button, input, select, summary")]
      .map((x) => [x.getBoundingClientRect(), x.outerHTML.slice(0, 80)])
      .filter(([box]) => box.width && (box.height < 24 || box.width < 24))
      .map(([box, text]) => text)"""
  )
  assert small == []
  nameless = page.evaluate(
    """() => [...document.querySelectorAll("button, input, select, textarea")]
      .filter((x) => !x.ariaLabel && !x.labels?.length && !x.textContent.trim())
      .map((x) => x.outerHTML)"""
  )
  assert nameless == []
  colors = page.evaluate(
    """() => [getComputedStyle(document.body).color,
      getComputedStyle(document.body).backgroundColor]"""
  )
  light = [sum(map(int, re.findall(r"\d+", x)[:3])) for x in colors]
  scheme = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
  assert (light[0] > light[1]) == scheme
