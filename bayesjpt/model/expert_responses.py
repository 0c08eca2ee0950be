"""What an `ExpertTree` explains: one response or several, as numbers and codes, with the expert of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable

from bayesjpt.errors import ModelError, warn
from bayesjpt.families.skewed import is_skewed
from bayesjpt.kernels.expert_tree import GAMMA, GAUSSIAN, KIND_NAMES, LOGISTIC, MULTINOMIAL, POISSON
from bayesjpt.table.cells import Cells
from bayesjpt.table.frames import frame_cells
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
        For infinite values, no row that has all of them, and experts that do not fit.
    """
    if isinstance(y, SharedVariable):
        y = y.get_value()
    if isinstance(y, Table):
        y = y.to_frame()
    several = _has_columns(name, y)
    columns = y if several else {name: y}
    cells = frame_cells(columns)
    names = [each.name for each in cells]
    if not names or not cells[0].codes.size:
        raise ModelError(f"y of {name!r} without any value", "one at least")
    if isinstance(experts, Mapping):
        strange = [str(key) for key in experts if key not in names]
        if strange:
            raise ModelError(f"experts of {', '.join(strange)}", f"of some of {', '.join(names)}")
        wanted = [experts.get(each, "auto") for each in names]
    else:
        wanted = [experts] * len(names)
    kinds = [_kind(each, word) for each, word in zip(cells, wanted, strict=True)]
    bases = {each: _BASES[kind] for each, kind in zip(names, kinds, strict=True)}
    # a closed list of labels: the model has no other
    table = as_table(columns, kinds=bases, other=False)
    seen = table.observed.all(axis=0)
    if not seen.any():
        raise ModelError(f"no row of {name!r} has a value of {', '.join(names)}", "one at least")
    each = tuple(
        _response(table, seen, position, kind, f"_{names[position]}" if several else "")
        for position, kind in enumerate(kinds)
    )
    values = np.where(table.observed, table.values, _UNSEEN)
    return Responses(table, each, np.ascontiguousarray(values.T) if several else values[0], seen)


def tell_missing(responses: Responses, *, steps: bool) -> None:
    """Warn of rows that lack a value and so say nothing; over time of those alone that lack some and have others."""
    seen, some = responses.seen, responses.table.observed.any(axis=0)
    n = int((some & ~seen).sum() if steps else (~seen).sum())
    if n:
        what = "are steps without any" if steps else "have a log density of 0"
        warn(f"{n} rows without a value of {'some' if len(responses.each) > 1 else 'the'} response {what}")


def _has_columns(name: str, y: Any) -> bool:
    try:
        n_axis = 2 if isinstance(y, Mapping) else np.ndim(y)
    except (TypeError, ValueError):
        n_axis = 0
    if n_axis not in (1, 2):
        raise ModelError(f"y of {name!r} with {n_axis} axes", "one value a row, or a column for each response")
    return n_axis == 2


def _kind(cells: Cells, wanted: Any) -> int:
    """Return the code of a column's kind of expert."""
    if not isinstance(wanted, str) or (wanted != "auto" and wanted not in KINDS):
        raise ModelError(f"experts={wanted!r}", f"auto or one of {', '.join(KINDS)}, or a dict of these by response")
    values = cells.distinct[cells.codes[cells.codes >= 0]]
    if not values.size:
        raise ModelError(f"response {cells.name!r} without any value", "one at least")
    if cells.stored != "number":
        n_label = len(cells.labels) or cells.distinct.size  # declared labels are there, rows with them or not
        fitting = ["logistic"] if n_label == 2 else ["multinomial"]
    else:
        if not np.isfinite(values).all():
            raise ModelError(f"response {cells.name!r} has infinite values", "a number or label in each row")
        whole = bool((values == np.floor(values)).all())
        fitting = ["logistic"] if set(cells.distinct.tolist()) == {0.0, 1.0} else []
        fitting += ["poisson", "gaussian"] if whole and values.min() >= 0.0 else ["gaussian"]
        if values.min() > 0.0:
            fitting = ["gamma", *fitting] if not whole and is_skewed(values) else [*fitting, "gamma"]
    if wanted != "auto" and wanted not in fitting:
        raise ModelError(f"{wanted} experts for the values of {cells.name!r}", f"one of {', '.join(fitting)}")
    return KINDS[fitting[0] if wanted == "auto" else wanted]


def _response(table: Table, seen: np.ndarray, position: int, kind: int, suffix: str) -> Response:
    column = table.schema.columns[position]
    values = table.values[position, seen]
    offset, scale = 0.0, 1.0
    if kind == GAUSSIAN:
        offset = float(values.mean())
        scale = float(table.values[position, table.observed[position]].std()) or 1.0
    elif kind in (POISSON, GAMMA):
        offset = float(np.log(max(values.mean(), 1e-3)))
    labels = column.labels if kind == MULTINOMIAL else ()
    return Response(column.name, suffix, kind, labels, offset, scale)
