"""Every published figure that an experiment is compared with.

Sources: Rastogi, "Representation Learning for Words and Entities" (2019).
Each chapter has one section; experiments read their figures from here.
"""

# Chapter 3: multiview LSA, by table, system and test set.

_WORD_SETS = (
  "MEN", "RW", "SCWS", "SIMLEX", "WS", "MTURK", "WS-REL", "WS-SEM", "RG", "MC",
  "AN-SYN", "AN-SEM", "TOEFL",
)  # fmt: skip


def _by_set(columns: dict[str, str]) -> dict[str, dict[str, float]]:
  return {
    system: dict(zip(_WORD_SETS, map(float, figures.split())))
    for system, figures in columns.items()
  }


WORD_VECTORS = {
  "n": _by_set({
    "log": "67.5 31.1 64.2 36.7 68.0 57.3 60.4 75.0 69.1 70.5 45.7 25.4 81.2",
    "count":
      "59.7 25.3 58.2 27.0 60.4 55.2 52.7 67.2 55.3 67.6 21.1 15.9 70.0",
    "count^0.25":
      "70.7 37.8 66.6 38.0 70.5 60.8 62.9 76.2 75.9 80.9 53.6 38.7 81.2",
  }),
  "t": _by_set({
    "t=6250":
      "70.2 41.8 67.1 42.7 68.1 62.5 60.8 77.8 72.7 75.2 59.2 37.7 88.8",
    "t=12500":
      "71.2 41.7 67.3 42.4 70.8 59.7 65.1 78.8 74.4 75.9 60.0 38.6 87.5",
    "t=25000":
      "71.5 41.5 67.1 41.9 71.6 59.2 65.7 78.8 74.7 79.9 59.5 39.4 85.0",
    "t=50000":
      "71.6 40.9 67.0 41.3 71.2 58.6 64.8 78.2 75.0 80.3 58.4 39.2 83.8",
  }),
  "m": _by_set({
    "m=100": "65.6 34.6 64.2 38.4 60.4 51.3 49.0 73.6 61.6 65.6 50.5 24.3 80.0",
    "m=200": "68.5 36.0 65.4 40.6 67.1 58.3 58.2 76.8 69.7 74.1 56.2 31.4 81.2",
    "m=300": "70.1 37.2 66.4 41.1 69.4 58.4 61.6 76.8 73.2 78.3 56.4 34.3 82.5",
    "m=500": "71.1 37.1 66.5 40.3 71.1 58.9 65.1 78.0 74.6 77.7 56.4 40.6 80.0",
  }),
  "k": _by_set({
    "k=10": "49.0 28.8 57.8 24.0 46.8 54.6 38.4 55.3 48.8 37.0 9.0 2.5 57.5",
    "k=25": "59.3 33.1 62.8 30.1 57.5 65.9 49.5 64.7 60.5 57.5 28.4 10.8 73.8",
    "k=50": "67.0 33.3 64.4 33.9 63.4 67.7 55.8 69.9 66.1 59.0 41.2 21.8 72.5",
    "k=100": "69.7 35.0 65.2 36.1 69.5 61.6 63.1 76.9 69.7 71.3 52.2 34.8 76.2",
    "k=200": "70.2 35.2 66.1 38.9 69.5 60.5 62.4 77.1 75.1 79.1 55.4 35.8 81.2",
    "k=300": "70.1 37.2 66.4 41.1 69.4 58.4 61.6 76.8 73.2 78.3 56.4 34.3 82.5",
    "k=500": "69.8 38.3 65.1 42.0 66.0 57.4 56.3 75.6 72.5 75.7 54.4 33.8 85.0",
  }),
  "v": _by_set({
    "v=16": "70.4 39.9 67.0 40.7 69.5 59.4 62.1 76.8 73.0 75.0 56.0 34.6 85.0",
    "v=17": "70.4 38.8 66.8 41.0 69.4 59.2 61.9 76.8 72.8 76.0 55.8 34.3 85.0",
    "v=21": "70.2 39.7 66.5 41.2 69.5 59.2 62.3 77.0 72.8 76.5 55.9 34.0 83.8",
    "v=25": "70.1 37.2 66.4 41.1 69.4 58.4 61.6 76.8 73.2 78.3 56.4 34.3 82.5",
    "v=29": "70.0 33.5 65.7 41.0 69.1 58.0 61.1 76.8 73.7 78.6 56.0 34.3 80.0",
  }),
  "ablation": _by_set({
    "all views":
      "70.1 37.2 66.4 41.1 69.4 58.4 61.6 76.8 73.2 78.3 56.4 34.3 82.5",
    "!frame":
      "69.8 36.4 65.8 40.1 69.1 58.3 61.5 76.3 72.0 75.7 56.3 34.3 82.5",
    "!derivation":
      "70.1 36.1 66.3 41.1 69.2 58.6 61.4 76.7 73.2 78.2 56.2 34.3 82.5",
    "!bitext":
      "69.9 32.2 64.2 37.8 67.6 55.9 59.4 75.9 73.7 78.2 51.2 36.2 71.2",
    "!text": "46.4 11.6 54.5 32.4 43.1 52.7 38.2 48.1 45.0 46.5 37.6 4.1 45.0",
    "!dependency":
      "68.4 34.9 65.5 44.1 70.5 59.8 63.5 75.7 70.8 77.5 50.5 35.3 85.0",
  }) | {
    # Morphology and frames left out together, then bitext too; these four sets
    # alone are on record.
    "!derivation !inflection !frame": {
      "MEN": 69.5, "SIMLEX": 38.9, "AN-SYN": 54.4, "TOEFL": 82.5,
    },
    "!derivation !inflection !frame !bitext": {
      "MEN": 68.4, "SIMLEX": 34.4, "AN-SYN": 46.0, "TOEFL": 65.0,
    },
  },
  "comparison": _by_set({
    "skip-gram":
      "73.9 32.9 65.6 36.7 70.8 65.1 63.6 78.4 78.2 78.5 59.8 73.7 81.2",
    "baselines fused":
      "76.0 37.2 60.7 41.1 67.4 59.8 59.6 76.1 80.4 82.7 51.0 73.5 86.2",
    "text views":
      "71.4 29.0 61.8 34.5 68.0 59.1 60.1 76.8 71.2 76.6 42.7 36.2 78.8",
    "all views":
      "71.2 41.7 67.3 42.4 70.8 59.7 65.1 78.8 74.4 75.9 60.0 38.6 87.5",
    "all fused":
      "75.8 40.5 66.4 43.9 70.1 62.9 63.5 79.2 80.8 77.7 64.3 77.2 88.8",
  }),
}  # fmt: skip

# Chapter 4: set expansion.

# First places that judges gave, by group of queries and system.
FIRST_PLACES = {
  ("1", "NVSE"): 193,
  ("1", "BM25"): 171,
  ("1", "BS"): 117,
  ("2", "NVSE"): 307,
  ("2", "SETEXPAN"): 86,
  ("2", "W2V"): 87,
}

# Chapter 5: RESCAL, the puzzle, WN18.

# Percent right of E, E^c, E^rev (tables 5.1 and 5.2) by data, number of
# vertices, setting and whether entities have two roles; one row for each of
# RESCAL_DIMS.
RESCAL_DIMS = (50, 100, 200, 400)
RESCAL: dict[tuple[str, int, str, bool], list[tuple[int, int, int]]] = {
  ("tree", 2047, "full", False): [(e, 100, 100) for e in (66, 76, 86, 94)],
  ("tree", 4095, "full", False): [(e, 100, 100) for e in (60, 69, 79, 88)],
  ("tree", 8191, "full", False): [(e, 100, 100) for e in (54, 63, 72, 81)],
  ("tree", 2047, "sub", False): [
    (100, 93, 52), (100, 78, 58), (100, 60, 72), (100, 54, 67),
  ],
  ("tree", 4095, "sub", False): [
    (100, 91, 48), (100, 92, 56), (100, 71, 61), (100, 57, 70),
  ],
  ("tree", 8191, "sub", False): [
    (100, 89, 44), (100, 89, 52), (100, 90, 59), (100, 65, 62),
  ],
  ("wordnet", 16255, "full", False): [
    (e, 100, 100) for e in (71, 79, 84, 89)
  ],
  ("wordnet", 16255, "sub", False): [
    (100, 93, 58), (100, 94, 60), (100, 93, 63), (100, 68, 69),
  ],
  ("wordnet", 16255, "sub", True): [
    (100, 55, 65), (100, 56, 56), (100, 56, 75), (100, 97, 91),
  ],
}  # fmt: skip

# The deduction puzzle (5.4.5): P@10, MRR, MAP by model and rules.
PUZZLE = {
  ("A", False): (0.00, 0.02, 0.01),
  ("A", True): (0.20, 0.44, 0.83),
  ("B", False): (0.00, 0.03, 0.03),
  ("B", True): (0.17, 0.26, 0.35),
}

# WN18 (5.4.6): MRR, HITS@3, HITS@10 by model and rules. The text does not say
# whether ranks are raw or filtered.
WN18 = {
  ("A", False): (0.0152, 0.016, 0.033),
  ("A", True): (0.0238, 0.03, 0.0514),
  ("B", False): (0.0677, 0.072, 0.137),
  ("B", True): (0.241, 0.283, 0.50),
  ("T", False): (0.311, 0.412, 0.66),
  ("B+T", True): (0.367, 0.475, 0.708),
}

# Chapter 6: mention retrieval, entity vectors, disambiguation.

# Micro F1 of the global model in percent (table of 6.3) by objective and
# contexts, on these tests; and the recall of its candidates.
NED_TESTS = ("AIDA", "MSNBC", "AQUAINT", "ACE04")
NED_F1 = {
  ("max_margin", "u1"): (89.5, 92.7, 84.9, 88.1),
  ("max_margin", "u2"): (92.2, 93.7, 88.5, 88.5),
  ("vae", "u1"): (83.9, 93.3, 84.6, 87.7),
  ("vae", "u2"): (85.4, 94.7, 86.9, 86.5),
  ("null", "u1"): (84.1, 92.6, 81.3, 88.1),
  ("null", "u2"): (83.0, 93.2, 86.4, 88.1),
}
NED_RECALL = {"AIDA": 98.2, "MSNBC": 98.5, "AQUAINT": 94.2, "ACE04": 90.6}

# NDCG@1, 5, 10 and MAP of entity relatedness (table of 6.2) by objective and
# bags of words.
RELATEDNESS_MEASURES = ("NDCG@1", "NDCG@5", "NDCG@10", "MAP")
RELATEDNESS = {
  ("max_margin", "U1"): (0.616, 0.590, 0.616, 0.549),
  ("max_margin", "U1+U2"): (0.646, 0.611, 0.639, 0.576),
  ("vae", "U1"): (0.592, 0.559, 0.578, 0.514),
  ("vae", "U1+U2"): (0.615, 0.571, 0.596, 0.542),
  ("null", "U1"): (0.577, 0.537, 0.563, 0.503),
  ("null", "U1+U2"): (0.615, 0.571, 0.596, 0.542),
}

# infAP of mention retrieval alone and in the ensemble with BM25 (table of
# 6.1.2) by setting; None where the table has no figure.
CMR_BM25 = 0.5453
CMR_SEARCHES = {"bm25:document_weight=0.01": 0.5426}
CMR = {
  "lsa:k=20": (0.3408, 0.5011),
  "lsa:k=300": (0.4008, 0.5032),
  "lsa:k=500": (0.3808, 0.4939),
  "mvlsa:k=500:m=500": (0.3708, None),
  "mvlsa:k=1000:m=500": (0.3665, None),
  "mvlsa:k=300:m=500": (0.3651, None),
  "mvlsa:k=300:m=256": (0.3508, 0.4895),
  "vae:decoder=multilabel:lbv=0": (0.3635, None),
  "vae:decoder=multilabel": (0.3955, None),
  "vae:decoder=multilabel:hidden=300": (0.4099, None),
  "vae": (0.5025, 0.5513),
  "vae:lbv=0": (0.4629, None),
  "vae:unique=1": (0.5025, None),
  "vae:epochs=0": (0.5074, 0.5405),
  "vae:epochs=40": (0.5029, 0.5504),
  "vae:smooth=0.5": (0.5091, 0.5527),
  "vae:epochs=2:beta=0:smooth=0.5": (0.4967, 0.5580),
  "vae:epochs=2:beta=0.2:smooth=0.5": (0.4931, 0.5542),
  "vae:epochs=2:beta=0.4:smooth=0.5": (0.4962, 0.5553),
  "vae:epochs=2:beta=0.6:smooth=0.5": (0.4883, 0.5514),
  "vae:epochs=2:beta=0.8:smooth=0.5": (0.5034, 0.5469),
}
