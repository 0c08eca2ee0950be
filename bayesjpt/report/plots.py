"""Plots of what a fit says of columns, with matplotlib; colours are those of the style in use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.defaults import INTERVAL
from bayesjpt.errors import QueryError
from bayesjpt.posterior.answer import query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.condition import given_posterior
from bayesjpt.queries.evidence import as_rows
from bayesjpt.queries.marginals import Axis, Masses, axes_of, cell_masses, joint_masses, summarised
from bayesjpt.queries.mixture_parts import by_likelihood, by_sub_population
from bayesjpt.queries.resolve import names_of, position_of
from bayesjpt.queries.some_draws import some_draws

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis

    from bayesjpt.table.schema import Column
    from bayesjpt.table.table import Table

PLOT_CELLS = 120
"""Cells of a column of numbers in a plot: about four pixels each."""

PLOT_JOINT_CELLS = 50
"""Cells of either column in a plot of two: their 2,500 pairs take a tenth of a second."""

PLOT_DRAWS = 100
"""Draws that bands in plots are computed from; five of them lie beyond either end of a band."""


Parts = Mapping[str, np.ndarray]
"""Names and mean probabilities of cells of what a column is made of."""

BY: Mapping[str, Callable[[Posterior, Axis], Parts]] = {
    "likelihood": by_likelihood,
    "sub-population": by_sub_population,
}

_ROWS = {"color": "0.6", "alpha": 0.45}
_N_LABEL = 20
_N_BAR = 40
_N_POINT = 2000


@query_method
def plot_marginal(
    post: Posterior,
    columns: str | Sequence[str],
    *,
    given: Any = None,
    table: Any = None,
    ax: Axes | None = None,
    by: str | None = None,
    max_draws: int | None = PLOT_DRAWS,
) -> Axes:
    """Plot the distribution of a column, or of two columns of numbers together; return the Axes.

    Of a column, the line or the bars are posterior means, the band or the error bars credible intervals over draws.
    Values with a probability of their own (atoms) are stems, on an axis of their own at the right. Of two columns, the
    density is the posterior mean.

    Parameters
    ----------
    post : Posterior
    columns : str or sequence of str
        One column, or two of numbers.
    given : optional
        An event, or a mapping from columns to values, as in `probability`.
    table : Table or data frame, optional
        Rows to compare with, drawn behind. Under evidence, give those that meet it.
    ax : matplotlib Axes, optional
        Where to plot; a new figure unless given.
    by : str, optional
        Of one column, what its distribution is made of, as posterior means: ``likelihood``, its families;
        ``sub-population``, those of `membership`, of the chain that `components` shows.
    max_draws : int or None
        Draws to look at; None for all.

    Raises
    ------
    QueryError
        For columns that the schema does not have, more than two of them, two of which one holds labels; for another
        word for `by`, or two columns beside it; without matplotlib.
    EvidenceError
        For evidence of probability zero.

    Notes
    -----
    Curves are probabilities of narrow cells, exact under each draw, over the cells' width.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> table = bj.as_table(pd.DataFrame({"x": np.linspace(-3.0, 3.0, 200)}))
    >>> post = bj.Posterior.from_circuit(bj.learn_jpt(table, np.random.default_rng(0)), table.schema)
    >>> post.plot_marginal("x", table=table).get_xlabel()
    'x'
    """
    names = names_of(columns)
    positions = [position_of(name, post.schema) for name in names]
    if len(set(positions)) != len(names) or len(names) not in (1, 2):
        raise QueryError(f"columns {', '.join(map(repr, names)) or 'none'}", "one column, or two different ones")
    labels = [name for name, k in zip(names, positions, strict=True) if post.schema.columns[k].base == "category"]
    if len(names) == 2 and labels:
        raise QueryError(
            f"two columns of which {labels[0]!r} holds labels",
            "two columns of numbers",
            f"Plot the other one given each label: given={{{labels[0]!r}: ...}}.",
        )
    if by is not None and (by not in BY or len(names) == 2):
        raise QueryError(f"by={by!r} of {len(names)} columns", "one column by 'likelihood' or 'sub-population'")
    rows = None if table is None else as_rows(table, post.schema)
    few = given_posterior(some_draws(post, max_draws)[1], given)
    axes = axes_of(few, positions, PLOT_CELLS if len(names) == 1 else PLOT_JOINT_CELLS)
    ax = _new_axes() if ax is None else ax
    if len(names) == 2:
        _joint(ax, few, axes[0], axes[1], rows)
        return ax
    cells, atoms = (summarised(draws) for draws in cell_masses(few, axes)[0])
    made_of = {} if by is None else BY[by](few, axes[0])
    if axes[0].labels:
        _labels(ax, axes[0], cells, rows, made_of)
    else:
        _numbers(ax, axes[0], post.schema.columns[positions[0]], (cells, atoms), rows, made_of)
    ax.set_xlabel(_plain(names[0]))
    return ax


def _new_axes() -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise QueryError("matplotlib is not installed", remedy="pip install 'bayesjpt[plot]'") from None
    return plt.subplots(layout="constrained")[1]


def _observed(rows: Table, axis: Axis) -> np.ndarray:
    """Return the values of a column that were seen."""
    return rows.values[axis.position, rows.observed[axis.position]]


def _numbers(
    ax: Axes, axis: Axis, column: Column, masses: tuple[Masses, Masses], rows: Table | None, parts: Parts
) -> None:
    cells, atoms = masses
    if column.has_only_atoms and not parts:  # what lies between them has a density in name only
        _ticks(ax.xaxis, axis, column)
        _stems(ax, axis, atoms, rows)
        return
    widths = np.diff(axis.edges)
    middle = axis.edges[:-1] + 0.5 * widths
    counted = axis.whole and widths[0] == 1.0 and widths.size <= _N_BAR
    if rows is not None:
        seen = _observed(rows, axis)
        edges = axis.edges if counted else _wide_edges(axis, column.resolution)
        share = np.histogram(seen[~np.isin(seen, axis.atoms)], edges)[0] / max(seen.size, 1)
        ax.bar(edges[:-1], share / np.diff(edges), np.diff(edges), align="edge", label="rows", **_ROWS)
    band = f"{INTERVAL:.0%} interval"
    if counted:
        ends = np.abs(np.array([cells.lo, cells.hi]) - cells.mean)
        ax.errorbar(middle, cells.mean, ends, fmt="o", ms=4, color="C0", label=f"mean, {band}")
    else:
        ax.fill_between(middle, cells.lo / widths, cells.hi / widths, color="C0", alpha=0.35, lw=0, label=band)
        ax.plot(middle, cells.mean / widths, color="C0", label="posterior mean")
    for number, (name, mean) in enumerate(parts.items(), start=1):
        ax.plot(middle, mean / (1.0 if counted else widths), color=f"C{number}", lw=1.2, label=_plain(name))
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("probability" if counted else "density")
    _ticks(ax.xaxis, axis, column)
    if atoms.mean.size:
        right = ax.twinx()
        _stems(right, axis, atoms, rows)
        right.set_ylabel("probability of single values", color="C1")
        ax.plot([], [], "o-", color="C1", lw=2, ms=5, label="single values")
    ax.legend(loc="best", frameon=False)


def _wide_edges(axis: Axis, resolution: float) -> np.ndarray:
    """Return the ends of about forty bins that hold equally many of the numbers that can be recorded."""
    lo, hi = axis.edges[[0, -1]]
    step = resolution * max(1, round((hi - lo) / _N_BAR / resolution))
    first = np.floor(lo / step) * step - 0.5 * resolution
    return first + step * np.arange(np.ceil((hi - first) / step) + 1)


def _ticks(side: XAxis | YAxis, axis: Axis, column: Column) -> None:
    """Write days as dates; numbers are left to matplotlib."""
    if column.dtype == "datetime":
        side.set_ticks([place for place, _ in axis.ticks], [words for _, words in axis.ticks])


def _stems(ax: Axes, axis: Axis, atoms: Masses, rows: Table | None) -> None:
    """Draw atoms, and the shares that they have of some rows, against an axis of probabilities."""
    ends = np.abs(np.array([atoms.lo, atoms.hi]) - atoms.mean)
    ax.vlines(axis.atoms, 0.0, atoms.mean, color="C1", lw=2)
    ax.errorbar(axis.atoms, atoms.mean, ends, fmt="o", ms=5, color="C1")
    if rows is not None:
        seen = _observed(rows, axis)
        share = [(seen == atom).mean() for atom in axis.atoms]
        ax.plot(axis.atoms, share, "_", ms=14, color="0.4")
    ax.set_ylim(0.0, 1.05 * max(1e-3, float(atoms.hi.max())))
    ax.set_ylabel("probability")


def _labels(ax: Axes, axis: Axis, cells: Masses, rows: Table | None, parts: Parts) -> None:
    order = np.argsort(-cells.mean, kind="stable")[:_N_LABEL]
    order = order[(cells.mean[order] > 0.0) | (order < len(axis.labels) - 1)]
    place = np.arange(order.size)
    ends = np.abs(np.array([cells.lo, cells.hi]) - cells.mean)[:, order]
    ax.bar(place, cells.mean[order], 0.7, color="C0", alpha=0.75, yerr=ends, ecolor="0.2", label="posterior mean")
    if rows is not None:
        seen = _observed(rows, axis)
        share = np.bincount(seen.astype(int), minlength=len(axis.labels)) / max(seen.size, 1)
        ax.plot(place, share[order], "_", ms=18, mew=2, color="0.4", label="rows")
    below = np.zeros(order.size)
    for number, (name, mean) in enumerate(parts.items(), start=1):
        ax.bar(place, mean[order], 0.35, bottom=below, color=f"C{number}", label=_plain(name))
        below += mean[order]
    if rows is not None or parts:
        ax.legend(loc="best", frameon=False)
    ax.set_xticks(place, [_plain(axis.labels[k]) for k in order])
    if sum(len(axis.labels[k]) for k in order) > 60:
        ax.tick_params(axis="x", labelrotation=45)
        for label in ax.get_xticklabels():
            label.set_horizontalalignment("right")
    ax.set_ylabel("probability")


def _plain(label: str) -> str:
    """Return a label without what matplotlib reads as mathematics."""
    return label.replace("$", r"\$")


def _joint(ax: Axes, post: Posterior, first: Axis, second: Axis, rows: Table | None) -> None:
    area = np.outer(np.diff(first.edges), np.diff(second.edges))
    density = joint_masses(post, first, second).mean(axis=0) / area
    image = ax.pcolormesh(first.edges, second.edges, density.T, cmap="Blues", vmin=0.0, rasterized=True)
    ax.figure.colorbar(image, ax=ax, label="probability density")
    if rows is not None:
        both = np.flatnonzero(rows.observed[first.position] & rows.observed[second.position])
        some = both[:: max(1, -(-both.size // _N_POINT))]
        ax.scatter(rows.values[first.position, some], rows.values[second.position, some], s=3, color="C1", alpha=0.4)
    ax.set(xlim=first.edges[[0, -1]], ylim=second.edges[[0, -1]])
    for side, axis in ((ax.xaxis, first), (ax.yaxis, second)):
        _ticks(side, axis, post.schema.columns[axis.position])
        side.set_label_text(_plain(axis.name))
