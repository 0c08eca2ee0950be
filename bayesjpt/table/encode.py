"""Cells under a schema: from what a column holds to the floats and codes that the kernels read.

Training rows and new rows take the same way. Nothing is decided here.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bayesjpt import defaults
from bayesjpt.errors import SchemaError, TableError, warn
from bayesjpt.table import cells as cells_of
from bayesjpt.table.cells import Cells
from bayesjpt.table.interpret import (
    spelled_datetime,
    spelled_number,
    tokens_text,
    without_label_tokens,
    without_tokens,
)
from bayesjpt.table.iso_dates import is_iso
from bayesjpt.table.numeric import check_standardised
from bayesjpt.table.schema import Column, Schema, closest
from bayesjpt.table.unreadable import Unreadable, new_cells_without_unreadable, unreadable_text
from bayesjpt.table.written_dates import COUNTED, DateNotation
from bayesjpt.table.written_durations import DurationNotation
from bayesjpt.table.written_numbers import is_currency, number_readings
from bayesjpt.table.yes_no import same_answer

UNSEEN = ("other", "error", "missing")
"""What becomes of a label that training never showed."""

OUTSIDE = ("error", "missing", "part")
"""What becomes of a number that no likelihood of its column can give."""


def align(table: Sequence[Cells], schema: Schema, *, ignore_new: bool = False) -> list[Cells | None]:
    """Return the cells of each column of a schema, None where new rows do not have it.

    Spaces around a name tell no columns apart: some kinds of files keep them, others do not.

    Columns that the schema does not know are an error, or are ignored with a warning where `ignore_new` and it knows
    another: rows whose columns have other names, such as those of arrays, would have no cell at all.

    Raises
    ------
    SchemaError
        Where the rows have a column that the schema does not know.
    """
    ignored = {column.name for column in schema.set_aside}
    by_name = {cells.name: cells for cells in table}
    known = [*schema.names, *ignored]
    for name in [name for name in by_name if name not in known]:
        as_known = cells_of.name_among(name, known)
        if as_known not in by_name:
            by_name[as_known] = by_name.pop(name)
    new = [name for name in by_name if name not in ignored and name not in schema.names]
    none_known = len(new) == len(by_name) and len(schema) > 1  # of a single column, predictions have no evidence anyway
    if new and (none_known or not ignore_new):
        raise SchemaError(
            f"the rows have a column {new[0]!r} that training did not show",
            closest(new[0], schema.names),
            "Rename or drop it.",
        )
    if new:
        examples = ", ".join(map(repr, new[:5])) + (f" and {len(new) - 5} more" if len(new) > 5 else "")
        warn(f"columns that training did not show are ignored: {examples}")
    for name in schema.names:
        if name in by_name and by_name[name].excluded:
            raise SchemaError(
                f"column {name!r} is {by_name[name].excluded}", "cells as in training", "Convert or drop it."
            )
    return [by_name.get(name) for name in schema.names]


def encode(
    table: Sequence[Cells | None], schema: Schema, n_row: int, unseen: str, *, outside: str = "error"
) -> tuple[np.ndarray, np.ndarray, dict[int, np.ndarray]]:
    """Return values, float64 (n_column, n_row), observed, bool of the same shape, and unseen labels of cells.

    The last are as in `bayesjpt.table.table.Table`.

    Raises
    ------
    SchemaError
        Where a value lies outside its column's support and no likelihood of the column reaches it, or a label is unseen
        and `unseen` is ``error``.
    TableError
        Where a value is infinite.
    """
    values = np.empty((len(schema), n_row))
    observed = np.zeros((len(schema), n_row), bool)
    unknown: dict[int, np.ndarray] = {}
    news: list[str] = []
    tokens: list[tuple[str, str]] = []
    beyond: list[str] = []
    unreadable: list[Unreadable] = []
    for position, (cells, column) in enumerate(zip(table, schema, strict=True)):
        if cells is None:
            values[position] = filler(column)
            continue
        if column.dtype in ("number", "datetime") or _are_numbers(column.labels):
            cells, dropped = without_tokens(cells, alone=True)
            tokens += [(token, column.name) for token in dropped]
        if column.base == "category":
            if unseen == "other":
                cells, dropped = without_label_tokens(cells, cells_of.NO_LABEL_TOKENS.difference(column.labels))
                tokens += [(token, column.name) for token in dropped]
            known = _label_codes(cells, column, unseen, news)
            if (known == len(column.labels)).any():
                labels = np.array([*_labels(cells, column), None], object)
                labels[:-1][known != len(column.labels)] = None
                unknown[position] = labels[cells.codes]
        else:
            cells = _readable(cells, column, unreadable, are_part=outside == "part")
            cells = _as_numbers(cells, column, beyond, outside)
            known = cells.distinct
        row = np.append(known, np.nan)[cells.codes]
        np.logical_not(np.isnan(row), out=observed[position])
        values[position] = row if observed[position].all() else np.where(observed[position], row, filler(column))
    if tokens:
        warn(f"read as missing: {tokens_text(tokens)}")
    if unreadable:
        warn(unreadable_text(unreadable))
    if news:
        warn(f'labels not seen in training, read as "other": {"; ".join(news)}')
    if beyond:
        warn(f"values that training did not show: {'; '.join(beyond)}")
    return values, observed, unknown


def _are_numbers(labels: Sequence[str]) -> bool:
    """Return whether labels are amounts such as $0 and $1, beside which training took words for missing."""
    return bool(labels) and cells_of.NO_NUMBER_TOKENS.isdisjoint(labels) and number_readings(labels) is not None


def filler(column: Column) -> float:
    """Return the valid value that a missing cell of a column holds."""
    if column.base == "category":
        return 0.0
    value = np.rint(column.location) if column.base == "integer" else column.location
    return float(np.clip(value, *column.support))


def _label_codes(cells: Cells, column: Column, unseen: str, news: list[str]) -> np.ndarray:
    """Return the code of each distinct value, NaN for missing; append a note on unseen labels to `news`."""
    if not column.other and unseen == "other":
        unseen = "error"
    names = column.code_names if unseen == "other" else column.labels
    code = {label: float(number) for number, label in enumerate(names)}
    labels = _labels(cells, column)
    unknown = [position for position, label in enumerate(labels) if label not in code]
    if unknown and unseen != "missing":
        row, _ = cells.first(unknown)
        first = labels[int(cells.codes[row - 1])]
        if unseen == "error":
            raise SchemaError(
                f"column {column.name!r} holds the unseen label {first!r} in row {row}",
                f"one of {', '.join(map(repr, column.labels[:10]))}{', ...' if len(column.labels) > 10 else ''}",
                f"Use {'' if not column.other else "unseen='other' or "}unseen='missing' to accept it.",
                command=f"Correct it, or read it as missing with --na {shlex.quote(f'{column.name}={first}')}.",
            )
        examples = ", ".join(repr(labels[position]) for position in unknown[:5])
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        news.append(f"{examples}{more} in column {column.name!r} (first in row {row})")
    other = np.nan if unseen == "missing" else float(len(column.labels))
    return np.array([code.get(label, other) for label in labels])


def _labels(cells: Cells, column: Column) -> list[str]:
    """Return the label of each distinct value, as the schema spells it."""
    return [_spelled_as(label, cells, column) for label in cells_of.labels_of(cells)]


def _spelled_as(label: str, cells: Cells, column: Column) -> str:
    """Return a label as the schema spells it: 1 for 1.0, +1 for 1, True for TRUE, one spelling for each date."""
    if column.dtype == "number" and cells.stored in ("text", "boolean"):
        value = {"True": 1.0, "False": 0.0}.get(label, cells_of.number_of_text(label))
        return label if value is None or not np.isfinite(value) else cells_of.number_label(value)
    if column.dtype == "boolean":
        return {"1": "True", "0": "False", "true": "True", "false": "False"}.get(label.lower(), label)
    if column.is_yes_no and label not in column.labels:
        return same_answer(label, column.labels) or label
    if column.dtype == "datetime" and cells.stored == "text":
        return cells_of.label_as_stored(label, "datetime") or label
    # a number that other tables hold as such, or write without its sign
    return f"+{label}" if label not in column.labels and f"+{label}" in column.labels else label


def _readable(cells: Cells, column: Column, unreadable: list[Unreadable], *, are_part: bool) -> Cells:
    """Return cells without the few that are no numbers, or dates, as the column's are; those are appended."""
    if cells.stored != "text" or _as_written(cells, column) is not None:
        return cells
    are_times = column.dtype == "datetime" or isinstance(column.notation, DateNotation | DurationNotation)
    kept, found = new_cells_without_unreadable(cells, are_times=are_times, are_part=are_part)
    if found is None or _as_written(kept, column) is None:
        return cells
    unreadable.append(found)
    return kept


def _as_numbers(cells: Cells, column: Column, beyond: list[str], outside: str) -> Cells:
    """Return cells as the numbers or days that a schema expects, checked against what its likelihoods can give.

    What they cannot give is an error, or missing. A note on that, on values outside the column's support that they can
    give all the same, and on fractions among whole numbers, which are rounded, is appended to `beyond`.
    """
    if not cells.n_distinct:
        return replace(cells, stored=column.dtype, distinct=np.empty(0))
    view = cells
    if cells.stored == "text":
        view = _as_written(cells, column) or cells
    elif cells.stored == "number":
        view = _as_counted(cells, column) or cells
    if view.stored != column.dtype:
        _refuse_text(cells, column)
    infinite = np.flatnonzero(np.isinf(view.distinct))
    if infinite.size:
        row, value = view.first(infinite)
        raise TableError(f"column {view.name!r} holds {value} in row {row}", "finite numbers")
    if column.base == "integer" and (view.distinct != np.rint(view.distinct)).any():
        view = _rounded(view, column, beyond)
    unusual = _outside(view.distinct, column.support)
    impossible = unusual
    if column.base == "real" and unusual.any():
        impossible = unusual & _outside(view.distinct, _reach(column))
    if column.base == "integer":
        impossible |= np.abs(view.distinct) > defaults.LARGEST_INTEGER
    if impossible.any() and outside != "error":
        row, value = view.first(np.flatnonzero(impossible))
        beyond.append(f"{column.text(value)} in column {column.name!r} (first in row {row}), read as missing")
        view, unusual = cells_of.without_distinct(view, impossible), unusual[~impossible]
    elif impossible.any():
        row, value = view.first(np.flatnonzero(impossible))
        raise SchemaError(
            f"column {column.name!r} holds {column.text(value)} in row {row}",
            expected_of(column),
            "Mend the cell, or leave it empty.",
        )
    if unusual.any():
        row, value = view.first(np.flatnonzero(unusual))
        beyond.append(f"{column.text(value)} in column {column.name!r} (first in row {row})")
    if column.base == "real":
        check_standardised(view, column)
    return view


def _rounded(view: Cells, column: Column, beyond: list[str]) -> Cells:
    """Return numbers of a column of whole numbers, fractions rounded, with a note."""
    row, value = view.first(np.flatnonzero(view.distinct != np.rint(view.distinct)))
    whole = column.text(float(np.rint(value)) + 0.0)
    beyond.append(
        f"{column.text(value)} in column {column.name!r} of whole numbers, read as {whole} (first in row {row})"
    )
    return view.retold(view.stored, np.rint(view.distinct) + 0.0)


def _as_counted(cells: Cells | None, column: Column) -> Cells | None:
    """Return numbers as the days that they stand for in a column of counted dates; None where they stand for none."""
    if cells is None or not isinstance(column.notation, DateNotation) or column.notation.order not in COUNTED:
        return None
    days = [column.notation.value_of_number(value) for value in cells.distinct.tolist()]
    return None if None in days else cells.retold("datetime", np.array(days, np.float64))


def _as_written(cells: Cells, column: Column) -> Cells | None:
    """Return texts as numbers or days: as the training table spells them, or in any other way that they agree on."""
    if is_iso(column):  # all in one go, which column.notation would read one by one
        days = cells_of.spelled_datetime(cells)
        if days is not None:
            return days
    if column.notation is not None:
        values = [column.notation.value(text) for text in cells.distinct]
        if None not in values:
            return cells.retold(column.dtype, np.array(values, np.float64))
    if column.dtype == "datetime":
        return spelled_datetime(cells) or _as_counted(spelled_number(cells), column)
    found = spelled_number(cells)
    if found is None and isinstance(column.notation, DateNotation | DurationNotation):
        return spelled_datetime(cells)
    unit = "" if found is None or found.notation is None else getattr(found.notation, "suffix", "").strip()
    known = getattr(column.notation, "suffix", "").strip()
    return None if unit and unit != known and not is_currency(unit) else found


def _outside(values: np.ndarray, interval: tuple[float, float]) -> np.ndarray:
    return (values < interval[0]) | (values > interval[1])


def _reach(column: Column) -> tuple[float, float]:
    """Return the least and largest value that some likelihood of a column can give.

    Backgrounds give no other than they have seen, and neither do those of levels where there are others.
    """
    from bayesjpt.families import registry

    typed = [family for family in registry.dictionary(column) if family.statistical_type != "none"]
    free = [family for family in typed if family.statistical_type not in ("nominal", "ordinal")]
    found = [
        column.support if family.statistical_type == "support" else family.support for family in free or typed
    ]  # where the column ends, so does a family of any shape
    return min((lo for lo, _ in found), default=math.inf), max((hi for _, hi in found), default=-math.inf)


def expected_of(column: Column) -> str:
    """Return in words what a column of numbers may hold."""
    lo, hi = (column.text(bound) for bound in column.support)
    kind = "whole numbers" if column.base == "integer" else "dates" if column.dtype == "datetime" else "numbers"
    if np.isfinite(column.support).all():
        where = "around the only value of training" if column.minimum == column.maximum else "the column's support"
        return f"{kind} from {lo} to {hi}, {where}"
    if np.isfinite(column.support[1]):
        return f"{kind} up to {hi}, as in training"
    return f"{kind} from {lo}, as in training" if np.isfinite(column.support[0]) else kind


def _refuse_text(cells: Cells, column: Column) -> None:
    labels = cells_of.labels_of(cells)
    row = _first_strange(cells, labels, column)
    label = labels[int(cells.codes[row - 1])]
    expected = "dates" if column.dtype == "datetime" else "numbers"
    example = f" such as {column.text(column.minimum)}" if column.notation is not None else ""
    raise SchemaError(
        f"column {column.name!r} holds {label!r} in row {row}", f"{expected}{example}, as in training", "Mend the cell."
    )


def _first_strange(cells: Cells, labels: list[str], column: Column) -> int:
    """Return the first row, from 1, whose cell cannot be read; where each can by itself, that is not as in training."""
    strange = [number for number, label in enumerate(labels) if not _is_as_in_training(label, cells, column)]
    row, _ = cells.first(strange or range(len(labels)))
    if cells.stored != "text":
        return row
    codes, first = np.unique(cells.codes, return_index=True)
    rows = dict(zip(codes.tolist(), first.tolist(), strict=True))
    for number in sorted(strange, key=rows.__getitem__):
        alone = Cells(cells.name, "text", np.array([labels[number]], object), np.zeros(1, np.int64))
        if _as_written(alone, column) is None:
            return rows[number] + 1
    return row


def _is_as_in_training(label: str, cells: Cells, column: Column) -> bool:
    """Return whether a cell that spells this is one of the column's numbers or dates, written as in training."""
    if column.notation is not None:
        return cells.stored in ("text", "number") and column.notation.value(label) is not None
    if cells.stored != "text":
        return False
    return cells_of.label_as_stored(label, column.dtype) is not None


def with_fillers(schema: Schema, values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return rows, float64 (n_row, n_column), whose missing cells hold a valid value."""
    return np.where(missing, [filler(column) for column in schema], values)
