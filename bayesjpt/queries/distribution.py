"""Quantiles and cumulative probabilities of columns of numbers, exact under each draw."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bayesjpt.defaults import CONFIDENCE
from bayesjpt.errors import QueryError
from bayesjpt.kernels.given_event import fill_event_cdf, fill_event_quantiles
from bayesjpt.kernels.given_rows import fill_row_cdf, fill_row_cdf_at, fill_row_quantiles
from bayesjpt.posterior.answer import PlainAnswer, PlainAnswers, query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import pooled
from bayesjpt.queries.column import as_value
from bayesjpt.queries.moments import moments
from bayesjpt.queries.question import Question, ask, known
from bayesjpt.queries.resolve import value_in
from bayesjpt.table.numeric import LARGEST_NUMBER
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table

_LEAST_SHARE = 1e-9
"""On either side of an expectation: quantiles of levels 0 and 1 would be ends of the support."""


def mean_quantiles(post: Posterior, q, columns=None, given=None) -> np.ndarray:
    """Return means over draws of `quantile`, float64 (..., n_column); an infinite end counts as the last number.

    As wide as numbers go, a heavy tail of some draw has no end.
    """
    return quantile(post, q, columns, given).values.clip(-LARGEST_NUMBER, LARGEST_NUMBER).mean(axis=(0, 1))


@query_method
@pooled
def quantile(post: Posterior, q, columns=None, given=None, *, on_zero: str = "error") -> PlainAnswer:
    """Return quantiles of columns of numbers under each draw: the smallest value with cumulative probability of q.

    Two of them are an interval for a value itself, such as 0.05 and 0.95 for 90 %; the spread over draws tells how well
    the posterior knows each end.

    Parameters
    ----------
    post : Posterior
    q : float or sequence of float
        Probabilities strictly between 0 and 1.
    columns, given, on_zero : as in `expectation`

    Returns
    -------
    DataArray, dims (chain, draw, quantile, feature), with obs_id last where `given` is a table
        Without the dim ``quantile`` where `q` is a single number. Within 1e-8 of the column's scale; integers and atoms
        are exact. Columns of dates as in `expectation`.

    Raises
    ------
    QueryError
        For q outside (0, 1), and as in `expectation`.

    Notes
    -----
    Cost: about ten cumulative probabilities of all the column's leaves for each answer.

    References
    ----------
    Oliveira and Takahashi (2020). An Enhancement of the Bisection Method Average Performance Preserving Minmax
    Optimality. ACM Transactions on Mathematical Software 47(1).

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> table = bj.as_table(pd.DataFrame({"size": np.linspace(-3.0, 3.0, 200)}))
    >>> post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1), min_rows=200), table.schema)
    >>> found = post.quantile([0.05, 0.95], "size", "size > 0")
    >>> found.sizes
    Frozen({'chain': 1, 'draw': 1, 'quantile': 2, 'feature': 1})
    >>> bool((found > 0).all())
    True
    """
    try:
        levels = np.atleast_1d(np.asarray(q, np.float64))
    except (TypeError, ValueError):
        levels = np.empty(0)
    if levels.ndim != 1 or not ((levels > 0.0) & (levels < 1.0)).all() or not levels.size:
        raise QueryError(f"q = {q!r}", "probabilities strictly between 0 and 1")
    question = ask(post, columns, given, on_zero)
    values = _ascending(_quantiles(question, levels[None, :, None]), levels)
    if np.ndim(q) == 0:
        return question.answer(values[:, 0], "quantiles", in_units=True)
    return question.answer(values, "quantiles", {"quantile": levels}, in_units=True)


def _ascending(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return quantiles, levels on axis 1, none of which is below that of a lower level.

    Each is found to a billionth of the column's scale, so that two within one another's tolerance may fall.
    """
    order = np.argsort(levels, kind="stable")
    values[:, order] = np.maximum.accumulate(values[:, order], axis=1)
    return values


@query_method
@pooled
def cdf(post: Posterior, x, column: str, given=None, *, on_zero: str = "error") -> PlainAnswer:
    """Return the probability that a column of numbers is at most x, under each draw.

    Parameters
    ----------
    post : Posterior
    x : number, date, or sequence of them
        In the user's units; dates as text in ISO 8601 or objects, in columns of dates, whose coordinate ``value`` then
        holds days since 1970-01-01. There such days may be given too.
    column : str
    given, on_zero : as in `expectation`

    Returns
    -------
    DataArray, dims (chain, draw, value, feature), with obs_id last where `given` is a table
        Without the dim ``value`` where `x` is a single number.

    Raises
    ------
    QueryError
        For x that is missing or of another kind than the column's values, and as in `expectation`.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> table = bj.as_table(pd.DataFrame({"size": np.linspace(-3.0, 3.0, 200)}))
    >>> post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1), min_rows=200), table.schema)
    >>> post.cdf([-50.0, 0.0, 50.0], "size")[0, 0, :, 0].round(2).values.tolist()
    [0.0, 0.5, 1.0]
    """
    question = ask(post, column, given, on_zero)
    if question.n_target != 1:
        raise QueryError(f"{question.n_target} columns", "one column")
    if hasattr(x, "__array__"):
        x = np.asarray(x)[()]  # an array without axes is a single value
    single = isinstance(x, str) or not isinstance(x, Iterable)
    member = post.schema.columns[question.positions[0]]
    points = np.array([_point(member, value) for value in ([x] if single else x)], np.float64)
    if not points.size:
        raise QueryError(f"x = {x!r}", "one value at least")
    if question.rows is None:
        values = _cdf_at(question, np.broadcast_to(points[:, None], (question.n_draw, points.size, 1)))
    else:
        values = _by_rows(question, fill_row_cdf, points, points.size)
        known(question, question.rows, values, lambda seen: (seen <= points[:, None]).astype(float))
    return question.answer(values[:, 0], "cdf") if single else question.answer(values, "cdf", {"value": points})


@query_method
@pooled
def confidence_bounds(
    post: Posterior, columns=None, given=None, *, confidence: float = CONFIDENCE, on_zero: str = "error"
) -> PlainAnswers:
    """Return the confidence-rated expectation of joint probability trees, under each draw.

    With F the column's cumulative distribution and t the confidence, the bounds are the quantiles of levels F(E)
    (1 - t) and 1 - (1 - F(E)) (1 - t): around the expectation E, the share t of what lies below it and the share t of
    what lies above. So they hold t together, and lie inside the support.

    The paper takes t / 2 to either side, which is the same where F(E) is one half; elsewhere its levels leave [0, 1],
    and clipped to it would give bounds at the ends of the support, infinite for real likelihoods.

    They bound *values*, not the expectation: with more rows they do not shrink, and the credible interval of E is the
    spread of `expectation` over draws. Between two modes E itself may be a value that hardly occurs.

    Parameters
    ----------
    post : Posterior
    columns, given, on_zero : as in `expectation`
    confidence : float
        t, strictly between 0 and 1.

    Returns
    -------
    Dataset
        ``lower``, ``expectation``, ``upper``, each with the dims of `expectation`.

    Raises
    ------
    QueryError
        For a confidence outside (0, 1), and as in `expectation`.

    References
    ----------
    Nyga et al. (2023). Joint Probability Trees. Equation 7, for F(E) = 1/2.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> table = bj.as_table(pd.DataFrame({"size": np.linspace(-3.0, 3.0, 200)}))
    >>> post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1), min_rows=200), table.schema)
    >>> bounds = post.confidence_bounds("size", confidence=0.5)
    >>> bool(bounds["lower"] < bounds["expectation"]) and bool(bounds["expectation"] < bounds["upper"])
    True
    """
    if not 0.0 < confidence < 1.0:
        raise QueryError(f"confidence = {confidence!r}", "a probability strictly between 0 and 1")
    question = ask(post, columns, given, on_zero)
    mean, _ = moments(question, spread=False)
    at_mean = _cdf_at(question, mean[:, None])
    below = np.clip(at_mean, _LEAST_SHARE, 1.0 - _LEAST_SHARE)  # of a distribution whose mean is its largest value
    levels = np.concatenate([below * (1.0 - confidence), 1.0 - (1.0 - below) * (1.0 - confidence)], axis=1)
    values = _quantiles(question, levels)
    middle = question.answer(mean, "expectation", in_units=True)
    ends = [question.answer(values[:, k], name, in_units=True) for k, name in enumerate(("lower", "upper"))]
    data = {part.name: (part.dims, part.values) for part in (ends[0], middle, ends[1])}
    return PlainAnswers(data, middle.coords, of_dates=middle.of_dates)


@pooled
def cdf_of_rows(post: Posterior, column: str, given: Table, points: np.ndarray) -> np.ndarray:
    """Return P(X <= point) given each row, float64 (n_draw, n_point, n_row).

    `points` has the shape (n_point,), the same for all rows, or (n_point, n_row).
    """
    question = ask(post, column, given, "error")
    if points.ndim == 1:
        return _by_rows(question, fill_row_cdf, points, points.size)[:, :, 0]
    numbers = np.broadcast_to(points[:, None], (question.n_draw, points.shape[0], 1, points.shape[1]))
    return _by_rows(question, fill_row_cdf_at, numbers, points.shape[0])[:, :, 0]


def _point(column: Column, value: object) -> float:
    """Return a value of a column of numbers as a number, days since 1970-01-01 of a date."""
    known_value = as_value(value, column.name)
    if column.dtype == "datetime" and isinstance(known_value, float):
        return known_value
    return value_in(column, known_value)


def _quantiles(question: Question, levels: np.ndarray) -> np.ndarray:
    """Return float64 (n_draw, n_q, n_target[, n_row]); `levels` broadcasts to it, with or without rows."""
    n_q = levels.shape[1]
    if question.rows is None:
        levels = np.broadcast_to(levels, (question.n_draw, n_q, question.n_target))
        return _by_event(question, fill_event_quantiles, levels)
    if levels.ndim == 3:
        levels = levels[..., None]
    values = _by_rows(question, fill_row_quantiles, levels, n_q)
    known(question, question.rows, values, lambda seen: seen)
    return values


def _cdf_at(question: Question, points: np.ndarray) -> np.ndarray:
    """Return P(X <= point), of the shape of the points, float64 (n_draw, n_point, n_target[, n_row])."""
    if question.rows is None:
        return _by_event(question, fill_event_cdf, points)
    return _by_rows(question, fill_row_cdf_at, points, points.shape[1])


def _by_event(question: Question, fill, numbers: np.ndarray) -> np.ndarray:
    """Return what a kernel makes of some numbers given the event, float64 (n_draw, n_number, n_target) both."""
    values, numbers = np.empty(numbers.shape), numbers.copy()
    for part, components, share in question.event_parts():
        fill(components, question.plan.const, question.params.theta[part], share, numbers[part], values[part])
    return values


def _by_rows(question: Question, fill, numbers: np.ndarray, n_number: int) -> np.ndarray:
    """Return float64 (n_draw, n_number, n_target, n_row), filled by a kernel part by part; NaN at impossible rows.

    `numbers` is handed on to the kernel: float64 (n_number,), or with the axes of the answer, where a length of 1 or of
    all rows stands last.
    """
    assert question.rows is not None
    components, targets = question.row_setting()
    n_row = question.rows.n_row
    values = np.empty((question.n_draw, n_number, question.n_target, n_row))
    log_evidence = np.empty((question.n_draw, n_row))
    for which, part, cells, n_block, log_part in question.row_parts():
        part_values = np.empty((question.n_draw, n_number, question.n_target, part.n_row))
        given = numbers
        if numbers.ndim == 4:
            given = numbers[..., which] if numbers.shape[3] == n_row else numbers
            given = np.broadcast_to(given, (*part_values.shape[:3], given.shape[3])).copy()
        fill(question.plan, cells, components, targets, question.params, n_block, log_part, given, part_values)
        values[..., which] = part_values
        log_evidence[:, which] = log_part
    question.check_rows(log_evidence)
    impossible = np.broadcast_to((log_evidence == -np.inf)[:, None, None, :], values.shape)
    values[impossible] = np.nan
    return values
