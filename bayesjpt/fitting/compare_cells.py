"""The cells of a column of two tables, in one language: numbers where both hold numbers, labels elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from bayesjpt.table.schema import Column
    from bayesjpt.table.table import Table


@dataclass(frozen=True, eq=False)
class ColumnCells:
    """A column of one table: its observed values as numbers or as labels, and which rows these are.

    Parameters
    ----------
    column : Column
    values : float64 or object (n_observed,)
        Numbers, days since 1970-01-01, codes of labels, or labels as texts.
    observed : bool (n_row,)
    """

    column: Column
    values: np.ndarray
    observed: np.ndarray


def column_cells(table: Table, name: str) -> tuple[ColumnCells, np.ndarray | None]:
    """Return a column of a table, and labels that its schema does not know: object (n_observed,), None elsewhere."""
    k = table.schema.index(name)
    seen, unseen = table.observed[k], table.unseen.get(k)
    return ColumnCells(table.schema.columns[k], table.values[k, seen], seen), None if unseen is None else unseen[seen]


def in_one_language(first: tuple[ColumnCells, Any], second: tuple[ColumnCells, Any]) -> tuple[ColumnCells, ColumnCells]:
    """Return a column of both tables in one language: numbers where both hold numbers, labels elsewhere.

    True and false, yes and no in any language, and 0 and 1 are the same two answers.

    Parameters
    ----------
    first, second : (ColumnCells, object (n_observed,) or None)
        As `column_cells` returns them.
    """
    if found := _as_answers(first, second):
        return found
    kinds = [_kind(cells.column) for cells, _ in (first, second)]
    if kinds[0] == kinds[1] != "label":
        return first[0], second[0]
    if set(kinds) == {"label", "number"}:
        numbers = [
            cells if kind == "number" else _as_numbers(cells)
            for (cells, _), kind in zip((first, second), kinds, strict=True)
        ]
        if numbers[0] is not None and numbers[1] is not None:
            return numbers[0], numbers[1]
    return as_labels(*first), as_labels(*second)


def _as_answers(
    first: tuple[ColumnCells, Any], second: tuple[ColumnCells, Any]
) -> tuple[ColumnCells, ColumnCells] | None:
    """Return answers that tables spell differently as labels of one table; None for others, and for 0 and 1 in both."""
    both = [cells for cells, _ in (first, second)]
    if all(cells.column.dtype == "number" for cells in both):
        return None
    answers = [_answers(cells) for cells in both]
    known = [answer for answer in answers if answer is not None]
    if len(known) < 2:
        return None
    no_yes = next((pair for cells in both if len(pair := _no_and_yes(cells.column)) == 2), ("False", "True"))
    found = [
        ColumnCells(cells.column, np.array(no_yes, object)[answer.astype(np.int64)], cells.observed)
        for cells, answer in zip(both, known, strict=True)
    ]
    return found[0], found[1]


def _answers(cells: ColumnCells) -> np.ndarray | None:
    """Return which cells say true, yes or 1: bool (n_observed,); None where one says neither this nor its opposite."""
    if cells.column.base != "category":
        is_answer = cells.column.dtype == "number" and np.isin(cells.values, (0.0, 1.0)).all()
        return cells.values == 1.0 if is_answer else None
    no_yes = _no_and_yes(cells.column)
    if not set(cells.column.labels) <= set(no_yes) or (cells.values >= len(cells.column.labels)).any():
        return None
    return np.array([label == no_yes[1] for label in cells.column.labels])[cells.values.astype(np.int64)]


def _no_and_yes(column: Column) -> tuple[str, ...]:
    """Return the label of no and that of yes; nothing where the labels are no answers."""
    from bayesjpt.table.yes_no import same_answer, truth

    if column.dtype == "boolean":
        return "False", "True"
    if column.dtype == "number":
        return "0", "1"
    labels = column.labels
    if len(labels) == 1:  # which language a single answer is in, nothing tells: English
        said = same_answer(labels[0], ("no", "yes")) or same_answer(labels[0], ("false", "true"))
        return () if said is None else (labels[0], "yes") if said in ("no", "false") else ("no", labels[0])
    no, yes = truth("false", labels), truth("true", labels)
    return () if no is None or yes is None else (no, yes)


def as_labels(cells: ColumnCells, unseen: np.ndarray | None) -> ColumnCells:
    """Return cells whose values are texts, as the table writes them: object (n_observed,)."""
    from bayesjpt.table.write import texts

    return ColumnCells(cells.column, np.array(texts(cells.column, cells.values, unseen), object), cells.observed)


def _kind(column: Column) -> str:
    return "label" if column.base == "category" else "date" if column.dtype == "datetime" else "number"


def _as_numbers(cells: ColumnCells) -> ColumnCells | None:
    """Return labels as the numbers that they spell, as those of a few rows may be; None where one spells none."""
    from bayesjpt.table.cells import number_of_text

    numbers = [number_of_text(label) for label in cells.column.labels]
    if any(number is None for number in numbers) or (cells.values >= len(numbers)).any():
        return None
    column = replace(cells.column, base="real", labels=())
    return ColumnCells(column, np.array(numbers, np.float64)[cells.values.astype(np.int64)], cells.observed)


def without_values(cells: ColumnCells, n_row: int) -> ColumnCells:
    """Return a column that is empty in a table of so many rows, in the language of the one that has values."""
    return ColumnCells(cells.column, cells.values[:0], np.zeros(n_row, bool))


def percent(share: float) -> str:
    """Return a share in percent; what is there is never shown as nothing, nor what is not all as all."""
    if 0.0 < share < 0.01:
        return "<1 %"
    if 0.99 < share < 1.0:
        return ">99 %"
    return f"{100.0 * share:.0f} %"


def cell_codes(both: tuple[ColumnCells, ColumnCells]) -> np.ndarray:
    """Return numbers of the cells of a column, the second table's behind the first's: float64 (n_row,).

    Alike where cells are; NaN where they are missing.
    """
    observed = np.concatenate([cells.observed for cells in both])
    codes = np.full(observed.size, np.nan)
    codes[observed] = np.unique(np.concatenate([cells.values for cells in both]), return_inverse=True)[1]
    return codes
