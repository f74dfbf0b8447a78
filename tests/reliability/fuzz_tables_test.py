"""Readers of lines of fields, on damaged files: see `fuzz_cases`."""

import bz2
import functools
import gzip
import math

import fuzz_cases
import numpy as np
import pytest
from fuzz_cases import Reader

from repr_jax.data import relatedness, rules, testsets, trec, triples
from repr_jax.data.documents import linked_formats, priors
from repr_jax.data.io import files
from repr_jax.data.views import bitext, dependencies, text, vocab


def _named(names) -> None:
  for name in names:
    assert isinstance(name, str) and name.strip()
    name.encode()


def _check_lines(lines) -> None:
  for line in lines:
    assert "\n" not in line
    line.encode()


def _read_text(path):
  counts = text.count_words(path)
  kept = vocab.Vocab.from_counts(counts, 5)
  chunks = list(text.token_chunks(path, kept, chunk_tokens=4))
  return counts, chunks, list(text.sentences(path))


def _check_text(result) -> None:
  counts, chunks, sentences = result
  _named(counts)
  assert sum(counts.values()) == sum(map(len, sentences))
  assert sum(len(chunk.ids) for chunk in chunks) == sum(counts.values())
  for chunk in chunks:
    assert chunk.starts[0] == 0 and chunk.starts[-1] == len(chunk.ids)
    assert (np.diff(chunk.starts) > 0).all()
    assert chunk.ids.min() >= -1 and chunk.ids.max() < 5


def _check_vocab(found) -> None:
  _named(found.words)
  assert len(set(found.words)) == len(found.counts)
  assert not len(found) or found.counts.min() >= 0


def _check_trees(sentences) -> None:
  for tree in sentences:
    _named(tree.words)
    assert len(tree.words) == len(tree.heads) == len(tree.relations) > 0
    assert min(tree.heads) >= -1 and max(tree.heads) < len(tree.words)
    for dependent, governor, _ in dependencies.arcs(tree):
      assert 0 <= dependent < len(tree.words) > governor >= 0


def _check_pairs(pairs) -> None:
  for pair in pairs:
    _named([*pair.source, *pair.target])
    if pair.links is not None and len(pair.links):
      sizes = len(pair.source), len(pair.target)
      assert pair.links.min() >= 0 and (pair.links.max(0) < sizes).all()


def _check_triples(found) -> None:
  _named([*found.entities, *found.relations])
  assert found.array.shape == (len(found), 3) and len(found)
  assert len(set(map(tuple, found.array.tolist()))) == len(found)
  top = found.array.max(0)
  assert found.array.min() >= 0
  assert max(top[0], top[2]) < len(found.entities)
  assert top[1] < len(found.relations)


def _check_rules(found) -> None:
  for rule in found:
    _named(rule.arguments)
    assert len(rule.arguments) == len(rule.kind.letters)
  assert len(set(found)) == len(found)


def _check_similarity(found) -> None:
  for pair in found.pairs:
    _named(pair)
  assert found.scores.shape == (len(found.pairs),)
  assert np.isfinite(found.scores).all()


def _check_analogies(found) -> None:
  for question in found.questions:
    _named(question)
    assert len(question) == 4
  assert len(found.sections) == len(found.questions) > 0


def _check_choices(found) -> None:
  _named(found.questions)
  for choices, answer in zip(found.choices, found.answers.tolist()):
    _named(choices)
    assert 0 <= answer < len(choices)


def _check_documents(documents) -> None:
  for document in documents:
    _check_lines(document.tokens)
    for mention in document.mentions:
      assert 0 <= mention.start <= mention.end <= len(document.tokens)
      assert mention.entity is None or mention.entity.strip()
      for name, probability in mention.candidates or ():
        assert name and 0 <= probability <= 1


def _check_prior(prior) -> None:
  _named(prior.counts)
  for mention, counts in prior.counts.items():
    _named(counts)
    total = math.fsum(p for _, p in prior.probabilities(mention))
    assert abs(total - 1) < 1e-9
    assert all(0 < n < math.inf for n in counts.values())


def _check_relatedness(queries) -> None:
  for query in queries:
    _named([query.seed, *query.candidates])
    assert len(query.candidates) == len(query.gold) > 0
    assert all(map(math.isfinite, query.gold))


def _check_trec(found) -> None:
  for query, row in found.items():
    _named([query, *row])
    assert all(map(math.isfinite, row.values()))


_TEXT = (
  "the cat sat on the mat\n\nA naïve café — 漢字 ok\nlast line .\n".encode()
)
_CONLLU = (
  b"# sent_id = 1\n"
  b"1-2\tDu\t_\t_\t_\t_\t_\t_\t_\t_\n"
  b"1\tcats\tcat\tN\tNNS\t_\t2\tnsubj\t_\t_\n"
  b"2\tsat\tsit\tV\tVBD\t_\t0\troot\t_\t_\n"
  b"3\ton\ton\tP\tIN\t_\t4\tcase\t_\t_\n"
  b"4\tmats\tmat\tN\tNNS\t_\t2\tobl\t_\t_\n"
  b"4.1\tx\tx\tN\tNNS\t_\t_\t_\t_\t_\n"
  b"\n"
  b"1\tGo\tgo\tV\tVB\t_\t0\troot\t_\t_\n"
)
_TAGGED = b"cats\tN\t2\nsat\tV\t0\nnow\tR\t2\n\nGo\tV\t0\n"
_SOURCE = b"the cat sat\n\non mats now\nand on\n"
_TARGET = b"die Katze\n\nauf Matten\nund so weiter\n"
_LINKS = b"0-0 1-1\n\n0-0 1-1 2-1\n0-0 1-2\n"
_AIDA = (
  b"-DOCSTART- (1 EU)\nEU\tB\tEU\t--NME--\nrejects\n"
  b"German\tB\tGerman\tGermany\thttp://en.wikipedia.org/wiki/Germany\t11867\n"
  b"\nNew\tB\tNew York\tNew_York\nYork\tI\tNew York\tNew_York\n"
  b"-DOCSTART- (2 Rare)\nRare\tB\tRare\tRare\thttp://x/wiki/R%C3%A4re\n"
)
_GANEA = (
  b"d1\td1\tEU\tEMPTYCTXT\tsaid it\tCANDIDATES\t9317,0.9,European Union\t"
  b"5,0.1,Eu, France\tGT:\t0,9317,0.9,European Union\n"
  b"d1\td1\tBonn\tin\tEMPTYCTXT\tCANDIDATES\tEMPTYCAND\tGT:\t-1\n"
  b"d2\td2\tRome\tto\tand\tCANDIDATES\t7,1.0,Rome\tGT:\t-1,7,Rome\n"
)


def _packed(pack) -> tuple[bytes, bytes]:
  """A text as one compressed stream, and as two behind one another."""
  return pack(_TEXT), pack(_TEXT[:20]) + pack(_TEXT[20:])


_READERS = (
  Reader(
    "lines",
    (_TEXT,),
    lambda path: list(files.open_text(path)),
    _check_lines,
    " ",
  ),
  Reader(
    "gzip",
    _packed(functools.partial(gzip.compress, mtime=0)),
    lambda path: list(files.open_text(path)),
    _check_lines,
    None,
  ),
  Reader(
    "bzip2",
    _packed(bz2.compress),
    lambda path: list(files.open_text(path)),
    _check_lines,
    None,
  ),
  Reader("text", (_TEXT,), _read_text, _check_text, " "),
  Reader(
    "vocab", (b"the\t5\ncat\t2\nN/A\t1\n",), vocab.read_vocab, _check_vocab
  ),
  Reader(
    "conllu",
    (_CONLLU,),
    lambda path: list(dependencies.read_conll(path)),
    _check_trees,
  ),
  Reader(
    "word-tag-head",
    (_TAGGED,),
    lambda path: list(dependencies.read_conll(path, "word-tag-head")),
    _check_trees,
  ),
  Reader(
    "alignments",
    (_LINKS,),
    lambda path: list(
      bitext.read_bitext(_near(path, "source"), _near(path, "target"), path)
    ),
    _check_pairs,
    " ",
    beside={"source": _SOURCE, "target": _TARGET},
  ),
  Reader(
    "bitext",
    (_SOURCE,),
    lambda path: list(
      bitext.read_bitext(path, _near(path, "target"), _near(path, "links"))
    ),
    _check_pairs,
    " ",
    beside={"target": _TARGET, "links": _LINKS},
  ),
  Reader(
    "triples",
    (b"a\tr\tb\nb\tr\tc d\nc d\ts\ta\n", b"a r b\nb s c\n"),
    triples.read_triples,
    _check_triples,
  ),
  Reader(
    "triples with a header",
    (b"head\ttail\trelation\tnote\na\tb\tr\t1\nb\tc d\ts\t2\n",),
    lambda path: triples.read_triples(path, "header", "count"),
    _check_triples,
  ),
  Reader(
    "rules",
    (
      b"# kinds\nRelImp\tr\ts\nSymm\tr\n"
      b"Entail_A\tr\ta\ts\tb\nTypeImp\tr\ta\ts\n",
    ),
    lambda path: rules.read_rules(path, ["r", "s"], ["a", "b"]),
    _check_rules,
  ),
  Reader(
    "implications",
    (
      b"r(x,y)==>s(y,x)\nr(x,y)&s(y,Enemy)==>s(x,Bad)\nr(x,a)==>s(x,b)\n"
      b"r(a,x)==>s(b,x)\nr(x,y)==>s(x,a)\nr(x,y)==>r(y,x)\n",
    ),
    rules.read_rules,
    _check_rules,
    ",",
  ),
  Reader(
    "similarity",
    (
      b"Word 1\tWord 2\tHuman (mean)\ncat\tdog\t7.5\nsun\tmoon\t-3e1\n",
      b"# no header\ncat dog 0.5\nA b 2 x\n",
    ),
    testsets.read_similarity,
    _check_similarity,
  ),
  Reader(
    "analogies",
    (b": capital\nParis France Rome Italy\n: gram1\nbig bigger old older\n",),
    testsets.read_analogies,
    _check_analogies,
    " ",
  ),
  Reader(
    "choices",
    (b"big\tlarge\tsmall\tred\t0\nold\tnew\tancient\t1\n",),
    testsets.read_choices,
    _check_choices,
  ),
  Reader(
    "AIDA",
    (_AIDA,),
    lambda path: list(linked_formats.read_aida(path)),
    _check_documents,
  ),
  Reader(
    "Ganea",
    (_GANEA,),
    lambda path: list(linked_formats.read_ganea(path)),
    _check_documents,
  ),
  Reader(
    "prior",
    (
      b"Big Apple\t120\t645042,110,New_York_City\t17867,10,London\n"
      b"Bonn\t7\t3,0.75,Bonn\t4,0.25,Bonn,_Texas\nX\t0\n",
    ),
    priors.read_prior,
    _check_prior,
  ),
  Reader(
    "SVMlight",
    (b"1 qid:7 1:0.5 2:3 # 12-34\n0 qid:7 1:0 # 12-56\n1 qid:8 # 56-12\n",),
    relatedness.read_relatedness,
    _check_relatedness,
    " ",
  ),
  Reader(
    "KORE",
    (b"Apple\t1\tSteve Jobs\nApple\t2\tMac\nBonn\t1\tRhine\n",),
    relatedness.read_relatedness,
    _check_relatedness,
  ),
  Reader(
    "qrels",
    (b"q1 0 d1 1\nq1 0 d2 -1\nq2 0 d1 3\n",),
    trec.read_judgments,
    _check_trec,
    " ",
  ),
  Reader(
    "run",
    (b"q1 Q0 d1 1 7.5 tag\nq1 Q0 d2 2 -1e3 tag\nq2 Q0 d1 1 0 tag\n",),
    trec.read_run,
    _check_trec,
    " ",
  ),
)


def _near(path: str, name: str) -> str:
  return path.rpartition("/")[0] + "/" + name


@pytest.mark.counted
@pytest.mark.parametrize("reader", _READERS, ids=lambda reader: reader.name)
def test_a_damaged_file_is_refused_with_its_place(reader):
  fuzz_cases.check_mutated(reader)


@pytest.mark.counted
@pytest.mark.parametrize(
  "reader",
  [reader for reader in _READERS if reader.joint],
  ids=lambda reader: reader.name,
)
def test_a_nearly_valid_file_is_refused_with_its_place(reader):
  fuzz_cases.check_structured(reader)
