"""A map of words in two dimensions, as SVG."""

import html
from collections.abc import Collection, Sequence

import numpy as np

from repr_jax import ops

_EDGE = 60  # in pixels
_LETTER, _LINE = 7.8, 15  # width of a letter and height of a line


def draw(
  words: Sequence[str],
  vectors: np.ndarray,
  bold: Collection[str] = (),
  paper: str | None = "white",
  side: int = 900,
) -> str:
  """Draws words at the first two principal components of their unit vectors.

  Args:
    words: the words, the most important first.
    vectors: their vectors, [n, d].
    bold: words that stand out.
    paper: color behind the words; None for a page in any color.
    side: width and height in pixels; letters have 13.

  Returns:
    The picture. No label covers another; a line leads from it to its point.
  """
  unit = np.asarray(ops.unit_rows(np.asarray(vectors)))
  u, s, _ = np.linalg.svd(unit - unit.mean(axis=0), full_matrices=False)
  flat = np.zeros((len(words), 2))
  flat[:, : min(2, len(s))] = (u * s)[:, :2]
  low, high = flat.min(axis=0), flat.max(axis=0)
  # One scale for both axes, so that distances can be compared.
  span = max((high - low).max(), 1e-9)
  places = side / 2 + (flat - (low + high) / 2) / span * (side - 2 * _EDGE)
  labels = _apart(words, places, side)
  marks = []
  for word, (x, y), (at, line) in zip(words, places, labels):
    weight = ' style="font-weight:bold"' if word in bold else ""
    marks.append(
      f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="#2a7fdd"/>'
      f'<path d="M{x:.1f} {y:.1f}L{at:.1f} {line:.1f}" stroke="#888" '
      'stroke-width=".5"/>'
      f'<text x="{at:.1f}" y="{line:.1f}"{weight}>{html.escape(word)}</text>'
    )
  behind = f'<rect width="100%" height="100%" fill="{paper}"/>\n'
  return (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {side}" '
    'font-family="sans-serif" font-size="13" text-anchor="middle" '
    'fill="currentColor" role="img" aria-label="Map of words">\n'
    + (behind if paper else "")
    + "\n".join(marks)
    + "\n</svg>\n"
  )


def _apart(
  words: Sequence[str], points: np.ndarray, side: int = 900
) -> np.ndarray:
  """Places of labels near their points, [n, 2], none over another.

  Args:
    words: the labels; the first ones lie nearest to their points.
    points: the points, [n, 2].
    side: labels lie within 0 and this.
  """
  turns = np.arange(3000) * 2.4  # a spiral, close to the golden angle
  spiral = np.stack([2 * np.cos(turns), np.sin(turns)], axis=1)
  spiral = spiral * 3 * np.sqrt(turns)[:, None] + [0, -4]
  low = np.zeros((0, 2))
  high = np.zeros((0, 2))
  chosen = []
  for word, point in zip(words, points):
    half = np.array([_LETTER * len(word) / 2 + 2, _LINE / 2])
    tried = np.clip(point + spiral, half, side - half)
    over = (tried[:, None] - half < high) & (tried[:, None] + half > low)
    free = np.flatnonzero(~over.all(axis=-1).any(axis=-1))
    place = tried[free[0] if free.size else 0]
    low = np.concatenate([low, [place - half]])
    high = np.concatenate([high, [place + half]])
    chosen.append(place)
  return np.array(chosen)
