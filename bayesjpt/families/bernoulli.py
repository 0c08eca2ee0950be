"""Bernoulli: columns of exactly two labels, and "other" for what training never showed.

theta = (p,), the probability of the second label (code 1) against the first (code 0). "Other" (code 2) has a small
fixed mass, its smoothed training share; the two labels share the rest. Prior: p ~ Beta(a0, b0). The auxiliary table
holds the code, -1 where a value is none.

Reference: Gelman et al. (2013), Bayesian Data Analysis, section 2.4.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families import finite_support, simplex
from bayesjpt.families.record import INVALID, OK, ColumnFacts, Family, Parameter, SharedScale
from bayesjpt.numerics.draw import draw_beta
from bayesjpt.numerics.jit import kernel

_P = 0
_A0, _B0 = 0, 1
_CODES = (0.0, 1.0, 2.0)
_OTHER = 0


def default_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """Beta of twice the smoothed training frequencies times the factor that leaves share, as the categorical has it."""
    return 2.0 * np.array([column.frequencies[1], column.frequencies[0]])


def abda_prior(_column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """The paper's prior of a categorical with two labels: p ~ Beta(1, 1)."""
    return np.array([1.0, 1.0])


def _constants(column: ColumnFacts) -> np.ndarray:
    return np.array([column.frequencies[-1]])


def _offers(column: ColumnFacts) -> bool:
    return column.n_label == len(_CODES) and column.other


@kernel
def prepare(z, constants, out):
    for i in range(out.size):
        out[i] = z[i] if z[i] == 0.0 or z[i] == 1.0 or z[i] == 2.0 else -1.0


@kernel
def coefficients(theta, constants, out):
    log_rest = math.log1p(-constants[_OTHER])
    out[0] = -np.inf  # code -1
    out[1] = log_rest + math.log1p(-theta[_P])
    out[2] = log_rest + math.log(theta[_P])
    out[3] = math.log(constants[_OTHER])


@kernel
def accumulate(z, aux, rows, constants, stats):
    """Count the rows of either label; one of "other" says nothing of p."""
    for j in range(rows.size):
        code = int(aux[rows[j]])
        if code == 0 or code == 1:
            stats[code] += 1.0


@kernel
def initial(stats, hyper, constants, theta):
    a, b = hyper[_A0] + stats[1], hyper[_B0] + stats[0]
    theta[_P] = a / (a + b)


@kernel
def draw_posterior(stats, hyper, constants, theta, rng):
    p = draw_beta(hyper[_A0] + stats[1], hyper[_B0] + stats[0], rng)
    if not 0.0 < p < 1.0:
        return INVALID
    theta[_P] = p
    return OK


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    by_p = 0.0
    for i in range(flow.size):
        if flow[i] != 0.0:
            if aux[i] == 1.0:
                by_p += flow[i] / theta[_P]
            elif aux[i] == 0.0:
                by_p -= flow[i] / (1.0 - theta[_P])
    out[_P] += by_p


@kernel
def log_marginal(stats, hyper, constants):
    """Without the masses of the labels together and of "other", which depend on the data alone."""
    a0, b0 = hyper[_A0], hyper[_B0]
    a, b = a0 + stats[1], b0 + stats[0]
    return (
        math.lgamma(a0 + b0) - math.lgamma(a0) - math.lgamma(b0) + math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    )


@kernel
def _log_evidence(tau, stats, hyper, constants, lo, hi):
    a, b = tau * hyper[_A0], tau * hyper[_B0]
    value = simplex.log_rising(a, stats[1]) + simplex.log_rising(b, stats[0])
    return value - simplex.log_rising(a + b, stats[0] + stats[1])


@kernel
def _masses(theta, constants):
    rest = 1.0 - constants[_OTHER]
    return rest * (1.0 - theta[_P]), rest * theta[_P], constants[_OTHER]


@kernel
def log_mass(lo, hi, theta, constants):
    mass = _masses(theta, constants)
    inside, outside = finite_support.weight_within(_CODES, mass, mass, lo, hi)
    if inside == 0.0:
        return -np.inf
    # of the smaller share: a logarithm near 0 keeps its digits
    return math.log(inside) if inside < outside else math.log1p(-outside)


@kernel
def cdf(x, theta, constants):
    return math.exp(log_mass(-np.inf, x, theta, constants))


@kernel
def moment(k, lo, hi, theta, constants):
    return finite_support.mean_or_variance(k, _CODES, _masses(theta, constants), lo, hi)


@kernel
def mode(lo, hi, theta, constants):
    mass = _masses(theta, constants)
    return finite_support.most_probable(_CODES, mass, mass, lo, hi)


@kernel
def sample(lo, hi, theta, constants, rng):
    mass = _masses(theta, constants)
    return finite_support.draw_value(_CODES, mass, mass, lo, hi, rng)


FAMILY = Family.of(
    finite_support,
    globals(),
    name="bernoulli",
    bases=("category",),
    statistical_type="binary",
    parameters=(
        Parameter(
            "p", "unit", "beta", lambda hyper, theta: (hyper["a0"], hyper["b0"]), "probability of the second label"
        ),
    ),
    hyper_names=("a0", "b0"),
    priors={"default": default_prior, "abda": abda_prior},
    shared_scale=SharedScale({"a0": 1.0, "b0": 1.0}, simplex.SCALE_SHAPE, log_evidence=_log_evidence),
    constants=_constants,
    n_stats=2,
    offers=_offers,
    predicts_by_mean=True,
)
