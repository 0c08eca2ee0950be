"""Chains in threads: kernels run without the interpreter lock, so threads are all the parallelism that is needed.

      waiting   [2, 3]           a thread takes the chain that has waited longest, does one sweep of it, and puts it
      threads    0    1          back; so all chains stay within a sweep or two of each other, for any number of threads

A chain is its parameters, generator, key and number of sweeps, and nothing of the thread that happens to serve it.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.defaults import WATCH_SECONDS
from bayesjpt.kernels.sweeper import Sweeper
from bayesjpt.sampler.schedule import Draws, Schedule
from bayesjpt.sampler.target import Target


@dataclass(eq=False)
class Chain:
    """Where a chain stands; changed sweep by sweep.

    Parameters
    ----------
    number : int
        Even chains begin at the learner's estimate, odd ones at random allocations.
    rng : numpy.random.Generator
        Of PCG64. Draws the key and a random start, then weights and parameters.
    key : int
        Of the allocations.
    params : Params, optional
        None until it begins.
    sweep : int
        Completed sweeps.
    log_likelihood : float, nats
        Of all rows, in the user's units, at the point before the last sweep.
    n_active : int
        Edges of sums that some row took in the last sweep.
    """

    number: int
    rng: np.random.Generator
    key: int
    params: Params | None = None
    sweep: int = 0
    log_likelihood: float = float("nan")
    n_active: int = 0

    def advance(self, target: Target, sweeper: Sweeper, n_even: int) -> None:
        """Do one sweep; where the posterior is in closed form, draw from it, which tells no log likelihood.

        Weights of the structure stay even in the first `n_even` sweeps of a chain that began at random.
        """
        if target.is_closed_form:
            self.params = sweeper.learned()
            sweeper.redraw(self.params, self.rng)
            self.n_active = sweeper.n_active
            self.sweep += 1
            return
        from_random = self.number % 2 == 1
        if self.params is None:
            self.params = sweeper.at_random(self.rng) if from_random else sweeper.learned()
        even = from_random and self.sweep < n_even
        found = sweeper.sweep(self.params, self.rng, self.key, self.sweep, even=even)
        self.log_likelihood = found + target.log_jacobian
        self.n_active = sweeper.n_active
        self.sweep += 1


def new_chains(n_chain: int, seed: np.random.SeedSequence) -> list[Chain]:
    """Return chains that have not begun; the draws of each depend on the seed and its number alone."""
    chains = []
    for number, own in enumerate(seed.spawn(n_chain)):
        rng = np.random.Generator(np.random.PCG64(own))
        chains.append(Chain(number, rng, int(rng.integers(2**63))))
    return chains


class Recorder(Protocol):
    """What keeps a chain's state after each sweep."""

    def __call__(self, chain: Chain, draw: int | None, /) -> None: ...


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
    watch: Callable[[], None] | None = None,
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
        Called by a chain's thread after every sweep, with the position of the draw that was kept, or None.
    watch : callable, optional
        Called in this thread from time to time.

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
                if watch is not None:
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
        chain.advance(target, sweeper, schedule.n_even)
        draw = _keep(chain, schedule, draws)
        if record is not None:
            record(chain, draw)
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
            chain.advance(target, sweeper, schedule.n_even)
            _keep(chain, schedule, draws)
    return True


def _keep(chain: Chain, schedule: Schedule, draws: Draws) -> int | None:
    """Store the chain's point if the schedule says so; return the position of the draw."""
    if not schedule.keeps(chain.sweep) or chain.params is None:
        return None
    draw = schedule.n_kept(chain.sweep) - 1
    draws.log_weight[chain.number, draw] = chain.params.log_weight
    draws.theta[chain.number, draw] = chain.params.theta[: draws.theta.shape[2]]  # weights of types stand behind
    draws.log_likelihood[chain.number, draw] = chain.log_likelihood
    draws.n_active_edges[chain.number, draw] = chain.n_active
    return draw
