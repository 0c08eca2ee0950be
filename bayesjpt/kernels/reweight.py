"""Weights of an edited circuit from those of the old one, per draw, so that every sum stays normalised.

With v(n) the probability (or density) of the evidence under node n, an edge's new weight is

      w' = w v(child) / v(node)

One upward pass gives v, in the log domain, so that thousands of columns of evidence do not underflow. Nodes without
evidence below them keep their weights to the last bit; nodes under which the evidence is impossible keep their
proportions, since their parents' edges have weight zero.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.edit import Edit
from bayesjpt.circuit.plan import Plan
from bayesjpt.kernels.leaf import leaf_buffer, leaf_log_density, leaf_log_mass
from bayesjpt.kernels.upward import LEAF_KIND, PRODUCT_KIND
from bayesjpt.numerics.jit import kernel


@kernel
def _fill_leaf_mass(plan, thetas, leaf_from, interval, out):
    """Fill out, float64 (n_draw, n_leaf), with the log mass of each new leaf's interval under the old leaf."""
    for draw in range(out.shape[0]):
        for leaf in range(leaf_from.size):
            out[draw, leaf] = leaf_log_mass(plan, thetas[draw], leaf_from[leaf], interval[leaf, 0], interval[leaf, 1])


@kernel
def _fill_leaf_density(plan, thetas, leaf_from, is_known, interval, out):
    """Fill out, float64 (n_draw, n_leaf), with the log density of each known value under the old leaf, 0 elsewhere."""
    buffer = leaf_buffer(plan)
    for draw in range(out.shape[0]):
        for leaf in range(leaf_from.size):
            out[draw, leaf] = 0.0
            if is_known[leaf]:
                x = interval[leaf, 0]
                out[draw, leaf] = leaf_log_density(plan, thetas[draw], leaf_from[leaf], x, buffer)


@kernel
def _log_total(terms):
    largest = -np.inf
    for t in terms:
        largest = max(largest, t)
    if largest == -np.inf:
        return -np.inf
    total = 0.0
    for t in terms:
        total += math.exp(t - largest)
    return largest + math.log(total)


@kernel
def _reweight(new, value, node, first, last, weight):
    """Multiply the prior weights of a sum by its children's values, and divide by their total, the node's value."""
    largest = -np.inf
    for e in range(first, last):
        largest = max(largest, weight[e - first] + value[new.child[e]])
    value[node] = -np.inf
    if largest == -np.inf:
        prior_total = _log_total(weight)
        for e in range(first, last):
            weight[e - first] -= prior_total
        return
    total = 0.0
    for e in range(first, last):
        weight[e - first] += value[new.child[e]] - largest
        total += math.exp(weight[e - first])
    log_total = math.log(total)
    value[node] = largest + log_total
    for e in range(first, last):
        weight[e - first] -= log_total


@kernel
def _fill_weights(new, edge_from_ptr, edge_from, touched, log_weights, leaf_value, out, log_evidence):
    """Fill the new weights of every draw, and the log probability (density) of the evidence.

    Parameters
    ----------
    new : Plan
        Of the new circuit.
    edge_from_ptr, edge_from, touched : as in Edit
    log_weights : float64 (n_draw, n_old_edge), nats
    leaf_value : float64 (n_draw, n_leaf), nats
        Of the evidence under the new leaves.
    out : float64 (n_draw, n_edge), nats
        Overwritten.
    log_evidence : float64 (n_draw,), nats
        Overwritten.
    """
    n_node = new.kind.size
    value = np.empty(n_node)
    for draw in range(out.shape[0]):
        for node in range(n_node):
            first, last = new.child_ptr[node], new.child_ptr[node + 1]
            weight = out[draw, first:last]
            if new.kind[node] == LEAF_KIND:
                value[node] = leaf_value[draw, new.leaf_of[node]] if touched[node] else 0.0
            elif new.kind[node] == PRODUCT_KIND:
                value[node] = 0.0
                for e in range(first, last):
                    value[node] += value[new.child[e]]
                    out[draw, e] = 0.0
            else:
                for e in range(first, last):
                    begin, end = edge_from_ptr[e], edge_from_ptr[e + 1]
                    if end == begin:
                        out[draw, e] = 0.0
                    elif end == begin + 1:
                        out[draw, e] = log_weights[draw, edge_from[begin]]
                    else:
                        out[draw, e] = _log_total(log_weights[draw][edge_from[begin:end]])
                value[node] = 0.0
                if touched[node]:
                    _reweight(new, value, node, first, last, weight)
        log_evidence[draw] = value[n_node - 1]


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
    value = np.empty((params.theta.shape[0], edit.leaf_from.size))
    _fill_leaf_mass(old, params.theta, edit.leaf_from, edit.circuit.leaf_interval(), value)
    return _edited_params(edit, new, params, value)


def constrained_params(edit: Edit, old: Plan, new: Plan, params: Params) -> tuple[Params, np.ndarray]:
    """Return the parameters of a constrained circuit, and the log density of the evidence, float64 (n_draw,).

    The density is per user's unit of real columns, where the value is no atom. Arguments are those of
    `conditioned_params`, the edit from `bayesjpt.circuit.edit.constrained`.
    """
    value = np.empty((params.theta.shape[0], edit.leaf_from.size))
    is_known = edit.touched[edit.circuit.leaf_node()]
    _fill_leaf_density(old, params.theta, edit.leaf_from, is_known, edit.circuit.leaf_interval(), value)
    return _edited_params(edit, new, params, value)


def _edited_params(edit: Edit, new: Plan, params: Params, leaf_value: np.ndarray) -> tuple[Params, np.ndarray]:
    n_draw = params.theta.shape[0]
    log_weight = np.empty((n_draw, edit.circuit.n_edge))
    log_evidence = np.empty(n_draw)
    _fill_weights(
        new, edit.edge_from_ptr, edit.edge_from, edit.touched, params.log_weight, leaf_value, log_weight, log_evidence
    )
    everything = edit.theta_from.size == params.theta.shape[1]
    theta = params.theta if everything else np.ascontiguousarray(params.theta[:, edit.theta_from])
    return Params(log_weight, theta), log_evidence
