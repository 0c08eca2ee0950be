"""Passes over series of rows whose paths depend on the leaf of the row before: forward, backward, drawn, whole.

Rows are in the order of their series, and of time within each; `first` says where each series begins. Given the leaf k
of the row before, the log odds of gate g are x . v_g + offset[g, k], so that odds are products of one number for each
row and gate, and one for each gate and leaf before:

      odds of going right at g   =   base[row, g] * memory_odds[g, k]

and no pass takes an exponential for a pair of leaves. Both factors stay within e^50, so that after six gates no leaf's
probability is below e^-600: each can be divided by. The first row of a series has no row before it: base alone.

Reference: Rabiner (1989), A Tutorial on Hidden Markov Models, Proceedings of the IEEE 77(2); Jordan, Ghahramani and
Saul (1997), Hidden Markov Decision Trees, NIPS 9.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesjpt.kernels.expert_tree import bounded, dot
from bayesjpt.numerics.counter_rng import uniform
from bayesjpt.numerics.jit import kernel


class Memory(NamedTuple):
    """What gates make of the leaf of the row before: one draw, and the state of a chain.

    Attributes
    ----------
    offset : float64 (n_gate, n_slot)
        Added to a gate's log odds where the leaf before is in a slot.
    precision : float64 (1,)
        Of offsets around 0.
    """

    offset: np.ndarray
    precision: np.ndarray


class Steps(NamedTuple):
    """Which rows follow each other, and what gates see of the row before.

    Attributes
    ----------
    first : int64 (n_series + 1,)
        Where each series begins.
    seen : bool (n_row,)
        Whether a row's responses are known; a row without them is a step all the same.
    slot : int64 (depth, n_leaf)
        Which offset gates of a level add where the leaf before is k.
    sign : float64 (depth, n_leaf)
        1 or -1, by which it is multiplied.
    """

    first: np.ndarray
    seen: np.ndarray
    slot: np.ndarray
    sign: np.ndarray


@kernel
def fill_base_odds(gate_x, gate, out):
    """Fill out, float64 (n_row, n_gate), with the odds of going right that covariates alone give."""
    for row in range(out.shape[0]):
        for g in range(out.shape[1]):
            out[row, g] = math.exp(bounded(dot(gate_x[row], gate[g])))


@kernel
def fill_memory_odds(slot, sign, offset, out):
    """Fill out, float64 (n_gate, n_leaf), with what the leaf before multiplies odds by; see `Steps`."""
    level, last = 0, 1  # the gates of a level end before `last`
    for g in range(out.shape[0]):
        if g == last:
            level += 1
            last = 2 * last + 1
        for k in range(out.shape[1]):
            out[g, k] = math.exp(bounded(sign[level, k] * offset[g, slot[level, k]]))


@kernel
def begin_leaves(base, out):
    """Fill out, float64 (n_leaf,), with the probabilities of a first row's leaves; base is float64 (n_gate,)."""
    n_leaf = out.size
    out[0] = 1.0
    width, node = n_leaf, 0
    while width > 1:
        for start in range(0, n_leaf, width):
            left = out[start] / (1.0 + base[node])
            out[start] = left
            out[start + width // 2] = left * base[node]
            node += 1
        width //= 2


@kernel
def _total(values):
    """Return the sum, in four running sums: one alone would wait for each addition."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = values.size - values.size % 4
    for k in range(0, whole, 4):
        a += values[k]
        b += values[k + 1]
        c += values[k + 2]
        d += values[k + 3]
    for k in range(whole, values.size):
        a += values[k]
    return (a + b) + (c + d)


@kernel
def next_leaves(base, memory_odds, before, flow, out):
    """Fill out, float64 (n_leaf,), with the probabilities of a row's leaves given those of the row before.

    Parameters
    ----------
    base : float64 (n_gate,)
    memory_odds : float64 (n_gate, n_leaf)
    before : float64 (n_leaf,)
    flow : float64 (2, depth + 1, n_leaf)
        Overwritten: the probability of coming from a leaf and passing a node, of the node of each level that is being
        visited and of its right sibling. Depth first, so that these few stay in the fastest memory.
    out : float64 (n_leaf,)

    Notes
    -----
    Cost: a division for each gate and leaf before.
    """
    n_leaf, depth = out.size, flow.shape[1] - 1
    for k in range(n_leaf):
        flow[0, 0, k] = before[k]
    for leaf in range(n_leaf):
        # up to the last node that this path shares with the one before, and down its right side
        level, side = depth, 1 if leaf > 0 else 0
        while level > 0 and (leaf >> (depth - level)) % 2 == 0:
            level -= 1
        down = flow[side, level]
        while level < depth:
            gate = (1 << level) - 1 + (leaf >> (depth - level))
            left, right, gate_odds = flow[0, level + 1], flow[1, level + 1], memory_odds[gate]
            for k in range(n_leaf):
                odds = base[gate] * gate_odds[k]
                share = down[k] / (1.0 + odds)
                left[k] = share
                right[k] = share * odds
            level += 1
            down = left
        out[leaf] = _total(down)


@kernel
def path_probability(base, memory_odds, before, leaf):
    """Return the probability of a leaf given the leaf before."""
    node, out = memory_odds.shape[0] + leaf, 1.0
    while node > 0:
        parent = (node - 1) // 2
        odds = base[parent] * memory_odds[parent, before]
        out *= (odds if node == 2 * parent + 2 else 1.0) / (1.0 + odds)
        node = parent
    return out


@kernel
def weigh(predicted, evidence, out):
    """Fill out with probabilities of leaves given a row's responses too, and return the log density of these.

    Responses that are impossible at every leaf, by overflow, say nothing of the leaf.
    """
    top = -np.inf
    for leaf in range(out.size):
        out[leaf] = math.log(predicted[leaf]) + evidence[leaf]
        top = max(top, out[leaf])
    if top == -np.inf:
        for leaf in range(out.size):
            out[leaf] = predicted[leaf]
        return -np.inf
    total = 0.0
    for leaf in range(out.size):
        out[leaf] = math.exp(out[leaf] - top)
        total += out[leaf]
    for leaf in range(out.size):
        out[leaf] /= total
    return top + math.log(total)


@kernel
def fill_filtered(first, base, memory_odds, evidence, predicted, filtered, log_density):
    """Fill what is known of each row's leaf before and after its own responses, by the forward pass.

    Parameters
    ----------
    first : int64 (n_series + 1,)
    base : float64 (n_row, n_gate)
    memory_odds : float64 (n_gate, n_leaf)
    evidence : float64 (n_row, n_leaf), nats
        Log density of a row's responses at each leaf; 0 for a row without responses.
    predicted, filtered : float64 (n_row, n_leaf)
        Probabilities of leaves given the responses before a row, and given those up to it.
    log_density : float64 (n_row,), nats
        Of a row's responses given those before it; their sum over a series is its joint log density.

    Notes
    -----
    Cost: rows times leaves squared.
    """
    n_leaf, depth = memory_odds.shape[1], 0
    while 1 << depth < n_leaf:
        depth += 1
    flow = np.empty((2, depth + 1, n_leaf))
    for series in range(first.size - 1):
        for row in range(first[series], first[series + 1]):
            if row == first[series]:
                begin_leaves(base[row], predicted[row])
            else:
                next_leaves(base[row], memory_odds, filtered[row - 1], flow, predicted[row])
            log_density[row] = weigh(predicted[row], evidence[row], filtered[row])


@kernel
def carry_up(base, memory_odds, up):
    """Fill each gate's row of up, float64 (n_node, n_leaf), with the mean over leaves below it given each leaf before.

    Parameters
    ----------
    base : float64 (n_gate,)
    memory_odds : float64 (n_gate, n_leaf)
    up : float64 (n_node, n_leaf)
        Rows of leaves are given, those of gates filled.
    """
    for g in range(memory_odds.shape[0] - 1, -1, -1):
        left, right, gate_odds = up[2 * g + 1], up[2 * g + 2], memory_odds[g]
        for k in range(memory_odds.shape[1]):
            odds = base[g] * gate_odds[k]
            up[g, k] = (left[k] + odds * right[k]) / (1.0 + odds)


@kernel
def fill_smoothed(first, base, memory_odds, predicted, filtered, out):
    """Fill out, float64 (n_row, n_leaf), with probabilities of leaves given all responses of the series.

    Parameters are those of `fill_filtered`, which has filled `predicted` and `filtered`.

    Notes
    -----
    P(k at t | all) = P(k at t | up to t) sum_l P(l | k) P(l at t + 1 | all) / P(l at t + 1 | up to t); the sum goes up
    the tree. Cost: rows times leaves squared.
    """
    n_leaf = memory_odds.shape[1]
    up = np.empty((2 * n_leaf - 1, n_leaf))
    for series in range(first.size - 1):
        last = first[series + 1] - 1
        for leaf in range(n_leaf):
            out[last, leaf] = filtered[last, leaf]
        for row in range(last - 1, first[series] - 1, -1):
            for leaf in range(n_leaf):
                ratio = out[row + 1, leaf] / predicted[row + 1, leaf]
                for k in range(n_leaf):
                    up[n_leaf - 1 + leaf, k] = ratio
            carry_up(base[row + 1], memory_odds, up)
            total = 0.0
            for k in range(n_leaf):
                out[row, k] = filtered[row, k] * up[0, k]
                total += out[row, k]
            for k in range(n_leaf):  # 1 but for rounding
                out[row, k] /= total


@kernel
def chosen_by_weight(weight, level):
    """Return the entry at a level in [0, 1) of the running sum of weights."""
    total = 0.0
    for k in range(weight.size):
        total += weight[k]
    left, chosen = level * total, 0
    # the last entry with a weight takes what rounding leaves over
    for k in range(weight.size):
        if weight[k] > 0.0:
            chosen = k
            if left < weight[k]:
                break
            left -= weight[k]
    return chosen


@kernel
def fill_drawn_paths(first, base, memory_odds, filtered, key, leaf):
    """Fill leaf, int64 (n_row,), with a draw of all leaves of each series given all its responses, from the end back.

    Parameters are those of `fill_filtered`, which has filled `filtered`. A row's uniform number is a function of key,
    series and step alone.

    Notes
    -----
    Cost: rows times leaves times depth.

    References
    ----------
    Chib (1996), Calculating posterior distributions and modal estimates in Markov mixture models. Journal of
    Econometrics 75.
    """
    n_leaf = memory_odds.shape[1]
    weight = np.empty(n_leaf)
    for series in range(first.size - 1):
        last = first[series + 1] - 1
        for row in range(last, first[series] - 1, -1):
            for k in range(n_leaf):
                weight[k] = filtered[row, k]
                if row < last:
                    weight[k] *= path_probability(base[row + 1], memory_odds, k, leaf[row + 1])
            leaf[row] = chosen_by_weight(weight, uniform(key, series, row - first[series]))
