"""Weights of an edited circuit from those of the old one, per draw, so that every sum stays normalised.

With v(n) the probability (or density) of the evidence under node n, an edge's new weight is

      w' = w v(child) / v(node)

What goes in at the leaves is the evidence; collected are the values of all nodes, in logarithms, so that thousands of
columns of evidence do not underflow. Nodes without evidence below them keep their weights to the last bit; nodes under
which the evidence is impossible keep their proportions, since their parents' edges have weight zero.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.edit import Edit
from bayesjpt.circuit.plan import Plan
from bayesjpt.kernels import rows
from bayesjpt.kernels.leaf import leaf_buffer, leaf_log_density, leaf_log_mass
from bayesjpt.kernels.passes import batch_size, gather_weights, make_graph, n_input, numbers_in, up
from bayesjpt.kernels.upward import PRODUCT_KIND
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.special import logaddexp


@kernel
def _fill_leaf_mass(plan, thetas, leaf_from, interval, out):
    """Fill out, float64 (n_leaf, n_draw), with the log mass of each new leaf's interval under the old leaf."""
    for leaf in range(leaf_from.size):
        for draw in range(out.shape[1]):
            out[leaf, draw] = leaf_log_mass(plan, thetas[draw], leaf_from[leaf], interval[leaf, 0], interval[leaf, 1])


@kernel
def _fill_leaf_density(plan, thetas, leaf_from, interval, out):
    """Fill out, float64 (n_leaf, n_draw), with the log density of each known value under the old leaf."""
    buffer = leaf_buffer(plan)
    for leaf in range(leaf_from.size):
        for draw in range(out.shape[1]):
            out[leaf, draw] = leaf_log_density(plan, thetas[draw], leaf_from[leaf], interval[leaf, 0], buffer)


@kernel
def _fill_prior(edge_from_ptr, edge_from, log_weights, out):
    """Fill the prior weights of the new edges, float64 (n_draw, n_edge): sums of those of the old edges, or 1."""
    for draw in range(out.shape[0]):
        for e in range(out.shape[1]):
            begin, end = edge_from_ptr[e], edge_from_ptr[e + 1]
            out[draw, e] = 0.0 if begin == end else log_weights[draw, edge_from[begin]]
            for k in range(begin + 1, end):
                out[draw, e] = logaddexp(out[draw, e], log_weights[draw, edge_from[k]])


@kernel
def _reweight(new, touched, number, log_value, out):
    """Multiply prior weights in out, float64 (n_draw, n_edge), by v(child), and normalise, at sums with evidence."""
    for node in range(new.kind.size):
        first, last = new.child_ptr[node], new.child_ptr[node + 1]
        if not touched[node] or new.kind[node] == PRODUCT_KIND or first == last:
            continue
        for draw in range(out.shape[0]):
            weight = out[draw, first:last]
            # impossible below this node: its weights keep their proportions
            if log_value[number[node], draw] > -np.inf:
                for k in range(weight.size):
                    weight[k] += log_value[number[new.child[first + k]], draw]
            # by their own sum: of a value of -1e9 a logarithm has seven digits behind the point
            largest = weight.max()
            total = -np.inf
            for k in range(weight.size):
                weight[k] -= largest
                total = logaddexp(total, weight[k])
            for k in range(weight.size):
                weight[k] -= total


def conditioned_params(edit: Edit, old: Plan, new: Plan, params: Params) -> tuple[Params, np.ndarray]:
    """Return the parameters of a conditioned circuit, and the log probability of the event, float64 (n_draw,).

    Parameters
    ----------
    edit : Edit
        From `bayesjpt.circuit.edit.conditioned`, or from `marginalised`, where the event is certain.
    old, new : Plan
        Of the circuit before and after.
    params : Params
        ``log_weight`` (n_draw, n_old_edge), ``theta`` (n_draw, n_old_theta).
    """
    return _edited_params(edit, old, new, params, _fill_leaf_mass)


def constrained_params(edit: Edit, old: Plan, new: Plan, params: Params) -> tuple[Params, np.ndarray]:
    """Return the parameters of a constrained circuit, and the log density of the evidence, float64 (n_draw,).

    The density is per user's unit of real columns, where the value is no atom. Arguments are those of
    `conditioned_params`, the edit from `bayesjpt.circuit.edit.constrained`.
    """
    return _edited_params(edit, old, new, params, _fill_leaf_density)


def _edited_params(
    edit: Edit, old: Plan, new: Plan, params: Params, fill_evidence: Callable
) -> tuple[Params, np.ndarray]:
    n_draw = params.theta.shape[0]
    log_weight, log_evidence = np.empty((n_draw, edit.circuit.n_edge)), np.zeros(n_draw)
    _fill_prior(edit.edge_from_ptr, edit.edge_from, params.log_weight, log_weight)
    graph = make_graph(new, edit.touched)
    number = numbers_in(graph, new.kind.size)
    inputs = graph.node[: n_input(graph)]
    has_evidence = edit.touched[inputs]  # others are children of sums, whose value is 1
    leaf = new.leaf_of[inputs[has_evidence]]
    leaf_from, interval = edit.leaf_from[leaf], edit.circuit.leaf_interval()[leaf]
    n_node = graph.node.size
    n = batch_size(3 * n_node, n_draw)
    for lo in range(0, n_draw if n_node else 0, n):
        part = slice(lo, min(lo + n, n_draw))
        value = np.empty((leaf.size, part.stop - lo))
        fill_evidence(old, params.theta[part], leaf_from, interval, value)
        weight = np.empty((graph.edge.size, part.stop - lo))
        gather_weights(graph, log_weight[part], weight)
        # m = 0: children of sums without evidence have value 1
        m, s = np.zeros((n_node, part.stop - lo)), np.empty((n_node, part.stop - lo))
        m[: inputs.size][has_evidence] = value
        up(graph, weight, m, s)
        # flat views of contiguous arrays: m holds log values from here on
        rows.log_value(m.ravel(), s.ravel(), m.ravel())
        _reweight(new, edit.touched, number, m, log_weight[part])
        log_evidence[part] = m[-1]
    # places are ascending: as many as there are parameters are all of them, in their order
    everything = edit.theta_from.size == params.theta.shape[1]
    theta = params.theta if everything else np.ascontiguousarray(params.theta[:, edit.theta_from])
    return Params(log_weight, theta), log_evidence
