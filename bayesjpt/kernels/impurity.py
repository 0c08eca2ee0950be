"""How impure a block of rows is in all target columns, and how much less when some of its rows move to the left.

Improvement of a target by a split: 1 - (impurity left + impurity right) / impurity before, each impurity summed over
rows: squared deviations from the mean of numbers, and of labels n times the entropy (or the Gini index). A target that
does not vary has improvement 0, and so has the column that is split.

Everything is kept as sums that change by one row, or by one label's rows, at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.jit import inlined, kernel

MISSING = 65_535
"""Code of a missing cell."""
_SMALLEST_SHARE = 1e-12
"""Squared deviations over squares about zero, below which numbers are all alike but for rounding."""


class Records(NamedTuple):
    """The rows of a table in the order of a tree's nodes.

    Attributes
    ----------
    code : uint16 (n_row, n_column)
        Label, or rank of the number's bucket among the training values; `MISSING`.
    number : float32 (n_row, n_numeric)
        Standardised values of the numeric targets; NaN where missing. Without any there is a column that nobody reads.
    row : int32 (n_row,)
        Positions in the table.
    """

    code: np.ndarray
    number: np.ndarray
    row: np.ndarray


def make_records(n_row: int, n_column: int, n_numeric: int) -> Records:
    """Return room for records in which the codes and numbers of a row lie side by side, in one or two cache lines."""
    # two codes of 16 bits fill one word of 32
    n_word = (n_column + 1) // 2
    # without any column an array would be contiguous, another type for which all of the learner is compiled once more
    n_numeric = max(n_numeric, 1)
    word = np.empty((n_row, n_word + n_numeric), np.float32)
    return Records(word.view(np.uint16)[:, :n_column], word[:, n_word:], np.empty(n_row, np.int32))


class Targets(NamedTuple):
    """What a split is judged by.

    Attributes
    ----------
    numeric : int32 (n_numeric,), symbolic : int32 (n_symbolic,)
        Columns.
    n_label : int32 (n_symbolic,)
    entropy : float64 (n_row + 2,)
        Table of n log n; of squares for the Gini index.
    gini : bool
    """

    numeric: np.ndarray
    symbolic: np.ndarray
    n_label: np.ndarray
    entropy: np.ndarray
    gini: bool


class Totals(NamedTuple):
    """What the rows of a node amount to.

    Attributes
    ----------
    seen, mean, spread : float64 (n_numeric,)
        Rows in which a number is observed, their mean, and their summed squared deviation from it.
    n_labelled, entropy, impurity : float64 (n_symbolic,)
        Rows in which a label is observed; sums over labels of `Targets.entropy`; summed impurity.
    count : uint32 (n_symbolic, n_label)
    """

    seen: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    n_labelled: np.ndarray
    entropy: np.ndarray
    impurity: np.ndarray
    count: np.ndarray


class Sides(NamedTuple):
    """What the rows on the left amount to while they are moved there, and what of the labels is still on the right.

    Attributes
    ----------
    below, n_below : float64 (n_numeric,)
        Sum of the numbers on the left, each less the node's mean, and how many they are.
    n_labelled, left, right : float64 (n_symbolic,)
        Rows with a label on the left; sums of `Targets.entropy` over the labels of each side.
    count : uint32 (n_symbolic, n_label)
        Labels on the left.
    of_number : float64 (n_numeric,), of_label : float64 (n_symbolic,)
        One over the node's impurity; 0 for what has none, and for the column that is split.
    """

    below: np.ndarray
    n_below: np.ndarray
    n_labelled: np.ndarray
    left: np.ndarray
    right: np.ndarray
    count: np.ndarray
    of_number: np.ndarray
    of_label: np.ndarray


def make_totals(targets: Targets) -> Totals:
    """Return room for the totals of one node."""
    number, label = (np.empty(columns.size) for columns in (targets.numeric, targets.symbolic))
    return Totals(number, number.copy(), number.copy(), label, label.copy(), label.copy(), _counts(targets))


def make_sides(targets: Targets) -> Sides:
    """Return room for the sides of one split."""
    number, label = (np.empty(columns.size) for columns in (targets.numeric, targets.symbolic))
    return Sides(
        number, number.copy(), label, label.copy(), label.copy(), _counts(targets), number.copy(), label.copy()
    )


def _counts(targets: Targets) -> np.ndarray:
    return np.empty((targets.symbolic.size, int(targets.n_label.max(initial=0))), np.uint32)


@inlined
def _impurity(n, entropy, targets):
    """Return the impurity of labels, summed over n rows, from the sum of `Targets.entropy` over their counts."""
    if n == 0.0:
        return 0.0
    # n times the Gini index is n - sum n_k^2 / n, n times the entropy is n log n - sum n_k log n_k
    return n - entropy / n if targets.gini else targets.entropy[int(n)] - entropy


@kernel
def fill_totals(records, targets, column, first, last, totals):
    """Fill the totals of the rows first ... last - 1, without those whose cell in `column` is missing (-1: of all)."""
    code, number = records.code, records.number
    totals.seen[:] = 0.0
    totals.mean[:] = 0.0
    totals.count[:] = 0
    for r in range(first, last):
        if column >= 0 and code[r, column] == MISSING:
            continue
        for t in range(targets.numeric.size):
            # false for NaN, a missing cell
            if number[r, t] == number[r, t]:
                totals.mean[t] += number[r, t]
                totals.seen[t] += 1.0
        for s in range(targets.symbolic.size):
            label = code[r, targets.symbolic[s]]
            if label != MISSING:
                totals.count[s, label] += np.uint32(1)
    for t in range(targets.numeric.size):
        totals.mean[t] /= max(totals.seen[t], 1.0)
    # a second pass, about the finished means: squares less squares of means would cancel
    _fill_spread(records, targets, column, first, last, totals)
    for s in range(targets.symbolic.size):
        totals.entropy[s] = totals.n_labelled[s] = 0.0
        for label in range(targets.n_label[s]):
            totals.n_labelled[s] += totals.count[s, label]
            totals.entropy[s] += targets.entropy[totals.count[s, label]]
        totals.impurity[s] = _impurity(totals.n_labelled[s], totals.entropy[s], targets)


@kernel
def _fill_spread(records, targets, column, first, last, totals):
    """Fill the squared deviations of the numeric targets from their means; 0 where they are all alike."""
    mean, spread = totals.mean, totals.spread
    spread[:] = 0.0
    square = np.zeros(spread.size)
    for r in range(first, last):
        if column >= 0 and records.code[r, column] == MISSING:
            continue
        for t in range(spread.size):
            # squares of float32 would lose the digits that the test for equal numbers looks at
            x = np.float64(records.number[r, t])
            if x == x:
                spread[t] += (x - mean[t]) ** 2
                square[t] += x * x
    for t in range(spread.size):
        if spread[t] <= _SMALLEST_SHARE * square[t]:
            spread[t] = 0.0


@kernel
def set_out(targets, totals, column, sides):
    """Prepare `sides` for splits of a column: all rows are on the right."""
    for t in range(targets.numeric.size):
        counts = targets.numeric[t] != column and totals.spread[t] > 0.0
        sides.of_number[t] = 1.0 / totals.spread[t] if counts else 0.0
    for s in range(targets.symbolic.size):
        counts = targets.symbolic[s] != column and totals.impurity[s] > 0.0
        sides.of_label[s] = 1.0 / totals.impurity[s] if counts else 0.0
    sides.count[:] = 0
    move_back(totals, sides)


@kernel
def move_back(totals, sides):
    """Move all rows to the right; `sides.count` is left to the caller."""
    sides.below[:] = 0.0
    sides.n_below[:] = 0.0
    sides.n_labelled[:] = 0.0
    sides.left[:] = 0.0
    copy_into(totals.entropy, sides.right)


@inlined
def move_labels(entropy, totals, sides, s, label, n):
    """Move n rows with one label of a symbolic target to the left."""
    n_left = sides.count[s, label]
    n_right = totals.count[s, label] - n_left
    sides.left[s] += entropy[n_left + n] - entropy[n_left]
    sides.right[s] += entropy[n_right - n] - entropy[n_right]
    sides.n_labelled[s] += n
    sides.count[s, label] = n_left + n


@inlined
def improvement(targets, totals, sides):
    """Return the sum over the targets of what the present sides improve."""
    score = 0.0
    for t in range(targets.numeric.size):
        product = sides.n_below[t] * (totals.seen[t] - sides.n_below[t])
        if product > 0.0:
            # deviations from the mean add up to 0: the right sum is -below, and below^2 / n_l + below^2 / n_r is left
            score += sides.below[t] ** 2 * totals.seen[t] * sides.of_number[t] / product
    for s in range(targets.symbolic.size):
        if sides.of_label[s] > 0.0:
            n_left = sides.n_labelled[s]
            n_right = totals.n_labelled[s] - n_left
            after = _impurity(n_left, sides.left[s], targets) + _impurity(n_right, sides.right[s], targets)
            score += 1.0 - after * sides.of_label[s]
    return score
