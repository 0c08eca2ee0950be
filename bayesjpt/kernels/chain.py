"""One state of a chain and what moves it: `fit` drives these functions in threads, the PyMC step inside ``pm.sample``.

      init(sweeper, rng, key)  ->  state  --step-->  state  --step-->  ...

      step  =  allocate  (allocations given weights and parameters; never stored)
               draw      (weights and parameters given the allocations)

A function returns a new state and leaves the one that it was given as it is; it advances the generator, and it uses the
buffers of a sweeper, which belongs to the thread and not to the chain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.kernels.sweeper import Sweeper

EVEN_SHARE = 0.5
"""Share of the tuning sweeps in which a chain from random allocations has even weights at structure sums. With strong
concentrations in place of even weights a third, two thirds and nine tenths do alike (docs/results.md)."""


class ChainState(NamedTuple):
    """Where a chain stands; beside it there is its generator, and nothing else.

    Attributes
    ----------
    params : Params
        Weights and parameters; behind the parameters those that sweeps draw, too: weights of types, factors of priors.
    key : int
        Of the allocations: they are a function of (key, sweep, row, node).
    sweep : int
        Completed sweeps.
    n_even : int
        First sweeps in which weights of the structure stay even.
    log_likelihood : float, nats
        Of all rows, in the user's units, at the params *before* the last sweep. NaN where no row is evaluated.
    n_active : int
        Edges of sums that some row took in the last sweep.
    """

    params: Params
    key: int
    sweep: int = 0
    n_even: int = 0
    log_likelihood: float = float("nan")
    n_active: int = 0

    @property
    def is_even(self) -> bool:
        """Whether weights of the structure stay even in the sweep that comes next."""
        return self.sweep < self.n_even


def draw_key(rng: np.random.Generator) -> int:
    """Return a key of allocations."""
    return int(rng.integers(2**63))


def init(
    sweeper: Sweeper, rng: np.random.Generator, key: int, *, at_random: bool = False, n_tune: int = 0
) -> ChainState:
    """Return the state of a chain before its first sweep.

    Parameters
    ----------
    sweeper : Sweeper
    rng : numpy.random.Generator
        Used for a start at random alone.
    key : int
        Of `draw_key`.
    at_random : bool
        Begin at a draw given allocations at random in place of the learner's estimate. Weights of the structure then
        stay even at first: sub-populations grow apart before small ones can lose their rows.
    n_tune : int
        Sweeps that are not kept.
    """
    params = sweeper.at_random(rng) if at_random else sweeper.learned()
    return ChainState(params, key, n_even=int(EVEN_SHARE * n_tune) if at_random else 0)


def step(state: ChainState, sweeper: Sweeper, rng: np.random.Generator) -> ChainState:
    """Return the state after one sweep.

    Raises
    ------
    SamplingError
        If a row has probability zero, or a conditional distribution is not valid.
    """
    return draw(allocate(state, sweeper, rng), sweeper, rng)


def steps(state: ChainState, sweeper: Sweeper, rng: np.random.Generator, n: int) -> list[ChainState]:
    """Return the states behind each of the next sweeps: n of them, or fewer where they cannot be had in one call.

    Raises
    ------
    SamplingError
        As `step`.
    """
    n = min(n, sweeper.at_once)
    if n == 1 or state.is_even:
        return [step(state, sweeper, rng)]
    params, log_likelihood, n_active = sweeper.sweep_on(state.params, rng, state.key, state.sweep, n)
    return [
        state._replace(
            params=Params(params.log_weight[k], params.theta[k]),
            sweep=state.sweep + k + 1,
            log_likelihood=float(log_likelihood[k]) + sweeper.log_jacobian,
            n_active=int(n_active[k]),
        )
        for k in range(n)
    ]


def allocate(state: ChainState, sweeper: Sweeper, rng: np.random.Generator) -> ChainState:
    """Return the state with the log likelihood of its params; the sweeper holds allocations for `draw`, to come next.

    In between, the sweeper's concentrations may be replaced given the allocations.
    """
    found = sweeper.allocate(state.params, rng, state.key, state.sweep, even=state.is_even)
    return state._replace(log_likelihood=found + sweeper.log_jacobian)


def draw(state: ChainState, sweeper: Sweeper, rng: np.random.Generator) -> ChainState:
    """Return the state with weights and parameters drawn given the allocations: the second half of a sweep."""
    # a state is never changed, and the sweeper draws in place: into a copy
    params = Params(*(array.copy() for array in state.params))
    sweeper.draw(params, rng, even=state.is_even)
    # log_likelihood stays that of the params before the sweep: the pass that gave it came first
    return state._replace(params=params, sweep=state.sweep + 1, n_active=sweeper.n_active)


def draw_independent(state: ChainState, sweeper: Sweeper, rng: np.random.Generator) -> ChainState:
    """Return a state drawn from a posterior in closed form (`bayesjpt.kernels.sweeper.is_closed_form`), in one step."""
    params = sweeper.learned()
    sweeper.redraw(params, rng)
    return state._replace(params=params, sweep=state.sweep + 1, n_active=sweeper.n_active)
