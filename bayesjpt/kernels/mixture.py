"""Columns as mixtures of their leaves: moments, cumulative probabilities and quantiles from the leaves' shares.

A *component* is one leaf restricted to one closed interval (its own cell and what an event leaves of it). Given
evidence, a column is the mixture of its components; where the shares come from is the business of `events` and
`given_event`. Moments are kept relative to the column's location and in its scale, so that large offsets
(dates) cost no digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit.plan import POINT, Plan
from bayesjpt.families import dispatch
from bayesjpt.kernels.boxes import Boxes
from bayesjpt.numerics.borrowed import borrowed, by_address
from bayesjpt.numerics.ends import lower_end, upper_end
from bayesjpt.numerics.jit import inlined, kernel

_LEFT = 0.015625
"""What a difference of two cumulative probabilities leaves of the larger one at least, or it is not taken."""
_LEAST = 1e-100
"""Least mass of a component whose shares are such differences."""


@by_address
class Components(NamedTuple):
    """Components of some columns, one column after the other.

    Attributes
    ----------
    ptr : int32 (n_target + 1,)
        Components of each column.
    place : int64 (n_component,)
        Where the component's share lies.
    family, theta_at, theta_len, const_at, const_len : int32 (n_component,)
    lower, upper : float64 (n_component,)
        Its interval in the user's units; lower > upper where it is empty.
    offset, unit, resolution : float64 (n_component,)
        z = (x - offset) / unit, and at ends as `bayesjpt.numerics.ends` says.
    counts : bool (n_target,)
        Whether the column holds integers.
    location, scale : float64 (n_target,)
    jump_ptr : int32 (n_target + 1,), jump : float64 (n_jump,)
        Values of each real column, ascending, that may have a probability of their own: atoms, and known values.
    """

    ptr: np.ndarray
    place: np.ndarray
    family: np.ndarray
    theta_at: np.ndarray
    theta_len: np.ndarray
    const_at: np.ndarray
    const_len: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    offset: np.ndarray
    unit: np.ndarray
    resolution: np.ndarray
    counts: np.ndarray
    location: np.ndarray
    scale: np.ndarray
    jump_ptr: np.ndarray
    jump: np.ndarray


def make_components(plan: Plan, boxes: Boxes, columns: Sequence[int], units: np.ndarray) -> Components:
    """Return the components of some columns, on each of which every box has a condition.

    Their shares lie where `boxes` keeps the log masses of the same interval and leaf. `units` is float64 (n_target, 2),
    the location and scale of each column.
    """
    leaves: list[np.ndarray] = []
    places: list[np.ndarray] = []
    ends: list[np.ndarray] = []
    counts: list[int] = []
    jumps: list[np.ndarray] = []
    for column in columns:
        column_leaves = boxes.leaf[boxes.leaf_ptr[column] : boxes.leaf_ptr[column + 1]]
        intervals = [
            i
            for condition in np.flatnonzero(boxes.condition_column == column)
            for i in range(boxes.interval_ptr[condition], boxes.interval_ptr[condition + 1])
        ]
        leaves += [column_leaves for _ in intervals]
        places += [boxes.interval_at[i] + np.arange(column_leaves.size) for i in intervals]
        ends += [np.tile([[boxes.interval_lo[i]], [boxes.interval_hi[i]]], column_leaves.size) for i in intervals]
        counts.append(len(intervals) * column_leaves.size)
        known = plan.leaf_lower[column_leaves[plan.leaf_cut[column_leaves] == POINT]]
        jumps.append(np.unique([*plan.atom_value[plan.atom_ptr[column] : plan.atom_ptr[column + 1]], *known]))
    leaf = np.concatenate(leaves)
    lo, hi = np.concatenate(ends, axis=1)
    feature = plan.leaf_value[leaf]
    return Components(
        ptr=np.cumsum([0, *counts]).astype(np.int32),
        place=np.concatenate(places).astype(np.int64),
        family=plan.leaf_family[leaf],
        theta_at=plan.theta_at[leaf],
        theta_len=plan.theta_len[leaf],
        const_at=plan.const_at[leaf],
        const_len=plan.const_len[leaf],
        lower=np.maximum(lo, plan.leaf_lower[leaf]),
        upper=np.minimum(hi, plan.leaf_upper[leaf]),
        offset=plan.feature_offset[feature],
        unit=plan.feature_scale[feature],
        resolution=plan.leaf_resolution[leaf],
        counts=plan.column_resolution[list(columns)] == 0.0,
        location=np.ascontiguousarray(units[:, 0]),
        scale=np.ascontiguousarray(units[:, 1]),
        jump_ptr=np.cumsum([0, *(jump.size for jump in jumps)]).astype(np.int32),
        jump=np.concatenate([*jumps, np.empty(0)]),
    )


@kernel
def component_log_mass(components, const, theta, p, lower, upper):
    """Return the log probability of an interval under a component's family on its whole domain."""
    units = components.offset[p], components.unit[p], components.resolution[p]
    parameters = theta[components.theta_at[p] : components.theta_at[p] + components.theta_len[p]]
    constants = const[components.const_at[p] : components.const_at[p] + components.const_len[p]]
    return dispatch.log_mass(
        components.family[p], lower_end(lower, units), upper_end(upper, units), parameters, constants
    )


@kernel
def fill_component_log_masses(components, const, theta, out):
    """Fill out, float64 (n_component,), with the log mass of each component's interval under its family."""
    for p in range(out.size):
        lower, upper = components.lower[p], components.upper[p]
        if lower == -np.inf and upper == np.inf:
            out[p] = 0.0
        elif lower < upper:
            out[p] = component_log_mass(components, const, theta, p, lower, upper)
        else:
            out[p] = 0.0 if lower == upper else -np.inf


@kernel
def fill_component_moments(components, const, theta, mean, variance):
    """Fill mean and variance of each component, float64 (n_component,), in scales of its column from its location.

    Infinite where the family has none on that interval; 0 for empty components. An empty `variance` is not asked for.
    """
    family, unit_of, offset_of = components.family, components.unit, components.offset
    theta_at, theta_len, const_at, const_len = (
        components.theta_at,
        components.theta_len,
        components.const_at,
        components.const_len,
    )
    lowers, uppers = components.lower, components.upper
    for t in range(components.scale.size):
        location, scale = components.location[t], components.scale[t]
        for p in range(components.ptr[t], components.ptr[t + 1]):
            lower, upper = lowers[p], uppers[p]
            if variance.size > 0:
                variance[p] = 0.0
            if not lower < upper:
                mean[p] = (lower - location) / scale if lower == upper else 0.0
                continue
            offset, unit = offset_of[p], unit_of[p]
            parameters = theta[theta_at[p] : theta_at[p] + theta_len[p]]
            constants = const[const_at[p] : const_at[p] + const_len[p]]
            z_lo, z_hi = (lower - offset) / unit, (upper - offset) / unit
            first = dispatch.moment(family[p], 1, z_lo, z_hi, parameters, constants)
            ratio = unit / scale
            mean[p] = (offset - location) / scale + ratio * first
            if variance.size == 0:
                continue
            spread = dispatch.moment(family[p], 2, z_lo, z_hi, parameters, constants)
            # the square of a ratio may overflow
            variance[p] = ratio * (ratio * spread) if math.isfinite(first) and math.isfinite(spread) else np.inf


@kernel
def mixture_moments(share, mean, variance):
    """Return (mean, variance) of a mixture of parts with given shares, which are normalised.

    Without the parts' variances, an empty array, the variance is NaN.
    """
    total = 0.0
    centre = 0.0
    for p in range(share.size):
        # 0 times an infinite moment would be NaN
        if share[p] > 0.0:
            total += share[p]
            centre += share[p] * mean[p]
    if total == 0.0:
        return np.nan, np.nan
    centre /= total
    if math.isnan(centre):
        centre = np.inf  # both tails without a mean: as for each alone
    if variance.size == 0 or math.isinf(centre):
        return centre, np.nan if variance.size == 0 else np.inf
    spread = 0.0
    for p in range(share.size):
        if share[p] > 0.0:
            spread += share[p] * (variance[p] + (mean[p] - centre) * (mean[p] - centre))
    return centre, spread / total


@kernel
def forget(held):
    """Let `held`, float64 (n_component, 3), know nothing of the components: see `mixture_cdf`."""
    held[:] = np.nan


@kernel
def _prepare(family, ends, units, counts, parameters, constants, held):
    """Find the probabilities before a component and up to its end; infinite where their difference loses digits."""
    lower, upper = ends
    # probability strictly before the end, which is an atom's or a count's own
    before = math.ceil(lower) - 1.0 if counts else np.nextafter(lower, -np.inf)
    held[0] = dispatch.cdf(family, upper_end(before, units), parameters, constants) if lower > -np.inf else 0.0
    held[1] = dispatch.cdf(family, upper_end(upper, units), parameters, constants) if upper < np.inf else 1.0
    mass = held[1] - held[0]
    # infinite: shares of this component are taken from logarithms, value by value
    # negated, so that NaN fails as well
    if not (mass >= _LEFT * held[1] and mass > _LEAST):
        held[0] = np.inf


@kernel
def _share_between(family, between, ends, units, parameters, constants, held):
    """Return the share of a component between two values by logarithms: nothing cancels, at twice the cost or more.

    A component so far from all its family's mass that none is left in double precision stands at its nearer end.
    """
    if math.isnan(held[2]):
        lower, upper = lower_end(ends[0], units), upper_end(ends[1], units)
        held[2] = dispatch.log_mass(family, lower, upper, parameters, constants)
    if held[2] == -np.inf:
        is_above = between[0] > ends[0]  # the share that is asked for, and else that below
        lies_below = dispatch.cdf(family, lower_end(ends[0], units), parameters, constants) >= 0.5
        return 0.0 if is_above == lies_below else 1.0
    lower, upper = lower_end(between[0], units), upper_end(between[1], units)
    return math.exp(min(dispatch.log_mass(family, lower, upper, parameters, constants) - held[2], 0.0))


@inlined
def _share_of_cut(components, const, theta, held, p, counts, x, above):
    """Return the share of a component that lies at or below a value inside it, or above that."""
    family, ends = components.family[p], (components.lower[p], components.upper[p])
    units = components.offset[p], components.unit[p], components.resolution[p]
    parameters = theta[components.theta_at[p] : components.theta_at[p] + components.theta_len[p]]
    constants = const[components.const_at[p] : components.const_at[p] + components.const_len[p]]
    cdf_at_ends = held[p]
    if math.isnan(cdf_at_ends[0]):
        _prepare(family, ends, units, counts, parameters, constants, cdf_at_ends)
    if cdf_at_ends[0] < np.inf:
        upto = dispatch.cdf(family, upper_end(x, units), parameters, constants)
        part, whole = (cdf_at_ends[1] - upto, cdf_at_ends[1]) if above else (upto - cdf_at_ends[0], upto)
        # the difference kept its digits
        if part >= _LEFT * whole:
            return min(part / (cdf_at_ends[1] - cdf_at_ends[0]), 1.0)
    beyond = math.floor(x) + 1.0 if counts else np.nextafter(x, np.inf)
    between = (beyond, ends[1]) if above else (ends[0], x)
    return _share_between(family, between, ends, units, parameters, constants, cdf_at_ends)


@kernel
def fill_component_cdf(components, const, theta, held, target, x, out):
    """Fill out, float64 (n_component,), with the share of each of one column's components that lies in (-inf, x]."""
    held = borrowed(held)
    for p in range(components.ptr[target], components.ptr[target + 1]):
        if components.lower[p] <= x < components.upper[p]:
            out[p] = _share_of_cut(components, const, theta, held, p, components.counts[target], x, False)
        else:
            out[p] = 1.0 if x >= components.upper[p] else 0.0


@kernel
def mixture_cdf(components, const, theta, held, share, target, x):
    """Return the share of one column's components, float64 `share` of all components, that lies in (-inf, x].

    `held` is float64 (n_component, 3), what is known of the components under this theta: the probabilities before a
    component and up to its end, and the logarithm of its mass; NaN (`forget`) until a value cuts the component. From
    then on it costs one cumulative probability of each component that is cut, except where the difference of two would
    lose digits.
    """
    held = borrowed(held)
    total = 0.0
    # components whose interval lies to one side of x cost a comparison, those that x cuts a cumulative probability
    for p in range(components.ptr[target], components.ptr[target + 1]):
        if share[p] == 0.0 or x < components.lower[p]:
            continue
        if x >= components.upper[p]:
            total += share[p]
        else:
            total += share[p] * _share_of_cut(components, const, theta, held, p, components.counts[target], x, False)
    return total


@kernel
def mixture_tail(components, const, theta, held, share, target, x):
    """Return the share of a column's components above x, without the cancellation of 1 less `mixture_cdf`."""
    held = borrowed(held)
    total = 0.0
    for p in range(components.ptr[target], components.ptr[target + 1]):
        if share[p] == 0.0 or x >= components.upper[p]:
            continue
        if x < components.lower[p]:
            total += share[p]
        else:
            total += share[p] * _share_of_cut(components, const, theta, held, p, components.counts[target], x, True)
    return total
