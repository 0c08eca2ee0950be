"""Uniform on z = (x - m) / s: a background without parameters, wide enough for values that training never showed.

The density is constant over [minimum - range, maximum + range] of the column; for a column with a single value c over
[c - w, c + w], w = max(|c|, 1), in the user's units. It is offered to such columns; others may name it.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families.record import ColumnFacts, Family, Scaling
from bayesjpt.numerics.jit import kernel

_LO, _HI = 0, 1
_LOG_2 = 0.6931471805599453


def no_prior(_column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """Return no hyperparameters: nothing is unknown."""
    return np.empty(0)


def _constants(column: ColumnFacts) -> np.ndarray:
    reach = column.maximum - column.minimum or max(abs(column.minimum), 1.0)
    largest = np.finfo(np.float64).max
    lo, hi = max(column.minimum - reach, -largest), min(column.maximum + reach, largest)
    return np.array([(lo - column.location) / column.scale, (hi - column.location) / column.scale])


def _offers(column: ColumnFacts) -> bool:
    return column.minimum == column.maximum


@kernel
def _half(constants):
    """Return half the width, which is finite where the width may not be."""
    return 0.5 * constants[_HI] - 0.5 * constants[_LO]


@kernel
def coefficients(theta, constants, out):
    out[0] = constants[_LO]
    out[1] = constants[_HI]
    out[2] = -math.log(_half(constants)) - _LOG_2


@kernel
def fill_log_density(z, aux, coefficients, out):
    lo, hi, level = coefficients[0], coefficients[1], coefficients[2]
    for i in range(out.size):
        out[i] = level if lo <= z[i] <= hi else -np.inf


@kernel
def accumulate(z, aux, rows, constants, stats):
    stats[0] += rows.size


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    pass


@kernel
def initial(stats, hyper, constants, theta):
    pass


@kernel
def log_mass(lo, hi, theta, constants):
    inside = 0.5 * min(hi, constants[_HI]) - 0.5 * max(lo, constants[_LO])
    return math.log(inside / _half(constants)) if inside > 0.0 else -np.inf


@kernel
def cdf(x, theta, constants):
    return min(max((0.5 * x - 0.5 * constants[_LO]) / _half(constants), 0.0), 1.0)


@kernel
def mode(lo, hi, theta, constants):
    return min(max(0.5 * constants[_LO] + 0.5 * constants[_HI], lo), hi)


@kernel
def moment(k, lo, hi, theta, constants):
    a, b = max(lo, constants[_LO]), min(hi, constants[_HI])
    if not a < b:
        end = mode(lo, hi, theta, constants)
        return end if k == 1 else 0.0
    middle, half = 0.5 * a + 0.5 * b, 0.5 * b - 0.5 * a
    return middle if k == 1 else half * half / 3.0


@kernel
def sample(lo, hi, theta, constants, rng):
    a, b = max(lo, constants[_LO]), min(hi, constants[_HI])
    if not a < b:
        return mode(lo, hi, theta, constants)
    u = rng.random()
    return min(max(a * (1.0 - u) + b * u, a), b)


FAMILY = Family.of(
    globals(),
    name="uniform",
    bases=("real",),
    statistical_type="none",
    scaling=Scaling.LOCATION_SCALE,
    priors={"default": no_prior, "abda": no_prior},
    constants=_constants,
    n_stats=1,
    offers=_offers,
)
