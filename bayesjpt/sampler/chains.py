"""Chains in threads: kernels run without the interpreter lock, so threads are all the parallelism that is needed.

      waiting   [2, 3]           a thread takes the chain that has waited longest, does one sweep of it, and puts it
      threads    0    1          back; so all chains stay within a sweep or two of each other, for any number of threads

A chain is its state and its generator, and nothing of the thread that happens to serve it.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from bayesjpt.defaults import WATCH_SECONDS
from bayesjpt.kernels.chain import ChainState, draw_independent, draw_key, init, step, steps
from bayesjpt.kernels.sweeper import Sweeper
from bayesjpt.sampler.schedule import Draws, Schedule
from bayesjpt.sampler.target import Target


@dataclass(eq=False)
class Chain:
    """A chain of a fit: its generator and its state, which is replaced behind each sweep.

    Parameters
    ----------
    number : int
        Even chains begin at the learner's estimate, odd ones at random allocations.
    rng : numpy.random.Generator
        Of PCG64. Draws the key and a random start, then weights and parameters.
    state : ChainState, optional
        None before the first sweep.
    """

    number: int
    rng: np.random.Generator
    state: ChainState | None = None

    @property
    def sweep(self) -> int:
        """Completed sweeps."""
        return 0 if self.state is None else self.state.sweep

    def advance(self, target: Target, sweeper: Sweeper, n_tune: int) -> ChainState:
        """Return the state one sweep on; where the posterior is in closed form, behind an independent draw."""
        state = self._begun(target, sweeper, n_tune)
        return (draw_independent if target.is_closed_form else step)(state, sweeper, self.rng)

    def advance_on(self, target: Target, sweeper: Sweeper, schedule: Schedule) -> list[ChainState]:
        """Return the states one sweep on and, as many as come in one call, behind it; see `advance`."""
        state = self._begun(target, sweeper, schedule.n_tune)
        if target.is_closed_form:
            return [draw_independent(state, sweeper, self.rng)]
        return steps(state, sweeper, self.rng, schedule.n_sweep - state.sweep)

    def _begun(self, target: Target, sweeper: Sweeper, n_tune: int) -> ChainState:
        """Return the state at hand, or that before the first sweep."""
        if self.state is not None:
            return self.state
        at_random = self.number % 2 == 1 and not target.is_closed_form
        return init(sweeper, self.rng, draw_key(self.rng), at_random=at_random, n_tune=n_tune)


def new_chains(n_chain: int, seed: np.random.SeedSequence) -> list[Chain]:
    """Return chains that have not begun; the draws of each depend on the seed and its number alone."""
    return [
        Chain(number, np.random.Generator(np.random.PCG64(chain_seed)))
        for number, chain_seed in enumerate(seed.spawn(n_chain))
    ]


class Recorder(Protocol):
    """What takes note of a chain's state behind each sweep."""

    def __call__(self, chain: Chain, /) -> None: ...


@dataclass(eq=False)
class _Shared:
    """What threads have in common; a deque's ends are safe to use from several at once."""

    waiting: deque[Chain]
    stop: threading.Event = field(default_factory=threading.Event)
    done: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    errors: list[BaseException] = field(default_factory=list)


def run_chains(
    target: Target,
    schedule: Schedule,
    chains: Sequence[Chain],
    draws: Draws,
    *,
    n_thread: int,
    record: Recorder | None = None,
    watches: Sequence[Callable[[], None]] = (),
) -> bool:
    """Run chains to the end of the schedule, from wherever they stand; return whether an interrupt ended it before.

    Parameters
    ----------
    target : Target
    schedule : Schedule
    chains : sequence of Chain
        Changed in place. After an interrupt each stands behind its last complete sweep.
    draws : Draws
        Written; draw d of a chain is there once `Schedule.n_kept` of its sweeps exceeds d.
    n_thread : int
        No effect on any draw.
    record : callable, optional
        Called by a chain's thread after every sweep, when its draw is kept.
    watches : sequence of callables
        Called in this thread from time to time; an error of theirs ends the run.

    Raises
    ------
    SamplingError
        If a row has probability zero, or a conditional distribution is not valid; the other chains stop.
    """
    shared = _Shared(deque(chain for chain in chains if chain.sweep < schedule.n_sweep))

    def serve() -> None:
        try:
            _serve(shared, target, schedule, draws, record)
        except BaseException as error:  # an exception ends with its thread: the caller raises it
            shared.errors.append(error)
            shared.stop.set()
        finally:
            shared.done.release()

    threads = [
        threading.Thread(target=serve, name=f"chains-{number}", daemon=True)
        for number in range(min(n_thread, len(shared.waiting)))
    ]
    interrupted = False
    try:
        for thread in threads:
            thread.start()
        for _ in threads:
            while not shared.done.acquire(timeout=WATCH_SECONDS):
                for watch in watches:
                    watch()
    except KeyboardInterrupt:
        interrupted = True
    finally:
        shared.stop.set()
        for thread in threads:
            with contextlib.suppress(RuntimeError):  # an interrupt came before it was started
                thread.join()
    for error in shared.errors:
        if not isinstance(error, KeyboardInterrupt):
            raise error
    return interrupted or bool(shared.errors)


def _serve(shared: _Shared, target: Target, schedule: Schedule, draws: Draws, record: Recorder | None) -> None:
    """Advance waiting chains until none is left, or somebody says stop."""
    sweeper = target.sweeper()
    while not shared.stop.is_set():
        try:
            chain = shared.waiting.popleft()
        except IndexError:  # those that are not done are in the hands of other threads, and stay there
            return
        chain.state = chain.advance(target, sweeper, schedule.n_tune)
        # the draw first: a save takes as many draws as the state that it sees has made
        _keep(chain, schedule, draws)
        if record is not None:
            record(chain)
        if chain.sweep < schedule.n_sweep:
            shared.waiting.append(chain)


def run_chains_here(
    target: Target, schedule: Schedule, chains: Sequence[Chain], draws: Draws, stop: threading.Event
) -> bool:
    """Run chains in this thread, one after the other; return whether all came to their end before `stop` was set.

    Parameters and errors are those of `run_chains`, and so are the draws.
    """
    sweeper = target.sweeper()
    for chain in chains:
        while chain.sweep < schedule.n_sweep:
            if stop.is_set():
                return False
            for state in chain.advance_on(target, sweeper, schedule):
                chain.state = state
                _keep(chain, schedule, draws)
    return True


def _keep(chain: Chain, schedule: Schedule, draws: Draws) -> None:
    """Store the chain's point if the schedule says so."""
    state = chain.state
    if state is None or not schedule.keeps(state.sweep):
        return
    draw = schedule.n_kept(state.sweep) - 1
    draws.log_weight[chain.number, draw] = state.params.log_weight
    draws.theta[chain.number, draw] = state.params.theta[: draws.theta.shape[2]]  # weights of types stand behind
    draws.log_likelihood[chain.number, draw] = state.log_likelihood
    draws.n_active_edges[chain.number, draw] = state.n_active
