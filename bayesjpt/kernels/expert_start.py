"""Where chains of gated experts begin: greedy hard splits of one covariate each, with a linear fit on either side.

For every covariate and a few cuts of it, rows fall into bins; the sums of products of a bin are those of its rows, and
sums over bins on one side of a cut are the normal equations of that side:

      bins       | 0 | 1 | 2 | 3 |
      cut 1          <- left | right ->          residual squares of both from sums of bins 0..1 and 2..3
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.kernels.expert_tree import GAMMA, MULTINOMIAL, POISSON, Task
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.normal_draw import factorise

_N_BIN = 16
_MOST_ROWS = 4000
_LEAST_ROWS = 5
_LEAST_SHARE = 0.02
_RIDGE = 1.0
SHARPNESS = 4.0
"""Log odds of a gate one standard deviation, within its node, from the cut."""


@kernel
def _residual_score(total, n_row, n_covariate, ridge, buffer, solved):
    """Return rows times the sum of the logarithms of the residual variances of all responses.

    total : float64 (n, n), lower triangle of the sums of products of covariates, then responses.
    """
    n = total.shape[0]
    for i in range(n_covariate):
        for j in range(i + 1):
            buffer[i, j] = total[i, j]
        buffer[i, i] += ridge
    factorise(buffer, n_covariate)
    score = 0.0
    for r in range(n_covariate, n):
        squares = total[r, r]
        for i in range(n_covariate):
            value = total[r, i]
            for k in range(i):
                value -= buffer[i, k] * solved[k]
            solved[i] = value / buffer[i, i]
            squares -= solved[i] * solved[i]
        # as if two more rows had a tenth of the response's variance
        score += n_row * math.log((max(squares, 0.0) + 0.2) / (n_row + 2.0))
    return score


@kernel
def fill_split_scores(both, n_covariate, code, n_bin, ridge, least, out):
    """Fill out, float64 (n_splitter, n_bin - 1), with the score of each cut; infinite where a side is too small.

    Parameters
    ----------
    both : float64 (n_row, n_covariate + n_response)
        Covariates and standardised responses.
    n_covariate : int
    code : int64 (n_splitter, n_row)
        The bin of each row by each of the covariates that may split.
    n_bin : int
    ridge : float
        Precision of coefficients around 0.
    least : int
        Rows that each side must have.
    out : float64 (n_splitter, n_bin - 1)

    Notes
    -----
    Cost: splitters times (rows times columns squared + bins times covariates cubed).
    """
    n_row, n = both.shape
    sums, count = np.empty((n_bin, n, n)), np.empty(n_bin, np.int64)
    left, right = np.empty((n, n)), np.empty((n, n))
    buffer, solved = np.empty((n, n)), np.empty(n)
    for s in range(code.shape[0]):
        sums[:] = 0.0
        count[:] = 0
        for row in range(n_row):
            count[code[s, row]] += 1
            into = sums[code[s, row]]
            for i in range(n):
                for j in range(i + 1):
                    into[i, j] += both[row, i] * both[row, j]
        left[:] = 0.0
        right[:] = 0.0
        for k in range(n_bin):
            right += sums[k]
        n_left = 0
        for cut in range(n_bin - 1):
            left += sums[cut]
            right -= sums[cut]
            n_left += count[cut]
            out[s, cut] = np.inf
            if min(n_left, n_row - n_left) >= least:
                out[s, cut] = _residual_score(left, n_left, n_covariate, ridge, buffer, solved) + _residual_score(
                    right, n_row - n_left, n_covariate, ridge, buffer, solved
                )


def begin_paths(task: Task, gate: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the leaf of each row in a tree of hard splits, int64 (n_row,), learned from a random half of the rows.

    Parameters
    ----------
    task : Task
    gate : float64 (n_gate, n_gate_covariate)
        All 0; filled with gates that say the same softly.
    rng : numpy.random.Generator
    """
    n_row, n_gate = task.x.shape[0], gate.shape[0]
    used = np.sort(rng.permutation(n_row)[: min(max(n_row // 2, 50), _MOST_ROWS)])
    both = np.ascontiguousarray(np.concatenate([task.x[used], working_responses(task)[used]], axis=1))
    inside: dict[int, np.ndarray] = {0: np.arange(used.size)}
    for node in range(n_gate):
        rows = inside.pop(node)
        found = best_split(both[rows], task.x.shape[1], task.gate_x[used[rows]])
        right = np.zeros(rows.size, bool)
        if found is not None:
            covariate, cut = found
            values = task.gate_x[used[rows], covariate]
            right = values > cut
            slope = SHARPNESS / max(float(values.std()), 1e-6)
            gate[node, covariate], gate[node, 0] = slope, -slope * cut
        inside[2 * node + 1], inside[2 * node + 2] = rows[~right], rows[right]
    at = np.zeros(n_row, np.int64)
    for _ in range(int(math.log2(n_gate + 1))):
        at = 2 * at + 1 + ((task.gate_x * gate[at]).sum(axis=1) > 0.0)
    return at - n_gate


def begin_ways(task: Task, depth: int, n_way: int, rng: np.random.Generator) -> np.ndarray:
    """Return the leaf of each row, int64 (n_row,), where gates of several ways split their largest parts in turn.

    Learned from a random half of the rows, as `begin_paths` does; there is no gate that says the same as several splits
    of single covariates.
    """
    n_row = task.x.shape[0]
    used = np.sort(rng.permutation(n_row)[: min(max(n_row // 2, 50), _MOST_ROWS)])
    both = np.ascontiguousarray(np.concatenate([task.x[used], working_responses(task)[used]], axis=1))
    place = np.zeros(n_row, np.int64)
    for _ in range(depth):
        inside, place = place, place * n_way
        for node in np.unique(inside):
            place[inside == node] += _ways(task, both, (used, inside == node), n_way)
    return place


def _ways(task: Task, both: np.ndarray, which: tuple[np.ndarray, np.ndarray], n_way: int) -> np.ndarray:
    """Return the way of each row at a gate; `which` are the rows of `both`, and a mask of those at the gate."""
    used, inside = which
    rows, learned = np.flatnonzero(inside), np.flatnonzero(inside[used])
    way, learned_way = np.zeros(rows.size, np.int64), np.zeros(learned.size, np.int64)
    closed: set[int] = set()
    n = 1
    while n < n_way and len(closed) < n:
        part = max((k for k in range(n) if k not in closed), key=lambda k: int((learned_way == k).sum()))
        chosen = learned[learned_way == part]
        found = best_split(both[chosen], task.x.shape[1], task.gate_x[used[chosen]])
        if found is None:
            closed.add(part)
            continue
        covariate, cut = found
        way[(way == part) & (task.gate_x[rows, covariate] > cut)] = n
        learned_way[(learned_way == part) & (task.gate_x[used[learned], covariate] > cut)] = n
        n += 1
    return way


def working_responses(task: Task) -> np.ndarray:
    """Return what splits look at, float64 (n_row, n): responses as numbers of about one unit of spread."""
    columns = []
    for c, kind in enumerate(task.kind):
        y = task.y[c]
        if kind == MULTINOMIAL:
            columns += [y == k for k in range(int(y.max()) + 1)]
        else:
            columns.append(np.log(y + 0.5) if kind == POISSON else np.log(y) if kind == GAMMA else y)
    out = np.array(columns, np.float64).T
    return (out - out.mean(axis=0)) / np.maximum(out.std(axis=0), 1e-9)


def best_split(both: np.ndarray, n_covariate: int, gate_x: np.ndarray) -> tuple[int, float] | None:
    """Return (covariate, cut) of the best split of some rows, None where no cut leaves enough on both sides."""
    n_row = both.shape[0]
    least = max(_LEAST_ROWS, int(_LEAST_SHARE * n_row), n_covariate // 2)
    if n_row < 2 * least:
        return None
    cuts, codes = [], np.zeros((gate_x.shape[1] - 1, n_row), np.int64)
    for s in range(1, gate_x.shape[1]):
        distinct = np.unique(np.quantile(gate_x[:, s], np.linspace(0.0, 1.0, _N_BIN + 1)[1:-1], method="lower"))
        cuts.append(np.concatenate([distinct, np.full(_N_BIN - 1 - distinct.size, np.inf)]))
        codes[s - 1] = np.searchsorted(cuts[-1], gate_x[:, s], side="left")
    scores = np.full((codes.shape[0], _N_BIN - 1), np.inf)
    fill_split_scores(np.ascontiguousarray(both), n_covariate, codes, _N_BIN, _RIDGE, least, scores)
    covariate, number = np.unravel_index(int(np.argmin(scores)), scores.shape)
    if not np.isfinite(scores[covariate, number]):
        return None
    cut = cuts[covariate][number]
    above = gate_x[gate_x[:, covariate + 1] > cut, covariate + 1]
    return int(covariate) + 1, float(0.5 * (cut + above.min()))
