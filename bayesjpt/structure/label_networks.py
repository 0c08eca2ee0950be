"""Cutset networks of labels without missing cells, grown in compiled code.

      rows    4 0 7 | 2 5 | 1 3 6        one array of row numbers; a part of the network is a slice of it,
              part 1  part 2  part 3     and a split moves the rows of each of its ways together

Columns of two groups are counted as bits (`bayesjpt.structure.chow_liu`), and the information of two of them is six
look-ups of x log x. What is grown is what `bayesjpt.structure.cutset` grows with objects from the same generator, but
for ties between columns, which rounding decides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.circuit.networks import Network, table_pointers
from bayesjpt.numerics.bits import count_bits, count_both_bits
from bayesjpt.numerics.copying import copy_into, with_room
from bayesjpt.numerics.jit import kernel, read_only
from bayesjpt.structure.chow_liu import (
    Bins,
    information_of_two,
    log_table,
    pack_bits,
    tree_of_bins,
)

RANDOM, ENTROPY, LIKELIHOOD = range(3)
"""How the column of a split is chosen."""


class Growth(NamedTuple):
    """Settings of `grow_network`.

    Attributes
    ----------
    select : int
        `RANDOM`, `ENTROPY` or `LIKELIHOOD`.
    has_trees : bool
        Whether columns depend on each other in the leaves.
    min_rows, min_columns : int
    ess : float
    subspace : float
        Share of the columns, drawn for each part, among which a judgement chooses.
    """

    select: int
    has_trees: bool
    min_rows: int
    min_columns: int
    ess: float
    subspace: float = 1.0


class Counted(NamedTuple):
    """A network, and the rows of each way and table entry, int64 (n_entry,)."""

    network: Network
    count: np.ndarray


def is_grown_here(bins: Bins, select: int) -> bool:
    """Return whether columns, all of labels, can be split by `select` here: by judgement, of two groups alone."""
    return select == RANDOM or bool((bins.n_bin == 2).all())


def grow_network(bins: Bins, growth: Growth, rng: np.random.Generator) -> Counted:
    """Return the network of all rows.

    Parameters
    ----------
    bins : Bins
        Columns of labels without missing cells.
    growth : Growth
    rng : numpy.random.Generator
        Chooses columns, where chance does.

    Notes
    -----
    Cost: O(n_column^2 n_row / 64) for the trees in the leaves; by entropy as much a level; by likelihood n_column
    times as much a level.
    """
    code = read_only(bins.code)
    split, way_ptr, way, way_count, tree_ptr, column, parent, known, lo, hi, rows = _grow(
        code, bins.n_bin, np.int64(growth.select), growth.has_trees, growth.min_rows, growth.min_columns,
        growth.ess, growth.subspace, rng,
    )  # fmt: skip
    table_ptr = table_pointers(tree_ptr, column, parent, bins.n_bin, way.size)
    network = Network(
        split, way_ptr, way, tree_ptr, column.astype(np.int16), parent.astype(np.int16), table_ptr, bins.n_bin
    )
    count = np.zeros(network.n_entry, np.int64)
    copy_into(way_count, count)
    _count_tables(code, bins.n_bin, split, tree_ptr, column, parent, known, lo, hi, rows, table_ptr, count)
    return Counted(network, count)


@kernel
def _divides(x, rows):
    """Return whether not all rows are in one group."""
    i = 1
    while i < rows.size and x[rows[i]] == x[rows[0]]:
        i += 1
    return i < rows.size


@kernel
def _part_by(x, n_way, rows, spare, end):
    """Bring the rows of each way together, in their order; `end` receives where each way ends, int64 (n_way,)."""
    if n_way == 2:  # each row is written for both ways, and one of them goes on
        n, n_other = 0, 0
        for i in range(rows.size):
            row = rows[i]
            other = x[row] > 0
            rows[n], spare[n_other] = row, row
            n += not other
            n_other += other
        copy_into(spare[:n_other], rows[n:])
        end[0], end[1] = n, rows.size
        return
    end[:n_way] = 0
    for i in range(rows.size):
        end[x[rows[i]]] += 1
    n = 0
    # from how many rows a way has to where it begins; the loop below moves it to where it ends
    for w in range(n_way):
        n, end[w] = n + end[w], n
    for i in range(rows.size):
        w = x[rows[i]]
        spare[end[w]] = rows[i]
        end[w] += 1
    copy_into(spare[: rows.size], rows)


@kernel
def _grow(code, n_bin, select, has_trees, min_rows, min_columns, ess, subspace, rng):
    n_column, n_row = code.shape
    rows, spare = np.arange(n_row), np.empty(n_row, np.int64)
    most = n_bin.max() if n_column > 0 else np.int64(1)
    end = np.zeros(most, np.int64)
    table = log_table(n_row, ess)
    lo, hi, above = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    split, way_ptr, tree_ptr = np.empty(64, np.int32), np.zeros(65, np.int64), np.zeros(65, np.int64)
    way, way_count, n_way = np.empty(128, np.int32), np.empty(128, np.int64), 0
    column, parent, n_place = np.empty(4096, np.int64), np.empty(4096, np.int64), 0
    own, joint = np.empty(4096, np.int64), np.empty(4096, np.int64)
    stack = np.zeros((n_column * most + 1, 4), np.int64)  # a path splits each column once, and leaves its ways behind
    stack[0] = -1, 0, 0, n_row
    depth, part = 1, 0
    is_free, may_split = np.empty(n_column, np.bool_), np.ones(n_column, np.bool_)
    while depth > 0:
        depth -= 1
        lo, hi, above = with_room(lo, part + 1), with_room(hi, part + 1), with_room(above, part + 1)
        split, way_ptr, tree_ptr = (
            with_room(split, part + 1),
            with_room(way_ptr, part + 2),
            with_room(tree_ptr, part + 2),
        )
        above[part], lo[part], hi[part] = stack[depth, 0], stack[depth, 2], stack[depth, 3]
        slot = int(stack[depth, 1])
        if above[part] >= 0:
            way[slot] = part
        is_free[:] = True
        at = int(above[part])
        while at >= 0:
            is_free[split[at]] = False
            at = int(above[at])
        free, part_rows = np.flatnonzero(is_free), rows[lo[part] : hi[part]]
        split[part] = -1
        if part_rows.size > min_rows and free.size > min_columns:
            if select != RANDOM and subspace < 1.0:
                may_split[:] = False
                for c in rng.permutation(free)[: int(np.ceil(subspace * free.size))]:
                    may_split[c] = True
            if select == RANDOM:
                for c in rng.permutation(free):
                    if _divides(code[c], part_rows):
                        split[part] = c
                        break
            elif select == ENTROPY:
                split[part] = _by_entropy(code, part_rows, free, may_split, table)
            else:
                split[part] = _by_likelihood(code, part_rows, free, may_split, has_trees, table)
        if split[part] >= 0:
            c = split[part]
            _part_by(code[c], n_bin[c], part_rows, spare, end)
            way, way_count = with_room(way, n_way + n_bin[c]), with_room(way_count, n_way + n_bin[c])
            # from the last to the first: they come off the stack in the order of the ways
            for w in range(n_bin[c] - 1, -1, -1):
                first = end[w - 1] if w > 0 else 0
                way_count[n_way + w] = end[w] - first
                stack[depth] = part, n_way + w, lo[part] + first, lo[part] + end[w]
                depth += 1
            n_way += n_bin[c]
        else:
            column, parent = with_room(column, n_place + free.size), with_room(parent, n_place + free.size)
            own, joint = with_room(own, n_place + free.size), with_room(joint, n_place + free.size)
            copy_into(free, column[n_place:])
            own[n_place : n_place + free.size] = -1
            if has_trees:
                parents, count, with_parent = tree_of_bins(code, n_bin, part_rows, free, table)
                copy_into(parents, parent[n_place:])
                copy_into(count, own[n_place:])
                copy_into(with_parent, joint[n_place:])
            else:
                parent[n_place : n_place + free.size] = -1
            n_place += free.size
        part += 1
        way_ptr[part], tree_ptr[part] = n_way, n_place
    return (
        split[:part].copy(), way_ptr[: part + 1].copy(), way[:n_way].copy(), way_count[:n_way].copy(),
        tree_ptr[: part + 1].copy(), column[:n_place].copy(), parent[:n_place].copy(),
        np.stack((own[:n_place], joint[:n_place]), axis=1), lo[:part], hi[:part], rows,
    )  # fmt: skip


@kernel
def _count_tables(code, n_bin, split, tree_ptr, column, parent, known, lo, hi, rows, table_ptr, count):
    """Fill the counts of tables; `known`, int64 (n_place, 2), are the rows in the second group of each column, -1 where
    they are to be counted, and of both it and its parent.
    """
    for part in range(split.size):
        part_rows, first = rows[lo[part] : hi[part]], tree_ptr[part]
        for place in range(first, tree_ptr[part + 1]):
            x, n = code[column[place]], n_bin[column[place]]
            out = count[table_ptr[place] : table_ptr[place + 1]]
            n_x, n_both = known[place]
            if n_x >= 0 and parent[place] < 0:
                out[0], out[1] = part_rows.size - n_x, n_x
            elif n_x >= 0:
                n_y = known[first + parent[place], 0]
                out[0], out[1], out[2], out[3] = part_rows.size - n_y - n_x + n_both, n_x - n_both, n_y - n_both, n_both
            elif parent[place] < 0:
                for row in part_rows:
                    out[x[row]] += 1
            else:
                y = code[column[first + parent[place]]]
                for row in part_rows:
                    out[y[row] * n + x[row]] += 1


# --- judgements of columns of two groups ------------------------------------------------------------------------------


@kernel
def _pairs(bits):
    """Return int64 (n, n): rows that are in the second group of both columns."""
    n = bits.shape[0]
    both = np.empty((n, n), np.int64)
    for j in range(n):
        both[j, j] = count_bits(bits[j])
        for k in range(j):
            both[j, k] = both[k, j] = count_both_bits(bits[j], bits[k])
    return both


@kernel
def _by_entropy(code, rows, columns, may_split, table):
    """Return the column by which the mean entropy of the others, each by itself, falls most; -1 where none does."""
    n, m = columns.size, rows.size
    f = table[0]
    both = _pairs(pack_bits(code, rows, columns))
    before = 0.0
    for k in range(n):
        before += (f[both[k, k]] + f[m - both[k, k]] - f[m]) / n
    best, found = 0.0, -1
    for c in range(n):
        n_c = both[c, c]
        if n_c == 0 or n_c == m or not may_split[columns[c]]:
            continue
        value = 0.0
        for k in range(n):
            if k != c:
                n_k, n_ck = both[k, k], both[c, k]
                value += f[n_ck] + f[n_c - n_ck] - f[n_c]
                value += f[n_k - n_ck] + f[m - n_c - n_k + n_ck] - f[m - n_c]
        value = value / max(n - 1, 1) - before
        if value > best:
            best, found = value, columns[c]
    return found


@kernel
def _leaf_value(both, m, left, has_trees, table):
    """Return the log likelihood of m rows under a leaf of some columns, by their pair counts, int64 (n, n)."""
    f = table[0]
    value = 0.0
    for k in left:
        value += f[both[k, k]] + f[m - both[k, k]] - f[m]
    if not has_trees or left.size == 0:
        return value
    n = left.size
    best, near, joined = np.full(n, -np.inf), np.zeros(n, np.int64), np.zeros(n, np.bool_)
    current = 0
    for _ in range(1, n):
        joined[current] = True
        following = -1
        for k in range(n):
            if joined[k]:
                continue
            a, b = left[current], left[k]
            found = information_of_two(both[a, a], both[b, b], both[a, b], m, table[1], table[2])
            if found > best[k]:
                best[k], near[k] = found, current
            if following < 0 or best[k] > best[following]:
                following = k
        a, b = left[near[following]], left[following]
        value += information_of_two(both[a, a], both[b, b], both[a, b], m, f, f) + f[m]
        current = following
    return value


@kernel
def _by_likelihood(code, rows, columns, may_split, has_trees, table):
    """Return the column whose sides are most probable, each under a leaf; -1 where that is no gain by BIC."""
    n, m = columns.size, rows.size
    f = table[0]
    bits = pack_bits(code, rows, columns)
    both = _pairs(bits)
    every = np.arange(n)
    best, found = _leaf_value(both, m, every, has_trees, table) + 0.5 * np.log(m), -1
    inside, outside = np.empty((n, n), np.int64), np.empty((n, n), np.int64)
    shared = np.empty((n, bits.shape[1]), np.uint64)
    for c in range(n):
        n_c = both[c, c]
        if n_c == 0 or n_c == m or not may_split[columns[c]]:
            continue
        for j in range(n):
            for i in range(bits.shape[1]):
                shared[j, i] = bits[c, i] & bits[j, i]
            for k in range(j + 1):
                count = both[c, j] if k == j else np.int64(0)
                if k < j and has_trees:
                    # rows with c, j and k; without c they are all that have j and k, less these
                    count = count_both_bits(shared[j], bits[k])
                inside[j, k] = inside[k, j] = count
                outside[j, k] = outside[k, j] = both[j, k] - count
        left = every[every != c]
        value = f[n_c] + f[m - n_c] - f[m]
        value += _leaf_value(inside, n_c, left, has_trees, table)
        value += _leaf_value(outside, m - n_c, left, has_trees, table)
        if value > best:
            best, found = value, columns[c]
    return found
