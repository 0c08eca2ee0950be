"""Sweeps in one call: everything that is drawn given the allocations, part after part, and several sweeps in turn.

    weights of types                 `type_prior.draw_type_prior`
    rows exchanged in dictionaries   `swaps.swap_rows`
    factors of priors                `scales.draw_scales_given_statistics`, `scales.draw_scales`
    weights and parameters           `gibbs.draw_params_now`, `scales.draw_without_rows`

To hand a generator and the tuples over from Python takes 15 to 40 microseconds a kernel: on a table of some hundred
rows a third of a sweep went there. The parts are kernels of their own, called by their addresses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.circuit.plan import Plan
from bayesjpt.circuit.scales import Scales
from bayesjpt.circuit.type_prior import ColumnTypes
from bayesjpt.kernels.cells import Cells, Work
from bayesjpt.kernels.gibbs import allocate, count_active, draw_params_now
from bayesjpt.kernels.scales import apply_scales, draw_scales, draw_scales_given_statistics, draw_without_rows
from bayesjpt.kernels.swaps import Swaps, propose_swaps, swap_rows
from bayesjpt.kernels.type_prior import draw_type_prior
from bayesjpt.numerics.borrowed import borrowed, by_address
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.counter_rng import sweep_key
from bayesjpt.numerics.jit import kernel


@by_address
class Given(NamedTuple):
    """What weights and parameters are drawn from, and the buffers of a sweeper.

    Attributes
    ----------
    plan : Plan
    cells : Cells
    work : Work
    swaps : Swaps
    scales : Scales
    types : ColumnTypes
    stats : float64 (n_stats,)
        Sufficient statistics of all leaves.
    edge_count : int64 (n_edge,)
        Rows that took each edge of a sum.
    base, hyper : float64 (n_hyper,)
        Hyperparameters of all leaves at factors of 1, and at the factors at hand.
    hyper_at : int32 (n_leaf + 1,)
    deferred : bool (n_leaf,)
        Leaves whose parameters follow a factor that is drawn given parameters; without rows they are drawn after it.
    """

    plan: Plan
    cells: Cells
    work: Work
    swaps: Swaps
    scales: Scales
    types: ColumnTypes
    stats: np.ndarray
    edge_count: np.ndarray
    base: np.ndarray
    hyper: np.ndarray
    hyper_at: np.ndarray
    deferred: np.ndarray


def deferred_leaves(scales: Scales, n_leaf: int) -> np.ndarray:
    """Return bool (n_leaf,): the leaves of factors that are drawn given parameters."""
    out = np.zeros(n_leaf, np.bool_)
    out[scales.leaf[~np.repeat(scales.from_statistics, np.diff(scales.leaf_ptr))]] = True
    return out


@kernel
def redraw(given, concentration, log_weight, theta, behind, rng):
    """Replace weights and parameters, and what stands behind the parameters, by a draw given the allocations.

    Parameters
    ----------
    given : Given
        As `allocate` left it, its hyperparameters at the factors of `behind`; they are left at those drawn.
    concentration : float64 (n_edge,)
        Before it is divided by weights of types.
    log_weight : float64 (n_edge,), theta : float64 (n_theta,)
        Replaced.
    behind : float64 (n_weight_of_types + n_group,)
        Weights of types and factors of priors; replaced.
    rng : numpy.random.Generator

    Returns
    -------
    node, leaf : int
        Where a conditional, or a prior, was not valid; -1.
    n_active : int
        Edges of sums that some row took, see `bayesjpt.kernels.gibbs.count_active`.
    """
    given, rng = borrowed(given), borrowed(rng)
    concentration, log_weight, theta, behind = borrowed((concentration, log_weight, theta, behind))
    plan, cells, work, scales, types = given.plan, given.cells, given.work, given.scales, given.types
    stats, edge_count = given.stats, given.edge_count
    base, hyper, hyper_at = given.base, given.hyper, given.hyper_at
    n_weight = types.ptr[types.ptr.size - 1]
    divided, tau = concentration, behind[n_weight:]
    if n_weight > 0:
        # a copy: concentrations are divided by the weights of types in place
        divided = concentration.copy()
        draw_type_prior(types, edge_count, behind[:n_weight], divided, rng)
    swap_rows(plan, given.swaps, stats, edge_count, divided, hyper, hyper_at, theta, rng)
    # after swaps, which change the edges that rows take
    n_active = count_active(plan, edge_count)
    # before parameters, which are integrated out of this step; the other factors come after them
    if scales.from_statistics.any():
        leaf = draw_scales_given_statistics(plan, scales, stats, base, hyper_at, tau, rng)
        if leaf >= 0:
            return np.int64(-1), leaf, n_active
        apply_scales(scales, base, hyper_at, tau, hyper)
    node = draw_params_now(
        plan, cells, work, stats, edge_count, divided, hyper, hyper_at, log_weight, theta, given.deferred, rng
    )
    if node >= 0:
        return node, np.int64(-1), n_active
    leaf = np.int64(-1)
    if not scales.from_statistics.all():
        leaf = draw_scales(plan, scales, work, stats, base, hyper_at, theta, tau, rng)
        if leaf < 0:
            apply_scales(scales, base, hyper_at, tau, hyper)
            leaf = draw_without_rows(plan, scales, work, stats, hyper, hyper_at, theta, rng)
    return np.int64(-1), leaf, n_active


@kernel
def run_sweeps(given, concentration, key, first, points, rng, out):
    """Run sweeps one behind the other; return how many were done and where the next one failed: row, node and leaf.

    Parameters
    ----------
    given : Given
        Its statistics and counts are overwritten.
    concentration : float64 (n_edge,)
    key, first : uint64
        Of the chain, and the number of the first sweep.
    points : (float64 (n_sweep + 1, n_edge), float64 (n_sweep + 1, n_theta + n_behind))
        Weights and parameters, with what stands behind them: the first row is where the chain stands, row k is filled
        with where it stands behind k sweeps.
    rng : numpy.random.Generator
    out : (float64 (n_sweep,), int64 (n_sweep,))
        Filled with the log likelihood before each sweep, in the families' units, and the edges that some row took.

    Returns
    -------
    int, int, int, int
        The last three are -1 where all sweeps were done.
    """
    given, rng, points, concentration = borrowed(given), borrowed(rng), borrowed(points), borrowed(concentration)
    plan, cells, work, swaps = given.plan, given.cells, given.work, given.swaps
    log_weight, theta = points
    log_likelihood, n_active = out
    nowhere = np.int64(-1)
    n_theta = theta.shape[1] - given.types.ptr[given.types.ptr.size - 1] - given.scales.shape.size
    tau = theta[0, theta.shape[1] - given.scales.shape.size :]
    apply_scales(given.scales, given.base, given.hyper_at, tau, given.hyper)
    for k in range(n_active.size):
        # drawn in place: slice steps start at the parameters of the sweep before
        copy_into(log_weight[k], log_weight[k + 1])
        copy_into(theta[k], theta[k + 1])
        propose_swaps(swaps, rng)
        log_likelihood[k], impossible = allocate(
            # keyed by the sweep's number: the same allocations in one call or in many
            plan, cells, log_weight[k], theta[k], work, swaps, sweep_key(key, first + np.uint64(k)), False,
            given.stats, given.edge_count,
        )  # fmt: skip
        if impossible >= 0:
            return np.int64(k), impossible, nowhere, nowhere
        sweep_theta = theta[k + 1]
        node, leaf, n_active[k] = redraw(
            given, concentration, log_weight[k + 1], sweep_theta[:n_theta], sweep_theta[n_theta:], rng
        )
        if node >= 0 or leaf >= 0:
            return np.int64(k), nowhere, node, leaf
    return np.int64(n_active.size), nowhere, nowhere, nowhere
