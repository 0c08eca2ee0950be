"""Log densities of real cells under a circuit whose parameters are numbers, as a plain PyTensor graph.

Every backend compiles it and PyTensor differentiates it with respect to the cells. The coefficients of leaves are those
that the families' compiled slots make once, so what is left of a density is the one line that knows z. Nodes of one
height, kind and number of children are one operation, as in `bayesjpt.model.node_groups`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad

from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.plan import INTERVAL, Plan
from bayesjpt.errors import ModelError
from bayesjpt.families import registry
from bayesjpt.families.record import N_EXTRA_COEFFICIENTS
from bayesjpt.families.simplex import SMALLEST
from bayesjpt.model.distributions import log_normal_cdf
from bayesjpt.model.node_groups import node_groups


class CellFamily(NamedTuple):
    """What the graph needs of a family.

    Attributes
    ----------
    log_density : callable
        ``(z, c) -> (n_leaf, n)``, c the coefficients, (n_leaf, n_coefficient).
    log_cdf : callable
        ``(z, theta, constants) -> (n_leaf, n)``.
    is_positive : bool
        Whether its density below 0 is 0.
    """

    log_density: Callable[..., Any]
    log_cdf: Callable[..., Any]
    is_positive: bool = False


def _normal(z, c):
    return c[:, :1] + c[:, 2:3] * (z - c[:, 1:2]) ** 2


def _student_t(z, c):
    return c[:, :1] + c[:, 3:4] * pt.log1p(c[:, 2:3] * (z - c[:, 1:2]) ** 2)


def _from_zero(z, inside, at_zero, half):
    """Return a density above half a resolution, and its average over the cell of 0 below."""
    return pt.switch(z >= half, inside, pt.switch(z >= 0.0, at_zero, -np.inf))


def _gamma(z, c):
    half = c[:, 4:5]
    # the branch that is not taken has a finite value and slope too, or its NaN would spoil the gradient
    safe = pt.maximum(z, half)
    return _from_zero(z, c[:, :1] + c[:, 1:2] * pt.log(safe) - c[:, 2:3] * safe, c[:, 3:4], half)


def _exponential(z, c):
    return _from_zero(z, c[:, :1] - c[:, 1:2] * z, c[:, 2:3], c[:, 3:4])


def _lognormal(z, c):
    half = c[:, 4:5]
    log_z = pt.log(pt.maximum(z, half))
    return _from_zero(z, c[:, :1] + c[:, 2:3] * (log_z - c[:, 1:2]) ** 2 - log_z, c[:, 3:4], half)


def _uniform(z, c):
    return pt.switch((z >= c[:, :1]) & (z <= c[:, 1:2]), c[:, 2:3], -np.inf)


def _normal_cdf(z, theta, constants):
    return log_normal_cdf((z - theta[:, 1:2]) / np.sqrt(theta[:, :1]))


def _student_t_cdf(z, theta, constants):
    nu = theta[:, 2:3]
    t = (z - theta[:, 1:2]) / np.sqrt(theta[:, :1])
    tail = 0.5 * pt.betainc(0.5 * nu, 0.5, nu / (nu + t**2))
    return pt.switch(t < 0.0, pt.log(tail), pt.log1p(-tail))


def _gamma_cdf(z, theta, constants):
    return pt.log(pt.gammainc(theta[:, :1], theta[:, 1:2] * pt.maximum(z, 0.0)))


def _exponential_cdf(z, theta, constants):
    return pt.log(-pt.expm1(-theta[:, :1] * pt.maximum(z, 0.0)))


def _lognormal_cdf(z, theta, constants):
    value = log_normal_cdf((pt.log(pt.maximum(z, SMALLEST)) - theta[:, 1:2]) / np.sqrt(theta[:, :1]))
    return pt.switch(z > 0.0, value, -np.inf)


def _uniform_cdf(z, theta, constants):
    lo, hi = constants[:, :1], constants[:, 1:2]
    return pt.log(pt.clip((z - lo) / (hi - lo), 0.0, 1.0))


CELL_FAMILIES: dict[str, CellFamily] = {
    "normal": CellFamily(_normal, _normal_cdf),
    "student_t": CellFamily(_student_t, _student_t_cdf),
    "gamma": CellFamily(_gamma, _gamma_cdf, True),
    "exponential": CellFamily(_exponential, _exponential_cdf, True),
    "lognormal": CellFamily(_lognormal, _lognormal_cdf, True),
    "uniform": CellFamily(_uniform, _uniform_cdf),
}
"""Families of real columns with a density of one line, by name."""


class _Leaves(NamedTuple):
    """Leaves of one family and size."""

    family: CellFamily
    leaves: np.ndarray
    coefficient: np.ndarray
    theta: np.ndarray
    constants: np.ndarray
    log_cell: np.ndarray  # (n_leaf, 1), log mass of each leaf's cell
    below: np.ndarray  # (n_leaf, 1), mass below the cell's lower end


class CellDensity:
    """Density and distribution function of cells of real columns under a circuit at one point.

    Parameters
    ----------
    circuit : Circuit
    plan : Plan
    params : Params
        One point.

    Raises
    ------
    ModelError
        For a family without a form here.
    """

    def __init__(self, circuit: Circuit, plan: Plan, params: Params):
        names = np.array([family.name for family in registry.FAMILIES])[circuit.leaf_family]
        unknown = sorted({str(name) for name in names if name not in CELL_FAMILIES})
        if unknown:
            raise ModelError(
                f"a prior over cells with the likelihood {', '.join(unknown)}, whose density has no derivative here",
                f"the likelihoods {', '.join(CELL_FAMILIES)}",
                "Fit with families= without it, or leave its columns out: columns=[...]",
            )
        self._plan = plan
        self._log_weight = params.log_weight
        kinds = np.stack([circuit.leaf_family, circuit.theta_len, circuit.const_len])
        self._leaves = [
            _leaves_of(circuit, plan, params, np.flatnonzero((kinds == key[:, None]).all(axis=0)))
            for key in np.unique(kinds, axis=1).T
        ]
        order = np.concatenate([group.leaves for group in self._leaves])
        self._groups = node_groups(plan, np.argsort(order))

    def positive(self, n_column: int) -> np.ndarray:
        """Return bool (n_column,): columns whose densities below 0 are 0 in all leaves."""
        out = np.ones(n_column, bool)
        for group in self._leaves:
            if not group.family.is_positive:
                out[self._column(group)] = False
        return out

    def _column(self, group: _Leaves) -> np.ndarray:
        return self._plan.feature_column[self._plan.leaf_value[group.leaves]]

    def log_density(self, cells) -> Any:
        """Return the log density, (n,), of cells, (n_column, n), in the user's units."""
        values = []
        for group in self._leaves:
            raw = cells[self._column(group)]
            value = group.family.log_density(self._in_units(group, raw), group.coefficient)
            cut = self._plan.leaf_cut[group.leaves][:, None] == INTERVAL
            if cut.any():
                lower, upper = (end[group.leaves][:, None] for end in (self._plan.leaf_lower, self._plan.leaf_upper))
                value = pt.switch((raw >= lower) & (raw <= upper), value - group.log_cell, -np.inf)
            values.append(value + self._plan.column_log_jacobian[self._column(group)][:, None])
        return self._up(values)

    def log_cdf(self, cells) -> Any:
        """Return the log probability, (n,), of values of one column up to cells, (1, n)."""
        values = []
        for group in self._leaves:
            lower, upper = (end[group.leaves][:, None] for end in (self._plan.leaf_lower, self._plan.leaf_upper))
            raw = pt.clip(cells[self._column(group)], lower, upper)
            value = group.family.log_cdf(self._in_units(group, raw), group.theta, group.constants)
            if (self._plan.leaf_cut[group.leaves] == INTERVAL).any():
                value = pt.log(pt.maximum(pt.exp(value) - group.below, 0.0)) - group.log_cell
                value = pt.switch(raw >= upper, 0.0, value)
            values.append(value)
        return self._up(values)

    def _in_units(self, group: _Leaves, raw) -> Any:
        feature = self._plan.leaf_value[group.leaves]
        return (raw - self._plan.feature_offset[feature][:, None]) / self._plan.feature_scale[feature][:, None]

    def _up(self, leaves: list) -> Any:
        value = pt.concatenate(leaves)
        for group in self._groups:
            n_node, n_child = group.children.shape
            terms = value[group.children.ravel()].reshape((n_node, n_child, -1))
            if group.is_product:
                new = terms.sum(axis=1)
            else:
                new = _log_sum_exp(terms + self._log_weight[group.edges][:, :, None])
            value = pt.concatenate([value, new])
        return value[-1]


def _leaves_of(circuit: Circuit, plan: Plan, params: Params, leaves: np.ndarray) -> _Leaves:
    family = registry.FAMILIES[circuit.leaf_family[leaves[0]]]
    theta = params.theta[circuit.theta_at[leaves][:, None] + np.arange(int(circuit.theta_len[leaves[0]]))]
    constants = circuit.const[circuit.const_at[leaves][:, None] + np.arange(int(circuit.const_len[leaves[0]]))]
    coefficient = np.zeros((leaves.size, theta.shape[1] + constants.shape[1] + N_EXTRA_COEFFICIENTS))
    log_cell, below = np.zeros((leaves.size, 1)), np.zeros((leaves.size, 1))
    for k, leaf in enumerate(leaves):
        family.coefficients(theta[k], constants[k], coefficient[k])
        if plan.leaf_cut[leaf] == INTERVAL:
            log_cell[k] = family.log_mass(plan.leaf_lo[leaf], plan.leaf_hi[leaf], theta[k], constants[k])
            below[k] = family.cdf(plan.leaf_lo[leaf], theta[k], constants[k])
    return _Leaves(CELL_FAMILIES[family.name], leaves, coefficient, theta, constants, log_cell, below)


def _log_sum_exp(terms: Any) -> Any:
    """Return the log sum of exponentials along axis 1, -inf, with derivative 0, where all are 0."""
    # the shift cancels: no derivative runs through it
    largest: Any = disconnected_grad(pt.max(terms, axis=1, keepdims=True))
    largest = pt.switch(largest > -np.inf, largest, 0.0)
    total = pt.exp(terms - largest).sum(axis=1)
    # log 0 has an infinite slope, also in the branch that is not taken
    return pt.switch(total > 0.0, pt.log(pt.switch(total > 0.0, total, 1.0)) + largest[:, 0], -np.inf)
