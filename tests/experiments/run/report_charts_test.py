"""Charts of the report: places, clipping, sides of zero, names of lines."""

import re

import pytest

from experiments.run import report, report_charts


def _numbers(pattern: str, text: str) -> list[float]:
  return [float(x) for x in re.findall(pattern, text)]


def _compared(**row) -> str:
  held = {"name": "puzzle A", "metric": "MRR", **row}
  return report_charts.comparison({"Rules": [held]})


@pytest.mark.parametrize(
  "thesis, kind, words",
  [
    (0.50, "agrees", "agrees"),
    (0.10, "above", "above the thesis"),
    (0.90, "below", "below the thesis"),
  ],
)
def test_a_verdict_has_a_color_and_a_word(thesis, kind, words):
  text = _compared(value=0.5, thesis=thesis, lower=0.4, upper=0.6)
  assert f'<li class="{kind}">' in text
  assert f'<span class="verdict">{words}</span>' in text
  assert f'<span class="value">0.5 / {thesis:g}</span>' in text
  assert re.search(rf'class="thesis" x1="{100 * thesis:.2f}%"', text)


def test_an_interval_stays_within_the_range_of_its_measure():
  text = _compared(value=0.93, thesis=0.83, lower=0.82, upper=1.03)
  (band,) = re.findall(r'<rect class="band" x="(.*?)%".*?width="(.*?)%"', text)
  assert [float(x) for x in band] == [82.0, 18.0]
  text = _compared(value=0.0, thesis=0.01, lower=-0.005, upper=0.005)
  (band,) = re.findall(r'<rect class="band" x="(.*?)%".*?width="(.*?)%"', text)
  assert [float(x) for x in band] == [0.0, 0.5]
  text = _compared(
    metric="E, % right", value=100.0, thesis=100, lower=99.5, upper=100.5
  )
  (band,) = re.findall(r'<rect class="band" x="(.*?)%".*?width="(.*?)%"', text)
  assert [float(x) for x in band] == [99.5, 0.5]


def test_a_tolerance_is_drawn_as_an_interval():
  text = _compared(metric="E, % right", value=66.0, thesis=65.5, tolerance=1.0)
  (band,) = re.findall(r'<rect class="band" x="(.*?)%".*?width="(.*?)%"', text)
  assert [float(x) for x in band] == [65.0, 2.0]


def test_a_measure_without_a_range_is_drawn_too():
  text = _compared(metric="nats", value=-3.0, thesis=4.0, tolerance=1.0)
  places = _numbers(r'c?x1?="(-?[\d.]+)%"', text)
  assert places and all(0 <= x <= 100 for x in places)


def _forest(*points, limits=None, sides=("worse", "better")) -> str:
  return report_charts.forest(
    report.Forest("c", "MAP", points, limits=limits, sides=sides)
  )


def test_a_difference_is_on_the_side_that_its_interval_is_on():
  text = _forest(
    report.Point("a", 0.2, 0.1, 0.3),
    report.Point("b", -0.2, -0.3, -0.1),
    report.Point("c", 0.1, -0.1, 0.3, "p 0.4"),
    report.Point("d", 0.1),
  )
  kinds = re.findall(r'<li class="(\w+)">', text)
  assert kinds == ["above", "below", "plain", "plain"]
  notes = re.findall(r'class="verdict">(.*?)</span>', text)[:4]
  assert notes == ["better", "worse", "no clear difference; p 0.4", ""]
  assert re.findall(r'class="value">(.*?)</span>', text)[:4] == [
    "+0.200", "-0.200", "+0.100", "+0.100",
  ]  # fmt: skip
  zero = set(re.findall(r'class="zero" x1="(.*?)%"', text))
  assert len(zero) == 1
  middle = float(zero.pop())
  first, second, *_ = _numbers(r'<circle cx="([\d.]+)%"', text)
  assert second < middle < first
  assert text.count('class="band"') == 3


def test_numbers_of_a_plot_have_the_same_decimals():
  text = _forest(
    report.Point("a", -15.1), report.Point("b", 1.26), report.Point("c", -0.004)
  )
  shown = re.findall(r'class="value">(.*?)</span>', text)[:3]
  assert shown == ["-15.1", "+1.3", "0.0"]


def test_figures_have_no_line_at_zero_and_keep_to_their_limits():
  text = _forest(
    report.Point("a", 0.9, 0.7, 1.4), limits=(0.0, 1.0), sides=None
  )
  assert 'class="zero"' not in text and "+0.9" not in text
  (band,) = re.findall(r'<rect class="band" x="(.*?)%".*?width="(.*?)%"', text)
  assert float(band[0]) + float(band[1]) == pytest.approx(100)
  assert re.search(r'<circle cx="90.00%"', text)


def _lines(*series, **more) -> str:
  return report_charts.lines(report.Lines("c", "x", "y", series, **more))


def test_names_stand_at_their_lines_and_apart_from_each_other():
  text = _lines(
    report.Series("left out", [0, 1], [1.0, 0.95]),
    report.Series("left out, streamed", [0, 1], [1.0, 0.949]),
    report.Series("as zeros", [0, 1], [1.0, 0.83], dashed=True),
  )
  tops = _numbers(r'style="top:(\d+)px"', text)
  assert tops == sorted(tops)
  assert tops[1] - tops[0] >= 15 and tops[2] - tops[1] >= 30
  assert tops[2] + 15 <= 220
  names = re.findall(r'px">(.*?)</span>', text)
  assert names == ["left out", "left out, streamed", "as zeros"]
  assert text.count("dashed") == 1
  leaders = re.findall(r'class="leader" x1="97.00%" y1="(.*?)"', text)
  assert len(leaders) == 3


def test_lines_stay_within_the_plot():
  text = _lines(
    report.Series("a", [1, 2, 3], [-5.0, 0.5, 7.0]), limits=(0.0, 1.0)
  )
  heights = _numbers(r'cy="([\d.]+)"', text)
  assert heights == [196.0, 102.0, 8.0]
  places = _numbers(r'cx="([\d.]+)%"', text)
  assert places == [3.0, 50.0, 97.0]


def test_a_logarithmic_axis_has_powers_of_ten():
  text = _lines(report.Series("a", [1, 2], [1e-8, 1e-3]), log=True)
  for shown in ("1e-8", "1e-5", "0.001"):
    assert f">{shown}</text>" in text


def test_charts_of_nothing_are_empty_or_stand():
  assert _lines() == ""
  assert _lines(report.Series("a", [], [])) == ""
  assert "one" in _lines(report.Series("one", [1], [1.0]))
  assert "axis" in _forest()


@pytest.mark.parametrize(
  "low, high", [(0, 1), (0, 100), (-0.3, 0.012), (47, 48), (1, 20), (0, 3e-7)]
)
def test_ticks_are_few_and_inside(low, high):
  ticks = report_charts.ticks(low, high)
  assert 2 <= len(ticks) <= 6
  assert all(low <= x <= high * (1 + 1e-9) for x in ticks)


def test_text_is_escaped():
  hostile = '<script>"x" & y</script>'
  row = {
    "name": hostile, "metric": hostile, "value": 1.0, "thesis": 1.0,
    "tolerance": 1.0,
  }  # fmt: skip
  text = report_charts.comparison({hostile: [row]})
  text += _forest(report.Point(hostile, 1.0, 0.0, 2.0, hostile))
  text += report_charts.lines(
    report.Lines(hostile, hostile, hostile, [report.Series(hostile, [1], [1])])
  )
  assert "<script" not in text and "&lt;script&gt;" in text
  assert 'aria-label="&lt;script&gt;&quot;x&quot;' in text
