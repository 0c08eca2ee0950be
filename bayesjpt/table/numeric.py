"""Columns of numbers and dates: support, grid, units and atoms, and what a schema document may say about them."""

from __future__ import annotations

import shlex
from dataclasses import replace

import numpy as np

from bayesjpt import defaults
from bayesjpt.errors import SchemaError, TableError
from bayesjpt.table import atoms as atoms_of
from bayesjpt.table import cells as cells_of
from bayesjpt.table import resolution
from bayesjpt.table.cells import Cells
from bayesjpt.table.heaps import find_heaps
from bayesjpt.table.interpret import Hints, spelled_datetime, spelled_number
from bayesjpt.table.labels import smoothed
from bayesjpt.table.overrides import Override
from bayesjpt.table.schema import Column
from bayesjpt.table.written_dates import counted_dates, date_readings
from bayesjpt.table.written_numbers import NumberNotation

MAX_ORDERED_LEVELS = 100
"""Distinct values; up to these an integer column has levels where its shares are worth knowing one by one: where some
values are favoured (`bayesjpt.table.heaps`), or each is frequent. A leaf's draw takes a microsecond a level."""

MIN_CELLS_PER_LEVEL = 30.0
"""Training cells per distinct value from which more than `MAX_INTEGER_LEVELS` levels are kept without a favourite.
Shares read off negative binomial counts cost .005 nats a cell at 13 cells a level, nothing at 35 (docs/results.md)."""

CODE_SHARE = 0.05
"""Distinct values over observed cells; only below it can fractions be a code (0.25, 0.5, 1, 2, 4) instead of a
measurement."""

CODE_GRID_FILL = 0.5
"""Share of the points of its recording grid, from its least to its largest value, that a measurement with few values
would fill."""

_MOST_WRITTEN_DIGITS = 4
"""Behind the decimal mark, as many in all cells: amounts of money have so many, results of a computation more."""

LARGEST_STANDARDISED = 1e150
"""Scale units from the location; beyond, squares overflow float64."""

LARGEST_NUMBER, LEAST_UNIT = 1e301, 1e-301
"""Size of a number, and the larger of a column's spread and grid. Sums and differences of numbers as large, draws some
spreads beyond them, and densities of numbers as close are finite, and have all their digits."""

ATOM_MIN_WHOLE_SPREAD = 100.0
"""Interquartile range of the other whole numbers from which an atom turns whole numbers into a real column: amounts
(hundreds and more) have one, counts with many zeros stay counts."""


_WHOLE_LIMIT = "at most 2^53 = 9007199254740992 in size, what float64 tells apart"


def integer(view: Cells, reason: str, override: Override) -> Column:
    """Return what a column of whole numbers is.

    Raises
    ------
    SchemaError
        Where a value is not whole or outside the support that was asked for.
    TableError
        Where a value is beyond 2^53.
    """
    odd = np.flatnonzero(view.distinct != np.rint(view.distinct))
    if odd.size:
        row, value = view.first(odd)
        raise SchemaError(
            f"{override.at('base')} asks for 'integer' but column {view.name!r} holds {cells_of.number_label(value)} "
            f"in row {row}",
            "whole numbers",
            "Ask for 'real'.",
        )
    large = np.flatnonzero(np.abs(view.distinct) > defaults.LARGEST_INTEGER)
    if large.size:
        row, value = view.first(large)
        raise TableError(f"column {view.name!r} holds {value:g} in row {row}", f"{_WHOLE_LIMIT}, for an integer")
    counts = view.counts()
    median, spread, _ = resolution.summarise(view.distinct, counts)
    few = _has_levels(view, counts)
    column = _numbers(view, "integer", reason, override)
    mean, deviation = resolution.mean_and_deviation(view.distinct, counts)
    step, offset = resolution.whole_step(view.distinct), 0.0
    note = f"; all are multiples of {step:.0f}" if step > 1.0 else ""
    wider, begin = resolution.steps_apart(view.distinct, 1.0)
    if wider > step:
        step, offset, note = wider, begin, f"; in steps of {wider:.0f} from {begin:.0f}"
    return replace(
        column,
        step=step,
        offset=offset,
        reason=f"{column.reason}{note}",
        mean_without_atoms=mean,
        deviation_without_atoms=deviation,
        levels=tuple(view.distinct.tolist()) if few else (),
        frequencies=smoothed(counts.tolist()) if few else (),
        location=median if override.location is None else override.location,
        scale=max(spread, 1.0) if override.scale is None else override.scale,
    )


def _has_levels(view: Cells, counts: np.ndarray) -> bool:
    """Return whether whole numbers are few, or not many and each worth a share of its own."""
    if view.n_distinct <= defaults.MAX_INTEGER_LEVELS:
        return True
    if view.n_distinct > MAX_ORDERED_LEVELS:
        return False
    frequent = view.n_observed >= MIN_CELLS_PER_LEVEL * view.n_distinct
    return frequent or find_heaps(view.distinct, counts, 1.0)[0].size > 0


def real(view: Cells, reason: str, override: Override) -> Column:
    """Return what a column of numbers or dates is: its atoms, its grid, and units from the values that are no atoms.

    Raises
    ------
    SchemaError
        Where a value is outside the support that was asked for, too large, or too far out in scale units.
    """
    check_size(view)
    distinct, counts = view.distinct, view.counts()
    is_few = override.base is None and view.stored == "number" and atoms_of.are_few(counts)
    found = np.ones(counts.size, bool) if is_few else atoms_of.find(distinct, counts)
    atoms = tuple(distinct[found].tolist())
    notes = [f"only {counts.size} different ones: atoms"] if is_few else [_atom_note(view, found)] if atoms else []
    if override.atoms is not None and override.atoms != atoms:
        atoms, found = override.atoms, np.isin(distinct, override.atoms)
        notes = [f"atoms as {override.source} says"]
    kept = ~found if not found.all() else found
    median, spread, _ = resolution.summarise(distinct[kept], counts[kept])
    width, note = _grid(view, kept)
    step, offset = (0.0, 0.0) if is_few else resolution.steps_apart(distinct, width)
    if step:
        is_moment = view.stored == "datetime"
        steps = resolution.moment_text(step).replace("the ", "1 ") if is_moment else f"{step:g} from {offset:g}"
        notes.append(f"in steps of {steps}")
    months, day = (0.0, 0.0) if step or view.stored != "datetime" else resolution.months_apart(distinct, width)
    if months:
        offset = day
        notes.append(f"in steps of {resolution.months_text(months, day)}")
    has_grid, width = width > 0.0, width or resolution.fallback(distinct[kept], spread)
    if override.resolution is not None and override.resolution != width:
        has_grid, width, note = True, override.resolution, f"resolution as {override.source} says"
        step, offset, months, notes = 0.0, 0.0, 0.0, [one for one in notes if "in steps" not in one]
    if max(spread, width) < LEAST_UNIT:
        raise SchemaError(
            f"column {view.name!r} holds numbers that differ by {max(spread, width):.0e}",
            f"a spread of at least {LEAST_UNIT:.0e}",
            f"Multiply the column, or leave it out with {override.remedy(view.name, 'excluded')}.",
            command=f"Multiply the column, or leave it out with {override.command(view.name, 'excluded')}.",
        )
    width = max(width, np.finfo(np.float64).tiny)  # half of a narrower cell may be 0
    column = _numbers(view, "real", "; ".join([reason, note, *notes]), override)
    held = {float(distinct[i]): int(counts[i]) for i in np.flatnonzero(np.isin(distinct, atoms))} if atoms else {}
    mean, deviation = resolution.mean_and_deviation(distinct[kept], counts[kept])
    column = replace(
        column,
        mean_without_atoms=mean,
        deviation_without_atoms=deviation,
        resolution=width,
        has_grid=has_grid,
        step=step or 1.0,
        offset=offset,
        months=months,
        location=median if override.location is None else override.location,
        scale=max(spread, width) if override.scale is None else override.scale,
        atoms=atoms,
        atom_frequencies=smoothed([held.get(atom, 0) for atom in atoms]),
    )
    check_standardised(view, column)
    ends, shifts = find_heaps(distinct, counts, column.resolution, atoms)
    if not ends.size:
        return column
    reason = f"{column.reason}; some values are favoured"
    return replace(column, reason=reason, cell_ends=tuple(ends.tolist()), cell_shifts=tuple(shifts.tolist()))


def constant(view: Cells, reason: str, override: Override) -> Column:
    """Return what a column of one number or date is: an atom over a uniform background of its own size."""
    check_size(view)
    value = float(view.distinct[0])
    size = max(abs(value), 1.0)
    if view.stored == "datetime":
        width = resolution.day_grid(view.distinct)
    elif cells_of.is_whole(view.distinct):
        width = 1.0
    else:
        width = resolution.grid(view.distinct, view.counts()) or resolution.fallback(view.distinct, 0.0)
        width = max(width, size / defaults.MAX_SIGNIFICANT)  # narrower cells of the background have no mass left
    whole = replace(
        override,
        support=override.support or (value - size, value + size),
        families=override.families or ("uniform",),
        atoms=(value,) if override.atoms is None else override.atoms,
    )
    column = _numbers(view, "real", reason, whole)
    assert whole.atoms is not None
    return replace(
        column,
        resolution=override.resolution or width,
        location=value if override.location is None else override.location,
        scale=size if override.scale is None else override.scale,
        atoms=whole.atoms,
        atom_frequencies=smoothed([view.n_observed * (atom == value) for atom in whole.atoms]),
    )


def _numbers(view: Cells, base: str, reason: str, override: Override) -> Column:
    """Return a column with what all numbers have in common: support, mean, range, counts."""
    distinct = view.distinct
    support = override.support
    if support is None:
        least = min([float(distinct[0]), *(override.atoms or ())])
        has_zero = view.stored != "datetime"  # 1970 is no least date
        support = (0.0 if has_zero and least >= 0.0 else -np.inf, np.inf)
    outside = np.flatnonzero((distinct < support[0]) | (distinct > support[1]))
    if outside.size:
        row, value = view.first(outside)
        raise SchemaError(
            f"column {view.name!r} holds {cells_of.value_label(value, view.stored)} in row {row}, outside the support "
            f"that {override.at('support')} gives it",
            " to ".join(cells_of.value_label(bound, view.stored) for bound in support),
            "Widen the support, or mend the cell.",
        )
    return Column(
        view.name,
        base,
        support,
        mean=resolution.summarise(distinct, view.counts())[2],
        minimum=float(distinct[0]),
        maximum=float(distinct[-1]),
        families=override.families,
        n_missing=view.n_missing,
        n_distinct=view.n_distinct,
        dtype=view.stored,
        reason=reason,
    )


def _grid(view: Cells, is_other: np.ndarray) -> tuple[float, str]:
    """Return the width of the grid of the values that are no atoms, 0 where there is none, and how it is described."""
    distinct = view.distinct[is_other]
    if view.stored == "datetime":
        width = resolution.moment_grid(distinct)
        return width, f"recorded to {resolution.moment_text(width)}"
    width = resolution.grid(distinct, view.counts()[is_other])
    if width:
        return width, f"recorded to {width:g}"
    width = _written_grid(view, distinct)
    if width:
        return width, f"recorded to {width:g}, as all are written"
    return 0.0, "no recording grid, so a thousandth of the spread"


def _written_grid(view: Cells, distinct: np.ndarray) -> float:
    """Return the width of the last digit that all numbers of a column are written with, 0 where that tells nothing.

    Amounts that range widely have a grid that is finer than `resolution.grid` looks for in numbers alone.
    """
    digits = view.notation.digits if isinstance(view.notation, NumberNotation) else 0
    if not 0 < digits <= _MOST_WRITTEN_DIGITS or not distinct.size:
        return 0.0
    width = float(f"1e-{digits}")
    return width if np.median(np.abs(distinct)) <= defaults.MAX_SIGNIFICANT * width else 0.0


def _atom_note(view: Cells, atom: np.ndarray) -> str:
    """Return why some values are atoms: ``0 holds 92% of the cells, the next value 0.3%: an atom``."""
    shares = np.asarray(view.counts() / view.n_observed)
    labels = cells_of.labels_of(view)
    n_atom = int(atom.sum())
    largest = float(shares[~atom].max())
    beyond = f"far beyond {'its' if n_atom == 1 else 'their'} neighbours"
    compared = f"the next value {_percent(largest)}" if largest < shares[atom].min() else beyond
    first = np.flatnonzero(atom)[:3]
    held = ", ".join(f"{labels[i]} {'holds ' if i == first[0] else ''}{_percent(float(shares[i]))}" for i in first)
    if n_atom > first.size:
        held = (
            f"{n_atom} values ({', '.join(labels[i] for i in first)}, ...) hold {_percent(float(shares[atom].sum()))}"
        )
    return f"{held} of the cells, {compared}: {'an atom' if n_atom == 1 else 'atoms'}"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{100.0 * share:.2g}%"


def is_amount(view: Cells, is_atom: np.ndarray) -> bool:
    """Return whether whole numbers with atoms are an amount rather than counts: the others range widely."""
    rest = view.distinct[~is_atom]
    if rest.size <= defaults.MAX_INTEGER_LEVELS:
        return False
    spread = resolution.summarise(rest, view.counts()[~is_atom])[1]
    return spread >= ATOM_MIN_WHOLE_SPREAD or atoms_of.is_far(view.distinct, is_atom)


def few_and_apart(view: Cells) -> bool:
    """Return whether fractions are a code: few, repeated often, and off most points of the grid that holds them."""
    few = view.n_distinct <= min(defaults.MAX_INTEGER_LEVELS, CODE_SHARE * view.n_observed)
    if not few:
        return False
    width = resolution.grid(view.distinct, view.counts())
    n_point = (view.distinct[-1] - view.distinct[0]) / width + 1.0 if width else np.inf
    return view.n_distinct < CODE_GRID_FILL * n_point


def on_request(cells: Cells, override: Override, hints: Hints) -> Cells:
    """Return cells as the numbers that somebody asked for, or raise `SchemaError` naming the first that is none."""
    view = cells
    if cells.stored == "text" and not cells.labels:
        view = spelled_number(cells, hints) or spelled_datetime(cells, hints) or cells
    elif cells.stored == "text":
        view = cells_of.spelled_number(cells) or cells
    if view.stored == "number" or (view.stored == "datetime" and override.base == "real"):
        return view
    odd = range(cells.n_distinct)
    if cells.stored == "text":
        odd = [i for i, text in enumerate(cells.distinct) if cells_of.number_of_text(text) is None] or odd
    row = cells.first(odd)[0]
    label = cells_of.labels_of(cells)[int(cells.codes[row - 1])]
    raise SchemaError(
        f"{override.at('base')} asks for {override.base!r} but column {cells.name!r} holds {label!r} in row {row}",
        "numbers",
        "Ask for 'category', or mend the cell.",
    )


def dates_on_request(cells: Cells, override: Override, hints: Hints) -> Cells:
    """Return cells as the dates that somebody asked for, or raise `SchemaError` naming the first that is none.

    Numbers are days such as 20240131, or seconds, milliseconds, micro- or nanoseconds since 1970.
    """
    view = cells
    if cells.stored == "text":
        view = spelled_datetime(cells, hints) or spelled_number(cells, hints) or cells
    if view.stored == "number":
        found = counted_dates(view.distinct)
        view = view if found is None else replace(view.retold("datetime", found[1]), notation=found[0])
    if view.stored == "datetime":
        return view
    texts = cells_of.labels_of(cells)
    ways = [_way(text) for text in texts]
    row = cells.first([i for i, way in enumerate(ways) if not way] or range(cells.n_distinct))[0]
    first = int(cells.codes[row - 1])
    other = next((i for i, way in enumerate(ways) if way != ways[first]), first)
    beside = f" and {texts[other]!r} in row {cells.first([other])[0]}" if ways[first] and other != first else ""
    missing = f"{cells.name}={texts[first]}"
    raise SchemaError(
        f"{override.at('base')} asks for 'date' but column {cells.name!r} holds {texts[first]!r} in row {row}{beside}",
        "dates, all written in one way, numbers such as 20240131, or s, ms, us or ns since 1970 (of 1971 to 2100)",
        f"Mend the cell, or read it as missing with na={{{cells.name!r}: [{texts[first]!r}]}}.",
        command=f"Mend the cell, or read it as missing with --na {shlex.quote(missing)}.",
    )


def _way(text: str) -> str:
    """Return how a date is written, in a word; an empty one where a text is none."""
    number = cells_of.number_of_text(text)
    if number is not None:
        found = counted_dates(np.array([number]))
        return "" if found is None else found[0].pattern
    readings = date_readings([text])
    return "" if readings is None else readings.notations[0].order


def check_finite(view: Cells) -> None:
    """Raise `TableError` naming the first infinity."""
    infinite = np.flatnonzero(np.isinf(view.distinct))
    if infinite.size:
        row, value = view.first(infinite)
        raise TableError(
            f"column {view.name!r} holds {value} in row {row}", "finite numbers", "Leave the cell empty if unknown."
        )


def check_exact(cells: Cells, override: Override) -> None:
    """Raise `TableError` naming the first text that spells a whole number beyond 2^53."""
    inexact = cells_of.inexact(cells)
    if inexact:
        row, value = cells.first(inexact)
        rendered = value if len(value) <= 40 else f"{value[:37]}..."
        raise TableError(
            f"column {cells.name!r} holds the whole number {rendered} in row {row}",
            _WHOLE_LIMIT,
            f"Leave an identifier out with {override.remedy(cells.name, 'excluded')}, or divide the column.",
            command=f"Leave an identifier out with {override.command(cells.name, 'excluded')}, or divide the column.",
        )


def check_size(view: Cells) -> None:
    """Raise `SchemaError` naming the first number that is too large to calculate with."""
    large = np.flatnonzero(np.abs(view.distinct) > LARGEST_NUMBER)
    if large.size:
        row, value = view.first(large)
        raise SchemaError(
            f"column {view.name!r} holds {value:g} in row {row}",
            f"numbers of at most {LARGEST_NUMBER:.0e} in size",
            "Divide the column, or read the extremes as missing.",
        )


def check_standardised(view: Cells, column: Column) -> None:
    """Raise `SchemaError` where a value is so far out that its square in scale units overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.maximum(np.abs(view.distinct - column.location), np.abs(view.distinct)) / column.scale
    far = np.flatnonzero(~(size < LARGEST_STANDARDISED))
    if far.size:
        row, value = view.first(far)
        raise SchemaError(
            f"column {view.name!r} holds {value:g} in row {row}, {size[far[0]]:.0e} scale units from its median",
            f"less than {LARGEST_STANDARDISED:.0e}",
            "Take logarithms, or leave the cell empty.",
        )
