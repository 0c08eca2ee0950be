"""Categorical: a probability for each label, or for each level of an integer column that has few of them.

theta = probabilities, the last label being "other". Prior: Dirichlet(concentration). The auxiliary table holds the
position of a value among the constants, which are the codes of the labels or the levels, -1 where it is none of them;
its mass is then 0.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families.record import INVALID, OK, ColumnFacts, Family, Parameter, Scaling
from bayesjpt.numerics.draw import draw_log_dirichlet
from bayesjpt.numerics.jit import kernel

_SMALLEST = 1e-300
_N_CODE_OF_TWO_LABELS = 3


def _n_value(column: ColumnFacts) -> int:
    return column.n_label if column.base == "category" else len(column.levels)


def default_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """Weakly informative: concentration 2 in all, shared out by the smoothed training frequencies."""
    return 2.0 * np.asarray(column.frequencies, np.float64)


def abda_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """The paper's prior: concentration 1 each."""
    return np.ones(_n_value(column))


def _constants(column: ColumnFacts) -> np.ndarray:
    return np.arange(float(column.n_label)) if column.base == "category" else np.array(column.levels, np.float64)


def _offers(column: ColumnFacts) -> bool:
    """Levels of integers and labels, but for columns of two labels, which the Bernoulli describes."""
    return _n_value(column) > 0 and column.n_label != _N_CODE_OF_TWO_LABELS


@kernel
def prepare(z, constants, out):
    for i in range(out.size):
        at = np.searchsorted(constants, z[i])
        out[i] = at if at < constants.size and constants[at] == z[i] else -1.0


@kernel
def coefficients(theta, constants, out):
    out[0] = -np.inf  # position -1
    for k in range(theta.size):
        out[k + 1] = math.log(max(theta[k], _SMALLEST))


@kernel
def fill_log_density(z, aux, coefficients, out):
    for i in range(out.size):
        out[i] = coefficients[int(aux[i]) + 1]


@kernel
def accumulate(z, aux, rows, constants, stats):
    for j in range(rows.size):
        at = int(aux[rows[j]])
        if at >= 0:
            stats[at] += 1.0


@kernel
def initial(stats, hyper, constants, theta):
    total = 0.0
    for k in range(theta.size):
        theta[k] = max(stats[k] + hyper[k], _SMALLEST)
        total += theta[k]
    for k in range(theta.size):
        theta[k] /= total


@kernel
def draw_posterior(stats, hyper, constants, theta, rng):
    log_draw = np.empty(theta.size)
    if not draw_log_dirichlet(hyper + stats, log_draw, rng):
        return INVALID
    total = 0.0
    for k in range(theta.size):
        theta[k] = max(math.exp(log_draw[k]), _SMALLEST)
        total += theta[k]
    for k in range(theta.size):
        theta[k] = max(theta[k] / total, _SMALLEST)
    return OK


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    for i in range(flow.size):
        at = int(aux[i])
        if flow[i] != 0.0 and at >= 0:
            out[at] += flow[i] / max(theta[at], _SMALLEST)


@kernel
def log_marginal(stats, hyper, constants):
    total_prior = 0.0
    total = 0.0
    value = 0.0
    for k in range(hyper.size):
        total_prior += hyper[k]
        total += hyper[k] + stats[k]
        value += math.lgamma(hyper[k] + stats[k]) - math.lgamma(hyper[k])
    return value + math.lgamma(total_prior) - math.lgamma(total)


@kernel
def log_mass(lo, hi, theta, constants):
    inside = 0.0
    outside = 0.0
    for k in range(theta.size):
        if lo <= constants[k] <= hi:
            inside += theta[k]
        else:
            outside += theta[k]
    if inside == 0.0:
        return -np.inf
    total = inside + outside
    return math.log(inside / total) if inside < outside else math.log1p(-outside / total)


@kernel
def cdf(x, theta, constants):
    return math.exp(log_mass(-np.inf, x, theta, constants))


@kernel
def moment(k, lo, hi, theta, constants):
    total = 0.0
    value = 0.0
    for i in range(theta.size):
        at = constants[i]
        if lo <= at <= hi:
            total += theta[i]
            value += theta[i] * (at if k == 1 else at * at)
    if total == 0.0:
        end = mode(lo, hi, theta, constants)
        return end if k == 1 else end * end
    return min(max(value / total, lo), hi) if k == 1 else value / total


@kernel
def mode(lo, hi, theta, constants):
    best = -1
    best_anywhere = 0
    for k in range(theta.size):
        if theta[k] > theta[best_anywhere]:
            best_anywhere = k
        if lo <= constants[k] <= hi and (best < 0 or theta[k] > theta[best]):
            best = k
    if best < 0:
        return min(max(constants[best_anywhere], lo), hi)
    return constants[best]


@kernel
def sample(lo, hi, theta, constants, rng):
    total = 0.0
    for k in range(theta.size):
        if lo <= constants[k] <= hi:
            total += theta[k]
    if total == 0.0:
        return mode(lo, hi, theta, constants)
    left = total * rng.random()
    last = 0
    for k in range(theta.size):
        if lo <= constants[k] <= hi:
            last = k
            left -= theta[k]
            if left < 0.0:
                break
    return constants[last]


FAMILY = Family(
    name="categorical",
    bases=("category", "integer"),
    support=(-np.inf, np.inf),
    statistical_type="nominal",
    scaling=Scaling.NONE,
    parameters=(
        Parameter(
            "probability",
            "simplex",
            "dirichlet",
            lambda hyper, theta: (hyper["concentration"],),
            "probability",
        ),
    ),
    hyper_names=("concentration",),
    priors={"default": default_prior, "abda": abda_prior},
    constants=_constants,
    n_theta=_n_value,
    n_stats=_n_value,
    offers=_offers,
    prepare=prepare,
    coefficients=coefficients,
    fill_log_density=fill_log_density,
    accumulate=accumulate,
    initial=initial,
    draw_posterior=draw_posterior,
    accumulate_gradient=accumulate_gradient,
    log_marginal=log_marginal,
    log_mass=log_mass,
    cdf=cdf,
    moment=moment,
    mode=mode,
    sample=sample,
)
