"""One sweep of blocked Gibbs sampling: allocations given parameters, then weights and parameters given allocations.

leaf log densities -> upward -> downward -> statistics          `allocate`, deterministic given a key
rows exchanged between leaves of a dictionary                   `swaps.swap_rows`, from the chain's generator
weights and parameters from their conditionals                   `draw_params`, likewise
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families import dispatch
from bayesjpt.families.record import OK
from bayesjpt.kernels import rows
from bayesjpt.kernels.downward import downward
from bayesjpt.kernels.routes import block_size
from bayesjpt.kernels.scales import has_rows
from bayesjpt.kernels.statistics import accumulate_block, forget_values, list_values, sort_kept
from bayesjpt.kernels.truncated import AS_WHOLE_UPDATE, draw_from_values_on_cell, draw_on_cell
from bayesjpt.kernels.upward import LEAF_KIND, PRODUCT_KIND, fill_tables, prepare_coefficients, upward_by, upward_flat
from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.draw import draw_log_dirichlet
from bayesjpt.numerics.jit import kernel

CHUNK = 4096
"""Rows whose statistics are summed before they join the total; fixed, since it decides the rounding."""

LOG_SMALLEST_WEIGHT = -690.0
"""Weights are kept above 1e-300, so that their logarithm stays finite in every representation."""


@apart
@kernel
def allocate(plan, cells, log_weight, theta, work, swaps, key, by_prior, stats, edge_count):
    """Draw every row's path and add up counts and statistics.

    Parameters
    ----------
    plan : Plan
    cells : Cells
    log_weight : float64 (n_edge,), nats
    theta : float64 (n_theta,)
    work : Work
    swaps : Swaps
        Its statistics are overwritten; which leaf swaps with which stands.
    key : uint64
        Of this sweep; allocations are a function of (key, row, node).
    by_prior : bool
        Draw allocations by the weights alone, ignoring the data: a start at random.
    stats : float64 (n_stats,)
        Overwritten with the sufficient statistics of all leaves.
    edge_count : int64 (n_edge,)
        Overwritten with the number of rows that took each edge of a sum.

    Returns
    -------
    log_likelihood : float
        Sum over rows of the log density in the families' units, at the parameters given; of no use where `by_prior`.
    impossible : int
        The first row with zero density, -1 where there is none; by its number in the table.
    """
    log_weight, theta, stats, edge_count = borrowed((log_weight, theta, stats, edge_count))
    prepare(plan, cells, log_weight, theta, work)
    return count(plan, cells, log_weight, work, swaps, key, by_prior, stats, edge_count)


@kernel
def prepare(plan, cells, log_weight, theta, work):
    """Fill what all rows have in common: coefficients of leaves, and tables of coded columns."""
    plan, cells, work = borrowed(plan), borrowed(cells), borrowed(work)
    prepare_coefficients(plan, cells, theta, work)
    fill_tables(plan, cells, log_weight, work)


@kernel
def count(plan, cells, log_weight, work, swaps, key, by_prior, stats, edge_count):
    """Do what `allocate` does with rows for which `prepare` was done: those at hand, or others that are coded alike."""
    plan, cells, work, swaps = borrowed(plan), borrowed(cells), borrowed(work), borrowed(swaps)
    n_row = cells.n_row[0]
    n_block = work.u.size
    stats[:] = 0.0
    swaps.stats[:] = 0.0
    edge_count[:] = 0
    forget_values(work)
    if cells.live.size > 0:
        work.segment[0] = -1  # rows of another unit, whose first segment needs other nodes, may have laid it out
    log_likelihood = 0.0
    impossible = np.int64(-1)
    for chunk in range(0, n_row, CHUNK):
        chunk_end = min(chunk + CHUNK, n_row)
        work.chunk_stats[:] = 0.0
        swaps.chunk_stats[:] = 0.0
        chunk_total = 0.0
        lo = chunk
        while lo < chunk_end:
            # blocks end where chunks do: a block's statistics join one chunk only
            n = block_size(cells.segment_ptr, lo, n_block, chunk_end)
            if by_prior:
                nodes = upward_flat(plan, cells, log_weight, work, lo, n)
            else:
                nodes = upward_by(plan, cells, log_weight, log_weight[:0], work, lo, n, False)
            root = work.node_at[plan.kind.size - 1]
            for i in range(n):
                s = work.s[root, i]
                # a row of density 0 has s = 0
                value = work.m[root, i] + math.log(s) if s > 0.0 else -np.inf
                # -inf would hide how far the other rows are; the caller names the row in its error
                if value > -np.inf:
                    chunk_total += value
                else:
                    row = cells.row[lo + i] if cells.row.size > 0 else np.int64(lo + i)
                    impossible = row if impossible < 0 else min(row, impossible)
            # at once, while the block's values are in the cache
            downward(plan, cells, log_weight, key, work, nodes, lo, n, edge_count)
            accumulate_block(plan, cells, work, swaps, nodes, lo)
            lo += n
        # chunk by chunk, so that the rounding of sums does not depend on the size of blocks
        rows.add(work.chunk_stats, stats)
        rows.add(swaps.chunk_stats, swaps.stats)
        log_likelihood += chunk_total
    return log_likelihood, impossible


@kernel
def draw_params(plan, cells, work, stats, edge_count, concentration, hyper, hyper_at, log_weight, theta, rng):
    """Draw weights and parameters from their full conditionals, in place.

    Parameters
    ----------
    plan : Plan
    cells : Cells
    work, stats, edge_count : as `allocate` left them
    concentration : float64 (n_edge,)
        Dirichlet concentration of each edge of a sum.
    hyper : float64 (n_hyper,), hyper_at : int32 (n_leaf + 1,)
        Hyperparameters of all leaves.
    log_weight : float64 (n_edge,), theta : float64 (n_theta,)
        Replaced; theta is also where slice steps start.
    rng : numpy.random.Generator

    Returns
    -------
    int
        -1, or the node at which a conditional was invalid.
    """
    plan, cells, work, rng = borrowed(plan), borrowed(cells), borrowed(work), borrowed(rng)
    log_weight, theta, hyper, stats = borrowed((log_weight, theta, hyper, stats))
    # nothing is deferred
    at_once = np.zeros(plan.leaf_family.size, np.bool_)
    return draw_params_now(
        plan, cells, work, stats, edge_count, concentration, hyper, hyper_at, log_weight, theta, at_once, rng
    )


@apart
@kernel
def draw_params_now(
    plan, cells, work, stats, edge_count, concentration, hyper, hyper_at, log_weight, theta, deferred, rng
):
    """Do what `draw_params` does, but for the parameters of leaves without rows in `deferred`, bool (n_leaf,)."""
    plan, cells, work = borrowed(plan), borrowed(cells), borrowed(work)
    # `list_values` reads the kept values leaf by leaf
    sort_kept(plan, work)
    for node in range(plan.kind.size):
        kind = plan.kind[node]
        first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
        if kind == LEAF_KIND:
            leaf = plan.leaf_of[node]
            if deferred[leaf] and not has_rows(plan, work, stats, leaf):
                continue
            const = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
            prior = hyper[hyper_at[leaf] : hyper_at[leaf + 1]]
            parameters = theta[plan.theta_at[leaf] : plan.theta_at[leaf] + plan.theta_len[leaf]]
            family = plan.leaf_family[leaf]
            leaf_stats = stats[plan.stat_at[leaf] : plan.stat_at[leaf + 1]]
            on_cell = plan.leaf_update[leaf] != AS_WHOLE_UPDATE
            cell = (plan.leaf_lo[leaf], plan.leaf_hi[leaf], float(work.n_reached[leaf]))
            if plan.leaf_by_value[leaf]:
                n = list_values(plan, cells, work, leaf)
                z, count = work.listed[0, :n], work.listed[1, :n]
                if on_cell:
                    status = draw_from_values_on_cell(family, z, count, prior, const, parameters, cell, rng)
                else:
                    status = dispatch.draw_from_values(family, z, count, prior, const, parameters, rng)
            elif on_cell:
                space = plan.theta_space[plan.theta_at[leaf] : plan.theta_at[leaf] + plan.theta_len[leaf]]
                status = draw_on_cell(
                    family, plan.leaf_update[leaf], space, leaf_stats, prior, const, parameters, cell, rng
                )
            else:
                status = dispatch.draw_posterior(family, leaf_stats, prior, const, parameters, rng)
            if status != OK:
                return np.int64(node)
        elif kind != PRODUCT_KIND:
            # the array holds concentrations for a moment, so that the draw needs no buffer
            for e in range(first, last):
                log_weight[e] = concentration[e] + edge_count[e]
            if not draw_log_dirichlet(log_weight[first:last], log_weight[first:last], rng):
                return np.int64(node)
            for e in range(first, last):
                # a weight that rounds to 0 could never take a row again
                log_weight[e] = max(log_weight[e], LOG_SMALLEST_WEIGHT)
    return np.int64(-1)


@kernel
def count_active(plan, edge_count):
    """Return how many edges of sums some row took."""
    active = 0
    for node in range(plan.kind.size):
        if plan.kind[node] != PRODUCT_KIND:
            for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
                active += edge_count[e] > 0
    return np.int64(active)
