"""Which of some nodes each row comes to, given its cells: slots of a column, or sub-populations."""

from __future__ import annotations

from bayesjpt.kernels.path_probability import path_buffers, path_shares
from bayesjpt.kernels.routes import block_size
from bayesjpt.kernels.upward import fill_tables, prepare_coefficients, upward
from bayesjpt.kernels.work import make_work
from bayesjpt.numerics.borrowed import borrowed, keep
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.jit import kernel


@kernel
def fill_slot_shares(plan, cells, targets, params, n_block, out):
    """Fill out, float64 (n_draw, n_slot, n_row), with the probability of each node in place of a slot given each row.

    Parameters
    ----------
    plan, cells, targets : Plan, Cells, Targets
        `targets` reaches slots of one column, which is missing in `cells` where a row's own value shall not tell its
        slot; or nodes above all slots, each of which lies on its own way from the root. All 0 for impossible rows.
    params : tuple of float64 (n_draw, n_edge) and (n_draw, n_theta)
    n_block : int
        Rows that are evaluated together.
    """
    log_weights, thetas = params
    made = make_work(plan, cells, n_block)
    plan, cells, targets, work = borrowed(plan), borrowed(cells), borrowed(targets), borrowed(made)
    on_the_way = path_buffers(targets, n_block)
    for draw in range(out.shape[0]):
        prepare_coefficients(plan, cells, thetas[draw], work)
        fill_tables(plan, cells, log_weights[draw], work)
        lo = 0
        while lo < out.shape[2]:
            n = block_size(cells.segment_ptr, lo, n_block, out.shape[2])
            upward(plan, cells, log_weights[draw], work, lo, n)
            path_share = path_shares(plan, targets, log_weights[draw], work, on_the_way, n)
            for k in range(targets.slot.size):
                copy_into(path_share[targets.slot[k], :n], out[draw, k, lo:])
            lo += n
    keep(made)
