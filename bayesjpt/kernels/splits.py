"""The best binary split of a block of rows for all target columns at once, and the permutation that follows it.

Rows are records that lie together in memory: a 16-bit code for every column, a number for every numeric target. A split
moves records, so that each node of the tree is a range of rows and most passes read memory in order.

      sort     positions of a node's rows by their code in one column (counting sort, or quicksort where rows are few)
      scan     move rows to the left in that order, and look at the improvement between two codes
      divide   records of the left child first, those of the right child behind

The score of a split is the mean improvement of the targets other than the column that is split (see `impurity`), times
the share of rows in which that column is observed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.kernels.impurity import (
    MISSING,
    Records,
    Sides,
    Targets,
    Totals,
    fill_totals,
    improvement,
    make_records,
    make_sides,
    make_totals,
    move_back,
    move_labels,
    set_out,
)
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.jit import inlined, kernel
from bayesjpt.numerics.ordering import stable_order

_FEW = 8
"""Rows of which each is worth so many codes when they are sorted."""


class Scratch(NamedTuple):
    """Workspace of one split.

    Attributes
    ----------
    position : int32 (n_row,), end : int32 (MISSING + 2,)
        Rows of a node by code, and where those of each code end.
    node, part : Totals
        Of all rows of a node, and of those in which one column is observed.
    sides : Sides
    spare : Records
        Of the right child, while records move.
    """

    position: np.ndarray
    end: np.ndarray
    node: Totals
    part: Totals
    sides: Sides
    spare: Records


def make_scratch(records: Records, targets: Targets) -> Scratch:
    """Return the workspace of all splits of these records."""
    return Scratch(
        np.empty(records.row.size, np.int32),
        np.empty(MISSING + 2, np.int32),
        make_totals(targets),
        make_totals(targets),
        make_sides(targets),
        make_records(records.row.size, records.code.shape[1], records.number.shape[1]),
    )


@kernel
def _sort_rows(code, column, first, last, n_code, scratch):
    """Sort the rows of a node by one column, missing cells left out; return how many there are.

    Afterwards `position` holds them, equal codes together in the order of the rows, and `end` where each code ends.
    """
    end, position = scratch.end, scratch.position
    # counted one place on: end[k] is where code k begins, and where it ends once its rows are in place
    end[: n_code + 1] = 0
    for r in range(first, last):
        k = code[r, column]
        if k != MISSING:
            end[k + 1] += 1
    for k in range(n_code):
        end[k + 1] += end[k]
    n = end[n_code]
    for r in range(first, last):
        k = code[r, column]
        if k != MISSING:
            position[end[k]] = r
            end[k] += 1
    return n


@kernel
def _sort_few_rows(code, column, first, last, scratch):
    """As `_sort_rows` but without `end`, at a cost that does not depend on the number of codes."""
    position = scratch.position
    n = 0
    key = np.empty(last - first, np.int64)
    for r in range(first, last):
        k = code[r, column]
        if k != MISSING:
            key[n] = (np.int64(k) << 32) | np.int64(r)  # ties keep the order of the rows
            n += 1
    key = key[:n]
    key.sort()
    for i in range(n):
        position[i] = np.int32(key[i] & 0xFFFFFFFF)
    return n


@kernel
def dealt(n_missing, n_left, n_observed):
    """Return how many rows whose split column is missing descend to the left: by the share of the others."""
    return n_missing * n_left // n_observed


@inlined
def _large_enough(rows, n, n_observed, min_rows):
    """Return whether both sides hold enough of a node's rows, when n_observed of the n that are observed go left."""
    n_left = n_observed if n == rows else n_observed + dealt(rows - n, n_observed, n)
    return n_left >= min_rows and rows - n_left >= min_rows


@kernel
def scan_numbers(records, targets, totals, scratch, column, rows, n, min_rows):
    """Return (improvement, last code on the left) of the best boundary between two codes of a column; 0 if none.

    `scratch.position` holds the n rows of the node (`rows` is how many it has in all) whose cell is observed, by code.
    """
    position, sides = scratch.position, scratch.sides
    code, number, mean, entropy = records.code, records.number, totals.mean, targets.entropy
    best, at, one = 0.0, 0, np.uint32(1)
    set_out(targets, totals, column, sides)
    # not the last row: with all on the left nothing is split
    for i in range(n - 1):
        r = np.uint32(position[i])
        for t in range(targets.numeric.size):
            x = number[r, t]
            # NaN is a missing number
            if x == x:
                sides.below[t] += x - mean[t]
                sides.n_below[t] += 1.0
        for s in range(targets.symbolic.size):
            label = code[r, targets.symbolic[s]]
            if label != MISSING:
                move_labels(entropy, totals, sides, s, label, one)
        bin_code = code[r, column]
        # rows of one code cannot be parted
        if code[position[i + 1], column] == bin_code:
            continue
        if not _large_enough(rows, n, i + 1, min_rows):
            continue
        score = improvement(targets, totals, sides)
        if score > best:
            best, at = score, int(bin_code)
    return best, at


class Groups(NamedTuple):
    """The rows of a node by the label of the column that is split.

    Attributes
    ----------
    size : int64 (n_group,)
        Rows with the label.
    below, n_below : float64 (n_group, n_numeric)
        As of `Sides`.
    n_labelled, n_common : int64 (n_group, n_symbolic)
        Rows with a label of the target, and with the one that is most frequent in the node.
    ptr : int64 (n_group + 1,), target, label, n : int32 (ptr[-1],)
        Labels of symbolic targets among the rows of each group, and how many rows have them.
    """

    size: np.ndarray
    below: np.ndarray
    n_below: np.ndarray
    n_labelled: np.ndarray
    n_common: np.ndarray
    ptr: np.ndarray
    target: np.ndarray
    label: np.ndarray
    n: np.ndarray


@kernel
def _group(records, targets, totals, scratch, n, n_group):
    """Return the Groups of the n rows in `scratch.position`; `sides.count` must be 0 and is left so."""
    count = scratch.sides.count
    n_numeric, n_symbolic = targets.numeric.size, targets.symbolic.size
    common = np.empty(n_symbolic, np.int64)
    for s in range(n_symbolic):
        common[s] = np.argmax(totals.count[s])
    # a group has no more labels of a target than it has rows, nor than there are
    n_entry = min(n * n_symbolic, n_group * targets.n_label.sum())
    groups = Groups(
        np.zeros(n_group, np.int64),
        np.zeros((n_group, n_numeric)),
        np.zeros((n_group, n_numeric)),
        np.zeros((n_group, n_symbolic), np.int64),
        np.zeros((n_group, n_symbolic), np.int64),
        np.zeros(n_group + 1, np.int64),
        np.empty(n_entry, np.int32),
        np.empty(n_entry, np.int32),
        np.empty(n_entry, np.uint32),
    )
    begin, e = 0, 0
    for k in range(n_group):
        for i in range(begin, scratch.end[k]):
            r = scratch.position[i]
            for t in range(n_numeric):
                x = records.number[r, t]
                if x == x:
                    groups.below[k, t] += x - totals.mean[t]
                    groups.n_below[k, t] += 1.0
            for s in range(n_symbolic):
                label = records.code[r, targets.symbolic[s]]
                if label != MISSING:
                    if count[s, label] == 0:
                        groups.target[e], groups.label[e] = s, label
                        e += 1
                    count[s, label] += 1
        groups.size[k] = scratch.end[k] - begin
        for j in range(groups.ptr[k], e):
            s, label = groups.target[j], groups.label[j]
            groups.n[j] = count[s, label]
            # only what was counted is set back: there may be far more labels than rows
            count[s, label] = 0
            groups.n_labelled[k, s] += groups.n[j]
            if label == common[s]:
                groups.n_common[k, s] = groups.n[j]
        begin = scratch.end[k]
        groups.ptr[k + 1] = e
    return groups


@kernel
def _order(groups, target, n_numeric):
    """Return the groups in the order of a target's mean, or of the share of its most frequent label."""
    key = np.zeros(groups.size.size)
    for k in range(key.size):
        if target < n_numeric:
            above, n = groups.below[k, target], groups.n_below[k, target]
        else:
            above, n = float(groups.n_common[k, target - n_numeric]), float(groups.n_labelled[k, target - n_numeric])
        key[k] = above / n if n > 0.0 else 0.0
    return stable_order(key)


@inlined
def _move_group(groups, k, targets, totals, sides):
    """Move the rows with label k to the left."""
    for t in range(targets.numeric.size):
        sides.below[t] += groups.below[k, t]
        sides.n_below[t] += groups.n_below[k, t]
    for e in range(groups.ptr[k], groups.ptr[k + 1]):
        move_labels(targets.entropy, totals, sides, groups.target[e], groups.label[e], groups.n[e])


@kernel
def scan_labels(records, targets, totals, scratch, column, rows, n, n_label, min_rows):
    """Return (improvement, which labels go left) of the best division of a column's labels, bool (n_label,); 0 if none.

    Tried are every label against the rest, and the beginnings of one order for each other target: by the mean of a
    number, by the share of the node's most frequent label of a symbolic target. For a single target that is a number or
    has two labels, the best subset is among them (Fisher, 1958; Breiman et al., 1984, section 9.4); otherwise it is a
    heuristic.
    """
    sides, n_numeric = scratch.sides, targets.numeric.size
    set_out(targets, totals, column, sides)
    groups = _group(records, targets, totals, scratch, n, n_label)
    best = 0.0
    go_left, trial = np.zeros(n_label, np.bool_), np.zeros(n_label, np.bool_)
    for target in range(n_numeric + targets.symbolic.size):
        if target >= n_numeric and targets.symbolic[target - n_numeric] == column:
            continue
        trial[:] = False
        n_observed = 0
        for k in _order(groups, target, n_numeric):
            if groups.size[k] == 0:
                continue
            _move_group(groups, k, targets, totals, sides)
            trial[k] = True
            n_observed += groups.size[k]
            # the last beginning is all labels, which splits nothing
            if n_observed < n and _large_enough(rows, n, n_observed, min_rows):
                score = improvement(targets, totals, sides)
                if score > best:
                    best = score
                    copy_into(trial, go_left)
        move_back(totals, sides)
        sides.count[:] = 0
    for k in range(n_label):
        if not 0 < groups.size[k] < n or not _large_enough(rows, n, groups.size[k], min_rows):
            continue
        _move_group(groups, k, targets, totals, sides)
        score = improvement(targets, totals, sides)
        if score > best:
            best = score
            go_left[:] = False
            go_left[k] = True
        move_back(totals, sides)
        for e in range(groups.ptr[k], groups.ptr[k + 1]):
            sides.count[groups.target[e], groups.label[e]] = 0
    return best, go_left


@kernel
def best_split(records, targets, scratch, features, n_code, is_label, first, last, min_rows):
    """Return (score, feature, codes that go left) of the best split of the rows first ... last - 1.

    `features` are columns, int32 (n_feature,); `n_code` and `is_label` belong to all columns. Where no split is allowed
    or improves anything, the score is 0. Ties are decided for the earlier feature and the smaller code.
    """
    records, targets, scratch = borrowed(records), borrowed(targets), borrowed(scratch)
    best, at, chosen = 0.0, 0, 0
    go_left = np.zeros(1, np.bool_)
    rows = last - first
    fill_totals(records, targets, -1, first, last, scratch.node)
    for column in features:
        # a counting sort passes over all codes: where rows are few their comparisons are cheaper
        few = rows * _FEW < n_code[column] and not is_label[column]
        if few:
            n = _sort_few_rows(records.code, column, first, last, scratch)
        else:
            n = _sort_rows(records.code, column, first, last, n_code[column], scratch)
        if n < 2:
            continue
        totals = scratch.node
        if n < rows:
            totals = scratch.part
            fill_totals(records, targets, column, first, last, totals)
        n_target = np.sum(targets.numeric != column) + np.sum(targets.symbolic != column)
        # a split of a column that is seldom observed says little about the other rows
        share = n / rows / max(n_target, 1)
        if is_label[column]:
            score, labels = scan_labels(records, targets, totals, scratch, column, rows, n, n_code[column], min_rows)
            if score * share > best:
                best, chosen, go_left = score * share, column, labels
        else:
            score, boundary = scan_numbers(records, targets, totals, scratch, column, rows, n, min_rows)
            if score * share > best:
                best, chosen, at = score * share, column, boundary
    if best > 0.0 and not is_label[chosen]:
        go_left = np.arange(n_code[chosen]) <= at
    return best, chosen, go_left


@inlined
def _move_record(source, r, target, i):
    for column in range(source.code.shape[1]):
        target.code[i, column] = source.code[r, column]
    for t in range(source.number.shape[1]):
        target.number[i, t] = source.number[r, t]
    target.row[i] = source.row[r]


@kernel
def divide(records, scratch, column, go_left, first, last):
    """Move the records of a node so that those of the left child come first; return where the right child begins.

    `go_left` is bool (n_code,). Rows whose cell is missing are dealt in turn, by the share of the others.
    """
    code, spare = records.code, scratch.spare
    n_left = n_observed = 0
    for r in range(first, last):
        if code[r, column] != MISSING:
            n_observed += 1
            n_left += 1 if go_left[code[r, column]] else 0
    i, j, n_dealt = first, 0, 0
    for r in range(first, last):
        k = code[r, column]
        if k != MISSING:
            left = go_left[k]
        else:
            left = dealt(n_dealt + 1, n_left, n_observed) > dealt(n_dealt, n_left, n_observed)
            n_dealt += 1
        if left:
            # in place: i <= r, so that only records that were read are overwritten
            _move_record(records, r, records, i)
            i += 1
        else:
            _move_record(records, r, spare, j)
            j += 1
    for r in range(j):
        _move_record(spare, r, records, i + r)
    return i
