"""Quantiles of distributions of counts: by doubling steps from where most of the mass is, then by halves.

A kernel that took the distribution as a function would be compiled anew by each process. So the caller compares, and
is told what to compare next:

      search = begin_search(start)
      while is_open(search):
          search = narrowed(search, P(X <= search[0]) >= target, first, last)
      return found(search)
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.numerics.cancellation import logaddexp
from bayesjpt.numerics.jit import kernel


@kernel
def tail_targets(u, log_all, log_before, log_behind):
    """Return log(P(X < x) at the u-quantile x between two ends), and of what is above: compare with the smaller.

    Logarithms of the mass between the ends, of that before them and of that behind them.
    """
    return logaddexp(log_before, math.log(u) + log_all), logaddexp(log_behind, math.log1p(-u) + log_all)


@kernel
def begin_search(start):
    """Return a search that begins at a count: (what to compare, largest below, least not below, step)."""
    return start, -np.inf, np.inf, 1.0


@kernel
def is_open(search):
    """Return whether there is a count to compare."""
    return not math.isnan(search[0])


@kernel
def found(search):
    """Return the quantile, once the search is closed."""
    return search[2]


@kernel
def narrowed(search, is_reached, first, last):
    """Return a search among first ... last after a comparison: whether P(X <= the count) is at least the target."""
    asked, left, right, step = search
    if is_reached:
        right = asked
    else:
        left = asked
    if left == -np.inf:
        left = max(right - step, first - 1.0)
        # so far out that a step is lost in rounding nothing lies before the first
        if left >= first and right > first:
            return left, -np.inf, right, 2.0 * step
    elif right == np.inf:
        right = min(left + step, last)
        if right < last:
            return right, left, np.inf, 2.0 * step
    middle = np.floor(0.5 * (left + right))
    # neighbours among floats have no middle; nor is there one far beyond 2^53
    if right - left <= 1.0 or not left < middle < right:
        middle = np.nan
    return middle, left, right, step
