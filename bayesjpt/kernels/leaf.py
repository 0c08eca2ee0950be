"""One leaf at a time, in the user's units: masses, moments, modes and draws, given the leaf's cell and an interval.

The families know neither units nor cells; every query kernel goes through here. Intervals are closed; an infinite end
costs nothing. A leaf's own cell narrows whatever interval is queried:

      leaf's cell       [----------------]
      asked for   [------------]
      answers for       [------]              as shares of the mass of the leaf's cell

At a point cell the value is known: it has mass one, and the base measure counts, so its density is one there.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.circuit.plan import INTERVAL, POINT, WHOLE
from bayesjpt.families import dispatch
from bayesjpt.numerics.ends import lower_end, upper_end
from bayesjpt.numerics.jit import kernel

WHOLE_CUT = int(WHOLE)
INTERVAL_CUT = int(INTERVAL)
POINT_CUT = int(POINT)
_N_SCALAR = 3
_LARGEST = 1.7976931348623157e308


@kernel
def _constants(plan, leaf):
    return plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]


@kernel
def _parameters(plan, theta, leaf):
    return theta[plan.theta_at[leaf] : plan.theta_at[leaf] + plan.theta_len[leaf]]


@kernel
def _units(plan, leaf):
    feature = plan.leaf_value[leaf]
    return plan.feature_offset[feature], plan.feature_scale[feature], plan.leaf_resolution[leaf]


@kernel
def _to_units(plan, leaf, x):
    feature = plan.leaf_value[leaf]
    return (x - plan.feature_offset[feature]) / plan.feature_scale[feature]


@kernel
def _to_user(plan, leaf, z, lo, hi):
    """Return z in the user's units, kept inside the interval that it was made for, and among numbers."""
    feature = plan.leaf_value[leaf]
    # a tail of a column next to the largest float has mass beyond it
    x = z * plan.feature_scale[feature] + plan.feature_offset[feature]
    if plan.leaf_step[leaf] > 0.0:
        # a whole number, or beside it by rounding: 2.9999999999999996 is no count, -5e-17 not in its support
        x = np.rint(x) + 0.0
    return min(max(x, max(lo, -_LARGEST)), min(hi, _LARGEST))


@kernel
def log_cell_mass(plan, theta, leaf):
    """Return the log probability of a leaf's cell under its family on the whole domain; 0 where nothing is cut off."""
    if plan.leaf_cut[leaf] != INTERVAL_CUT:
        return 0.0
    parameters = _parameters(plan, theta, leaf)
    lo, hi = plan.leaf_lo[leaf], plan.leaf_hi[leaf]
    return dispatch.log_mass(plan.leaf_family[leaf], lo, hi, parameters, _constants(plan, leaf))


@kernel
def leaf_log_mass(plan, theta, leaf, lo, hi):
    """Return the log probability, at most 0, of the closed interval lo ... hi given the leaf's cell.

    Parameters
    ----------
    plan : Plan
    theta : float64 (n_theta,)
        Parameters of all leaves.
    leaf : int
    lo, hi : float
        In the user's units; codes on columns of labels.
    """
    lower, upper = plan.leaf_lower[leaf], plan.leaf_upper[leaf]
    if lo <= lower and hi >= upper:
        return 0.0
    lo, hi = max(lo, lower), min(hi, upper)
    # a known value inside the interval was answered above, where its cell is covered
    if lo > hi or plan.leaf_cut[leaf] == POINT_CUT:
        return -np.inf
    parameters, constants = _parameters(plan, theta, leaf), _constants(plan, leaf)
    log_cell = log_cell_mass(plan, theta, leaf)
    if log_cell == -np.inf:
        return -np.inf
    units = _units(plan, leaf)
    z_lo, z_hi = lower_end(lo, units), upper_end(hi, units)
    # the cell holds the interval: what is above log 1 is rounding
    return min(dispatch.log_mass(plan.leaf_family[leaf], z_lo, z_hi, parameters, constants) - log_cell, 0.0)


@kernel
def recorded_log_mass(family, lo, hi, cut, parameters, constants):
    """Return the log probability of the cell lo ... hi of a recorded value under a leaf, in units of z.

    `cut` is the kind of the leaf's own cell, its ends and its log mass. A known value belongs to one cell alone: the
    one that begins at or below it and ends above.
    """
    kind, lower, upper, log_cell = cut
    if kind == WHOLE_CUT:
        return dispatch.log_mass(family, lo, hi, parameters, constants)
    if kind == POINT_CUT:
        return 0.0 if lo <= lower < hi else -np.inf
    lo, hi = max(lo, lower), min(hi, upper)
    if lo > hi or log_cell == -np.inf:
        return -np.inf
    return min(dispatch.log_mass(family, lo, hi, parameters, constants) - log_cell, 0.0)


@kernel
def leaf_cdf(plan, theta, leaf, x):
    """Return the probability of (-inf, x] given the leaf's cell."""
    if plan.leaf_cut[leaf] == WHOLE_CUT:
        parameters, constants = _parameters(plan, theta, leaf), _constants(plan, leaf)
        return dispatch.cdf(plan.leaf_family[leaf], upper_end(x, _units(plan, leaf)), parameters, constants)
    return math.exp(leaf_log_mass(plan, theta, leaf, -np.inf, x))


@kernel
def _narrowed(plan, leaf, lo, hi):
    """Return the part of an interval inside the leaf's cell; where there is none, the cell's end nearest to it."""
    lower, upper = plan.leaf_lower[leaf], plan.leaf_upper[leaf]
    return min(max(lo, lower), upper), max(min(hi, upper), lower)


@kernel
def leaf_sample(plan, theta, leaf, lo, hi, rng):
    """Return a draw, in the user's units, given the leaf's cell and lo ... hi; it never lies outside of both."""
    lo, hi = _narrowed(plan, leaf, lo, hi)
    if lo == hi:
        return lo
    parameters, constants = _parameters(plan, theta, leaf), _constants(plan, leaf)
    z_lo, z_hi = _to_units(plan, leaf, lo), _to_units(plan, leaf, hi)
    z = dispatch.sample(plan.leaf_family[leaf], z_lo, z_hi, parameters, constants, rng)
    return _to_user(plan, leaf, z, lo, hi)


@kernel
def leaf_buffer(plan):
    """Return the buffer that `leaf_log_density` and `leaf_mode` need: one for all leaves, overwritten at each call."""
    longest = 0
    for leaf in range(plan.theta_len.size):
        longest = max(longest, plan.coef_at[leaf + 1] - plan.coef_at[leaf])
    return np.empty(longest + _N_SCALAR)


@kernel
def _log_density_inside(plan, theta, leaf, x, buffer):
    """Return the log density per user's unit at x, as if no value of the column were an atom."""
    family = plan.leaf_family[leaf]
    constants = _constants(plan, leaf)
    z, aux, out = buffer[0:1], buffer[1:2], buffer[2:3]
    coefficients = buffer[_N_SCALAR:]
    z[0] = _to_units(plan, leaf, x)
    # families without a second feature are given the first for it
    aux[0] = z[0]
    if plan.leaf_aux[leaf] != plan.leaf_value[leaf]:
        dispatch.prepare(family, z, constants, aux)
    dispatch.coefficients(family, _parameters(plan, theta, leaf), constants, coefficients)
    dispatch.fill_log_density(family, z, aux, coefficients, out)
    return out[0] + plan.column_log_jacobian[plan.feature_column[plan.leaf_value[leaf]]]


@kernel
def _is_atom(plan, column, x):
    found = False
    for k in range(plan.atom_ptr[column], plan.atom_ptr[column + 1]):
        found |= plan.atom_value[k] == x
    return found


@kernel
def leaf_log_density(plan, theta, leaf, x, buffer):
    """Return the log density at x given the leaf's cell, per user's unit; a log mass wherever the base measure counts.

    It counts on integers and labels, at a column's atoms (where other leaves have none), and at a known value.

    Parameters
    ----------
    plan : Plan
    theta : float64 (n_theta,)
    leaf : int
    x : float
        In the user's units.
    buffer : float64
        What `leaf_buffer` returned.
    """
    if not plan.leaf_lower[leaf] <= x <= plan.leaf_upper[leaf]:
        return -np.inf
    if plan.leaf_cut[leaf] == POINT_CUT:
        return 0.0
    if not plan.leaf_is_atom[leaf] and _is_atom(plan, plan.feature_column[plan.leaf_value[leaf]], x):
        return -np.inf
    log_cell = log_cell_mass(plan, theta, leaf)
    if log_cell == -np.inf:
        return -np.inf
    return _log_density_inside(plan, theta, leaf, x, buffer) - log_cell


@kernel
def leaf_mode(plan, theta, leaf, lo, hi, buffer):
    """Return (x, log density at x): a value of lo ... hi inside the leaf's cell where the density is largest.

    The density is that of `leaf_log_density`, but for continuous leaves it is the limit at an atom; -inf without a
    value there.

    Parameters
    ----------
    plan, theta, leaf, buffer : as `leaf_log_density`
    lo, hi : float
        In the user's units.
    """
    first, last = _narrowed(plan, leaf, lo, hi)
    possible = lo <= plan.leaf_upper[leaf] and hi >= plan.leaf_lower[leaf]
    if plan.leaf_cut[leaf] == POINT_CUT:
        return first, 0.0 if possible else -np.inf
    parameters, constants = _parameters(plan, theta, leaf), _constants(plan, leaf)
    x = first
    if first < last:
        z = dispatch.mode(
            plan.leaf_family[leaf],
            _to_units(plan, leaf, first),
            _to_units(plan, leaf, last),
            parameters,
            constants,
        )
        x = _to_user(plan, leaf, z, first, last)
    log_cell = log_cell_mass(plan, theta, leaf)
    if not possible or log_cell == -np.inf:
        return x, -np.inf
    return x, _log_density_inside(plan, theta, leaf, x, buffer) - log_cell
