"""One Gibbs sweep of a tree of gated experts over series: gates and their memory, experts, then paths of whole series.

The leaf before enters a gate as one more covariate, of which a row has a single one that is not 0: an offset, or minus
an offset. So a gate's coefficients and offsets are one normal vector given Polya-Gamma draws; its precision matrix is

      | x x'     .        |      filled by every row that passes the gate
      | s x'     diagonal |      one column, that of the row's slot; no two slots meet in a row

The slice steps of `bayesjpt.kernels.expert_gates` follow: along the ray of coefficients and offsets, and the intercept.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.kernels.expert_gates import add_row, draw_factor, move_intercept
from bayesjpt.kernels.expert_series import fill_base_odds, fill_drawn_paths, fill_filtered, fill_memory_odds
from bayesjpt.kernels.expert_sweep import draw_experts, fill_order, record
from bayesjpt.kernels.expert_tree import add_log_likelihoods, as_columns, dot
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.counter_rng import sweep_key
from bayesjpt.numerics.draw import draw_gamma
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.normal_draw import draw_normal
from bayesjpt.numerics.polya_gamma import draw_polya_gamma


@kernel
def fill_before(first, leaf, before):
    """Fill before, int64 (n_row,), with the leaf of the row before; -1 at the beginning of a series."""
    for series in range(first.size - 1):
        for row in range(first[series], first[series + 1]):
            before[row] = leaf[row - 1] if row > first[series] else -1


@kernel
def _log_odds(task, state, memory, node, row, before, slot, sign):
    log_odds = dot(task.gate_x[row], state.gate[node])
    return log_odds + sign[before] * memory.offset[node, slot[before]] if before >= 0 else log_odds


@kernel
def _add_step(x, before, slot, sign, weight, kappa, a, b):
    """Add one row to a precision matrix and its linear term; see the drawing above."""
    n_x = x.size
    add_row(x, weight, kappa, a, b)
    if before >= 0:
        at, by = n_x + slot[before], sign[before]
        for j in range(n_x):
            a[at, j] += by * weight * x[j]
        b[at] += by * kappa
        a[at, at] += by * by * weight


@kernel
def _update_gates(task, steps, state, memory, leaf, before, order, place, rng):
    """Draw each gate's coefficients and offsets together given the rows' paths; `place` as in `fill_order`."""
    n_x, n_slot, n_leaf = task.gate_x.shape[1], memory.offset.shape[1], place.size - 1
    n = n_x + n_slot
    a, b, drawn = np.empty((n, n)), np.empty(n), np.empty(n)
    eta, way = np.empty((leaf.size, 1)), np.empty(leaf.size, np.int64)
    width, node, level = n_leaf, 0, 0
    while width > 1:
        slot, sign = steps.slot[level], steps.sign[level]
        for start in range(0, n_leaf, width):
            rows = order[place[start] : place[start + width]]
            a[:] = 0.0
            b[:] = 0.0
            for i in range(n):
                a[i, i] = state.gate_precision[0] if i < n_x else memory.precision[0]
            for i in range(rows.size):
                row = rows[i]
                way[i] = 1 if leaf[row] >= start + width // 2 else 0
                log_odds = _log_odds(task, state, memory, node, row, before[row], slot, sign)
                weight, kappa = draw_polya_gamma(log_odds, rng), way[i] - 0.5
                _add_step(task.gate_x[row], before[row], slot, sign, weight, kappa, a, b)
            draw_normal(a, b, drawn, rng)
            for j in range(n_x):
                state.gate[node, j] = drawn[j]
            for j in range(n_slot):
                memory.offset[node, j] = drawn[n_x + j]
            for i in range(rows.size):
                eta[i, 0] = _log_odds(task, state, memory, node, rows[i], before[rows[i]], slot, sign)
            penalty = 0.5 * state.gate_precision[0] * dot(state.gate[node], state.gate[node])
            penalty += 0.5 * memory.precision[0] * dot(memory.offset[node], memory.offset[node])
            factor = draw_factor(eta, way, rows.size, penalty, n, rng)
            for j in range(n_x):
                state.gate[node, j] *= factor
            for j in range(n_slot):
                memory.offset[node, j] *= factor
            move_intercept(eta, way, rows.size, state.gate[node : node + 1], 0, state.gate_precision[0], rng)
            node += 1
        width //= 2
        level += 1


@kernel
def _drawn_precision(coefficients, prior, rng):
    squares = 0.0
    for g in range(coefficients.shape[0]):
        squares += dot(coefficients[g], coefficients[g])
    return draw_gamma(prior.gate_shape + 0.5 * coefficients.size, prior.gate_rate + 0.5 * squares, rng)


@kernel
def _fill_seen_order(leaf, seen, order, place):
    """Do as `fill_order` does, leaving rows out whose responses are missing."""
    place[:] = 0
    for row in range(leaf.size):
        if seen[row]:
            place[leaf[row] + 1] += 1
    for k in range(1, place.size):
        place[k] += place[k - 1]
    at = place.copy()
    for row in range(leaf.size):
        if seen[row]:
            order[at[leaf[row]]] = row
            at[leaf[row]] += 1


@kernel
def draw_given_series_paths(task, steps, state, memory, prior, leaf, rng):
    """Replace state and memory by a draw given the rows' paths, one part after the other; see `series_sweep`."""
    task, steps, state = borrowed(task), borrowed(steps), borrowed(state)
    memory, prior = borrowed(memory), borrowed(prior)
    n_leaf = state.dispersion.shape[0]
    order, place, before = np.empty(leaf.size, np.int64), np.empty(n_leaf + 1, np.int64), np.empty(leaf.size, np.int64)
    fill_before(steps.first, leaf, before)
    fill_order(leaf, order, place)
    _update_gates(task, steps, state, memory, leaf, before, order, place, rng)
    _fill_seen_order(leaf, steps.seen, order, place)
    draw_experts(task, state, order, place, prior, rng)
    # an intercept alone has a normal prior here too: with offsets beside it, no beta distribution is conjugate
    state.gate_precision[0] = _drawn_precision(state.gate, prior, rng)
    memory.precision[0] = _drawn_precision(memory.offset, prior, rng)


@kernel
def fill_evidence(task, seen, state, out):
    """Fill out, float64 (n_row, n_leaf), with log likelihoods of responses at each leaf; 0 where they are missing."""
    columns = as_columns(state)
    eta = np.empty(columns.leaf.shape[1])
    for row in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[row, k] = 0.0
        if seen[row]:
            add_log_likelihoods(task, row, state.dispersion, columns, eta, out[row])


@kernel
def fill_series_paths(task, steps, state, memory, key, leaf):
    """Draw the leaves of all rows given coefficients, series by series, and return the log density of all responses."""
    task, steps, state, memory = borrowed(task), borrowed(steps), borrowed(state), borrowed(memory)
    n_row, n_leaf = leaf.size, state.dispersion.shape[0]
    base, memory_odds = np.empty((n_row, n_leaf - 1)), np.empty((n_leaf - 1, n_leaf))
    evidence, predicted, filtered = np.empty((n_row, n_leaf)), np.empty((n_row, n_leaf)), np.empty((n_row, n_leaf))
    log_density = np.empty(n_row)
    fill_base_odds(task.gate_x, state.gate, base)
    fill_memory_odds(steps.slot, steps.sign, memory.offset, memory_odds)
    fill_evidence(task, steps.seen, state, evidence)
    fill_filtered(steps.first, base, memory_odds, evidence, predicted, filtered, log_density)
    fill_drawn_paths(steps.first, base, memory_odds, filtered, key, leaf)
    return log_density.sum()


@kernel
def series_sweep(task, steps, state, memory, prior, leaf, rng, key):
    """Replace state, memory and paths by a draw that leaves their posterior as it is; return a log density.

    Parameters
    ----------
    task : Task
        Rows in the order of `steps`; responses that are missing hold any numbers.
    steps : Steps
    state : Coefficients
        Overwritten.
    memory : Memory
        Overwritten.
    prior : Prior
        The precision of offsets has the prior of that of gates' coefficients.
    leaf : int64 (n_row,)
        Overwritten.
    rng : numpy.random.Generator
    key : int
        Of this sweep's uniform numbers for paths.

    Returns
    -------
    float
        Log density of all responses given the new state, paths summed out, nats.

    Notes
    -----
    Cost: rows times (leaves squared + leaves times predictors times covariates + depth times covariates squared).
    """
    draw_given_series_paths(task, steps, state, memory, prior, leaf, rng)
    return fill_series_paths(task, steps, state, memory, key, leaf)


@kernel
def run_series_chain(task, steps, state, memory, prior, leaf, rng, key, n_skip, kept, kept_memory):
    """Sweep, and record states after the first `n_skip`; `kept` and `kept_memory` hold a draw a row."""
    for k in range(n_skip + kept.gate.shape[0]):
        series_sweep(task, steps, state, memory, prior, leaf, rng, sweep_key(key, k))
        if k >= n_skip:
            record(state, k - n_skip, kept)
            kept_memory.offset[k - n_skip] = memory.offset
            kept_memory.precision[k - n_skip] = memory.precision
