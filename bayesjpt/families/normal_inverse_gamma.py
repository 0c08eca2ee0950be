"""The normal-inverse-gamma prior above a floor: what the families with a variance and a mean have in common.

variance ~ InverseGamma(a0, b0) truncated below at the floor; mu given variance ~ Normal(m0, v0 * variance).

Reference: Gelman et al. (2013), Bayesian Data Analysis, section 3.3.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families.record import Parameter, SharedScale
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.rising import log_rising
from bayesjpt.numerics.special import log_gamma_p

_HALF_LOG_2PI = 0.9189385332046727

HYPER_NAMES = ("m0", "v0", "a0", "b0", "floor")
M0, V0, A0, B0, FLOOR = range(5)
"""Layout of the hyperparameters."""
SCALE_EXPONENTS = {"b0": 1.0, "v0": -1.0}
SCALE_SHAPE = 2.0
"""Of the prior of the shared factor tau: above 1, so that 1 / tau has a mean, and with it v0 / tau times a variance at
its floor, the variance of mu."""
_FAR_ABOVE = 60.0
"""An InverseGamma(a, b), a below 10, exceeds b / 60 with probability 1 in double precision."""
_CERTAIN, _TIMES_SHAPE = 100.0, 4.0
"""Likewise b / x, any a, where x is above both 100 and 4 a: Chernoff's bound of the rest is exp(-0.4 x)."""


def variance_and_mu(variance_unit: str, mu_unit: str) -> tuple[Parameter, Parameter]:
    """Return the two parameters with their priors; units in words."""
    return (
        Parameter(
            "variance",
            "positive",
            "inverse_gamma",
            lambda hyper, theta: (hyper["a0"], hyper["b0"], hyper["floor"]),
            variance_unit,
        ),
        Parameter(
            "mu",
            "real",
            "normal",
            lambda hyper, theta: (hyper["m0"], (hyper["v0"] * theta["variance"]) ** 0.5),
            mu_unit,
        ),
    )


@kernel
def conjugate(n, total, squares, hyper):
    """Return (m, v, a, b) of the posterior of n values with a sum and a sum of squares, without its floor."""
    precision = 1.0 / hyper[V0] + n
    v = 1.0 / precision
    m = v * (hyper[M0] / hyper[V0] + total)
    a = hyper[A0] + 0.5 * n
    scatter = 0.0
    shift = 0.0
    if n > 0.0:
        average = total / n
        # rounding may leave less than 0 where all values are alike
        scatter = max(squares - n * average * average, 0.0)
        shift = (average - hyper[M0]) * (average - hyper[M0]) * n / (hyper[V0] * precision)
    return m, v, a, hyper[B0] + 0.5 * (scatter + shift)


@kernel
def _log_floor_mass(a, b, floor):
    """Return the log probability that an InverseGamma(a, b) variable exceeds the floor."""
    return log_gamma_p(a, b / floor) if floor > 0.0 else 0.0


@kernel
def log_evidence(n, total, squares, hyper):
    """Return the log evidence of n values with a sum and a sum of squares."""
    if n == 0.0:
        return 0.0
    _, v, a, b = conjugate(n, total, squares, hyper)
    a0, b0 = hyper[A0], hyper[B0]
    return (
        -n * _HALF_LOG_2PI
        + 0.5 * math.log(v / hyper[V0])
        + a0 * math.log(b0)
        - math.lgamma(a0)
        - a * math.log(b)
        + math.lgamma(a)
        + _log_floor_mass(a, b, hyper[FLOOR])
        - _log_floor_mass(a0, b0, hyper[FLOOR])
    )


@kernel
def predictive(n, total, squares, hyper, out):
    """Fill the coefficients of the log density of one more value given n others: a t density, corrected for the floor.

    With b the scale of the posterior and b' that after the value, the correction is the ratio of the probabilities that
    an InverseGamma(a + 1/2, b') and an InverseGamma(a, b) variable exceed the floor. out: float64 (6,) or longer.
    """
    m, v, a, b = conjugate(n, total, squares, hyper)
    out[0] = m
    out[1] = log_rising(a, 0.5) - 0.5 * math.log(b * (1.0 + v)) - _HALF_LOG_2PI
    out[2] = a + 0.5
    out[3] = 0.5 / (b * (1.0 + v))
    out[4], out[5] = 0.0, 0.0
    floor = hyper[FLOOR]
    # so far above the floor the correction is 0 to the last digit
    if not b > floor * max(_CERTAIN, _TIMES_SHAPE * out[2]):
        out[4], out[5] = b / floor, log_gamma_p(a, b / floor)


@kernel
def log_predictive(z, coefficients):
    """Return the log density of a further value by what `predictive` filled."""
    grown = (z - coefficients[0]) * (z - coefficients[0]) * coefficients[3]
    value = coefficients[1] - coefficients[2] * math.log1p(grown)
    if coefficients[4] > 0.0:
        value += log_gamma_p(coefficients[2], coefficients[4] * (1.0 + grown)) - coefficients[5]
    return value


@kernel
def log_joint(mu, log_variance, posterior, floor):
    """Return the log density, up to a constant, of (mu, log variance) under what `conjugate` returned and a floor."""
    variance = math.exp(log_variance)
    if not floor <= variance < np.inf or variance == 0.0:
        return -np.inf
    m, v, a, b = posterior
    # of the logarithm: its Jacobian takes one of the powers of the variance
    return -(a + 0.5) * log_variance - (b + 0.5 * (mu - m) * (mu - m) / v) / variance


@kernel
def add_scale_terms(theta, n_theta, hyper, out):
    """Add A and B of `bayesjpt.families.record.SharedScale` for leaves of `n_theta` parameters, (variance, mu, ...).

    b0 grows with the factor and v0 falls, so that means stay spread as they are, however narrow the leaves.
    """
    for at in range(0, theta.size, n_theta):
        deviation = theta[at + 1] - hyper[M0]
        out[0] += hyper[A0] + 0.5
        out[1] += (hyper[B0] + 0.5 * deviation * deviation / hyper[V0]) / theta[at]


@kernel
def log_floor_masses(tau, n_leaf, hyper):
    """Return the log probability that the variances of so many leaves exceed the floor, at a factor tau."""
    b = tau * hyper[B0]
    if hyper[FLOOR] == 0.0 or (b > _FAR_ABOVE * hyper[FLOOR] and hyper[A0] < 10.0):
        return 0.0
    return n_leaf * log_gamma_p(hyper[A0], b / hyper[FLOOR])


@kernel
def _accumulate(theta, hyper, out):
    add_scale_terms(theta, 2, hyper, out)


@kernel
def _log_normaliser(tau, theta, hyper):
    return log_floor_masses(tau, theta.size / 2, hyper)


SHARED_SCALE = SharedScale(SCALE_EXPONENTS, SCALE_SHAPE, _accumulate, _log_normaliser)
"""Of families whose parameters are a variance and a mean alone, without a limit."""
