"""Passes over series some of whose rows lack covariates: each of these has several versions of what they may be.

With M versions x_m of a row, drawn without a look at its responses y, a step of the chain is the mean over versions of
transition and density together,

      K(k, l) = 1/M sum_m P(l | k, x_m) p(y | l, x_m),

so that responses tell which versions, and hence which leaves, are probable. Rows that lack nothing are as in
`bayesjpt.kernels.expert_series`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesjpt.kernels.expert_series import (
    begin_leaves,
    carry_up,
    chosen_by_weight,
    next_leaves,
    path_probability,
    weigh,
)
from bayesjpt.numerics.counter_rng import uniform
from bayesjpt.numerics.jit import kernel


class GapSteps(NamedTuple):
    """What passes of one draw need of rows in the order of their series.

    Attributes
    ----------
    first : int64 (n_series + 1,)
    memory_odds : float64 (n_gate, n_leaf)
    base : float64 (n_row, n_gate)
    evidence : float64 (n_row, n_leaf), nats
        Both as in `fill_filtered`; of rows with versions not looked at.
    at : int64 (n_row,)
        Where a row's versions are, -1 of rows that lack nothing.
    version_base : float64 (n_version, n_gap, n_gate)
    version_evidence : float64 (n_version, n_gap, n_leaf), nats
    """

    first: np.ndarray
    memory_odds: np.ndarray
    base: np.ndarray
    evidence: np.ndarray
    at: np.ndarray
    version_base: np.ndarray
    version_evidence: np.ndarray


@kernel
def _flow(n_leaf):
    depth = 0
    while 1 << depth < n_leaf:
        depth += 1
    return np.empty((2, depth + 1, n_leaf))


@kernel
def _weigh_versions(terms, evidence, predicted, filtered):
    """Fill probabilities of leaves without and with a row's responses, and return the log density of these.

    Parameters
    ----------
    terms : float64 (n_version, n_leaf)
        Probabilities of leaves under each version; overwritten.
    evidence : float64 (n_version, n_leaf), nats
    """
    n_version, n_leaf = terms.shape
    top = -np.inf
    predicted[:] = 0.0
    filtered[:] = 0.0
    for version in range(n_version):
        for leaf in range(n_leaf):
            predicted[leaf] += terms[version, leaf] / n_version
            terms[version, leaf] = math.log(terms[version, leaf]) + evidence[version, leaf]
            top = max(top, terms[version, leaf])
    # what is impossible at every leaf says nothing of the leaf
    if top == -np.inf:
        for leaf in range(n_leaf):
            filtered[leaf] = predicted[leaf]
        return -np.inf
    total = 0.0
    for version in range(n_version):
        for leaf in range(n_leaf):
            filtered[leaf] += math.exp(terms[version, leaf] - top)
    for leaf in range(n_leaf):
        total += filtered[leaf]
    for leaf in range(n_leaf):
        filtered[leaf] /= total
    return top + math.log(total / n_version)


@kernel
def fill_filtered_gaps(steps, predicted, filtered, log_density):
    """Fill what is known of each row's leaf before and after its own responses; see `fill_filtered`.

    Notes
    -----
    Cost: rows times leaves squared, of rows with versions times these.
    """
    n_leaf = steps.memory_odds.shape[1]
    flow, terms = _flow(n_leaf), np.empty((steps.version_base.shape[0], n_leaf))
    for series in range(steps.first.size - 1):
        for row in range(steps.first[series], steps.first[series + 1]):
            gap, begins = steps.at[row], row == steps.first[series]
            if gap < 0:
                if begins:
                    begin_leaves(steps.base[row], predicted[row])
                else:
                    next_leaves(steps.base[row], steps.memory_odds, filtered[row - 1], flow, predicted[row])
                log_density[row] = weigh(predicted[row], steps.evidence[row], filtered[row])
                continue
            for version in range(terms.shape[0]):
                if begins:
                    begin_leaves(steps.version_base[version, gap], terms[version])
                else:
                    next_leaves(
                        steps.version_base[version, gap], steps.memory_odds, filtered[row - 1], flow, terms[version]
                    )
            log_density[row] = _weigh_versions(terms, steps.version_evidence[:, gap], predicted[row], filtered[row])


@kernel
def fill_smoothed_gaps(steps, predicted, filtered, log_density, out):
    """Fill out, float64 (n_row, n_leaf), with probabilities of leaves given all responses of the series.

    Parameters are those of `fill_filtered_gaps`, which has filled the others.

    Notes
    -----
    P(k at t | all) = P(k at t | up to t) sum_l K(k, l) / p(y at t + 1) P(l at t + 1 | all) / P(l at t + 1 | up to it).
    """
    n_leaf, n_version = steps.memory_odds.shape[1], steps.version_base.shape[0]
    up, ahead = np.empty((2 * n_leaf - 1, n_leaf)), np.empty(n_leaf)
    for series in range(steps.first.size - 1):
        last = steps.first[series + 1] - 1
        for leaf in range(n_leaf):
            out[last, leaf] = filtered[last, leaf]
        for row in range(last - 1, steps.first[series] - 1, -1):
            gap, after = steps.at[row + 1], row + 1
            ahead[:] = 0.0
            for version in range(n_version if gap >= 0 else 1):
                for leaf in range(n_leaf):
                    ratio = 0.0
                    if gap < 0 or log_density[after] == -np.inf:
                        ratio = out[after, leaf] / predicted[after, leaf]
                    elif filtered[after, leaf] > 0.0:
                        # in logarithms: one factor may be as large as the other is small
                        excess = steps.version_evidence[version, gap, leaf] - log_density[after]
                        ratio = out[after, leaf] * math.exp(excess - math.log(filtered[after, leaf]))
                    up[n_leaf - 1 + leaf] = ratio
                own = steps.base[after] if gap < 0 else steps.version_base[version, gap]
                carry_up(own, steps.memory_odds, up)
                for k in range(n_leaf):
                    ahead[k] += up[0, k]
            total = 0.0
            for k in range(n_leaf):
                out[row, k] = filtered[row, k] * ahead[k]
                total += out[row, k]
            for k in range(n_leaf):
                out[row, k] /= total


@kernel
def _begin_probability(base, leaf, out):
    begin_leaves(base, out)
    return out[leaf]


@kernel
def _fill_likelihoods(evidence, leaf, out):
    """Fill out, float64 (n_version,), with densities of a row's responses at a leaf, the largest 1; 1 if all are 0."""
    top = -np.inf
    for version in range(out.size):
        top = max(top, evidence[version, leaf])
    for version in range(out.size):
        out[version] = math.exp(evidence[version, leaf] - top) if top > -np.inf else 1.0


@kernel
def fill_drawn_gaps(steps, filtered, key, leaf, version):
    """Fill leaf and version, int64 (n_row,), with a draw given all responses of each series, from the end back.

    Parameters are those of `fill_filtered_gaps`, which has filled `filtered`. A row's uniform numbers are functions of
    key, series and step alone; the version of rows that lack nothing is 0.
    """
    n_leaf, n_version = steps.memory_odds.shape[1], steps.version_base.shape[0]
    n_series = steps.first.size - 1
    weight, density, begin = np.empty(n_leaf), np.empty(n_version), np.empty(n_leaf)
    for series in range(n_series):
        start, last = steps.first[series], steps.first[series + 1] - 1
        for row in range(last, start - 1, -1):
            for k in range(n_leaf):
                weight[k] = filtered[row, k]
            gap = steps.at[row + 1] if row < last else -1
            if gap >= 0:
                _fill_likelihoods(steps.version_evidence[:, gap], leaf[row + 1], density)
            for k in range(n_leaf):
                if row == last:
                    break
                if gap < 0:
                    weight[k] *= path_probability(steps.base[row + 1], steps.memory_odds, k, leaf[row + 1])
                    continue
                total = 0.0
                for m in range(n_version):
                    own = steps.version_base[m, gap]
                    total += density[m] * path_probability(own, steps.memory_odds, k, leaf[row + 1])
                weight[k] *= total
            leaf[row] = chosen_by_weight(weight, uniform(key, series, row - start))
        for row in range(start, last + 1):
            gap, version[row] = steps.at[row], 0
            if gap < 0:
                continue
            _fill_likelihoods(steps.version_evidence[:, gap], leaf[row], density)
            for m in range(n_version):
                own = steps.version_base[m, gap]
                if row == start:
                    density[m] *= _begin_probability(own, leaf[row], begin)
                else:
                    density[m] *= path_probability(own, steps.memory_odds, leaf[row - 1], leaf[row])
            # numbers of series that there are not: none is used twice
            version[row] = chosen_by_weight(density, uniform(key, n_series + series, row - start))


@kernel
def fill_ahead(base, memory_odds, before, out):
    """Fill out, float64 (n_row, n_leaf), with probabilities of leaves given those of the row before.

    Parameters
    ----------
    base : float64 (n_row, n_gate)
    memory_odds : float64 (n_gate, n_leaf)
    before : float64 (n_row, n_leaf)
        0 where a series begins.
    """
    flow = _flow(out.shape[1])
    for row in range(out.shape[0]):
        if before[row].sum() > 0.0:
            next_leaves(base[row], memory_odds, before[row], flow, out[row])
        else:
            begin_leaves(base[row], out[row])


@kernel
def fill_transitions(base, memory_odds, out):
    """Fill out, float64 (n_row, 1 + n_leaf, n_leaf), with probabilities of leaves given none and each leaf before.

    Means over versions of base, float64 (n_version, n_row, n_gate).
    """
    n_version, n_leaf = base.shape[0], memory_odds.shape[1]
    begin = np.empty(n_leaf)
    out[:] = 0.0
    for version in range(n_version):
        for row in range(out.shape[0]):
            begin_leaves(base[version, row], begin)
            for leaf in range(n_leaf):
                out[row, 0, leaf] += begin[leaf] / n_version
                for k in range(n_leaf):
                    out[row, 1 + k, leaf] += path_probability(base[version, row], memory_odds, k, leaf) / n_version
