"""The pass `best` (max-product): the k largest terms of the root's polynomial, and the inputs that each of them takes.

      up            value of a sum = sum of weight times child        value of a product = product of children
      best          k largest of weight times child's k largest       k largest products of one part of each child

A *part* of a node is one such term: a choice of a child at every sum below. Inputs may have several parts of their own
(candidate values of a cell); parts that stand for the same values bear the same mark, and count once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.jit import kernel


class Parts(NamedTuple):
    """The k best parts of every node of a graph, for one entry of a batch, by falling score.

    Attributes
    ----------
    score : float64 (n_node, k), nats
    mark : uint64 (n_node, k)
        Hashes of what the parts say; those of a product's children add up.
    which : int64 (n_node, k)
        Of an input's part whatever the caller put in, of a sum's the number of the child in the graph's lists.
    rank : int64 (n_node, k)
        Of a sum's part, which of that child's parts it is.
    child_rank : int64 (n_child, k)
        Of a product's part, which of each child's parts it holds.
    length : int64 (n_node,)
        How many parts there are.
    """

    score: np.ndarray
    mark: np.ndarray
    which: np.ndarray
    rank: np.ndarray
    child_rank: np.ndarray
    length: np.ndarray


@kernel
def make_parts(graph, k):
    """Return Parts of a graph, not filled."""
    n_node = graph.node.size
    return Parts(
        np.empty((n_node, k)),
        np.empty((n_node, k), np.uint64),
        np.empty((n_node, k), np.int64),
        np.empty((n_node, k), np.int64),
        np.empty((graph.child.size, k), np.int64),
        np.zeros(n_node, np.int64),
    )


@kernel
def insert(score, mark, which, rank, n, entry):
    """Insert (score, mark, which, rank) into lists sorted by falling score, a mark once; return the new length."""
    new_score, new_mark, new_which, new_rank = entry
    # an impossible term is no part, and a full list takes only what is better than its last
    if new_score == -np.inf or (n == score.size and new_score <= score[n - 1]):
        return n
    for j in range(n):
        # the same values by another path: the better one stays, so that the k parts are k different answers
        if mark[j] == new_mark:
            if score[j] >= new_score:
                return n
            for i in range(j, n - 1):
                score[i], mark[i], which[i], rank[i] = score[i + 1], mark[i + 1], which[i + 1], rank[i + 1]
            n -= 1
            break
    at = min(n, score.size - 1)
    # strictly: of equal scores the one that came first stays first
    while at > 0 and score[at - 1] < new_score:
        score[at], mark[at], which[at], rank[at] = score[at - 1], mark[at - 1], which[at - 1], rank[at - 1]
        at -= 1
    score[at], mark[at], which[at], rank[at] = new_score, new_mark, new_which, new_rank
    return min(n + 1, score.size)


@kernel
def best(graph, weight, entry, parts):
    """Fill the parts of all nodes of a graph from those of its inputs.

    Parameters
    ----------
    graph : Graph
    weight : float64 (n_child, n) or (n_child, 1), nats
        As `up` takes them.
    entry : int
        Which entry of the batch this is: lists are kept sorted one at a time.
    parts : Parts
    """
    n_input, k = graph.node.size - graph.is_product.size, parts.score.shape[1]
    # weights that all entries of the batch share have one column
    column = min(entry, weight.shape[1] - 1)
    score, mark, which, rank, length = parts.score, parts.mark, parts.which, parts.rank, parts.length
    # lists of a product are made in buffers: its old parts are read until the last new one is in
    top, top_mark = np.empty(k), np.empty(k, np.uint64)
    left, right, older = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k, np.int64)
    # inputs first, children before parents: the parts of a child are final when a node's turn comes
    for inner in range(graph.is_product.size):
        node, first, last = n_input + inner, graph.child_ptr[inner], graph.child_ptr[inner + 1]
        if not graph.is_product[inner]:
            n = 0
            for j in range(first, last):
                child = graph.child[j]
                for r in range(length[child]):
                    new = (weight[j, column] + score[child, r], mark[child, r], np.int64(j), np.int64(r))
                    n = insert(score[node], mark[node], which[node], rank[node], n, new)
            length[node] = n
            continue
        # the empty product: one part, of score log 1, for the children to multiply
        score[node, 0], mark[node, 0], length[node] = 0.0, np.uint64(0), 1
        for j in range(first, last):
            child = graph.child[j]
            n = 0
            for r in range(length[node]):
                for q in range(length[child]):
                    # scopes are disjoint, and sums modulo 2^64 do not depend on the order of the children
                    new_mark = mark[node, r] + mark[child, q]
                    new = (score[node, r] + score[child, q], new_mark, np.int64(r), np.int64(q))
                    n = insert(top, top_mark, left, right, n, new)
            # parts have moved to other places of the list: what they hold of earlier children moves with them
            for before in range(first, j):
                copy_into(parts.child_rank[before], older)
                for r in range(n):
                    parts.child_rank[before, r] = older[left[r]]
            for r in range(n):
                score[node, r], mark[node, r], parts.child_rank[j, r] = top[r], top_mark[r], right[r]
            length[node] = n


@kernel
def best_inputs(graph, parts, r, stack, out):
    """Fill out, int64 (n_node, 2), with the inputs that the root's part r takes and their parts; return how many.

    `stack` is of the same shape.
    """
    n_input = graph.node.size - graph.is_product.size
    # a part takes a node at most once, since products have disjoint scopes: n_node places are enough for the stack
    stack[0, 0], stack[0, 1] = graph.node.size - 1, r
    depth, n = 1, 0
    while depth > 0:
        depth -= 1
        node, r = stack[depth, 0], stack[depth, 1]
        inner = node - n_input
        if inner < 0:
            out[n, 0], out[n, 1] = node, r
            n += 1
        elif graph.is_product[inner]:
            for j in range(graph.child_ptr[inner], graph.child_ptr[inner + 1]):
                stack[depth, 0], stack[depth, 1] = graph.child[j], parts.child_rank[j, r]
                depth += 1
        else:
            stack[depth, 0], stack[depth, 1] = graph.child[parts.which[node, r]], parts.rank[node, r]
            depth += 1
    return n
