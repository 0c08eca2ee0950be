"""The order of numbers, for kernels: what NumPy has takes several times as long to compile."""

from __future__ import annotations

import numpy as np

from bayesjpt.numerics.jit import kernel


@kernel
def stable_order(key):
    """Return int64 (n,): positions of the keys in ascending order, equal keys in theirs. None may be NaN.

    Merge sort from below: runs of 1, 2, 4, ... positions. O(n log n).
    """
    n = key.size
    order, merged = np.arange(n), np.empty(n, np.int64)
    width = 1
    while width < n:
        for first in range(0, n, 2 * width):
            middle, last = min(first + width, n), min(first + 2 * width, n)
            left, right = first, middle
            for at in range(first, last):
                # of equal keys that of the left run comes first: the order is stable
                if left < middle and (right >= last or key[order[left]] <= key[order[right]]):
                    merged[at] = order[left]
                    left += 1
                else:
                    merged[at] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order


@kernel
def n_below(ascending, x):
    """Return how many of some ascending numbers are less than x; all where x is NaN, which sorts last."""
    first, last = 0, ascending.size
    while first < last:
        middle = (first + last) // 2
        if not ascending[middle] >= x:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def n_up_to(ascending, x):
    """Return how many of some ascending numbers are at most x; all where x is NaN, which sorts last."""
    first, last = 0, ascending.size
    while first < last:
        middle = (first + last) // 2
        if not ascending[middle] > x:
            first = middle + 1
        else:
            last = middle
    return first
