"""Expectation and variance of columns of numbers, with or without evidence, exact under each draw."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayesjpt.kernels.given_event import fill_event_moments
from bayesjpt.kernels.given_rows import fill_row_moments
from bayesjpt.posterior.answer import PlainAnswer, query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import pooled
from bayesjpt.queries.question import Question, ask, known


@query_method
@pooled
def expectation(post: Posterior, columns=None, given=None, *, on_zero: str = "error") -> PlainAnswer:
    """Return the expectation of columns of numbers under each draw, given evidence where there is some.

    The spread over draws is what the posterior does not know of the expectation; how far values lie from it is
    `variance` and `quantile`.

    Parameters
    ----------
    post : Posterior
    columns : str or sequence of str, optional
        Columns of numbers; all of them by default. For labels ask `probability`.
    given : optional
        As in `probability`: an event, a mapping from columns to values, or a table with one answer a row. A column
        that a row itself observes has its value there; drop it from the rows in order to predict it.
    on_zero : str
        For evidence that has probability zero under some draw: ``error``, or ``nan`` as the answer there.

    Returns
    -------
    DataArray, dims (chain, draw, feature), with obs_id last where `given` is a table
        In the user's units; columns of dates as dates, or where numbers are asked for too, in days since 1970-01-01.
        Infinite where a likelihood with weight in the answer has no mean, such as a Student's t with few degrees of
        freedom; of dates, not a time.

    Raises
    ------
    EvidenceError
        For evidence that is impossible under some draw, naming the first column that makes it so.
    QueryError
        For columns of labels, and for an event or values that do not fit the columns.
    SchemaError, TableError
        For unknown columns, and rows that do not fit the schema.

    References
    ----------
    Darwiche (2003). A Differential Approach to Inference in Bayesian Networks. Journal of the ACM 50(3).

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([0.5, 9.0, 1.5, 9.5], 20)})
    >>> table = bj.as_table(frame, kinds={"size": "real"})
    >>> circuit = bj.learn_mspn(table, np.random.default_rng(1), min_rows=20)
    >>> post = bj.Posterior.from_circuit(circuit, table.schema)
    >>> post.expectation("size").round(0).values.tolist()
    [[[5.0]]]
    >>> post.expectation(given=pd.DataFrame({"kind": ["a", "b", None]})).round(0).values.tolist()
    [[[[1.0, 9.0, 5.0]]]]
    """
    question = ask(post, columns, given, on_zero)
    return question.answer(moments(question, spread=False)[0], "expectation", in_units=True)


@query_method
@pooled
def variance(post: Posterior, columns=None, given=None, *, on_zero: str = "error") -> PlainAnswer:
    """Return the variance of columns of numbers under each draw, given evidence where there is some.

    Parameters, dims and errors are those of `expectation`. The unit is the square of the user's, of dates days squared.
    Infinite where a likelihood with weight in the answer has no variance; 0 where a row itself observes the column.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> table = bj.as_table(pd.DataFrame({"size": np.linspace(-3.0, 3.0, 200)}))
    >>> post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1), min_rows=200), table.schema)
    >>> bool(post.variance("size", "size > 1") < post.variance("size"))
    True
    """
    question = ask(post, columns, given, on_zero)
    return question.answer(moments(question, spread=True)[1], "variance")


def moments(
    question: Question, *, spread: bool, near: Mapping[int, np.ndarray] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and variances in the user's units, float64 (n_draw, n_target[, n_row]).

    The variances mean nothing unless `spread`. `near`, for evidence by rows, are intervals, float64 (1, 2), in which
    some of the columns are known to lie, each given its own; NaN where that is impossible.
    """
    if question.rows is None:
        mean = np.empty((question.n_draw, question.n_target))
        squares = np.empty((question.n_draw, question.n_target if spread else 0))
        for part, components, share in question.event_parts():
            fill_event_moments(
                components, question.plan.const, question.params.theta[part], share, mean[part], squares[part]
            )
        location, scale = question.units.T
    else:
        mean, squares = _given_rows(question, spread, near)
        location, scale = question.units.T[..., None]
    if spread:
        squares *= scale  # twice: the square of a scale may overflow, and zero times infinity is no number
        squares *= scale
    mean *= scale
    mean += location
    if question.rows is not None:
        known(question, question.rows, mean, lambda values: values)
        if spread:
            known(question, question.rows, squares, lambda values: 0.0)
    return mean, squares


def _given_rows(
    question: Question, spread: bool, near: Mapping[int, np.ndarray] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and variances, float64 (n_draw, n_target, n_row), relative to location and scale."""
    assert question.rows is not None
    components, targets = question.row_setting()
    both = (question.components_near(near) if near else components, components)
    n_row = question.rows.n_row
    mean = np.empty((question.n_draw, question.n_target, n_row))
    squares = np.empty((question.n_draw, question.n_target, n_row if spread else 0))
    log_evidence = np.empty((question.n_draw, n_row))
    for which, part, cells, n_block, log_part in question.row_parts():
        part_mean = np.empty((question.n_draw, question.n_target, part.n_row))
        part_squares = np.empty((question.n_draw, question.n_target, part.n_row if spread else 0))
        fill_row_moments(
            question.plan, cells, both, targets, question.params, n_block, log_part, part_mean, part_squares
        )
        mean[..., which] = part_mean
        log_evidence[:, which] = log_part
        if spread:
            squares[..., which] = part_squares
    question.check_rows(log_evidence)
    impossible = (log_evidence == -np.inf)[:, None, :]
    if impossible.any():
        mean[np.broadcast_to(impossible, mean.shape)] = np.nan
        if spread:
            squares[np.broadcast_to(impossible, squares.shape)] = np.nan
    return mean, squares
