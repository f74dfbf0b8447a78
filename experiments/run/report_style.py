"""The page and the style of the report: one file, nothing from outside."""

STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1c2128; --paper: #ffffff; --faint: #59636e; --line: #d1d9e0;
  --shade: #f4f6f8; --link: #0550ae; --good: #116329; --bad: #a40e26;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e3e8ee; --paper: #12161b; --faint: #9aa4af; --line: #3a424b;
    --shade: #1c2229; --link: #7cb7ff; --good: #6fdd8b; --bad: #ff9a9a;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 1rem; max-width: 64rem;
  font: 1rem/1.5 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); overflow-wrap: anywhere;
}
h1 { font-size: 1.6rem; line-height: 1.25; margin: 1rem 0 .5rem; }
h2 { font-size: 1.25rem; margin-top: 2.5rem;
  border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
a { color: var(--link); }
header p { margin: .25rem 0; color: var(--faint); font-size: .875rem; }
nav ul { list-style: none; padding: 0; margin: 1.5rem 0; }
nav li { display: grid; grid-template-columns: minmax(0, 2fr) minmax(0, 4fr)
  minmax(0, 2fr); gap: .25rem 1.25rem; padding: .6rem 0;
  border-top: 1px solid var(--line); }
nav li:last-child { border-bottom: 1px solid var(--line); }
nav a { font-weight: 600; }
.outcome { color: var(--faint); font-size: .9rem; }
.failed { color: var(--bad); font-weight: 600; }
@media (max-width: 40rem) { nav li { grid-template-columns: 1fr; } }
.scroll { overflow-x: auto; margin: 1rem 0 .25rem; }
.scroll:focus-visible { outline: 2px solid var(--link); }
table { border-collapse: collapse; font-size: .9rem; }
caption { text-align: left; font-weight: 600; padding: .25rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem;
  text-align: left; vertical-align: top; overflow-wrap: normal; }
thead th { background: var(--shade); }
td:first-child { min-width: 8rem; }
td:not(.number) { max-width: 32rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.agrees { color: var(--good); }
.differs { color: var(--bad); font-weight: 600; }
.command { margin: 0 0 1rem; color: var(--faint); font-size: .8rem; }
code, pre { font: .85em/1.4 ui-monospace, monospace; }
pre { white-space: pre-wrap; margin: .5rem 0 0; }
.error { border-left: 4px solid var(--bad); background: var(--shade);
  padding: .75rem 1rem; margin: 1rem 0; }
figure { margin: 1.5rem 0; }
img { display: block; max-width: 100%; height: auto; background: #ffffff; }
figcaption { color: var(--faint); font-size: .875rem; margin-top: .25rem; }
@media print {
  :root { --ink: #000000; --paper: #ffffff; --faint: #444444;
    --line: #999999; --shade: #f2f2f2; --link: #000000; --good: #000000;
    --bad: #000000; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  .scroll { overflow: visible; }
  figure, tr, .error { break-inside: avoid; }
  h2, caption { break-after: avoid; }
}
"""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" \
content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
{about}
</header>
<nav aria-label="Chapters">
<ul>
{lines}
</ul>
</nav>
<main>
{body}</main>
</body>
</html>
"""
