"""Defaults that several files share: value, unit, and where they come from. One file's own stand in that file."""

from __future__ import annotations

# --- files -----------------------------------------------------------------------------------------------------------

MAX_LINE_BYTES = 16 * 2**20
"""Bytes of a line of a table; a million columns of 16 characters."""

MAX_EXPANSION = 200.0
"""Bytes in a compressed file for each of its own. Tables have 3 to 20; gzip reaches 1,032 on a single repeated byte."""

# --- columns: what becomes of them -----------------------------------------------------------------------------------

MAX_LABELS = 100
"""Labels; more than these make a text, not a category. Covers countries and US states, not names or addresses."""

MAX_FORCED_LABELS = 1000
"""Labels of a category that was asked for by name; airports and postal regions fit. More would be a leaf of its own for
each few rows: group them."""

MAX_INTEGER_LEVELS = 20
"""Distinct values; up to these an integer column may also be read as labels. "Numeric and more than 20 distinct values"
is the simple rule to beat on public tables with known types (macro accuracy .93-.95)."""

LARGEST_INTEGER = 2.0**53
"""Above it float64 cannot tell neighbours apart."""

# --- columns: resolution and units -----------------------------------------------------------------------------------

MAX_SIGNIFICANT = 1e9
"""Typical value over grid width; more significant digits than nine are computed, not recorded."""

# --- structure: dependence and clusters of rows ----------------------------------------------------------------------

RDC_N_FEATURES = 10
"""Random features a column (k): as in Molina et al. (2018) and ABDA; the program of Lopez-Paz et al. (2013) has 20."""

RDC_SCALE = 1.0 / 6.0
"""Standard deviation of the random weights: s in the program of Lopez-Paz et al. (2013)."""

RDC_MAX_ROWS = 10_000
"""Rows on which coefficients and cluster centres are found; the standard error of a correlation is then 0.01, against
thresholds of 0.3 and more."""

# --- learner: cutset networks ----------------------------------------------------------------------------------------

CUTSET_MIN_COLUMNS, CUTSET_MIXED_COLUMNS = 4, 1
"""Columns that no split parts: sigma of Di Mauro et al. (2017); and where there are numbers, which depend on others by
splits alone."""

# --- learners: hidden Chow-Liu trees, mixtures of trees --------------------------------------------------------------

HCLT_STATES, TREE_COMPONENTS = 8, 16
"""States of each hidden variable; trees of a mixture."""

# --- leaves: distribution functions by pieces ------------------------------------------------------------------------

QUANTILE_EPSILON = 1e-5
"""Mean squared error of a segment's distribution function above which CDF-LEARN splits it; its root is 0.3 % of
probability. The smaller value of figure 2 of Nyga et al. (2023) is 0.01, a root by its likelihoods. On normal, skewed,
heavy-tailed and multimodal samples of 10^4 values, 1e-2 costs 0.15 to 0.45 nats a new value, 1e-4 0.01 to 0.04, 1e-5 at
most 0.01, with 12 to 27 segments."""

# --- model -----------------------------------------------------------------------------------------------------------

GAMMA, ESS = 0.1, 1.0
"""Dirichlet concentration per edge at structure sums: below half the number of parameters of a part, so that parts in
excess become empty in place of sharing rows (Rousseau and Mengersen, 2011, Asymptotic behaviour of the posterior
distribution in overfitted mixture models). ABDA has 10.
Imaginary rows of each split, divided evenly over its ways: of two ways the prior of Jeffreys."""

DRAWN_ESS = "drawn"
"""In place of a number of imaginary rows: the number is drawn too, anew for each draw."""

ALPHA = 0.1
"""Dirichlet concentration per member of a likelihood dictionary (Vergari et al., 2019, section 6)."""

# --- sampler ---------------------------------------------------------------------------------------------------------

MAX_WORK_BYTES = 64 * 2**20
"""Bytes of a sweep's workspace; blocks of 1,024 rows are halved until it fits. Larger circuits are rare, and slower."""

MAX_DISTINCT_SHARE = 0.3
"""Distinct values over rows; up to this share a real column is evaluated once per distinct value."""

MAX_TABLE_BYTES = 1_500_000
"""Bytes of all tables by distinct value together: what a second-level cache of 2 MiB holds beside a block's values."""

DRAWS = 150
"""Kept sweeps a chain: shares of types then have intervals accurate to about a tenth of their width with 4 chains."""

TUNE = 150
"""Sweeps a chain before those kept; with ten times as many chains agree no better (docs/explanation/convergence.md)."""

CHAINS = 4
"""Two from the learner's partition, two from random allocations."""

THIN = 1
"""Sweeps per kept one: all are kept unless memory asks for fewer, since thinning throws information away."""

FOLDS = 4
"""Parts of the rows, each held out once, on which several structures are weighed: three quarters are left to learn."""

STRUCTURES = 16
"""Structures of a fit: repeated with another seed, 95 % of answers move by .07 to .09 of their intervals, and rows' log
masses are known to .2 nats. On large tables that takes the processor time of four chains of 300 sweeps
(docs/decisions/ensembles.md)."""

STRUCTURE_TUNE = 30
STRUCTURE_DRAWS = 20
STRUCTURE_CHAINS = 1
"""Sweeps that are discarded and kept, and chains, of each of several structures: a draw at sweep 40 predicts as well as
one at sweep 280."""

LEARN_ROWS = 100_000
"""Rows that a structure is learned from at most, chosen by a hash of their numbers, of each structure's own: see
docs/results.md."""

HALVED_ROWS = 2_500
"""Rows of a table from which structures are learned from half of them: on abalone held-out mass is then higher by .05
nats with 2,923 rows, lower by .24 and .65 with 1,400 and 700 of them, than with structures learned from all rows."""

WATCH_SECONDS = 0.1
"""Between looks at the chains: ten a second are smooth for the eye and cost nothing."""

# --- answers ---------------------------------------------------------------------------------------------------------

INTERVAL = 0.9
"""Probability of the equal-tailed intervals that are reported."""

CONFIDENCE = 0.95
"""Confidence of the bounds around an expectation; that of figure 4 of Nyga et al. (2023)."""

TYPE_DRAWS = 4
"""Draws, of all chains, whose sub-populations say what type a column is: one of each chain unless there are fewer. Of
the reference rows few change their sub-population from one draw to the next."""

SCORED_ROWS = 65_536
"""Rows whose masses are tabulated together, or that are routed together; bounds memory, and changes no answer."""

MAX_RHAT = 1.1
"""Split R-hat above which a quantity counts as not converged in a short exploratory run."""

STABLE_SHARE = 0.95
"""Share of the answers that the sentence about stability is about."""

TYPE_STRUCTURES, TYPE_TUNE, TYPE_KEPT = 4, 10, 10
"""Structures, sweeps before and kept sweeps of a fit that is asked for types alone, where sweeps are asked for."""

TYPE_ROWS, QUICK_ROWS = 2000, 1000
"""Rows from which a structure is learned for the types of a larger table, and where they are wanted quickly: evidence
of values comes from `REFERENCE_ROWS` of them."""

MAX_BOXES = 10_000
"""Boxes that an event may be split into; each is one pass over the circuit for every draw."""

MAX_EVENT_DEPTH = 100
"""Levels of and, or, not inside each other; far more than people write, far less than Python's stack holds."""

QUERY_WORK_BYTES = 6 * 2**20
"""Bytes of the values of a block of rows; with tables by distinct value and buffers a query stays below 8 MiB."""

MAX_REDRAWS = 1000
"""Times that a row with the label "other", or a number outside its support, is drawn anew before it is conditioned."""

# --- explanations ----------------------------------------------------------------------------------------------------

EXPLAINED_FACTS = 3
"""Columns that describe a sub-population in words."""

EXPLAINED_DIFFERENCE = 0.2
"""From which a column sets a sub-population apart: a fifth of its rows lie elsewhere than those of the whole table."""

COMPONENTS = 8
"""Components of a column that are described: those of less weight are described together."""

# --- pictures --------------------------------------------------------------------------------------------------------

TREE_LEAVES = 30
"""Parts of a tree that are drawn: a page or two; smaller sub-trees are drawn as one part each."""

TREE_COLUMNS = 8
"""Columns that are drawn in each: what fits beside the splits on a wide screen."""

TREE_DRAWS = 40
"""Draws that their bands are computed from, as many as commands use: two of them lie beyond either end of a band."""

SHOWN_DRAWS = 200
"""Draws of a structure whose posterior is in closed form, where its own intervals are shown: ten lie beyond either end,
which is then known to a seventh of the interval's half width."""

# --- command line ----------------------------------------------------------------------------------------------------

COMMAND_DRAWS = 24
"""Draws that `bayesjpt dependence` and `bayesjpt impute --mean` look at, for an answer in little more than a second: a
posterior mean is then known to 0.2 of the posterior's own spread."""

JUDGING_SECONDS, JUDGING_SECONDS_A_COLUMN, JUDGING_SHARE = 1.5, 0.03, 1.0 / 3.0
"""What a limit of time leaves for all that follows the structures, to save a fit and to judge it: 1.2 to 2.2 s of
tables of 5 to 12 columns, 2.5 to 4.5 s of 60, on two processors, idle or shared, whatever the number of rows; and
the share of a short limit that it is at most."""

OUTLIER_DRAWS = 4
"""Draws that `bayesjpt outliers` averages over, one a chain: of the 20 oddest of 6,497 wines 16 are those of 200 draws
(19 with eight, in half a second more), and scores correlate by .997."""
