"""What an `ExpertTree` explains: one response or several, as numbers and codes, with the expert of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable

from bayesjpt.errors import ModelError, counted, warn
from bayesjpt.families.skewed import is_skewed
from bayesjpt.kernels.expert_tree import GAMMA, GAUSSIAN, KIND_NAMES, LOGISTIC, MULTINOMIAL, POISSON
from bayesjpt.table.cells import Cells, is_whole
from bayesjpt.table.covariates import check_size, spread_of
from bayesjpt.table.frames import frame_cells
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table, as_table

KINDS = {name: code for code, name in KIND_NAMES.items()}
_BASES = {GAUSSIAN: "real", GAMMA: "real", POISSON: "integer", LOGISTIC: "category", MULTINOMIAL: "category"}
_UNSEEN = 1.0
"""In place of a missing value: allowed under every expert, and not looked at."""


class Response(NamedTuple):
    """A column that is explained, as the experts see it.

    Attributes
    ----------
    name : str
    suffix : str
        Of its variables' names: empty of a y without columns, ``_height`` of the column height.
    kind : int
        Of its experts.
    labels : tuple of str
        Of a multinomial expert, whose predictors are one a label; none of others.
    offset, scale : float
        What a predictor is without coefficients, and what it is per unit of x . b: mean and spread of a gaussian
        expert's column.
    """

    name: str
    suffix: str
    kind: int
    labels: tuple[str, ...]
    offset: float
    scale: float

    @property
    def discrete(self) -> bool:
        return self.kind in (LOGISTIC, MULTINOMIAL, POISSON)


class Responses(NamedTuple):
    """All that a tree explains.

    Attributes
    ----------
    table : Table
        Their columns.
    each : tuple of Response
    values : float64 (n_row,) or (n_row, n_response)
        Numbers and codes, with ones where a value is missing.
    seen : bool (n_row,)
        Whether a row has a value of every response.
    """

    table: Table
    each: tuple[Response, ...]
    values: np.ndarray
    seen: np.ndarray

    @property
    def kinds(self) -> tuple[int, ...]:
        return tuple(response.kind for response in self.each)


def read_responses(name: str, y: Any, experts: Any) -> Responses:
    """Return what the tree of some name explains, and by which experts.

    Raises
    ------
    ModelError
        For names that variables cannot have, infinite values, columns of other types than numbers, labels and dates, no
        row that has all of them, and experts that do not fit.
    TableError
        For values whose squares overflow.
    """
    is_data = isinstance(y, SharedVariable)
    if is_data:
        y = y.get_value()
    several = isinstance(y, Table) or _has_columns(name, y)
    if isinstance(y, Table):
        table, names = _closed(y), list(y.names)
        fitting = [
            _fitting_column(column, table.values[position, table.observed[position]])
            for position, column in enumerate(table.schema)
        ]
        kinds = _kinds(names, fitting, experts)
    else:
        columns = y if several else {name: y}
        cells = frame_cells(columns)
        names = [each.name for each in cells]
        if not names or not cells[0].codes.size:
            raise ModelError(f"y of {name!r} without any value", "one at least")
        kinds = _kinds(names, [_fitting_cells(each, is_data=is_data) for each in cells], experts)
        bases = {each: _BASES[kind] for each, kind in zip(names, kinds, strict=True)}
        # a closed list of labels: the model has no other
        table = as_table(columns, kinds=bases, other=False)
    if several:
        for each in names:
            check_name(each, "response")
    seen = table.observed.all(axis=0)
    if not seen.any():
        raise ModelError(f"no row of {name!r} has a value of {', '.join(names)}", "one at least")
    each = tuple(
        _response(table, seen, position, kind, f"_{names[position]}" if several else "")
        for position, kind in enumerate(kinds)
    )
    if not is_data:  # data may stand for values that are set later
        for position, kind in enumerate(kinds):
            _check_constant(table.schema.columns[position], table.values[position, seen], kind)
    values = np.where(table.observed, table.values, _UNSEEN)
    return Responses(table, each, np.ascontiguousarray(values.T) if several else values[0], seen)


def check_name(name: str, what: str) -> None:
    """Raise `ModelError` for a name of which PyMC and ArviZ make no variable's."""
    if "/" in name:
        raise ModelError(f"{what} {name!r}", "a name without a slash, which parts groups of draws", "Rename it.")


def tell_missing(responses: Responses, *, steps: bool) -> None:
    """Warn of rows that lack a value and so say nothing; over time of those alone that lack some and have others."""
    seen, some = responses.seen, responses.table.observed.any(axis=0)
    n = int((some & ~seen).sum() if steps else (~seen).sum())
    if n:
        one = n == 1
        what = ("is a step" if one else "are steps") + " without any" if steps else "has" if one else "have"
        what += "" if steps else " a log density of 0"
        warn(f"{counted(n, 'row')} without a value of {'some' if len(responses.each) > 1 else 'the'} response {what}")


def _has_columns(name: str, y: Any) -> bool:
    try:
        n_axis = 2 if isinstance(y, Mapping) else np.ndim(y)
    except (TypeError, ValueError):
        n_axis = 0
    if n_axis not in (1, 2):
        raise ModelError(f"y of {name!r} with {n_axis} axes", "one value a row, or a column for each response")
    return n_axis == 2


def _closed(table: Table) -> Table:
    """Return a table whose lists of labels are closed, with unknown labels as missing: the model has no other."""
    columns = [replace(column, other=False) for column in table.schema]
    n_label = np.array([len(column.labels) if column.base == "category" else np.inf for column in columns])
    strange = table.observed & (table.values >= n_label[:, None])
    if strange.any():
        n = int(strange.any(axis=0).sum())
        count = "counts" if n == 1 else "count"
        warn(f"{counted(n, 'row')} with a label of y that its schema does not know {count} as missing")
    return Table(Schema(tuple(columns), table.schema.set_aside), table.values, table.observed & ~strange)


def _kinds(names: list[str], fitting: list[list[str]], experts: Any) -> list[int]:
    """Return the code of each response's kind of expert, of those that fit; ``auto`` takes the first."""
    if isinstance(experts, Mapping):
        strange = [str(key) for key in experts if key not in names]
        if strange:
            raise ModelError(f"experts of {', '.join(strange)}", f"of some of {', '.join(names)}")
    kinds = []
    for name, possible in zip(names, fitting, strict=True):
        wanted = experts.get(name, "auto") if isinstance(experts, Mapping) else experts
        if not isinstance(wanted, str) or (wanted != "auto" and wanted not in KINDS):
            expected = f"auto or one of {', '.join(KINDS)}, or a dict of these by response"
            raise ModelError(f"experts={wanted!r}", expected)
        if wanted != "auto" and wanted not in possible:
            raise ModelError(f"{wanted} experts for the values of {name!r}", f"one of {', '.join(possible)}")
        kinds.append(KINDS[possible[0] if wanted == "auto" else wanted])
    return kinds


def _fitting_cells(cells: Cells, *, is_data: bool) -> list[str]:
    """Return the kinds of experts that may explain a column of a frame, the one that ``auto`` takes first.

    ``pm.Data`` reach the likelihood as they are, so that of them 0 and 1 alone are codes of labels.
    """
    if cells.excluded:
        raise ModelError(f"response {cells.name!r} is {cells.excluded}", "numbers, labels or dates")
    values = cells.distinct[cells.codes[cells.codes >= 0]]
    _check_values(cells.name, values)
    if cells.stored in ("text", "boolean"):
        # declared labels are there, rows with them or not
        return _fitting_labels(len(cells.labels) or cells.distinct.size)
    if cells.stored == "datetime":
        return _fitting_numbers(values, whole=False, skewed=False)
    whole = is_whole(values)
    numbers = _fitting_numbers(values, whole=whole, skewed=not whole and is_skewed(values))
    distinct = np.unique(values).tolist()
    if distinct == [0.0, 1.0] or (whole and len(distinct) == 2 and not is_data):
        return [*_fitting_labels(2), *numbers]
    return numbers


def _fitting_column(column: Column, values: np.ndarray) -> list[str]:
    """Return what `_fitting_cells` does, of a column of a Table and its observed values."""
    _check_values(column.name, values)
    if column.base == "category":
        return _fitting_labels(len(column.labels))
    whole = column.base == "integer"
    skewed = not whole and column.dtype != "datetime" and is_skewed(values)
    return _fitting_numbers(values, whole=whole, skewed=skewed)


def _check_values(name: str, values: np.ndarray) -> None:
    if not values.size:
        raise ModelError(f"response {name!r} without any value", "one at least")
    if values.dtype == object:
        return
    if not np.isfinite(values).all():
        raise ModelError(f"response {name!r} has infinite values", "a number or label in each row")
    check_size(name, values)


def _check_constant(column: Column, values: np.ndarray, kind: int) -> None:
    """Raise `ModelError` for a single value in all rows, near which densities grow without bound."""
    if kind in (GAUSSIAN, GAMMA) and values.size > 1 and values.min() == values.max():
        raise ModelError(
            f"response {column.name!r} is {column.text(values[0])} in each row, of {KIND_NAMES[kind]} experts",
            "two different values",
            "Leave it out, or call bj.fit_experts, whose variances are at least those of rounding.",
        )


def _fitting_labels(n_label: int) -> list[str]:
    return ["logistic", "multinomial"] if n_label == 2 else ["multinomial"]


def _fitting_numbers(values: np.ndarray, *, whole: bool, skewed: bool) -> list[str]:
    fitting = ["poisson", "gaussian"] if whole and values.min() >= 0.0 else ["gaussian"]
    if values.min() > 0.0:
        fitting = ["gamma", *fitting] if skewed else [*fitting, "gamma"]
    return fitting


def _response(table: Table, seen: np.ndarray, position: int, kind: int, suffix: str) -> Response:
    column = table.schema.columns[position]
    values = table.values[position, seen]
    offset, scale = 0.0, 1.0
    if kind == GAUSSIAN:
        offset = float(values.mean())
        scale = spread_of(table.values[position, table.observed[position]]) or 1.0
    elif kind in (POISSON, GAMMA):
        offset = float(np.log(max(values.mean(), 1e-3)))
    labels = column.labels if kind == MULTINOMIAL else ()
    return Response(column.name, suffix, kind, labels, offset, scale)
