"""A hierarchical mixture of experts as one more distribution of a PyMC model, its paths summed out.

Plain PyTensor throughout: gradients, `pm.set_data` and predictions are PyMC's own. The names and priors are those of
`bayesjpt.experts`, but coefficients are drawn as steps away from the parent's, which lets NUTS move.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesjpt import defaults_experts
from bayesjpt.errors import ModelError
from bayesjpt.kernels.expert_tree import GAMMA, GAUSSIAN, KIND_NAMES, LOGISTIC, MULTINOMIAL, POISSON
from bayesjpt.model.expert_step import ExpertBlock, levels
from bayesjpt.table.covariates import INTERCEPT, Covariates, make_covariates
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table, as_table

_KINDS = {name: code for code, name in KIND_NAMES.items()}
_LARGEST_DEPTH = 6


class ExpertTree:
    """A density of y given covariates: ``bj.ExpertTree("y", X, y, depth=3)``, in any ``pm.Model``.

    Registers, all prefixed by the name: coefficients of gates (``y_gate``) and their precision, the steps of experts'
    coefficients from those of their parent (``y_step``) and the sums (``y_coefficient``), precisions of the steps by
    level (``y_precision``); variances (``y_variance``) of gaussian experts, whose prior has the rate ``y_noise``, or
    shapes (``y_shape``) of gamma ones; and the data (``y_covariates``, where X holds data, and ``y_data``).

    Parameters
    ----------
    name : str
        Of the observed variable.
    X : data frame, Table, array, pm.Data or tensor
        Covariates. Of a frame, numbers become z-scores and labels indicators, and `ExpertTree.matrix` does the same to
        new rows, for ``pm.set_data``. Arrays and tensors, (row, covariate), are taken as they are, and may depend on
        random variables of the model. The intercept is added.
    y : sequence or array
        One value a row: numbers, or labels.
    depth : int
        Of the tree, from 0 to 6.
    branches : int
        Ways of each gate: 2 is logistic, more are softmax. At most 64 leaves in all.
    experts : str
        ``gaussian``, ``logistic``, ``multinomial``, ``poisson``, ``gamma``, or ``auto`` by what y is.

    Returns
    -------
    TensorVariable
        The observed variable, (row,), in the user's units; labels as codes in their sorted order.

    Raises
    ------
    ModelError
        For a depth or expert that makes no sense for y, missing values, and numbers of rows that differ.

    Notes
    -----
    The likelihood of a row is the sum over leaves of the product of the gates on the path and the leaf's density. Gates
    have mirror images, so that chains agree in what they predict and not in names of leaves: judge predictions. Where X
    holds data, ``pm.sample()`` draws all variables by Gibbs sweeps (`bayesjpt.model.expert_step`), beside any step of
    the model's others; where X is a tensor, and with ``step=pm.NUTS()``, it is NUTS.

    Examples
    --------
    >>> import numpy as np, pandas as pd, pymc as pm, bayesjpt as bj
    >>> frame = pd.DataFrame({"x": np.linspace(-1.0, 1.0, 20)})
    >>> with pm.Model() as model:
    ...     y = bj.ExpertTree("y", frame, np.abs(frame["x"]), depth=1)
    >>> y.name, sorted(rv.name for rv in model.free_RVs)[:3]
    ('y', ['y_gate', 'y_gate_precision', 'y_noise'])
    """

    def __new__(cls, name: str, X: Any, y: Any, *, depth: int = 3, branches: int = 2, experts: str = "auto"):
        model = pm.modelcontext(None)
        if isinstance(depth, bool) or not isinstance(depth, int) or not 0 <= depth <= _LARGEST_DEPTH:
            raise ModelError(f"depth={depth!r}", f"a whole number from 0 to {_LARGEST_DEPTH}")
        if isinstance(branches, bool) or not isinstance(branches, int) or branches < 2 or branches**depth > 64:
            raise ModelError(f"branches={branches!r}", "a whole number from 2, and at most 64 leaves: branches^depth")
        before = set(model.free_RVs)
        values, column = _response(name, y)
        kind = _kind(column, values, experts)
        labels = list(column.labels) if kind == MULTINOMIAL else None
        matrix, names, covariates = _covariates(name, X, values.size)
        if depth and not names:
            raise ModelError(f"a tree of depth {depth} for {name!r} without covariates", "one that differs, or depth=0")
        n_leaf = branches**depth
        model.add_coord(f"{name}_covariate", [INTERCEPT, *names])
        model.add_coord(f"{name}_gate_node", np.arange(n_leaf - 1))
        model.add_coord(f"{name}_node", np.arange((n_leaf - 1) // (branches - 1) + n_leaf))
        model.add_coord(f"{name}_leaf", np.arange(n_leaf))
        model.add_coord(f"{name}_level", np.arange(depth + 1))
        if labels:
            model.add_coord(f"{name}_label", labels)
        x = pt.concatenate([pt.ones((matrix.shape[0], 1)), matrix], axis=1)
        log_weight = _log_weights(name, x, n_leaf, branches) if depth else pt.zeros((matrix.shape[0], 1))
        eta = _predictors(name, x, (depth, branches), labels is not None)
        location, scale = _units(kind, values)
        eta, dispersion = _leaves(name, kind, eta, (location, scale), n_leaf)
        observed = pm.Data(f"{name}_data", values)
        out = pm.CustomDist(
            name,
            log_weight,
            eta,
            dispersion,
            logp=_LOGP[kind],
            random=_RANDOM[kind],
            signature="(l),(l,k),(l)->()" if labels else "(l),(l),(l)->()",
            dtype="int64" if kind in (LOGISTIC, MULTINOMIAL, POISSON) else "float64",
            observed=observed.astype("int64") if kind in (LOGISTIC, MULTINOMIAL, POISSON) else observed,
            shape=(matrix.shape[0],),
        )
        out.tag.covariates = covariates
        if f"{name}_covariates" in model:
            block = ExpertBlock(name, kind, depth, branches, len(labels or ()), location, scale)
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


def _response(name: str, y: Any) -> tuple[np.ndarray, Column]:
    """Return y as numbers or codes, and what it is."""
    if isinstance(y, pt.TensorVariable) and hasattr(y, "get_value"):
        y = y.get_value()
    try:
        values = list(np.asarray(y).ravel()) if np.ndim(y) <= 1 else None
    except (TypeError, ValueError):
        values = None
    if values is None or not values:
        raise ModelError(f"y of {name!r} with {np.ndim(y)} axes", "one value a row")
    numbers = np.asarray(y)
    if numbers.dtype.kind in "iufb" and not np.isfinite(numbers.astype(float)).all():
        raise ModelError(f"y of {name!r} has missing or infinite values", "a number in each row")
    whole = numbers.dtype.kind in "iu"
    if numbers.dtype.kind == "f" or whole:
        number = numbers.astype(np.float64)
        facts = Column(name, "integer" if whole else "real", (-np.inf, np.inf), minimum=float(number.min()))
        return number, facts
    table = as_table({name: numbers.tolist()}, kinds={name: "category"})
    if not table.observed.all():
        raise ModelError(f"y of {name!r} has missing values", "a label in each row")
    return table.values[0].copy(), table.schema.columns[0]


def _kind(column: Column, values: np.ndarray, wanted: str) -> int:
    """Return the code of the kind of expert."""
    if wanted != "auto" and wanted not in _KINDS:
        raise ModelError(f"experts={wanted!r}", f"auto or one of {', '.join(_KINDS)}")
    whole = bool((values == np.floor(values)).all())
    if column.base == "category":
        fitting = ["logistic"] if len(column.labels) == 2 else ["multinomial"]
    elif column.base == "integer":
        fitting = ["logistic"] if set(np.unique(values)) == {0.0, 1.0} else []
        fitting += (["poisson"] if values.min() >= 0 else []) + ["gaussian"]
    else:
        fitting = ["gaussian"] + (["poisson"] if whole and values.min() >= 0 else [])
    if column.base != "category" and values.min() > 0.0:
        fitting.append("gamma")
    if wanted != "auto" and wanted not in fitting:
        raise ModelError(f"{wanted} experts for the values of {column.name!r}", f"one of {', '.join(fitting)}")
    return _KINDS[fitting[0] if wanted == "auto" else wanted]


def _covariates(name: str, X: Any, n_row: int) -> tuple[Any, list[str], Covariates | None]:
    """Return covariates without the intercept, as a tensor; their names; and how frames are read, for frames."""
    if isinstance(X, pt.TensorVariable):
        if X.ndim != 2:
            raise ModelError(f"covariates of {name!r} with {X.ndim} axes", "rows and covariates")
        n = X.type.shape[1] if X.type.shape[1] is not None else int(X.shape[1].eval())
        return X.astype("float64"), [f"x{k}" for k in range(n)], None
    covariates = None
    if isinstance(X, np.ndarray):
        matrix = np.atleast_2d(X.astype(np.float64).T).T
        names = [f"x{k}" for k in range(matrix.shape[1])]
    else:
        table = as_table(X)
        covariates = make_covariates(table, table.names)
        matrix, names = covariates.matrix(table)[:, 1:], list(covariates.names[1:])
    if not np.isfinite(matrix).all() or matrix.shape[0] != n_row:
        raise ModelError(
            f"covariates of {name!r} of {matrix.shape[0]} rows for {n_row} values", "as many rows, of finite numbers"
        )
    return pm.Data(f"{name}_covariates", matrix), names, covariates


def _log_weights(name: str, x: Any, n_leaf: int, n_way: int) -> Any:
    """Return the log probabilities of the leaves, (row, leaf): sums of log gates along the paths."""
    precision = pm.Gamma(f"{name}_gate_precision", *defaults_experts.GATE_PRECISION)
    gate = pm.Normal(f"{name}_gate", 0.0, precision**-0.5, dims=(f"{name}_gate_node", f"{name}_covariate"))
    log_odds = x @ gate.T
    if n_way > 2:
        return _softmax_weights(log_odds, n_leaf, n_way)
    right, left = _paths(n_leaf)
    return pt.sigmoid(log_odds).log() @ right + pt.sigmoid(-log_odds).log() @ left


def _softmax_weights(log_odds: Any, n_leaf: int, n_way: int) -> Any:
    """Return what `_log_weights` does; log odds of ways against the first are side by side, (row, n_leaf - 1)."""
    n_gate = (n_leaf - 1) // (n_way - 1)
    scores = log_odds.reshape((log_odds.shape[0], n_gate, n_way - 1))
    scores = pt.concatenate([pt.zeros_like(scores[:, :, :1]), scores], axis=2)
    log_way = (scores - pt.logsumexp(scores, axis=2, keepdims=True)).reshape((log_odds.shape[0], n_gate * n_way))
    taken = np.zeros((n_gate * n_way, n_leaf))
    for leaf in range(n_leaf):
        node = n_gate + leaf
        while node > 0:
            taken[node - 1, leaf] = 1.0  # the ways of all gates, side by side, are the nodes below the root
            node = (node - 1) // n_way
    return log_way @ taken


def _paths(n_leaf: int) -> tuple[np.ndarray, np.ndarray]:
    """Return float64 (n_gate, n_leaf) each: 1 where a leaf's path goes right, or left, at a gate."""
    right, left = np.zeros((n_leaf - 1, n_leaf)), np.zeros((n_leaf - 1, n_leaf))
    for leaf in range(n_leaf):
        node = n_leaf - 1 + leaf
        while node > 0:
            parent = (node - 1) // 2
            (right if node == 2 * parent + 2 else left)[parent, leaf] = 1.0
            node = parent
    return right, left


def _predictors(name: str, x: Any, shape: tuple[int, int], by_label: bool) -> Any:
    """Return the linear predictors of the leaves of a tree of some depth and ways, (row, leaf[, label])."""
    depth, n_way = shape
    level = levels(depth, n_way)
    n_node = level.size
    above = np.zeros((n_node, n_node))
    for node in range(n_node):
        at = node
        above[node, at] = 1.0
        while at > 0:
            at = (at - 1) // n_way
            above[node, at] = 1.0
    precision = pm.Gamma(f"{name}_precision", *defaults_experts.PRECISION, dims=f"{name}_level")
    dims = (f"{name}_node", *([f"{name}_label"] if by_label else []), f"{name}_covariate")
    step = pm.Normal(f"{name}_step", 0.0, 1.0, dims=dims)
    sized = step * (precision[level] ** -0.5)[(slice(None), *[None] * (step.ndim - 1))]
    coefficient = pm.Deterministic(f"{name}_coefficient", pt.tensordot(above, sized, axes=1), dims=dims)
    leaves = coefficient[n_node - n_way**depth :]
    return pt.tensordot(x, leaves, axes=[[1], [leaves.ndim - 1]])


def _units(kind: int, values: np.ndarray) -> tuple[float, float]:
    """Return offset and scale of the predictor."""
    if kind == GAUSSIAN:
        return float(values.mean()), float(values.std()) or 1.0
    if kind in (POISSON, GAMMA):
        return float(np.log(max(values.mean(), 1e-3))), 1.0
    return 0.0, 1.0


def _leaves(name: str, kind: int, eta: Any, units: tuple[float, float], n_leaf: int) -> tuple[Any, Any]:
    """Return predictors in the user's units, and what else the leaves' densities have."""
    offset, scale = units
    dims = f"{name}_leaf"
    if kind == GAUSSIAN:
        noise = pm.Gamma(f"{name}_noise", *defaults_experts.NOISE_RATE)
        variance = pm.InverseGamma(f"{name}_variance", defaults_experts.NOISE_SHAPE, noise, dims=dims)
        return offset + scale * eta, scale * pt.sqrt(variance)
    if kind == GAMMA:
        mean, deviation = defaults_experts.LOG_SHAPE
        return offset + eta, pm.LogNormal(f"{name}_shape", mean, deviation, dims=dims)
    return offset + eta, pt.ones(n_leaf)


def _mixed(log_weight: Any, log_density: Any) -> Any:
    return pt.logsumexp(log_weight + log_density, axis=-1)


def _gaussian_logp(value: Any, log_weight: Any, eta: Any, dispersion: Any) -> Any:
    return _mixed(log_weight, pm.logp(pm.Normal.dist(eta, dispersion), value[..., None]))


def _logistic_logp(value: Any, log_weight: Any, eta: Any, _dispersion: Any) -> Any:
    return _mixed(log_weight, pt.log(pt.sigmoid(pt.switch(pt.gt(value[..., None], 0), eta, -eta))))


def _multinomial_logp(value: Any, log_weight: Any, eta: Any, _dispersion: Any) -> Any:
    log_share = eta - pt.logsumexp(eta, axis=-1, keepdims=True)
    hit = pt.eq(value[..., None, None], pt.arange(eta.shape[-1]))
    return _mixed(log_weight, pt.sum(pt.switch(hit, log_share, 0.0), axis=-1))


def _poisson_logp(value: Any, log_weight: Any, eta: Any, _dispersion: Any) -> Any:
    value = value[..., None]
    return _mixed(log_weight, value * eta - pt.exp(eta) - pt.gammaln(value + 1.0))


def _gamma_logp(value: Any, log_weight: Any, eta: Any, shape: Any) -> Any:
    return _mixed(log_weight, pm.logp(pm.Gamma.dist(shape, shape * pt.exp(-eta)), value[..., None]))


def _chosen(log_weight: np.ndarray, values: np.ndarray, rng: np.random.Generator, size: Any) -> tuple[np.ndarray, ...]:
    """Return the values of a leaf drawn for each row, (row[, label]), and which leaf it is."""
    shape = log_weight.shape[:-1] if size is None else tuple(size)
    weight = np.broadcast_to(log_weight, (*shape, log_weight.shape[-1]))
    leaf = np.argmax(weight + rng.gumbel(size=weight.shape), axis=-1)
    extra = values.ndim - log_weight.ndim
    index = leaf[(..., None, *[None] * extra)]
    values = np.broadcast_to(values, (*shape, *values.shape[log_weight.ndim - 1 :]))
    return np.take_along_axis(values, index, axis=len(shape)).squeeze(len(shape)), leaf


def _of_leaf(dispersion: np.ndarray, leaf: np.ndarray) -> np.ndarray:
    if dispersion.ndim == 1:
        return dispersion[leaf]
    return np.take_along_axis(np.broadcast_to(dispersion, (*leaf.shape, dispersion.shape[-1])), leaf[..., None], -1)[
        ..., 0
    ]


def _gaussian_random(log_weight, eta, dispersion, rng=None, size=None):
    eta, leaf = _chosen(log_weight, eta, rng, size)
    return rng.normal(eta, _of_leaf(dispersion, leaf))


def _logistic_random(log_weight, eta, dispersion, rng=None, size=None):
    eta, _ = _chosen(log_weight, eta, rng, size)
    return (rng.logistic(size=eta.shape) < eta).astype(np.int64)


def _multinomial_random(log_weight, eta, dispersion, rng=None, size=None):
    eta, _ = _chosen(log_weight, eta, rng, size)
    return np.argmax(eta + rng.gumbel(size=eta.shape), axis=-1).astype(np.int64)


def _poisson_random(log_weight, eta, dispersion, rng=None, size=None):
    eta, _ = _chosen(log_weight, eta, rng, size)
    return rng.poisson(np.exp(np.minimum(eta, _LARGEST_LOG_MEAN))).astype(np.int64)


def _gamma_random(log_weight, eta, dispersion, rng=None, size=None):
    eta, leaf = _chosen(log_weight, eta, rng, size)
    shape = _of_leaf(dispersion, leaf)
    return rng.gamma(shape, np.exp(eta) / shape)


_LARGEST_LOG_MEAN = 40.0
"""Beyond it NumPy's Poisson draws overflow."""

_LOGP: Mapping[int, Any] = {
    GAUSSIAN: _gaussian_logp,
    LOGISTIC: _logistic_logp,
    MULTINOMIAL: _multinomial_logp,
    POISSON: _poisson_logp,
    GAMMA: _gamma_logp,
}
_RANDOM: Mapping[int, Any] = {
    GAUSSIAN: _gaussian_random,
    LOGISTIC: _logistic_random,
    MULTINOMIAL: _multinomial_random,
    POISSON: _poisson_random,
    GAMMA: _gamma_random,
}
