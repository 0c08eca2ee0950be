"""Which type each column is, how sure that is, and what a user should look at: one answer a column.

The answer is the most probable type (`type_probability`). Shares of likelihoods, their intervals and effective sizes
are diagnostics, computed when they are asked for (`Types.shares`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

from bayesjpt.defaults import INTERVAL, TYPE_DRAWS
from bayesjpt.errors import QueryError
from bayesjpt.posterior.answer import query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.column_summary import summary_of
from bayesjpt.queries.evidence import as_rows
from bayesjpt.queries.look_at import notes_of, notes_of_left_out, one_hot_groups
from bayesjpt.queries.some_draws import some_draws
from bayesjpt.queries.type_evidence import Parts
from bayesjpt.queries.type_features import DISCRETE, least_number
from bayesjpt.queries.type_probability import (
    AS_YEARS,
    LEAST_REPEATED,
    YEAR,
    TypeProbability,
    cells_of_values,
    type_probability,
)
from bayesjpt.table.ordered_labels import known_order
from bayesjpt.table.schema import Column, SetAside, closest
from bayesjpt.table.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from bayesjpt.queries.type_shares import TypeShares

SURE_TYPE, LIKELY_TYPE = 0.85, 0.6
"""Probabilities of a column's most probable type above which it is called sure, and likely."""


SURE, LIKELY, UNSURE = "sure", "likely", "unsure"
DECLARED = "declared"
LEFT_OUT = "left out"

RECORD = ("column", "type", "certainty", "probability", "second", "values", "look_at", "missing", "distinct")
"""What `Types.records` says of a column, in this order."""


@dataclass(frozen=True)
class ColumnType:
    """The answer for one column.

    Parameters
    ----------
    name, base : str
    type : str
        The most probable of real, positive, interval, count, ordinal, nominal and binary; ``constant``, ``date``
        and ``year`` by rule.
    probability : float
        Of that type; 1 by rule. A column of two values that is called binary is nominal and ordinal as well, so that
        their probabilities count for it; so do those of counts, ordinal and nominal labels for years.
    certainty : str
        ``sure`` above 85 %, ``likely`` above 60 %, ``unsure`` below; ``declared`` where the data or the user say
        whether labels have an order.
    second : str
        The second most probable type; empty where there is none.
    probabilities : dict of str to float
        Of every type that the values allow; empty for dates.
    values : str
        A short summary of the values.
    look_at : tuple of str
        What a user should look at, or do; empty for most columns.
    order : tuple of str
        Labels in the order that is declared, or that people know, without those that have no place in it; empty where
        there is none.
    n_missing, n_distinct : int
        Missing cells and different values.
    because : str
        By how many nats the type leads, and what they are made of.
    reason : str
        Why the schema reads the column as it does.
    rivals : tuple of str
        Types that would be most probable by the sub-populations of one draw alone, where that is another one.
    is_above_zero : bool
        Whether it holds numbers, all above zero.
    """

    name: str
    base: str
    type: str
    probability: float
    certainty: str
    second: str = ""
    probabilities: Mapping[str, float] = field(default_factory=dict)
    values: str = ""
    look_at: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    n_missing: int = 0
    n_distinct: int = 0
    because: str = ""
    reason: str = ""
    rivals: tuple[str, ...] = ()
    is_above_zero: bool = False

    def record(self) -> dict[str, Any]:
        """Return the answer as plain values, by the names of `RECORD`."""
        values = (self.name, self.type, self.certainty, self.probability, self.second, self.values)
        return dict(zip(RECORD, (*values, "; ".join(self.look_at), self.n_missing, self.n_distinct), strict=True))


@dataclass(frozen=True, eq=False)
class Types:
    """The types of all columns, in the table's order.

    Parameters
    ----------
    columns : tuple of ColumnType
    left_out : tuple of SetAside
        Columns that were not modelled, and why.
    n_row : int or None
        Rows that the values are summarised from; None where these are a fit's few reference rows.
    interval : float
        Probability of the intervals of `shares`.
    one_hot : tuple of (str, str, int)
        First and last column, and number of columns, of labels that are written as a column for each value.
    """

    columns: tuple[ColumnType, ...]
    left_out: tuple[SetAside, ...]
    n_row: int | None
    interval: float
    _post: Posterior = field(repr=False)
    one_hot: tuple[tuple[str, str, int], ...] = ()

    @cached_property
    def shares(self) -> TypeShares:
        """Shares of cells per likelihood and type, with intervals, effective sizes and all draws: diagnostics."""
        from bayesjpt.queries.type_shares import type_shares

        return type_shares(self._post, interval=self.interval)

    def records(self) -> list[dict[str, Any]]:
        """Return the answers as plain values, those of columns that were left out last."""
        rows = [column.record() for column in self.columns]
        for column in self.left_out:
            notes = "; ".join(notes_of_left_out(column))
            values = (column.name, LEFT_OUT, "", None, "", column.reason, notes, None, None)
            rows.append(dict(zip(RECORD, values, strict=True)))
        return rows

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row a column; `records` says which columns it has.

        Examples
        --------
        >>> import numpy as np, pandas as pd, bayesjpt as bj
        >>> table = bj.as_table(pd.DataFrame({"size": ["S", "M", "L"] * 20}))
        >>> post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
        >>> post.types().to_frame()[["column", "type"]].values.tolist()
        [['size', 'ordinal']]
        """
        from bayesjpt.table.frames import build_frame

        rows = self.records()
        kinds = {"probability": "number", "missing": "number", "distinct": "number"}
        return build_frame({key: (kinds.get(key, "text"), [row[key] for row in rows]) for key in RECORD}, "pandas")

    def __getitem__(self, name: str) -> ColumnType:
        """Return the answer for a column by its name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"no column {name!r} among {', '.join(column.name for column in self.columns)}")

    def find(self, name: str) -> ColumnType | SetAside:
        """Return the answer for a column, or why it was left out.

        Raises
        ------
        QueryError
            For an unknown column, naming the closest one.
        """
        both: list[Any] = [*self.columns, *self.left_out]
        for column in both:
            if column.name == name:
                return column
        raise QueryError(f"no column {name!r}", closest(name, [column.name for column in both]))

    def __iter__(self) -> Iterator[ColumnType]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


@query_method
def types(post: Posterior, table: Any = None, *, interval: float = INTERVAL) -> Types:
    """Return which type each column most probably is, how sure that is, and what to look at.

    The probability that a column *is* of a type is what people who documented columns like this one would call it,
    given what the schema knows of it, the order that people know of its labels, and how well its reference rows fit the
    families of each type. How much of a column *looks* like a type is another number: `Types.shares`.

    Parameters
    ----------
    post : Posterior
    table : Table or data frame, optional
        All rows of the fitted table, for the summary of values and for what to look at. Unless given, quartiles, shares
        of single numbers and what to look at are those of the fit's reference rows, ends and shares of labels of all.
    interval : float, default 0.9
        Probability of the intervals of `Types.shares`.

    Returns
    -------
    Types

    Raises
    ------
    QueryError
        For an interval that is not a probability, or a table under another schema.
    SchemaError, TableError
        For rows that do not fit the schema.

    Notes
    -----
    Takes a few hundredths of a second a column.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> table = bj.as_table(pd.DataFrame({"grade": ["low", "medium", "high"] * 20}))
    >>> circuit = bj.learn_mspn(table, np.random.default_rng(1))
    >>> post = bj.Posterior.from_circuit(circuit, table.schema)
    >>> post.types()["grade"].type, post.types()["grade"].certainty
    ('ordinal', 'likely')
    """
    if not isinstance(interval, Real) or not 0.0 < interval < 1.0:
        raise QueryError(f"interval = {interval!r}", "a probability between 0 and 1")
    if isinstance(table, Table) and table.schema != post.schema:
        raise QueryError("a table whose schema is not the fit's", "the table that was fitted")
    table = None if table is None else as_rows(table, post.schema)
    seen = post.reference if table is None else table
    if seen is not None and seen.schema != post.schema:
        seen = None
    few = some_draws(post, TYPE_DRAWS)[1]
    parts = Parts(few)
    answers = [
        _answer(column, type_probability(few, position, parts=parts), cells_of_values(few, position) >= LEAST_REPEATED)
        for position, column in enumerate(post.schema.columns)
    ]
    notes = notes_of(answers, post.schema, seen)
    columns = tuple(
        replace(
            answer,
            look_at=note,
            values=summary_of(
                column, answer.type, _is_order_open(answer), answer.order, cells, all_cells=table is not None
            ),
        )
        for answer, column, note, cells in zip(answers, post.schema.columns, notes, _cells(post, seen), strict=True)
    )
    one_hot = () if seen is None else tuple(one_hot_groups(seen))
    return Types(columns, post.schema.set_aside, None if table is None else table.n_row, interval, post, one_hot)


def _cells(post: Posterior, table: Table | None) -> list[Any]:
    """Return the observed values of each column; None where no rows are at hand."""
    if table is None:
        return [None] * len(post.schema)
    return [values[seen] for values, seen in zip(table.values, table.observed, strict=True)]


def _answer(column: Column, judgement: TypeProbability, repeats: bool) -> ColumnType:
    probability = judgement.probabilities.get(judgement.most_probable, 1.0)
    if repeats and judgement.most_probable == "binary":  # the other types of labels say the same of two values
        probability = min(sum(judgement.probabilities.get(name, 0.0) for name in ("binary", *DISCRETE)), 1.0)
    if judgement.most_probable == YEAR:
        probability = min(sum(judgement.probabilities.get(name, 0.0) for name in AS_YEARS), 1.0)
    known = known_order(column.labels) if column.base == "category" else None
    order = () if known is None else known.ranked
    if judgement.is_declared:
        order = column.labels if judgement.most_probable == "ordinal" else ()
    return ColumnType(
        name=column.name,
        base=column.base,
        type=judgement.most_probable,
        probability=probability,
        certainty=DECLARED if judgement.is_declared else certainty(probability),
        second=judgement.second,
        probabilities=judgement.probabilities,
        order=order,
        n_missing=column.n_missing,
        n_distinct=column.n_distinct,
        because=judgement.because,
        reason=column.reason,
        rivals=judgement.rivals,
        is_above_zero=least_number(column) > 0.0,
    )


def certainty(probability: float) -> str:
    """Return how sure a type of that probability is, in a word.

    Examples
    --------
    >>> [certainty(p) for p in (0.9, 0.7, 0.5)]
    ['sure', 'likely', 'unsure']
    """
    return SURE if probability > SURE_TYPE else LIKELY if probability > LIKELY_TYPE else UNSURE


def _is_order_open(answer: ColumnType) -> bool:
    return answer.certainty == UNSURE and {answer.type, answer.second} == {"nominal", "ordinal"}
