"""Where the constants of a spline leaf stand, and its tails; see `bayesjpt.families.spline`.

Read by the slots and by the choice of order and breaks. All in the family's units.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.numerics.cancellation import log1mexp
from bayesjpt.numerics.jit import kernel

ORDER, N_BIN, STEP, SIGMA, LOW, HIGH, BREAKS = range(7)


def n_weight(constants: np.ndarray) -> int:
    """Return the number of splines and tails."""
    n_spline = int(constants[ORDER]) + int(constants[N_BIN]) - 1
    return n_spline + int(has_lower_tail(constants)) + int(has_upper_tail(constants))


@kernel
def breaks_of(constants):
    """Return the breaks, float64 (n_bin + 1,)."""
    return constants[BREAKS : BREAKS + int(constants[N_BIN]) + 1]


@kernel
def ordinates_of(constants):
    """Return the ordinates of the density, float64 (n_bin, order, order), u from break to break."""
    order, n_bin = int(constants[ORDER]), int(constants[N_BIN])
    first = BREAKS + n_bin + 1
    return constants[first : first + n_bin * order * order].reshape((n_bin, order, order))


@kernel
def masses_of_values(constants):
    """Return those of what a value is scored by: the density, or on whole numbers the mass, from first to last."""
    order, n_bin = int(constants[ORDER]), int(constants[N_BIN])
    first = BREAKS + n_bin + 1
    if constants[STEP] > 0.0:
        first += n_bin * order * order
    return constants[first : first + n_bin * order * order].reshape((n_bin, order, order))


@kernel
def has_lower_tail(constants):
    """Return whether the line goes on below the first break."""
    return constants[LOW] < constants[BREAKS]


@kernel
def has_upper_tail(constants):
    """Return whether the line goes on above the last break."""
    return constants[HIGH] > constants[BREAKS + int(constants[N_BIN])]


@kernel
def tail_reach(upper, constants):
    """Return how far a tail reaches from the nearest break to its end, infinity where it is not truncated."""
    if upper:
        return constants[HIGH] - constants[BREAKS + int(constants[N_BIN])]
    return constants[BREAKS] - constants[LOW]


@kernel
def log_tail_mass(near, far, reach, sigma):
    """Return the log probability, under a tail, of what lies between two distances from its break."""
    far = min(far, reach)
    if not near < far:
        return -np.inf
    if near == 0.0 and far == reach:
        return 0.0
    return -near / sigma + log1mexp((far - near) / sigma) - log1mexp(reach / sigma)


@kernel
def log_tail_level(upper, constants):
    """Return the log density of a tail at its break; on whole numbers the log mass of the first."""
    sigma = constants[SIGMA]
    whole = log1mexp(1.0 / sigma) if constants[STEP] > 0.0 else -math.log(sigma)
    return whole - log1mexp(tail_reach(upper, constants) / sigma)
