"""Sweeps over a table that was counted by slot and value: their cost does not depend on the number of rows.

Of the c rows that bring a value v to a dictionary, member k takes a binomial share: together a multinomial number with
probabilities in proportion to w_k f_k(v). That is the distribution of c single choices, so weights, parameters and
swaps are drawn as ever, from the same statistics: c times those of v.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.plan import Plan
from bayesjpt.circuit.priors import Priors
from bayesjpt.families import dispatch
from bayesjpt.kernels.histograms import Histograms
from bayesjpt.kernels.statistics import forget_values
from bayesjpt.kernels.sweeper import Sweeper
from bayesjpt.kernels.upward import LEAF_KIND, fill_table, prepare_coefficients
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.jit import kernel


class HistogramSweeper(Sweeper):
    """A Sweeper of rows that were counted by slot and value.

    Parameters
    ----------
    circuit, plan, priors : as in `Sweeper`
    histograms : Histograms
    **options
        The other parameters of `Sweeper`, of which the rows of a block mean nothing.
    """

    def __init__(self, circuit, plan: Plan, priors: Priors, histograms: Histograms, **options):
        super().__init__(circuit, plan, priors, histograms.cells, n_block=1, **options)
        self._histograms = histograms

    def _allocate(self, params: Params, key: np.uint64, by_prior: bool) -> float:
        self._allocated = False
        histograms = self._histograms
        # counts are a function of the sweep's key, as allocations of rows are
        counts, rng = histograms.counts, np.random.Generator(np.random.PCG64(int(key)))
        # splits decide alone: edges of hard sums take the same rows in each sweep
        copy_into(counts.taken, self._edge_count)
        taken = counts.taken > 0
        # of edges with rows: 0 times a log weight of -inf would be NaN
        log_likelihood = float((counts.taken[taken] * params.log_weight[taken]).sum())
        found, impossible = allocate_counts(
            self.plan,
            self.cells,
            self._work,
            self._swaps,
            (histograms.bins.bin_at, counts.count, counts.first),
            params.log_weight,
            params.theta,
            by_prior,
            self._stats,
            self._edge_count,
            rng,
        )
        rows = [row for row in (impossible, counts.impossible) if row >= 0]
        return self._tell((log_likelihood + found, min(rows, default=-1)))


@kernel
def allocate_counts(plan, cells, work, swaps, bins, log_weight, theta, by_prior, stats, edge_count, rng):
    """Draw how many of the rows of each bin every member of its dictionary takes, and add up counts and statistics.

    Parameters
    ----------
    plan : Plan
    cells : Cells
        Of the values.
    work : Work
    swaps : Swaps
        Its statistics are overwritten.
    bins : (int64 (n_slot + 1,), int64 (n_bin,), int64 (n_bin,))
        Where the bins of each slot begin, the rows of each, and the first of them.
    log_weight : float64 (n_edge,), nats
    theta : float64 (n_theta,)
    by_prior : bool
        By the weights alone.
    stats : float64 (n_stats,)
        Overwritten.
    edge_count : int64 (n_edge,)
        Added to: edges of dictionaries.
    rng : numpy.random.Generator

    Returns
    -------
    log_likelihood : float
        Without the weights of hard sums; in the families' units.
    impossible : int64
        The first row with zero density, -1 where there is none.
    """
    plan, cells, work, swaps = borrowed(plan), borrowed(cells), borrowed(work), borrowed(swaps)
    bin_at, counts, first_row = bins
    prepare_coefficients(plan, cells, theta, work)
    stats[:] = 0.0
    swaps.stats[:] = 0.0
    work.chunk_stats[:] = 0.0
    forget_values(work)
    log_likelihood, impossible = 0.0, np.int64(-1)
    one = np.zeros(1, np.int32)
    for slot in range(plan.slot_node.size):
        node = plan.slot_node[slot]
        first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
        n_value = bin_at[slot + 1] - bin_at[slot]
        fill_table(plan, cells, log_weight, work, slot)
        # tables of all slots lie in one place, and this slot's was filled last
        term = work.table_term[: (last - first) * (n_value + 1)]
        for code in range(n_value):
            n = counts[bin_at[slot] + code]
            if n == 0:
                continue
            value = work.table[code]
            if value > -np.inf:
                log_likelihood += n * value
            elif not by_prior:
                row = first_row[bin_at[slot] + code]
                impossible = row if impossible < 0 else min(row, impossible)
                continue
            one[0] = code
            if plan.kind[node] == LEAF_KIND:
                _give(plan, cells, work, swaps, plan.leaf_of[node], one, n, stats)
                continue
            # a multinomial number as a chain of binomials, each of what is left of the rows and of the total
            total = 0.0
            for e in range(first, last):
                total += np.exp(log_weight[e]) if by_prior else term[(e - first) * (n_value + 1) + code]
            for e in range(first, last):
                weight = np.exp(log_weight[e]) if by_prior else term[(e - first) * (n_value + 1) + code]
                n_taken = n
                if e < last - 1:
                    # what rounding leaves of the total may be less than the term itself
                    n_taken = np.int64(rng.binomial(n, weight / total)) if weight < total else n
                    total -= weight
                if n_taken > 0:
                    edge_count[e] += n_taken
                    _give(plan, cells, work, swaps, plan.leaf_of[plan.child[e]], one, n_taken, stats)
                    n -= n_taken
                if n == 0:
                    break
    return log_likelihood, impossible


@kernel
def _give(plan, cells, work, swaps, leaf, one, n, stats):
    """Add n rows of one value to what is known of a leaf, and to what `swaps` holds of the leaf it may swap with."""
    work.n_reached[leaf] += n
    _add_times(plan, cells, work, leaf, one, n, stats)
    if swaps.other[leaf] >= 0:
        _add_times(plan, cells, work, np.int64(swaps.other[leaf]), one, n, swaps.stats)
    if work.tally_at[leaf] >= 0:
        work.tally[work.tally_at[leaf] + one[0]] += n


@kernel
def _add_times(plan, cells, work, leaf, one, n, stats):
    """Add the statistics of a value under a leaf's family, n times; they are sums over rows."""
    value, aux = plan.leaf_value[leaf], plan.leaf_aux[leaf]
    value_at, aux_at = cells.feature_at[value], cells.feature_at[aux]
    z = cells.feature[value_at : value_at + cells.feature_len[value]]
    prepared = cells.feature[aux_at : aux_at + cells.feature_len[aux]]
    const = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
    value_stats = work.chunk_stats[plan.stat_at[leaf] : plan.stat_at[leaf + 1]]
    dispatch.accumulate(plan.leaf_family[leaf], z, prepared, one, const, value_stats)
    at = plan.stat_at[leaf]
    for k in range(value_stats.size):
        stats[at + k] += n * value_stats[k]
        value_stats[k] = 0.0
