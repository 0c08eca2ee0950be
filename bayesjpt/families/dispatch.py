"""One branch a built-in family: what kernels call when all they have is a family's number.

Direct calls inline; the number is compared once per leaf and block of rows, never per row. The numbers are positions
in `bayesjpt.families.registry.FAMILIES` (a test compares them).
"""

from __future__ import annotations

import numpy as np

from bayesjpt.families import categorical, exponential, gamma, geometric, normal, poisson
from bayesjpt.families.record import INVALID
from bayesjpt.numerics.jit import kernel

NORMAL, GAMMA, EXPONENTIAL, POISSON, GEOMETRIC, CATEGORICAL = range(6)


@kernel
def prepare(family, z, constants, out):
    """Fill the auxiliary table of a family, or copy z where it prepares nothing."""
    if family == GAMMA:
        gamma.prepare(z, constants, out)
    elif family == POISSON:
        poisson.prepare(z, constants, out)
    elif family == CATEGORICAL:
        categorical.prepare(z, constants, out)
    else:
        out[:] = z


@kernel
def coefficients(family, theta, constants, out):
    """Prepare the constants of a leaf's log density."""
    if family == NORMAL:
        normal.coefficients(theta, constants, out)
    elif family == GAMMA:
        gamma.coefficients(theta, constants, out)
    elif family == EXPONENTIAL:
        exponential.coefficients(theta, constants, out)
    elif family == POISSON:
        poisson.coefficients(theta, constants, out)
    elif family == GEOMETRIC:
        geometric.coefficients(theta, constants, out)
    elif family == CATEGORICAL:
        categorical.coefficients(theta, constants, out)


@kernel
def fill_log_density(family, z, aux, coefficients, out):
    """Fill the log density of a block of values under one leaf."""
    if family == NORMAL:
        normal.fill_log_density(z, aux, coefficients, out)
    elif family == GAMMA:
        gamma.fill_log_density(z, aux, coefficients, out)
    elif family == EXPONENTIAL:
        exponential.fill_log_density(z, aux, coefficients, out)
    elif family == POISSON:
        poisson.fill_log_density(z, aux, coefficients, out)
    elif family == GEOMETRIC:
        geometric.fill_log_density(z, aux, coefficients, out)
    elif family == CATEGORICAL:
        categorical.fill_log_density(z, aux, coefficients, out)


@kernel
def accumulate(family, z, aux, rows, constants, stats):
    """Add the statistics of some rows, one after the other."""
    if family == NORMAL:
        normal.accumulate(z, aux, rows, constants, stats)
    elif family == GAMMA:
        gamma.accumulate(z, aux, rows, constants, stats)
    elif family == EXPONENTIAL:
        exponential.accumulate(z, aux, rows, constants, stats)
    elif family == POISSON:
        poisson.accumulate(z, aux, rows, constants, stats)
    elif family == GEOMETRIC:
        geometric.accumulate(z, aux, rows, constants, stats)
    elif family == CATEGORICAL:
        categorical.accumulate(z, aux, rows, constants, stats)


@kernel
def initial(family, stats, hyper, constants, theta):
    """Estimate a leaf's parameters from statistics."""
    if family == NORMAL:
        normal.initial(stats, hyper, constants, theta)
    elif family == GAMMA:
        gamma.initial(stats, hyper, constants, theta)
    elif family == EXPONENTIAL:
        exponential.initial(stats, hyper, constants, theta)
    elif family == POISSON:
        poisson.initial(stats, hyper, constants, theta)
    elif family == GEOMETRIC:
        geometric.initial(stats, hyper, constants, theta)
    elif family == CATEGORICAL:
        categorical.initial(stats, hyper, constants, theta)


@kernel
def draw_posterior(family, stats, hyper, constants, theta, rng):
    """Replace a leaf's parameters by a draw given its statistics; return a status."""
    if family == NORMAL:
        return normal.draw_posterior(stats, hyper, constants, theta, rng)
    if family == GAMMA:
        return gamma.draw_posterior(stats, hyper, constants, theta, rng)
    if family == EXPONENTIAL:
        return exponential.draw_posterior(stats, hyper, constants, theta, rng)
    if family == POISSON:
        return poisson.draw_posterior(stats, hyper, constants, theta, rng)
    if family == GEOMETRIC:
        return geometric.draw_posterior(stats, hyper, constants, theta, rng)
    if family == CATEGORICAL:
        return categorical.draw_posterior(stats, hyper, constants, theta, rng)
    return INVALID


@kernel
def log_mass(family, lo, hi, theta, constants):
    """Return the log probability of [lo, hi]."""
    if family == NORMAL:
        return normal.log_mass(lo, hi, theta, constants)
    if family == GAMMA:
        return gamma.log_mass(lo, hi, theta, constants)
    if family == EXPONENTIAL:
        return exponential.log_mass(lo, hi, theta, constants)
    if family == POISSON:
        return poisson.log_mass(lo, hi, theta, constants)
    if family == GEOMETRIC:
        return geometric.log_mass(lo, hi, theta, constants)
    if family == CATEGORICAL:
        return categorical.log_mass(lo, hi, theta, constants)
    return -np.inf


@kernel
def cdf(family, x, theta, constants):
    """Return the probability of (-inf, x]."""
    if family == NORMAL:
        return normal.cdf(x, theta, constants)
    if family == GAMMA:
        return gamma.cdf(x, theta, constants)
    if family == EXPONENTIAL:
        return exponential.cdf(x, theta, constants)
    if family == POISSON:
        return poisson.cdf(x, theta, constants)
    if family == GEOMETRIC:
        return geometric.cdf(x, theta, constants)
    if family == CATEGORICAL:
        return categorical.cdf(x, theta, constants)
    return np.nan


@kernel
def moment(family, k, lo, hi, theta, constants):
    """Return the raw moment of order k given [lo, hi]."""
    if family == NORMAL:
        return normal.moment(k, lo, hi, theta, constants)
    if family == GAMMA:
        return gamma.moment(k, lo, hi, theta, constants)
    if family == EXPONENTIAL:
        return exponential.moment(k, lo, hi, theta, constants)
    if family == POISSON:
        return poisson.moment(k, lo, hi, theta, constants)
    if family == GEOMETRIC:
        return geometric.moment(k, lo, hi, theta, constants)
    if family == CATEGORICAL:
        return categorical.moment(k, lo, hi, theta, constants)
    return np.nan


@kernel
def mode(family, lo, hi, theta, constants):
    """Return a value of [lo, hi] with the largest density."""
    if family == NORMAL:
        return normal.mode(lo, hi, theta, constants)
    if family == GAMMA:
        return gamma.mode(lo, hi, theta, constants)
    if family == EXPONENTIAL:
        return exponential.mode(lo, hi, theta, constants)
    if family == POISSON:
        return poisson.mode(lo, hi, theta, constants)
    if family == GEOMETRIC:
        return geometric.mode(lo, hi, theta, constants)
    if family == CATEGORICAL:
        return categorical.mode(lo, hi, theta, constants)
    return np.nan


@kernel
def sample(family, lo, hi, theta, constants, rng):
    """Return a draw given [lo, hi]."""
    if family == NORMAL:
        return normal.sample(lo, hi, theta, constants, rng)
    if family == GAMMA:
        return gamma.sample(lo, hi, theta, constants, rng)
    if family == EXPONENTIAL:
        return exponential.sample(lo, hi, theta, constants, rng)
    if family == POISSON:
        return poisson.sample(lo, hi, theta, constants, rng)
    if family == GEOMETRIC:
        return geometric.sample(lo, hi, theta, constants, rng)
    if family == CATEGORICAL:
        return categorical.sample(lo, hi, theta, constants, rng)
    return np.nan
