"""The markup of Wikipedia: markup goes, links stay."""

import pytest

from repr_jax.data.documents import wikitext


def _plain(text):
  return [sentence for sentence, _ in wikitext.sentences(text)]


@pytest.mark.parametrize(
  ("markup", "plain"),
  [
    ("a {{t|{{u|x}}|[[y|z]]}} b", ["a b"]),
    ("a {| class=x\n|-\n| c {{t|}}\n{| \n| nested\n|}\n|}\nb", ["a", "b"]),
    ("a<ref name=x/> b<ref>c {{cite|d}}</ref> e<!-- f -->", ["a b e"]),
    ("'''Bold''' and ''it''", ["Bold and it"]),
    ("== Heading ==\ntext\n=== Sub ===", ["text"]),
    ("x\n== See also ==\n* [[y]]\n=== z ===\nw\n== Life ==\nv", ["x", "v"]),
    ("a [http://x.org label] http://y.org b", ["a label b"]),
    ("* one\n** two\n: three", ["one", "two", "three"]),
    ("a [[File:x.jpg|thumb|A [[nested]] caption]] b", ["a b"]),
    ("a [[Category:X]][[fr:Y]] b", ["a b"]),
    ("a {{unclosed | b\nnext", ["a unclosed | b", "next"]),
    ("a {{lang|fr|mot}} b {{nowrap|[[x|y]] z}}", ["a mot b y z"]),
    ("a&nbsp;&ndash; <i>b</i> &lt;c", ["a – b <c"]),
    ("<math>x_{{i}}</math>a<br/>b __NOTOC__", ["a", "b"]),
    (
      "Dr. J. S. Bach met him. He left (at 5 p.m.) today! So.",
      ["Dr. J. S. Bach met him.", "He left (at 5 p.m.) today!", "So."],
    ),
    ("", []),
  ],
)
def test_markup_goes(markup, plain):
  assert _plain(markup) == plain


def test_links_keep_their_places():
  text = (
    "The [[red  fox|foxes]] of [[new_York (state)#Fauna|]]x [[bench]]es. "
    "Then [[:St. Louis. A city|St. Louis. A city]] [[#here|there]] ended."
  )
  parsed = list(wikitext.sentences(text))
  links = [
    (sentence[a:b], title)
    for sentence, links in parsed
    for a, b, title in links
  ]
  assert links == [
    ("foxes", "Red fox"),
    ("x", "New York (state)"),
    ("benches", "Bench"),
    ("St. Louis. A city", "St. Louis. A city"),
  ]
  assert [s for s, _ in parsed] == [
    "The foxes of x benches.",
    "Then St. Louis. A city there ended.",
  ]


@pytest.mark.parametrize(
  "link", ["red fox", "Red_fox", " red  fox ", "red fox#Diet", ":red fox"]
)
def test_links_to_one_article_have_one_title(link):
  assert wikitext.normal_title(link) == "Red fox"
  assert wikitext.normal_title(wikitext.normal_title(link)) == "Red fox"
  _, ((start, end, title),) = wikitext.read_links(f"a [[{link}|b]] c")
  assert (start, end, title) == (2, 3, "Red fox")


def test_text_without_markup_stays_as_it_is():
  text = "A fox runs. It is red."
  assert wikitext.strip_markup(text) == text
  assert wikitext.read_links(text) == (text, [])
  assert _plain(text) == ["A fox runs.", "It is red."]
