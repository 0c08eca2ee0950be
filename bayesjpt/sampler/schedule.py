"""Which sweeps of a chain are kept, and the arrays into which its draws go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit.arrays import Params


@dataclass(frozen=True)
class Schedule:
    """How many chains run how far: `n_tune` sweeps, and then `n_draw` times `thin` sweeps of which the last is kept.

    Parameters
    ----------
    n_chain, n_tune, n_draw, thin : int
    """

    n_chain: int
    n_tune: int
    n_draw: int
    thin: int = 1

    @property
    def n_sweep(self) -> int:
        """Sweeps of one chain."""
        return self.n_tune + self.n_draw * self.thin

    def of_independent_draws(self) -> Schedule:
        """Return the schedule of as many draws that are independent: nothing is tuned or thinned."""
        return Schedule(self.n_chain, 0, self.n_draw)

    def n_kept(self, sweep: int) -> int:
        """Return how many draws a chain has after so many sweeps."""
        return max(sweep - self.n_tune, 0) // self.thin

    def keeps(self, sweep: int) -> bool:
        """Return whether the sweep-th sweep of a chain, counted from 1, is kept."""
        return sweep > self.n_tune and (sweep - self.n_tune) % self.thin == 0


class Draws(NamedTuple):
    """Kept draws of all chains.

    Attributes
    ----------
    log_weight : float64 (n_chain, n_draw, n_edge), nats
    theta : float64 (n_chain, n_draw, n_theta)
    log_likelihood : float64 (n_chain, n_draw), nats
        Of all rows, in the user's units, at the point *before* the sweep: it lags one sweep. NaN for independent draws,
        which evaluate no row.
    n_active_edges : int64 (n_chain, n_draw)
        Edges of sums that some row took.
    """

    log_weight: np.ndarray
    theta: np.ndarray
    log_likelihood: np.ndarray
    n_active_edges: np.ndarray

    @property
    def params(self) -> Params:
        return Params(self.log_weight, self.theta)

    def first(self, n_draw: int) -> Draws:
        """Return the first draws of every chain, as arrays in memory."""
        return Draws(*(np.array(array[:, :n_draw]) for array in self))


class StateSizes(NamedTuple):
    """How many numbers a chain carries from sweep to sweep.

    Attributes
    ----------
    n_edge, n_theta : int
        Log weights and parameters, of which draws are kept.
    n_type_weight : int
        Weights of columns' types and factors of priors, of which none are kept: no query asks for them.
    """

    n_edge: int
    n_theta: int
    n_type_weight: int


def draw_arrays(schedule: Schedule, n_edge: int, n_theta: int) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Return shape and dtype of each array of `Draws`, by name."""
    shape = (schedule.n_chain, schedule.n_draw)
    number, count = np.dtype(np.float64), np.dtype(np.int64)
    return {
        "log_weight": ((*shape, n_edge), number),
        "theta": ((*shape, n_theta), number),
        "log_likelihood": (shape, number),
        "n_active_edges": (shape, count),
    }


def empty_draws(schedule: Schedule, n_edge: int, n_theta: int) -> Draws:
    """Return room for all draws, not filled."""
    return Draws(**{name: np.empty(*form) for name, form in draw_arrays(schedule, n_edge, n_theta).items()})
