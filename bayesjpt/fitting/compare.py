"""Where two tables differ: column by column, and in what hangs together, with probabilities."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.errors import BayesjptError, BayesjptWarning, SamplingError, SchemaError, TableError
from bayesjpt.fitting.compare_cells import (
    ColumnCells,
    as_labels,
    cell_codes,
    column_cells,
    in_one_language,
    percent,
    without_values,
)
from bayesjpt.fitting.compare_copies import changed_rows, copied_rows
from bayesjpt.fitting.compare_rounding import AtOneRounding, at_one_rounding
from bayesjpt.table.notation import shared

if TYPE_CHECKING:
    from bayesjpt.circuit.paths import Interval, Labels, Region
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.table.schema import SetAside
    from bayesjpt.table.table import Table

DIFFERS, MAY_DIFFER = 0.95, 0.5
"""Probabilities from which two columns are said to differ, and perhaps to do so."""

_LEAVES, _LEAST_SHARE = 12, 0.02
"""Parts that rows are divided into, and the least share of the rows in each."""

_LEAST_ROWS = 40
"""Rows of both tables below which nothing is said about columns together."""

_SHOWN_PARTS = 4
"""Parts in which the tables differ most that are listed."""

_OPTION = re.compile(r"\b(?:kinds|na)=\{.*\}")
"""Options of reading in the remedy of an error."""


@dataclass(frozen=True)
class ColumnComparison:
    """How a column differs between two tables.

    Parameters
    ----------
    name : str
    probability : float
        That its values have another distribution in the second table, where either was equally probable before.
    size : float
        How much they differ: the largest difference in the probability of any run of values, or set of labels.
    missing : float
        Probability that cells are missing more, or less, often.
    words : str
        What is different, and to what either table was recorded where that is not the same.
    rounding : str
        At which rounding two tables that were recorded to different digits are compared; empty elsewhere.
    """

    name: str
    probability: float
    size: float
    missing: float
    words: str
    rounding: str = ""

    @property
    def verdict(self) -> str:
        """``differs``, ``may differ`` or ``alike``: of the values or of what is missing."""
        both = max(self.probability, self.missing)
        return "differs" if both >= DIFFERS else "may differ" if both >= MAY_DIFFER else "alike"


@dataclass(frozen=True)
class Part:
    """Rows that have something in common, and the share of each table that they are, with 90 % intervals.

    Rows without a value in a column of `or_missing` are among them whatever the event says of that column.
    """

    event: str
    first: tuple[float, float, float]
    second: tuple[float, float, float]
    or_missing: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class TableComparison:
    """Where two tables differ; prints as text of at most 80 characters a line.

    Parameters
    ----------
    columns : tuple of ColumnComparison
        In the order of the first table.
    together : float or None
        Probability that the rows as a whole are distributed differently; None of too few rows.
    parts : tuple of Part
        Where the shares of the two tables differ most; none where they do not.
    only_first, only_second, left_out : tuple of str
        Columns that one table has alone, and those that are not compared.
    reasons : tuple of str
        Why each of those in `left_out` is not.
    n_row : tuple of int
        Of both tables.
    names : tuple of str
        What the tables are called.
    n_copied : int
        Rows that are in both tables, cell by cell.
    """

    columns: tuple[ColumnComparison, ...]
    together: float | None
    parts: tuple[Part, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    left_out: tuple[str, ...]
    n_row: tuple[int, int]
    names: tuple[str, str]
    n_copied: int = 0
    reasons: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> ColumnComparison:
        """Return the answer for a column by its name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"no column {name!r} among {', '.join(column.name for column in self.columns)}")

    @property
    def differing(self) -> tuple[str, ...]:
        """Columns that differ with a probability of `DIFFERS`."""
        return tuple(column.name for column in self.columns if column.verdict == "differs")

    def __repr__(self) -> str:
        from bayesjpt.report.comparison import comparison_text

        return comparison_text(self)

    def _repr_html_(self) -> str:
        from bayesjpt.report.comparison import comparison_html

        return comparison_html(self)


def compare(
    first: Table | Posterior | Any,
    second: Table | Posterior | Any,
    *,
    seed: int = 0,
    names: tuple[str, str] = ("first", "second"),
) -> TableComparison:
    """Return where two tables differ, column by column and together, with probabilities.

    Parameters
    ----------
    first, second : Table, data frame or Posterior
        A posterior stands for the rows that it keeps of its table: a few hundred, so small differences are not seen.
    seed : int
        Divides rows into those on which parts are chosen and those on which they are judged.
    names : (str, str)
        What to call the two tables.

    Returns
    -------
    TableComparison

    Raises
    ------
    TableError, SchemaError
        For what cannot be read as a table, tables without a column in common, and names that are not two texts.
    SamplingError
        For a seed that makes no sense.

    Notes
    -----
    Each probability is that of "differ" where "differ" and "alike" were equally probable before the tables were seen,
    by Bayes factors in closed form (`bayesjpt.queries.two_sample`): of labels and missing cells by their shares, of
    numbers by the mix of both tables in parts of the line, at the digits of the table that has fewer. Together: a joint
    probability tree is grown on one half of the rows to tell the tables apart by all columns, and its leaves are judged
    on the other half, and the other way round; the two log factors are averaged. A row and its copy in the other table
    stay in one half, and tables of the same rows do not differ. See docs/explanation/compare.md.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> rng = np.random.default_rng(1)
    >>> one, other = (pd.DataFrame({"x": rng.normal(size=200), "y": rng.normal(m, 1.0, 200)}) for m in (0.0, 1.0))
    >>> bj.compare(one, other).differing
    ('y',)
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise SamplingError(f"seed = {seed!r}", "a whole number of at least 0")
    if not isinstance(names, list | tuple) or len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise TableError(f"names = {names!r}", "what to call the two tables: two texts")
    both = _as_table(first), _as_table(second)
    known = [{*table.names, *(column.name for column in table.schema.set_aside)} for table in both]
    cells = {name: found for name in _in_order(both) if (found := _cells(both, name)) is not None}
    if not cells:
        raise TableError("two tables without a column in common", "tables with the same columns")
    left_out = sorted(known[0] & known[1] - set(cells))
    alike = {name: at_one_rounding(*found) for name, found in cells.items()}
    cells = {name: (found.first, found.second) for name, found in alike.items()}
    together, parts, n_copied = _together(cells, [table.n_row for table in both], np.random.default_rng(seed))
    columns = tuple(_rounded(_compared(name, *cells[name]), found) for name, found in alike.items())
    if together is not None:  # rows differ where a column does, which halves of them may not show
        found = [max(column.probability, column.missing) for column in columns if column.verdict == "differs"]
        together = max([together, *found])
    return TableComparison(
        columns=columns,
        together=together,
        parts=parts,
        only_first=tuple(sorted(known[0] - known[1])),
        only_second=tuple(sorted(known[1] - known[0])),
        left_out=tuple(left_out),
        n_row=(both[0].n_row, both[1].n_row),
        names=(names[0], names[1]),
        n_copied=n_copied,
        reasons=tuple(_reason(both, name, names) for name in left_out),
    )


def _as_table(given: Any) -> Table:
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.table.table import as_table

    if not isinstance(given, Posterior):
        try:
            return as_table(given)
        except (SchemaError, TableError) as error:  # what these advise are arguments of `as_table`
            remedy = error.remedy and _OPTION.sub(r"bj.as_table(..., \g<0>)", error.remedy)
            raise type(error)(error.found, error.expected, remedy, command=error.command) from None
    if given.reference is None:
        raise TableError("a posterior without rows of its table", "one that `fit` returned, or a table")
    return given.reference


# --- columns ---------------------------------------------------------------------------------------------------------


def _in_order(both: tuple[Table, Table]) -> list[str]:
    """Return the columns that either table models: those of the first, then what the second has alone."""
    return [*both[0].names, *(name for name in both[1].names if name not in both[0].names)]


def _cells(both: tuple[Table, Table], name: str) -> tuple[ColumnCells, ColumnCells] | None:
    """Return a column of both tables; None where one has no such column, or excluded it for what it holds."""
    asides = [_aside(table, name) for table in both]
    is_known = [
        name in table.names or (aside is not None and aside.is_empty) for table, aside in zip(both, asides, strict=True)
    ]
    if not all(is_known):
        return None
    if asides == [None, None]:
        return in_one_language(*(column_cells(table, name) for table in both))
    # a column without any value is excluded from its table; that all its cells are missing is a difference all the same
    full = 0 if asides[0] is None else 1
    values, unseen = column_cells(both[full], name)
    cells = as_labels(values, unseen) if values.column.base == "category" else values
    empty = without_values(cells, both[1 - full].n_row)
    return (cells, empty) if full == 0 else (empty, cells)


def _aside(table: Table, name: str) -> SetAside | None:
    return next((column for column in table.schema.set_aside if column.name == name), None)


def _reason(both: tuple[Table, Table], name: str, names: tuple[str, str]) -> str:
    """Return why a column is not compared: what excluded it, and where, if not in both for the same reason."""
    found = [
        (of_table, aside.reason) for table, of_table in zip(both, names, strict=True) if (aside := _aside(table, name))
    ]
    if len(found) == 2 and found[0][1] == found[1][1]:
        return found[0][1]
    return "; ".join(f"in {of_table} {reason}" for of_table, reason in found)


def _rounded(column: ColumnComparison, found: AtOneRounding) -> ColumnComparison:
    """Return how a column differs, with the digits to which the tables were recorded."""
    words = "; ".join(filter(None, (column.words, found.recorded)))
    return replace(column, words=words, rounding=found.remark)


def _compared(name: str, first: ColumnCells, second: ColumnCells) -> ColumnComparison:
    from bayesjpt.queries.two_sample import labels_log_factor, numbers_log_factor, probability_of

    gaps = [np.array([cells.observed.sum(), (~cells.observed).sum()], np.float64) for cells in (first, second)]
    missing = probability_of(labels_log_factor(*gaps)) if sum(gap[1] for gap in gaps) else 0.0
    if not (first.values.size and second.values.size):
        return ColumnComparison(name, 0.5, 0.0, missing, _gap_words(gaps))
    if len({*first.values.tolist(), *second.values.tolist()}) == 1:  # nothing that could differ was seen
        notes = [_gap_words(gaps)] if missing >= MAY_DIFFER else []
        return ColumnComparison(name, 0.0, 0.0, missing, "; ".join(notes))
    if first.values.dtype == object:
        tallies = [Counter(cells.values.tolist()) for cells in (first, second)]
        labels = sorted({*tallies[0], *tallies[1]})
        counts = [np.array([tally[label] for label in labels], np.float64) for tally in tallies]
        probability = probability_of(labels_log_factor(*counts))
        shares = [count / count.sum() for count in counts]
        size = 0.5 * float(np.abs(shares[0] - shares[1]).sum())
        words = _label_words(labels, *shares)
    else:
        probability = probability_of(numbers_log_factor(first.values, second.values))
        size = _largest_gap(first.values, second.values)
        words = _number_words(first, second)
    notes = [words] if probability >= MAY_DIFFER else []
    notes += [_gap_words(gaps)] if missing >= MAY_DIFFER else []
    return ColumnComparison(name, probability, size, missing, "; ".join(notes))


def _largest_gap(first: np.ndarray, second: np.ndarray) -> float:
    """Return the largest difference in the share of any interval: Kuiper's statistic."""
    places = np.concatenate([first, second])
    below = [np.searchsorted(np.sort(sample), places, side="right") / sample.size for sample in (first, second)]
    difference = np.append(below[0] - below[1], 0.0)
    return float(np.ptp(difference))


def _label_words(labels: Sequence[str], first: np.ndarray, second: np.ndarray) -> str:
    order = np.argsort(-np.abs(first - second), kind="stable")[:3].tolist()
    shares = [(labels[k], float(first[k]), float(second[k])) for k in order]
    return ", ".join(f"{label} {percent(one)} -> {percent(other)}" for label, one, other in shares if one != other)


def _number_words(first: ColumnCells, second: ColumnCells) -> str:
    from bayesjpt.queries.column_summary import between

    halves = []
    for cells in (first, second):
        lo, hi = np.quantile(cells.values, [0.25, 0.75], method="inverted_cdf").tolist()
        halves.append(between(cells.column, lo, hi, 3))
    if halves[0] != halves[1]:
        return f"half {halves[0]} -> {halves[1]}"
    ends = [between(cells.column, float(cells.values.min()), float(cells.values.max())) for cells in (first, second)]
    return f"{ends[0]} -> {ends[1]}" if ends[0] != ends[1] else f"half {halves[0]} in both, other values in between"


def _gap_words(gaps: Sequence[np.ndarray]) -> str:
    return "missing " + " -> ".join(percent(gap[1] / max(gap.sum(), 1.0)) for gap in gaps)


# --- together --------------------------------------------------------------------------------------------------------


def _together(
    cells: dict[str, tuple[ColumnCells, ColumnCells]], n_row: Sequence[int], rng: np.random.Generator
) -> tuple[float | None, tuple[Part, ...], int]:
    """Return the probability that rows as a whole differ, the parts in which they do, and the number of copied rows."""
    from bayesjpt.queries.two_sample import parts_log_factor, probability_of

    side = np.repeat([0, 1], n_row)
    made = None if min(n_row) < _LEAST_ROWS else _both(cells, n_row, side)
    if made is None:
        return None, (), 0
    table, indicator = made
    codes = np.array([cell_codes(both) for both in cells.values()])
    copies = copied_rows(codes, n_row[0])
    if 2 * len(copies) == table.n_row:
        return 0.0, (), len(copies)
    # halves with the same shares of both tables; apart, a row would be judged by what was learned from its copy, or
    # from itself before its gaps were filled
    half = np.concatenate([rng.permutation(np.arange(n) % 2) for n in n_row])
    for pairs in (changed_rows(codes, n_row), copies):
        half[pairs[:, 1]] = half[pairs[:, 0]]
    factors, parts = [], []
    for number in range(2):
        train, judged = np.flatnonzero(half == number), np.flatnonzero(half != number)
        found = _leaves(table.take(train), indicator)
        rows = table.take(judged)
        part = _which(rows, found)
        counts = [np.bincount(part[side[judged] == k], minlength=len(found)).astype(np.float64) for k in range(2)]
        factors.append(parts_log_factor(*counts))
        parts.append((found, counts, [_gaps(rows, region, part == k) for k, region in enumerate(found)]))
    probability = probability_of(float(np.mean(factors)))
    differing = _parts(table, *parts[int(np.argmax(factors))]) if probability >= MAY_DIFFER else ()
    return probability, differing, len(copies)


def _both(
    cells: dict[str, tuple[ColumnCells, ColumnCells]], n_row: Sequence[int], side: np.ndarray
) -> tuple[Table, str] | None:
    """Return the rows of both tables as one, and the name of the column that says whose each is."""
    from bayesjpt.table.cells import moments
    from bayesjpt.table.table import as_table

    columns: dict[str, Any] = {}
    for name, both in cells.items():
        is_text = both[0].values.dtype == object
        column = np.full(sum(n_row), None, object) if is_text else np.full(sum(n_row), np.nan)
        column[np.concatenate([of_table.observed for of_table in both])] = np.concatenate(
            [of_table.values for of_table in both]
        )
        is_date = both[0].column.dtype == "datetime" and not is_text
        columns[name] = moments(column) if is_date else column
    indicator = "table"
    while indicator in columns:
        indicator += "_"
    columns[indicator] = np.array(["first", "second"], object)[side]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BayesjptWarning)
        try:
            joined = as_table(columns)
        except BayesjptError:  # nothing but the indicator is left to look at
            return None
    # numbers and dates lost how the tables write them, which conditions on them tell
    notations = {name: shared(*(one.column.notation for one in both)) for name, both in cells.items()}
    told = [
        column if column.base == "category" else replace(column, notation=notations.get(column.name))
        for column in joined.schema
    ]
    return joined.with_schema(replace(joined.schema, columns=tuple(told))), indicator


def _leaves(table: Table, indicator: str) -> list[Region]:
    """Return the conditions of the leaves of a tree that tells the tables apart, those of most rows first."""
    from bayesjpt.circuit.paths import tree_nodes
    from bayesjpt.families import registry
    from bayesjpt.structure.jpt import learn_jpt

    features = [column.name for column in table.schema if column.name != indicator and column.n_distinct != 1]
    if not features:
        return [{}]
    circuit = learn_jpt(
        table,
        targets=[indicator],
        features=features,
        max_leaves=_LEAVES,
        min_rows=max(int(_LEAST_SHARE * table.n_row), 5),
        min_improvement=0.0,
        dictionary=lambda column: registry.dictionary(column)[:1],
    )
    regions = [node.region for node in tree_nodes(circuit) if not node.children]
    return sorted(regions, key=lambda region: -int(_meets(table, region).sum()))


def _meets(table: Table, region: Region) -> np.ndarray:
    """Return which rows may be in a region: bool (n_row,); a missing cell excludes nothing."""
    from bayesjpt.circuit.paths import Interval

    found = np.ones(table.n_row, bool)
    for k, part in region.items():
        values = table.values[k]
        inside = (
            (values >= part.lo) & (values <= part.hi) if isinstance(part, Interval) else np.isin(values, list(part))
        )
        found &= inside | ~table.observed[k]
    return found


def _which(table: Table, regions: Sequence[Region]) -> np.ndarray:
    """Return the part of each row: the first that it meets."""
    met = np.array([_meets(table, region) for region in regions])
    return met.argmax(axis=0)


def _gaps(table: Table, region: Region, rows: np.ndarray) -> tuple[str, ...]:
    """Return the columns of a region in which some of its rows have no value."""
    return tuple(table.schema.names[k] for k in region if not table.observed[k, rows].all())


def _met(table: Table, k: int, part: Interval | Labels) -> Interval | Labels:
    """Return a condition on a column without the code of other labels, where the tables have none."""
    from bayesjpt.circuit.paths import Interval

    if isinstance(part, Interval) or (table.values[k] == len(table.schema.columns[k].labels)).any():
        return part
    return tuple(code for code in part if code < len(table.schema.columns[k].labels)) or part


def _parts(
    table: Table, regions: Sequence[Region], counts: Sequence[np.ndarray], gaps: Sequence[tuple[str, ...]]
) -> tuple[Part, ...]:
    """Return the parts whose shares differ most, where it is certain that they do."""
    from scipy.special import betaincinv

    from bayesjpt.queries.paths import conditions

    found = []
    for k, region in enumerate(regions):
        intervals = []
        for n_rows in counts:
            inside, outside = n_rows[k] + 0.5, n_rows.sum() - n_rows[k] + 0.5
            ends = betaincinv(inside, outside, [0.05, 0.95]).tolist()
            intervals.append((float(n_rows[k] / max(n_rows.sum(), 1.0)), *ends))
        first, second = intervals
        region = {k: _met(table, k, part) for k, part in region.items()}
        if region and (first[1] > second[2] or second[1] > first[2]):
            found.append(Part(conditions(region, table.schema), first, second, gaps[k]))
    return tuple(sorted(found, key=lambda part: -abs(part.first[0] - part.second[0]))[:_SHOWN_PARTS])
