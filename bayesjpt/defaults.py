"""Every default once: value, unit, and where it comes from."""

from __future__ import annotations

from bayesjpt.defaults_intervals import *  # noqa: F403 - one name for all defaults, two files of them

# --- files -----------------------------------------------------------------------------------------------------------

MAX_LINE_BYTES = 16 * 2**20
"""Bytes of a line of a table; a million columns of 16 characters."""

MAX_EXPANSION = 200.0
"""Bytes in a compressed file for each of its own. Tables have 3 to 20; gzip reaches 1,032 on a single repeated byte."""

FREE_EXPANSION_BYTES = 64 * 2**20
"""Bytes that a compressed file may hold however small it is: constant columns, in small files, are nothing to fear."""

# --- columns: what becomes of them -----------------------------------------------------------------------------------

MAX_LABELS = 100
"""Labels; more than these make a text, not a category. Covers countries and US states, not names or addresses."""

MAX_FORCED_LABELS = 1000
"""Labels of a category that was asked for by name; airports and postal regions fit. More would be a leaf of its own for
each few rows: group them."""

MAX_INTEGER_LEVELS = 20
"""Distinct values; up to these an integer column may also be read as labels. "Numeric and more than 20 distinct values"
is the simple rule to beat on public tables with known types (macro accuracy .93-.95)."""

MAX_ORDERED_LEVELS = 100
"""Distinct values; up to these an integer column has levels where its shares are worth knowing one by one: where some
values are favoured (`bayesjpt.table.heaps`), or each is frequent. A leaf's draw takes a microsecond a level."""

MIN_CELLS_PER_LEVEL = 30.0
"""Training cells per distinct value from which more than `MAX_INTEGER_LEVELS` levels are kept without a favourite.
Shares read off negative binomial counts cost .005 nats a cell at 13 cells a level, nothing at 35 (docs/results.md)."""

MIN_IDENTIFIER_ROWS = 20
"""Rows; below, distinct values say nothing: 20 draws from 40 equally likely values are all distinct 1 in 300 times."""

IDENTIFIER_SHARE = 0.9
"""Distinct values over observed cells; a text column above it is an identifier, an integer one if its name says so."""

RUNNING_NUMBER_FILL = 0.5
"""Share of its range that a column of all-distinct integers fills; above it, it is a running number (rows may have been
dropped). Of 100 draws from 200 values all are distinct once in 10^13 times."""

CODE_SHARE = 0.05
"""Distinct values over observed cells; only below it can fractions be a code (0.25, 0.5, 1, 2, 4) instead of a
measurement."""

CODE_GRID_FILL = 0.5
"""Share of the points of its recording grid, from its least to its largest value, that a measurement with few values
would fill."""

LARGEST_INTEGER = 2.0**53
"""Above it float64 cannot tell neighbours apart."""

# --- columns: resolution and units -----------------------------------------------------------------------------------

GRID_SHARE = 0.99
"""Share of the values that a recording grid must hold; the rest may be typing errors or another instrument."""

GRID_TOLERANCE = 1e-12
"""Relative distance from a grid point that counts as on it: a few thousand rounding errors of float64."""

GRID_GAIN = 10.0
"""How much coarser the grid must become for one repeated value to be spared: 1e-6 among hundredths, not .5 in ones."""

GRID_MIN_OTHERS = 5
"""Distinct values that must lie on such a grid."""

MIN_GRID_PER_SPREAD = 1e-7
"""Interquartile ranges; a finer grid is the print precision of a computed number, not of a measurement."""

MAX_SIGNIFICANT = 1e9
"""Typical value over grid width; more significant digits than nine are computed, not recorded."""

FALLBACK_PER_SPREAD = 1e-3
"""Interquartile ranges; the resolution where no grid is visible."""

LARGEST_STANDARDISED = 1e150
"""Scale units from the location; beyond, squares overflow float64."""

# --- columns: atoms --------------------------------------------------------------------------------------------------

# Chosen on the columns of 40 public tables: zeros of amounts, censored maxima and codes are found; ages, times of day,
# prices and measurements that people round to fives and tens are not.

MAX_ATOMS = 10
"""Atoms of a column; more values that repeat far beyond their neighbours are a habit of rounding."""

ATOM_SHARE = 0.002
"""Share of the cells from which a value may be an atom; a rarer one changes no answer that is worth a leaf."""

ATOM_MIN_COUNT = 5
"""Cells that an atom holds at least."""

ATOM_RATIO = 10.0
"""How many times the median count (plus one half) of its neighbours an atom's count must be. Of a million values from a
density that puts one value on each grid point, none repeats 15 times by chance (10^-5)."""

ATOM_NEAREST = 3
"""Neighbours on each side of which the first median is taken: so a steep density is followed."""

ATOM_NEIGHBOURS = 10
"""Neighbours on each side of which the second median is taken: so a neighbouring atom does not hide one."""

ATOM_LEAD = 5.0
"""How many times the count of the most frequent other value each of the most frequent values must have."""

ATOM_END_RATIO = 3.0
"""How many times the counts of its nearest neighbours the least or largest value must have to be an atom."""

ATOM_END_NEIGHBOURS = 5
"""Distinct values that are the nearest neighbours of the least or largest one."""

ATOM_MIN_OTHERS = 20
"""Distinct values that must remain beside the atoms; with fewer, a frequent value is just a coarse grid."""

ATOM_MIN_FAR_OTHERS = 5
"""Distinct values that must remain beside an atom that lies far away."""

ATOM_FAR = 3.0
"""How many times the range of the other values away a repeated value is a code; doublings (1, 2, 4, ..., 64) and
triplings are not."""

ATOM_MAX_CODES = 3
"""Values side by side that far away that may all be codes (997, 998, 999)."""

ATOM_MIN_STEPS = 10.0
"""Grid steps in the interquartile range of the other values; with fewer, a frequent value is just a coarse grid."""

ATOM_MIN_WHOLE_SPREAD = 100.0
"""Interquartile range of the other whole numbers from which an atom turns whole numbers into a real column: amounts
(hundreds and more) have one, counts with many zeros stay counts."""

# --- columns: heaped values ------------------------------------------------------------------------------------------

HEAP_NEIGHBOURS = 5.0
"""Effectively different values within a window. Of 5, 8, 12 and 16 the best on validation rows of three tables (wine,
abalone, australian), by up to 0.2 nats a row: wider windows displace more of what leaves know of a column's shape."""

HEAP_FEW_NEIGHBOURS = 2.0
"""The same where it is asked whether there are favourites. Of columns drawn from a density and rounded to 12 values or
more, none reaches 0.01 nats a cell; of columns that people rounded, the least has 0.02, most 0.3 and more."""

HEAP_MIN_VALUES = 12
"""Grid points that a column holds at least; with fewer there is no shape to which favourites would compare."""

HEAP_MAX_VALUES = 20_000
"""Grid points up to which favourites are looked for: a second's work."""

HEAP_MAX_SHARE = 0.9
"""Grid points per cell up to which values repeat at all."""

HEAP_MIN_NATS = 10.0
"""Log evidence for favourites below which there are none: chance gives so much to one column of 20,000."""

HEAP_MIN_NATS_PER_CELL = 0.02
"""The same per training cell."""

HEAP_LEAST_CONCENTRATION = 0.5
HEAP_EVEN = 1e4
HEAP_N_CONCENTRATION = 64
"""Concentrations that are tried: from half a cell to so many times the training cells (nothing is favoured), evenly in
logarithms."""

HEAP_LEAST_SLOPE = 1e-4
"""Least width of a recorded cell over its even width, so that none vanishes."""

# --- structure: dependence and clusters of rows ----------------------------------------------------------------------

RDC_N_FEATURES = 10
"""Random features a column (k): as in Molina et al. (2018) and ABDA; the program of Lopez-Paz et al. (2013) has 20."""

RDC_SCALE = 1.0 / 6.0
"""Standard deviation of the random weights: s in the program of Lopez-Paz et al. (2013)."""

RDC_MAX_ROWS = 10_000
"""Rows on which coefficients and cluster centres are found; the standard error of a correlation is then 0.01, against
thresholds of 0.3 and more."""

RDC_TOLERANCE = 1e-7
"""Singular values over the largest; directions below are redundant. That of R's `cancor`, which the program of
Lopez-Paz et al. (2013) calls: about four directions of a number remain, polynomials of its rank in effect."""

RDC_CHANCE = 1.0
"""Singular values of independent normals above the sum of the roots of their matrix's dimensions, once in a thousand
times: 0.9 to 1.5 by simulation, see `structure.dependence.chance`."""

RDC_COMMON_TOLERANCE = 1e-10
"""Variance, of 1 over all rows, that a direction must keep on the rows common to two columns: far above the rounding
errors of sums over 10^4 rows, far below one row's share."""

TWO_MEANS_STEPS = 300
TWO_MEANS_TOLERANCE = 1e-4
"""Steps from each start at most, and squared movement of the centres, of the mean variance of the features, at which
they end: the defaults of scikit-learn."""

TWO_MEANS_STARTS = 3
"""Starts of 2-means, the best is kept; with k-means++ two clusters are found by nearly every start."""

# --- structure: mixed SPNs -------------------------------------------------------------------------------------------

# What scores best on validation rows of nine public tables, and costs little (docs/results.md, learner of networks).

MSPN_MIN_SHARE = 0.05
MSPN_MIN_COUNT = 25
"""Share of the table's rows, and number of rows, at which splitting ends; the larger holds. ABDA's grid is 0.1, 0.2 and
0.3: sub-populations that the data do not need lose their rows again. On validation rows 25 is better than 50 by .23
nats a row on iris, .35 on cars, .03 on heart and diabetes (docs/results.md)."""

MSPN_THRESHOLD = 0.1
"""Dependence coefficient from which two columns may stay together; ABDA's grid is 0.9, 0.7, 0.5, 0.3, but a label that
depends on many columns at once depends little on each."""

# --- structure: joint probability trees ------------------------------------------------------------------------------

JPT_MIN_ROWS = 0.05
"""Least share of the table's rows in a leaf; in the middle of the paper's grid (Nyga et al., table 3)."""

JPT_MIN_IMPROVEMENT = 1e-6
"""Mean relative reduction of impurity below which a node becomes a leaf: what rounding errors stay below."""

# --- leaves: distribution functions by pieces ------------------------------------------------------------------------

QUANTILE_EPSILON = 1e-5
"""Mean squared error of a segment's distribution function above which CDF-LEARN splits it; its root is 0.3 % of
probability. The smaller value of figure 2 of Nyga et al. (2023) is 0.01, a root by its likelihoods. On normal, skewed,
heavy-tailed and multimodal samples of 10^4 values, 1e-2 costs 0.15 to 0.45 nats a new value, 1e-4 0.01 to 0.04, 1e-5 at
most 0.01, with 12 to 27 segments."""

QUANTILE_NOISE = 1.0 / 6.0
"""Squared values per value: what the error of n uniform values is on average, times n (Cramer and von Mises). A smaller
one is no reason to split; without this bound samples of 100 lose 0.02 nats a new value."""

QUANTILE_MIN_VALUES = 5
"""Values that a segment holds at least: of 5, 10 and 20 the best on new values in leaves of 30 to 1,000."""

QUANTILE_MAX_SEGMENTS = 64
"""Segments of a leaf at most; samples of a million values from such distributions need 20 to 30."""

# --- model -----------------------------------------------------------------------------------------------------------

GAMMA, ESS = 0.1, 1.0
"""Dirichlet concentration per edge at structure sums: below half the number of parameters of a part, so that parts in
excess become empty in place of sharing rows (Rousseau and Mengersen, 2011, Asymptotic behaviour of the posterior
distribution in overfitted mixture models). ABDA has 10.
Imaginary rows of each split, divided evenly over its ways: of two ways the prior of Jeffreys."""

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

EVEN_SHARE = 0.5
"""Share of the sweeps before those kept in which a chain from random allocations has even weights at structure sums.
With strong concentrations in place of even weights a third, two thirds and nine tenths do alike (docs/results.md)."""

FIRST_SLICE_WIDTH = 1.0
"""Of a slice update of what concentrations are made of, on its unconstrained scale: most of these are logarithms of
positive numbers, whose prior spans a few units. It is adapted while the step tunes, so it decides no more than cost."""

SLICE_WIDTH_PER_MOVE = 3.0
"""Widths over the mean distance moved while tuning: two uniform points of an interval are a third of it apart."""

MAX_SLICES_PER_SWEEP = 20
"""Scalars above concentrations that a sweep updates, at a tenth to half a millisecond each: no more together than the
rest of a sweep over a few thousand rows."""

CHAINS = 4
"""Two from the learner's partition, two from random allocations."""

THIN = 1
"""Sweeps per kept one: all are kept unless memory asks for fewer, since thinning throws information away."""

MAX_MEMORY_SHARE = 0.8
"""Of the available memory that sampling may take; the rest is for the table itself and for the first answers."""

LARGE_MEMORY_BYTES = 2**30
"""From here on a fit says how much memory it will take: 1 GiB is an eighth of a small laptop's."""

FOLDS = 4
"""Parts of the rows, each held out once, on which several structures are weighed: three quarters are left to learn."""

FOLD_TUNE = 30
FOLD_DRAWS = 5
FOLD_THIN = 6
"""Sweeps of the single chain of a structure without a fold, which begins at the learner's estimate: 30, and then 30 of
which every sixth is scored. Masses of the held-out rows under one draw take as long as six sweeps."""

STRUCTURES = 16
"""Structures of a fit: repeated with another seed, 95 % of answers move by .07 to .09 of their intervals, and rows' log
masses are known to .2 nats. On large tables that takes the processor time of four chains of 300 sweeps
(docs/decisions/ensembles.md)."""

STRUCTURE_TUNE = 30
STRUCTURE_DRAWS = 25
STRUCTURE_CHAINS = 1
"""Sweeps that are discarded and kept, and chains, of each of several structures: a draw at sweep 40 predicts as well as
one at sweep 280."""

HALVED_ROWS = 2_500
"""Rows of a table from which structures are learned from half of them: on abalone held-out mass is then higher by .05
nats with 2,923 rows, lower by .24 and .65 with 1,400 and 700 of them, than with structures learned from all rows."""

STRUCTURE_ROWS = 0.5
"""Share of the rows that a further structure is learned from: half of them without replacement differ as much as a
bootstrap sample (Friedman and Hall, 2007, On bagging and nonlinear estimation)."""

MIN_STRUCTURE_WEIGHT = 0.01
"""Stacking weight below which a structure is left out: it would change no answer by more than its own hundredth."""

STACKING_TOLERANCE = 1e-6
"""Nats a row that the best weights may gain over those that were found; structures differ by 1e-3 and more."""

STACKING_STEPS = 20_000
"""Steps at most; two structures need tens, many that are alike thousands of a tenth of a millisecond."""

WATCH_SECONDS = 0.1
"""Between looks at the chains: ten a second are smooth for the eye and cost nothing."""

# --- answers ---------------------------------------------------------------------------------------------------------

INTERVAL = 0.9
"""Probability of the equal-tailed intervals that are reported."""

CONFIDENCE = 0.95
"""Confidence of the bounds around an expectation; that of figure 4 of Nyga et al. (2023)."""

REFERENCE_ROWS = 200
"""Rows whose log density is followed by the convergence battery, and which a saved fit keeps."""

TYPE_DRAWS = 4
"""Draws, of all chains, whose sub-populations say what type a column is: one of each chain unless there are fewer. Of
the reference rows few change their sub-population from one draw to the next."""

SCORED_ROWS = 65_536
"""Rows whose masses are tabulated together, or that are routed together; bounds memory, and changes no answer."""

MAX_EDITED_EDGES = 1_000_000
"""Edges of the circuit that a condition makes: boxes times the part of the circuit that they constrain. Above it one
draw's weights take 8 MB, and one pass over the circuit tens of milliseconds."""

MAX_EDITED_BYTES = 4 * 2**30
"""Bytes of the weights of all draws of such a circuit: half the memory of a small laptop."""

MAX_RHAT = 1.1
"""Split R-hat above which a quantity counts as not converged in a short exploratory run."""

MAX_SEED_MOVE = 0.25
"""Part of its interval by which another seed may move an answer for a fit to count as stable: three quarters of a
standard deviation of a normal posterior."""

STABLE_SHARE = 0.95
"""Share of the answers that the sentence about stability is about."""

SURE_TYPE, LIKELY_TYPE = 0.85, 0.6
"""Probabilities of a column's most probable type above which it is called sure, and likely."""

TYPE_STRUCTURES, TYPE_TUNE, TYPE_KEPT = 4, 10, 10
"""Structures, sweeps before and kept sweeps of a fit that is asked for types alone, where sweeps are asked for."""

TYPE_ROWS, QUICK_ROWS = 2000, 1000
"""Rows from which a structure is learned for the types of a larger table, and where they are wanted quickly: evidence
of values comes from `REFERENCE_ROWS` of them."""

MAX_OVERTAKEN = 0.05
"""Probability that a fit with another seed has another leading type, from which a column's type is not determined."""

MIN_WARM_UP_T = 3.0
"""Standard errors by which the log likelihood of later kept sweeps lies above or below that of earlier ones from which
the warm-up counts as unfinished: by chance once in a hundred fits of 16 structures."""

MAX_FOLLOWED_LABELS = 10
"""Labels of a column whose shares are followed when stability is judged, the most frequent ones."""

MAX_FOLLOWED_PAIRS = 45
"""Pairs of columns whose joint probabilities are followed when stability is judged: all of ten columns."""

MAX_BOXES = 10_000
"""Boxes that an event may be split into; each is one pass over the circuit for every draw."""

MAX_EVENT_DEPTH = 100
"""Levels of and, or, not inside each other; far more than people write, far less than Python's stack holds."""

QUERY_DISTINCT_SHARE = 0.9
"""Distinct values over rows; up to this share a real column is evaluated once per distinct value where nothing is drawn
by it. A table then costs a lookup and a logarithm a value more than its leaves."""

QUERY_ROWS = 4096
"""Rows given as evidence that are evaluated together; bounds a query's workspace, and changes no answer."""

QUERY_WORK_BYTES = 6 * 2**20
"""Bytes of the values of a block of such rows; with tables by distinct value and buffers a query stays below 8 MiB."""

SAMPLED_ROWS = 16_384
"""Rows that are drawn together; bounds the workspace of `sample` and `impute`."""

MAX_REDRAWS = 1000
"""Times that a row with the label "other", or a number outside its support, is drawn anew before it is conditioned."""

MODE_ROWS = 256
"""Rows whose modes are found together: bounds the memory of what is handed back by a kernel, and changes no answer."""

MODE_WIDTH = 8
"""Best parts that `mode` keeps of every node, at least: the best rows are then sorted by their mass over all paths."""

# --- dependence ------------------------------------------------------------------------------------------------------

DEPENDENCE_TOLERANCE = 3e-4
"""Nats by which two estimates of what a column's values tell may differ; the better one is then off by 1e-4 at most."""

DEPENDENCE_SPLITS = 160
"""Splits of a column's cells at most, each of which makes four quarters more."""

DEPENDENCE_WHOLE = 100.0
"""Range of whole numbers up to which each is a cell by itself."""

MAX_DEPENDENCE_BYTES = 2**28
"""Bytes of the table of slots that rows take together: 5,792 slots, such as 100 columns in 57 components."""

# --- explanations ----------------------------------------------------------------------------------------------------

EXPLAINED_PARTS, EXPLAINED_FACTS = 5, 3
"""Sub-populations that are told apart, as many lines as are read at a glance; columns that describe each in words."""

EXPLAINED_DIFFERENCE = 0.2
"""From which a column sets a sub-population apart: a fifth of its rows lie elsewhere than those of the whole table."""

MAX_PAIRED_ROWS = 10_000
"""Rows of a matrix of pairs: 763 MiB."""

COMPONENTS = 8
"""Components of a column that are described: those of less weight are told together."""

PATTERN_COVERAGE = 0.8
"""Share of a sub-population that lies between the ends of a column in its pattern: as between first and last decile."""

PATTERN_SUPPORT = 0.05
"""Least share of all rows that a pattern holds: that of a leaf of a tree by default (`JPT_MIN_ROWS`)."""

# --- pictures --------------------------------------------------------------------------------------------------------

SHOWN_RANGE = (0.005, 0.995)
"""Quantiles between which numbers are drawn: all but one in a hundred, so that tails do not press the rest together."""

TREE_LEAVES = 30
"""Parts of a tree that are drawn: a page or two; smaller sub-trees are drawn as one part each."""

TREE_COLUMNS = 8
"""Columns that are drawn in each: what fits beside the splits on a wide screen."""

TREE_CELLS = 60
"""Cells of a column of numbers in them: two pixels each."""

TREE_DRAWS = 40
"""Draws that bands in them are told from, as many as commands look at: two of them lie beyond either end of a band."""

PLOT_CELLS = 120
"""Cells of a column of numbers in a plot: about four pixels each."""

PLOT_JOINT_CELLS = 50
"""Cells of either column in a plot of two: their 2,500 pairs take a tenth of a second."""

PLOT_DRAWS = 100
"""Draws that bands in plots are told from; five of them lie beyond either end of a band."""

# --- command line ----------------------------------------------------------------------------------------------------

COMMAND_DRAWS = 24
"""Draws that `bayesjpt dependence` and `bayesjpt impute --mean` look at, for an answer in little more than a second: a
posterior mean is then known to 0.2 of the posterior's own spread."""

OUTLIER_DRAWS = 4
"""Draws that `bayesjpt outliers` averages over, one a chain: of the 20 oddest of 6,497 wines 16 are those of 200 draws
(19 with eight, in half a second more), and scores correlate by .997."""

NEAR = 0.3
"""Scales of a column to either side of its location that are near a value there; farther out it is as many of the
distance. Chosen on the validation tables of docs/results.md."""
