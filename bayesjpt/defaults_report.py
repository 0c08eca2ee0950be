"""Numbers of reports: how much a page shows, and from how many draws. They decide no answer of a verb."""

DRAWS = 32
"""Draws that bands are told from, two of each structure: of 50 columns these take a second."""

PAIR_DRAWS = 16
"""Draws that pairs of columns are told from, one of each structure: 1,225 pairs take a second."""

CELLS = 40
"""Cells of a column of numbers: about eight pixels each."""

PAIRED = 60
"""Columns at most of which a report looks at all pairs: as many rows of a picture as a screen has room for."""

SUPPORT = 0.01
"""Least share of all rows of a sub-population's densest part that a report tells."""

ROWS, ODD = 1000, 10
"""Rows among which the oddest are looked for, drawn at random from larger tables, and how many of them are shown."""

HELD_OUT = 600
"""Rows, drawn at random, of which a quarter are held out in turn from structures that are learned anew."""

TOP_PAIRS = 15
"""Pairs of columns that are told as text."""

DRAWN_ROWS = 200
"""Rows that a page holds, for pictures of any pair: as many as a fit keeps."""
