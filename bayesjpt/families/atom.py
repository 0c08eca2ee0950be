"""Atom: a probability for each value of a real column that repeats far beyond chance.

theta = probabilities of the column's atoms among each other. Prior: Dirichlet(concentration). z = x; the auxiliary
table holds the position of the atom that equals z exactly, -1 where none does.

The base measure of such a column counts at its atoms. A log density is handed on per scale unit of the column, so that
the log-Jacobian -log(scale), added to every real cell, cancels here: it is log theta_j + log(scale).
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families import finite_support, simplex
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
    finite_support.fill_positions(constants[_FIRST:], z, out)


@kernel
def coefficients(theta, constants, out):
    out[0] = -np.inf  # position -1
    for k in range(theta.size):
        out[k + 1] = math.log(max(theta[k], simplex.SMALLEST)) + constants[_LOG_SCALE]


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    for i in range(flow.size):
        at = int(aux[i])
        if flow[i] != 0.0 and at >= 0:
            out[at] += flow[i] / max(theta[at], simplex.SMALLEST)


@kernel
def log_mass(lo, hi, theta, constants):
    inside, outside = finite_support.weight_within(constants[_FIRST:], theta, theta, lo, hi)
    return finite_support.log_share(inside, outside)


@kernel
def cdf(x, theta, constants):
    return math.exp(log_mass(-np.inf, x, theta, constants))


@kernel
def mode(lo, hi, theta, constants):
    return finite_support.most_probable(constants[_FIRST:], theta, theta, lo, hi)


@kernel
def moment(k, lo, hi, theta, constants):
    return finite_support.mean_or_variance(k, constants[_FIRST:], theta, lo, hi)


@kernel
def sample(lo, hi, theta, constants, rng):
    return finite_support.draw_value(constants[_FIRST:], theta, theta, lo, hi, rng)


FAMILY = Family.of(
    finite_support,
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
