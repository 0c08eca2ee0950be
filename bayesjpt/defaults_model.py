"""Numbers of steps inside ``pm.sample``; see `bayesjpt.defaults`."""

from __future__ import annotations

IMPUTATION_PROPOSALS = 4
"""For the missing cells of each row in a sweep: two of all together, two of one cell given the others. Each costs one
pass over the rows with gaps and one evaluation of the factors that depend on them, less than the rest of a sweep."""

MAX_ROWS_ONE_BY_ONE = 200
"""Rows, at random, that a proposal is made for in a sweep where factors mix rows: one evaluation of the factors each,
a tenth to half a millisecond."""
