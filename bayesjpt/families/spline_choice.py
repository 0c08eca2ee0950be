"""Which order and breaks a spline leaf has: by the Bayesian information criterion, from its training values.

For each number of bins and each order the likelihood is maximised over the weights by EM (the density is a mixture),
and the choice is the largest

    log likelihood - (number of splines - 1) / 2 log(number of values)          Schwarz (1978)

Breaks come from one of three rules: bins of equal width, of equal frequency, or the fullest bin divided at the mean of
its values. No bin is narrower than a resolution; on whole numbers breaks lie halfway between them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayesjpt.families.features import offset_and_scale
from bayesjpt.families.record import ColumnFacts, Scaling
from bayesjpt.families.spline_basis import MAX_ORDER, bin_of, fill_bernstein, fill_ordinates, fill_rounded
from bayesjpt.families.spline_layout import BREAKS, HIGH, LOW, N_BIN, ORDER, SIGMA, STEP
from bayesjpt.numerics.jit import kernel

SPLINE_MAX_BINS = 10
"""Bins among which a leaf chooses, 1 to so many; with the orders 1 to 6, 60 candidates."""

SPLINE_POINTS = 400
"""Values that take part in that choice; of more, so many order statistics that stand for equally many each."""

SPLINE_EM_STEPS = 30
"""Rounds of EM for each candidate."""

SPLINE_MARGIN = 3.0
"""How far the outermost breaks lie beyond a leaf's n values, in (largest - least) / (n - 1). At 1 they are where an
unbiased guess has the ends of a uniform distribution; rows that join a leaf lie further out. Of 0 to 6 the best on the
same rows."""

SPLINE_LEAST_TAIL = 0.1
"""Scale of the tails at least, in standard deviations of the column; else that of the leaf's values."""


RULES = ("width", "frequency", "mean")

_FEW_FOR_GAP = 3
_ULPS = 4.0
"""Least half of a cell, in distances of neighbouring floats."""
_SMALLEST = 1e-300
_SAME = 1e-9
"""Relative difference of ordinates that another processor's rounding may make."""


class Choice(NamedTuple):
    """Order and breaks of a spline leaf.

    Attributes
    ----------
    order : int
        1 for steps, 2 for straight lines, 4 for cubics.
    breaks : float64 (n_bin + 1,)
        Ascending, in the units of the values.
    log_likelihood, score : float
        Of the values under the best weights, and less the criterion's penalty; nats.
    reason : str
        One sentence: how many values spoke, and what they did not allow.
    """

    order: int
    breaks: np.ndarray
    log_likelihood: float
    score: float
    reason: str

    @property
    def n_bin(self) -> int:
        """Number of bins."""
        return self.breaks.size - 1


_FEWEST_BEYOND_GAP = 1.5
"""Rows: more than one."""
_LARGEST = float(np.finfo(np.float64).max)


class Rule(NamedTuple):
    """How breaks are placed, and what is fixed: 0 leaves number of bins or order to the criterion.

    It then chooses among so many bins and that order at least; lower orders only where values are too few. With
    `isolate` there are further breaks around the values on one side of the widest gap, where that is wide enough.
    """

    bins: str = "width"
    n_bins: int = 0
    order: int = 0
    least_bins: int = 1
    least_order: int = 1
    isolate: bool = False


LEAF_RULE = Rule(least_bins=6, least_order=4, isolate=True)
"""Of leaves unless a learner says otherwise. With a prior that is centred on a smooth distribution weights that a small
leaf cannot tell cost nothing, but its criterion chooses steps and lines, which do: on held-out training rows of iris,
heart and diabetes six cubic bins are better than one or three, and these better than what the criterion chooses."""


def choose(z: np.ndarray, ends: tuple[float, float], least: float, rule: Rule, *, step: float = 0.0) -> Choice:
    """Return order and breaks for some values.

    Parameters
    ----------
    z : float64 (n,)
        At least one.
    ends : tuple of float
        First and last break; all values lie between them.
    least : float
        Width below which no bin goes, positive.
    rule : Rule
    step : float
        1 where values are whole numbers and have masses, 0 otherwise.

    Notes
    -----
    Cost: O(n log n) for sorting; then at most `SPLINE_POINTS` points take part, order statistics that stand
    for equally many values each, in `SPLINE_EM_STEPS` rounds of EM for each of up to 60 candidates.

    Examples
    --------
    >>> z = np.random.default_rng(0).normal(size=400)
    >>> choose(z, (z.min(), z.max()), 1e-3, Rule(n_bins=3)).reason
    'order 6, 3 bins, from 400 values; order by BIC'
    """
    points, weight = _points(np.sort(z))
    n_distinct = points.size
    best: Choice | None = None
    tried: set[tuple[float, ...]] = set()
    around = _around_gap(points, weight, ends, least) if rule.isolate else np.empty(0)
    for n_bin in (rule.n_bins,) if rule.n_bins else range(rule.least_bins, SPLINE_MAX_BINS + 1):
        breaks = _with_breaks(_breaks(points, weight, ends, least, (rule.bins, n_bin), step), around, least, step)
        if tuple(breaks) in tried:
            continue
        tried.add(tuple(breaks))
        # more splines than distinct values are not determined by them
        most = max(min(MAX_ORDER, n_distinct - breaks.size + 2), 1)
        if best is not None and most < rule.least_order:
            break
        for order in (min(rule.order, most),) if rule.order else range(min(rule.least_order, most), most + 1):
            log_likelihood = _fitted(points, weight, breaks, order, step)
            n_spline = breaks.size + order - 2
            score = log_likelihood - 0.5 * (n_spline - 1) * np.log(z.size)
            if best is None or score > best.score:
                reason = _reason(rule, order, breaks.size - 1, z.size, n_distinct)
                best = Choice(order, breaks, log_likelihood, score, reason)
    assert best is not None
    return best


def _reason(rule: Rule, order: int, n_bin: int, n: int, n_distinct: int) -> str:
    """Return why a leaf has this order and number of bins."""
    free = [name for name, fixed in (("bins", rule.n_bins), ("order", rule.order)) if not fixed]
    text = f"order {order}, {n_bin} bin{'s' * (n_bin > 1)}, from {n} value{'s' * (n > 1)}"
    is_asked = (order, n_bin) == (rule.order, rule.n_bins)
    text += f"; {' and '.join(free)} by BIC" if free else "; as asked for" if is_asked else "; fewer than asked for"
    least_order, least_bins = rule.order or rule.least_order, rule.n_bins or rule.least_bins
    if least_order > order:
        needed = least_order + n_bin - 1
        text += f"; order {least_order} needs {needed} distinct values in so many bins, there are {n_distinct}"
    if least_bins > n_bin:
        text += f"; {least_bins} bins would be empty or narrower than a resolution"
    return text


def _points(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct values and how often each occurs, or order statistics that stand for equally many values."""
    values, count = np.unique(z, return_counts=True)
    n = SPLINE_POINTS
    if values.size <= n:
        return values, count.astype(np.float64)
    at = ((np.arange(n) + 0.5) * (z.size / n)).astype(np.intp)
    return z[at], np.full(n, z.size / n)


def _breaks(
    z: np.ndarray, weight: np.ndarray, ends: tuple[float, float], least: float, rule: tuple[str, int], step: float
) -> np.ndarray:
    """Return ascending breaks between two ends, fewer than asked for where bins would be too narrow."""
    bins, n_bin = rule
    inner = _RULES[bins](z, weight, ends, n_bin)
    if step > 0.0:
        inner = np.floor(inner) + 0.5
    kept = [ends[0]]
    for at in inner:
        if at - kept[-1] >= least and ends[1] - at >= least:
            kept.append(float(at))
    return np.array([*kept, ends[1]])


def _around_gap(z: np.ndarray, weight: np.ndarray, ends: tuple[float, float], least: float) -> np.ndarray:
    """Return first break, two on either side of the widest gap, and last break; none where the gap has no room.

    Nor where a single row lies beyond it, as in any heavy tail: its bin would be as narrow as the resolution, and its
    value the most probable of all.

    The fewer values lie between two breaks right around them, where their splines can be as high as they are frequent;
    beyond these breaks there is a tail.
    """
    if z.size < _FEW_FOR_GAP:
        return np.empty(0)
    k = int(np.argmax(np.diff(z))) + 1
    lower, upper = (
        max(0.5 * least, SPLINE_MARGIN * float(np.ptp(part)) / max(part.size - 1, 1)) for part in (z[:k], z[k:])
    )
    fewest = min(weight[:k].sum(), weight[k:].sum())
    if z[k] - z[k - 1] < lower + upper + 2.0 * least or fewest < _FEWEST_BEYOND_GAP:
        return np.empty(0)
    first, last, below, above = *ends, z[k - 1] + lower, z[k] - upper
    if k < z.size - k:
        first = z[0] - lower if z[0] - lower - first >= least else first
        below = max(below, first + least)
    else:
        last = z[-1] + upper if last - z[-1] - upper >= least else last
        above = min(above, last - least)
    return np.array([first, below, above, last])


def _with_breaks(breaks: np.ndarray, around: np.ndarray, least: float, step: float) -> np.ndarray:
    """Return breaks around a gap, and those of a rule that lie between them and are not too near."""
    if not around.size:
        return breaks
    if step > 0.0:
        around = np.floor(around) + 0.5
    inner = breaks[(breaks >= around[0] + least) & (breaks <= around[-1] - least)]
    near = np.abs(inner[:, None] - around[1:-1]).min(axis=1) < least
    return np.sort(np.concatenate([around, inner[~near]]))


def _equal_width(_z: np.ndarray, _weight: np.ndarray, ends: tuple[float, float], n_bin: int) -> np.ndarray:
    return np.linspace(*ends, n_bin + 1)[1:-1]


def _equal_frequency(z: np.ndarray, weight: np.ndarray, _ends: tuple[float, float], n_bin: int) -> np.ndarray:
    """Return breaks halfway between the values around each quantile."""
    below = np.cumsum(weight)
    at = np.searchsorted(below, below[-1] * np.arange(1, n_bin) / n_bin)
    return 0.5 * (z[at] + z[np.minimum(at + 1, z.size - 1)])


def _mean_split(z: np.ndarray, weight: np.ndarray, ends: tuple[float, float], n_bin: int) -> np.ndarray:
    """Return breaks that divide the fullest bin at the mean of its values, again and again."""
    breaks = [-np.inf, np.inf]
    for _ in range(n_bin - 1):
        inside = [(z >= a) & (z < c) for a, c in itertools.pairwise(breaks)]
        total = [
            weight[part].sum() if np.ptp(z[part]) > 0.0 else 0.0 for part in (p if p.any() else ~p for p in inside)
        ]
        fullest = int(np.argmax(total))
        part = inside[fullest]
        if total[fullest] == 0.0 or not part.any():
            break
        breaks = sorted({*breaks, float(np.average(z[part], weights=weight[part]))})
    return np.clip(breaks[1:-1], *ends)


_RULES: dict[str, Callable[..., np.ndarray]] = {
    "width": _equal_width,
    "frequency": _equal_frequency,
    "mean": _mean_split,
}


def fitted_weights(
    z: np.ndarray, weight: np.ndarray, breaks: np.ndarray, order: int, step: float
) -> tuple[np.ndarray, float]:
    """Return the weights that EM finds for some values, float64 (n_spline,), and their log likelihood in nats."""
    ordinates = ordinates_of_values(breaks, order, step)
    theta = np.full(breaks.size + order - 2, 1.0 / (breaks.size + order - 2))
    return theta, float(_maximise(z, weight, (breaks, ordinates, 0.5 * step), theta, SPLINE_EM_STEPS))


def _fitted(z: np.ndarray, weight: np.ndarray, breaks: np.ndarray, order: int, step: float) -> float:
    return fitted_weights(z, weight, breaks, order, step)[1]


def ordinates_of_values(breaks: np.ndarray, order: int, step: float) -> np.ndarray:
    """Return the ordinates by which values are scored: of the density, or of the masses of whole numbers."""
    density = np.empty((breaks.size - 1, order, order))
    fill_ordinates(breaks, density)
    if step == 0.0:
        return density
    masses = np.empty_like(density)
    fill_rounded(breaks, density, masses)
    return masses


@kernel
def _maximise(z, weight, basis, theta, n_step):
    """Replace theta by some rounds of EM from where it is; return the log likelihood before the last round."""
    breaks, ordinates, half = basis
    order = ordinates.shape[1]
    place = np.empty(z.size, np.int64)
    density = np.empty((z.size, order))
    bernstein = np.empty(order)
    for i in range(z.size):
        k = bin_of(z[i], breaks)
        place[i] = k
        width = breaks[k + 1] - breaks[k] - 2.0 * half
        fill_bernstein((z[i] - breaks[k] - half) / width if width > 0.0 else 0.0, bernstein)
        for r in range(order):
            density[i, r] = 0.0
            for p in range(order):
                density[i, r] += ordinates[k, r, p] * bernstein[p]
    share = np.empty(theta.size)
    value = 0.0
    for step in range(n_step):
        share[:] = 0.0
        value = 0.0
        for i in range(z.size):
            k = place[i]
            total = _SMALLEST
            for r in range(order):
                total += theta[k + r] * density[i, r]
            if step == n_step - 1:
                value += weight[i] * math.log(total)
            factor = weight[i] / total
            for r in range(order):
                share[k + r] += factor * theta[k + r] * density[i, r]
        total = share.sum()
        for j in range(theta.size):
            theta[j] = max(share[j] / total, _SMALLEST)
    return value


def leaf_constants(
    column: ColumnFacts, values: np.ndarray, lo: float, hi: float, *, rule: Rule | None = None
) -> np.ndarray:
    """Return the constants of a leaf.

    Parameters
    ----------
    column : ColumnFacts
    values : float64 (n,)
        Observed training values of the leaf in the user's units, without atoms, inside lo ... hi. Where there is none,
        one bin covers what the interval leaves of the column's range.
    lo, hi : float
        Ends of the leaf's interval in the user's units. Tails end there, and where the column's support does.
    rule : Rule, optional
        `LEAF_RULE` unless given.
    """
    whole = column.base == "integer"
    offset, scale = offset_and_scale(Scaling.REAL_LOCATION_SCALE, column)
    reach = 0.5 if whole else 0.0
    if whole:
        lo, hi = np.ceil(lo), np.floor(hi)
    if lo - reach == hi + reach:  # above 2^52 there are no halves
        lo, hi = -np.inf, np.inf  # a known value, which asks for no distribution
    lo, hi = max(lo, column.support[0]), min(hi, column.support[1])
    x = values if values.size else np.clip([column.minimum, column.maximum], lo, hi)
    ends = (lo - reach - offset) / scale, (hi + reach - offset) / scale
    z = (x - offset) / scale
    ulps = _ULPS * float(np.spacing(np.abs(z).max()))
    half = np.floor(ulps) + 0.5 if whole else max(0.5 * column.resolution / scale, ulps)
    margin = max(half, SPLINE_MARGIN * float(np.ptp(z)) / max(values.size - 1, 1))
    margin = np.ceil(margin + 0.5) - 0.5 if whole else margin
    first, last = z.min() - margin, z.max() + margin
    if whole:  # of a margin above 2^52 the half is lost
        first, last = np.floor(first) + 0.5, np.ceil(last) - 0.5
    first, last = max(first, ends[0]), min(last, ends[1])
    # a gap narrower than half a cell is no place for a tail
    first = ends[0] if first - ends[0] < half else first
    last = ends[1] if ends[1] - last < half else last
    found = choose(z, (first, last), 2.0 * half, rule or LEAF_RULE, step=float(whole)) if values.size else None
    breaks, order = (found.breaks, found.order) if found else (np.array([first, last]), 1)
    spread = max(z.std(), SPLINE_LEAST_TAIL * column.deviation_without_atoms / scale, 2.0 * half)
    return make_constants(order, breaks, step=float(whole), sigma=float(spread), ends=ends)


def make_constants(
    order: int, breaks: np.ndarray, *, step: float, sigma: float, ends: tuple[float, float]
) -> np.ndarray:
    """Return constants of these breaks, float64 (n_constant,), their ordinates with them; all in the family's units."""
    breaks = np.asarray(breaks, np.float64)
    density = ordinates_of_values(breaks, order, 0.0)
    masses = [ordinates_of_values(breaks, order, step).ravel()] if step else []
    head = [float(order), breaks.size - 1.0, step, sigma, *ends]
    return np.concatenate([head, breaks, density.ravel(), *masses])


def constants_of_column(column: ColumnFacts) -> np.ndarray:
    """Return one bin over the column's range, and tails."""
    return leaf_constants(column, np.empty(0), -np.inf, np.inf)


def breaks_in_units_of(column: ColumnFacts, constants: np.ndarray) -> np.ndarray:
    """Return the breaks of a leaf in the user's units, float64 (n_bin + 1,)."""
    offset, scale = offset_and_scale(Scaling.REAL_LOCATION_SCALE, column)
    # a column may reach to the last number there is, and breaks lie beyond its values
    with np.errstate(over="ignore"):
        breaks = constants[BREAKS : BREAKS + int(constants[N_BIN]) + 1] * scale + offset
    return np.clip(breaks, -_LARGEST, _LARGEST)


def valid_constants(column: ColumnFacts, constants: np.ndarray) -> bool:
    """Return whether constants are those of some leaf of a column."""
    if constants.size < BREAKS + 2 or np.isnan(constants).any():
        return False
    order, n_bin, step, sigma = constants[[ORDER, N_BIN, STEP, SIGMA]]
    whole = float(column.base == "integer")
    if order not in range(1, MAX_ORDER + 1) or step != whole or not (n_bin >= 1.0 and n_bin == np.rint(n_bin)):
        return False
    n_ordinate = n_bin * order * order * (1.0 + step)
    if constants.size != BREAKS + n_bin + 1 + n_ordinate or not 0.0 < sigma < np.inf:
        return False
    breaks = constants[BREAKS : BREAKS + int(n_bin) + 1]
    lo, hi = constants[LOW], constants[HIGH]
    if not (np.isfinite(breaks).all() and (np.diff(breaks) > 0.0).all() and lo <= breaks[0] and hi >= breaks[-1]):
        return False
    if whole and not (np.rint(breaks + 0.5) == breaks + 0.5).all():
        return False
    expected = make_constants(int(order), breaks, step=step, sigma=sigma, ends=(lo, hi))
    return bool(np.allclose(constants, expected, rtol=_SAME, atol=0.0))
