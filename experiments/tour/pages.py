"""The page of the tour."""

import html
from collections.abc import Sequence

from experiments.run import report_page, report_style
from experiments.tour import stops

_TITLE = "A tour of repr_jax"
_MAP = (
  "Words asked for (bold) and their nearest words: two principal components."
)
_NEXT = (
  ("word vectors from your text", "python -m experiments.mvlsa --text=FILE"),
  ("sets from your documents", "python -m experiments.nvse --corpus=FOLDER"),
  ("your facts and rules", "python -m experiments.elkb --train=FILE"),
  ("all chapters of the thesis", "python -m experiments.reproduce"),
)


def page(visited: Sequence[stops.Stop]) -> str:
  """The page as text."""
  parts = []
  for number, stop in enumerate(visited, 1):
    drawn = stop.picture and (
      f'<figure class="map">{stop.picture}<figcaption>{_MAP}</figcaption>'
      "</figure>\n"
    )
    if stop.chart is not None:
      drawn = report_page.chart_html(stop.chart)
    parts.append(
      f"<section>\n<h2>{number}. {html.escape(stop.title)}</h2>\n"
      f'<p class="answer">{html.escape(stop.answer)}</p>\n{drawn}'
      f"{report_page.table_html(stop.table, codes=False)}"
      "<details><summary>The function that was run</summary>\n"
      f"<pre>{html.escape(stop.code)}</pre></details>\n</section>\n"
    )
  lines = "".join(
    f"<li>{name}: <code>{html.escape(line)}</code></li>\n"
    for name, line in _NEXT
  )
  return report_style.PAGE.format(
    style=report_style.STYLE,
    title=_TITLE,
    lead='<p class="lead">Four methods, one function each, on WordNet and a '
    "small part of Wikipedia.</p>\n",
    first="",
    body="".join(parts),
    about=f"<footer>\n<p>Next:</p>\n<ul>\n{lines}</ul>\n</footer>\n",
  )
