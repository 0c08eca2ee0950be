"""Heaped values: where people round to favourite values, these stand for wider cells than the values between.

Cells tile the line. On a grid without favourites each is a resolution wide; a favourite takes from its neighbours:

    even cells    | 9.3 | 9.4 | 9.5 | 9.6 | 9.7 |
    recorded      | 9.3 |9.4|   9.5   |9.6|  9.7 |      9.5 is recorded far more often than 9.4 and 9.6

How wide follows from the training rows alone. With F the share of cells up to an end, G a smooth distribution function
of the same values, the recorded end of an even end e is G^-1((n F(e) + a G(e)) / (n + a)): the posterior mean of a
Dirichlet process around G, read back on the line. The evidence of n values finds a; it has no end where nothing is
favoured. What a leaf knows of the column is untouched: its mass of a cell is still the difference of its distribution
function at two ends.

References: Heitjan and Rubin (1990), Inference from coarse data via multiple imputation with application to age
heaping, JASA; Ferguson (1973), A Bayesian analysis of some nonparametric problems, Annals of Statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bayesjpt.table.schema import Schema

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


_FINEST = 1e9
"""Grid points from 0 beyond which ends of cells would drown in the rounding of the values."""

_ENDS_AT_ONCE = 2**18
"""Ends of cells in windows that are weighed together: a few times 2 MB."""


def find_heaps(
    distinct: np.ndarray, counts: np.ndarray, resolution: float, atoms: Sequence[float] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Return (ends, shifts) of a column's recorded cells, both empty where no value is favoured.

    Parameters
    ----------
    distinct : float64 (n_distinct,)
        Ascending, the user's units.
    counts : int64 (n_distinct,)
        Cells of each.
    resolution : float
    atoms : sequence of float
        Values that have a probability of their own: their cells stay even.

    Returns
    -------
    ends : float64 (n_end,)
        Ends of even cells, ascending. Between two of them, cells shift linearly; outside not at all.
    shifts : float64 (n_end,)
        How far each moves: ``ends + shifts`` ascends strictly.

    Notes
    -----
    G spreads every value over a window (Epanechnikov's kernel) that reaches as far as a few effectively different
    values do. Cells move within the reach of a window, so a leaf's shape is hardly displaced. Windows end at atoms and
    do not bridge what no window covers: such stretches keep their even cells. Whether there are favourites at all is
    asked with windows of two values: wider ones would take the shape of a coarse column for them.

    Cost: O(n_distinct) windows of a few values each.
    """
    steps, count = _on_grid(distinct, counts, resolution, atoms)
    most = min(HEAP_MAX_VALUES, HEAP_MAX_SHARE * count.sum())
    nothing = np.empty(0), np.empty(0)
    if not HEAP_MIN_VALUES <= steps.size <= most or np.abs(steps[[0, -1]]).max() > _FINEST:
        return nothing
    barriers = np.asarray(atoms, float) / resolution
    n = float(count.sum())
    narrow = _strongest(_runs(steps, count, barriers, HEAP_FEW_NEIGHBOURS))[0]
    if narrow < max(HEAP_MIN_NATS, HEAP_MIN_NATS_PER_CELL * n):
        return nothing
    runs = _runs(steps, count, barriers, HEAP_NEIGHBOURS)
    a = _strongest(runs)[1]
    ends = np.concatenate([run.ends for run in runs])
    shifts = np.concatenate([_shifts(run, share=a / (n + a)) for run in runs])
    return ends * resolution, shifts * resolution


def recorded_cells(schema: Schema, values: np.ndarray, *, even: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return centres and half widths, float64 (n_column, n_row), of the cells that recorded values stand for.

    Those of real columns; integers and labels stand for themselves, with half widths of 0. Values are moved to their
    grid, whose points are multiples of the resolution. With `even` all cells of a column are equally wide.
    """
    centre, half = values.astype(np.float64), np.zeros(values.shape)
    for position, column in enumerate(schema):
        if column.base != "real":
            continue
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            snapped = np.round(values[position] / column.resolution) * column.resolution
        snapped = np.where(np.isfinite(snapped), snapped, values[position])
        half_width = 0.5 * column.resolution
        centre[position], half[position] = snapped, half_width
        if column.cell_ends and not even:
            lower, upper = (
                np.interp(end, column.cell_ends, column.cell_shifts, left=0.0, right=0.0)
                for end in (snapped - half_width, snapped + half_width)
            )
            centre[position] += 0.5 * (lower + upper)
            half[position] += 0.5 * (upper - lower)
    return centre, half


def _on_grid(
    distinct: np.ndarray, counts: np.ndarray, resolution: float, atoms: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return (steps, counts): the grid points of the values but for those of atoms, and the cells at each."""
    with np.errstate(over="ignore"):
        steps, place = np.unique(np.rint(distinct / resolution), return_inverse=True)
        kept = ~np.isin(steps, np.rint(np.asarray(atoms, float) / resolution))
    return steps[kept], np.bincount(place, counts, minlength=steps.size)[kept]


class _Run(NamedTuple):
    """Values that windows connect, in grid steps.

    Attributes
    ----------
    ends : float64 (n_end,)
        Ends of even cells, ascending.
    recorded, smooth : float64 (n_end,)
        Training cells between an end and the one before, and how many the smooth distribution expects there; as many
        in all.
    """

    ends: np.ndarray
    recorded: np.ndarray
    smooth: np.ndarray


def _runs(steps: np.ndarray, count: np.ndarray, barriers: np.ndarray, n_neighbour: float) -> list[_Run]:
    """Return the runs of some values: parted at barriers, and where windows leave a gap."""
    windows = _windows(steps, count, n_neighbour)
    between = np.searchsorted(steps, barriers)
    gaps = np.flatnonzero(steps[:-1] + windows[:-1] < steps[1:] - windows[1:]) + 1
    bounds = np.unique(np.concatenate([[0, steps.size], gaps, between[(between > 0) & (between < steps.size)]]))
    parts = [slice(first, last) for first, last in pairwise(bounds.tolist())]
    return [_run(steps[part], count[part], windows[part]) for part in parts]


def _windows(steps: np.ndarray, count: np.ndarray, n_neighbour: float) -> np.ndarray:
    """Return how far, in steps, one must look around each value for enough effectively different ones.

    Their number is the inverse of the sum of squared shares: a favourite counts for little more than one.
    """
    total, squares = (np.concatenate([[0.0], np.cumsum(power)]) for power in (count, count**2))
    found = np.full(steps.size, np.nan)
    reach = 1.0
    while np.isnan(found).any():
        open_ = np.flatnonzero(np.isnan(found))
        first = np.searchsorted(steps, steps[open_] - reach)
        last = np.searchsorted(steps, steps[open_] + reach, side="right")
        effective = (total[last] - total[first]) ** 2 / (squares[last] - squares[first])
        all_of_them = (first == 0) & (last == steps.size)
        found[open_[(effective >= n_neighbour) | all_of_them]] = reach
        reach *= np.sqrt(2.0)
    return found


def _run(steps: np.ndarray, count: np.ndarray, windows: np.ndarray) -> _Run:
    ends = np.unique(np.concatenate([steps - 0.5, steps + 0.5]))
    lo, hi = ends[0], ends[-1]
    window = np.repeat(np.minimum(windows, hi - lo), 3)
    # what would leave the run comes back
    centre = np.stack([steps, 2.0 * lo - steps, 2.0 * hi - steps], axis=1).ravel()
    inside = (lo < centre + window) & (centre - window < hi)
    below = _below(ends, centre[inside], window[inside], np.repeat(count, 3)[inside])
    n = count.sum()
    smooth = (below - below[0]) / (below[-1] - below[0])
    smooth = (n * smooth + (ends - lo) / (hi - lo)) / (n + 1.0)  # one cell more, spread evenly: no stretch has none
    recorded = np.zeros(ends.size)
    recorded[np.searchsorted(ends, steps + 0.5)] = count
    return _Run(ends, recorded, n * np.diff(smooth, prepend=0.0))


def _below(ends: np.ndarray, centre: np.ndarray, window: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return how much of some windows lies below each end, float64 (n_end,); each has a weight in all."""
    first = np.searchsorted(ends, centre - window)
    last = np.searchsorted(ends, centre + window)
    below = np.cumsum(np.bincount(last, weight, minlength=ends.size + 1)[:-1])  # windows that end before
    n_end = last - first
    total = np.cumsum(n_end)
    begin = 0
    while begin < centre.size:
        # at least one window, however wide
        stop = max(int(np.searchsorted(total, total[begin] - n_end[begin] + _ENDS_AT_ONCE, side="right")), begin + 1)
        part = np.repeat(np.arange(begin, stop), n_end[begin:stop])
        at = np.arange(part.size) - (total - n_end - first)[part] + (total[begin] - n_end[begin])
        share = _epanechnikov((ends[at] - centre[part]) / window[part])
        below += np.bincount(at, weight[part] * share, minlength=ends.size)
        begin = stop
    return below


def _epanechnikov(t: np.ndarray) -> np.ndarray:
    """Return the distribution function of a parabola on [-1, 1]."""
    return 0.5 + 0.75 * (t - t * t * t / 3.0)


def _strongest(runs: list[_Run]) -> tuple[float, float]:
    """Return (log evidence, a) of Dirichlet-multinomial counts around the smooth shares, with the best concentration a.

    The evidence is against multinomial counts with these shares.
    """
    from scipy.special import gammaln  # reading a table without favourites to look for needs no SciPy

    recorded, smooth = (np.concatenate([getattr(run, name) for run in runs]) for name in ("recorded", "smooth"))
    seen = recorded > 0.0
    count, share = recorded[seen], smooth[seen] / smooth.sum()
    n = float(count.sum())

    tried = np.geomspace(HEAP_LEAST_CONCENTRATION, HEAP_EVEN * n, HEAP_N_CONCENTRATION)
    prior = tried[:, None] * share
    found = gammaln(tried) - gammaln(tried + n) + (gammaln(count + prior) - gammaln(prior)).sum(axis=1)
    best = int(np.argmax(found))
    return float(found[best] - count @ np.log(share)), float(tried[best])


def _shifts(run: _Run, share: float) -> np.ndarray:
    """Return how far the ends of a run move, `share` being the weight of the smooth distribution."""
    smooth = np.cumsum(run.smooth)
    wanted = (1.0 - share) * np.cumsum(run.recorded) + share * smooth
    moved = np.interp(wanted, smooth, run.ends) - run.ends
    moved[[0, -1]] = 0.0
    return (1.0 - HEAP_LEAST_SLOPE) * moved
