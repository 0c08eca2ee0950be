"""Cells of columns to begin with: where training values lie, beyond them, and single values that have probability."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bayesjpt.kernels.grids import Start
from bayesjpt.queries.intervals import domain_of
from bayesjpt.table.schema import Column, Schema

DEPENDENCE_WHOLE = 100.0
"""Range of whole numbers up to which each is a cell by itself."""


_INSIDE = 4
"""Cells of the range of training values."""

_BEYOND = 8.0 ** np.arange(8)
"""Ranges of training values to either side; the outermost is beyond what a heavy tail holds a millionth of."""


def is_exact(column: Column) -> bool:
    """Return whether every value of a column, far tails left out, is a cell by itself."""
    return column.base == "category" or (
        column.base == "integer" and column.maximum - column.minimum <= DEPENDENCE_WHOLE
    )


def _is_positive(column: Column) -> bool:
    return column.base == "real" and column.support[0] >= 0.0


def first_cells(schema: Schema, columns: Sequence[int]) -> Start:
    """Return the cells of some columns to begin with."""
    ends = [_ends(schema.columns[column]) for column in columns]
    return Start(
        ptr=np.cumsum([0, *(part.size for part in ends)]).astype(np.int32),
        end=np.concatenate(ends),
        whole=np.array([schema.columns[column].base != "real" for column in columns]),
        from_zero=np.array([_is_positive(schema.columns[column]) for column in columns]),
    )


def _ends(column: Column) -> np.ndarray:
    """Return the ends of a column's cells, ascending, the first below all values and the last not below any."""
    if column.base == "category":
        return np.array([-math.inf, *range(column.n_label)])
    domain = domain_of(column)
    lo, hi = column.minimum, column.maximum
    reach = max(hi - lo, column.scale)
    inside = np.linspace(lo, hi, _INSIDE + 1)
    if is_exact(column):
        inside = np.arange(lo - reach, hi + reach + 1.0)
    ends = [*inside, *(lo - reach * _BEYOND), *(hi + reach * _BEYOND)]
    if _is_positive(column):
        ends.append(0.0)
    for atom in column.atoms:
        ends += [domain.before(atom), atom]
    found = np.unique(np.floor(ends) if domain.whole else ends)
    return np.array([-math.inf, *found[(found >= domain.before(domain.lo)) & np.isfinite(found)], math.inf])
