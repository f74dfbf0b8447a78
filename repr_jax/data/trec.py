"""Runs and judgments in the formats of trec_eval.

A run line is `query Q0 document rank score tag`, a judgment line is
`query iteration document relevance`; fields are separated by blanks. Ranks
in a run file are ignored, as by trec_eval: scores decide the order.
"""

import math
from collections.abc import Iterable, Mapping

from repr_jax import errors
from repr_jax.data.io import files

Run = dict[str, dict[str, float]]
Judgments = dict[str, dict[str, int]]


def read_run(path: files.Path) -> Run:
  """Reads a run: for each query, the score of each document.

  Args:
    path: the file, plain or compressed.

  Returns:
    Scores by query and document, in the order of the file.

  Raises:
    InputError: for a malformed line, a score that is not finite, or a
      document that occurs twice for a query.
  """
  run: Run = {}
  for line, fields in _rows(path, 6, "query Q0 document rank score tag"):
    query, document = fields[0], fields[2]
    try:
      score = float(fields[4])
    except ValueError:
      score = math.nan
    if not math.isfinite(score):
      raise errors.InputError(
        f"the score {fields[4]!r} is not a finite number", path=path, line=line
      )
    _put(run.setdefault(query, {}), query, document, score, path, line)
  return run


def read_judgments(path: files.Path) -> Judgments:
  """Reads judgments: for each query, the relevance of judged documents.

  Args:
    path: the file, plain or compressed.

  Returns:
    Relevance by query and document; negative means in the pool, not judged.

  Raises:
    InputError: for a malformed line or a document judged twice for a query.
  """
  judgments: Judgments = {}
  for line, fields in _rows(path, 4, "query iteration document relevance"):
    query, document = fields[0], fields[2]
    digits = fields[3].removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
      raise errors.InputError(
        f"the relevance {fields[3]!r} is not a whole number of at most nine "
        "digits",
        path=path,
        line=line,
      )
    relevance = int(fields[3])
    _put(
      judgments.setdefault(query, {}), query, document, relevance, path, line
    )
  return judgments


def write_run(
  path: files.Path,
  run: Mapping[str, Mapping[str, float]],
  *,
  tag: str = "repr_jax",
) -> None:
  """Writes a run, each query in falling order of score.

  Documents with equal scores are written in the order in which trec_eval
  ranks them, the later name first.

  Args:
    path: the file; .gz is compressed.
  """
  _names([tag])
  for query, scores in run.items():
    _names([query, *scores])
    for document, score in scores.items():
      if not math.isfinite(score):
        raise errors.InputError(
          f"query {query}, document {document}: score {score} is not finite"
        )
  with files.atomic_write(path) as stream:
    for query, scores in run.items():
      order = sorted(scores, key=str.encode, reverse=True)
      order.sort(key=lambda document: scores[document], reverse=True)
      for rank, document in enumerate(order, 1):
        score = float(scores[document])
        stream.write(f"{query} Q0 {document} {rank} {score!r} {tag}\n")


def write_judgments(
  path: files.Path, judgments: Mapping[str, Mapping[str, int]]
) -> None:
  """Writes judgments.

  Args:
    path: the file; .gz is compressed.
    judgments: relevance by query and document.
  """
  for query, relevance in judgments.items():
    _names([query, *relevance])
  with files.atomic_write(path) as stream:
    for query, relevance in judgments.items():
      for document, value in relevance.items():
        stream.write(f"{query} 0 {document} {int(value)}\n")


def _rows(path, count, form):
  """Numbered rows of `count` fields; blank lines are passed over."""
  for line, text in files.numbered_lines(path):
    fields = text.split()
    if len(fields) != count:
      raise errors.InputError(
        f"expected {count} fields ({form}), got {len(fields)}: {text[:60]!r}",
        path=path,
        line=line,
      )
    yield line, fields


def _put(row, query, document, value, path, line) -> None:
  if document in row:
    raise errors.InputError(
      f"document {document} occurs twice for query {query}",
      path=path,
      line=line,
    )
  row[document] = value


def plain_names(names: Iterable[str]) -> dict[str, str]:
  """Distinct names without blanks, as TREC files need them.

  Args:
    names: any texts, such as titles with blanks.

  Returns:
    By name: the name itself if it is usable, else with _ for other characters.
  """
  wanted = list(dict.fromkeys(names))
  given = {name: name for name in wanted if _is_plain(name)}
  taken = set(given)
  for name in wanted:
    if name not in given:
      plain = "_".join(name.replace("\ufeff", "").split()) or "_"
      while plain in taken:
        plain += "_"
      taken.add(plain)
      given[name] = plain
  return given


def _is_plain(name: str) -> bool:
  return name.split() == [name] and not files.marked(name)


def _names(names) -> None:
  for name in names:
    if not _is_plain(name):
      raise errors.InputError(
        f"{name!r} cannot be written: a TREC name has no blanks"
      )
