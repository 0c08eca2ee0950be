"""Gibbs sweeps over one table under one circuit: what the PyMC step and the sampler of `fit` both drive."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.plan import AS_WHOLE, CONJUGATE, Plan
from bayesjpt.circuit.priors import Priors
from bayesjpt.errors import SamplingError
from bayesjpt.families import registry
from bayesjpt.kernels.cells import Cells
from bayesjpt.kernels.gibbs import allocate, count_active, draw_params
from bayesjpt.kernels.paths import Paths, make_paths, record
from bayesjpt.kernels.redraw import Given, deferred_leaves, redraw, run_sweeps
from bayesjpt.kernels.scales import apply_scales, draw_scales_given_statistics
from bayesjpt.kernels.swaps import make_swaps, propose_swaps
from bayesjpt.kernels.work import make_work
from bayesjpt.numerics.counter_rng import sweep_key

_UPDATES = 4
"""Slice updates of a factor between independent draws: its logarithm forgets where it was in one or two."""

SWEEPS_AT_ONCE, ROWS_AT_ONCE = 10, 20_000
"""Sweeps that are asked for in one call, and rows that all of them visit, at most."""


class Sweeper:
    """Draws of weights and parameters, given those before, by whole sweeps.

    It holds buffers, so one thread at a time may use it; chains that run at once take one each.

    Parameters
    ----------
    circuit : Circuit
    plan : Plan
    priors : Priors
        `Priors.concentration` may be replaced before each sweep through `concentration`. Weights of types and factors
        of hyperparameters are drawn, too: `Params.theta` of this sweeper holds them behind the parameters.
    cells : Cells
        The table, as `bayesjpt.kernels.cells.make_cells` arranged it for the plan; read only.
    n_block : int
        Rows evaluated together; no effect on any draw.
    swaps : bool
        Whether members of a dictionary may exchange their rows: only right where all weights and parameters are drawn.
    log_jacobian : float
        What turns a log likelihood in the families' units into one in the user's, in nats; of use to who drives sweeps.
    name : str
        How messages call the table.
    """

    def __init__(
        self,
        circuit: Circuit,
        plan: Plan,
        priors: Priors,
        cells: Cells,
        *,
        n_block: int,
        swaps: bool = True,
        log_jacobian: float = 0.0,
        name: str = "x",
    ):
        self.circuit, self.plan, self.priors, self.cells = circuit, plan, priors, cells
        self.concentration = priors.concentration
        self.swaps = swaps
        self.log_jacobian = log_jacobian
        self.name = name
        self._types = priors.column_types
        self._scales = priors.scales
        self._hyper = priors.hyper.copy()
        self._work = make_work(plan, cells, n_block)
        self._swaps = make_swaps(plan)
        self._stats = np.zeros(plan.stat_at[-1])
        self._edge_count = np.zeros(circuit.n_edge, np.int64)
        self._n_active: int | None = None
        self._allocated = False
        self._soft = circuit.edges_of_kind(arrays.LATENT)
        self._even = -np.log(np.diff(circuit.child_ptr)[circuit.edge_parent()[self._soft]])

    def learned(self) -> Params:
        """Return the learner's estimate, in arrays of its own."""
        return Params(
            self.circuit.start_log_weight.copy(),
            np.concatenate([self.circuit.start_theta, self._types.even(), np.ones(self._scales.n_group)]),
        )

    def at_random(self, rng: np.random.Generator) -> Params:
        """Return a draw given allocations at random, by even weights: a start far from the learner's."""
        params = self.learned()
        params.log_weight[self._soft] = self._even
        self._swaps.other[:] = -1
        self._allocate(params, np.uint64(rng.integers(2**63)), True)
        self._draw_given_allocations(params, rng)
        return params

    def sweep(
        self, params: Params, rng: np.random.Generator, chain_key: int, number: int, *, even: bool = False
    ) -> float:
        """Replace params by a draw; return the log likelihood, in the families' units, at the params that it found.

        Parameters
        ----------
        params : Params
            Written in place.
        rng : numpy.random.Generator
            Of weights and parameters.
        chain_key, number : int
            Allocations are a function of (chain key, number of the sweep, row, node).
        even : bool
            Keep the weights of the structure's soft sums even, in place of drawing them. For the first sweeps of a
            chain from random allocations: sub-populations then grow apart before small ones can lose their rows.

        Raises
        ------
        SamplingError
            If a row has probability zero, or a conditional distribution is not valid.
        """
        log_likelihood = self.allocate(params, rng, chain_key, number, even=even)
        self.draw(params, rng, even=even)
        return log_likelihood

    def allocate(
        self, params: Params, rng: np.random.Generator, chain_key: int, number: int, *, even: bool = False
    ) -> float:
        """Draw the allocations of a sweep given params, and return what `sweep` does; `draw` has to follow.

        In between `edge_count` tells the rows that took each edge, and `concentration` may be replaced given them.
        """
        self._pair(rng)
        return self._allocate(params, np.uint64(sweep_key(np.uint64(chain_key), np.uint64(number))), False)

    def draw(self, params: Params, rng: np.random.Generator, *, even: bool = False) -> None:
        """Replace params by a draw given the allocations: the rest of a sweep, whose arguments are explained there."""
        self._draw_given_allocations(params, rng)
        if even:
            params.log_weight[self._soft] = self._even

    @property
    def at_once(self) -> int:
        """How many sweeps `sweep_on` may be asked for: as long as all of them take less time than a user notices."""
        is_base_allocation = type(self)._allocate is Sweeper._allocate and type(self).allocate is Sweeper.allocate
        few = ROWS_AT_ONCE // max(int(self.cells.n_row[0]), 1)
        return max(min(SWEEPS_AT_ONCE, few), 1) if is_base_allocation and self.swaps else 1

    def sweep_on(
        self, params: Params, rng: np.random.Generator, chain_key: int, first: int, n: int
    ) -> tuple[Params, np.ndarray, np.ndarray]:
        """Return what n sweeps, numbered from `first`, would find and leave one behind the other, in one call.

        Returns
        -------
        Params
            With an axis of n draws in front.
        log_likelihood : float64 (n,)
            As `sweep` returns it.
        n_active : int64 (n,)
            Edges of sums that some row took.

        Raises
        ------
        SamplingError
            As `sweep`.
        """
        points = np.empty((n + 1, self.circuit.n_edge)), np.empty((n + 1, params.theta.size))
        points[0][0], points[1][0] = params
        found = np.empty(n), np.empty(n, np.int64)
        self._allocated = False
        _, impossible, node, leaf = run_sweeps(
            self._given, self.concentration, np.uint64(chain_key), np.uint64(first), points, rng, found
        )
        self._tell((0.0, impossible))
        self._check(node, leaf)
        self._n_active = int(found[1][-1])
        return Params(points[0][1:], points[1][1:]), *found

    def redraw(self, params: Params, rng: np.random.Generator) -> None:
        """Replace params by an independent draw, where `is_closed_form` holds: rows are allocated once and for all.

        Factors of priors have slice updates before, so many that they hardly depend on the draw before.
        """
        if not self._allocated:
            # any key and any parameters: every row has one path alone
            self._allocate(self.learned(), np.uint64(0), False)
            self._allocated = True
        if self._scales.n_group:
            for _ in range(_UPDATES):
                self._draw_scales_given_statistics(params.theta[self.circuit.n_theta :], rng)
            self._scale(params)
        self._draw(params, self.concentration, rng)

    def paths(self, params: Params, key: int) -> Paths:
        """Return the path of every row, drawn given params; `key` is that of `bayesjpt.kernels.gibbs.allocate`.

        Raises
        ------
        SamplingError
            If a row has probability zero.
        """
        priors = self.priors
        kept = make_paths(self.plan, self.cells, priors.hyper, priors.hyper_at, self.circuit.start_theta)
        self._tell(record(self.plan, self.cells, *params, self._work, kept, np.uint64(key)))
        return kept

    @property
    def edge_count(self) -> np.ndarray:
        """int64 (n_edge,): rows that took each edge, as allocated last; read only."""
        return self._edge_count

    @property
    def n_active(self) -> int:
        """Edges of sums that some row took in the last sweep."""
        if self._n_active is None:
            self._n_active = int(count_active(self.plan, self._edge_count))
        return self._n_active

    def _pair(self, rng: np.random.Generator) -> None:
        if self.swaps:
            propose_swaps(self._swaps, rng)
        else:
            self._swaps.other[:] = -1

    def _divided(self, params: Params) -> np.ndarray:
        """Return the concentrations, divided by the weights of types at hand."""
        if not self._types.n_weight:
            return self.concentration
        return self._types.divided(self.concentration, params.theta[self.circuit.n_theta :])

    def _scale(self, params: Params) -> None:
        """Fill the hyperparameters at the factors at hand."""
        if self._scales.n_group:
            tau = params.theta[self.circuit.n_theta + self._types.n_weight :]
            apply_scales(self._scales, self.priors.hyper, self.priors.hyper_at, tau, self._hyper)

    def _draw_given_allocations(self, params: Params, rng: np.random.Generator) -> None:
        self._scale(params)
        behind = params.theta[self.circuit.n_theta :]
        node, leaf, n_active = redraw(
            self._given, self.concentration, params.log_weight, params.theta[: self.circuit.n_theta], behind, rng
        )
        self._n_active = int(n_active)
        self._check(node, leaf)

    @cached_property
    def _given(self) -> Given:
        """What `redraw` reads and writes beside the point of a chain; subclasses may replace buffers before."""
        scales, priors = self._scales, self.priors
        return Given(
            self.plan, self.cells, self._work, self._swaps, scales, self._types, self._stats, self._edge_count,
            priors.hyper, self._hyper, priors.hyper_at, deferred_leaves(scales, self.circuit.n_leaf),
        )  # fmt: skip

    def _check(self, node: int | np.integer, leaf: int | np.integer) -> None:
        """Raise where a conditional at a node, or the prior of a leaf, is not valid; else they are -1."""
        if node >= 0:
            raise SamplingError(f"the conditional distribution at node {node} of block {self.name!r} is not valid")
        if leaf >= 0:
            raise SamplingError(f"the prior of leaf {leaf} of block {self.name!r} is not valid")

    def _allocate(self, params: Params, key: np.uint64, by_prior: bool) -> float:
        self._allocated = False
        counts = self._stats, self._edge_count
        return self._tell(allocate(self.plan, self.cells, *params, self._work, self._swaps, key, by_prior, *counts))

    def _tell(self, allocated: tuple[float, int | np.integer]) -> float:
        """Return the log likelihood of what allocations returned; raise where a row is impossible."""
        self._n_active = None
        log_likelihood, impossible = allocated
        if impossible >= 0:
            raise SamplingError(
                f"row {impossible + 1} of block {self.name!r} has probability zero at the current parameters",
                "every row inside the support of some likelihood of each column",
            )
        return log_likelihood

    def _draw(self, params: Params, concentration: np.ndarray, rng: np.random.Generator) -> None:
        node = draw_params(
            self.plan,
            self.cells,
            self._work,
            self._stats,
            self._edge_count,
            concentration,
            self._hyper,
            self.priors.hyper_at,
            *params,
            rng,
        )
        self._check(node, -1)

    def _draw_scales_given_statistics(self, tau: np.ndarray, rng: np.random.Generator) -> None:
        priors = self.priors
        leaf = draw_scales_given_statistics(
            self.plan, self._scales, self._stats, priors.hyper, priors.hyper_at, tau, rng
        )
        self._check(-1, leaf)


def is_closed_form(circuit: Circuit, plan: Plan, n_open: int) -> bool:
    """Return whether the posterior is in closed form: every row's path is known, and every leaf's draw is exact.

    Sums of the structure are hard and no row lacks the cell that decides; a slot holds one family, and beside it atoms,
    which their values tell from it; families are conjugate, also on the cells to which their leaves are truncated.
    Factors of their priors are another matter. `n_open` is that of `bayesjpt.kernels.routes.Routes`, of all rows.
    """
    families = [registry.FAMILIES[number] for number in circuit.leaf_family]
    has_parameters = plan.theta_len > 0
    exact = np.where(
        plan.leaf_update == AS_WHOLE, [family.is_conjugate for family in families], plan.leaf_update == CONJUGATE
    )
    if n_open or not (exact | ~has_parameters).all():
        return False
    for node in np.flatnonzero(np.diff(plan.child_ptr) > 1):
        children = plan.child[plan.child_ptr[node] : plan.child_ptr[node + 1]]
        if plan.kind[node] == arrays.LIKELIHOOD:
            if (~plan.leaf_is_atom[plan.leaf_of[children]]).sum() > 1:
                return False
        elif plan.kind[node] != arrays.PRODUCT and plan.split_column[node] < 0:
            return False
    return True
