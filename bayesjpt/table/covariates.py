"""What a table's columns are as covariates: an intercept, z-scores of numbers, indicators of labels.

Chosen from training rows and frozen, as the schema is. It knows nothing of what is explained by them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesjpt.errors import SchemaError, TableError, counted
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table

_LARGEST = 1e150
"""Numbers whose squares, of many rows together, do not overflow."""
_SMALLEST = 1e-140
"""Numbers whose squares, of differences far smaller, are not rounded to 0."""
_ROUNDING = 1e-14
"""Spread of values, over the largest of them, up to which they are one number."""

INTERCEPT = "intercept"
FILL_GAPS = "Leave the rows out, or fill the gaps first: bj.fit(covariates).impute(covariates)."


@dataclass(frozen=True)
class Covariate:
    """A column of the design matrix beside the intercept.

    Parameters
    ----------
    name : str
        ``size``, or ``color=red`` of a label's indicator.
    column : str
        Which column of the table it is made from.
    code : int
        The label whose indicator it is, -1 for a number.
    centre, scale : float
        What is entered is (x - centre) / scale, x being the number, or 1 and 0 for a label that is and is not there.
    """

    name: str
    column: str
    code: int
    centre: float
    scale: float


@dataclass(frozen=True)
class Covariates:
    """How rows become a design matrix, whose first column is the intercept.

    Parameters
    ----------
    schema : Schema
        Of the columns that rows are read under.
    members : tuple of Covariate
    """

    schema: Schema
    members: tuple[Covariate, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return (INTERCEPT, *(member.name for member in self.members))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(member.column for member in self.members))

    def matrix(self, table: Table, remedy: str = FILL_GAPS) -> np.ndarray:
        """Return the design matrix, float64 (n_row, n_covariate), of rows read under a schema with these columns.

        `remedy` is what an error for missing cells offers.

        An unseen label has none of the indicators of its column. Of two labels a single covariate is made, -1 and 1,
        and 0 is an unseen one.

        Raises
        ------
        TableError
            For a missing cell, naming the column.
        """
        out = np.ones((table.n_row, 1 + len(self.members)))
        for k, member in enumerate(self.members, start=1):
            position = table.schema.index(member.column)
            _refuse_missing(table, position, np.arange(table.n_row), remedy)
            values = table.values[position]
            facts = table.schema.columns[position]
            if member.code < 0:
                out[:, k] = (values - member.centre) / member.scale
            elif len(facts.labels) == 2:
                out[:, k] = np.select([values == 0.0, values == 1.0], [-1.0, 1.0], 0.0)
            else:
                out[:, k] = values == member.code
        return out

    def column_of(self, member: Covariate) -> Column:
        """Return the column that a covariate is made from."""
        return self.schema.columns[self.schema.index(member.column)]

    def average(self) -> np.ndarray:
        """Return the row of average covariates, float64 (n_covariate,): numbers at their mean, labels at their shares.

        Of numbers that are taken as they are, not as z-scores, it is 0.
        """
        out = np.zeros(1 + len(self.members))
        out[0] = 1.0
        for k, member in enumerate(self.members, start=1):
            if member.code >= 0:
                shares = label_shares(self.column_of(member))
                out[k] = shares[1] - shares[0] if shares.size == 2 else shares[member.code]
        return out

    @property
    def n_redundant(self) -> int:
        """How many columns of the matrix follow from others by design: indicators of a column add up to 1."""
        n_indicator = Counter(member.column for member in self.members if member.code >= 0)
        return sum(n > 1 for n in n_indicator.values())

    def refuse_missing(self, table: Table, numbers: np.ndarray, remedy: str = FILL_GAPS) -> None:
        """Raise `TableError` for a missing cell of a covariate in rows taken from a larger table.

        Parameters
        ----------
        table : Table
        numbers : int64 (n_row,)
            Position of each row in the larger table, by which the message tells it.
        remedy : str
        """
        for name in self.columns:
            _refuse_missing(table, table.schema.index(name), numbers, remedy)

    def to_list(self) -> list[list[Any]]:
        """Return the members as numbers, texts and lists."""
        return [[m.name, m.column, m.code, m.centre, m.scale] for m in self.members]


def make_covariates(table: Table, names: Sequence[str]) -> Covariates:
    """Return how some columns of a training table become covariates.

    Columns that hold a single value say nothing and have no covariate.

    Raises
    ------
    SchemaError
        For an unknown column, or one that is excluded, with the reason.

    Examples
    --------
    >>> import pandas as pd, bayesjpt as bj
    >>> table = bj.as_table(pd.DataFrame({"size": [1.5, 2.5, 3.5], "kind": ["a", "b", "c"]}))
    >>> covariates = make_covariates(table, ["size", "kind"])
    >>> covariates.names
    ('intercept', 'size', 'kind=a', 'kind=b', 'kind=c')
    >>> covariates.matrix(table)[0].round(2).tolist()
    [1.0, -1.22, 1.0, 0.0, 0.0]
    """
    members: list[Covariate] = []
    for name in names:
        for aside in table.schema.set_aside:
            if aside.name == name:
                raise SchemaError(f"column {name!r} is left out: {aside.reason}", **aside.remedies())
        members += _of_column(table, table.schema.index(name))
    return Covariates(table.schema, tuple(members))


def _of_column(table: Table, position: int) -> list[Covariate]:
    column = table.schema.columns[position]
    seen = table.values[position, table.observed[position]]
    if column.base == "category":
        if len(column.labels) < 2:
            return []
        codes = (1,) if len(column.labels) == 2 else range(len(column.labels))
        return [Covariate(f"{column.name}={column.labels[code]}", column.name, code, 0.0, 1.0) for code in codes]
    check_size(column.name, seen)
    scale = spread_of(seen)
    return [Covariate(column.name, column.name, -1, float(seen.mean()), scale)] if scale else []


def label_shares(column: Column) -> np.ndarray:
    """Return the shares of a column's labels among training rows that have one of them, float64 (n_label,).

    Examples
    --------
    >>> import bayesjpt as bj
    >>> label_shares(bj.as_table({"kind": ["a", "b", "b", "c"]}).schema.columns[0]).tolist()
    [0.25, 0.5, 0.25]
    """
    n_label = len(column.labels)
    shares = np.array(column.frequencies[:n_label])
    if column.other and len(column.frequencies) > n_label:
        # half a row was added to each, to "other" too, of which there is none
        shares = np.maximum(shares - column.frequencies[-1], 0.0)
    total = shares.sum()
    return shares / total if shares.size and total > 0.0 else np.full(n_label, 1.0 / n_label)


def spread_of(values: np.ndarray) -> float:
    """Return the standard deviation of values, 0 where they are all one number but for rounding.

    Examples
    --------
    >>> spread_of(np.full(60, 0.1)), bool(np.full(60, 0.1).std() > 0.0)
    (0.0, True)
    """
    largest = float(np.abs(values).max(initial=0.0))
    if not largest > 0.0:
        return 0.0
    # squares of tiny numbers would be 0
    spread = float(values.std()) if largest > _SMALLEST else largest * float((values / largest).std())
    return spread if spread > max(_ROUNDING * largest, float(np.finfo(float).tiny)) else 0.0


def check_size(name: str, values: np.ndarray) -> None:
    """Raise `TableError` where a value is so large that squares overflow."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest > _LARGEST:
        raise TableError(f"column {name!r} holds {largest:.3g}", f"numbers below {_LARGEST:g}", "Divide the column.")


def _refuse_missing(table: Table, position: int, numbers: np.ndarray, remedy: str) -> None:
    n_missing = table.n_row - int(table.observed[position].sum())
    if n_missing:
        column: Column = table.schema.columns[position]
        where = int(numbers[~table.observed[position]][0]) + 1
        raise TableError(
            f"no value of the covariate {column.name!r} in any of {table.n_row} rows"
            if n_missing == table.n_row > 1
            else f"{counted(n_missing, 'missing cell')} of the covariate {column.name!r}, the first in row {where}",
            "a value in each row",
            remedy,
            command="Leave the rows out, or fill the gaps first: bayesjpt fit, then bayesjpt impute.",
        )
