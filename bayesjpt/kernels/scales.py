"""The draw of the factors that default priors share.

    factors                          given statistics  `draw_scales_given_statistics`
    parameters of leaves with rows   given factors     `gibbs.draw_params`
    factors                          given these       `draw_scales`
    parameters of leaves without     given factors     `draw_without_rows`

A factor is drawn in the first step or in the third, as its family says. All parameters are integrated out of the first,
leaves without rows out of the third, which is exact since parameters are drawn at once given factors; given them, a
factor would hardly move where many leaves have no rows (van Dyk and Park, 2008), or shares have underflowed.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families import dispatch
from bayesjpt.families.record import OK
from bayesjpt.kernels.truncated import AS_WHOLE_UPDATE
from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.draw import draw_gamma
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.slice import slice_begin, slice_next, slice_state, slice_wants_more

_SMALLEST, _LARGEST = 1e-100, 1e100
_WIDTH = 1.0
"""First width of the slice of the logarithm of a factor given statistics: about its spread given a few leaves."""


@apart
@kernel
def apply_scales(scales, base, hyper_at, tau, hyper):
    """Fill the hyperparameters of all leaves at given factors.

    Parameters
    ----------
    scales : Scales
    base : float64 (n_hyper,)
        Hyperparameters at factors of 1.
    hyper_at : int32 (n_leaf + 1,)
    tau : float64 (n_group,)
    hyper : float64 (n_hyper,)
        Written.
    """
    scales = borrowed(scales)
    copy_into(base, hyper)  # a shift is added to it
    for group in range(scales.shape.size):
        factor, log_factor = tau[group], math.log(tau[group])
        inverse = 1.0 / factor
        for i in range(scales.leaf_ptr[group], scales.leaf_ptr[group + 1]):
            leaf = scales.leaf[i]
            for j in range(hyper_at[leaf], hyper_at[leaf + 1]):
                power = scales.exponent[j]
                if power == 1.0:  # as a rule
                    hyper[j] = base[j] * factor
                elif power == -1.0:
                    hyper[j] = base[j] * inverse
                elif power != 0.0:
                    hyper[j] = base[j] * factor**power
                if scales.shift[j] != 0.0:
                    hyper[j] += scales.shift[j] * log_factor


@kernel
def has_rows(plan, work, stats, leaf):
    """Return whether rows reached a leaf; those that were exchanged are known by their statistics alone."""
    if plan.leaf_by_value[leaf] or plan.leaf_update[leaf] != AS_WHOLE_UPDATE:
        return work.n_reached[leaf] > 0
    return _has_statistics(plan, stats, leaf)


@kernel
def _has_statistics(plan, stats, leaf):
    # a comparison of arrays would allocate one for each leaf
    found = False
    for k in range(plan.stat_at[leaf], plan.stat_at[leaf + 1]):
        found |= stats[k] != 0.0
    return found


@kernel
def _draw_scale(family, tau, shape, has_normaliser, theta, hyper, rng):
    """Return a draw of one factor given the parameters of its leaves: exact, or a slice update of its logarithm."""
    terms = np.zeros(2)
    dispatch.accumulate_scale(family, theta, hyper, terms)
    a, b = shape + terms[0], shape + terms[1]
    if not has_normaliser:
        # without a normaliser a Gamma prior is conjugate
        return draw_gamma(a, b, rng)
    x = math.log(tau)
    # of x = log tau, whose Jacobian makes a - 1 an a
    density = a * x - b * tau - dispatch.log_scale_normaliser(family, tau, theta, hyper)
    if not -np.inf < density < np.inf:
        return np.nan
    state = slice_state()
    # the posterior of log tau narrows like the square root of the number of terms
    x = slice_begin(state, x, density, 2.0 / math.sqrt(1.0 + terms[0]), rng)
    while slice_wants_more(state):
        tau = math.exp(x)
        value = -np.inf
        if _SMALLEST < tau < _LARGEST:
            value = a * x - b * tau - dispatch.log_scale_normaliser(family, tau, theta, hyper)
        x = slice_next(state, value, rng)
    return math.exp(x)


@kernel
def _log_density(plan, scales, group, leaves, stats, base, hyper_at, x):
    """Return the log density of the logarithm of a group's factor given statistics."""
    tau = math.exp(x)
    if not _SMALLEST < tau < _LARGEST:
        return -np.inf
    # Gamma(shape, shape) of tau in terms of x = log tau, its Jacobian included
    value = scales.shape[group] * (x - tau)
    for leaf in leaves:
        value += dispatch.scale_evidence(
            scales.family[group],
            tau,
            stats[plan.stat_at[leaf] : plan.stat_at[leaf + 1]],
            base[hyper_at[leaf] : hyper_at[leaf + 1]],
            plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]],
            plan.leaf_lower[leaf],
            plan.leaf_upper[leaf],
        )
    return value


@apart
@kernel
def draw_scales_given_statistics(plan, scales, stats, base, hyper_at, tau, rng):
    """Replace the factors that are drawn given statistics by slice updates, parameters integrated out.

    Parameters
    ----------
    plan : Plan
    scales : Scales
    stats : float64 (n_stat,)
    base, hyper_at : as in `apply_scales`
    tau : float64 (n_group,)
    rng : numpy.random.Generator

    Returns
    -------
    int
        -1, or a leaf of the group whose conditional was invalid.
    """
    plan, scales = borrowed(plan), borrowed(scales)
    state = slice_state()
    for group in range(scales.shape.size):
        if not scales.from_statistics[group]:
            continue
        members = scales.leaf[scales.leaf_ptr[group] : scales.leaf_ptr[group + 1]]
        leaves = np.empty(members.size, np.int64)
        n = 0
        for leaf in members:
            if _has_statistics(plan, stats, leaf):
                leaves[n] = leaf
                n += 1
        x = math.log(tau[group])
        density = _log_density(plan, scales, group, leaves[:n], stats, base, hyper_at, x)
        if not -np.inf < density < np.inf:
            return members[0]
        x = slice_begin(state, x, density, _WIDTH, rng)
        while slice_wants_more(state):
            density = _log_density(plan, scales, group, leaves[:n], stats, base, hyper_at, x)
            x = slice_next(state, density, rng)
        tau[group] = math.exp(x)
    return np.int64(-1)


@apart
@kernel
def draw_scales(plan, scales, work, stats, base, hyper_at, theta, tau, rng):
    """Draw the other factors from their conditionals given the parameters of leaves with rows, in place.

    Parameters
    ----------
    plan : Plan
    scales : Scales
    work, stats : as `allocate` and `swap_rows` left them
    base, hyper_at : as in `apply_scales`
    theta : float64 (n_theta,)
    tau : float64 (n_group,)
        Replaced.
    rng : numpy.random.Generator

    Returns
    -------
    int
        -1, or a leaf of the group whose conditional was invalid.
    """
    plan, scales, work = borrowed(plan), borrowed(scales), borrowed(work)
    for group in range(scales.shape.size):
        if scales.from_statistics[group]:
            continue
        first, last = scales.leaf_ptr[group], scales.leaf_ptr[group + 1]
        size = np.int64(0)
        for i in range(first, last):
            size += plan.theta_len[scales.leaf[i]]
        parameters = np.empty(size)
        n = np.int64(0)
        for i in range(first, last):
            leaf = scales.leaf[i]
            if has_rows(plan, work, stats, leaf):
                length = plan.theta_len[leaf]
                copy_into(theta[plan.theta_at[leaf] : plan.theta_at[leaf] + length], parameters[n:])
                n += length
        leaf = scales.leaf[first]
        shared = base[hyper_at[leaf] : hyper_at[leaf + 1]]
        drawn = _draw_scale(
            scales.family[group],
            tau[group],
            scales.shape[group],
            scales.has_normaliser[group],
            parameters[:n],
            shared,
            rng,
        )
        if not _SMALLEST < drawn < _LARGEST:
            return leaf
        tau[group] = drawn
    return np.int64(-1)


@apart
@kernel
def draw_without_rows(plan, scales, work, stats, hyper, hyper_at, theta, rng):
    """Draw the parameters of leaves without rows from their prior, in place.

    Returns
    -------
    int
        -1, or a leaf whose prior was invalid.
    """
    plan, scales, work = borrowed(plan), borrowed(scales), borrowed(work)
    nothing = np.empty(0)
    group = 0
    for i in range(scales.leaf.size):
        leaf = scales.leaf[i]
        while i >= scales.leaf_ptr[group + 1]:
            group += 1
        if scales.from_statistics[group] or has_rows(plan, work, stats, leaf):
            continue
        const = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
        prior = hyper[hyper_at[leaf] : hyper_at[leaf + 1]]
        parameters = theta[plan.theta_at[leaf] : plan.theta_at[leaf] + plan.theta_len[leaf]]
        if plan.leaf_by_value[leaf]:
            status = dispatch.draw_from_values(plan.leaf_family[leaf], nothing, nothing, prior, const, parameters, rng)
        else:
            leaf_stats = stats[plan.stat_at[leaf] : plan.stat_at[leaf + 1]]
            status = dispatch.draw_posterior(plan.leaf_family[leaf], leaf_stats, prior, const, parameters, rng)
        if status != OK:
            return leaf
    return np.int64(-1)
