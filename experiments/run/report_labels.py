"""Words for the codes of systems, settings and measures in the report."""

import math
import re
from typing import Any, NamedTuple

from experiments.run import tables


class Label(NamedTuple):
  """Words for a code, and the parameters that it abbreviates."""

  text: str
  details: str = ""


class Measure(NamedTuple):
  """Words for a measure, and its range."""

  text: str
  low: float = -math.inf
  high: float = math.inf


_WORDS = {
  # Set expansion.
  "nvse": Label("NVSE", "decoder's features mixed with the members' own"),
  "nvse+bm25": Label("BM25 + NVSE"),
  "nvse-decoder": Label("NVSE, decoder alone"),
  "nvse-members": Label("NVSE, members' features alone"),
  "nvse-xi": Label("NVSE, Gaussian ranking", "the score xi of the thesis"),
  "bm25": Label("BM25"),
  "bernoulli": Label("Bayesian Sets, Bernoulli"),
  "poisson": Label("Bayesian Sets, Poisson"),
  "gaussian": Label("Bayesian Sets, Gaussian"),
  "setexpan": Label("SetExpan"),
  # Views of words.
  "walks": Label("walks on the graph"),
  "gloss": Label("glosses"),
  "hypernym": Label("hypernyms"),
  "synset": Label("synsets"),
  "lexname": Label("lexicographer files"),
  "frame": Label("verb frames"),
  "relation": Label("other relations"),
  "derivation": Label("derivations"),
  "inflection": Label("inflections"),
  # Test sets.
  "SIMLEX": Label("SimLex-999"),
  "WS": Label("WordSim-353"),
  "dump": Label("small Wikipedia"),
  # Entity vectors.
  "max_margin": Label("max-margin"),
  "null": Label("untrained VAE", "the encoder as initialized"),
  "U1": Label("pages (U1)"),
  "U1+U2": Label("pages and mentions (U1, U2)"),
}
_PARTS = {"E": "stored pairs", "E^c": "absent pairs", "E^rev": "reversed pairs"}
_KINDS = {"lsa": "LSA", "mvlsa": "MVLSA", "vae": "VAE"}
_PARAMETERS = {
  "k": "dimensions", "dim": "dimensions", "latent": "dimensions",
  "m": "singular vectors of a view", "hidden": "hidden units",
  "epochs": "epochs", "decoder": "decoder",
  "learning_rate": "learning rate",
}  # fmt: skip
_MEASURES = {
  "map": Measure("MAP", 0, 1),
  "recip_rank": Measure("reciprocal rank", 0, 1),
  "infap": Measure("infAP", 0, 1),
  "ndcg": Measure("NDCG", 0, 1),
  "rprec": Measure("R-precision", 0, 1),
  "filtered mrr": Measure("MRR, filtered", 0, 1),
  "largest rule violation": Measure("largest rule violation", 0),
  "spearman x 100": Measure("Spearman x 100", -100, 100),
  "map (entailed facts in the first ten)": Measure(
    "MAP of the first ten", 0, 1
  ),
  "map (all entailed facts)": Measure("MAP of all entailed facts", 0, 1),
}
_SHARE = re.compile(
  r"(p|r|ndcg|hits|filtered hits)@\d+|mrr|precision|recall|coverage", re.I
)


def measure(metric: str) -> Measure:
  """Words and range of a measure; no range if it is unknown."""
  known = _MEASURES.get(metric.lower())
  if known is not None:
    return known
  part, comma, _ = metric.partition(", % right")
  if comma and part in _PARTS:
    return Measure(f"{_PARTS[part]}, %", 0, 100)
  if "%" in metric or " x 100" in metric:
    return Measure(metric, 0, 100)
  if _SHARE.fullmatch(metric):
    return Measure(metric.replace("hits", "Hits"), 0, 1)
  if "Spearman" in metric:
    return Measure(metric, -1, 1)
  if "relative error" in metric:
    return Measure(metric, 0)
  return Measure(metric)


def label(code: str) -> Label:
  """Words for a code; an unknown code stands for itself."""
  if code in _WORDS:
    return _WORDS[code]
  for pattern, words in _FORMS:
    if (match := pattern.fullmatch(code)) is not None:
      return words(match)
  return Label(code)


def number(value: Any, digits: int = 4) -> str:
  """A cell: numbers with a few digits, yes and no, text as it is."""
  if hasattr(value, "item"):
    value = value.item()
  if not isinstance(value, float):
    return tables.format_value(value)
  if 1e4 <= abs(value) < 1e15:
    return f"{value:,.0f}"
  text = f"{value + 0.0:.{digits}g}"  # no negative zero
  return re.sub(r"e([+-])0*(\d)", r"e\1\2", text).replace("e+", "e")


def clip(value: float, metric: Measure) -> float:
  """A bound of an interval, kept within the range of the measure."""
  return min(max(value, metric.low), metric.high)


def _representation(match: re.Match[str]) -> Label:
  kind, settings, ensemble, mean = match.groups()
  given = dict(part.split("=", 1) for part in settings.split(":")[1:])
  text = "BM25 + " * bool(ensemble) + _KINDS[kind]
  if kind == "vae" and settings:
    text += f" {given.get('decoder', 'multinomial')}"
    text += ", untrained" * (given.get("epochs") == "0")
  text += ", equal weights" * bool(mean)
  shown = [
    f"{_PARAMETERS.get(name, name)} {value}" for name, value in given.items()
  ]
  return Label(text, ", ".join(shown))


def _without(match: re.Match[str]) -> Label:
  groups, loss = match.groups()
  known = [label(group).text for group in groups.split(" !")]
  return Label(f"{'loss ' if loss else ''}without {', '.join(known)}")


def _cell(match: re.Match[str]) -> Label:
  data, size, dim, setting, roles = match.groups()
  what = {"tree": "Tree", "wordnet": "WordNet"}[data]
  shown = {"Full": "all absent pairs", "Sub": "as many absent pairs"}[setting]
  text = f"{what}, d = {dim}, {setting}Set" + (roles or "")
  return Label(text, f"{int(size):,} vertices; trained with {shown}")


def _puzzle(match: re.Match[str]) -> Label:
  model, rules = match.groups()
  text = f"Puzzle {model}{' with rules' if rules else ''}"
  return Label(text, f"score model {model}")


def _model(match: re.Match[str]) -> Label:
  model, rules = match.groups()
  name = model if len(model) > 1 else f"model {model}"
  return Label(f"{name}{' with rules' if rules else ''}")


def _linked(match: re.Match[str]) -> Label:
  root, system = match.groups()
  return Label(f"WordNet, {label(system).text}", f"WordNet below {root}")


def _vectors(match: re.Match[str]) -> Label:
  kind, without, reach = match.groups()
  said = "no mention contexts" if without else "mention contexts"
  named = label(kind).text
  return Label(f"{named}, {said}, {reach}", f"U2: {said}")


def _pair(match: re.Match[str]) -> Label:
  first, second = (label(part) for part in match.groups())
  details = "; ".join(filter(None, (first.details, second.details)))
  return Label(f"{first.text}, {second.text}", details)


def _set(match: re.Match[str]) -> Label:
  return Label(label(match.group(1)).text, match.group(2))


def _relation(match: re.Match[str]) -> Label:
  return Label(match.group(1).replace("_", " "))


_FORMS = tuple(
  (re.compile(pattern), words)
  for pattern, words in (
    (r"(lsa|mvlsa|vae)((?::\w+=[^:+\s]+)*)(\+bm25)?( mean)?", _representation),
    (r"!(\w+(?: !\w+)*)( loss)?", _without),
    (r"(tree|wordnet) V=(\d+) d=(\d+) (Full|Sub)Set(, two roles)?", _cell),
    (r"puzzle (\w+)( \+ rules)?", _puzzle),
    (r"([ABCDRT]|ComplEx)( \+ rules)?", _model),
    (r"WordNet below (\S+), (.+)", _linked),
    (r"(max-margin|VAE|null) with(out)? U2, (local|global)", _vectors),
    (r"(SIMLEX|WS), (.+)", _set),
    (r"(dump): (.+)", _pair),
    (r"(max_margin|vae|null) (U1(?:\+U2)?)", _pair),
    (r"_([a-z_]+)", _relation),
  )
)
