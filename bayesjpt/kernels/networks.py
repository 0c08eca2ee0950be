"""Complete rows under cutset networks of labels: each walks down its splits once, and then reads a table a column.

      row  0 1 1 0 1     split by column 2: 1 -> split by column 0: 0 -> a tree:  t0[x0] + t1[x0, x1] + t3[x1, x3] + ...

No sum is taken, since of a row nothing is unknown. Rows of one tree are taken together, while its tables are at hand.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.circuit.networks import Network
from bayesjpt.kernels.gibbs import LOG_SMALLEST_WEIGHT
from bayesjpt.numerics.draw import draw_log_dirichlet
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.rising import log_rising

_BLOCK = 256
"""Rows that are routed together: with a hundred columns they fill the first cache."""


def rows_of_codes(codes: np.ndarray) -> np.ndarray:
    """Return codes, (n_column, n_row), row by row: uint8 (n_row, n_column) where they are that small, else int16."""
    small = codes.max(initial=0) < 256
    return np.ascontiguousarray(codes.T, np.uint8 if small else np.int16)


def count_rows(network: Network, codes: np.ndarray) -> np.ndarray:
    """Return the rows of each way and table entry, int64 (n_entry,).

    Parameters
    ----------
    network : Network
    codes : integers (n_row, n_column)
        Groups of labels, of `rows_of_codes`; none is missing.
    """
    count = np.zeros(network.n_entry, np.int64)
    begin, rows = _rows_by_part(network.split, network.way_ptr, network.way, codes)
    _count_ways(network.split, network.way_ptr, network.way, codes, count)
    _count(rows, begin, network.tree_ptr, *_places(network), codes, count)
    return count


def fill_scores(network: Network, log_weight: np.ndarray, codes: np.ndarray, out: np.ndarray) -> None:
    """Fill out, float64 (n_draw, n_row), with the log probability of each row's groups under each draw.

    Parameters
    ----------
    network : Network
    log_weight : float64 (n_draw, n_entry), nats
    codes : as in `count_rows`
    """
    begin, rows = _rows_by_part(network.split, network.way_ptr, network.way, codes)
    _score(
        rows, begin, network.split, network.way_ptr, network.way, network.tree_ptr, *_places(network), codes,
        log_weight, out,
    )  # fmt: skip


def mean_log_weights(network: Network, count: np.ndarray, ess: float) -> np.ndarray:
    """Return the logarithm of the posterior mean of each weight, float64 (n_entry,), `ess` as in `draw_log_weights`."""
    out = np.empty(count.size)
    _mean(_sum_pointers(network), count.astype(np.float64), ess, out)
    return out


def log_evidence(network: Network, count: np.ndarray, ess: np.ndarray) -> np.ndarray:
    """Return the log probability of the rows' ways and groups, weights integrated out, float64 (n,), nats.

    Parameters
    ----------
    network : Network
    count : integers (n_entry,)
    ess : float64 (n,)
        Imaginary rows of each sum, one number for all of them, as in `draw_log_weights`.
    """
    out = np.empty(ess.size)
    _evidence(_sum_pointers(network), count.astype(np.float64), ess, out)
    return out


def draw_log_weights(network: Network, count: np.ndarray, ess: float, rng: np.random.Generator) -> np.ndarray:
    """Return the logarithm of weights drawn from their posterior, float64 (n_entry,).

    Parameters
    ----------
    network : Network
    count : integers (n_entry,)
        Of `count_rows`.
    ess : float
        Imaginary rows of each sum, divided evenly over its ways.
    rng : numpy.random.Generator
    """
    out = np.empty(count.size)
    _draw(_sum_pointers(network), count.astype(np.float64), ess, LOG_SMALLEST_WEIGHT, rng, out)
    return out


def _places(network: Network) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return where each place's table begins, its column, that of its parent, and the entries from one group of the
    parent to the next: 0 for roots, whose own column stands for that of the parent. All are uint32 (n_place,).
    """
    out = np.empty((4, network.column.size), np.uint32)
    _fill_places(network.tree_ptr, network.column, network.parent, network.table_ptr, network.n_group, out)
    return out[0], out[1], out[2], out[3]


def _sum_pointers(network: Network) -> np.ndarray:
    """Return where the entries of each sum begin and end, int64 (n_sum + 1,)."""
    # parts without a split have no ways: where the next split's begin, those of the one before end
    of_ways = network.way_ptr[np.flatnonzero(network.split >= 0)]
    n_group = network.n_group[network.column]
    n_row = np.diff(network.table_ptr) // n_group
    size = np.repeat(n_group, n_row)
    return np.concatenate([of_ways, network.way.size + np.concatenate([[0], np.cumsum(size)])]).astype(np.int64)


@kernel
def _fill_places(tree_ptr, column, parent, table_ptr, n_group, out):
    for part in range(tree_ptr.size - 1):
        first = tree_ptr[part]
        for place in range(first, tree_ptr[part + 1]):
            has_parent = parent[place] >= 0
            out[0, place], out[1, place] = table_ptr[place], column[place]
            out[2, place] = column[first + parent[place]] if has_parent else column[place]
            out[3, place] = n_group[column[place]] if has_parent else 0


@kernel
def _route(split, way_ptr, way, codes, part_of):
    """Fill part_of, int32 (n_row,), with the part whose tree each row comes to.

    Rows go down the splits level by level, a block of them at once: a row alone would wait at each split for what says
    where the next one is, and the steps of different rows do not wait for each other.
    """
    n_row = codes.shape[0]
    active = np.empty(_BLOCK, np.int64)
    part_of[:] = 0
    for first in range(0, n_row, _BLOCK):
        n_active = min(_BLOCK, n_row - first) if split[0] >= 0 else 0
        for k in range(n_active):
            active[k] = first + k
        while n_active > 0:
            n_left = 0
            for k in range(n_active):
                row = active[k]
                part = part_of[row]
                part = way[way_ptr[part] + codes[row, split[part]]]
                part_of[row] = part
                active[n_left] = row  # overwritten by the next unless the row has another split before it
                n_left += np.int64(split[part] >= 0)
            n_active = n_left


@kernel
def _rows_by_part(split, way_ptr, way, codes):
    """Return (begin, row): rows part by part, those of part p from begin[p] to begin[p + 1]."""
    n_row = codes.shape[0]
    # counted two places on: the pass over rows moves begin[p + 1] from where part p begins to where it ends
    part_of, begin = np.empty(n_row, np.int32), np.zeros(split.size + 2, np.int64)
    _route(split, way_ptr, way, codes, part_of)
    for row in range(n_row):
        begin[part_of[row] + 2] += 1
    for part in range(split.size):
        begin[part + 2] += begin[part + 1]
    rows = np.empty(n_row, np.int64)
    for row in range(n_row):
        rows[begin[part_of[row] + 1]] = row
        begin[part_of[row] + 1] += 1
    return begin[: split.size + 1], rows


@kernel
def _count_ways(split, way_ptr, way, codes, count):
    for row in range(codes.shape[0]):
        part = np.int64(0)
        while split[part] >= 0:
            at = way_ptr[part] + codes[row, split[part]]
            count[at] += 1
            part = np.int64(way[at])


@kernel
def _count(rows, begin, tree_ptr, base, column, above, stride, codes, count):
    for part in range(begin.size - 1):
        for k in range(begin[part], begin[part + 1]):
            x = codes[rows[k]]
            for place in range(tree_ptr[part], tree_ptr[part + 1]):
                count[base[place] + stride[place] * x[above[place]] + x[column[place]]] += 1


@kernel
def _score(rows, begin, split, way_ptr, way, tree_ptr, base, column, above, stride, codes, log_weight, out):
    n_draw = log_weight.shape[0]
    entry, of_ways = np.empty(column.size, np.uint32), np.empty(n_draw)
    for part in range(begin.size - 1):
        if begin[part] == begin[part + 1]:
            continue
        x, at = codes[rows[begin[part]]], np.int64(0)
        of_ways[:] = 0.0
        while split[at] >= 0:  # all rows of a part have come the same way
            one = way_ptr[at] + x[split[at]]
            for draw in range(n_draw):
                of_ways[draw] += log_weight[draw, one]
            at = np.int64(way[one])
        first, last = tree_ptr[part], tree_ptr[part + 1]
        row_entry = entry[: last - first]
        of_tree = base[first:last], column[first:last], above[first:last], stride[first:last]
        if n_draw == 1:
            for k in range(begin[part], begin[part + 1]):
                out[0, rows[k]] = of_ways[0] + _summed(codes[rows[k]], of_tree, log_weight[0])
            continue
        for k in range(begin[part], begin[part + 1]):
            _fill_entries(codes[rows[k]], of_tree, row_entry)
            for draw in range(n_draw):
                out[draw, rows[k]] = of_ways[draw] + _gathered(log_weight[draw], row_entry)


@kernel
def _fill_entries(x, of_tree, out):
    """Fill out with the table entries of a row; no index is signed, since numba looks whether those are negative."""
    base, column, above, stride = of_tree
    for k in range(out.size):
        out[k] = base[k] + stride[k] * np.uint32(x[above[k]]) + np.uint32(x[column[k]])


@kernel
def _summed(x, of_tree, table):
    """Return what `_gathered` does of the entries of a row, which are not kept for other draws."""
    base, column, above, stride = of_tree
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    n = base.size
    whole = n - n % 4
    for k in range(0, whole, 4):
        a += table[base[k] + stride[k] * np.uint32(x[above[k]]) + np.uint32(x[column[k]])]
        b += table[base[k + 1] + stride[k + 1] * np.uint32(x[above[k + 1]]) + np.uint32(x[column[k + 1]])]
        c += table[base[k + 2] + stride[k + 2] * np.uint32(x[above[k + 2]]) + np.uint32(x[column[k + 2]])]
        d += table[base[k + 3] + stride[k + 3] * np.uint32(x[above[k + 3]]) + np.uint32(x[column[k + 3]])]
    for k in range(whole, n):
        a += table[base[k] + stride[k] * np.uint32(x[above[k]]) + np.uint32(x[column[k]])]
    # added up as in `_gathered`: a draw scores alike by itself and among others
    return (a + b) + (c + d)


@kernel
def _gathered(table, entry):
    """Return the sum of some entries of a table: in four sums, of which none waits for the others."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    n = entry.size
    whole = n - n % 4
    for k in range(0, whole, 4):
        a += table[entry[k]]
        b += table[entry[k + 1]]
        c += table[entry[k + 2]]
        d += table[entry[k + 3]]
    for k in range(whole, n):
        a += table[entry[k]]
    return (a + b) + (c + d)


@kernel
def _mean(ptr, count, ess, out):
    for k in range(ptr.size - 1):
        first, last = ptr[k], ptr[k + 1]
        total = 0.0
        for e in range(first, last):
            total += count[e]
        for e in range(first, last):
            out[e] = math.log((count[e] + ess / (last - first)) / (total + ess))


@kernel
def _evidence(ptr, count, ess, out):
    for k in range(ess.size):
        value = 0.0
        for s in range(ptr.size - 1):
            n, total = ptr[s + 1] - ptr[s], 0.0
            for e in range(ptr[s], ptr[s + 1]):
                if count[e] > 0:
                    value += log_rising(ess[k] / n, count[e])
                    total += count[e]
            if total > 0.0:
                value -= log_rising(ess[k], total)
        out[k] = value


@kernel
def _draw(ptr, count, ess, least, rng, out):
    most = 1
    for k in range(ptr.size - 1):
        most = max(most, ptr[k + 1] - ptr[k])
    concentration = np.empty(most)
    for k in range(ptr.size - 1):
        first, n = ptr[k], ptr[k + 1] - ptr[k]
        # the only way has weight 1, and takes no number from the generator
        if n == 1:
            out[first] = 0.0
            continue
        for e in range(n):
            concentration[e] = count[first + e] + ess / n
        draw_log_dirichlet(concentration[:n], out[first : first + n], rng)
        for e in range(first, first + n):
            out[e] = max(out[e], least)
