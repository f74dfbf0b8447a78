"""A page that shows texts with their links, colored by certainty."""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from repr_jax.data.documents.candidate_files import Document

STYLE = """
body { font: 16px/1.6 system-ui, sans-serif; max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; background: #fff; }
textarea { width: 100%; box-sizing: border-box; font: inherit; }
.text { white-space: pre-wrap; border: 1px solid #ccc; padding: 1rem; }
mark { border-radius: 3px; padding: 0 .15em; color: #111; }
.c0 { background: #f6c7b6; } .c1 { background: #fbe3b4; }
.c2 { background: #eef0b5; } .c3 { background: #cde8bf; }
.c4 { background: #a9dcb4; } .nil { background: #e2e2e2; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem;
  border-bottom: 1px solid #ddd; }
.error { color: #a01010; }
"""
_STEPS = (0.5, 0.7, 0.85, 0.95)
_LABELS = (
  "below .5", ".5 to .7", ".7 to .85", ".85 to .95", ".95 or more",
)  # fmt: skip


def certainty(record: Mapping[str, Any]) -> str:
  """The class of a mention: "nil", or "c0" to "c4" by its probability."""
  if record["nil"]:
    return "nil"
  return f"c{sum(record['probability'] >= step for step in _STEPS)}"


def marked_text(text: str, records: Iterable[Mapping[str, Any]]) -> str:
  """The text in HTML with its mentions marked.

  Args:
    records: its mentions; of those that overlap the first, longest is marked.
  """
  made, place = [], 0
  ordered = sorted(records, key=lambda x: (x["start"], -x["end"]))
  for record in ordered:
    start, end = record["start"], record["end"]
    if start < place:
      continue
    told = "NIL" if record["nil"] else record["entity"]
    title = f"{told}, probability {record['probability']:.2f}"
    if record["runner_up"] is not None:
      title += (
        f"; next {record['runner_up']} {record['runner_up_probability']:.2f}"
      )
    made.append(html.escape(text[place:start]))
    made.append(
      f'<mark class="{certainty(record)}" title="{html.escape(title)}">'
      f"{html.escape(text[start:end])}</mark>"
    )
    place = end
  return "".join([*made, html.escape(text[place:])])


def body(
  documents: Sequence[Document], records: Sequence[Mapping[str, Any]]
) -> str:
  """Texts, legend and reasons in HTML.

  Args:
    records: the mentions of all, as `link.records` gives them.
  """
  legend = " ".join(
    f'<mark class="c{i}">{label}</mark>' for i, label in enumerate(_LABELS)
  )
  made = [f'<p>Probability: {legend} <mark class="nil">NIL</mark></p>']
  rest = list(records)
  for document in documents:
    own, rest = rest[: len(document.mentions)], rest[len(document.mentions) :]
    made.append(f"<h2>{html.escape(document.id)}</h2>")
    made.append(f'<div class="text">{marked_text(document.text, own)}</div>')
    cells = ("mention", "entity", "probability", "next", "why")
    made.append("<table><tr>" + "".join(f"<th>{x}</th>" for x in cells))
    made += [_row(record) for record in own]
    made.append("</table>")
  return "\n".join(made)


def page(content: str, title: str, style: str | None = None) -> str:
  """A whole page.

  Args:
    content: its body in HTML.
    style: style sheet to embed; None for a link to /style.css.
  """
  sheet = '<link rel="stylesheet" href="/style.css">'
  if style is not None:
    sheet = f"<style>{style}</style>"
  return (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width">'
    f"<title>{html.escape(title)}</title>{sheet}</head>\n<body>\n"
    f"<h1>{html.escape(title)}</h1>\n{content}\n</body></html>\n"
  )


def _row(record: Mapping[str, Any]) -> str:
  why = record.get("why")
  reasons = ""
  if why is not None:
    parts = [f"{name} {value:+.2f}" for name, value in why["parts"].items()]
    reasons = f"score {why['score']:.2f} = {', '.join(parts)}"
    words = [f"{x['feature']} {x['part']:+.2f}" for x in why["context"][:3]]
    if words:
      reasons += f"; context: {', '.join(words)}"
    other = [f"{x['surface']} {x['share']:.0%}" for x in why["mentions"][:3]]
    if other:
      reasons += f"; mentions: {', '.join(other)}"
    reasons += f"; in the knowledge base {why['known']:.0%}"
  entity = "NIL" if record["nil"] else record["entity"]
  cells = (
    record["surface"], entity, f"{record['probability']:.2f}",
    record["runner_up"] or "", reasons,
  )  # fmt: skip
  return "<tr>" + "".join(f"<td>{html.escape(str(x))}</td>" for x in cells)
