"""Names in plain English text: capitalized spans, without a trained model.

A mention is a run of capitalized words on one line, with small words inside
("Bank of America", "Ludwig van Beethoven"). At the start of a sentence a
capital tells nothing: such a word is a name only if other sentences write it
with a capital more often than without (`CaseCounts`, over a corpus or over the
text itself). Titles and possessives are left out, days and months are no names.
A short form takes the full name that its document gives it, and a gazetteer
adds names of any shape.
"""

import bisect
import collections
import dataclasses
import functools
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple


def _words(text: str) -> frozenset[str]:
  return frozenset(text.split())


# A word, with inner points ("U.S."), hyphens and apostrophes.
_WORD = re.compile(
  r"(?:[^\W\d_]\.){2,}(?:[^\W\d_]\b)?|[^\W_]+(?:[-'’&./][^\W_]+)*", re.UNICODE
)
_POSSESSIVE = re.compile(r"(?:'s|’s|'S|’S)$")
_APOSTROPHES = ("'", "’")
_ARTICLE = re.compile(r"(?:al|el|ul|ad|as|an|ar)-[A-Z]")  # of Arabic names
# Verbs and adverbs by their form.
_INFLECTED = re.compile(r"[aeiouy].*[^aeiou](?:ing|ed|ly)$")
_ENDING = 4  # last letters of a word; they tell common words from names
_ALIKE = 3  # an ending needs at least so many common words
_SURE = 4  # and more than so many common words for each name
# "Austrian Thomas Muster" is two names. The first line excludes first names.
_ORIGIN = re.compile(
  r"(?!(?:Adr|Bast|Br|Christ|Dam|Dor|Fab|Flor|Gill|Jill|Jul|Krist|Lill|Luc|Mar|"
  r"Maximil|Sebast|Viv)?[Ii]an$|Hamish$|Reese$|Therese$|Vatican$)"
  r"[A-Z]\w+(?:ian|ese|ish|ican)$|(?:German|French|Dutch|Swiss|Czech|Greek|"
  r"Iraqi|Israeli|Pakistani|Saudi|Cuban|Korean|Moroccan|Frenchman|Spaniard|"
  r"Welsh|Afghan|Democrat)$"
)
_ENDS = re.compile(r"[.!?:;]|--|—| [-–] |[\"“”]|\n|\*|•|\|")
_LINKS = _words(
  "of de la le du des del della di da dos van von der den ten bin ibn al el "
  "and the for y"
)
# Words after which a name may go on with "of" or "for".
_HEADS = _words(
  "academy army association bank battle bay bishop board bureau cape center "
  "centre chamber church city college commission committee confederation "
  "congress council county court department district duchess duke earl "
  "empire faculty federation foundation gulf hall house houses institute "
  "institutes institution isle isles island islands kingdom lake league "
  "library lord ministry mount museum office order organisation "
  "organization palace people parliament party prince princess republic "
  "school sea society state states strait straits temple tower treaty union "
  "united university valley voice war world"
)
# Words of names that begin with an origin: "Canadian Pacific Railway".
_THINGS = _words(
  "airlines airport airways alliance broadcasting capital central championship "
  "championships civil company corporation cup democratic development east "
  "economic equatorial exchange expeditionary federal film fleet football "
  "force forces foreign front fund grand great group guard imperial industries "
  "international islamic jihad labor labour language legion liberation medical "
  "movement national navy news north open orthodox pacific prix prize radio "
  "railway railways revolution revolutionary royal series sign south standard "
  "stock telecom television theater theatre times trade virgin"
)
# Words of names that may join two fields by "and".
_OFFICES = _words(
  "association bureau centers college commission committee conference council "
  "department institute institutes ministry office organisation organization"
)
_TITLES = _words(
  "mr mrs ms miss dr prof professor sir dame president vice-president "
  "premier chancellor minister secretary senator sen representative rep "
  "congressman congresswoman governor gov mayor judge justice general gen "
  "colonel col major maj captain capt lieutenant lt sergeant sgt admiral "
  "adm commander pope cardinal bishop archbishop rev reverend sheikh sheik "
  "chairman chairwoman director coach manager detective officer attorney "
  "ambassador prime vice deputy assistant spokesman spokeswoman speaker "
  "former commissioner king queen prince princess undersecretary-general "
  "secretary-general director-general patriarch rabbi ceo pm doctor "
  "administrator"
)
# Words that belong to the title behind them.
_OF_TITLES = _words("foreign defense defence interior finance health")
_NOT_NAMES = _words(
  "monday tuesday wednesday thursday friday saturday sunday january "
  "february march april may june july august september october november "
  "december jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues "
  "wed thu thurs fri sat sun i i'm i'd i'll i've a.m p.m a.m. p.m. am pm "
  "edt est gmt pst"
)
# Days and months that are not last names.
_DATES = _words(
  "monday tuesday wednesday thursday friday saturday sunday january february "
  "july september october november december feb aug sept oct nov dec"
)
# Words that open a sentence without being a name.
_SMALL = _words(
  "a about above according across after again against all almost along "
  "already also although always am among an and another any anyone anything "
  "are around as at away back be because been before behind being below "
  "beside besides between beyond both but by can could despite did do does "
  "done down during each earlier either else even ever every everyone "
  "everything except few first five for four from further get given go had "
  "half has have having he her here hers herself him himself his how "
  "however if in including indeed inside instead into is it its itself just "
  "last later least less let like little long made many may maybe me "
  "meanwhile might mine more moreover most much must my myself near nearly "
  "neither never nevertheless next nine no nobody none nor not nothing now "
  "of off often on once one only onto or other others otherwise our ours "
  "out over own per perhaps please quite rather really right said same say "
  "says second see seven several shall she should since six so some someone "
  "something sometimes soon still such ten than that the their theirs them "
  "themselves then there therefore these they third this those though three "
  "through throughout thus to today together tomorrow tonight too toward "
  "towards two under unless unlike until up upon us very via was we well "
  "were what whatever when whenever where whereas whether which while who "
  "whoever whom whose why will with within without would yes yesterday yet "
  "you your yours officials police asked based born called compared founded "
  "located people analysts experts critics eight eleven twelve thirteen "
  "fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty "
  "fifty sixty seventy eighty ninety hundred hundreds thousand thousands "
  "million millions dozens everybody somebody anybody elsewhere oh yeah"
)


class Span(NamedTuple):
  """A mention.

  Attributes:
    start: first character.
    end: one past the last.
    name: the fullest form of the name in its document.
  """

  start: int
  end: int
  name: str


@dataclasses.dataclass(frozen=True)
class CaseCounts:
  """How often words are written small and, inside a sentence, capitalized.

  Attributes:
    small: by word in small letters.
    capital: the same.
  """

  small: collections.Counter
  capital: collections.Counter

  def is_name(self, word: str) -> bool:
    """Whether a word is capitalized more often than not inside sentences."""
    low = word.lower()
    return self.capital[low] > self.small[low]

  def is_common(self, word: str) -> bool:
    """Whether a word is written small at least as often as with a capital.

    A word that is seen in neither way is judged by its first part and by its
    form: "Top-seeded" by "top", "Interviewed" by its ending.
    """
    low = word.lower()
    small, capital = self.small[low], self.capital[low]
    if small or capital:
      return small >= capital
    head, hyphen, tail = word.partition("-")
    if hyphen and tail[:1].islower():
      return self.is_common(head)
    if low.endswith("s") and self.small[low[:-1]]:
      return self.is_common(word[:-1])
    if _INFLECTED.search(low):
      return True
    small, capital = self.endings.get(low[-_ENDING:], (0, 0))
    return small >= _ALIKE and small > _SURE * capital

  @functools.cached_property
  def endings(self) -> dict[str, tuple[int, int]]:
    """Numbers of common words and of names, by the ending of the word."""
    kinds = collections.Counter(
      (word[-_ENDING:], self.is_name(word))
      for word in self.small | self.capital
    )
    return {
      ending: (kinds[ending, False], kinds[ending, True]) for ending, _ in kinds
    }


class _Token(NamedTuple):
  start: int
  end: int
  text: str
  opens: bool  # whether a sentence may begin here


def count_cases(texts: Iterable[str]) -> CaseCounts:
  """Statistics of a corpus, for `find_mentions`.

  Returns:
    The counts. Words that open a sentence, and lines in capitals, tell
    nothing and are left out.
  """
  small: collections.Counter = collections.Counter()
  capital: collections.Counter = collections.Counter()
  for text in texts:
    loud = _loud(text)
    for token in _tokens(text):
      first = token.text[0]
      if first.islower():
        small[token.text.lower()] += 1
      elif first.isupper() and not token.opens and not loud(token.start):
        capital[token.text.lower()] += 1
  return CaseCounts(small, capital)


def find_mentions(
  text: str,
  *,
  cases: CaseCounts | None = None,
  gazetteer: Iterable[str] = (),
) -> list[Span]:
  """The names in a document.

  >>> from repr_jax.data.documents import mention_finder
  >>> text = "Yesterday Mr. Franz Schubert met Beethoven's nephew."
  >>> [text[x.start:x.end] for x in mention_finder.find_mentions(text)]
  ['Franz Schubert', 'Beethoven']

  Args:
    cases: statistics of the corpus; by default of the text alone.
    gazetteer: names that are mentions wherever they stand as whole words, as
      written; they go before other mentions that they overlap.

  Returns:
    Spans that do not overlap, in order.
  """
  cases = count_cases([text]) if cases is None else cases
  tokens, loud = _tokens(text), _loud(text)
  spans = _known(text, tokens, gazetteer)
  taken = {place for start, end in spans for place in range(start, end)}
  run: list[_Token] = []
  for token in [*tokens, None]:
    if token is not None and token.start in taken:
      token = None
    if token is not None and _continues(text, run, token, cases):
      run.append(token)
      continue
    for part in _parts(run):
      capitals = part and loud(part[0].start)
      pieces = _names(part, cases) if capitals else _apart(part, cases)
      for piece in pieces:
        spans += _trim(text, piece, cases, loud)
    run = []
    if token is not None and _starts(token):
      run = [token]
  return with_full_names(text, sorted(spans))


def _tokens(text: str) -> list[_Token]:
  """Words with where they stand; a possessive ending is cut off."""
  tokens: list[_Token] = []
  last = 0
  for match in _WORD.finditer(text):
    word = _POSSESSIVE.sub("", match.group())
    between = text[last : match.start()]
    opens = not tokens or _opens(tokens[-1].text, between)
    if word and not (word in "sS" and between[-1:] in _APOSTROPHES):
      tokens.append(
        _Token(match.start(), match.start() + len(word), word, opens)
      )
    last = match.end()
  return tokens


def _opens(before: str, between: str) -> bool:
  """Whether what lies between two words ends a sentence."""
  if between.startswith(". ") and _abbreviation(before):
    between = between[1:]
  return bool(_ENDS.search(between))


def _abbreviation(word: str) -> bool:
  initial = len(word) == 1 and word.isupper()
  return initial or word.lower() in _TITLES or word in ("St", "Jr", "Sr", "Mt")


def _loud(text: str):
  """Tells whether a place lies on a line in capitals."""
  starts, flags = [0], []
  for line in text.split("\n"):
    letters = [x for x in line if x.isalpha()]
    flags.append(
      len(letters) > 12 and sum(map(str.isupper, letters)) > 0.8 * len(letters)
    )
    starts.append(starts[-1] + len(line) + 1)
  return lambda place: flags[bisect.bisect_right(starts, place) - 1]


def _starts(token: _Token) -> bool:
  return token.text[0].isupper() or (
    token.text[0].isdigit() and any(map(str.isupper, token.text))
  )


def _continues(
  text: str, run: Sequence[_Token], token: _Token, cases: CaseCounts
) -> bool:
  """Whether a word goes on with the run before it."""
  if not run:
    return False
  between = text[run[-1].end : token.start]
  point = between == ". " and _abbreviation(run[-1].text)
  if not point and between not in (" ", " & ", "-"):
    return False
  if token.text in _LINKS:
    if token.text == "and":  # "Ministry of Trade and Industry"
      return len(run) > 2 and (
        run[-2].text in ("of", "for") and run[-3].text.lower() in _OFFICES
      )
    if token.text == "for" and any(x.text in _LINKS for x in run):
      return False
    if token.text in ("of", "for"):
      return any(x.text.lower() in _HEADS for x in run) or (
        not run[-1].opens
        and run[-1].text.lower() not in _TITLES
        and cases.is_common(run[-1].text)
      )
    if token.text == "the":
      return run[-1].text in ("of", "for")
    return True
  return _starts(token) or bool(_ARTICLE.match(token.text))


def _parts(run: Sequence[_Token]) -> list[list[_Token]]:
  """A run cut at its titles: "Iraqi President Saddam Hussein" are two."""
  parts: list[list[_Token]] = [[]]
  for i, token in enumerate(run):
    low = token.text.lower()
    after = run[i + 1].text.lower() if i + 1 < len(run) else ""
    if (
      after
      and after not in _LINKS
      and (low in _TITLES or (low in _OF_TITLES and after in _TITLES))
    ):
      parts.append([])
    else:
      parts[-1].append(token)
  return parts


def _apart(run: Sequence[_Token], cases: CaseCounts) -> list[Sequence[_Token]]:
  """Cuts a run after an origin: "Austrian Thomas Muster" gives two names."""
  rest = run[1:]
  if len(rest) < 2 or not _ORIGIN.match(run[0].text):
    return [run]
  words = {x.text.lower() for x in rest}
  if words & (_HEADS | _OFFICES | _THINGS) or any(map(cases.small.get, words)):
    return [run]
  return [run[:1], rest]


def _names(run: Sequence[_Token], cases: CaseCounts) -> list[list[_Token]]:
  """Parts of a run in a line of capitals that are names on other lines."""
  by_kind = itertools.groupby(run, lambda x: cases.is_name(x.text))
  return [list(part) for is_name, part in by_kind if is_name]


def _trim(
  text: str, run: Sequence[_Token], cases: CaseCounts, loud
) -> list[tuple[int, int]]:
  """Cuts function words, titles and sentence openers off a run of capitals."""
  run = list(run)
  while run and _drop_last(run, cases):
    run.pop()
  while run and _drop_first(run, cases):
    run.pop(0)
  while run and run[0].text in _LINKS:
    run.pop(0)
  if not run:
    return []
  if len(run) == 1:
    word = run[0].text
    low = word.lower()
    if low in _NOT_NAMES | _SMALL | _TITLES or len(word) == 1:
      return []
    if run[0].opens and not _acronym(word) and cases.is_common(word):
      return []
    if not run[0].opens and cases.small[low] > max(1, cases.capital[low]):
      return []
  words = " ".join(x.text.lower() for x in run).replace("-", " ").split()
  if all(x in _NOT_NAMES or x.isdigit() for x in words):
    return []
  end = run[-1].end
  # The point of "U.S." and "Jr." belongs to the name.
  if text[end : end + 1] == "." and (
    "." in run[-1].text or run[-1].text in ("Jr", "Sr", "Inc", "Corp", "Co")
  ):
    end += 1
  return [(run[0].start, end)]


def _drop_last(run: Sequence[_Token], cases: CaseCounts) -> bool:
  """Whether the last word of a run is no part of the name."""
  if run[-1].text in _LINKS:
    return True
  # "Indians Wednesday" are two, "Black Friday" is one.
  return (
    len(run) > 1
    and run[-1].text.lower() in _DATES
    and not cases.small[run[-2].text.lower()]
  )


def _drop_first(run: Sequence[_Token], cases: CaseCounts) -> bool:
  """Whether the first word of a run is no part of the name."""
  low = run[0].text.lower()
  if low in _NOT_NAMES:
    return True
  if low in _SMALL:
    return run[0].opens or len(run) == 1
  return (
    run[0].opens
    and len(run) > 1
    and cases.is_common(run[0].text)
    and cases.capital[low] == 0
  )


def _acronym(word: str) -> bool:
  return len(word) > 1 and word.isupper()


def _known(
  text: str, tokens: Sequence[_Token], gazetteer: Iterable[str]
) -> list[tuple[int, int]]:
  """Where names of the gazetteer stand as whole words, the longest first."""
  first: dict[str, list[str]] = {}
  for name in gazetteer:
    head = _WORD.search(name)
    if head is not None and head.start() == 0:
      first.setdefault(_POSSESSIVE.sub("", head.group()), []).append(name)
  spans: list[tuple[int, int]] = []
  for token in tokens:
    if spans and token.start < spans[-1][1]:
      continue
    for name in sorted(first.get(token.text, ()), key=len, reverse=True):
      end = token.start + len(name)
      whole = not text[end : end + 1].isalnum()
      if whole and text.startswith(name, token.start):
        spans.append((token.start, end))
        break
  return spans


def with_full_names(text: str, spans: Sequence[tuple[int, int]]) -> list[Span]:
  """Spans, each with the longest name in the document that it abbreviates.

  Args:
    spans: starts and ends of names, in order.

  Returns:
    The spans, those of a short form with the full name, if there is one.
  """
  names = [" ".join(text[start:end].split()) for start, end in spans]
  longer: dict[str, list[str]] = {}
  for name in dict.fromkeys(names):
    words = name.split()
    if len(words) > 1:
      longer.setdefault(words[-1], []).append(name)
      initials = "".join(x[0] for x in words if x[0].isupper())
      if len(initials) > 2:
        longer.setdefault(initials, []).append(name)
  full = {}
  for name in set(names):
    fits = longer.get(name, ())
    # Two people share a last name: the short form is not expanded.
    full[name] = fits[0] if len(fits) == 1 else name
  return [Span(*span, full[name]) for span, name in zip(spans, names)]
