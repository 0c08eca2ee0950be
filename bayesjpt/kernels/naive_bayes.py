"""Hard incremental EM of a naive Bayes over codes: which rows are alike.

Gens and Domingos (2013) divide rows so, section 3: rows come one by one, in random order; each leaves its cluster and
goes to the one under which it is most probable, or to a new one where that, less a penalty, is more probable still.
A cluster is a product of one multinomial a column; its counts, smoothed, are all that is kept.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.numerics.jit import kernel

_TIE = 1e-9
"""Nats by which a cluster has to be better than one before it: rounding decides nothing."""


@kernel
def assign_rows(codes, code_ptr, order, settings, cluster):
    """Move rows between clusters until none moves or all passes are over.

    Parameters
    ----------
    codes : int32 (n_row, n_column)
        Code of each cell; -1 where it is missing, which no cluster is judged by.
    code_ptr : int32 (n_column + 1,)
        Where the codes of each column begin among all codes.
    order : int64 (n_pass, n_row)
        Rows in the order in which each pass takes them.
    settings : tuple of (float, float, int)
        Smoothing (pseudo-rows of each code), penalty of a new cluster (nats), and most clusters.
    cluster : int64 (n_row,)
        Replaced: each row's cluster, -1 before its first turn.

    Returns
    -------
    float
        Log probability of the rows under their clusters, less the penalties; nats.

    Notes
    -----
    Cost: O(n_pass n_row n_column n_cluster).
    """
    smoothing, penalty, most = settings
    n_column = codes.shape[1]
    count = np.zeros((most, code_ptr[-1]))
    seen = np.zeros((most, n_column))
    size = np.zeros(most)
    for visit in range(order.shape[0]):
        moved = 0
        for row in order[visit]:
            old = cluster[row]
            # a row is judged by the others: its own counts would speak for the cluster it is in
            if old >= 0:
                _add(codes[row], code_ptr, -1.0, count[old], seen[old])
                size[old] -= 1.0
            best = _best(codes[row], code_ptr, (smoothing, penalty), count, seen, size)
            moved += best != old
            cluster[row] = best
            size[best] += 1.0
            _add(codes[row], code_ptr, 1.0, count[best], seen[best])
        if moved == 0:
            break
    total = 0.0
    for row in range(codes.shape[0]):
        k = cluster[row]
        total += math.log(size[k] / codes.shape[0])
        total += _log_probability(codes[row], code_ptr, smoothing, count[k], seen[k])
    for k in range(most):
        total -= penalty if size[k] > 0.0 else 0.0
    return total


@kernel
def _best(code, code_ptr, settings, count, seen, size):
    """Return the cluster under which a row is most probable; the first empty one stands for a new one."""
    smoothing, penalty = settings
    best, highest = 0, -np.inf
    opened = False
    for k in range(size.size):
        if size[k] > 0.0:
            value = math.log(size[k])
        elif not opened:
            # a new cluster holds this row alone
            value, opened = -penalty, True
        else:
            continue
        value += _log_probability(code, code_ptr, smoothing, count[k], seen[k])
        if value > highest + _TIE:
            best, highest = k, value
    return best


@kernel
def _log_probability(code, code_ptr, smoothing, count, seen):
    """Return the log probability of a row's codes under the smoothed counts of a cluster."""
    value = 0.0
    for column in range(code.size):
        if code[column] >= 0:
            n_code = code_ptr[column + 1] - code_ptr[column]
            share = count[code_ptr[column] + code[column]] + smoothing
            value += math.log(share / (seen[column] + smoothing * n_code))
    return value


@kernel
def _add(code, code_ptr, sign, count, seen):
    """Add a row to the counts of a cluster, or take it out."""
    for column in range(code.size):
        if code[column] >= 0:
            count[code_ptr[column] + code[column]] += sign
            seen[column] += sign
