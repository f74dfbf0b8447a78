"""Sizes of every experiment's programs, as small as tests need them."""

SMALL = {
  "mvlsa": {
    "words": 640, "columns": 40, "entries": 4000, "views": 3, "m": 4, "k": 3,
    "vocabulary": 90, "terms": 7, "questions": 9,
  },
  "nvse": {
    "features": 50, "hidden": 7, "dim": 3, "batch_size": 4, "touched": 16,
    "entities": 30, "row": 5, "queries": 2,
  },
  "elkb": {
    "entities": 31, "relations": 3, "facts": 20, "dim": 4, "batch_size": 8,
    "candidates": 5, "block": 4,
  },
  "rescal": {"entities": 31, "rank": 4},
  "ned": {
    "entities": 20, "vocabulary": 30, "dim": 4, "documents": 2, "mentions": 3,
    "candidates": 3, "context": 5, "bag": 4, "block": 8,
  },
  "cmr": {
    "mentions": 40, "queries": 3, "postings": 200, "chunks": 4, "dim": 3,
    "features": 50, "hidden": 7, "batch_size": 4, "touched": 16,
  },
}  # fmt: skip
