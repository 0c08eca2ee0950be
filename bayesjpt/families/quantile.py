"""Quantile: uniform segments between knots that a leaf learned from its values (Nyga et al., 2023, section 3.1).

theta = probability of each segment, its *segment mass*. Prior: Dirichlet(concentration), conjugate given the knots.
z = (x - m) / s on real columns and z = x on whole numbers, whose knots lie halfway between them and whose segments
spread their mass equally over the whole numbers inside.

      density |      .----.                constants = (step, knot 0, knot 1, ..., knot n)
              |  .---|    |------.
              |__|___|____|______|__ z     step = distance of possible values: 0 on the line, 1 on whole numbers
                 0   1    2      3

Below the first knot and above the last the density is zero: a family of another kind has to stand beside it, or the
table has to hold no new rows. Where a condition ends the leaf's interval, the outermost knot lies at that end: no gap
is left between two leaves that a split parted. Knots are constants of the leaf (`leaf_constants`), not of the column,
inside the leaf's interval; so the posterior on that interval is the conjugate one.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from bayesjpt import defaults
from bayesjpt.families import finite_support, simplex
from bayesjpt.families.features import offset_and_scale
from bayesjpt.families.knots import fill_corners, learn_knots
from bayesjpt.families.record import ColumnFacts, Family, Scaling
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.ordering import n_up_to

QUANTILE_NOISE = 1.0 / 6.0
"""Squared values per value: what the error of n uniform values is on average, times n (Cramer and von Mises). A smaller
one is no reason to split; without this bound samples of 100 lose 0.02 nats a new value."""

QUANTILE_MIN_VALUES = 5
"""Values that a segment holds at least: of 5, 10 and 20 the best on new values in leaves of 30 to 1,000."""

QUANTILE_MAX_SEGMENTS = 64
"""Segments of a leaf at most; samples of a million values from such distributions need 20 to 30."""


_STEP = 0
_FIRST = 1
_N_SEGMENT, _KNOTS = 0, 1
"""Layout of the coefficients: number of segments, knots, log densities, step."""
_ULPS = 4.0
"""Least half of a cell, in distances of neighbouring floats."""


def default_prior(_column: ColumnFacts, start: np.ndarray) -> np.ndarray:
    """Weakly informative: concentration 2 in all, shared out by the leaf's training shares."""
    return 2.0 * start


def abda_prior(_column: ColumnFacts, start: np.ndarray) -> np.ndarray:
    """The paper's prior of a categorical: concentration 1 each."""
    return np.ones(start.size)


def leaf_constants(
    column: ColumnFacts, values: np.ndarray, lo: float, hi: float, *, epsilon: float = defaults.QUANTILE_EPSILON
) -> np.ndarray:
    """Return step and knots of a leaf, by CDF-LEARN.

    Parameters
    ----------
    column : ColumnFacts
    values : float64 (n,)
        Observed training values of the leaf in the user's units, without atoms, inside lo ... hi. Where there is none,
        one segment covers what the interval leaves of the column's range.
    lo, hi : float
        Ends of the leaf's interval in the user's units; all knots lie inside. Finite ends are conditions, and knots.
    epsilon : float
        Mean squared error, in squared shares of the leaf's values, above which CDF-LEARN splits a segment.
    """
    whole = column.base == "integer"
    offset, scale = offset_and_scale(Scaling.REAL_LOCATION_SCALE, column)
    if whole:
        lo, hi = np.ceil(lo), np.floor(hi)
    elif lo == hi:
        lo, hi = -np.inf, np.inf  # a known value, which asks for no distribution
    x = np.sort(values) if values.size else np.clip([column.minimum, column.maximum], lo, hi)
    reach = 0.5 if whole else 0.0
    ends = (lo - reach - offset) / scale, (hi + reach - offset) / scale
    lo, hi = max(lo, column.support[0]) - reach, min(hi, column.support[1]) + reach
    z = (x - offset) / scale
    least = _ULPS * float(np.spacing(np.abs(z).max()))
    half = np.floor(least) + 0.5 if whole else max(0.5 * column.resolution / scale, least)
    edge, below = np.empty(2 * z.size + 1), np.empty(2 * z.size + 1)
    n_corner = fill_corners(z, half, (lo - offset) / scale, (hi - offset) / scale, edge, below)
    at = np.empty(QUANTILE_MAX_SEGMENTS + 1, np.int64)
    n_segment = learn_knots(
        edge[:n_corner], below[:n_corner],
        (epsilon, QUANTILE_NOISE), float(QUANTILE_MIN_VALUES), at,
    )  # fmt: skip
    return np.concatenate([[float(whole)], _reaching(edge[at[: n_segment + 1]], *ends)])


def _reaching(knots: np.ndarray, lo: float, hi: float) -> np.ndarray:
    """Return knots that reach the finite ends of an interval.

    A gap no wider than the segment beside it joins it, whose density it halves at most; a wider one, in which values
    are rare, is a segment of its own.
    """
    first, last = int(knots[0] - lo <= knots[1] - knots[0]), int(hi - knots[-1] <= knots[-1] - knots[-2])
    left = [lo] if np.isfinite(lo) and lo < knots[0] else []
    right = [hi] if np.isfinite(hi) and hi > knots[-1] else []
    inner = knots[first if left else 0 : knots.size - (last if right else 0)]
    return np.concatenate([left, inner, right])


def constants_of_column(column: ColumnFacts) -> np.ndarray:
    """Return one segment over the column's range."""
    return leaf_constants(column, np.empty(0), -np.inf, np.inf)


def valid_constants(column: ColumnFacts, constants: np.ndarray) -> bool:
    """Return whether constants are those of some leaf of a column: ascending knots, between whole numbers on these."""
    whole = column.base == "integer"
    knots = constants[_FIRST:]
    if knots.size < 2 or constants[_STEP] != float(whole) or not np.isfinite(knots).all():
        return False
    between = not whole or (np.rint(knots + 0.5) == knots + 0.5).all()
    return bool((np.diff(knots) > 0.0).all() and between)


def entry_labels(column: ColumnFacts, constants: np.ndarray) -> list[str]:
    """Return the range of each segment in the user's units: ``10.35..11.2``, or the whole numbers ``3..5``."""
    offset, scale = offset_and_scale(Scaling.REAL_LOCATION_SCALE, column)
    reach = 0.5 * constants[_STEP]
    ends = constants[_FIRST:] * scale + offset
    return [f"{lo + reach:.15g}..{hi - reach:.15g}" for lo, hi in itertools.pairwise(ends)]


def _n_segment(constants: np.ndarray) -> int:
    return constants.size - _FIRST - 1


@kernel
def coefficients(theta, constants, out):
    n = theta.size
    out[_N_SEGMENT] = n
    for k in range(n + 1):
        out[_KNOTS + k] = constants[_FIRST + k]
    for k in range(n):
        width = constants[_FIRST + k + 1] - constants[_FIRST + k]
        out[_KNOTS + n + 1 + k] = math.log(max(theta[k], simplex.SMALLEST)) - math.log(width)
    out[_KNOTS + 2 * n + 1] = constants[_STEP]


@kernel
def fill_log_density(z, aux, coefficients, out):
    """Segment by segment over all values: on a block of rows that is quicker than a search for each."""
    n = int(coefficients[_N_SEGMENT])
    knots, levels = coefficients[_KNOTS : _KNOTS + n + 1], coefficients[_KNOTS + n + 1 : _KNOTS + 2 * n + 1]
    out[:] = -np.inf
    for k in range(n):
        first, level = knots[k], levels[k]
        for i in range(out.size):
            # later segments overwrite earlier ones: a knot belongs to the segment on its right
            out[i] = level if z[i] >= first else out[i]
    last = knots[n]
    for i in range(out.size):
        out[i] = out[i] if z[i] <= last else -np.inf
    if coefficients[_KNOTS + 2 * n + 1] > 0.0:
        for i in range(out.size):
            out[i] = out[i] if z[i] == np.rint(z[i]) else -np.inf


@kernel
def _segment(z, constants):
    """Return the segment that holds z, -1 where none does."""
    knots = constants[_FIRST:]
    if not knots[0] <= z <= knots[-1]:
        return -1
    # the last knot belongs to the last segment
    return min(n_up_to(knots, z) - 1, knots.size - 2)


@kernel
def accumulate(z, aux, rows, constants, stats):
    for j in range(rows.size):
        at = _segment(z[rows[j]], constants)
        if at >= 0:
            stats[at] += 1.0


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    for i in range(flow.size):
        at = _segment(z[i], constants) if flow[i] != 0.0 else -1
        if at >= 0:
            out[at] += flow[i] / max(theta[at], simplex.SMALLEST)


@kernel
def _cells_between(lo, hi, constants):
    """Return the ends of what carries the mass of lo ... hi: on whole numbers, the cells of those inside."""
    if constants[_STEP] > 0.0:
        return np.ceil(lo) - 0.5, np.floor(hi) + 0.5
    return lo, hi


@kernel
def _overlap(k, lo, hi, constants):
    """Return the ends of what a segment has of lo ... hi, and its share of the segment; 0 where they do not overlap."""
    first, last = constants[_FIRST + k], constants[_FIRST + k + 1]
    a, b = max(lo, first), min(hi, last)
    return a, b, max(b - a, 0.0) / (last - first)


@kernel
def log_mass(lo, hi, theta, constants):
    lo, hi = _cells_between(lo, hi, constants)
    if lo <= constants[_FIRST] and hi >= constants[_FIRST + theta.size]:
        return 0.0
    inside = 0.0
    outside = 0.0
    for k in range(theta.size):
        _, _, share = _overlap(k, lo, hi, constants)
        inside += theta[k] * share
        outside += theta[k] * (_overlap(k, -np.inf, lo, constants)[2] + _overlap(k, hi, np.inf, constants)[2])
    return finite_support.log_share(inside, outside)


@kernel
def cdf(x, theta, constants):
    return math.exp(log_mass(-np.inf, x, theta, constants))


@kernel
def _middle(a, b, constants):
    """Return a value in the middle of a ... b, ends of one segment or of a part of it."""
    if constants[_STEP] > 0.0:
        return np.ceil(0.5 * a + 0.5 * b - 0.5)
    middle = 0.5 * a + 0.5 * b
    return middle if middle < b else a


@kernel
def mode(lo, hi, theta, constants):
    lower, upper = _cells_between(lo, hi, constants)
    best, highest = lo, -1.0
    anywhere, highest_anywhere = lo, -1.0
    for k in range(theta.size):
        first, last = constants[_FIRST + k], constants[_FIRST + k + 1]
        a, b, _ = _overlap(k, lower, upper, constants)
        density = theta[k] / (last - first)
        # a single point belongs to the segment on its right, but at the end of all
        if density > highest and (a < b or (a == b and constants[_STEP] == 0.0 and (a < last or k == theta.size - 1))):
            best, highest = _middle(a, b, constants), density
        if density > highest_anywhere:
            anywhere, highest_anywhere = _middle(first, last, constants), density
    return best if highest >= 0.0 else min(max(anywhere, lo), hi)


@kernel
def moment(k, lo, hi, theta, constants):
    lower, upper = _cells_between(lo, hi, constants)
    total, value = 0.0, 0.0
    for i in range(theta.size):
        a, b, share = _overlap(i, lower, upper, constants)
        mass = theta[i] * share
        total += mass
        value += mass * (0.5 * a + 0.5 * b) if mass > 0.0 else 0.0
    if total == 0.0:
        end = mode(lo, hi, theta, constants)
        return end if k == 1 else 0.0
    mean = min(max(value / total, lo), hi)
    if k == 1:
        return mean
    squares = 0.0
    for i in range(theta.size):
        a, b, share = _overlap(i, lower, upper, constants)
        mass = theta[i] * share
        if mass > 0.0:
            # whole numbers vary less than the cells around them, by the variance of the rounding
            apart, width = 0.5 * a + 0.5 * b - mean, b - a
            squares += mass * (apart * apart + (width * width - constants[_STEP]) / 12.0)
    return squares / total


@kernel
def sample(lo, hi, theta, constants, rng):
    lower, upper = _cells_between(lo, hi, constants)
    total = 0.0
    for k in range(theta.size):
        total += theta[k] * _overlap(k, lower, upper, constants)[2]
    if total == 0.0:
        return mode(lo, hi, theta, constants)
    left = total * rng.random()
    value = lo
    for k in range(theta.size):
        a, b, share = _overlap(k, lower, upper, constants)
        mass = theta[k] * share
        if mass > 0.0:
            # rounding may leave more than the segment has
            along = (b - a) * min(left / mass, 1.0)
            value = min(a + 0.5 + np.floor(along), b - 0.5) if constants[_STEP] > 0.0 else a + along
            left -= mass
            if left < 0.0:
                break
    return min(max(value, lo), hi)


FAMILY = Family.of(
    globals(),
    name="quantile",
    bases=("real", "integer"),
    statistical_type="none",
    scaling=Scaling.REAL_LOCATION_SCALE,
    parameters=(simplex.PROBABILITY,),
    hyper_names=("concentration",),
    priors={"default": default_prior, "abda": abda_prior},
    constants=constants_of_column,
    n_theta=_n_segment,
    n_stats=_n_segment,
    by_name=True,
    conjugate_on_cell=True,
    initial=simplex.initial,
    draw_posterior=simplex.draw_posterior,
    log_marginal=simplex.log_marginal,
    predicts_by_mean=True,
)
