"""One slice update of a scalar (stepping out and shrinkage), turned inside out: the caller evaluates its own target.

A compiled function that takes the target as an argument would be compiled anew in every process; so the sampler asks
for log densities one point at a time:

    state = slice_state()
    x = slice_begin(state, here, log_target(here), width, rng)
    while slice_wants_more(state):
        x = slice_next(state, log_target(x), rng)

After the loop x is the new value. `width` may depend on the data, not on the current value. A target of -inf or NaN
counts as outside the slice.

References: Neal (2003), Slice sampling, figures 3 and 5.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.numerics.jit import kernel

_PHASE, _LEVEL, _X, _LEFT, _RIGHT, _WIDTH, _STEPS_LEFT, _STEPS_RIGHT, _POINT, _N_SHRINK = range(10)
_STEP_LEFT, _STEP_RIGHT, _SHRINK, _DONE = 0.0, 1.0, 2.0, 3.0
_MAX_STEPS = 1000
_MAX_SHRINK = 500


@kernel
def slice_state():
    """Return the workspace of a slice update, float64."""
    return np.zeros(10)


@kernel
def slice_begin(state, x, log_density, width, rng):
    """Start an update from x, whose log density is finite, and return the first point to be evaluated."""
    # log(u f(x)) with u uniform: minus its logarithm is exponential
    state[_LEVEL] = log_density - rng.standard_exponential()
    state[_X] = x
    state[_WIDTH] = width
    state[_LEFT] = x - width * rng.random()
    state[_RIGHT] = state[_LEFT] + width
    # steps are shared out at random: with a fixed number a side the way back would have another probability
    state[_STEPS_LEFT] = np.floor(_MAX_STEPS * rng.random())
    state[_STEPS_RIGHT] = _MAX_STEPS - 1 - state[_STEPS_LEFT]
    state[_N_SHRINK] = 0.0
    state[_PHASE] = _STEP_LEFT
    state[_POINT] = state[_LEFT]
    return state[_POINT]


@kernel
def slice_wants_more(state):
    """Return whether the point handed out last is still to be evaluated."""
    return state[_PHASE] != _DONE


@kernel
def _propose(state, rng):
    state[_PHASE] = _SHRINK
    state[_POINT] = state[_LEFT] + rng.random() * (state[_RIGHT] - state[_LEFT])
    return state[_POINT]


@kernel
def slice_next(state, log_density, rng):
    """Take the log density of the point handed out last; return the next point, or the new value when done."""
    inside = log_density >= state[_LEVEL]
    if state[_PHASE] == _STEP_LEFT:
        if inside and state[_STEPS_LEFT] > 0.0:
            state[_STEPS_LEFT] -= 1.0
            state[_LEFT] -= state[_WIDTH]
            state[_POINT] = state[_LEFT]
        else:
            state[_PHASE] = _STEP_RIGHT
            state[_POINT] = state[_RIGHT]
        return state[_POINT]
    if state[_PHASE] == _STEP_RIGHT:
        if inside and state[_STEPS_RIGHT] > 0.0:
            state[_STEPS_RIGHT] -= 1.0
            state[_RIGHT] += state[_WIDTH]
            state[_POINT] = state[_RIGHT]
            return state[_POINT]
        return _propose(state, rng)
    if inside:
        state[_PHASE] = _DONE
        return state[_POINT]
    state[_N_SHRINK] += 1.0
    if state[_N_SHRINK] >= _MAX_SHRINK:
        # the bracket has closed around the old value to the last bit: stay
        state[_PHASE] = _DONE
        state[_POINT] = state[_X]
        return state[_POINT]
    # the old value stays inside the bracket, and is never ruled out
    if state[_POINT] < state[_X]:
        state[_LEFT] = state[_POINT]
    else:
        state[_RIGHT] = state[_POINT]
    return _propose(state, rng)
