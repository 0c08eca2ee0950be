"""Log densities of real cells under a circuit whose parameters are numbers, as a PyTensor graph.

Every backend compiles it and PyTensor differentiates it with respect to the cells. The coefficients of leaves are those
that the families' compiled slots make once, so what is left of a density is the one line that knows z. What stands
above the leaves is one op, see `bayesjpt.model.upward_density`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt

from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.plan import INTERVAL, Plan
from bayesjpt.errors import ModelError
from bayesjpt.families import registry
from bayesjpt.families.record import N_EXTRA_COEFFICIENTS
from bayesjpt.families.simplex import SMALLEST
from bayesjpt.model import cell_tails
from bayesjpt.model.cell_tails import log_difference
from bayesjpt.model.node_groups import node_groups
from bayesjpt.model.spline_pieces import piecewise, spline_pieces
from bayesjpt.model.upward_density import root_value

_LOG_2 = 0.6931471805599453
_FARTHEST = np.float64(1e150)
"""Units of a family beyond which squares overflow."""


class CellFamily(NamedTuple):
    """What the graph needs of a family.

    Attributes
    ----------
    log_density : callable
        ``(z, c, theta, constants) -> (n_leaf, n)``, c the coefficients, (n_leaf, n_coefficient).
    log_tails : callable
        ``(z, theta, constants) -> two of (n_leaf, n)``: log probability of values up to z, and above z.
    is_positive : bool
        Whether its density below 0 is 0.
    """

    log_density: Callable[..., Any]
    log_tails: Callable[..., Any]
    is_positive: bool = False


def _normal(z, c, *_leaves):
    return c[:, :1] + c[:, 2:3] * (z - c[:, 1:2]) ** 2


def _student_t(z, c, *_leaves):
    return c[:, :1] + c[:, 3:4] * pt.log1p(c[:, 2:3] * (z - c[:, 1:2]) ** 2)


def _from_zero(z, inside, at_zero, half):
    """Return a density above half a resolution, and its average over the cell of 0 below."""
    return pt.switch(z >= half, inside, pt.switch(z >= 0.0, at_zero, -np.inf))


def _gamma(z, c, *_leaves):
    half = c[:, 4:5]
    # the branch that is not taken has a finite value and slope too, or its NaN would spoil the gradient
    safe = pt.maximum(z, half)
    return _from_zero(z, c[:, :1] + c[:, 1:2] * pt.log(safe) - c[:, 2:3] * safe, c[:, 3:4], half)


def _exponential(z, c, *_leaves):
    return _from_zero(z, c[:, :1] - c[:, 1:2] * z, c[:, 2:3], c[:, 3:4])


def _lognormal(z, c, *_leaves):
    half = c[:, 4:5]
    log_z = pt.log(pt.maximum(z, half))
    return _from_zero(z, c[:, :1] + c[:, 2:3] * (log_z - c[:, 1:2]) ** 2 - log_z, c[:, 3:4], half)


def _uniform(z, c, *_leaves):
    return pt.switch((z >= c[:, :1]) & (z <= c[:, 1:2]), c[:, 2:3], -np.inf)


def _quantile(z, c, *_leaves):
    n_segment = int(c[0, 0])  # the same in all leaves of a group
    knots, levels = c[:, None, 1 : n_segment + 2], c[:, None, n_segment + 2 : 2 * n_segment + 2]
    x = z[:, :, None]
    # the last knot belongs to the last segment
    is_last = np.arange(n_segment) == n_segment - 1
    inside = (x >= knots[:, :, :-1]) & ((x < knots[:, :, 1:]) | (is_last & pt.eq(x, knots[:, :, 1:])))
    return pt.switch(inside.any(axis=-1), pt.switch(inside, levels, 0.0).sum(axis=-1), -np.inf)


def _spline(z, c, theta, constants):
    of = spline_pieces(constants)
    # beyond the breaks, where tails stand, a value and a slope of the polynomial that are numbers
    density = piecewise(of, pt.clip(z, of.first, of.last), of.mixed(theta), pt.as_tensor)
    positive = density > 0.0
    inside = pt.switch(positive, pt.log(pt.switch(positive, density, 1.0)), -np.inf)
    level = np.log(np.maximum(np.take_along_axis(theta, of.tail, axis=1), SMALLEST)) + of.log_level
    below = pt.switch(z >= of.low, level[:, :1] - (of.first - z) / of.sigma, -np.inf)
    above = pt.switch(z <= of.high, level[:, 1:] - (z - of.last) / of.sigma, -np.inf)
    return pt.switch(z < of.first, below, pt.switch(z > of.last, above, inside))


CELL_FAMILIES: dict[str, CellFamily] = {
    "normal": CellFamily(_normal, cell_tails.normal_tails),
    "student_t": CellFamily(_student_t, cell_tails.student_t_tails),
    "gamma": CellFamily(_gamma, cell_tails.gamma_tails, True),
    "exponential": CellFamily(_exponential, cell_tails.exponential_tails, True),
    "lognormal": CellFamily(_lognormal, cell_tails.lognormal_tails, True),
    "uniform": CellFamily(_uniform, cell_tails.uniform_tails),
    "quantile": CellFamily(_quantile, cell_tails.quantile_tails),
    "spline": CellFamily(_spline, cell_tails.spline_tails),
}
"""Families of real columns with a density that has a derivative, by name."""


class _Leaves(NamedTuple):
    """Leaves of one family and size."""

    family: CellFamily
    leaves: np.ndarray
    coefficient: np.ndarray
    theta: np.ndarray
    constants: np.ndarray
    interval: _Intervals


class _Intervals(NamedTuple):
    """Log masses of leaves to either side of the ends of their intervals, each (n_leaf, 1), exact in both tails.

     below    |   inside   |   above
    ----------|------------|----------
              | from_lower ----------
    ---------- to_upper    |
    """

    inside: np.ndarray
    below: np.ndarray
    above: np.ndarray
    from_lower: np.ndarray
    to_upper: np.ndarray

    @property
    def is_narrow(self) -> np.ndarray:
        """Whether an interval holds so little that a difference of tails errs by more than a constant density."""
        tail = np.minimum(self.from_lower, self.to_upper)
        with np.errstate(invalid="ignore"):  # of a leaf without mass, which has no share in any mixture
            return self.inside - tail < 0.5 * np.log(np.finfo(float).eps * np.maximum(-tail, 1.0))


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
            value = group.family.log_density(
                self._in_units(group, raw), group.coefficient, group.theta, group.constants
            )
            cut = self._plan.leaf_cut[group.leaves][:, None] == INTERVAL
            if cut.any():
                lower, upper = (end[group.leaves][:, None] for end in (self._plan.leaf_lower, self._plan.leaf_upper))
                value = pt.switch((raw >= lower) & (raw <= upper), value - group.interval.inside, -np.inf)
            values.append(value + self._plan.column_log_jacobian[self._column(group)][:, None])
        return self._up(values)

    def log_cdf(self, cells) -> Any:
        """Return the log probability, (n,), of values of one column up to cells, (1, n); at most 0."""
        return _at_most_one(self._up(self._masses(cells, upper=False)), self._up(self._masses(cells, upper=True)))

    def log_ccdf(self, cells) -> Any:
        """Return the log probability, (n,), of values of one column above cells, (1, n); at most 0."""
        return _at_most_one(self._up(self._masses(cells, upper=True)), self._up(self._masses(cells, upper=False)))

    def _masses(self, cells, *, upper: bool) -> list:
        """Return log masses of each group of leaves, (n_leaf, n), above cells or up to them."""
        return [self._mass(group, cells[self._column(group)], upper) for group in self._leaves]

    def _mass(self, group: _Leaves, raw, upper: bool) -> Any:
        start, end = (ends[group.leaves][:, None] for ends in (self._plan.leaf_lower, self._plan.leaf_upper))
        # infinite cells are answered by the ends below: here they are numbers with a slope
        z = pt.clip(self._in_units(group, pt.clip(raw, start, end)), -_FARTHEST, _FARTHEST)
        log_lower, log_upper = group.family.log_tails(z, group.theta, group.constants)
        value = log_upper if upper else log_lower
        if (self._plan.leaf_cut[group.leaves] == INTERVAL).any():
            value = _within(group.interval, log_lower, log_upper, upper)
            is_narrow = group.interval.is_narrow
            if is_narrow.any():
                first, last = np.where(is_narrow, start, 0.0), np.where(is_narrow, end, 1.0)
                share = (last - raw if upper else raw - first) / (last - first)
                positive = share > 0.0
                value = pt.switch(is_narrow & positive, pt.log(pt.switch(positive, share, 1.0)), value)
        value = pt.minimum(value, 0.0)
        before, after = (0.0, -np.inf) if upper else (-np.inf, 0.0)
        return pt.switch(raw >= end, after, pt.switch(raw <= start, before, value))

    def _in_units(self, group: _Leaves, raw) -> Any:
        feature = self._plan.leaf_value[group.leaves]
        return (raw - self._plan.feature_offset[feature][:, None]) / self._plan.feature_scale[feature][:, None]

    def _up(self, leaves: list) -> Any:
        return root_value(pt.concatenate(leaves), self._groups, self._log_weight)


def _leaves_of(circuit: Circuit, plan: Plan, params: Params, leaves: np.ndarray) -> _Leaves:
    family = registry.FAMILIES[circuit.leaf_family[leaves[0]]]
    theta = params.theta[circuit.theta_at[leaves][:, None] + np.arange(int(circuit.theta_len[leaves[0]]))]
    constants = circuit.const[circuit.const_at[leaves][:, None] + np.arange(int(circuit.const_len[leaves[0]]))]
    coefficient = np.zeros((leaves.size, theta.shape[1] + constants.shape[1] + N_EXTRA_COEFFICIENTS))
    interval = _Intervals(*(np.full((leaves.size, 1), mass) for mass in (0.0, -np.inf, -np.inf, 0.0, 0.0)))
    for k, leaf in enumerate(leaves):
        family.coefficients(theta[k], constants[k], coefficient[k])
        if plan.leaf_cut[leaf] == INTERVAL:
            lo, hi = plan.leaf_lo[leaf], plan.leaf_hi[leaf]
            ends = ((lo, hi), (-np.inf, lo), (hi, np.inf), (lo, np.inf), (-np.inf, hi))
            for mass, (first, last) in zip(interval, ends, strict=True):
                mass[k] = family.log_mass(first, last, theta[k], constants[k])
    return _Leaves(CELL_FAMILIES[family.name], leaves, coefficient, theta, constants, interval)


def _within(interval: _Intervals, log_lower: Any, log_upper: Any, upper: bool) -> Any:
    """Return the log share of leaves' intervals above cells, or up to them, from both tails at the cells.

    Of the two tails whose difference is the mass the ones of the half in which the interval's start (or end) lies: near
    1 they would cancel.
    """
    if upper:
        by_lower, by_upper = log_difference(interval.to_upper, log_lower), log_difference(log_upper, interval.above)
        is_low = interval.to_upper < interval.above
    else:
        by_lower, by_upper = log_difference(log_lower, interval.below), log_difference(interval.from_lower, log_upper)
        is_low = interval.below <= interval.from_lower
    # an interval without mass has no share in any mixture
    log_cell = np.where(interval.inside > -np.inf, interval.inside, 0.0)
    return pt.switch(is_low, by_lower, by_upper) - log_cell


def _at_most_one(value: Any, opposite: Any) -> Any:
    """Return a log probability, from that of the opposite where the latter is the smaller one and has the digits."""
    is_large = opposite < -_LOG_2
    return pt.switch(is_large, pt.log1p(-pt.exp(pt.switch(is_large, opposite, -1.0))), pt.minimum(value, 0.0))
