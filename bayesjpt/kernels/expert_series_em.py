"""Expectation-maximisation of trees of experts whose paths depend on the row before (Baum-Welch).

With z_t the leaf of row t, given all responses of its series, a gate g needs for each leaf k before

      weight   P(z_(t-1) = k, z_t below g)     =  filtered[t-1, k] P(to g | k) sum_(l below g) P(l | g, k) ratio[l]
      share    of that, what goes right at g

with ratio[l] = P(l | all) / P(l | responses before t): the first factor goes down the path to g, the sum comes up its
subtree. These are the cases of a logistic regression whose covariates are x_t and the offset of k.

References: Baum, Petrie, Soules and Weiss (1970), A Maximization Technique, Annals of Mathematical Statistics 41;
Jordan, Ghahramani and Saul (1997), Hidden Markov Decision Trees, NIPS 9.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.kernels.expert_em import improve_leaves, penalty_of
from bayesjpt.kernels.expert_glm import LEAST_WEIGHT, slopes, solve_positive
from bayesjpt.kernels.expert_series import (
    fill_base_odds,
    fill_filtered,
    fill_memory_odds,
    fill_smoothed,
)
from bayesjpt.kernels.expert_series_sweep import fill_evidence
from bayesjpt.kernels.expert_tree import LOGISTIC, dot
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logistic import log_expit_both

_MOST_HALVINGS = 30
_LARGEST_STEP = 20.0
_CONVERGED = 1e-13


class Passes(NamedTuple):
    """What the passes of one E step leave.

    Attributes
    ----------
    base : float64 (n_row, n_gate)
    memory_odds : float64 (n_gate, n_leaf)
    predicted, filtered, smoothed : float64 (n_row, n_leaf)
    """

    base: np.ndarray
    memory_odds: np.ndarray
    predicted: np.ndarray
    filtered: np.ndarray
    smoothed: np.ndarray


class MemoryCases(NamedTuple):
    """Cases of one gate: a row and a leaf before it, -1 for none.

    Attributes
    ----------
    row, before : int64 (n_case,)
    weight, share : float64 (n_case,)
        Probability of the case, and which part of it goes right.
    """

    row: np.ndarray
    before: np.ndarray
    weight: np.ndarray
    share: np.ndarray


@kernel
def _path_to(gate, path):
    """Fill path with the nodes from the root to a gate, and return their number."""
    n, node = 0, gate
    while node > 0:
        n += 1
        node = (node - 1) // 2
    node = gate
    for k in range(n, -1, -1):
        path[k] = node
        node = (node - 1) // 2
    return n + 1


@kernel
def _below(values, gate, n_gate):
    """Return the sum over the leaves below a node; values is float64 (n_leaf,)."""
    lo, hi = gate, gate
    while lo < n_gate:
        lo, hi = 2 * lo + 1, 2 * hi + 2
    total = 0.0
    for leaf in range(lo - n_gate, hi - n_gate + 1):
        total += values[leaf]
    return total


@kernel
def fill_gate_cases(first, passes, gate, cases):
    """Fill the cases of a gate, and return their number; those of no weight to speak of are left out.

    Parameters
    ----------
    first : int64 (n_series + 1,)
    passes : Passes
    gate : int
    cases : MemoryCases
        With room for a case of each row and leaf.
    """
    n_gate, n_leaf = passes.memory_odds.shape
    path, up, n_case = np.empty(8, np.int64), np.empty((2 * n_leaf - 1, n_leaf)), 0
    n_path = _path_to(gate, path)
    for series in range(first.size - 1):
        for row in range(first[series], first[series + 1]):
            if row == first[series]:
                whole = _below(passes.smoothed[row], gate, n_gate)
                if whole > LEAST_WEIGHT:
                    right = _below(passes.smoothed[row], 2 * gate + 2, n_gate)
                    cases.row[n_case], cases.before[n_case] = row, -1
                    cases.weight[n_case], cases.share[n_case] = whole, min(right / whole, 1.0)
                    n_case += 1
                continue
            _fill_ratios_up(passes, row, gate, up)
            for k in range(n_leaf):
                flow = passes.filtered[row - 1, k]
                for step in range(n_path - 1):
                    node = path[step]
                    odds = passes.base[row, node] * passes.memory_odds[node, k]
                    flow *= (odds if path[step + 1] == 2 * node + 2 else 1.0) / (1.0 + odds)
                weight = flow * up[gate, k]
                if weight > LEAST_WEIGHT:
                    odds = passes.base[row, gate] * passes.memory_odds[gate, k]
                    right = flow * odds / (1.0 + odds) * up[2 * gate + 2, k]
                    cases.row[n_case], cases.before[n_case] = row, k
                    cases.weight[n_case], cases.share[n_case] = weight, min(right / weight, 1.0)
                    n_case += 1
    return n_case


@kernel
def _fill_ratios_up(passes, row, gate, up):
    """Fill `up` at a gate and below it: the mean ratio of the leaves below, given each leaf before."""
    n_gate, n_leaf = passes.memory_odds.shape
    lo, hi = gate, gate
    while lo < n_gate:
        lo, hi = 2 * lo + 1, 2 * hi + 2
    for node in range(lo, hi + 1):
        ratio = passes.smoothed[row, node - n_gate] / passes.predicted[row, node - n_gate]
        for k in range(n_leaf):
            up[node, k] = ratio
    while lo > gate:
        lo, hi = (lo - 1) // 2, (hi - 1) // 2
        for node in range(lo, hi + 1):
            for k in range(n_leaf):
                odds = passes.base[row, node] * passes.memory_odds[node, k]
                up[node, k] = (up[2 * node + 1, k] + odds * up[2 * node + 2, k]) / (1.0 + odds)


@kernel
def _case_log_odds(x, case, cases, slot, sign, gate, offset):
    """Return the log odds of one case, its slot and its sign, which is 0 where there is no leaf before."""
    log_odds, before = dot(x[cases.row[case]], gate), cases.before[case]
    if before < 0:
        return log_odds, 0, 0.0
    return log_odds + sign[before] * offset[slot[before]], slot[before], sign[before]


@kernel
def _objective(x, cases, n_case, slot, sign, ridge, gate, offset):
    total = -0.5 * ridge * (dot(gate, gate) + dot(offset, offset))
    for case in range(n_case):
        log_odds, _, _ = _case_log_odds(x, case, cases, slot, sign, gate, offset)
        right, left = log_expit_both(log_odds)
        total += cases.weight[case] * (cases.share[case] * right + (1.0 - cases.share[case]) * left)
    return total


@kernel
def improve_memory(x, cases, n_case, slot, sign, ridge, gate, offset):
    """Move a gate's coefficients and offsets, in place, by one Newton step that does not lower their objective.

    Parameters
    ----------
    x : float64 (n_row, n_covariate)
    cases : MemoryCases
        Of which the first `n_case` count.
    slot : int64 (n_leaf,)
    sign : float64 (n_leaf,)
        Of the gate's level; see `Steps`.
    ridge : float
    gate : float64 (n_covariate,)
    offset : float64 (n_slot,)
    """
    n_x, n = gate.size, gate.size + offset.size
    a, b, step = np.zeros((n, n)), np.empty(n), np.empty(n)
    for i in range(n):
        a[i, i] = ridge
        b[i] = -ridge * (gate[i] if i < n_x else offset[i - n_x])
    for case in range(n_case):
        log_odds, at, by = _case_log_odds(x, case, cases, slot, sign, gate, offset)
        _, slope, curvature = slopes(LOGISTIC, cases.share[case], log_odds, 1.0)
        slope, curvature, covariates = cases.weight[case] * slope, cases.weight[case] * curvature, x[cases.row[case]]
        for i in range(n_x):
            scaled = curvature * covariates[i]
            b[i] += slope * covariates[i]
            for j in range(i + 1):
                a[i, j] += scaled * covariates[j]
            a[n_x + at, i] += by * scaled
        b[n_x + at] += by * slope
        a[n_x + at, n_x + at] += by * by * curvature
    slope_of = b.copy()
    solve_positive(a, b, step)
    gain, largest = 0.0, 0.0
    for i in range(n):
        gain += 0.5 * slope_of[i] * step[i]
        largest = max(largest, abs(step[i]))
    before = _objective(x, cases, n_case, slot, sign, ridge, gate, offset)
    factor = min(1.0, _LARGEST_STEP / max(largest, 1e-300))
    moved, moved_offset = gate.copy(), offset.copy()
    for _ in range(_MOST_HALVINGS):
        for i in range(n_x):
            moved[i] = gate[i] + factor * step[i]
        for i in range(offset.size):
            moved_offset[i] = offset[i] + factor * step[n_x + i]
        # so near the optimum that rounding hides the gain, Newton's step is right
        small = gain <= _CONVERGED * (1.0 + abs(before))
        if small or _objective(x, cases, n_case, slot, sign, ridge, moved, moved_offset) >= before:
            copy_into(moved, gate)
            copy_into(moved_offset, offset)
            return
        factor *= 0.5


@kernel
def fill_passes(task, steps, state, memory, passes):
    """Fill what an E step needs, and return the log likelihood."""
    evidence, log_density = np.empty(passes.filtered.shape), np.empty(passes.filtered.shape[0])
    fill_base_odds(task.gate_x, state.gate, passes.base)
    fill_memory_odds(steps.slot, steps.sign, memory.offset, passes.memory_odds)
    fill_evidence(task, steps.seen, state, evidence)
    fill_filtered(
        steps.first, passes.base, passes.memory_odds, evidence, passes.predicted, passes.filtered, log_density
    )
    fill_smoothed(steps.first, passes.base, passes.memory_odds, passes.predicted, passes.filtered, passes.smoothed)
    return log_density.sum()


@kernel
def series_em_pass(task, steps, state, memory, penalty, passes, cases, posterior):
    """Improve a state and its memory by one pass of EM, and return the penalised log likelihood that they had.

    Parameters
    ----------
    task : Task
    steps : Steps
    state : Coefficients
        Changed in place, as is `memory`.
    memory : Memory
    penalty : Penalty
    passes : Passes
    cases : MemoryCases
        Room for a case of each row and leaf.
    posterior : float64 (n_node, n_row)
        Filled at leaves; rows without responses have none.

    Notes
    -----
    Cost: rows times leaves squared times depth, and rows times leaves times gates times covariates squared.
    """
    task, steps, state, memory = borrowed(task), borrowed(steps), borrowed(state), borrowed(memory)
    penalty, passes, cases = borrowed(penalty), borrowed(passes), borrowed(cases)
    n_leaf = state.dispersion.shape[0]
    n_gate, opened = n_leaf - 1, np.ones(n_leaf - 1, np.bool_)
    value = fill_passes(task, steps, state, memory, passes) + penalty_of(task, state, opened, penalty)
    for g in range(n_gate):
        value -= 0.5 * penalty.ridge * dot(memory.offset[g], memory.offset[g])
    level, last = 0, 1
    for g in range(n_gate):
        if g == last:
            level += 1
            last = 2 * last + 1
        n_case = fill_gate_cases(steps.first, passes, g, cases)
        slot, sign = steps.slot[level], steps.sign[level]
        improve_memory(task.gate_x, cases, n_case, slot, sign, penalty.ridge, state.gate[g], memory.offset[g])
    for row in range(posterior.shape[1]):
        for leaf in range(n_leaf):
            posterior[n_gate + leaf, row] = passes.smoothed[row, leaf] if steps.seen[row] else 0.0
    improve_leaves(task, state, opened, penalty, posterior, 1)
    return value
