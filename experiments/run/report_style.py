"""The page and the style of the report: one file, nothing from outside."""

STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1c2128; --paper: #ffffff; --faint: #59636e; --line: #d1d9e0;
  --shade: #f4f6f8; --link: #0550ae;
  --agrees: #1a7f37; --above: #0969da; --below: #b42318;
  --s1: #0969da; --s2: #b35900; --s3: #1a7f37; --s4: #8250df; --s5: #b42318;
  --s6: #59636e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e3e8ee; --paper: #12161b; --faint: #9aa4af; --line: #3a424b;
    --shade: #1c2229; --link: #7cb7ff;
    --agrees: #6fdd8b; --above: #79b8ff; --below: #ff9a9a;
    --s1: #79b8ff; --s2: #f0a35e; --s3: #6fdd8b; --s4: #c8a5ff;
    --s5: #ff9a9a; --s6: #9aa4af;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 1rem; max-width: 64rem;
  font: 1rem/1.5 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); overflow-wrap: anywhere;
}
h1 { font-size: 1.6rem; line-height: 1.25; margin: .5rem 0 .25rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; line-height: 1.3; }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; }
a { color: var(--link); }
abbr { text-decoration: underline dotted 1px; text-underline-offset: 3px; }
.lead, .summary, figcaption, .measure, .command, footer, .evidence {
  color: var(--faint); font-size: .875rem; }
.lead, .summary { margin: .25rem 0; }
.counts { list-style: none; display: flex; flex-wrap: wrap; gap: .6rem;
  padding: 0; margin: .9rem 0; }
.counts li { border: 1px solid var(--line); border-radius: 6px;
  padding: .3rem .8rem .4rem; font-size: .9rem; }
.counts strong { display: block; font-size: 1.5rem; line-height: 1.15; }
.agrees { --tone: var(--agrees); } .above { --tone: var(--above); }
.below, .failed { --tone: var(--below); } .plain { --tone: var(--faint); }
.counts strong, .verdict, td.agrees, td.above, td.below {
  color: var(--tone, var(--ink)); }
.findings { display: grid; gap: 0 2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); }
.findings ul { margin: 0; padding-left: 1.1rem; }
.findings li { margin: .15rem 0; line-height: 1.35; font-size: .9rem; }
.findings h2 { font-size: 1rem; margin: .5rem 0 .2rem; color: var(--tone); }
.findings details { margin: .2rem 0 0; border: 0; }
.findings summary { padding: .1rem 0; }
.answer { font-size: 1.05rem; margin: .25rem 0; }
.findings a { color: inherit; text-decoration-color: var(--line);
  text-underline-offset: 3px; }
nav { margin: 1rem 0; font-size: .9rem; }
nav ul { list-style: none; padding: 0; margin: 0; display: flex;
  flex-wrap: wrap; gap: .2rem 1.2rem; }
figure { margin: 1rem 0; }
figcaption { margin-top: .4rem; }
.forest { list-style: none; margin: 0; padding: 0; font-size: .875rem; }
.forest li { display: grid; align-items: center; gap: 0 .8rem;
  grid-template-columns: minmax(0, 20rem) minmax(0, 1fr) 6.5rem 8.7rem;
  line-height: 1.35; padding: .06rem 0; }
.forest .value { font-variant-numeric: tabular-nums; }
svg { display: block; overflow: visible; width: 100%; }
svg text { fill: var(--faint); font: .75rem system-ui, sans-serif; }
.base, .grid { stroke: var(--line); }
.zero { stroke: var(--faint); }
.thesis { stroke: var(--ink); stroke-width: 2.5; }
.band { fill: var(--tone); opacity: .35; }
.track circle { fill: var(--tone); }
.map svg { max-width: 34rem; }
.measure { margin: .2rem 0; }
.across { text-align: center; }
.lines { display: grid; gap: 0 .4rem;
  grid-template-columns: 2.9rem minmax(0, 1fr) minmax(0, 9.5rem); }
.names { position: relative; font-size: .8rem; line-height: 15px; }
.names span { position: absolute; left: 0; color: var(--tone); }
.s1 { --tone: var(--s1); } .s2 { --tone: var(--s2); }
.s3 { --tone: var(--s3); } .s4 { --tone: var(--s4); }
.s5 { --tone: var(--s5); } .s6 { --tone: var(--s6); }
.curve { stroke: var(--tone); stroke-width: 2; stroke-linecap: round; }
.dashed .curve { stroke-dasharray: 5 5; }
.plot circle { fill: var(--tone); }
.leader { stroke: var(--tone); opacity: .5; }
table { border-collapse: collapse; font-size: .875rem; margin: 1rem 0 .25rem;
  max-width: 100%; }
caption { text-align: left; font-weight: 600; padding: .25rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem;
  text-align: left; vertical-align: top; }
thead { background: var(--shade); }
th { overflow-wrap: break-word; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { white-space: nowrap; }
td:first-child { min-width: 5rem; }
.command { margin: 0 0 1rem; font-size: .8rem; }
code, pre { font: .85em/1.4 ui-monospace, monospace; }
pre { white-space: pre-wrap; margin: .5rem 0 0; }
details { margin: .75rem 0; border-top: 1px solid var(--line); }
summary { cursor: pointer; padding: .4rem 0; color: var(--link);
  font-size: .9rem; }
.error { border-left: 4px solid var(--below); background: var(--shade);
  padding: .6rem 1rem; margin: 1rem 0; }
.error p { margin: 0; }
footer { margin-top: 2.5rem; border-top: 1px solid var(--line); }
"""

# Cells one below the other, each with the name of its column, for tables that
# are wider than the screen.
_CARDS = """
  {0} thead {{ position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); }}
  {0}, {0} tbody, {0} tr, {0} td, {0} caption {{ display: block; }}
  {0} tr {{ border-bottom: 1px solid var(--line); padding: .4rem 0; }}
  {0} td {{ border: 0; padding: .05rem 0; text-align: left; }}
  {0} td:first-child {{ font-weight: 600; }}
  {0} td[data-name]:not(:first-child)::before {{ content: attr(data-name) ": ";
    color: var(--faint); }}
"""
STYLE += _CARDS.format(".cards")
STYLE += f"""
@media (max-width: 44rem) {{
  body {{ padding: .75rem; }}
  .counts li {{ padding: .3rem .6rem; }}
  th, td {{ padding: .3rem .35rem; }}
  .forest li {{ grid-template-columns: minmax(0, 1fr) 7rem;
    padding: .25rem 0; gap: 0 .6rem; }}
  .forest .track {{ order: 1; }}
  .forest .verdict {{ order: 2; font-size: .8rem; }}
  .forest .axis :is(.name, .value) {{ display: none; }}
  .lines {{ grid-template-columns: 2.6rem minmax(0, 1fr) minmax(0, 6.5rem); }}
  {_CARDS.format(".many")}
}}
@media print {{
  :root {{ --ink: #000000; --paper: #ffffff; --faint: #444444;
    --line: #999999; --shade: #f2f2f2; --link: #000000; --agrees: #1a6b30;
    --above: #0550ae; --below: #a40e26; --s1: #0550ae; --s2: #8a4500;
    --s3: #1a6b30; --s4: #6639ba; --s5: #a40e26; --s6: #444444;
    color-scheme: light; print-color-adjust: exact; }}
  @page {{ margin: 14mm; }}
  html {{ font-size: 82%; }}
  body {{ max-width: none; padding: 0; }}
  .forest li, section > figure,
  section > table, tr, p, .error {{ break-inside: avoid; }}
  .forest li {{ grid-template-columns: minmax(0, 20rem) minmax(0, 1fr) 6rem
    9rem; }}
  .forest li > * {{ order: 0; }}
  h2, h3, caption, .answer, .summary {{ break-after: avoid; }}
  .findings summary, section > details:not([open]) {{ display: none; }}
  .findings details::details-content {{ content-visibility: visible;
    block-size: auto; }}
}}
"""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" \
content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
{lead}</header>
<main>
{first}{body}</main>
{about}</body>
</html>
"""
