"""Leaves of one dictionary exchange their rows: a member that explains nothing may take what another explains.

    before     f: rows A     g: rows B          accepted with probability min(1, r),
    after      f: rows B     g: rows A          r = e_f(B) e_g(A) d(B, A) / (e_f(A) e_g(B) d(A, B))

e is the evidence of rows under a family, its parameters integrated out, and d that of their numbers under the
Dirichlet prior of the weights. So the allocation moves with weights and parameters out of the way, and both are drawn
from their conditionals afterwards. A family without an exact draw of its parameters proposes them together with the
rows: its e is then the density of rows and parameters over that of the proposal (`Family.log_evidence`). Rows whose
evidence is not known, such as recorded zeros, stay where they are, with all that share their leaf.

Before a sweep the members of each dictionary are paired at random. So rows are added up once for their own leaf and
once for the other, and nothing needs to remember which rows these were.

Reference: van Dyk and Park (2008), Partially collapsed Gibbs samplers, Journal of the American Statistical Association
103: what was integrated out has to be drawn next.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.plan import AS_WHOLE, WHOLE, Plan
from bayesjpt.families import dispatch, registry
from bayesjpt.families.record import OK
from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.borrowed import borrowed, by_address
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.jit import kernel


@by_address
class Swaps(NamedTuple):
    """What leaves would hold if they exchanged their rows with another leaf.

    Attributes
    ----------
    group_ptr : int32 (n_group + 1,), member : int32 (n_member,)
        Leaves of each dictionary that may exchange their rows.
    edge : int32 (n_leaf,)
        The edge above each of them.
    other : int32 (n_leaf,)
        -1 for a leaf without one.
    stats, chunk_stats : float64 (n_stats,)
        Of each leaf: statistics under it of the other leaf's rows, of all rows and of a chunk.
    """

    group_ptr: np.ndarray
    member: np.ndarray
    edge: np.ndarray
    other: np.ndarray
    stats: np.ndarray
    chunk_stats: np.ndarray


def make_swaps(plan: Plan) -> Swaps:
    """Return the Swaps of a plan; no leaf may swap yet.

    Leaves exchange rows whose families know their evidence, unless they are truncated to a cell or have rows from
    elsewhere too.
    """
    n_parent = np.bincount(plan.child, minlength=plan.kind.size)
    n_child = np.diff(plan.child_ptr)
    knows = np.array([family.log_evidence is not None for family in registry.FAMILIES], bool)
    taking_part = knows[plan.leaf_family] & (plan.leaf_cut == WHOLE) & (plan.leaf_update == AS_WHOLE)
    taking_part &= ~plan.leaf_by_value
    edges = np.flatnonzero(np.repeat(plan.kind == arrays.LIKELIHOOD, n_child))
    parent = np.repeat(np.arange(plan.kind.size), n_child)[edges]
    leaf = plan.leaf_of[plan.child[edges]]
    free = taking_part[leaf] & (n_parent[plan.child[edges]] == 1)
    sizes = np.bincount(parent[free], minlength=plan.kind.size)
    free &= sizes[parent] > 1
    edge = np.full(plan.leaf_family.size, -1, np.int32)
    edge[leaf[free]] = edges[free]
    return Swaps(
        np.concatenate([[0], np.cumsum(sizes[sizes > 1])]).astype(np.int32),
        leaf[free].astype(np.int32),
        edge,
        np.full(plan.leaf_family.size, -1, np.int32),
        np.zeros(plan.stat_at[-1]),
        np.zeros(plan.stat_at[-1]),
    )


@kernel
def propose_swaps(swaps, rng):
    """Pair the members of each dictionary at random; of an odd number one is left over."""
    swaps.other[:] = -1
    for group in range(swaps.group_ptr.size - 1):
        order = swaps.member[swaps.group_ptr[group] : swaps.group_ptr[group + 1]].copy()
        for i in range(order.size - 1, 0, -1):
            j = min(int(rng.random() * (i + 1)), i)
            order[i], order[j] = order[j], order[i]
        for i in range(0, order.size - 1, 2):
            swaps.other[order[i]] = order[i + 1]
            swaps.other[order[i + 1]] = order[i]


@kernel
def _log_evidence(plan, leaf, stats, hyper, hyper_at, theta):
    const = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
    leaf_stats, prior = stats[plan.stat_at[leaf] : plan.stat_at[leaf + 1]], hyper[hyper_at[leaf] : hyper_at[leaf + 1]]
    return dispatch.log_evidence(plan.leaf_family[leaf], leaf_stats, prior, const, theta)


@kernel
def _draw_afresh(plan, leaf, stats, hyper, hyper_at, theta, rng):
    const = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
    leaf_stats, prior = stats[plan.stat_at[leaf] : plan.stat_at[leaf + 1]], hyper[hyper_at[leaf] : hyper_at[leaf + 1]]
    return dispatch.draw_afresh(plan.leaf_family[leaf], leaf_stats, prior, const, theta, rng)


@kernel
def _take(plan, leaf, offered, stats):
    for k in range(plan.stat_at[leaf], plan.stat_at[leaf + 1]):
        stats[k] = offered[k]


@apart
@kernel
def swap_rows(plan, swaps, stats, edge_count, concentration, hyper, hyper_at, theta, rng):
    """Let each proposed pair of leaves exchange its rows, or leave them, in place.

    Parameters
    ----------
    plan : Plan
    swaps : Swaps
        As `propose_swaps` and then `allocate` left them.
    stats, edge_count : as `allocate` left them
    concentration, hyper, hyper_at, theta, rng : as in `draw_params`, which has to follow

    Returns
    -------
    int
        How many pairs exchanged rows.
    """
    plan, swaps = borrowed(plan), borrowed(swaps)
    n_swapped = 0
    for leaf in range(swaps.other.size):
        other = swaps.other[leaf]
        # -1, or a pair that had its turn as (other, leaf)
        if other <= leaf:
            continue
        e, o = swaps.edge[leaf], swaps.edge[other]
        # nothing to exchange
        if edge_count[e] == 0 and edge_count[o] == 0:
            continue
        first = theta[plan.theta_at[leaf] : plan.theta_at[leaf] + plan.theta_len[leaf]]
        second = theta[plan.theta_at[other] : plan.theta_at[other] + plan.theta_len[other]]
        log_ratio = -_log_evidence(plan, leaf, stats, hyper, hyper_at, first)
        log_ratio -= _log_evidence(plan, other, stats, hyper, hyper_at, second)
        # both sums of numbers stay as they are: of d these four factors are left
        log_ratio += math.lgamma(concentration[e] + edge_count[o]) - math.lgamma(concentration[e] + edge_count[e])
        log_ratio += math.lgamma(concentration[o] + edge_count[e]) - math.lgamma(concentration[o] + edge_count[o])
        # copies: theta stays as it is unless the exchange is accepted
        new_first, new_second = first.copy(), second.copy()
        status = _draw_afresh(plan, leaf, swaps.stats, hyper, hyper_at, new_first, rng)
        if status == OK:
            status = _draw_afresh(plan, other, swaps.stats, hyper, hyper_at, new_second, rng)
        if status != OK:
            continue
        log_ratio += _log_evidence(plan, leaf, swaps.stats, hyper, hyper_at, new_first)
        log_ratio += _log_evidence(plan, other, swaps.stats, hyper, hyper_at, new_second)
        # 1 - u is never 0, so the logarithm is finite
        if not math.log1p(-rng.random()) < log_ratio:  # NaN: evidence that is not known
            continue
        copy_into(new_first, first)
        copy_into(new_second, second)
        _take(plan, leaf, swaps.stats, stats)
        _take(plan, other, swaps.stats, stats)
        edge_count[e], edge_count[o] = edge_count[o], edge_count[e]
        n_swapped += 1
    return n_swapped
