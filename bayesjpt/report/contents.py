"""What a report says of a fit, as plain values: pages are written from it, and nothing is computed after it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesjpt.defaults import INTERVAL, OUTLIER_DRAWS
from bayesjpt.posterior.convert import reference_rows
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.look_at import IS_CODE, MAY_BE_MISSING, codes_for_missing, notes_of_left_out
from bayesjpt.queries.marginals import Axis, Masses, axes_of, cell_masses, summarised
from bayesjpt.queries.outliers import outliers
from bayesjpt.queries.patterns import Patterns, patterns
from bayesjpt.queries.predict import prediction
from bayesjpt.queries.some_draws import some_draws
from bayesjpt.queries.ticks import ticks_of
from bayesjpt.queries.types import UNSURE, ColumnType, Types, types
from bayesjpt.queries.value_quantiles import value_quantiles
from bayesjpt.report.pairs import Pair, pairs_of
from bayesjpt.report.summary import short_reason, words_of
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table
from bayesjpt.table.write import texts

DRAWS = 32
"""Draws that bands are computed from, two of each structure: of 50 columns these take a second."""

CELLS = 40
"""Cells of a column of numbers: about eight pixels each."""

SUPPORT = 0.01
"""Least share of all rows of a sub-population's densest part that a report tells."""

ROWS, ODD = 1000, 10
"""Rows among which the oddest are looked for, drawn at random from larger tables, and how many of them are shown."""


_LOOKED_AT = 5
"""Times as many of the oddest rows are looked at, for cells that are out of what was to be expected."""

_ENDS = (0.5 - 0.5 * INTERVAL, 0.5 + 0.5 * INTERVAL)

_KUIPER = 1.747
"""Of Kuiper's statistic times the root of the number of rows: what one check in twenty exceeds by chance."""

_LEAST_GAP = 0.05
"""Part of the rows by which a distribution may be off without a word, however many rows there are."""

_ODD = 30.0
"""A row is said to stand out where fewer than a tenth of one such is expected; scores are exceeded thrice as often as
their exponential says, at most (`bayesjpt.queries.outliers`)."""


@dataclass(frozen=True, eq=False)
class ColumnReport:
    """A column: its type, its distribution, and how well that fits its rows.

    Parameters
    ----------
    answer : ColumnType
    words : str
        The type in words.
    axis : Axis
    fitted : Masses
        Probability of each cell or label, atoms within.
    rows : float64 (n_cell,)
        Share of the observed rows in each; NaN where there are no rows.
    gap, by_chance : float
        The largest difference between model and rows in the probability of any run of values, and what it may be by
        chance; NaN without rows.
    n_missing, n_row : int
        Missing cells, of so many; `n_row` is 0 where only a few rows are at hand.
    """

    answer: ColumnType
    words: str
    axis: Axis
    fitted: Masses
    rows: np.ndarray
    gap: float
    by_chance: float
    n_missing: int
    n_row: int

    @property
    def is_off(self) -> bool:
        """Whether model and rows differ by more than chance and by enough to matter."""
        return bool(self.gap > max(self.by_chance, _LEAST_GAP))

    @property
    def verdict(self) -> str:
        """How well the model fits, in a word or two."""
        if math.isnan(self.gap):
            return "no rows"
        return "differs" if self.is_off else "fits" if self.gap <= self.by_chance else "fits closely enough"


@dataclass(frozen=True)
class OddRow:
    """A row that little lies near, its worst cell, and what was to be expected of it.

    The number in the table is from 1, and 0 where the fit does not tell it. The column is empty where no cell is out of
    what was to be expected, but all of them together are.
    """

    row: int
    column: str
    value: str
    expected: str
    score: float
    is_far: bool


@dataclass(frozen=True)
class HeldOut:
    """How probable held-out rows are beside independent columns: nats a row, with an interval.

    Parameters
    ----------
    gain, lo, hi : float
    n_row : int
        Rows that were held out.
    n_train : int
        Rows that each structure was learned from.
    """

    gain: float
    lo: float
    hi: float
    n_row: int
    n_train: int

    def sentence(self) -> str:
        """Return what that means."""
        gain = f"{self.gain:.2f} nats a row (90 % interval {self.lo:.2f} to {self.hi:.2f})"
        if self.lo > 0.0:
            times = math.exp(min(self.gain, 20.0))
            ratio = f"{times:.1f}" if times < 10.0 else f"{times:,.0f}"
            return (
                f"Rows that were held out are {ratio} times as probable as under columns that have nothing to do with "
                f"each other: {gain}. What hangs together here is more than chance."
            )
        if self.hi < 0.0:
            return (
                f"Rows that were held out are less probable than under columns that have nothing to do with each "
                f"other: {gain}. Trust the columns one by one, not what hangs together."
            )
        return (
            f"Rows that were held out are about as probable as under columns that have nothing to do with each other: "
            f"{gain}. The rows do not show that anything hangs together."
        )


@dataclass(frozen=True, eq=False)
class Contents:
    """All that a report says.

    Parameters
    ----------
    name : str
        Of the table.
    n_row : int or None
        Of the table, where it is known.
    rows : Table or None
        All rows, or the few that a fit keeps; None without either.
    whole : bool
        Whether `rows` are all of them.
    types : Types
    columns : tuple of ColumnReport
    pairs : tuple of Pair
        Of the columns at `paired`, the strongest first.
    paired : tuple of int
    patterns : Patterns
    odd : tuple of OddRow
    n_scored : int
        Rows among which those are the oddest.
    held_out : HeldOut or None
    stability : str
    settings : dict
    """

    name: str
    n_row: int | None
    rows: Table | None
    whole: bool
    types: Types
    columns: tuple[ColumnReport, ...]
    pairs: tuple[Pair, ...]
    paired: tuple[int, ...]
    patterns: Patterns
    odd: tuple[OddRow, ...]
    n_scored: int
    held_out: HeldOut | None
    stability: str
    settings: dict[str, Any]

    def to_look_at(self) -> list[tuple[str, str]]:
        """Return what a reader should act on, (what, where) each, columns with the same note together."""
        found: dict[str, list[str]] = {}
        for column in self.columns:
            name, answer = column.answer.name, column.answer
            notes = []
            for note in answer.look_at:
                if note.endswith(IS_CODE):
                    found.setdefault(_CODE, []).append(f"{name} ({note.removesuffix(IS_CODE)})")
                elif note.startswith(MAY_BE_MISSING):
                    found.setdefault(_CODE, []).append(f"{name} ({note.removeprefix(MAY_BE_MISSING)})")
                else:
                    is_date = note.rstrip("'").endswith("=date")
                    notes.append((_DATE if is_date else _ORDER) if note.startswith("--kind") else note)
            if answer.certainty == UNSURE and not answer.look_at and answer.second:
                notes.append(f"type not sure, {words_of(answer).replace('/', ' or ')}")
            if column.n_row and column.n_missing > 0.5 * column.n_row:
                notes.append("more than half of the cells are missing")
            for note in notes:
                found.setdefault(note, []).append(name)
        for column in self.columns:
            if column.is_off:
                found.setdefault("model and rows differ (Can you trust it?)", []).append(column.answer.name)
        for first, last, n in self.types.one_hot:
            found.setdefault("one label as a column for each of its values", []).append(f"{first} to {last} ({n})")
        for aside in self.types.left_out:
            notes = "".join(f"; {note}" for note in notes_of_left_out(aside))
            found.setdefault(f"left out{notes}", []).append(f"{aside.name} ({short_reason(aside)})")
        for odd in self.odd:
            if odd.is_far and odd.row:
                found.setdefault("rows far from all others (Outliers)", []).append(f"{odd.row:,}")
        return [(what, named(names)) for what, names in found.items()]


_CODE = "a code for missing cells? --na COLUMN=CODE says so"
_DATE = "are these dates? --kind COLUMN=date says so"
_ORDER = "are these labels ordered? --kind COLUMN=ordinal says so"

_N_NAMED = 12
"""Columns that are named on a line."""


def named(names: Sequence[str]) -> str:
    """Return names of columns as a line, the first of many."""
    more = f" and {len(names) - _N_NAMED} more" if len(names) > _N_NAMED else ""
    return ", ".join(names[:_N_NAMED]) + more


def contents_of(
    post: Posterior, rows: Table | None, *, name: str, held_out: HeldOut | None, rng: np.random.Generator
) -> Contents:
    """Return what a report says of a posterior.

    Parameters
    ----------
    post : Posterior
    rows : Table, optional
        All rows of the fitted table; the few that the fit keeps unless given.
    name : str
        Of the table.
    held_out : HeldOut, optional
    rng : numpy.random.Generator
        Draws the rows among which the oddest are looked for, where there are many.

    Raises
    ------
    QueryError
        For rows under another schema than the fit's.
    """
    whole = rows is not None
    # two posteriors of few draws, of which what is prepared is shared by all that is asked of them
    some, few = (some_draws(post, n)[1] for n in (DRAWS, OUTLIER_DRAWS))
    answers = types(few, rows)
    rows = post.reference if rows is None else rows
    n_row = rows.n_row if whole and rows is not None else post.settings.get("n_row")
    columns = _columns(some, answers, rows, int(n_row) if isinstance(n_row, int) else 0)
    pairs, paired = pairs_of(some)
    odd, n_scored = _odd_rows(few, rows, rng, whole)
    return Contents(
        name=name,
        n_row=int(n_row) if isinstance(n_row, int) else None,
        rows=rows,
        whole=whole,
        types=answers,
        columns=columns,
        pairs=pairs,
        paired=paired,
        patterns=patterns(post, min_support=SUPPORT),
        odd=odd,
        n_scored=n_scored,
        held_out=held_out,
        stability=_stability(post),
        settings=dict(post.settings),
    )


def _stability(post: Posterior) -> str:
    """Return how far another seed moves answers, without what it says of shares: types have another measure."""
    if post.n_chain * post.n_draw == 1:
        return "This is the estimate of a learner, without sweeps: it has no intervals."
    found = post.settings.get("stability")
    if found is None:
        from bayesjpt.report.convergence import convergence

        found = convergence(post).sentence()
    return str(found).partition(" Type not determined:")[0]


# --- columns ---------------------------------------------------------------------------------------------------------


def _columns(post: Posterior, answers: Types, rows: Table | None, n_row: int) -> tuple[ColumnReport, ...]:
    found_axes = axes_of(post, range(len(post.schema)), CELLS)
    axes = [_aligned(axis, column, rows) for axis, column in zip(found_axes, post.schema, strict=True)]
    found = []
    for answer, axis, (cells, atoms) in zip(answers, axes, cell_masses(post, axes), strict=True):
        cells = cells.copy()
        for atom, cell in enumerate(np.searchsorted(axis.edges, axis.atoms, side="right") - 1):
            cells[:, cell] += atoms[:, atom]
        shares, n_seen = _shares(axis, rows)
        difference = np.cumsum(np.append(0.0, cells.mean(axis=0) - shares))
        gap = float(np.ptp(difference)) if n_seen else float("nan")
        by_chance = _KUIPER / math.sqrt(n_seen) if n_seen else float("nan")
        found.append(
            ColumnReport(
                answer, words_of(answer), axis, summarised(cells), shares, gap, by_chance, answer.n_missing, n_row
            )
        )
    return tuple(found)


def _aligned(axis: Axis, column: Column, rows: Table | None) -> Axis:
    """Return an axis whose cells hold equally many of the numbers that are recorded: rows lie on these alone.

    Codes for missing cells are left out: a picture from -999 on shows nothing of the others.
    """
    seen = np.empty(0) if rows is None else rows.values[axis.position, rows.observed[axis.position]]
    codes = [] if axis.labels else codes_for_missing(column, seen)
    if axis.labels or (axis.whole and not codes):
        return axis
    values = np.unique(seen[~np.isin(seen, codes)])
    ends = np.clip(axis.edges[[0, -1]], values[0], values[-1]) if codes else axis.edges[[0, -1]]
    grid, start = column.resolution, 0.0
    if 1 < values.size <= CELLS:  # few values may lie farther apart than they are exact
        grid, start = max(grid, float(np.diff(values).min())), float(values[0])
    lo, hi = (ends - start).tolist()
    step = grid * max(1, math.ceil((hi - lo) / CELLS / grid))
    first = math.floor(lo / step) * step - 0.5 * grid
    edges = start + first + step * np.arange(math.ceil((hi - first) / step) + 1.0)
    inside = (axis.atoms >= edges[0]) & (axis.atoms < edges[-1])
    ticks = ticks_of(column, float(edges[0]), float(edges[-1])) if codes else axis.ticks
    return replace(axis, edges=edges, atoms=axis.atoms[inside], ticks=ticks)


def _shares(axis: Axis, rows: Table | None) -> tuple[np.ndarray, int]:
    """Return the share of the observed rows in each cell, and how many rows are observed."""
    n_cell = len(axis.labels) or axis.edges.size - 1
    seen = np.empty(0) if rows is None else rows.values[axis.position, rows.observed[axis.position]]
    if not seen.size:
        return np.full(n_cell, np.nan), 0
    if axis.labels:
        counts = np.bincount(seen.astype(np.int64), minlength=n_cell)
    else:
        # cells hold their lower end; NumPy's last bin would hold both
        cell = np.searchsorted(axis.edges, seen, side="right") - 1
        counts = np.bincount(cell[(cell >= 0) & (cell < n_cell)], minlength=n_cell)
    return counts / seen.size, seen.size


# --- outliers --------------------------------------------------------------------------------------------------------


def _odd_rows(
    post: Posterior, rows: Table | None, rng: np.random.Generator, whole: bool
) -> tuple[tuple[OddRow, ...], int]:
    """Return the oddest rows, and among how many they were looked for."""
    if rows is None or post.reference is None or not rows.n_row:
        return (), 0
    number = np.arange(rows.n_row)
    if rows.n_row > ROWS:
        number = np.sort(rng.choice(rows.n_row, ROWS, replace=False))
    scored, place = rows.take(number), number + 1
    if not whole:
        n_fitted = post.settings.get("n_row")
        kept = reference_rows(n_fitted) if isinstance(n_fitted, int) else np.empty(0, np.int64)
        place = kept[number] + 1 if kept.size == rows.n_row else np.zeros_like(number)
    found = outliers(post, scored)
    score, responsible = found["score"], found["responsible"]
    order = [row for row in np.argsort(-score, kind="stable").tolist() if responsible[row]][: _LOOKED_AT * ODD]
    expected: dict[int, tuple[str, bool]] = {}
    for name in dict.fromkeys(str(responsible[row]) for row in order):
        part_rows = [row for row in order if responsible[row] == name]
        expected |= dict(zip(part_rows, _expected(post, name, scored.take(part_rows)), strict=True))
    odd = []
    for row in order:
        k = post.schema.index(str(responsible[row]))
        column = post.schema.columns[k]
        value = texts(column, scored.values[k, [row]])[0]
        is_far = float(score[row]) > math.log(_ODD * number.size)
        words, inside = expected[row]
        if inside and is_far:
            odd.append(OddRow(int(place[row]), "", "", "", float(score[row]), is_far))
        elif not inside:
            odd.append(OddRow(int(place[row]), column.name, value, words, float(score[row]), is_far))
    return tuple(odd[:ODD]), int(number.size)


def _expected(post: Posterior, name: str, rows: Table) -> list[tuple[str, bool]]:
    """Return what the other cells of rows say of a column, and whether its own cell is within that.

    That is an interval, or the two most probable labels; a label is within where it is no rarer than what an interval
    leaves out on one side.
    """
    k = post.schema.index(name)
    column = post.schema.columns[k]
    if column.base == "category":
        told = prediction(post, name, rows, max_draws=None).values
        codes = rows.values[k].astype(np.int64).tolist()
        return [
            (_likely_labels(column.labels, values), code < len(column.labels) and values[code] >= _ENDS[0])
            for values, code in zip(told, codes, strict=True)
        ]
    others = rows.observed.copy()
    others[k] = False
    ends = value_quantiles(post, Table(rows.schema, rows.values, others), k, np.array(_ENDS))
    words = [[_number(column, end) for end in both] for both in ends.T.tolist()]
    # a recorded number stands for its cell, half of a resolution to either side
    within = 0.5 * column.resolution if column.base == "real" else 0.0
    inside = (rows.values[k] >= ends[0] - within) & (rows.values[k] <= ends[1] + within)
    return [
        (lo if lo == hi else f"{lo} to {hi}", bool(is_inside))
        for (lo, hi), is_inside in zip(words, inside.tolist(), strict=True)
    ]


def _likely_labels(names: Sequence[str], values: np.ndarray) -> str:
    order = np.argsort(-values, kind="stable")[:2]
    return ", ".join(f"{names[k]} {values[k]:.0%}" for k in order if values[k] >= 0.005)


def _number(column: Column, value: float) -> str:
    """Return a number as its column spells them, without more digits than the column has."""
    if column.dtype == "datetime" or column.notation is not None:
        return column.text(round(value / column.resolution) * column.resolution)
    n_digit = max(0, -math.floor(math.log10(column.resolution) + 1e-9))
    return f"{round(value, n_digit) + 0.0:.{min(n_digit, 6)}f}" if n_digit <= 6 else f"{value:.4g}"
