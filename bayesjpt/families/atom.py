"""Atom: a probability for each value of a real column that repeats far beyond chance.

theta = probabilities of the column's atoms among each other. Prior: Dirichlet(concentration). z = x; the auxiliary
table holds the position of the atom that equals z exactly, -1 where none does.

The base measure of such a column counts at its atoms. A log density is handed on per scale unit of the column, so that
the log-Jacobian -log(scale), added to every real cell, cancels here: it is log theta_j + log(scale).
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families.record import INVALID, OK, ColumnFacts, Family, Parameter, Scaling
from bayesjpt.numerics.draw import draw_log_dirichlet
from bayesjpt.numerics.jit import kernel

_SMALLEST = 1e-300
_LOG_SCALE = 0
_FIRST = 1
"""Layout of the constants: the log of the column's scale, then the atoms, ascending."""


def _n_atom(column: ColumnFacts) -> int:
    return len(column.atoms)


def default_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """Weakly informative: concentration 2 in all, shared out by the smoothed training shares."""
    return 2.0 * np.asarray(column.atom_frequencies, np.float64)


def abda_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """The paper's prior of a categorical: concentration 1 each."""
    return np.ones(_n_atom(column))


def _constants(column: ColumnFacts) -> np.ndarray:
    return np.array([math.log(column.scale), *column.atoms])


def _offers(column: ColumnFacts) -> bool:
    return _n_atom(column) > 0


@kernel
def prepare(z, constants, out):
    atoms = constants[_FIRST:]
    for i in range(out.size):
        at = np.searchsorted(atoms, z[i])
        out[i] = at if at < atoms.size and atoms[at] == z[i] else -1.0


@kernel
def coefficients(theta, constants, out):
    out[0] = -np.inf  # position -1
    for k in range(theta.size):
        out[k + 1] = math.log(max(theta[k], _SMALLEST)) + constants[_LOG_SCALE]


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
def accumulate_gradient(z, aux, flow, theta, constants, out):
    for i in range(flow.size):
        at = int(aux[i])
        if flow[i] != 0.0 and at >= 0:
            out[at] += flow[i] / max(theta[at], _SMALLEST)


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
        if lo <= constants[_FIRST + k] <= hi:
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
def mode(lo, hi, theta, constants):
    best = -1
    best_anywhere = 0
    for k in range(theta.size):
        if theta[k] > theta[best_anywhere]:
            best_anywhere = k
        if lo <= constants[_FIRST + k] <= hi and (best < 0 or theta[k] > theta[best]):
            best = k
    if best < 0:
        return min(max(constants[_FIRST + best_anywhere], lo), hi)
    return constants[_FIRST + best]


@kernel
def moment(k, lo, hi, theta, constants):
    total = 0.0
    value = 0.0
    for i in range(theta.size):
        at = constants[_FIRST + i]
        if lo <= at <= hi:
            total += theta[i]
            value += theta[i] * (at if k == 1 else at * at)
    if total == 0.0:
        end = mode(lo, hi, theta, constants)
        return end if k == 1 else end * end
    return min(max(value / total, lo), hi) if k == 1 else value / total


@kernel
def sample(lo, hi, theta, constants, rng):
    total = 0.0
    for k in range(theta.size):
        if lo <= constants[_FIRST + k] <= hi:
            total += theta[k]
    if total == 0.0:
        return mode(lo, hi, theta, constants)
    left = total * rng.random()
    last = 0
    for k in range(theta.size):
        if lo <= constants[_FIRST + k] <= hi:
            last = k
            left -= theta[k]
            if left < 0.0:
                break
    return constants[_FIRST + last]


FAMILY = Family(
    name="atom",
    bases=("real",),
    statistical_type="none",
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
    n_theta=_n_atom,
    n_stats=_n_atom,
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
