"""Gradient of rows' log densities with respect to log weights and parameters: upward, then flows from root to leaves.

The flow of a node is the derivative of the row's log density with respect to the log of the node's value:

      root        the row's cotangent
      product     each child's flow += flow                    (a logarithm of a product is a sum)
      sum         each child's flow += flow * term / value     (term = weight * child's value, from the upward pass)
      leaf        adds flow * d log density / d theta          (`accumulate_gradient` of its family),
                  less flow * d log mass of its cell / d theta, where it has one

The same share, flow * term / value, is the derivative with respect to the edge's log weight; nothing is divided by a
weight, so weights may be as small as they like. Where a cell is missing, or a scope wholly, the value is 1 whatever
the weights: no flow passes.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.circuit.plan import REAL, SIMPLEX, UNIT
from bayesjpt.families import dispatch
from bayesjpt.kernels.cells import row_cells
from bayesjpt.kernels.density import DENSITY_BLOCK
from bayesjpt.kernels.leaf import INTERVAL_CUT
from bayesjpt.kernels.passes import down, gather_weights, slot_graph
from bayesjpt.kernels.upward import LEAF_KIND, prepare_coefficients, upward
from bayesjpt.kernels.work import make_work
from bayesjpt.numerics.borrowed import borrowed, keep
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.jit import inlined, kernel
from bayesjpt.numerics.logspace import fast_exp

_STEP = 1e-5  # of parameters on the whole line, in the families' units
_RELATIVE_STEP = 1e-4
_SHIFT = np.array([-2.0, -1.0, 1.0, 2.0])
_DIFFERENCE = np.array([1.0, -8.0, 8.0, -1.0]) / 12.0
REAL_SPACE = int(REAL)
UNIT_SPACE = int(UNIT)
SIMPLEX_SPACE = int(SIMPLEX)


@kernel
def _total(flow):
    total = 0.0
    for i in range(flow.size):
        total += flow[i]
    return total


@kernel
def _divide(value, flow):
    """Replace a sum's flow by flow / value, 0 where the value is 0."""
    for i in range(flow.size):
        # the value is s exp(m), and terms are relative to m as well: the exponent cancels
        flow[i] = flow[i] / value[i] if value[i] > 0.0 else 0.0


@kernel
def _share(flow, term, out):
    """Fill out with the shares of one child and return their sum."""
    total = 0.0
    for i in range(out.size):
        out[i] = flow[i] * term[i]
        total += out[i]
    return total


@kernel
def _total_share(m, s, weight, top, flow):
    """Return the sum of the shares of one child of a sum, whose flow is divided by its s."""
    total = 0.0
    for i in range(flow.size):
        total += flow[i] * s[i] * fast_exp(m[i] + weight - top[i])
    return total


@kernel
def _stop_where(stopped, flow):
    for i in range(flow.size):
        if stopped[i]:
            flow[i] = 0.0


@kernel
def _stop_unless(passing, flow):
    for i in range(flow.size):
        if not passing[i]:
            flow[i] = 0.0


@kernel
def _begin(m, s, cotangent, flow):
    """Fill the flow of the root: rows of density 0 pass none."""
    for i in range(flow.size):
        flow[i] = cotangent[i] if s[i] > 0.0 and m[i] > -np.inf else 0.0


@inlined
def _leaf_gradient(plan, cells, theta, leaf, lo, flow, theta_gradient, cell_flow):
    at, length = plan.theta_at[leaf], plan.theta_len[leaf]
    if plan.leaf_cut[leaf] == INTERVAL_CUT:
        # the log mass of a cell is the same for all rows: its slope is taken once, times the flow of all
        cell_flow[leaf] += _total(flow)
    value_at = cells.feature_at[plan.leaf_value[leaf]] + lo
    aux_at = cells.feature_at[plan.leaf_aux[leaf]] + lo
    dispatch.accumulate_gradient(
        plan.leaf_family[leaf],
        cells.feature[value_at : value_at + flow.size],
        cells.feature[aux_at : aux_at + flow.size],
        flow,
        theta[at : at + length],
        plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]],
        theta_gradient[at : at + length],
    )


@kernel
def _subtract_cells(plan, theta, cell_flow, out):
    """Subtract each truncated leaf's flow times the gradient of its cell's log mass.

    No family says what that is. Of a simplex the mass is a weighted sum, with the masses of its corners as weights.
    Otherwise it is smooth, and known to 1e-13 or so: differences of fourth order are good to 1e-8, and they are made
    once a leaf, not once a row.
    """
    for leaf in range(cell_flow.size):
        if cell_flow[leaf] == 0.0:
            continue
        family, lo, hi = plan.leaf_family[leaf], plan.leaf_lo[leaf], plan.leaf_hi[leaf]
        const = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
        parameters = theta[plan.theta_at[leaf] : plan.theta_at[leaf] + plan.theta_len[leaf]].copy()
        corner = np.zeros(parameters.size)
        log_cell = dispatch.log_mass(family, lo, hi, parameters, const)
        for j in range(parameters.size):
            at = plan.theta_at[leaf] + j
            x, space = parameters[j], plan.theta_space[at]
            slope = 0.0
            if space == SIMPLEX_SPACE:
                corner[j] = 1.0
                # mass = sum of theta_j mass_j over sum of theta_j: the -1 is the derivative of the denominator
                slope = math.exp(dispatch.log_mass(family, lo, hi, corner, const) - log_cell) - 1.0
                corner[j] = 0.0
            else:
                # at most two relative steps to either side: x stays inside (0, inf) or (0, 1)
                step = _STEP if space == REAL_SPACE else _RELATIVE_STEP * min(x, 1.0 - x if space == UNIT_SPACE else x)
                for k in range(_DIFFERENCE.size):
                    parameters[j] = x + _SHIFT[k] * step
                    slope += _DIFFERENCE[k] * dispatch.log_mass(family, lo, hi, parameters, const) / step
                parameters[j] = x
            out[at] -= cell_flow[leaf] * slope


@kernel
def _add_weights(graph, weight, work, m, s, flow, out):
    """Add to out, float64 (n_edge,), what flows along the edges of sums above slots; their flow is overwritten."""
    any_missing = work.seen.shape[0] > 0
    n_input, n = graph.node.size - graph.is_product.size, flow.shape[1]
    for k in range(graph.is_product.size):
        node = n_input + k
        if graph.is_product[k]:
            continue
        if any_missing:
            _stop_unless(work.seen[work.node_at[graph.node[node]], :n], flow[node])
        # `down` has handed this flow on to the children: it may be overwritten
        _divide(s[node], flow[node])
        for j in range(graph.child_ptr[k], graph.child_ptr[k + 1]):
            c = graph.child[j]
            out[graph.edge[j]] += _total_share(m[c], s[c], weight[j, 0], m[node], flow[node])


@kernel
def _add_slots(plan, graph, cells, theta, work, lo, flow, share, weight_gradient, theta_gradient, cell_flow):
    """Hand the flow of slots on to their leaves, and add up the gradients."""
    n = share.size
    for k in range(graph.node.size - graph.is_product.size):
        node, mine = graph.node[k], flow[k]
        if cells.missing.shape[1] > 0:
            _stop_where(cells.missing[plan.slot_column[plan.slot_of_node[node]], lo : lo + n], mine)
        if plan.kind[node] == LEAF_KIND:
            _leaf_gradient(plan, cells, theta, plan.leaf_of[node], lo, mine, theta_gradient, cell_flow)
            continue
        _divide(work.s[work.node_at[node], :n], mine)
        for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            weight_gradient[e] += _share(mine, work.term[plan.edge_row[e], :n], share)
            _leaf_gradient(plan, cells, theta, plan.leaf_of[plan.child[e]], lo, share, theta_gradient, cell_flow)


@kernel
def rows_gradient(cotangent, values, missing, log_weight, theta, plan):
    """Return the gradient of the sum over rows of cotangent times log density.

    Parameters
    ----------
    cotangent : float64 (n_row,)
    values : float64 (n_row, n_column), the user's units
    missing : bool (n_row, n_column)
    log_weight : float64 (n_edge,), nats
    theta : float64 (n_theta,)
    plan : Plan

    Returns
    -------
    weight_gradient : float64 (n_edge,)
        With respect to each log weight, the others fixed: no simplex is assumed. 0 at products.
    theta_gradient : float64 (n_theta,)
    """
    n_row, n_column = values.shape
    by_column = np.empty((n_column, n_row))
    hidden = np.empty((n_column, n_row), np.bool_)
    for i in range(n_row):
        for j in range(n_column):
            by_column[j, i] = values[i, j]
            hidden[j, i] = missing[i, j]
    filled = row_cells(plan, by_column, hidden)
    made = make_work(plan, filled, DENSITY_BLOCK)
    above = slot_graph(plan)
    plan, cells, work, graph = borrowed(plan), borrowed(filled), borrowed(made), borrowed(above)
    prepare_coefficients(plan, cells, theta, work)
    n_node, share = graph.node.size, np.empty(DENSITY_BLOCK)
    # one buffer, cut to each block: the last, shorter one has contiguous rows, too
    buffer, weight = np.empty((3, n_node * DENSITY_BLOCK)), np.empty((graph.edge.size, 1))
    gather_weights(graph, log_weight.reshape(1, log_weight.size), weight)
    weight_gradient = np.zeros(log_weight.size)
    theta_gradient = np.zeros(theta.size)
    cell_flow = np.zeros(plan.leaf_family.size)
    for lo in range(0, n_row, DENSITY_BLOCK):
        n = min(DENSITY_BLOCK, n_row - lo)
        upward(plan, cells, log_weight, work, lo, n)
        m = buffer[0, : n_node * n].reshape(n_node, n)
        s = buffer[1, : n_node * n].reshape(n_node, n)
        flow = buffer[2, : n_node * n].reshape(n_node, n)
        # rows of the workspace stand by `node_at`, `down` reads those of the graph in its order
        for k in range(n_node):
            copy_into(work.m[work.node_at[graph.node[k]], :n], m[k])
            copy_into(work.s[work.node_at[graph.node[k]], :n], s[k])
        _begin(m[n_node - 1], s[n_node - 1], cotangent[lo : lo + n], flow[n_node - 1])
        down(graph, weight, m, s, flow)
        _add_weights(graph, weight, work, m, s, flow, weight_gradient)
        _add_slots(plan, graph, cells, theta, work, lo, flow, share[:n], weight_gradient, theta_gradient, cell_flow)
    _subtract_cells(plan, theta, cell_flow, theta_gradient)
    keep(filled)
    keep(made)
    keep(above)
    return weight_gradient, theta_gradient
