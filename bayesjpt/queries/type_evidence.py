"""What a column's values say of its type: evidence in nats, given the sub-populations that the other columns tell.

Rows are parted by the column's slot that is most probable given the row's *other* cells, so that the values cannot have
made the parts. One type holds for the whole column; within each part its values come from that type's families with
parameters of their own, integrated out:

    log P(values | type, parts) = sum over parts of  log sum over grid of  P(parameters) prod over cells P(cell)^count

Parameters have a discrete prior on a grid, so this is exact by definition. Cells are what recorded values stand for:
continuous and discrete types compare as masses. The families are those of a type, not the dictionary's of the fit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bayesjpt.defaults import TYPE_DRAWS
from bayesjpt.kernels.leave_one_out import fill_likeliest_slots
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.given import log_sum, row_blocks
from bayesjpt.queries.look_at import missing_codes
from bayesjpt.queries.some_draws import some_draws
from bayesjpt.table.schema import Column

_STRAY = 0.01
"""Share of cells that belong to no type: typing errors and far values, even over the values that were recorded."""

_N_LOCATION, _N_SPREAD = 33, 10
"""Grid of numbers: locations over the middle 98 % of the values, spreads from a 32nd of that range to all of it."""

_LATENT = np.linspace(-2.4, 2.4, 17)
_LATENT_SPREAD = np.exp(np.linspace(-1.8, 0.2, 11))
_BETWEEN = np.array([0.02, 0.3, 0.6, 0.9])
"""Grid of ordered levels: mean and spread of a latent normal in a part, and how far means of parts lie apart. A mean of
0 and a spread of 1, which make a part like the whole column, are on it."""

_CONCENTRATION = np.array([1.0, 3.0, 10.0, 30.0, 100.0, 300.0])
"""Of a part's shares of unordered levels around those of the whole column; the last is nearly independence."""

_N_ORDER = 20
"""Random orders of the levels that theirs is compared with."""

_LARGEST = 1e100
"""Values beyond which, and cells below whose inverse, there is no evidence: products of numbers would overflow."""

MIN_CELLS = 5
"""Cells from which there is evidence at all."""


@dataclass(frozen=True)
class TypeEvidence:
    """What the values of a column say.

    Parameters
    ----------
    nats : dict of str to float
        Log evidence of each type that was asked for and has families here, in nats of all cells together.
    order : float
        How much better the order of the levels is than random orders of the same levels, in standard deviations of
        their evidence (of one nat at least), bounded by what can be told from as many orders: three levels have but
        three (Samuelson, 1968); NaN where there is none to tell.
    n_cell : int
    n_part : float
        Sub-populations that hold some of the cells, averaged over draws.
    """

    nats: dict[str, float]
    order: float
    n_cell: int
    n_part: float
    by_draw: tuple[tuple[dict[str, float], float], ...] = ()
    """(nats, order) by the sub-populations of each draw alone, where there are several."""


NOTHING = TypeEvidence({}, float("nan"), 0, 0.0)


class Parts:
    """The slots that the reference rows of a posterior most probably take in each column, given their other cells.

    Found for all columns at once, when the first of them asks.
    """

    def __init__(self, post: Posterior):
        self.post = post

    @cached_property
    def by_draw(self) -> list[np.ndarray]:
        """int32 (n_column, n_row) each, of some draws."""
        rows = self.post.reference
        assert rows is not None
        found = []
        for structure in some_draws(self.post, TYPE_DRAWS)[1].by_structure():
            plan, params = structure.plan(), structure.flat()
            slots = np.empty((params.theta.shape[0], rows.n_column, rows.n_row), np.int32)
            for which, part, cells, n_block in row_blocks(plan, rows, routed=False):
                filled = np.empty((*slots.shape[:2], part.n_row), np.int32)
                fill_likeliest_slots(plan, cells, params, n_block, filled)
                slots[..., which] = filled
            found += list(slots)
        return found


def compile_parts(post: Posterior) -> None:
    """Compile what finds the parts of rows, or load it from the disk cache, by asking for those of a single row."""
    if post.reference is not None and post.reference.n_row:
        _ = Parts(replace(post.by_structure()[0], reference=post.reference.take(np.zeros(1, np.int64)))).by_draw


def type_evidence(
    post: Posterior, position: int, numbers: np.ndarray | None, types: Collection[str], parts: Parts | None = None
) -> TypeEvidence:
    """Return what the reference rows of a posterior say of a column's type, averaged over some draws.

    Parameters
    ----------
    post : Posterior
    position : int
        Of the column.
    numbers : float64 (n_label,) or None
        What the labels of a category stand for where they are numbers, or their places in an order that people know,
        NaN for labels without one; None where there is no order, or for numbers.
    types : collection of str
        Types to be told apart.
    parts : Parts, optional
        Of the posterior, where several columns share them.
    """
    column, rows = post.schema.columns[position], post.reference
    if rows is None or rows.schema != post.schema:
        return NOTHING
    others = () if column.has_only_atoms and column.n_distinct > 1 else column.atoms
    kept = rows.observed[position] & ~np.isin(rows.values[position], others)
    if column.base != "category":
        kept &= ~np.isin(rows.values[position], missing_codes(column, rows.values[position, kept]))
    else:
        kept &= rows.values[position] < len(column.labels)
        if numbers is not None:  # a label beside the order of the others says nothing of it
            kept &= np.isfinite(np.append(numbers, np.nan)[rows.values[position].astype(np.int64)])
    values, code = np.unique(rows.values[position, kept], return_inverse=True)
    if code.size < MIN_CELLS:
        return NOTHING
    slots = [of_columns[position, kept] for of_columns in (parts or Parts(post)).by_draw]
    counts = [_counts(slot, code, values.size) for slot in slots]
    if column.base == "category":
        values = numbers[values.astype(np.int64)] if numbers is not None else None
    if values is not None and (np.diff(values) < 0.0).any():  # labels whose codes are not in their order
        ascending = np.argsort(values)
        values, counts = values[ascending], [count[:, ascending] for count in counts]
    width = _width(column, values)
    if values is not None and max(np.abs(values).max(), 1.0 / width) > _LARGEST:
        return NOTHING
    by_draw = evidence_by_draw(counts, values, width, types)
    nats, order = _mean_of(by_draw)
    return TypeEvidence(nats, order, code.size, float(np.mean([len(each) for each in counts])), tuple(by_draw))


def evidence_by_draw(
    counts: Sequence[np.ndarray], values: np.ndarray | None, width: float, types: Collection[str]
) -> list[tuple[dict[str, float], float]]:
    """Return, for each draw, the log evidence of types in nats, and how much better the levels' order is than others.

    Parameters
    ----------
    counts : sequence of float64 (n_part, n_value)
        Cells of each value in each part, one array a draw.
    values : float64 (n_value,) or None
        Ascending; None for labels that are no numbers, whose order is not known.
    width : float
        Of the cell that a value stands for.
    types : collection of str

    Examples
    --------
    >>> ((nats, order),) = evidence_by_draw([np.eye(6) * 20 + 1], np.arange(6.0), 1.0, ("ordinal", "nominal"))
    >>> nats["nominal"] > nats["ordinal"]
    True
    """
    total = counts[0].sum(axis=0)
    tables, levels = {}, None
    if values is not None:
        made = _tables_of_numbers(values, width, total, types)
        tables = {
            name: [np.log((1.0 - _STRAY) * each + _STRAY / values.size) for each in of_type]
            for name, of_type in made.items()
        }
    if len(total) > 1 and {"ordinal", "nominal"} & set(types):
        levels = _Levels(total, known_order=values is not None)
    found = []
    for count in counts:
        nats = {name: _log_mean([_on_grid(count, table) for table in made]) for name, made in tables.items()}
        order = float("nan")
        if levels is not None:
            of_levels, order = levels.evidence(count)
            nats |= of_levels
        found.append(({name: value for name, value in nats.items() if name in types}, order))
    return found


def evidence_of_counts(
    counts: Sequence[np.ndarray], values: np.ndarray | None, width: float, types: Collection[str]
) -> tuple[dict[str, float], float]:
    """Return the mean of `evidence_by_draw`."""
    return _mean_of(evidence_by_draw(counts, values, width, types))


def _mean_of(by_draw: Sequence[tuple[dict[str, float], float]]) -> tuple[dict[str, float], float]:
    orders = [order for _, order in by_draw if not np.isnan(order)]
    nats = {name: float(np.mean([of_draw[name] for of_draw, _ in by_draw])) for name in by_draw[0][0]}
    return nats, float(np.mean(orders)) if orders else float("nan")


def _counts(part: np.ndarray, code: np.ndarray, n_value: int) -> np.ndarray:
    """Return float64 (n_part, n_value): cells of each value in each part that has some."""
    parts, number = np.unique(part, return_inverse=True)
    counts = np.zeros((parts.size, n_value))
    np.add.at(counts, (number, code), 1.0)
    return counts


def _width(column: Column, values: np.ndarray | None) -> float:
    if values is None or (values % 1.0 == 0.0).all():
        return 1.0
    if column.base == "real":
        return column.resolution
    return float(np.diff(values).min()) if values.size > 1 else 1.0


def _log_mean(values: Sequence[float]) -> float:
    return float(log_sum(np.asarray(values, np.float64), 0)) - float(np.log(len(values)))


def _on_grid(counts: np.ndarray, log_mass: np.ndarray) -> float:
    """Return the log evidence of all parts; log_mass is (n_grid, n_value), each grid point as probable."""
    return float((log_sum(counts @ log_mass.T, 1) - np.log(len(log_mass))).sum())


# --- numbers ---------------------------------------------------------------------------------------------------------


def _tables_of_numbers(
    values: np.ndarray, width: float, total: np.ndarray, types: Collection[str]
) -> dict[str, list[np.ndarray]]:
    """Return, for each type, the masses (n_grid, n_value) of the values' cells under each of its families."""
    from scipy.special import gammainc, gammaln, ndtr

    below = np.cumsum(total) / total.sum()
    lo = values[np.searchsorted(below, 0.01)]
    hi = values[min(int(np.searchsorted(below, 0.99)), values.size - 1)]
    if hi - lo < 2.0 * width:
        lo, hi = lo - width, hi + width
    centre, spread = _grid(lo, hi)
    left, right = values - 0.5 * width, values + 0.5 * width
    found: dict[str, list[np.ndarray]] = {}
    normal = ndtr((right - centre) / spread) - ndtr((left - centre) / spread)
    found |= {name: [normal] for name in ("real", "interval") if name in types}
    if "positive" in types:
        left = np.maximum(left, 0.0)
        low, high = np.log(max(lo, 0.25 * width)), np.log(max(hi, width))
        middle, log_spread = _grid(low, max(high, low + 0.5))
        with np.errstate(divide="ignore"):
            log_normal = ndtr((np.log(right) - middle) / log_spread) - ndtr((np.log(left) - middle) / log_spread)
        mean = np.maximum(centre, 0.125 * width)
        shape = np.clip((mean / spread) ** 2, 1e-2, 1e4)
        found["positive"] = [log_normal, gammainc(shape, right * shape / mean) - gammainc(shape, left * shape / mean)]
    if "count" in types:
        above = 1.0 - ndtr((-0.5 - centre) / spread)
        found["count"] = [normal / above]  # rounded and cut at zero: counts of one sub-population are often narrow
        for least in (0.0, 1.0)[: 1 + bool(values[0] >= 1.0)]:  # numbers of trials are counted from 1
            mean, x = np.maximum(centre - least, 0.05), values - least
            excess = np.maximum(spread**2 - mean, 1e-9)
            size = np.clip(mean**2 / excess, 0.02, 1e4)  # negative binomial; its largest size is nearly Poisson
            log_mass = gammaln(x + size) - gammaln(size) - gammaln(x + 1.0)
            log_mass += size * np.log(size / (size + mean)) + x * np.log(mean / (size + mean))
            found["count"].append(np.exp(log_mass))
    return found


def _grid(lo: float, hi: float) -> tuple[np.ndarray, np.ndarray]:
    """Return locations and spreads of all grid points, float64 (n_grid, 1) each."""
    spreads = (hi - lo) * np.exp(np.linspace(-np.log(32.0), 0.0, _N_SPREAD))
    centre, spread = np.meshgrid(np.linspace(lo, hi, _N_LOCATION), spreads)
    return centre.reshape(-1, 1), spread.reshape(-1, 1)


# --- levels ----------------------------------------------------------------------------------------------------------


def _dirichlet(counts: np.ndarray, concentration: np.ndarray) -> float:
    """Return the log probability of labelled cells under Dirichlet shares."""
    from scipy.special import gammaln

    whole = gammaln(concentration.sum()) - gammaln(concentration.sum() + counts.sum(axis=-1))
    return float((whole + (gammaln(concentration + counts) - gammaln(concentration)).sum(axis=-1)).sum())


def _nominal(counts: np.ndarray, share: np.ndarray) -> float:
    """Return the log evidence of unordered levels in parts, over that of parts that are all alike."""
    return _log_mean([_dirichlet(counts, each * share) for each in _CONCENTRATION]) - float(
        (counts @ np.log(share)).sum()
    )


def _latent_tables(share: np.ndarray) -> np.ndarray:
    """Return the masses (n_grid, n_level) of levels that cut a latent normal where the whole column's shares do."""
    from scipy.special import ndtr, ndtri

    cut = ndtri(np.clip(np.cumsum(share)[:-1], 1e-9, 1.0 - 1e-9))
    middle, spread = (each.reshape(-1, 1) for each in np.meshgrid(_LATENT, _LATENT_SPREAD))
    below = ndtr((cut - middle) / spread)
    n = len(below)
    masses = np.diff(np.hstack([np.zeros((n, 1)), below, np.ones((n, 1))]), axis=1)
    return np.log((1.0 - _STRAY) * masses + _STRAY * share)


def _ordinal(counts: np.ndarray, share: np.ndarray, log_mass: np.ndarray) -> float:
    """Return the log evidence of ordered levels in parts, over that of parts that are all alike."""
    middle, spread = (each.ravel() for each in np.meshgrid(_LATENT, _LATENT_SPREAD))
    within = counts @ log_mass.T
    found = []
    for between in _BETWEEN:
        log_prior = -0.5 * (middle / between) ** 2  # parts with much the same mean have much the same spread
        log_prior -= 0.5 * ((np.log(spread) - 0.5 * np.log(1.0 - between**2)) / min(between, 0.3)) ** 2
        found.append(float(log_sum(within + log_prior - log_sum(log_prior, 0), 1).sum()))
    return _log_mean(found) - float((counts @ np.log(share)).sum())


class _Levels:
    """Evidence of levels, for parts of a column with these cells altogether."""

    def __init__(self, total: np.ndarray, known_order: bool):
        self.share = (total + 0.5) / (total + 0.5).sum()
        self.marginal = _dirichlet(total, np.full(total.size, 0.5))
        orders = _orders(total.size) if known_order else []
        self.orders = [(order, _latent_tables(self.share[order])) for order in orders]

    def evidence(self, counts: np.ndarray) -> tuple[dict[str, float], float]:
        """Return the nats of both types, and the order's lead in standard deviations; NaN where there is none."""
        nominal = self.marginal + _nominal(counts, self.share)
        if not self.orders:
            return {"nominal": nominal, "ordinal": nominal}, float("nan")
        found = np.array([_ordinal(counts[:, order], self.share[order], table) for order, table in self.orders])
        lead = float("nan")
        if found.size > 1 and len(counts) > 1:
            lead = float((found[0] - found[1:].mean()) / (found[1:].std() + 1.0))
            # of so many values, none lies further from the mean of all
            lead = min(lead, (found.size - 1) / math.sqrt(found.size))
        return {"nominal": nominal, "ordinal": self.marginal + float(found[0])}, lead


def _orders(n_level: int) -> list[np.ndarray]:
    """Return the order of the levels as it is, and others that differ in more than direction."""
    natural = np.arange(n_level)
    if n_level < 3:
        return [natural]
    if n_level <= 4:
        others = [np.array(each) for each in itertools.permutations(range(n_level)) if each[0] < each[-1]]
        return [natural, *(each for each in others if (each != natural).any())]
    rng = np.random.default_rng(n_level)  # the same orders for the same question
    return [natural, *(rng.permutation(n_level) for _ in range(_N_ORDER))]
