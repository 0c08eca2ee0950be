"""A column predicted from the others: probabilities of its labels, or its mean and an interval for its value."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesjpt.defaults import COMMAND_DRAWS, INTERVAL
from bayesjpt.errors import QueryError
from bayesjpt.posterior.answer import query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import pooled
from bayesjpt.queries.impute import label_probability, near_expectation
from bayesjpt.queries.moments import expectation
from bayesjpt.queries.resolve import position_of
from bayesjpt.queries.some_draws import some_draws
from bayesjpt.queries.value_quantiles import value_quantiles
from bayesjpt.table.cells import calendar_moments
from bayesjpt.table.frames import BACKENDS, build_frame
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table, as_table


class Prediction(NamedTuple):
    """What is predicted of a column.

    Attributes
    ----------
    column : Column
    names : tuple of str
        The labels of the training table; ``mean``, ``lower`` and ``upper`` of numbers.
    values : float64 (n_row, n_name)
        Probabilities that add up to 1 in each row; or numbers in the user's units, dates in days.
    """

    column: Column
    names: tuple[str, ...]
    values: np.ndarray


@query_method
def predict(
    post: Posterior, column: str, rows, *, interval: float = INTERVAL, max_draws: int | None = COMMAND_DRAWS
) -> Any:
    """Return a data frame of what a column is in some rows, given their other cells.

    Parameters
    ----------
    post : Posterior
    column : str
    rows : Table, data frame, array or dict of columns
        Cells of the column itself are not looked at, missing ones of others are not given, and columns that training
        did not show are ignored with a warning.
    interval : float
        Probability that a number lies in its interval, between equal tails.
    max_draws : int, optional
        Draws of all chains that are averaged; None for all.

    Returns
    -------
    data frame
        Of the kind that `rows` is, with its index; of pandas for others. For a column of labels the probability of
        each label that training showed, which add up to 1 in each row; for numbers and dates ``mean``, ``lower`` and
        ``upper``, in the user's units.

    Raises
    ------
    EvidenceError
        For a row that is impossible under a draw.
    QueryError
        For an unknown column, or an interval outside (0, 1).
    SchemaError, TableError
        For rows that do not fit the schema.

    Notes
    -----
    The prediction is that of the mixture over draws, each of which has the same weight. An end of the interval is
    the smallest x at which the mean over draws of the cumulative probability is its level; so the interval holds both
    what the posterior does not know and how far values scatter.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([0.5, 9.0, 1.5, 9.5], 20)})
    >>> table = bj.as_table(frame, kinds={"size": "real"})
    >>> circuit = bj.learn_mspn(table, np.random.default_rng(1), min_rows=20)
    >>> post = bj.Posterior.from_circuit(circuit, table.schema)
    >>> post.predict("kind", pd.DataFrame({"size": [0.5, 9.0]}, index=["x", "y"])).idxmax(axis=1).to_dict()
    {'x': 'a', 'y': 'b'}
    >>> post.predict("size", pd.DataFrame({"kind": ["a", "b"]}))["mean"].round(0).tolist()
    [1.0, 9.0]
    """
    return as_frame(prediction(post, column, rows, interval=interval, max_draws=max_draws), rows)


def prediction(
    post: Posterior, column: str, rows, *, interval: float = INTERVAL, max_draws: int | None = COMMAND_DRAWS
) -> Prediction:
    """Return the same as arrays; parameters and errors are those of `predict`."""
    if not isinstance(interval, float | int) or not 0.0 < interval < 1.0:
        raise QueryError(f"interval = {interval!r}", "a probability strictly between 0 and 1")
    number = position_of(column, post.schema)
    table = rows if isinstance(rows, Table) else as_table(rows, schema=post.schema, ignore_new=True)
    if table.schema != post.schema:
        raise QueryError("rows read under another schema than the posterior's", "bj.as_table(rows, schema=post.schema)")
    observed = table.observed.copy()
    observed[number] = False
    given = Table(post.schema, table.values, observed)
    facts = post.schema.columns[number]
    _, some = some_draws(post, max_draws)
    if facts.base == "category":
        return Prediction(facts, facts.labels, _probabilities(some, given, number))
    return Prediction(facts, ("mean", "lower", "upper"), _numbers(some, given, number, interval))


def as_frame(prediction: Prediction, rows: Any) -> Any:
    """Return a prediction as a data frame of the kind of some rows, with their index; of pandas for other rows."""
    columns: dict[str, tuple[str, list[Any]]] = {}
    for name, values in zip(prediction.names, prediction.values.T, strict=True):
        is_date = prediction.column.dtype == "datetime" and prediction.column.base != "category"
        columns[name] = ("datetime", calendar_moments(values).tolist()) if is_date else ("number", values.tolist())
    package = type(rows).__module__.split(".")[0]
    frame = build_frame(columns, package if package in BACKENDS else "pandas")
    if package != "pandas":
        return frame
    # of one row of a frame, a series, the index holds the names of columns
    return frame.set_axis(rows.index if rows.ndim == 2 else [rows.name], axis=0)


def _probabilities(post: Posterior, given: Table, number: int) -> np.ndarray:
    """Return float64 (n_row, n_label): mean probabilities of the training labels, which add up to 1."""
    if not given.n_row:
        return np.empty((0, len(post.schema.columns[number].labels)))
    mean = pooled(label_probability)(post, given, number).mean(axis=0)
    total = mean.sum(axis=0)
    # where only "other" is left, the labels are as probable as in training
    share = np.array(post.schema.columns[number].frequencies[:-1])
    rare = np.where(total > 0.0, 0.0, 1.0)
    return ((mean + rare * share[:, None]) / (total + rare * share.sum())).T


def _numbers(post: Posterior, given: Table, number: int, interval: float) -> np.ndarray:
    """Return float64 (n_row, 3): mean, and ends of the interval."""
    if not given.n_row:
        return np.empty((0, 3))
    name = post.schema.names[number]
    mean = near_expectation(post, given, number)
    if not np.isfinite(mean).all():
        mean = np.where(np.isfinite(mean), mean, expectation(post, name, given).values.mean(axis=(0, 1))[0])
    levels = np.array([0.5 * (1.0 - interval), 0.5 * (1.0 + interval)])
    return np.column_stack([mean, *value_quantiles(post, given, number, levels)])
