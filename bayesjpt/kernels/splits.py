"""The best binary split of a block of rows for all target columns at once, and the permutation that follows it.

Rows are records that lie together in memory: a 16-bit code for every column, a number for every numeric target. A split
moves records, so that each node of the tree is a range of rows and every pass reads memory in order.

      sort     positions of a node's rows by their code in one column (counting sort, or quicksort where rows are few)
      scan     what the targets' impurity would be left and right of every boundary between two codes
      divide   records of the left child first, those of the right child behind

Improvement of a target by a split: 1 - (impurity left + impurity right) / impurity before, each impurity summed over
rows: squared deviations from the mean of numbers, and of labels n times the entropy (or the Gini index). A target that
does not vary has improvement 0. The score of a split is the mean over the targets other than the column that is split,
times the share of rows in which that column is observed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.numerics.jit import kernel

MISSING = 65_535
"""Code of a missing cell."""
_FEW = 8
"""Rows of which each is worth so many codes when they are sorted."""
_SMALLEST_SHARE = 1e-12
"""Squared deviations over squares about zero, below which numbers are all alike but for rounding."""


class Records(NamedTuple):
    """The rows of a table in the order of a tree's nodes.

    Attributes
    ----------
    code : uint16 (n_row, n_column)
        Label, or rank of the number's bucket among the training values; `MISSING`.
    number : float32 (n_row, n_numeric)
        Standardised values of the numeric targets; anything where missing.
    row : int32 (n_row,)
        Positions in the table.
    """

    code: np.ndarray
    number: np.ndarray
    row: np.ndarray


class Targets(NamedTuple):
    """What a split is judged by.

    Attributes
    ----------
    numeric : int32 (n_numeric,), symbolic : int32 (n_symbolic,)
        Columns.
    n_label : int32 (n_symbolic,)
    is_target : bool (n_column,)
    entropy : float64 (n_row + 2,)
        Table of n log n; of squares for the Gini index.
    gini : bool
    """

    numeric: np.ndarray
    symbolic: np.ndarray
    n_label: np.ndarray
    is_target: np.ndarray
    entropy: np.ndarray
    gini: bool


class Scratch(NamedTuple):
    """Workspace of one split.

    Attributes
    ----------
    position : int32 (n_row,), start : int32 (MISSING + 2,)
        Rows of a node by code.
    count, left : float64 (n_symbolic, n_label)
        Labels in the node, and left of the boundary.
    spare : Records
        Of the right child, while records move.
    """

    position: np.ndarray
    start: np.ndarray
    count: np.ndarray
    left: np.ndarray
    spare: Records


@kernel
def _sort_rows(code, column, first, last, n_code, scratch):
    """Sort the rows of a node by one column, missing cells left out; return how many there are.

    Afterwards `position` holds them, and equal codes lie together in the order of the rows.
    """
    start, position = scratch.start, scratch.position
    start[: n_code + 1] = 0
    for r in range(first, last):
        k = code[r, column]
        if k != MISSING:
            start[k + 1] += 1
    for k in range(n_code):
        start[k + 1] += start[k]
    n = start[n_code]
    for r in range(first, last):
        k = code[r, column]
        if k != MISSING:
            position[start[k]] = r
            start[k] += 1
    return n


@kernel
def _sort_few_rows(code, column, first, last, scratch):
    """As `_sort_rows`, at a cost that does not depend on the number of codes."""
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
def _impurity(n, total, entropy, gini):
    """Return the impurity of labels, summed over n rows, from the total of `entropy` over their counts."""
    if n == 0:
        return 0.0
    return n - total / n if gini else entropy[int(n)] - total


@kernel
def _fill_means(records, targets, position, n, mean, seen):
    """Fill the means of the numeric targets over the rows in `position`, and in how many of them each is observed."""
    mean[:] = 0.0
    seen[:] = 0.0
    for i in range(n):
        r = position[i]
        for t in range(targets.numeric.size):
            if records.code[r, targets.numeric[t]] != MISSING:
                mean[t] += records.number[r, t]
                seen[t] += 1.0
    for t in range(mean.size):
        mean[t] = mean[t] / seen[t] if seen[t] > 0.0 else 0.0


@kernel
def _fill_spreads(records, targets, position, n, mean, spread):
    """Fill the squared deviations of the numeric targets from their means; 0 where they are all alike."""
    spread[:] = 0.0
    square = np.zeros(spread.size)
    for i in range(n):
        r = position[i]
        for t in range(targets.numeric.size):
            if records.code[r, targets.numeric[t]] != MISSING:
                x = np.float64(records.number[r, t])
                spread[t] += (x - mean[t]) ** 2
                square[t] += x * x
    for t in range(spread.size):
        if spread[t] <= _SMALLEST_SHARE * square[t]:
            spread[t] = 0.0


@kernel
def _fill_counts(records, targets, position, n, count, total, seen):
    """Fill the counts of the symbolic targets' labels, their `entropy` totals and how many are observed."""
    count[:] = 0.0
    seen[:] = 0.0
    for i in range(n):
        r = position[i]
        for s in range(targets.symbolic.size):
            label = records.code[r, targets.symbolic[s]]
            if label != MISSING:
                count[s, label] += 1.0
                seen[s] += 1.0
    for s in range(targets.symbolic.size):
        total[s] = 0.0
        for label in range(targets.n_label[s]):
            total[s] += targets.entropy[int(count[s, label])]


@kernel
def dealt(n_missing, n_left, n_observed):
    """Return how many rows whose split column is missing descend to the left: by the share of the others."""
    return n_missing * n_left // n_observed


@kernel
def _n_targets(targets, column):
    n = targets.numeric.size + targets.symbolic.size
    return n - 1 if targets.is_target[column] else n


@kernel
def scan_numbers(records, targets, scratch, column, rows, n, min_rows):
    """Return (score, last code on the left) of the best boundary between two codes of a column; score 0 if none.

    `scratch.position` holds the n rows of the node (`rows` is how many it has in all) whose cell is observed, by code.
    """
    position = scratch.position
    n_numeric, n_symbolic = targets.numeric.size, targets.symbolic.size
    mean, seen, spread = np.empty(n_numeric), np.empty(n_numeric), np.empty(n_numeric)
    total, labelled = np.empty(n_symbolic), np.empty(n_symbolic)
    _fill_means(records, targets, position, n, mean, seen)
    _fill_spreads(records, targets, position, n, mean, spread)
    _fill_counts(records, targets, position, n, scratch.count, total, labelled)
    before = np.empty(n_symbolic)
    for s in range(n_symbolic):
        before[s] = _impurity(labelled[s], total[s], targets.entropy, targets.gini)
    below, n_below = np.zeros(n_numeric), np.zeros(n_numeric)
    left_total, n_left_label = np.zeros(n_symbolic), np.zeros(n_symbolic)
    right_total = total.copy()
    scratch.left[:] = 0.0
    table = targets.entropy
    n_target = _n_targets(targets, column)
    best, at = 0.0, 0
    for i in range(n - 1):
        r = position[i]
        for t in range(n_numeric):
            if records.code[r, targets.numeric[t]] != MISSING:
                below[t] += records.number[r, t] - mean[t]
                n_below[t] += 1.0
        for s in range(n_symbolic):
            label = records.code[r, targets.symbolic[s]]
            if label != MISSING:
                here = scratch.left[s, label]
                there = scratch.count[s, label] - here
                left_total[s] += table[int(here) + 1] - table[int(here)]
                right_total[s] += table[int(there) - 1] - table[int(there)]
                scratch.left[s, label] = here + 1.0
                n_left_label[s] += 1.0
        code = records.code[r, column]
        if records.code[position[i + 1], column] == code:
            continue
        n_left = i + 1 + dealt(rows - n, i + 1, n)
        if n_left < min_rows or rows - n_left < min_rows:
            continue
        score = 0.0
        for t in range(n_numeric):
            if targets.numeric[t] != column and spread[t] > 0.0 and 0.0 < n_below[t] < seen[t]:
                score += below[t] ** 2 * seen[t] / (n_below[t] * (seen[t] - n_below[t]) * spread[t])
        for s in range(n_symbolic):
            if targets.symbolic[s] != column and before[s] > 0.0:
                after = _impurity(n_left_label[s], left_total[s], table, targets.gini) + _impurity(
                    labelled[s] - n_left_label[s], right_total[s], table, targets.gini
                )
                score += 1.0 - after / before[s]
        if score > best:
            best, at = score, int(code)
    return best / max(n_target, 1) * (n / rows), at


@kernel
def _label_score(targets, column, before, whole, left):
    """Return the summed improvement when rows are divided; `whole` and `left` are sums over rows, by target.

    Both hold (numbers: sum, how many; labels: counts), in units in which the numbers' means over the node are 0;
    `before` holds the impurities of the node (numbers, labels).
    """
    total, seen, count = whole
    below, n_below, here = left
    spread, impurity = before
    score = 0.0
    for t in range(targets.numeric.size):
        if spread[t] > 0.0 and 0.0 < n_below[t] < seen[t]:
            score += (
                (below[t] - total[t] * n_below[t] / seen[t]) ** 2
                * seen[t]
                / (n_below[t] * (seen[t] - n_below[t]) * spread[t])
            )
    for s in range(targets.symbolic.size):
        if targets.symbolic[s] == column or impurity[s] == 0.0:
            continue
        n_left = n_right = left_total = right_total = 0.0
        for label in range(targets.n_label[s]):
            one, other = here[s, label], count[s, label] - here[s, label]
            n_left += one
            n_right += other
            left_total += targets.entropy[int(one)]
            right_total += targets.entropy[int(other)]
        after = _impurity(n_left, left_total, targets.entropy, targets.gini) + _impurity(
            n_right, right_total, targets.entropy, targets.gini
        )
        score += 1.0 - after / impurity[s]
    return score


@kernel
def scan_labels(records, targets, scratch, column, rows, n, n_label, min_rows):
    """Return (score, which labels go left) of the best division of a column's labels, bool (n_label,); score 0 if none.

    Tried are every label against the rest, and the beginnings of one order for each target: by the mean of a number, by
    the share of the node's most frequent label of a symbolic target. For a single target that is a number or has two
    labels, the best subset is among them (Fisher, 1958; Breiman et al., 1984, section 9.4); otherwise it is a
    heuristic.
    """
    position = scratch.position
    n_numeric, n_symbolic = targets.numeric.size, targets.symbolic.size
    mean, seen, spread = np.empty(n_numeric), np.empty(n_numeric), np.empty(n_numeric)
    total, labelled = np.empty(n_symbolic), np.empty(n_symbolic)
    _fill_means(records, targets, position, n, mean, seen)
    _fill_spreads(records, targets, position, n, mean, spread)
    _fill_counts(records, targets, position, n, scratch.count, total, labelled)
    impurity = np.empty(n_symbolic)
    for s in range(n_symbolic):
        impurity[s] = _impurity(labelled[s], total[s], targets.entropy, targets.gini)
    size = np.zeros(n_label)
    sums, counts = np.zeros((n_label, n_numeric)), np.zeros((n_label, n_numeric))
    table = np.zeros((n_label, n_symbolic, scratch.count.shape[1]))
    for i in range(n):
        r = position[i]
        k = records.code[r, column]
        size[k] += 1.0
        for t in range(n_numeric):
            if records.code[r, targets.numeric[t]] != MISSING:
                sums[k, t] += records.number[r, t] - mean[t]
                counts[k, t] += 1.0
        for s in range(n_symbolic):
            label = records.code[r, targets.symbolic[s]]
            if label != MISSING:
                table[k, s, label] += 1.0
    whole = (sums.sum(axis=0), seen, scratch.count)
    before = (spread, impurity)
    best = 0.0
    go_left, trial = np.zeros(n_label, np.bool_), np.zeros(n_label, np.bool_)
    key = np.empty(n_label)
    for order in range(n_numeric + n_symbolic + 1):  # the last: every label by itself
        alone = order == n_numeric + n_symbolic
        for k in range(n_label):
            if alone or size[k] == 0.0:
                key[k] = 0.0
            elif order < n_numeric:
                key[k] = sums[k, order] / counts[k, order] if counts[k, order] > 0.0 else 0.0
            else:
                s = order - n_numeric
                n_known = table[k, s].sum()
                key[k] = table[k, s, np.argmax(scratch.count[s])] / n_known if n_known > 0.0 else 0.0
        below, n_below, here = np.zeros(n_numeric), np.zeros(n_numeric), np.zeros_like(scratch.count)
        trial[:] = False
        n_observed = 0
        for k in np.argsort(key, kind="mergesort"):
            if size[k] == 0.0:
                continue
            if alone:
                below[:] = 0.0
                n_below[:] = 0.0
                here[:] = 0.0
                trial[:] = False
                n_observed = 0
            below += sums[k]
            n_below += counts[k]
            here += table[k]
            trial[k] = True
            n_observed += int(size[k])
            n_left = n_observed + dealt(rows - n, n_observed, n)
            if n_observed == n or n_left < min_rows or rows - n_left < min_rows:
                continue
            score = _label_score(targets, column, before, whole, (below, n_below, here))
            if score > best:
                best = score
                go_left[:] = trial
    return best / max(_n_targets(targets, column), 1) * (n / rows), go_left


@kernel
def _observed_rows(code, column, first, last, scratch):
    n = 0
    for r in range(first, last):
        if code[r, column] != MISSING:
            scratch.position[n] = r
            n += 1
    return n


@kernel
def best_split(records, targets, scratch, features, n_code, is_label, first, last, min_rows):
    """Return (score, feature, codes that go left) of the best split of the rows first ... last - 1.

    `features` are columns, int32 (n_feature,); `n_code` and `is_label` belong to all columns. Where no split is allowed
    or improves anything, the score is 0. Ties are decided for the earlier feature and the smaller code.
    """
    best, at, chosen = 0.0, 0, 0
    go_left = np.zeros(1, np.bool_)
    rows = last - first
    for column in features:
        if is_label[column]:
            n = _observed_rows(records.code, column, first, last, scratch)
            if n < 2:
                continue
            score, labels = scan_labels(records, targets, scratch, column, rows, n, n_code[column], min_rows)
            if score > best:
                best, chosen, go_left = score, column, labels
            continue
        if rows * _FEW < n_code[column]:
            n = _sort_few_rows(records.code, column, first, last, scratch)
        else:
            n = _sort_rows(records.code, column, first, last, n_code[column], scratch)
        if n < 2:
            continue
        score, boundary = scan_numbers(records, targets, scratch, column, rows, n, min_rows)
        if score > best:
            best, chosen, at = score, column, boundary
    if best > 0.0 and not is_label[chosen]:
        go_left = np.arange(n_code[chosen]) <= at
    return best, chosen, go_left


@kernel
def divide(records, scratch, column, go_left, first, last):
    """Move the records of a node so that those of the left child come first; return where the right child begins.

    `go_left` is bool (n_code,). Rows whose cell is missing are dealt in turn, by the share of the others.
    """
    code, number, row = records.code, records.number, records.row
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
            code[i], number[i], row[i] = code[r], number[r], row[r]
            i += 1
        else:
            scratch.spare.code[j], scratch.spare.number[j], scratch.spare.row[j] = code[r], number[r], row[r]
            j += 1
    code[i:last] = scratch.spare.code[:j]
    number[i:last] = scratch.spare.number[:j]
    row[i:last] = scratch.spare.row[:j]
    return i
