"""Every figure that the thesis publishes and an experiment is held to.

Sources: Rastogi, "Representation Learning for Words and Entities" (2019).
Each chapter has one section; experiments read their figures from here.
"""

# Chapter 3: multiview LSA.

# Chapter 4: set expansion.

# Chapter 5: RESCAL, the puzzle, WN18.

# Chapter 6: mention retrieval, entity vectors, disambiguation.
