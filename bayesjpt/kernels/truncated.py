"""Parameters of a leaf that is truncated to a cell, and normalised on it, given the n rows that reached it.

Their conditional is the prior times the likelihood times mass(cell; theta)^-n, for which the conjugate draw would be
wrong. Three updates leave it invariant; which of them a leaf takes is decided by its family's slots
(`bayesjpt.circuit.plan`):

    CONJUGATE     shares inside the cell from their conjugate posterior, the cell's share and the rest from the prior
    SLICE         slice steps on `log_posterior` - n log mass, coordinate by coordinate, on the whole line
    METROPOLIS    the draw on the whole line, conjugate or reversible, accepted with probability
                  [mass(cell; new) / mass(cell; old)]^-n

References: Neal (2003), Slice sampling; Connor and Mosimann (1969), neutrality of the Dirichlet distribution.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from bayesjpt.circuit.plan import AS_WHOLE, CONJUGATE, POSITIVE, SLICE, UNIT
from bayesjpt.families import dispatch
from bayesjpt.families.record import INVALID, OK
from bayesjpt.numerics.apart import apart_until_called
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.draw import draw_dirichlet_inside
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.slice import slice_begin, slice_next, slice_state, slice_wants_more

AS_WHOLE_UPDATE = int(AS_WHOLE)
_CONJUGATE = int(CONJUGATE)
_SLICE = int(SLICE)
_POSITIVE = int(POSITIVE)
_UNIT = int(UNIT)
_N_ROUND = 2
_WIDTH = 1.0  # of logarithms, log odds and scale units; slices are stepped out and shrunk from there
_ROUNDING = 2.0**-52
_LARGEST_ROUNDING = 1e-3  # nats


@kernel
def _to_line(space, value):
    """Return an unconstrained coordinate of a parameter."""
    if space == _POSITIVE:
        return math.log(value)
    return math.log(value) - math.log1p(-value) if space == _UNIT else value


@kernel
def _from_line(space, u):
    """Return (parameter, log Jacobian) at an unconstrained coordinate."""
    if space == _POSITIVE:
        return math.exp(u), u
    if space == _UNIT:
        # exp(-|u|) never overflows: theta (1 - theta) = exp(-|u|) / (1 + exp(-|u|))^2
        size = math.exp(-abs(u))
        return (1.0 if u > 0.0 else size) / (1.0 + size), -abs(u) - 2.0 * math.log1p(size)
    return u, 0.0


@kernel
def _log_cell_mass(family, theta, constants, cell):
    """Return the log mass of the cell; -inf where rounding it would move the density of all rows that reached it.

    So far from a family's mass its density falls over the cell by more digits than a float holds. A step would take the
    rounding errors of mass(cell)^-n for a density, and walk away on them. Parameters have no such values.
    """
    lo, hi, n = cell
    log_mass = dispatch.log_mass(family, lo, hi, theta, constants)
    return log_mass if -n * log_mass * _ROUNDING <= _LARGEST_ROUNDING else -np.inf


@kernel
def _log_target(family, stats, hyper, constants, theta, cell):
    """Return the log density of theta; `cell` is its ends and how many rows reached the leaf."""
    log_cell = _log_cell_mass(family, theta, constants, cell)
    if not log_cell > -np.inf:
        return -np.inf
    value = dispatch.log_posterior(family, stats, hyper, constants, theta) - cell[2] * log_cell
    return value if value < np.inf else -np.inf


@kernel
def _slice_coordinate(family, j, space, stats, hyper, constants, theta, cell, rng):
    """Replace one parameter by a slice step; return the status."""
    old = theta[j]
    u = _to_line(space, old)
    _, jacobian = _from_line(space, u)
    density = _log_target(family, stats, hyper, constants, theta, cell) + jacobian
    if not (-np.inf < density < np.inf and -np.inf < u < np.inf):
        return INVALID
    state = slice_state()
    x = slice_begin(state, u, density, _WIDTH, rng)
    while slice_wants_more(state):
        theta[j], jacobian = _from_line(space, x)
        inside = 0.0 < theta[j] < np.inf if space == _POSITIVE else -np.inf < theta[j] < np.inf
        inside &= space != _UNIT or 0.0 < theta[j] < 1.0
        density = _log_target(family, stats, hyper, constants, theta, cell) + jacobian if inside else -np.inf
        x = slice_next(state, density, rng)
    # where nothing moved, keep the bits: a bound that theta lies on would not survive the way there and back
    theta[j] = _from_line(space, x)[0] if x != u else old
    return OK


@kernel
def _draw_conjugate(family, stats, hyper, constants, theta, cell, rng):
    """Draw a simplex given counts of the entries inside the cell; return the status."""
    lo, hi, _ = cell
    corner, inside = np.zeros_like(theta), np.empty(theta.size, np.bool_)
    for k in range(theta.size):
        # all mass on one category: its mass in the cell is 1 if the category lies inside, else 0
        corner[k] = 1.0
        inside[k] = dispatch.log_mass(family, lo, hi, corner, constants) > -np.inf
        corner[k] = 0.0
    # nothing is cut off
    if inside.all():
        return dispatch.draw_posterior(family, stats, hyper, constants, theta, rng)
    return OK if draw_dirichlet_inside(hyper, stats, inside, theta, rng) else INVALID


@apart_until_called(types.int64)
@kernel
def draw_on_cell(family, update, space, stats, hyper, constants, theta, cell, rng):
    """Replace the parameters of a truncated leaf by a draw from, or a step that leaves invariant, their conditional.

    Parameters
    ----------
    family, update : int
        The family's number; `CONJUGATE`, `SLICE` or `METROPOLIS`.
    space : int32 (n_theta,)
        What each parameter may be: `REAL`, `POSITIVE`, `UNIT` or `SIMPLEX`.
    stats, hyper, constants, theta : as in the contract of a family
    cell : tuple of float
        Its ends in units of z, and the number of rows that reached the leaf.
    rng : numpy.random.Generator

    Returns
    -------
    int
        `OK`, or `INVALID`: theta is then as it was.
    """
    # no row, no likelihood: the conditional is the prior, whatever the cell
    if cell[2] == 0.0:
        return dispatch.draw_posterior(family, stats, hyper, constants, theta, rng)
    if update == _CONJUGATE:
        return _draw_conjugate(family, stats, hyper, constants, theta, cell, rng)
    old = theta.copy()
    status = OK
    if update == _SLICE and _log_cell_mass(family, theta, constants, cell) == -np.inf:
        # of a prior draw that no row had used: nowhere a slice could begin
        status = dispatch.draw_posterior(family, stats, hyper, constants, theta, rng)
        _accept(family, old, constants, theta, cell, rng)
    elif update == _SLICE:
        for _ in range(_N_ROUND):
            for j in range(theta.size):
                if status == OK:
                    status = _slice_coordinate(family, j, space[j], stats, hyper, constants, theta, cell, rng)
    else:
        status = dispatch.draw_posterior(family, stats, hyper, constants, theta, rng)
        _accept(family, old, constants, theta, cell, rng)
    if status != OK:
        copy_into(old, theta)
    return status


@kernel
def _accept(family, old, constants, theta, cell, rng):
    """Keep a proposal drawn on the whole line with the probability that its mass in the cell asks for."""
    log_new = _log_cell_mass(family, theta, constants, cell)
    log_old = _log_cell_mass(family, old, constants, cell)
    # the difference is infinite where the old parameters have no place in the posterior
    if not (log_new > -np.inf and (log_old == -np.inf or math.log1p(-rng.random()) < cell[2] * (log_old - log_new))):
        copy_into(old, theta)


@apart_until_called(types.int64)
@kernel
def draw_from_values_on_cell(family, z, count, hyper, constants, theta, cell, rng):
    """Do what `draw_on_cell` does for a family that draws from values, through `METROPOLIS`."""
    old = theta.copy()
    status = dispatch.draw_from_values(family, z, count, hyper, constants, theta, rng)
    if status != OK:
        copy_into(old, theta)
    elif cell[2] > 0.0:
        _accept(family, old, constants, theta, cell, rng)
    return status
