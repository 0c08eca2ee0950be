"""Starting values of networks over intervals, their polynomials, and trees of labels; see `bayesjpt.defaults`."""

from __future__ import annotations

# --- learner: intervals ----------------------------------------------------------------------------------------------

WMISPN_P_VALUE = 0.001
"""Probability of the G statistic under independence below which two columns depend on each other."""

WMISPN_PENALTY = 0.05
"""Of a further cluster of rows, nats a column. Of 0.6, 0.2, 0.05 and 0.01 on the validation rows of six hybrid tables,
the best in all: at 0.6 the 39 columns of one of them open no second cluster, which costs 7 nats a row."""

WMISPN_SMOOTHING = 0.1
"""Pseudo-rows of each code of a column in a cluster."""

WMISPN_MAX_CLUSTERS = 16
"""Clusters of one division at most; more come from dividing these."""

WMISPN_STARTS = 4
"""Orders of the rows that are tried."""

WMISPN_PASSES = 8
"""Times that each row is asked for its cluster."""

WMISPN_MAX_BINS = 100
"""Bins of a column or leaf that may be asked for."""

# --- leaves: splines -------------------------------------------------------------------------------------------------

SPLINE_MAX_BINS = 10
"""Bins among which a leaf chooses, 1 to so many; with the orders 1 to 6, 60 candidates."""

SPLINE_POINTS = 400
"""Values that take part in that choice; of more, so many order statistics that stand for equally many each."""

SPLINE_EM_STEPS = 30
"""Rounds of EM for each candidate."""

SPLINE_CONCENTRATION = 0.25
"""Dirichlet concentration of each spline and tail. Of 0.03 to 1 on held-out training rows of four small tables, 0.25 is
best or within noise of it."""

SPLINE_START = 2.0
"""Pseudo-rows that are spread like a leaf's training rows, smoothed; 5 and 10 are no better."""

SPLINE_MARGIN = 3.0
"""How far the outermost breaks lie beyond a leaf's n values, in (largest - least) / (n - 1). At 1 they are where an
unbiased guess has the ends of a uniform distribution; rows that join a leaf lie further out. Of 0 to 6 the best on the
same rows."""

SPLINE_LEAST_TAIL = 0.1
"""Scale of the tails at least, in standard deviations of the column; else that of the leaf's values."""

# --- learner: cutset networks ----------------------------------------------------------------------------------------

CUTSET_MIN_ROWS, CUTSET_MIN_COLUMNS, CUTSET_BINS, CUTSET_DRAWS = 300, 4, 8, 2
"""Delta and sigma of Di Mauro et al. (2017); intervals by which numbers are judged; draws of each of some networks."""

# --- learners: hidden Chow-Liu trees, mixtures of trees --------------------------------------------------------------

HCLT_STATES, TREE_COMPONENTS = 8, 16
"""States of each hidden variable; trees of a mixture."""

EM_STEPS, EM_ROWS = 20, 20_000
"""Steps before sampling goes on, and rows that they see at most: where sweeps begin hardly matters beyond."""

EM_STATE_ROWS, EM_LEAF_ROWS = 0.1, 2.0
"""Imaginary rows: of each state given its parent's (`defaults.GAMMA`), and of a column given a state, by its shares
(the prior of categories)."""
