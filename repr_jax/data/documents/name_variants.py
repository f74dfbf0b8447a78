"""Other forms of a name under which an entity may be known.

Abbreviations of countries and of American states are written out, marks of
companies are dropped, plurals become singulars, and a name is also looked for
without its blanks. Initials of titles are acronyms.
"""

import re

from repr_jax.data.documents.candidates import normalize

_COMMON = frozenset(
  ["of", "the", "and", "in", "a", "an", "for", "to", "on", "at", "by", "de"]
)
_COMPANY = frozenset(
  ["inc", "corp", "corporation", "co", "company", "ltd", "plc", "llc"]
)
_WORDS = {
  "us": "united states", "usa": "united states", "uk": "united kingdom",
  "un": "united nations", "eu": "european union",
  "organisation": "organization", "centre": "center", "labour": "labor",
  "defence": "defense", "ny": "new york", "la": "los angeles",
}  # fmt: skip
# As newspapers write them.
_STATES = {
  "ala": "alabama", "ariz": "arizona", "ark": "arkansas",
  "calif": "california", "colo": "colorado", "conn": "connecticut",
  "del": "delaware", "fla": "florida", "ill": "illinois", "ind": "indiana",
  "kan": "kansas", "ky": "kentucky", "la": "louisiana", "md": "maryland",
  "mass": "massachusetts", "mich": "michigan", "minn": "minnesota",
  "miss": "mississippi", "mo": "missouri", "mont": "montana",
  "neb": "nebraska", "nev": "nevada", "okla": "oklahoma", "ore": "oregon",
  "pa": "pennsylvania", "tenn": "tennessee", "tex": "texas",
  "vt": "vermont", "va": "virginia", "w va": "west virginia",
  "wash": "washington", "wis": "wisconsin", "wyo": "wyoming",
}  # fmt: skip
_ACRONYM = re.compile(r"(?:[A-Z]\.? ?){2,6}")


def name_forms(surface: str) -> list[str]:
  """Other normalized forms of a mention, the likeliest first.

  Args:
    surface: the mention, such as "Exxon Mobil Corp."

  Returns:
    Forms such as "exxon mobil" and "exxonmobil"; not the normalized mention.
  """
  key = normalize(surface)
  forms = [_STATES.get(key, key), normalize(surface.partition(", ")[0])]
  words = key.split()
  forms.append(" ".join(_WORDS.get(word, word) for word in words))
  while len(words) > 1 and words[-1] in _COMPANY:
    words.pop()
  forms.append(" ".join(words))
  if words[-1].endswith("s") and len(words[-1]) > 4:
    forms.append(" ".join(words)[:-1])
  forms.append("".join(words))
  return [x for x in dict.fromkeys(forms) if x != key]


def is_acronym(surface: str) -> bool:
  """Whether a mention is two to six capitals, perhaps with dots."""
  return bool(_ACRONYM.fullmatch(surface))


def initials(name: str) -> str:
  """Initials of a title such as "wto"; "" if only one word counts.

  Args:
    name: a title without brackets.
  """
  words = [w for w in normalize(name).split() if w not in _COMMON]
  return "".join(w[0] for w in words) if len(words) > 1 else ""
