"""The grid on which a column was recorded, and the location and scale used inside.

Works on ascending distinct values and their counts, so a million ties cost as much as one. Values are scaled by a
power of two first: 1e-300 and 1e300 are as good as 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from bayesjpt import defaults
from bayesjpt.table.cells import MICROSECONDS_PER_DAY

GRID_SHARE = 0.99
"""Share of the values that a recording grid must hold; the rest may be typing errors or another instrument."""

GRID_TOLERANCE = 1e-12
"""Relative distance from a grid point that counts as on it: a few thousand rounding errors of float64."""

GRID_GAIN = 10.0
"""How much coarser the grid must become for one repeated value to be spared: 1e-6 among hundredths, not .5 in ones."""

GRID_MIN_OTHERS = 5
"""Distinct values that must lie on such a grid."""

STEP_ODDS = 100.0
"""To one, against all different values lying by chance on a grid coarser than the unit in which they are told."""

MIN_GRID_PER_SPREAD = 1e-7
"""Interquartile ranges; a finer grid is the print precision of a computed number, not of a measurement."""

FALLBACK_PER_SPREAD = 1e-3
"""Interquartile ranges; the resolution where no grid is visible."""


_SHORTEST_MONTH = 28
"""Days."""

_DAY_PARTS = tuple(1.0 / n for n in (1, 24, 1440, 86_400, 86_400_000, MICROSECONDS_PER_DAY))


def summarise(distinct: np.ndarray, counts: np.ndarray) -> tuple[float, float, float]:
    """Return (median, spread, mean) in the units of the values, without overflow.

    The spread is the interquartile range, or the standard deviation, or the range, whichever is the first above 0; 0
    for a constant.
    """
    exponent = int(np.frexp(np.abs(distinct).max())[1])
    values = np.repeat(np.ldexp(distinct, -exponent), counts)
    lower, median, upper = np.quantile(values, [0.25, 0.5, 0.75])
    spread = next((s for s in (upper - lower, values.std(), values[-1] - values[0]) if s > 0.0), 0.0)
    mean = values.mean()
    return float(np.ldexp(median, exponent)), float(np.ldexp(spread, exponent)), float(np.ldexp(mean, exponent))


def mean_and_deviation(distinct: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Return (mean, standard deviation) in the units of the values, without overflow."""
    exponent = int(np.frexp(np.abs(distinct).max())[1])
    values = np.ldexp(distinct, -exponent)
    mean = float(np.average(values, weights=counts))
    deviation = float(np.sqrt(np.average((values - mean) ** 2, weights=counts)))
    return float(np.ldexp(mean, exponent)), float(np.ldexp(deviation, exponent))


def grid(distinct: np.ndarray, counts: np.ndarray) -> float | None:
    """Return the largest of {1, 2, 5} x 10^k whose multiples hold 99 % of the values other than 0; None without one.

    Parameters
    ----------
    distinct : float64 (n_distinct,)
        Ascending.
    counts : int64 (n_distinct,)
        Cells of each.

    Notes
    -----
    Zero lies on every grid and has no say. One value that repeats may stand off the grid if the grid is then ten times
    coarser (some files store a zero as 1e-6). A grid finer than 1e-7 interquartile ranges, or than a billionth of the
    typical value, is not looked for: such numbers were computed. Costs O(n_distinct) for each of at most 30 widths.
    """
    kept = distinct != 0.0
    values, weights = np.abs(distinct[kept]), counts[kept]
    if not values.size:
        return None
    slack = (1.0 - GRID_SHARE) * weights.sum()
    repeated = max(3.0, 2.0 * float(np.median(weights)))
    spared = None
    span = float(distinct[-1] - distinct[0])
    for width in _widths(values, weights, summarise(distinct, counts)[1], slack):
        if 0.0 < span < width * (1.0 - GRID_TOLERANCE):
            continue  # different numbers that are all as good as one point of the grid
        off = weights[~_on_grid(values, width)]
        if off.sum() <= slack:
            return width if spared is None or spared < GRID_GAIN * width else spared
        heaviest = off.max()
        enough = values.size - off.size >= GRID_MIN_OTHERS
        if spared is None and enough and heaviest >= repeated and off.sum() - heaviest <= slack:
            spared = width
    return spared


def _widths(values: np.ndarray, weights: np.ndarray, spread: float, slack: float) -> Iterator[float]:
    """Yield the widths {1, 2, 5} x 10^k worth looking at, from wide to narrow."""
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    below = np.cumsum(weights)
    typical = float(values[np.searchsorted(below, 0.5 * below[-1])])
    narrowest = max(MIN_GRID_PER_SPREAD * spread, typical / defaults.MAX_SIGNIFICANT)
    # a value smaller than the width is off the grid: at most `slack` of them are, but for one that repeats
    off = below - np.maximum.accumulate(weights)
    widest = float(values[min(np.searchsorted(off, slack, side="right"), values.size - 1)])
    exponent = math.floor(math.log10(widest)) + 1
    while float(f"5e{exponent}") >= narrowest > 0.0:
        for digit in (5, 2, 1):
            width = float(f"{digit}e{exponent}")
            fits = narrowest * (1.0 - GRID_TOLERANCE) <= width <= widest * (1.0 + GRID_TOLERANCE)
            if fits and width < math.inf:
                yield width
        exponent -= 1


def _on_grid(values: np.ndarray, width: float) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):  # infinitely many steps are not a grid
        steps = values / width
        return np.abs(steps - np.rint(steps)) <= np.minimum(GRID_TOLERANCE * steps, 1e-2)


def day_grid(distinct: np.ndarray) -> float:
    """Return the largest of a day, an hour, a minute, a second, a millisecond, a microsecond that divides all times."""
    ticks = np.rint(distinct * MICROSECONDS_PER_DAY)
    for width in _DAY_PARTS[:-1]:
        if not (ticks % round(width * MICROSECONDS_PER_DAY)).any():
            return width
    return _DAY_PARTS[-1]


def moment_grid(distinct: np.ndarray) -> float:
    """Return the largest width in days of which all times are multiples: `day_grid`, or several of its units.

    These divide the next unit (ten minutes an hour), and the different times are too many to be on them by chance.

    Examples
    --------
    >>> [round(86_400 * moment_grid(np.arange(9) * minutes / 1440)) for minutes in (10, 7)]
    [600, 60]
    """
    width = day_grid(distinct)
    ticks, unit = np.rint(distinct * MICROSECONDS_PER_DAY), round(width * MICROSECONDS_PER_DAY)
    longer = [round(part * MICROSECONDS_PER_DAY) for part in _DAY_PARTS if part > width]
    for n_unit in range(longer[-1] // unit - 1 if longer else 1, 1, -1):
        divides = longer[-1] % (n_unit * unit) == 0
        if divides and _is_no_chance(n_unit, ticks) and not (ticks % (n_unit * unit)).any():
            return n_unit * unit / MICROSECONDS_PER_DAY
    return width


def whole_step(distinct: np.ndarray) -> float:
    """Return the largest number that divides all of some whole numbers, 1 where that may be chance.

    Examples
    --------
    >>> whole_step(np.array([0.0, 5.0, 15.0, 20.0, 40.0])), whole_step(np.array([0.0, 4.0, 6.0, 10.0]))
    (5.0, 1.0)
    """
    step = int(np.gcd.reduce(np.abs(distinct).astype(np.int64)))
    return float(step) if step > 1 and _is_no_chance(step, distinct) else 1.0


def steps_apart(distinct: np.ndarray, width: float) -> tuple[float, float]:
    """Return (step, offset) of numbers on a grid of some width that lie several widths apart; (0, 0) for others.

    The offset is the least point above 0 of the coarser grid: .99 of prices, a Monday.

    Examples
    --------
    >>> steps_apart(np.array([1.99, 2.99, 4.99, 8.99, 9.99]), 0.01), steps_apart(np.array([0.25, 0.5, 1.25]), 0.01)
    ((1.0, 0.99), (0.0, 0.0))
    """
    if not 0.0 < width < math.inf or np.abs(distinct).max() > defaults.LARGEST_INTEGER * width:
        return 0.0, 0.0
    numbers = np.rint(distinct / width)
    if not np.allclose(numbers * width, distinct, rtol=GRID_TOLERANCE, atol=1e-6 * width):
        return 0.0, 0.0
    apart = (numbers - numbers[0]).astype(np.int64)
    n_unit = int(np.gcd.reduce(apart))
    if n_unit < 2 or not _is_no_chance(n_unit, apart):
        return 0.0, 0.0
    return n_unit * width, (int(numbers[0]) % n_unit or n_unit) * width


def months_apart(distinct: np.ndarray, width: float) -> tuple[float, float]:
    """Return (months, days) of dates that are all the same day of the month; (0, 0) for others.

    Months are how far they lie apart, counted from January, and days those behind the first; -1 is the last day of the
    month before.

    Examples
    --------
    >>> ends = np.array(["2020-01-31", "2020-02-29", "2021-02-28"], "datetime64[D]").astype(float)
    >>> months_apart(ends, 1.0), months_apart(ends + 1.0, 1.0), months_apart(ends + 15.0, 1.0)
    ((1.0, -1.0), (1.0, 0.0), (1.0, 14.0))
    """
    if width != 1.0 or not _is_no_chance(30, np.arange(1, distinct.size + 1)):
        return 0.0, 0.0
    for shift in (1, 0):  # the first and the last day of months are found alike
        days = (distinct.astype(np.int64) + shift).astype("datetime64[D]")
        months = days.astype("datetime64[M]")
        behind = (days - months.astype("datetime64[D]")).astype(np.int64)
        if (behind == behind[0]).all() and (behind[0] == 0 if shift else behind[0] < _SHORTEST_MONTH):
            numbers = months.astype(np.int64)
            apart = math.gcd(int(np.gcd.reduce(np.abs(numbers))), 12)
            return float(apart) if _is_no_chance(apart, numbers) else 1.0, float(behind[0] - shift)
    return 0.0, 0.0


def months_text(months: float, day: float) -> str:
    """Return how far dates lie apart, and which day they are, in words.

    Examples
    --------
    >>> months_text(1.0, -1.0), months_text(3.0, 0.0), months_text(12.0, 14.0)
    ('1 month, on the last day', '3 months, on the first day', '12 months, on day 15')
    """
    which = {-1.0: "the last day", 0.0: "the first day"}.get(day, f"day {day + 1.0:.0f}")
    return f"{months:.0f} month{'s' if months > 1.0 else ''}, on {which}"


def _is_no_chance(n_unit: int, distinct: np.ndarray) -> bool:
    """Return whether different values would hardly all be multiples of so many units were they not recorded so.

    The first of them tells which multiple to look at; each of the others is one with probability 1 / n_unit.
    """
    return int(np.count_nonzero(distinct) - 1) * math.log(n_unit) >= math.log(STEP_ODDS)


def moment_text(width: float) -> str:
    """Return to what times were recorded, in words.

    Examples
    --------
    >>> [moment_text(1.0 / n) for n in (1, 24, 144, 86_400, 864_000)], moment_text(1.5)
    (['the day', 'the hour', '10 minutes', 'the second', '100 milliseconds'], '36 hours')
    """
    names = ("day", "hour", "minute", "second", "millisecond", "microsecond")
    fitting = (
        (part, name)
        for part, name in zip(_DAY_PARTS, names, strict=True)
        if width / part > 0.5 and abs(width / part - round(width / part)) < 1e-6 * width / part
    )
    part, name = next(fitting, (_DAY_PARTS[-1], names[-1]))
    n_unit = max(round(width / part), 1)
    return f"the {name}" if n_unit == 1 else f"{n_unit} {name}s"


def fallback(distinct: np.ndarray, spread: float) -> float:
    """Return the resolution where no grid is visible: a thousandth of the spread, or of a constant value, or 1."""
    size = spread if spread > 0.0 else float(np.abs(distinct).max())
    return max(size * FALLBACK_PER_SPREAD, 5e-324) if size > 0.0 else 1.0
