"""From the cells of a column to what it is: base, support, labels, resolution, units, each with its reason.

Looks at training rows only, one column at a time. Rules run from what was asked for (`kinds`), over columns that say
nothing about a population (identifiers, texts), to what the values allow.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bayesjpt import defaults
from bayesjpt.errors import BayesjptWarning, SchemaError, TableError
from bayesjpt.table import cells as cells_of
from bayesjpt.table import resolution
from bayesjpt.table.cells import Cells
from bayesjpt.table.schema import Column, Schema, SetAside, closest

KINDS = ("category", "integer", "real", "aside")
"""What a user may ask of a column: one of the three bases, or to leave it out."""

_ID_NAME = re.compile(
    r"""[\W_]*(id|ids|idx|index|key|pk|serial|no|nr|row[\W_]?(id|no|nr|names?|number)|index_level_\d+)[\W_]*
    |\#|unnamed([\W_].*)?
    |.*[\W_](id|ids|key|pk|no|nr|uuid|guid|ssn|isbn|doi|hash)
    |(id|uuid|guid)([\W_].*)?""",
    re.IGNORECASE | re.VERBOSE,
)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_CAMEL_ID_NAME = re.compile(r"[a-z](Id|ID|Key|Uuid|UUID)$")


def decide_schema(table: Sequence[Cells], kinds: Mapping[str, str] | None) -> tuple[Schema, list[Cells]]:
    """Return the schema of a training table, and its modelled columns' cells as the schema reads them.

    Raises
    ------
    SchemaError
        Where `kinds` names an unknown column or kind or contradicts the values, a column has no observed cell or too
        many labels, or nothing is left to model.
    TableError
        Where a column holds infinities or whole numbers beyond 2^53, or a name or label cannot be stored.
    """
    if kinds is not None and not isinstance(kinds, Mapping):
        raise SchemaError(f"kinds is a {type(kinds).__name__}", "a mapping from column names to kinds")
    kinds = {} if kinds is None else dict(kinds)
    _check_names(table)
    _check_kinds(kinds, [cells.name for cells in table])
    columns, read, set_aside, constant, tokens = [], [], [], [], []
    remedy: dict[str, str] = {}
    for cells in table:
        kind = kinds.get(cells.name)
        if kind not in ("category", "aside"):
            cells, dropped = _without_tokens(cells, kind)
            tokens += dropped
        view = cells_of.interpret(cells)
        reason = "left out on request" if kind == "aside" else None if kind else set_aside_reason(cells, view)
        if reason is not None:
            set_aside.append(SetAside(cells.name, reason))
            remedy[cells.name] = _kind_of_values(view)
            continue
        column, view = decide(cells, view, kind)
        columns.append(column)
        read.append(view)
        if column.n_distinct == 1 and kind is None:
            constant.append(repr(cells.name))
    if not columns:
        reasons = "; ".join(f"{column.name!r}: {column.reason}" for column in set_aside)
        raise SchemaError(
            f"no column is left to model ({reasons})",
            None,
            f"Name one in kinds, for example kinds={dict([next(iter(remedy.items()))])!r}.",
        )
    if tokens:
        warnings.warn(f"read as missing among numbers: {'; '.join(tokens)}", BayesjptWarning, stacklevel=4)
    if constant:
        warnings.warn(
            f"constant columns, read as categories with one label: {', '.join(constant)}", BayesjptWarning, stacklevel=4
        )
    return Schema(tuple(columns), tuple(set_aside)), read


def _check_kinds(kinds: Mapping[str, str], names: Sequence[str]) -> None:
    for name, kind in kinds.items():
        if name not in names:
            raise SchemaError(f"kinds names a column {name!r} that the table does not have", closest(name, names))
        if kind not in KINDS:
            raise SchemaError(f"kind {kind!r} of column {name!r} is unknown", f"one of {', '.join(KINDS)}")


def _check_names(table: Sequence[Cells]) -> None:
    for position, cells in enumerate(table, start=1):
        if cells_of.unstorable(cells.name):
            raise TableError(
                f"the name {cells.name!r} of column {position}, in the header row, holds a NUL or a lone surrogate",
                "characters that can be stored",
                "Rename it.",
            )


def _check_labels(view: Cells) -> None:
    bad = [label for label in (view.labels or view.distinct) if cells_of.unstorable(label)]
    if bad:
        used = [position for position, label in enumerate(view.distinct) if label in bad]
        row, label = view.first(used) if used else (None, bad[0])
        raise TableError(
            f"column {view.name!r} holds {label!r}, with a NUL or a lone surrogate, "
            + (f"in row {row}" if row else "among its declared labels"),
            "characters that can be stored",
            "Mend the text.",
        )


def _without_tokens(cells: Cells, kind: str | None) -> tuple[Cells, list[str]]:
    """Return cells without the tokens for missing numbers, and a note where there were some."""
    kept, tokens = cells_of.without_tokens(cells)
    if not tokens or (kind is None and cells_of.zero_padded(kept)):  # codes with leading zeros are labels
        return cells, []
    return kept, [f"{', '.join(map(repr, tokens))} in column {cells.name!r}"]


def _kind_of_values(view: Cells) -> str:
    """Return the kind to suggest for a column that was set aside."""
    if view.stored != "number":
        return "real" if view.stored == "datetime" else "category"
    return "integer" if _is_whole(view.distinct) and (view.distinct >= 0.0).all() else "real"


def set_aside_reason(cells: Cells, view: Cells) -> str | None:
    """Return why a column, as stored and as interpreted, says nothing about a population of rows; None if it may."""
    n, n_distinct = view.n_observed, view.n_distinct
    enough = n >= defaults.MIN_IDENTIFIER_ROWS
    nearly_all = n_distinct > defaults.IDENTIFIER_SHARE * n
    if view.stored == "text":
        if enough and nearly_all:
            found = f"{n_distinct} distinct texts in {n} observed cells"
            return f"identifier or free text: {found}{_nearly_number(view)}"
        n_label = len(view.labels) or n_distinct
        if n_label > defaults.MAX_LABELS:
            return f"text: {n_label} labels, more than the {defaults.MAX_LABELS} of a category{_nearly_number(view)}"
        return None
    if view.stored != "number" or not enough:
        return None
    if cells.stored == "text" and cells.n_distinct > defaults.IDENTIFIER_SHARE * n and _inexact(cells, view):
        return f"identifier: {cells.n_distinct} distinct whole numbers in {n} observed cells, some beyond 2^53"
    if not _is_whole(view.distinct):
        return None
    range_length = view.distinct[-1] - view.distinct[0] + 1.0
    ordered = is_identifier_name(view.name) or _in_row_order(view)
    if n_distinct == n and n >= defaults.RUNNING_NUMBER_FILL * range_length and ordered:
        return f"running number: {n} whole numbers, all distinct, that fill {n / range_length:.0%} of their range"
    if nearly_all and is_identifier_name(view.name):
        return f"identifier by its name: {n_distinct} distinct whole numbers in {n} observed cells"
    return None


def _in_row_order(view: Cells) -> bool:
    """Return whether the observed values ascend, or descend, from row to row."""
    steps = np.diff(view.codes[view.codes >= 0])
    return bool((steps > 0).all() or (steps < 0).all())


def is_identifier_name(name: str) -> bool:
    """Return whether a column's name is that of an identifier.

    Examples
    --------
    >>> [is_identifier_name(name) for name in ("id", "customer_id", "PatientId", "grid", "price_index", "index")]
    [True, True, True, False, False, True]
    """
    return bool(_ID_NAME.fullmatch(name) or _CAMEL_ID_NAME.search(name))


def _nearly_number(cells: Cells) -> str:
    """Return a hint for a text column most of whose cells nearly spell numbers."""
    if sum(bool(_DECIMAL_COMMA.fullmatch(text)) for text in cells.distinct) > 0.5 * cells.n_distinct:
        return "; most are numbers with a decimal comma, which is not read as a point"
    odd = [i for i, text in enumerate(cells.distinct) if cells_of.number_of_text(text) is None]
    if not odd or len(odd) > 0.1 * cells.n_distinct:
        return ""
    row, value = cells.first(odd)
    return f"; most cells are numbers, the first that is not is {value!r} in row {row}"


def decide(cells: Cells, view: Cells, kind: str | None = None) -> tuple[Column, Cells]:
    """Return what one column, as stored and as interpreted, is, and its cells as the decision reads them.

    Raises
    ------
    SchemaError
        Where the column has no observed cell, or `kind` contradicts its values.
    TableError
        Where it holds infinities or whole numbers beyond 2^53.
    """
    if not cells.n_distinct:
        raise SchemaError(
            f"column {cells.name!r} has no observed cell in {cells.codes.size} rows",
            None,
            f"Drop it, or leave it out with kinds={{{cells.name!r}: 'aside'}}.",
        )
    if kind in ("integer", "real"):
        view = _numbers_on_request(cells, kind)
    if view.stored in ("number", "datetime"):
        _check_finite(view)
        _check_exact(cells, view)
    if kind == "category":
        return _category(view, "kinds asks for a category")
    if kind == "integer":
        return _requested_integer(view)
    if kind == "real":
        return _real(view, "kinds asks for a real column")
    if view.n_distinct == 1:
        return _category(view, f"constant: the only value is {cells_of.labels_of(view)[0]!r}")
    if view.stored == "boolean":
        return _category(view, "true or false")
    if view.stored == "text":
        return _category(view, "stored as a category" if view.labels else f"text with few labels{_nearly_number(view)}")
    if view.stored == "datetime":
        return _real(view, "dates, in days since 1970-01-01")
    return _number(view)


def _number(view: Cells) -> tuple[Column, Cells]:
    distinct = view.distinct
    if not _is_whole(distinct):
        if _few_and_apart(view):
            return _category(view, f"only {distinct.size} different numbers, far apart on their grid: a code")
        large = np.abs(distinct).max() > defaults.LARGEST_INTEGER
        return _real(view, "numbers, some beyond 2^53" if large else "numbers, not all whole")
    span = f"whole numbers from {distinct[0]:.0f} to {distinct[-1]:.0f}"
    if distinct.size == 2:
        return _category(view, f"binary: the only values are {distinct[0]:.0f} and {distinct[1]:.0f}")
    if distinct[0] >= 0.0:
        return _integer(view, f"{span}, none negative")
    return _real(view, f"{span}, some negative: real until rounded families cover them")


def _few_and_apart(view: Cells) -> bool:
    """Return whether fractions are a code: few, repeated often, and off most points of the grid that holds them."""
    few = view.n_distinct <= min(defaults.MAX_INTEGER_LEVELS, defaults.CODE_SHARE * view.n_observed)
    if not few:
        return False
    width = resolution.grid(view.distinct, view.counts())
    n_point = (view.distinct[-1] - view.distinct[0]) / width + 1.0 if width else np.inf
    return view.n_distinct < defaults.CODE_GRID_FILL * n_point


def _numbers_on_request(cells: Cells, kind: str) -> Cells:
    view = cells
    if cells.stored == "text" and not cells.labels:
        view = cells_of.spelled_number(cells) or cells_of.spelled_datetime(cells) or cells
    elif cells.stored == "text":
        view = cells_of.spelled_number(cells) or cells
    if view.stored == "number" or (view.stored == "datetime" and kind == "real"):
        return view
    odd = range(cells.n_distinct)
    if cells.stored == "text":
        odd = [i for i, text in enumerate(cells.distinct) if cells_of.number_of_text(text) is None] or odd
    row = cells.first(odd)[0]
    label = cells_of.labels_of(cells)[int(cells.codes[row - 1])]
    raise SchemaError(
        f"kinds asks for {kind!r} but column {cells.name!r} holds {label!r} in row {row}",
        "numbers",
        "Ask for 'category', or mend the cell.",
    )


def _check_finite(view: Cells) -> None:
    infinite = np.flatnonzero(np.isinf(view.distinct))
    if infinite.size:
        row, value = view.first(infinite)
        raise TableError(
            f"column {view.name!r} holds {value} in row {row}", "finite numbers", "Leave the cell empty if unknown."
        )


def _inexact(cells: Cells, view: Cells) -> list[int]:
    """Return the distinct texts that spell whole numbers beyond 2^53."""
    if cells.stored != "text" or np.abs(view.distinct).max() < defaults.LARGEST_INTEGER:
        return []
    return cells_of.inexact_integers(cells, defaults.LARGEST_INTEGER)


def _check_exact(cells: Cells, view: Cells) -> None:
    inexact = _inexact(cells, view)
    if inexact:
        row, value = cells.first(inexact)
        raise TableError(
            f"column {cells.name!r} holds the whole number {value} in row {row}",
            "at most 2^53 = 9007199254740992 in size, what float64 tells apart",
            f"Leave an identifier out with kinds={{{cells.name!r}: 'aside'}}, or divide the column.",
        )


def _is_whole(distinct: np.ndarray) -> bool:
    return bool((np.abs(distinct) <= defaults.LARGEST_INTEGER).all() and (distinct == np.rint(distinct)).all())


def _base_column(view: Cells, base: str, reason: str) -> Column:
    return Column(
        view.name,
        base,
        (0.0, np.inf),
        n_missing=view.n_missing,
        n_distinct=view.n_distinct,
        dtype=view.stored,
        reason=reason,
    )


def _category(view: Cells, reason: str) -> tuple[Column, Cells]:
    if view.stored == "text":
        _check_labels(view)
    labels = cells_of.labels_of(view)
    counts = dict(zip(labels, view.counts().tolist(), strict=True))
    if view.labels:
        labels = list(view.labels)
    elif view.stored == "boolean" and len(labels) == 2:
        labels = ["False", "True"]
    elif view.stored == "text":
        labels = _sorted_labels(labels)
    if len(labels) > defaults.MAX_LABELS:
        raise SchemaError(
            f"column {view.name!r} has {len(labels)} labels in {view.n_observed} observed cells",
            f"at most {defaults.MAX_LABELS} for a category",
            f"Group rare labels, or leave the column out with kinds={{{view.name!r}: 'aside'}}.",
        )
    column = replace(
        _base_column(view, "category", reason),
        support=(0.0, float(len(labels))),
        labels=tuple(labels),
        frequencies=smoothed([counts.get(label, 0) for label in labels] + [0]),
    )
    return column, view


def _sorted_labels(labels: Sequence[str]) -> list[str]:
    """Return labels in numeric order where all are numbers, otherwise in the order of their characters."""
    numbers = [cells_of.number_of_text(label) for label in labels]
    if any(number is None for number in numbers):
        return sorted(labels)
    return [label for _, label in sorted(zip(numbers, labels, strict=True))]


def smoothed(counts: Sequence[int]) -> tuple[float, ...]:
    """Return shares (count + 1/2) / (n + K/2) over K entries; for labels, the last entry is "other", count 0.

    Examples
    --------
    >>> smoothed([3, 1, 0])
    (0.6363636363636364, 0.2727272727272727, 0.09090909090909091)
    """
    total = sum(counts) + 0.5 * len(counts)
    return tuple((count + 0.5) / total for count in counts)


def _requested_integer(view: Cells) -> tuple[Column, Cells]:
    odd = np.flatnonzero((view.distinct != np.rint(view.distinct)) | (view.distinct < 0.0))
    if odd.size:
        row, value = view.first(odd)
        raise SchemaError(
            f"kinds asks for 'integer' but column {view.name!r} holds {cells_of.number_label(value)} in row {row}",
            "whole numbers from 0",
            "Ask for 'real'.",
        )
    large = np.flatnonzero(view.distinct > defaults.LARGEST_INTEGER)
    if large.size:
        row, value = view.first(large)
        raise TableError(
            f"column {view.name!r} holds {value:g} in row {row}", "at most 2^53 = 9007199254740992 for an integer"
        )
    return _integer(view, "kinds asks for an integer column")


def _integer(view: Cells, reason: str) -> tuple[Column, Cells]:
    counts = view.counts()
    median, spread, mean = resolution.summarise(view.distinct, counts)
    few = view.n_distinct <= defaults.MAX_INTEGER_LEVELS
    column = replace(
        _base_column(view, "integer", reason),
        levels=tuple(view.distinct.tolist()) if few else (),
        frequencies=smoothed(counts.tolist()) if few else (),
        location=median,
        scale=max(spread, 1.0),
        mean=mean,
        maximum=float(view.distinct[-1]),
    )
    return column, view


def _real(view: Cells, reason: str) -> tuple[Column, Cells]:
    """Decide a real column: its grid, then location and scale from the values that are not atoms."""
    distinct, counts = view.distinct, view.counts()
    kept = ~resolution.atoms(counts)
    median, spread, _ = resolution.summarise(distinct[kept], counts[kept])
    if view.stored == "datetime":
        width = resolution.day_grid(distinct)
        note = f"recorded to 1/{round(1 / width)} day" if width < 1.0 else "recorded to the day"
    elif _is_whole(distinct) and distinct[0] < 0.0:
        width, note = 1.0, "recorded to 1"
    else:
        width = resolution.grid(distinct[kept], counts[kept])
        note = f"recorded to {width:g}" if width else "no recording grid, so a thousandth of the spread"
        width = width or resolution.fallback(distinct[kept], spread)
    scale = max(spread, width)
    column = replace(
        _base_column(view, "real", f"{reason}; {note}"),
        support=(0.0 if distinct[0] >= 0.0 else -np.inf, np.inf),
        resolution=width,
        location=median,
        scale=scale,
        mean=resolution.summarise(distinct, counts)[2],
        maximum=float(distinct[-1]),
    )
    check_standardised(view, column)
    return column, view


def check_standardised(view: Cells, column: Column) -> None:
    """Raise `SchemaError` where a value is so far out that its square in scale units overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.maximum(np.abs(view.distinct - column.location), np.abs(view.distinct)) / column.scale
    far = np.flatnonzero(~(size < defaults.LARGEST_STANDARDISED))
    if far.size:
        row, value = view.first(far)
        raise SchemaError(
            f"column {view.name!r} holds {value:g} in row {row}, {size[far[0]]:.0e} scale units from its median",
            f"less than {defaults.LARGEST_STANDARDISED:.0e}",
            "Take logarithms, or leave the cell empty.",
        )
