"""Student's t on z = (x - m) / s: a real column with heavy tails.

theta = (variance, mu, nu), `variance` being the squared scale, not the second moment. Prior: variance ~
InverseGamma(a0, b0) truncated below at the floor (resolution / scale)^2 / 12; mu given variance ~ Normal(m0, v0 *
variance); nu ~ InverseGamma(nu_shape, nu_scale) truncated below at nu_floor, so 1 / nu has a gamma density on (0, 1 /
nu_floor].

There are no statistics of fixed length; the update from values is in `student_t_posterior`.

The moment of order k does not exist on an interval without an end where nu <= k: it is then infinite (of the sign of
that end; positive for the mean over the whole line).

References: Gelman et al. (2013), Bayesian Data Analysis, section 17.2; Lange, Little and Taylor (1989), Robust
statistical modeling using the t distribution.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families import plausible, student_t_posterior
from bayesjpt.families.normal_inverse_gamma import (
    HYPER_NAMES,
    SCALE_EXPONENTS,
    SCALE_SHAPE,
    add_scale_terms,
    log_floor_masses,
    variance_and_mu,
)
from bayesjpt.families.record import ColumnFacts, Family, Parameter, Scaling, SharedScale
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.special import (
    digamma,
    is_lost,
    log_lost_student,
    log_student_interval,
    log_student_level,
    student_cdf,
    student_moments_between,
    student_quantile_between,
)

_VARIANCE, _MU, _NU = 0, 1, 2
_M0, _V0, _A0, _B0, _FLOOR, _NU_SHAPE, _NU_SCALE, _NU_FLOOR = range(8)
_N, _SUM, _SUM_SQUARES = range(3)
_START_NU = 5.0
_LEAST_NU = 2.5
_LARGEST = 1e300


def default_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """Variance and mu as the normal's; 1 / nu exponential with rate 1, cut where the variance comes to five times.

    Nearly the uniform density of 1 / nu of Bayesian Data Analysis, from the normal on, to where the variance exists.
    """
    floor = plausible.rounding_variance(column)
    nig = plausible.normal_inverse_gamma(plausible.squared_deviation(column), 0.0, floor)
    return np.array([*nig, 1.0, 1.0, _LEAST_NU])


def abda_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """The paper's prior of the normal in raw units, rewritten for z; it has no t, so nu has its default."""
    inverse = 1.0 / column.scale
    b0 = min(max(inverse * inverse, 1e-300), 1e300)
    return np.array([(1.0 - column.location) / column.scale, 10.0, 1.0, b0, 0.0, 1.0, 1.0, 1.0])


def _offers(column: ColumnFacts) -> bool:
    """Where no value is negative, heavy tails are the lognormal's; a schema may name Student's t all the same."""
    return column.support[0] < 0.0


@kernel
def coefficients(theta, constants, out):
    out[0] = log_student_level(theta[_NU]) - 0.5 * math.log(theta[_VARIANCE])
    out[1] = theta[_MU]
    out[2] = 1.0 / (theta[_NU] * theta[_VARIANCE])
    out[3] = -0.5 * (theta[_NU] + 1.0)


@kernel
def fill_log_density(z, aux, coefficients, out):
    level, mean, factor, power = coefficients[0], coefficients[1], coefficients[2], coefficients[3]
    for i in range(out.size):
        out[i] = level + power * math.log1p(factor * ((z[i] - mean) * (z[i] - mean)))


@kernel
def accumulate(z, aux, rows, constants, stats):
    total = stats[_SUM]
    squares = stats[_SUM_SQUARES]
    for j in range(rows.size):
        value = z[rows[j]]
        total += value
        squares += value * value
    stats[_N] += rows.size
    stats[_SUM] = total
    stats[_SUM_SQUARES] = squares


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    variance, mean, nu = theta[_VARIANCE], theta[_MU], theta[_NU]
    level = digamma(0.5 * (nu + 1.0)) - digamma(0.5 * nu) - 1.0 / nu
    for i in range(flow.size):
        if flow[i] != 0.0:
            deviation = z[i] - mean
            ratio = deviation * deviation / (nu * variance)
            weight = (nu + 1.0) / (nu * variance * (1.0 + ratio))
            spread = (nu + 1.0) * (ratio / (1.0 + ratio))
            out[_VARIANCE] += flow[i] * 0.5 * (spread - 1.0) / variance
            out[_MU] += flow[i] * weight * deviation
            out[_NU] += flow[i] * 0.5 * (level - math.log1p(ratio) + spread / nu)


@kernel
def initial(stats, hyper, constants, theta):
    """Estimate as a normal of the same variance, under a fixed nu."""
    n, total, squares = stats[_N], stats[_SUM], stats[_SUM_SQUARES]
    nu = max(_START_NU, 1.5 * hyper[_NU_FLOOR])
    average = total / n if n > 0.0 else 0.0
    # the variance of a t is its squared scale times nu / (nu - 2)
    scatter = max(squares - n * average * average, 0.0) * (nu - 2.0) / nu
    theta[_MU] = (hyper[_M0] / hyper[_V0] + total) / (1.0 / hyper[_V0] + n)
    variance = (hyper[_B0] + 0.5 * scatter) / (hyper[_A0] + 0.5 * n + 1.0)
    theta[_VARIANCE] = max(variance, hyper[_FLOOR] * 1.5)
    theta[_NU] = nu


@kernel
def log_mass(lo, hi, theta, constants):
    scale = math.sqrt(theta[_VARIANCE])
    if is_lost(lo, hi, theta[_MU]):
        return log_lost_student(theta[_NU], lo, hi, theta[_MU], scale)
    return log_student_interval(theta[_NU], (lo - theta[_MU]) / scale, (hi - theta[_MU]) / scale)


@kernel
def cdf(x, theta, constants):
    return student_cdf(theta[_NU], (x - theta[_MU]) / math.sqrt(theta[_VARIANCE]))


@kernel
def mode(lo, hi, theta, constants):
    return min(max(theta[_MU], lo), hi)


@kernel
def moment(k, lo, hi, theta, constants):
    mean, scale, nu = theta[_MU], math.sqrt(theta[_VARIANCE]), theta[_NU]
    a, b = (lo - mean) / scale, (hi - mean) / scale
    if not a < b or log_student_interval(nu, a, b) == -np.inf:
        end = mode(lo, hi, theta, constants)
        return end if k == 1 else 0.0
    end, offset, variance = student_moments_between(nu, a, b)
    start = lo if end < 0 else (hi if end > 0 else mean)
    first = min(max(start + scale * offset, lo), hi)
    return first if k == 1 else theta[_VARIANCE] * variance


@kernel
def sample(lo, hi, theta, constants, rng):
    mean, scale, nu = theta[_MU], math.sqrt(theta[_VARIANCE]), theta[_NU]
    if lo == -np.inf and hi == np.inf:
        # a normal over the root of a mean square of nu normals
        t = rng.standard_normal() / math.sqrt(rng.standard_gamma(0.5 * nu) / (0.5 * nu)) if nu > 0.0 else np.nan
    else:
        t = student_quantile_between(nu, (lo - mean) / scale, (hi - mean) / scale, rng.random())
    z = mean + scale * min(max(t, -_LARGEST), _LARGEST)
    return min(max(min(max(z, -_LARGEST), _LARGEST), lo), hi)


@kernel
def _accumulate_scale(theta, hyper, out):
    add_scale_terms(theta, 3, hyper, out)


@kernel
def _log_scale_normaliser(tau, theta, hyper):
    return log_floor_masses(tau, theta.size / 3, hyper)


FAMILY = Family.of(
    globals(),
    student_t_posterior,
    name="student_t",
    bases=("real",),
    statistical_type="real",
    scaling=Scaling.LOCATION_SCALE,
    offers=_offers,
    parameters=(
        *variance_and_mu(
            "squared scale units of the column (the squared scale, not the second moment)",
            "scale units of the column, from its location",
        ),
        Parameter(
            "nu",
            "positive",
            "inverse_gamma",
            lambda hyper, theta: (hyper["nu_shape"], hyper["nu_scale"], hyper["nu_floor"]),
            "degrees of freedom",
        ),
    ),
    hyper_names=(*HYPER_NAMES, "nu_shape", "nu_scale", "nu_floor"),
    shared_scale=SharedScale(SCALE_EXPONENTS, SCALE_SHAPE, _accumulate_scale, _log_scale_normaliser),
    priors={"default": default_prior, "abda": abda_prior},
    n_stats=3,
)
