"""What columns are like, as probabilities of cells that many distributions are compared on: for pictures.

Cells are exact under every draw however narrow a peak is, which densities at chosen points are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bayesjpt.defaults import INTERVAL
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import pooled
from bayesjpt.queries.boxes import Box
from bayesjpt.queries.column_summary import value_text
from bayesjpt.queries.differences import rounded
from bayesjpt.queries.distribution import mean_quantiles
from bayesjpt.queries.given import box_log_probability
from bayesjpt.queries.some_draws import some_draws
from bayesjpt.queries.ticks import ticks_of
from bayesjpt.table.schema import Column

SHOWN_RANGE = (0.005, 0.995)
"""Quantiles between which numbers are drawn: all but one in a hundred, so that tails do not press the rest together."""

_N_DRAW = 50
"""Draws that the ends of a picture are found from: a picture is as good with ends a little off."""

_ALL_DIGITS = 15
"""Digits of a rounded number, all of which are shown."""

_ENDS = (0.5 - 0.5 * INTERVAL, 0.5 + 0.5 * INTERVAL)


@dataclass(frozen=True, eq=False)
class Axis:
    """The cells of a column.

    Parameters
    ----------
    name : str
    position : int
        In the schema.
    labels : tuple of str
        Of a column of labels, "other" last: a cell each. Empty for numbers.
    edges : float64 (n_cell + 1,)
        Ends of the cells of numbers, which hold the lower one; on whole numbers, half way between two.
    whole : bool
        Whether numbers are counted.
    atoms : float64 (n_atom,)
        Values with a probability of their own, on real columns.
    ticks : tuple of (float, str)
        A few places, and how they are written.
    """

    name: str
    position: int
    labels: tuple[str, ...]
    edges: np.ndarray
    whole: bool
    atoms: np.ndarray
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, eq=False)
class Masses:
    """Probabilities: posterior means, and the ends of their credible intervals, float64 (n,) each."""

    mean: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


def summarised(draws: np.ndarray) -> Masses:
    """Return mean and interval over draws, float64 (n_draw, n)."""
    return Masses(draws.mean(axis=0), *np.quantile(draws, _ENDS, axis=0))


def axes_of(post: Posterior, positions: Sequence[int], n_cell: int) -> list[Axis]:
    """Return the axes of some columns; those of numbers show most of their range in at most so many cells."""
    numbers = [position for position in positions if post.schema.columns[position].base != "category"]
    ends: dict[int, tuple[float, float]] = {}
    if numbers:
        few = some_draws(post, _N_DRAW)[1]
        lo, hi = mean_quantiles(few, list(SHOWN_RANGE), [post.schema.names[position] for position in numbers])
        ends = {position: (float(lo[j]), float(hi[j])) for j, position in enumerate(numbers)}
    return [axis_of(post.schema.columns[position], position, ends.get(position), n_cell) for position in positions]


def axis_of(column: Column, position: int, ends: tuple[float, float] | None, n_cell: int) -> Axis:
    """Return the axis of a column; that of numbers shows an interval in at most so many cells."""
    if ends is None:
        return Axis(column.name, position, column.code_names, np.empty(0), False, np.empty(0), ())
    lo, hi = ends
    whole = column.base == "integer"
    if whole:
        # half way between whole numbers is between floats only where these are dense, and so are sums of steps
        unit = max(1, 2 * int(_gap(lo, hi)))
        first, last = math.floor(lo) // unit * unit, math.ceil(hi)
        step = -((first - last - 1) // (unit * n_cell)) * unit
        edges = float(first) + float(step) * np.arange(1 - (first - last - 1) // step) - 0.5
    else:
        room = 0.02 * (hi - lo) or 10.0 * column.resolution
        room = max(room, n_cell * _gap(lo, hi))  # each cell holds two floats at least
        edges = np.linspace(lo - room, hi + room, n_cell + 1)
    atoms = np.array([atom for atom in column.atoms if edges[0] <= atom < edges[-1]])
    return Axis(column.name, position, (), edges, whole, atoms, ticks_of(column, edges[0], edges[-1]))


def _gap(lo: float, hi: float) -> float:
    """Return how far the larger of two numbers is from the next float, or the smallest float of full precision."""
    return float(max(np.spacing(max(abs(lo), abs(hi))), np.finfo(float).tiny))


def cell_masses(post: Posterior, axes: Sequence[Axis]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return, for each axis, the probabilities of its cells without their atoms, and of its atoms.

    They are float64 (n_draw, n_cell) and (n_draw, n_atom), draws of all chains one after the other.
    """
    ends = [cell_ends(axis) for axis in axes]
    boxes = [Box({axis.position: cell[None]}) for axis, cells in zip(axes, ends, strict=True) for cell in cells]
    found = _probabilities(post, boxes)
    sizes = [len(cells) for cells in ends]
    out = []
    for axis, part in zip(axes, np.split(found, np.cumsum(sizes)[:-1], axis=1), strict=True):
        cells, atoms = np.split(part, [part.shape[1] - axis.atoms.size], axis=1)
        cells = cells.copy()
        inside = np.searchsorted(axis.edges, axis.atoms, side="right") - 1
        for atom, cell in enumerate(inside.tolist()):
            cells[:, cell] -= atoms[:, atom]
        out.append((np.maximum(cells, 0.0), atoms))
    return out


def joint_masses(post: Posterior, first: Axis, second: Axis) -> np.ndarray:
    """Return the probability of each pair of cells of numbers, atoms within, float64 (n_draw, n_first, n_second)."""
    one, other = (cell_ends(axis)[: axis.edges.size - 1] for axis in (first, second))
    boxes = [Box({first.position: a[None], second.position: b[None]}) for a in one for b in other]
    return _probabilities(post, boxes).reshape(-1, len(one), len(other))


@pooled
def _probabilities(post: Posterior, boxes: Sequence[Box]) -> np.ndarray:
    """Return float64 (n_draw, n_box)."""
    return np.exp(box_log_probability(post, post.plan(), boxes))


def cell_ends(axis: Axis) -> np.ndarray:
    """Return cells and then atoms as closed intervals, float64 (n_cell + n_atom, 2)."""
    if axis.labels:
        return np.repeat(np.arange(float(len(axis.labels)))[:, None], 2, axis=1)
    lo, hi = axis.edges[:-1], axis.edges[1:]
    below = np.nextafter(hi, -np.inf)
    # large whole numbers have no halves between them
    cells = np.column_stack([np.ceil(lo), np.minimum(np.ceil(hi) - 1.0, below)] if axis.whole else [lo, below])
    return np.concatenate([cells, np.repeat(axis.atoms[:, None], 2, axis=1)])


def summaries(post: Posterior, axes: Sequence[Axis], masses: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[str]:
    """Return each column in words: tenth and ninth decile, or the most probable label with its probability."""
    numbers = [axis for axis in axes if not axis.labels]
    deciles: dict[str, np.ndarray] = {}
    if numbers:
        found = mean_quantiles(post, [0.1, 0.9], [axis.name for axis in numbers])
        deciles = {axis.name: found[:, j] for j, axis in enumerate(numbers)}
    out = []
    for axis, (cells, _) in zip(axes, masses, strict=True):
        column = post.schema.columns[axis.position]
        if axis.labels:
            mean = cells.mean(axis=0)
            out.append(f"{axis.labels[int(mean.argmax())]} {mean.max():.0%}")
        else:
            least, largest = deciles[axis.name]
            # as many digits as this part needs, be the column wide, but no more than the table has
            lo, hi, _ = rounded(column, [least, largest, least + 20.0 * column.resolution])
            ends = [value_text(column, end, _ALL_DIGITS) for end in (lo, hi)]
            out.append(" to ".join(ends) if lo != hi else ends[0])
    return out
