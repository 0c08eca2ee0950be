"""Atom: a probability for each value of a real column that repeats far beyond chance.

theta = probabilities of the column's atoms among each other. Prior: Dirichlet(concentration). z = x; the auxiliary
table holds the position of the atom that equals z exactly, -1 where none does.

The base measure of such a column counts at its atoms. A log density is handed on per scale unit of the column, so that
the log-Jacobian -log(scale), added to every real cell, cancels here: it is log theta_j + log(scale).
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families import simplex
from bayesjpt.families.record import ColumnFacts, Family
from bayesjpt.numerics.jit import kernel

_LOG_SCALE = 0
_FIRST = 1
"""Layout of the constants: the log of the column's scale, then the atoms, ascending."""


def default_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """Weakly informative: concentration 2 in all, shared out by the smoothed training shares."""
    return 2.0 * np.asarray(column.atom_frequencies, np.float64)


def abda_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """The paper's prior of a categorical: concentration 1 each."""
    return np.ones(len(column.atoms))


def _constants(column: ColumnFacts) -> np.ndarray:
    return np.array([math.log(column.scale), *column.atoms])


def _n_theta(constants: np.ndarray) -> int:
    return constants.size - _FIRST


def _offers(column: ColumnFacts) -> bool:
    return len(column.atoms) > 0


def _entry_labels(_column: ColumnFacts, constants: np.ndarray) -> list[str]:
    return [f"{value:.15g}" for value in constants[_FIRST:]]


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
        out[k + 1] = math.log(max(theta[k], simplex.SMALLEST)) + constants[_LOG_SCALE]


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
            out[at] += flow[i] / max(theta[at], simplex.SMALLEST)


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
    # of the smaller share: a logarithm near 0 keeps its digits
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
    total, value = 0.0, 0.0
    for i in range(theta.size):
        at = constants[_FIRST + i]
        if lo <= at <= hi:
            total += theta[i]
            value += theta[i] * at
    if total == 0.0:
        end = mode(lo, hi, theta, constants)
        return end if k == 1 else 0.0
    mean = min(max(value / total, lo), hi)
    if k == 1:
        return mean
    squares = 0.0
    for i in range(theta.size):
        at = constants[_FIRST + i]
        squares += theta[i] * (at - mean) * (at - mean) if lo <= at <= hi else 0.0
    return squares / total


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
            # what rounding leaves over falls on the last possible atom
            last = k
            left -= theta[k]
            if left < 0.0:
                break
    return constants[_FIRST + last]


FAMILY = Family.of(
    globals(),
    name="atom",
    bases=("real",),
    statistical_type="none",
    parameters=(simplex.PROBABILITY,),
    hyper_names=("concentration",),
    priors={"default": default_prior, "abda": abda_prior},
    constants=_constants,
    entry_labels=_entry_labels,
    conjugate_on_cell=True,
    n_theta=_n_theta,
    n_stats=_n_theta,
    offers=_offers,
    initial=simplex.initial,
    draw_posterior=simplex.draw_posterior,
    log_marginal=simplex.log_marginal,
    predicts_by_mean=True,
)
