"""The passes: everything that is known about walking a circuit, for many rows, draws or pairs of them at once.

      up     leaves -> root    the value of every node (sum-product)
      down   root -> leaves    the share of the root's value that runs through each node
      walk   root -> leaves    one path, drawn in proportion to the values

The fourth, `best`, is in `bayesjpt.kernels.best`.

A question puts values in at the inputs, runs the passes and collects at the inputs: it knows nothing of the graph. The
*batch* is the last axis of every array, and one entry of it is one row, one draw or one pair; weights have that axis
too, or one of length 1 where all entries share them.

Values are pairs (s, m) that stand for s exp(m): a sum takes m as the maximum over its children of (m + log w) and s as
the sum of s exp(m + log w - maximum); a product adds m and multiplies s. So nothing underflows, however many columns
there are, at one exponential for each edge of a sum and no logarithm. m is -inf where a value is 0, and everywhere else
s is at least 1.

A `Graph` is the part of a circuit that a question meets; of products, what lies outside is certain and left out:

      circuit      +            above b alone:      +
                 /   \\                             /   \\
                x     x                           x     x
               / \\   / \\                          |     |
              a   b a   b                         b     b
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.plan import Plan
from bayesjpt.kernels import rows
from bayesjpt.numerics.borrowed import borrowed, by_address
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logspace import fast_exp
from bayesjpt.numerics.special import logaddexp

_LEAF_KIND = int(arrays.LEAF)
_PRODUCT_KIND = int(arrays.PRODUCT)
_OUTSIDE, _INSIDE, _CERTAIN = 0, 1, 2
_FOLD_ABOVE = 300.0
"""Largest logarithm of s before it is moved into m: two such factors and the children of a sum stay below 709."""
_BATCH_BYTES = 2**19
"""Bytes of the values of a batch: half of a cache of the second level."""
_LEAST_BATCH = 64
"""Entries that spread the cost of a visit to a node, measured: 1.8 ns an edge and entry at 64, 1.4 at 128, 3 at 25."""


@by_address
class Graph(NamedTuple):
    """The part of a circuit that the passes visit. Nodes are numbered anew, inputs first, children before parents.

    Attributes
    ----------
    node : int32 (n_node,)
        Which of the plan's nodes each is. The first n_input = n_node - n_inner are those whose values the question
        puts in, the last is the root; without nodes the root's value is 1.
    is_product : bool (n_inner,)
        Whether node n_input + k is a product, else it is a sum.
    child_ptr : int32 (n_inner + 1,), child : int32 (n_child,)
    edge : int32 (n_child,)
        The plan's edge to each child.
    fold : bool (n_child,)
        Whether s could overflow: it goes into m before this child is multiplied; of a sum's last child, afterwards.
    """

    node: np.ndarray
    is_product: np.ndarray
    child_ptr: np.ndarray
    child: np.ndarray
    edge: np.ndarray
    fold: np.ndarray


@kernel
def _mark_certain(plan, state):
    """Mark children outside that stand beside one inside, below a sum: left out, they would count as 0, not as 1."""
    for node in range(plan.kind.size):
        some = False
        for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            some |= state[plan.child[e]] == _INSIDE
        if state[node] == _INSIDE and plan.kind[node] != _PRODUCT_KIND and some:
            for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
                if state[plan.child[e]] == _OUTSIDE:
                    state[plan.child[e]] = _CERTAIN


@kernel
def _numbered(plan, state, order, number):
    """Fill the plan's nodes in the graph's order, and the number of each of them; return (n_node, n_input)."""
    n = 0
    for node in range(plan.kind.size):
        n_inside = 0
        for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            n_inside += state[plan.child[e]] == _INSIDE
        # inputs first: a question writes its values into the leading rows of m in one block
        if state[node] == _CERTAIN or (state[node] == _INSIDE and n_inside == 0):
            order[n], number[node] = node, n
            n += 1
    n_input = n
    for node in range(plan.kind.size):
        if state[node] == _INSIDE and number[node] < 0:
            order[n], number[node] = node, n
            n += 1
    return n, n_input


@kernel
def _arranged(plan, state):
    """Return the fields of a Graph."""
    order, number = np.empty(plan.kind.size, np.int32), np.full(plan.kind.size, -1, np.int32)
    n_node, n_input = _numbered(plan, state, order, number)
    is_product, child_ptr = np.empty(n_node - n_input, np.bool_), np.zeros(n_node - n_input + 1, np.int32)
    child, edge = np.empty(plan.child.size, np.int32), np.empty(plan.child.size, np.int32)
    fold = np.zeros(plan.child.size, np.bool_)
    log_bound = np.zeros(n_node)  # of s: 1 at inputs
    n = 0
    for k in range(n_node - n_input):
        node = order[n_input + k]
        is_product[k] = plan.kind[node] == _PRODUCT_KIND
        bound = 0.0 if is_product[k] else -np.inf
        for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            at = number[plan.child[e]]
            if at < 0:
                continue
            child[n], edge[n] = at, e
            if not is_product[k]:
                # a term of a sum is at most its child's s, since the largest is shifted to an exponential of 1
                bound = logaddexp(bound, log_bound[at])
            else:
                # a product multiplies its children's s, so their logarithms add up
                fold[n] = bound + log_bound[at] > _FOLD_ABOVE
                bound = log_bound[at] + (0.0 if fold[n] else bound)
            n += 1
        if not is_product[k]:
            fold[n - 1] = bound > _FOLD_ABOVE
            bound = 0.0 if fold[n - 1] else bound
        child_ptr[k + 1], log_bound[n_input + k] = n, bound
    return order[:n_node].copy(), is_product, child_ptr, child[:n].copy(), edge[:n].copy(), fold[:n].copy()


@kernel
def _mark_above(plan, chosen, out):
    for node in range(plan.kind.size):
        out[node] = _OUTSIDE
        if plan.kind[node] == _LEAF_KIND and chosen[plan.feature_column[plan.leaf_value[plan.leaf_of[node]]]]:
            out[node] = _INSIDE
        for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            if out[plan.child[e]] == _INSIDE:
                out[node] = _INSIDE


def nodes_above(plan: Plan, columns: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return which nodes have a scope that meets some columns, bool (n_node,)."""
    inside, chosen = np.empty(plan.kind.size, np.int8), np.zeros(plan.column_resolution.size, bool)
    chosen[np.asarray(columns, np.int64)] = True
    _mark_above(plan, chosen, inside)
    return inside == _INSIDE


def make_graph(plan: Plan, inside: np.ndarray) -> Graph:
    """Return the graph of some nodes.

    Parameters
    ----------
    plan : Plan
    inside : bool (n_node,)
        With a node all its parents. Those without a child inside are inputs, and so are the siblings below a sum of
        those inside; their value is 1.
    """
    state = np.where(inside, _INSIDE, _OUTSIDE).astype(np.int8)
    _mark_certain(plan, state)
    return Graph(*_arranged(plan, state))


@kernel
def slot_graph(plan):
    """Return the graph of a whole circuit whose inputs are its slots, by number."""
    state = np.empty(plan.kind.size, np.int8)
    for node in range(plan.kind.size):
        state[node] = _INSIDE if plan.node_row[node] >= 0 else _OUTSIDE
    node, is_product, child_ptr, child, edge, fold = _arranged(plan, state)
    return Graph(node, is_product, child_ptr, child, edge, fold)


def numbers_in(graph: Graph, n_node: int) -> np.ndarray:
    """Return the number in a graph of each of the plan's nodes, int32 (n_node,), -1 outside."""
    number = np.full(n_node, -1, np.int32)
    number[graph.node] = np.arange(graph.node.size)
    return number


def n_input(graph: Graph) -> int:
    """Return the number of the graph's inputs."""
    return graph.node.size - graph.is_product.size


def batch_size(n_value: int, n: int) -> int:
    """Return how many of n entries to take at once, when each needs some values: as many as a cache holds."""
    return max(1, min(n, max(_LEAST_BATCH, _BATCH_BYTES // (8 * max(n_value, 1)))))


@kernel
def gather_weights(graph, log_weights, out):
    """Fill out, float64 (n_child, n_draw), with the log weights of some draws, (n_draw, n_edge), as `up` takes them."""
    for k in range(graph.edge.size):
        e = graph.edge[k]
        for i in range(out.shape[1]):
            out[k, i] = log_weights[i, e]


@kernel
def _raise_to(x, weight, out):
    if weight.size == 1:
        rows.max_shifted(x, weight[0], out)
    else:
        for i in range(out.size):
            t = x[i] + weight[i]
            out[i] = t if t > out[i] else out[i]


@kernel
def _add_term(m, s, weight, top, total):
    # where all children are impossible this is exp(-inf - -inf), which fast_exp says is 0
    if weight.size == 1:
        w = weight[0]
        for i in range(total.size):
            total[i] += s[i] * fast_exp(m[i] + w - top[i])
    else:
        for i in range(total.size):
            total[i] += s[i] * fast_exp(m[i] + weight[i] - top[i])


@kernel
def up(graph, weight, m, s):
    """Fill the pairs of all nodes; those of the inputs are m[:n_input], and s = 1.

    Parameters
    ----------
    graph : Graph
    weight : float64 (n_child, n) or (n_child, 1), nats
        Log weights of the graph's edges (`gather_weights`); those of products' are not read.
    m, s : float64 (n_node, n)
        The log values of the inputs stand in the first rows of m.
    """
    weight, m, s = borrowed(weight), borrowed(m), borrowed(s)
    n_input = graph.node.size - graph.is_product.size
    s[:n_input] = 1.0
    for k in range(graph.is_product.size):
        node, first, last = n_input + k, graph.child_ptr[k], graph.child_ptr[k + 1]
        top, total = m[node], s[node]
        # the pairs of the first child in place of those of the empty product
        if graph.is_product[k]:
            copy_into(m[graph.child[first]], top)
            copy_into(s[graph.child[first]], total)
            for j in range(first + 1, last):
                if graph.fold[j]:
                    rows.fold(top, total)
                rows.add_and_multiply(m[graph.child[j]], s[graph.child[j]], top, total)
        else:
            top[:] = -np.inf
            total[:] = 0.0
            for j in range(first, last):
                _raise_to(m[graph.child[j]], weight[j], top)
            for j in range(first, last):
                _add_term(m[graph.child[j]], s[graph.child[j]], weight[j], top, total)
            if graph.fold[last - 1]:
                rows.fold(top, total)


@kernel
def _give(m, s, weight, top, ratio, out):
    if weight.size == 1:
        w = weight[0]
        for i in range(out.size):
            out[i] += ratio[i] * s[i] * fast_exp(m[i] + w - top[i])
    else:
        for i in range(out.size):
            out[i] += ratio[i] * s[i] * fast_exp(m[i] + weight[i] - top[i])


@kernel
def _divide(x, total, out):
    for i in range(out.size):
        out[i] = x[i] / total[i] if total[i] > 0.0 else 0.0


@kernel
def down(graph, weight, m, s, flow):
    """Fill the flow through all nodes, from that of the root: a node's share in the value of its parents, added up.

    Parameters
    ----------
    graph, weight, m, s : as `up` left them
    flow : float64 (n_node, n)
        The root's row, 1 or what all of it shall be multiplied by, is given and stays. All 0 below an impossible sum.
    """
    weight, m, s, flow = borrowed(weight), borrowed(m), borrowed(s), borrowed(flow)
    n_input = graph.node.size - graph.is_product.size
    flow[: graph.node.size - 1] = 0.0
    ratio = np.empty(flow.shape[1])
    for k in range(graph.is_product.size - 1, -1, -1):
        node = n_input + k
        for j in range(graph.child_ptr[k], graph.child_ptr[k + 1]):
            c = graph.child[j]
            if graph.is_product[k]:
                # the whole of a product's flow runs through each child
                rows.add(flow[node], flow[c])
            else:
                if j == graph.child_ptr[k]:
                    # one division for all children of the sum
                    _divide(flow[node], s[node], ratio)
                _give(m[c], s[c], weight[j], m[node], ratio, flow[c])


@kernel
def begin_walk(plan, stack):
    """Put the root on the stack of a path, int64 (n_node + 1,), and return its depth."""
    stack[0] = plan.kind.size - 1
    return 1


@kernel
def walk(plan, log_weight, values, entry, rng, stack, depth):
    """Follow the path of one entry to its next slot, choosing children in proportion; return it and the depth left.

    A path visits few nodes of a circuit. So it reads the plan, no `Graph` of it, and draws as it goes: callers draw
    their values from each slot before the path goes on, and it ends at depth 0.

    Parameters
    ----------
    plan : Plan
    log_weight : float64 (n_edge,), nats
        Of the entry's draw; those of a sum add up to one.
    values : tuple of float64 (n_valued, n), float64 (n_valued, n) and int32 (n_node,)
        The pairs m and s that a pass up left, and the row of each node in them; nodes may share rows.
    entry : int
        Which of the n the path belongs to; the root's value is not 0.
    rng : numpy.random.Generator
    stack : int64 (n_node + 1,)
        What is left of the path, from `begin_walk`.
    depth : int
    """
    m, s, row = values
    depth -= 1
    node = stack[depth]
    while plan.slot_of_node[node] < 0:
        first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
        if plan.kind[node] == _PRODUCT_KIND:
            for e in range(first, last):
                stack[depth] = plan.child[e]
                depth += 1
        else:
            # terms are relative to the sum's m, and add up to its s: the number falls on one of them
            top, left = m[row[node], entry], rng.random() * s[row[node], entry]
            chosen = first
            for e in range(first, last):
                at = row[plan.child[e]]
                term = s[at, entry] * math.exp(m[at, entry] + log_weight[e] - top)
                if term > 0.0:  # where rounding leaves something over it falls on the last that is possible
                    chosen = e
                    left -= term
                    if left < 0.0:
                        break
            stack[depth] = plan.child[chosen]
            depth += 1
        depth -= 1
        node = stack[depth]
    return plan.slot_of_node[node], depth


@kernel
def walk_slot(plan, log_weight, slot, rng):
    """Return one of the leaves of a slot whose cell is missing, drawn in proportion to their weights."""
    node = plan.slot_node[slot]
    if plan.kind[node] == _LEAF_KIND:
        return plan.leaf_of[node]
    first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
    left = rng.random()
    chosen = first
    for e in range(first, last):
        term = math.exp(log_weight[e])
        if term > 0.0:
            chosen = e
            left -= term
            if left < 0.0:
                break
    return plan.leaf_of[plan.child[chosen]]
