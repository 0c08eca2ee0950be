"""Probabilities of labels given rows, under many draws: what each slot says of its labels, by path probability."""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.kernels.leaf import leaf_log_mass
from bayesjpt.kernels.path_probability import path_buffers, path_shares
from bayesjpt.kernels.routes import block_size
from bayesjpt.kernels.upward import fill_tables, prepare_coefficients, root_log_value, upward
from bayesjpt.kernels.work import make_work
from bayesjpt.numerics.borrowed import borrowed, keep
from bayesjpt.numerics.jit import kernel


@kernel
def fill_label_probability(plan, cells, targets, leaves, params, n_block, label_ptr, log_evidence, out):
    """Fill the probability of each label of some columns given each row.

    Parameters
    ----------
    plan, cells, targets : Plan, Cells, Targets
    leaves : int32 (n_component,)
        The leaf of each of the components that `targets` names.
    params : tuple of float64 (n_draw, n_edge) and (n_draw, n_theta)
    n_block : int
        Rows that are evaluated together.
    label_ptr : int64 (n_target + 1,)
        Where the labels of each column lie in `out`.
    log_evidence : float64 (n_draw, n_row)
        Filled with the log density of each row's observed cells, in the families' units.
    out : float64 (n_draw, n_all_labels, n_row)
        All 0 where a row has no density.
    """
    log_weights, thetas = params
    made = make_work(plan, cells, n_block)
    plan, cells, targets, work = borrowed(plan), borrowed(cells), borrowed(targets), borrowed(made)
    on_the_way = path_buffers(targets, n_block)
    longest = 1
    for t in range(label_ptr.size - 1):
        longest = max(longest, label_ptr[t + 1] - label_ptr[t])
    says = np.empty(longest)
    for draw in range(out.shape[0]):
        log_weight, theta = log_weights[draw], thetas[draw]
        prepare_coefficients(plan, cells, theta, work)
        fill_tables(plan, cells, log_weight, work)
        lo = 0
        while lo < out.shape[2]:
            n = block_size(cells.segment_ptr, lo, n_block, out.shape[2])
            upward(plan, cells, log_weight, work, lo, n)
            root_log_value(plan, work, n, log_evidence[draw, lo : lo + n])
            path_share = path_shares(plan, targets, log_weight, work, on_the_way, n)
            out[draw, :, lo : lo + n] = 0.0
            for t in range(label_ptr.size - 1):
                n_label = label_ptr[t + 1] - label_ptr[t]
                for slot in range(targets.slot_ptr[t], targets.slot_ptr[t + 1]):
                    says[:] = 0.0
                    for part in range(targets.part_ptr[slot], targets.part_ptr[slot + 1]):
                        edge = targets.part_edge[part]
                        # a slot that is a leaf itself has no edge: all of it is that leaf
                        weight = math.exp(log_weight[edge]) if edge >= 0 else 1.0
                        for label in range(n_label):
                            leaf = leaves[targets.part[part]]
                            says[label] += weight * math.exp(leaf_log_mass(plan, theta, leaf, label, label))
                    for label in range(n_label):
                        row = out[draw, label_ptr[t] + label]
                        for i in range(n):
                            row[lo + i] += path_share[targets.slot[slot], i] * says[label]
            lo += n
    keep(made)
