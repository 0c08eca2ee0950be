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
from bayesjpt.numerics.jit import kernel, read_only
from bayesjpt.numerics.rising import log_rising

_BLOCK = 256
"""Rows that are routed together: with a hundred columns they fill the first cache."""

_APART = 64
"""Rows between columns of a block besides: a power of two apart, they would share few places of the cache."""

_TOGETHER = 16
"""Rows that loops take at once."""

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
"""Bits to the upper half of two numbers in one, and those of the lower half."""

_TREE = _LOW
"""In place of a split's column: there is none, rows have come to their tree."""


def count_rows(network: Network, codes: np.ndarray) -> np.ndarray:
    """Return the rows of each way and table entry, int64 (n_entry,).

    Parameters
    ----------
    network : Network
    codes : integers (n_row, n_column)
        Groups of labels, of `circuit.trees.group_rows`; none is missing.
    """
    count, codes = np.zeros(network.n_entry, np.int64), read_only(codes)
    begin, rows = _rows_by_part(network.split, network.way_ptr, network.way, codes)
    _count_ways(network.split, network.way_ptr, network.way, codes, count)
    _count(rows, begin, network.tree_ptr, _places(network), network.n_group, codes, count)
    return count


def fill_scores(network: Network, log_weight: np.ndarray, codes: np.ndarray, out: np.ndarray) -> None:
    """Fill out, float64 (n_draw, n_row), with the log probability of each row's groups under each draw.

    Parameters
    ----------
    network : Network
    log_weight : float64 (n_draw, n_entry), nats
    codes : as in `count_rows`
    """
    codes = read_only(codes)
    begin, rows = _rows_by_part(network.split, network.way_ptr, network.way, codes)
    _score(
        rows, begin, network.split, network.way_ptr, network.way, network.tree_ptr, _places(network), network.n_group,
        codes, log_weight, out,
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


def _places(network: Network) -> np.ndarray:
    """Return uint64 (n_place, 2), two numbers in each: where a place's table begins, and in the lower half the entries
    from one group of the parent to the next; its column, and in the lower half that of its parent. Roots have none, so
    that the entries are 0 and their own column stands for that of the parent.
    """
    out = np.empty((network.column.size, 2), np.uint64)
    _fill_places(network.tree_ptr, network.column, network.parent, network.table_ptr, network.n_group, out)
    return out


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
            own, has_parent = np.uint64(column[place]), parent[place] >= 0
            above = np.uint64(column[first + parent[place]]) if has_parent else own
            stride = np.uint64(n_group[column[place]]) if has_parent else np.uint64(0)
            out[place, 0] = (np.uint64(table_ptr[place]) << _HALF) | stride
            out[place, 1] = (own << _HALF) | above


@kernel
def _steps(split, way_ptr, way):
    """Return, uint64 (1 + n_way,), where the first part and each way lead: to the column of a part's split in the lower
    half and the first of its ways, counted from 1, in the upper; or to `_TREE` and a part without a split.
    """
    out = np.empty(way.size + 1, np.uint64)
    for one in range(out.size):
        part = np.int64(way[one - 1]) if one > 0 else np.int64(0)
        low = np.uint64(split[part]) if split[part] >= 0 else _TREE
        high = np.uint64(way_ptr[part] + 1) if split[part] >= 0 else np.uint64(part)
        out[one] = (high << _HALF) | low
    return out


@kernel
def _route(split, way_ptr, way, codes, part_of):
    """Fill part_of, int32 (n_row,), with the part whose tree each row comes to.

    Rows go down the splits level by level, a block of them at once: a row alone would wait at each split for what says
    where the next one is, and the steps of different rows do not wait for each other. A step is one number, so that the
    next one waits for a code and a step alone; all that is counted is unsigned, which no index has to be tested for.
    """
    n_row = codes.shape[0]
    steps = _steps(split, way_ptr, way)
    rows, at = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint64)
    part_of[:] = 0
    for first in range(0, n_row, _BLOCK):
        n_active = np.uint64(min(_BLOCK, n_row - first) if split[0] >= 0 else 0)
        for k in range(n_active):
            rows[k], at[k] = np.uint64(first) + k, steps[0]
        while n_active > 0:
            n_left = np.uint64(0)
            for k in range(n_active):
                row, step = rows[k], at[k]
                step = steps[(step >> _HALF) + np.uint64(codes[row, step & _LOW])]
                part_of[row] = np.int32(step >> _HALF)  # until its tree is reached, where the next ways begin
                rows[n_left], at[n_left] = row, step  # overwritten by the next unless the row has another split ahead
                n_left += np.uint64((step & _LOW) != _TREE)
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
def _count(rows, begin, tree_ptr, places, n_group, codes, count):
    block = np.zeros((codes.shape[1], _BLOCK + _APART), codes.dtype)
    for part in range(begin.size - 1):
        of_tree = places[tree_ptr[part] : tree_ptr[part + 1]]
        for lo in range(begin[part], begin[part + 1], _BLOCK):
            some = rows[lo : min(lo + _BLOCK, begin[part + 1])]
            _turn(codes, some, of_tree, block)
            for place in range(len(of_tree)):
                own, above, stride = _columns(of_tree, place)
                x, y = block[own, : some.size], block[above, : some.size]
                of_place = count[of_tree[place, 0] >> _HALF :]
                if n_group[own] == 2 and n_group[above] == 2 and stride > 0:
                    _count_four(y, x, of_place)
                else:
                    _count_entries(stride, y, x, of_place)


@kernel
def _count_four(above, x, out):
    n_above, n_x, n_both = np.int64(0), np.int64(0), np.int64(0)
    for k in range(x.size):  # sums, of which none waits for an entry that was just written
        n_above += np.int64(above[k])
        n_x += np.int64(x[k])
        n_both += np.int64(above[k] & x[k])
    out[0] += x.size - n_above - n_x + n_both
    out[1] += n_x - n_both
    out[2] += n_above - n_both
    out[3] += n_both


@kernel
def _count_entries(stride, above, x, out):
    for k in range(x.size):
        out[stride * np.uint64(above[k]) + np.uint64(x[k])] += 1


@kernel
def _columns(places, k):
    """Return the column of a place, that of its parent, and the entries from one group of the parent to the next."""
    return places[k, 1] >> _HALF, places[k, 1] & _LOW, places[k, 0] & _LOW


@kernel
def _score(rows, begin, split, way_ptr, way, tree_ptr, places, n_group, codes, log_weight, out):
    n_draw, n_column = log_weight.shape[0], codes.shape[1]
    of_ways, total = np.empty(n_draw), np.empty(_BLOCK)
    block = np.zeros((n_column, _BLOCK + _APART), codes.dtype)
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
        of_tree = places[tree_ptr[part] : tree_ptr[part + 1]]
        for lo in range(begin[part], begin[part + 1], _BLOCK):
            some = rows[lo : min(lo + _BLOCK, begin[part + 1])]
            _turn(codes, some, of_tree, block)
            for draw in range(n_draw):
                total[:] = of_ways[draw]
                _add_tables(log_weight[draw], of_tree, n_group, block, some.size, total)
                for k in range(some.size):
                    out[draw, some[k]] = total[k]


@kernel
def _turn(codes, rows, of_tree, block):
    """Fill block, (n_column, at least rows.size), with some rows' codes of the columns of a tree, column by column."""
    flat, begin = codes.reshape(-1), np.empty(_BLOCK, np.uint64)
    for k in range(rows.size):
        begin[k] = np.uint64(rows[k]) * np.uint64(codes.shape[1])
    for place in range(len(of_tree)):
        column = of_tree[place, 1] >> _HALF
        _gather(flat, begin[: rows.size], column, block[column])


@kernel
def _gather(flat, begin, column, out):
    for k in range(begin.size):
        out[k] = flat[begin[k] + column]


@kernel
def _add_tables(table, of_tree, n_group, block, n_row, total):
    """Add to the first rows of total what the tables of a tree say of the codes in block.

    So many rows are taken that none is left over for a loop of single rows: those behind the last have any codes, and
    their totals are not read.
    """
    n = min(-(-n_row // _TOGETHER) * _TOGETHER, total.size)
    for place in range(len(of_tree)):
        own, above, stride = _columns(of_tree, place)
        of_place = table[of_tree[place, 0] >> _HALF :]
        if n_group[own] == 2 and stride == 0:
            _add_one_of_two(of_place[0], of_place[1], block[own, :n], total[:n])
        elif n_group[own] == 2 and n_group[above] == 2:
            _add_one_of_four(of_place, block[above, :n], block[own, :n], total[:n])
        else:
            _add_entries(of_place, stride, block[above, :n], block[own, :n], total[:n])


@kernel
def _add_one_of_two(w0, w1, x, out):
    for k in range(out.size):
        out[k] += w1 if x[k] != 0 else w0


@kernel
def _add_one_of_four(table, above, x, out):
    w0, w1, w2, w3 = table[0], table[1], table[2], table[3]
    for k in range(out.size):
        a, b = w1 if x[k] != 0 else w0, w3 if x[k] != 0 else w2  # choices are made for many rows at once
        out[k] += b if above[k] != 0 else a


@kernel
def _add_entries(table, stride, above, x, out):
    for k in range(out.size):
        out[k] += table[stride * np.uint64(above[k]) + np.uint64(x[k])]


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
