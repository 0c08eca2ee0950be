"""A hierarchical mixture of experts as one more distribution of a PyMC model, its paths summed out.

Plain PyTensor throughout: gradients, `pm.set_data` and predictions are PyMC's own. The names and priors are those of
`bayesjpt.experts`, but coefficients are drawn as steps away from the parent's, which lets NUTS move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import graph_inputs
from pytensor.tensor.random.type import RandomType

from bayesjpt import defaults_experts
from bayesjpt.errors import ModelError, warn
from bayesjpt.kernels.expert_tree import GAMMA, GAUSSIAN, LOG_LINKED, MULTINOMIAL
from bayesjpt.model.expert_density import logistic_weights, mixture_logp, mixture_random, signature, softmax_weights
from bayesjpt.model.expert_responses import Response, Responses, check_name, read_responses, tell_missing
from bayesjpt.model.expert_series import add_offsets, add_series, check_series, read_rows
from bayesjpt.model.expert_step import ExpertBlock, covariates_name, levels
from bayesjpt.table.covariates import INTERCEPT, Covariates, make_covariates
from bayesjpt.table.table import Table, as_table

_LARGEST_DEPTH = 6


class Explained(NamedTuple):
    """What `bayesjpt.experts.from_idata` has to know of a tree; the tag ``explained`` of its observed variable.

    Attributes
    ----------
    responses : Responses
    covariates : Covariates or None
        How frames are read; None of covariates that were given as numbers.
    names : tuple of str
        Of the covariates.
    shape : (int, int)
        Depth, and ways of each gate.
    transitions, time, series : str
        Over time; empty where rows stand by themselves, or belong to a single series.
    """

    responses: Responses
    covariates: Covariates | None
    names: tuple[str, ...]
    shape: tuple[int, int]
    transitions: str
    time: str
    series: str


class ExpertTree:
    """A density of y given covariates: ``bj.ExpertTree("y", X, y, depth=3)``, in any ``pm.Model``.

    Registers, all prefixed by the name: coefficients of gates (``y_gate``) and their precision, the steps of experts'
    coefficients from those of their parent (``y_step``) and the sums (``y_coefficient``), precisions of the steps by
    level (``y_precision``, of Poisson and gamma experts bounded from below); variances (``y_variance``) of gaussian
    experts, whose prior has the rate ``y_noise``, or shapes (``y_shape``) of gamma ones; and the data
    (``y_covariates`` and ``y_data``), but what is ``pm.Data`` already. Several responses share the gates, and each has
    its own of all others: ``y_step_height`` of the column height.

    Parameters
    ----------
    name : str
        Of the observed variable.
    X : data frame, Table, array, pm.Data or tensor
        Covariates. Of a frame, numbers become z-scores and labels indicators, and `ExpertTree.matrix` does the same to
        new rows, for ``pm.set_data``. Arrays and tensors, (row, covariate), are taken as they are, and may depend on
        random variables of the model. The intercept is added.
    y : sequence, data frame, Table, array or pm.Data
        One value a row: numbers, or labels. Or columns of these, of several kinds: responses that are independent given
        the leaf. Those of an array are named ``column_1`` and so on.
    depth : int
        Of the tree, from 0 to 6.
    branches : int
        Ways of each gate: 2 is logistic, more are softmax. At most 64 leaves in all.
    experts : str or mapping from response to str
        ``gaussian``, ``logistic``, ``multinomial``, ``poisson``, ``gamma``, or ``auto`` by what y is, as in
        `bayesjpt.fit_experts`.
    time, series : str or sequence, optional
        When each row is, numbers or dates, and to which series it belongs: names of columns of X, or values. With
        `time` gates depend on the leaf of the row before (``y_offset``, ``y_offset_precision``): a hidden Markov
        decision tree. X may then be None.
    transitions : str
        With `time`, ``leaf`` or ``decision``; see `bayesjpt.fit_experts`.

    Returns
    -------
    TensorVariable
        The observed variable, in the user's units; labels as codes in the order of the labels, which is that of a
        categorical where y is one and sorted elsewhere. Of one value a row (row,); of columns (row, response), dims
        ``y_row`` and ``y_response``, in one type for all of them, floats unless all are labels and counts.

    Raises
    ------
    ModelError
        Outside a model; for a depth or expert that makes no sense for y, infinite values, missing covariates, constants
        of gaussian and gamma experts, lengths of time, a slash in a name, numbers of rows that differ, and a column of
        y that is a covariate, time or series, too.
    TableError
        For numbers whose squares overflow, and for times that are missing, no numbers or dates, or the same in two rows
        of a series.

    Notes
    -----
    The likelihood of a row is the sum over leaves of the product of the gates on the path and the leaf's densities, one
    a response. So it is one number a row, which several observed variables could not share: ``az.loo`` leaves out rows.
    A row that lacks a response says nothing, as in `bayesjpt.fit_experts`: its log density is 0, with a warning, and
    over time it is a step without any. Which rows have all is in ``y_seen``. Predictions of new rows need covariates
    alone; log likelihoods of new rows need ``y_data``, and ``y_seen`` where it is there, of as many rows, too.

    Gates have mirror images, so that chains agree in what they predict and not in names of leaves: judge predictions.
    Where X holds data, ``pm.sample()`` draws all variables by Gibbs sweeps (`bayesjpt.model.expert_step`), beside any
    step of the model's others; where X depends on random variables, and with ``step=pm.NUTS()``, it is NUTS.

    Over time the log density of a row is that given the rows before it in its series, by a forward pass: they add up to
    the joint one, and ``az.loo`` of them is about one step ahead. Posterior predictive draws are of whole series from
    their beginning. `ExpertTree.data` makes new rows; the order of rows is in ``y_order`` and ``y_begins``.

    `bayesjpt.ExpertPosterior.from_idata` turns the draws of ``pm.sample`` into an `ExpertPosterior`, which answers
    queries about all responses given rows.

    Examples
    --------
    >>> import numpy as np, pandas as pd, pymc as pm, bayesjpt as bj
    >>> frame = pd.DataFrame({"x": np.linspace(-1.0, 1.0, 20)})
    >>> with pm.Model() as model:
    ...     y = bj.ExpertTree("y", frame, np.abs(frame["x"]), depth=1)
    >>> y.name, sorted(rv.name for rv in model.free_RVs)[:3]
    ('y', ['y_gate', 'y_gate_precision', 'y_noise'])
    >>> both = pd.DataFrame({"height": np.sin(9.0 * frame["x"]), "sick": np.where(frame["x"] > 0.3, "yes", "no")})
    >>> with pm.Model() as model:
    ...     y = bj.ExpertTree("y", frame, both, depth=1, experts={"height": "gaussian"})
    >>> model.named_vars_to_dims["y"], list(model.coords["y_response"])
    (('y_row', 'y_response'), ['height', 'sick'])

    Ten rows of which one lacks a value, and three new ones:

    >>> import warnings
    >>> with pm.Model() as model, warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", bj.BayesjptWarning)
    ...     y = bj.ExpertTree("y", frame.head(10), [0.5, 1.5, None, 2.5, 1.0, 0.0, 3.5, 2.0, 1.5, 0.2], depth=1)
    ...     pm.set_data(
    ...         {
    ...             "y_covariates": bj.ExpertTree.matrix(y, frame.tail(3)),
    ...             "y_data": np.array([1.0, 2.0, 3.0]),
    ...             "y_seen": np.ones(3, int),
    ...         }
    ...     )
    >>> model.compile_logp(vars=[y], sum=False)(model.initial_point())[0].shape
    (3,)
    """

    def __new__(
        cls,
        name: str,
        X: Any,
        y: Any,
        *,
        depth: int = 3,
        branches: int = 2,
        experts: str | Mapping[str, str] = "auto",
        time: Any = None,
        series: Any = None,
        transitions: str = "leaf",
    ):
        try:
            model = pm.modelcontext(None)
        except TypeError as error:
            raise ModelError("bj.ExpertTree outside a model", "a model around it", "with pm.Model(): ...") from error
        if isinstance(depth, bool) or not isinstance(depth, Integral) or not 0 <= depth <= _LARGEST_DEPTH:
            raise ModelError(f"depth={depth!r}", f"a whole number from 0 to {_LARGEST_DEPTH}")
        depth = int(depth)
        if isinstance(branches, bool) or not isinstance(branches, Integral) or branches < 2 or branches**depth > 64:
            raise ModelError(f"branches={branches!r}", "a whole number from 2, and at most 64 leaves: branches^depth")
        branches = int(branches)
        check_series(depth, branches, time, series, transitions)
        check_name(name, "a tree of experts named")
        before = set(model.free_RVs)
        responses = read_responses(name, y, experts)
        tell_missing(responses, steps=time is not None)
        steps = tuple(
            "" if given is None else given if isinstance(given, str) else what
            for what, given in (("time", time), ("series", series))
        )
        _check_steps(responses, steps)
        rows = None
        if time is not None:
            X, rows = read_rows(X, time, series)
        matrix, names, covariates = _covariates(name, X, responses)
        if depth and not names and rows is None:
            raise ModelError(f"a tree of depth {depth} for {name!r} without covariates", "one that differs, or depth=0")
        n_leaf = branches**depth
        full = model.name_for(name)  # of a named submodel: PyMC gives its prefix to variables, and not to dims
        model.add_coord(f"{full}_covariate", [INTERCEPT, *names])
        model.add_coord(f"{full}_gate_node", np.arange(n_leaf - 1))
        model.add_coord(f"{full}_node", np.arange((n_leaf - 1) // (branches - 1) + n_leaf))
        model.add_coord(f"{full}_leaf", np.arange(n_leaf))
        model.add_coord(f"{full}_level", np.arange(depth + 1))
        x = pt.concatenate([pt.ones((matrix.shape[0], 1)), matrix], axis=1)
        x.name = covariates_name(full)
        log_odds = _log_odds(name, x) if depth else None
        n_column = len(names) if covariates is None else len(covariates.columns)
        leaves = [part for own in responses.each for part in _leaves(name, own, x, (depth, branches), n_column)]
        dims, by_column = None, responses.values.ndim == 2
        if by_column:
            model.add_coord(f"{full}_response", [response.name for response in responses.each])
            model.add_coord(f"{full}_row", length=matrix.shape[0])
            dims = (f"{full}_row", f"{full}_response")
            leaves.append(np.zeros(len(responses.each)))  # which tells PyMC how long a row is
        observed, dtype = _observed(name, y, responses, steps=rows is not None)
        if rows is None:
            log_weight = pt.zeros((matrix.shape[0], 1))
            if log_odds is not None:
                log_weight = (
                    softmax_weights(log_odds, n_leaf, branches) if branches > 2 else logistic_weights(log_odds, n_leaf)
                )
            out = pm.CustomDist(
                name,
                log_weight,
                *leaves,
                logp=partial(mixture_logp, responses.kinds),
                random=partial(mixture_random, responses.kinds),
                signature=signature(responses.kinds, by_column, ["(l)"]),
                dtype=dtype,
                observed=observed,
                shape=(matrix.shape[0], len(responses.each))[: responses.values.ndim],
                dims=dims,
            )
        else:
            data = {"observed": observed, "dtype": dtype, "n_leaf": n_leaf, "dims": dims}
            both = (log_odds, add_offsets(name, depth, transitions))
            out = add_series(name, responses.kinds, both, leaves, rows, data)
            out.tag.steps = (time, series) if isinstance(time, str) else None
        own = transitions if rows is not None else ""
        out.tag.covariates = covariates
        out.tag.explained = Explained(responses, covariates, tuple(names), (depth, branches), own, *steps)
        if _is_data(matrix):
            block = ExpertBlock(out.name, responses.each, depth, branches, n_column, own)
            for variable in set(model.free_RVs) - before:
                variable.tag.expert_block = block
        return out

    @staticmethod
    def matrix(variable: Any, X: Any) -> np.ndarray:
        """Return new rows of covariates as ``pm.set_data`` takes them, float64 (row, covariate).

        Parameters
        ----------
        variable : TensorVariable
            What ``bj.ExpertTree`` returned for a frame.
        X : data frame or Table
        """
        covariates = getattr(variable.tag, "covariates", None)
        if covariates is None:
            raise ModelError("covariates that were given as numbers", "a data frame", "Hand pm.set_data an array.")
        table = X if isinstance(X, Table) else as_table(X, schema=covariates.schema, ignore_new=True)
        return covariates.matrix(table)[:, 1:]

    @staticmethod
    def data(variable: Any, X: Any, *, time: Any = None, series: Any = None) -> dict[str, np.ndarray]:
        """Return new rows of a tree over time as ``pm.set_data`` takes them: covariates, and which follow each other.

        Parameters
        ----------
        variable : TensorVariable
            What ``bj.ExpertTree(..., time=)`` returned.
        X : data frame, Table or array
            An array where the tree was given one.
        time, series : sequences, optional
            Of each row, where the tree was given values and not names of columns.
        """
        if not hasattr(variable.tag, "steps"):
            raise ModelError(
                "a tree without time", "one with time=", "Hand pm.set_data ExpertTree.matrix(variable, X)."
            )
        if variable.tag.steps is not None:
            time, series = variable.tag.steps
        if time is None:
            raise ModelError(f"new rows of {variable.name!r} without time", "the time of each row: time=VALUES")
        X, rows = read_rows(X, time, series)
        if variable.tag.covariates is not None:
            matrix = ExpertTree.matrix(variable, X)
        else:
            matrix = np.empty((rows.order.size, 0)) if X is None else np.atleast_2d(np.asarray(X, np.float64).T).T
        name = variable.name
        return {f"{name}_covariates": matrix, f"{name}_order": rows.order, f"{name}_begins": rows.begins}


def _check_steps(responses: Responses, steps: Sequence[str]) -> None:
    """Raise `ModelError` for columns of y that are named as those of time and series."""
    for what, column in zip(("time", "series"), steps, strict=True):
        if responses.values.ndim == 2 and column in responses.table.names and column:
            raise ModelError(f"column {column!r} is both response and {what}", "one or the other", "Rename one.")


def _observed(name: str, y: Any, responses: Responses, *, steps: bool) -> tuple[Any, str]:
    """Return the values as the observed variable has them, NaN in rows that lack one, and of which type they are."""
    seen = responses.seen
    own = y if isinstance(y, SharedVariable) and seen.all() else pm.Data(f"{name}_data", responses.values)
    if steps or not seen.all():
        known = pm.Data(f"{name}_seen", seen.astype(np.int64))  # PyMC's data hold no NaN
        return pt.switch(pt.neq(known if own.ndim == 1 else known[:, None], 0), own, np.nan), "float64"
    dtype = "int64" if all(response.discrete for response in responses.each) else "float64"
    return own.astype(dtype), dtype


def _covariates(name: str, X: Any, responses: Responses) -> tuple[Any, list[str], Covariates | None]:
    """Return covariates without the intercept, as a tensor; their names; and how frames are read, for frames."""
    n_row = responses.seen.size
    if isinstance(X, pt.TensorVariable):
        if X.ndim != 2:
            raise ModelError(f"covariates of {name!r} with {X.ndim} axes", "rows and covariates")
        if isinstance(X, SharedVariable) and X.get_value().shape[0] != n_row:
            raise ModelError(
                f"covariates of {name!r} of {X.get_value().shape[0]} rows for {n_row} values", "as many rows"
            )
        n = X.type.shape[1] if X.type.shape[1] is not None else int(X.shape[1].eval())
        return X.astype("float64"), [f"x{k}" for k in range(n)], None
    covariates = None
    if isinstance(X, np.ndarray):
        matrix = np.atleast_2d(np.ma.filled(X.astype(np.float64), np.nan).T).T
        names = [f"x{k}" for k in range(matrix.shape[1])]
    elif X is None:
        matrix, names = np.empty((n_row, 0)), []
    else:
        table = as_table(X)
        if table.n_row != n_row:
            raise ModelError(f"covariates of {name!r} of {table.n_row} rows for {n_row} values", "as many rows")
        both = sorted({*table.names} & {*responses.table.names})
        if both and responses.values.ndim == 2:
            raise ModelError(f"column {both[0]!r} is both response and covariate", "one or the other")
        covariates = make_covariates(table.take(responses.seen), table.names)
        # reading a frame has told of columns that are constant in all rows
        told = [] if isinstance(X, Table) else [column.name for column in table.schema if column.n_distinct < 2]
        silent = [each for each in table.names if each not in (*covariates.columns, *told)]
        if silent:
            warn(f"covariates with a single value are left out: {', '.join(silent)}")
        matrix, names = covariates.matrix(table)[:, 1:], list(covariates.names[1:])
    if matrix.shape[0] != n_row:
        raise ModelError(f"covariates of {name!r} of {matrix.shape[0]} rows for {n_row} values", "as many rows")
    if not np.isfinite(matrix).all():
        row, k = (int(at) for at in np.argwhere(~np.isfinite(matrix))[0])
        found = f"{matrix[row, k]:g} in row {row + 1} of the covariate {names[k]!r}, column {k + 1}"
        raise ModelError(found, "finite numbers", "Leave the row out, or fill it in: bj.fit(covariates).impute(...).")
    return pm.Data(f"{name}_covariates", matrix), names, covariates


def _is_data(matrix: Any) -> bool:
    """Return whether a tensor is made of constants and ``pm.Data`` alone, so that no random variable changes it."""
    return all(
        isinstance(root, Constant | SharedVariable) and not isinstance(root.type, RandomType)
        for root in graph_inputs([matrix])
    )


def _log_odds(name: str, x: Any) -> Any:
    """Register the gates' coefficients, and return their log odds, (row, gate)."""
    precision = pm.Gamma(f"{name}_gate_precision", *defaults_experts.GATE_PRECISION)
    full = pm.modelcontext(None).name_for(name)
    return x @ pm.Normal(f"{name}_gate", 0.0, precision**-0.5, dims=(f"{full}_gate_node", f"{full}_covariate")).T


def _leaves(name: str, response: Response, x: Any, shape: tuple[int, int], n_column: int) -> tuple[Any, Any]:
    """Register a response's variables, and return its leaves' predictors and what else their densities have.

    Predictors are in the user's units, (row, leaf[, label]), of a tree of some depth and ways; the other is (leaf,).
    """
    suffix, n_leaf, dims = response.suffix, shape[1] ** shape[0], f"{pm.modelcontext(None).name_for(name)}_leaf"
    eta = response.offset + response.scale * _predictors(name, response, x, shape, n_column)
    if response.kind == GAUSSIAN:
        noise = pm.Gamma(f"{name}_noise{suffix}", *defaults_experts.NOISE_RATE)
        variance = pm.InverseGamma(f"{name}_variance{suffix}", defaults_experts.NOISE_SHAPE, noise, dims=dims)
        return eta, response.scale * pt.sqrt(variance)
    if response.kind == GAMMA:
        mean, deviation = defaults_experts.LOG_SHAPE
        return eta, pm.LogNormal(f"{name}_shape{suffix}", mean, deviation, dims=dims)
    return eta, pt.ones(n_leaf)


def _predictors(name: str, response: Response, x: Any, shape: tuple[int, int], n_column: int) -> Any:
    """Return x . b of the leaves of a tree of some depth and ways, (row, leaf[, label])."""
    depth, n_way = shape
    level, suffix = levels(depth, n_way), response.suffix
    n_node = level.size
    above = np.zeros((n_node, n_node))
    for node in range(n_node):
        at = node
        above[node, at] = 1.0
        while at > 0:
            at = (at - 1) // n_way
            above[node, at] = 1.0
    model = pm.modelcontext(None)
    full = model.name_for(name)
    precision = _precision(f"{name}_precision{suffix}", response, depth, n_column, dims=f"{full}_level")
    dims = [f"{full}_node", f"{full}_covariate"]
    if response.kind == MULTINOMIAL:
        dims.insert(1, f"{full}_label{suffix}")
        model.add_coord(dims[1], response.labels)
    step = pm.Normal(f"{name}_step{suffix}", 0.0, 1.0, dims=dims)
    sized = step * (precision[level] ** -0.5)[(slice(None), *[None] * (step.ndim - 1))]
    coefficient = pm.Deterministic(f"{name}_coefficient{suffix}", pt.tensordot(above, sized, axes=1), dims=dims)
    leaves = coefficient[n_node - n_way**depth :]
    return pt.tensordot(x, leaves, axes=[[1], [leaves.ndim - 1]])


def _precision(name: str, response: Response, depth: int, n_column: int, *, dims: str) -> Any:
    """Register the precisions of steps by level, which are bounded from below where means are exponentials."""
    shape, is_log = defaults_experts.PRECISION_SHAPE, response.kind in LOG_LINKED
    rates, least = (
        np.array(column)[np.minimum(np.arange(depth + 1), 1), 0]
        for column in defaults_experts.precision_bounds([is_log], n_column, depth)
    )
    if not is_log:
        return pm.Gamma(name, shape, rates, dims=dims)
    return pm.Truncated(name, pm.Gamma.dist(shape, rates), lower=least, dims=dims)
