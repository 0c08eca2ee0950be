"""What families share whose distribution has finite support: a weight for each value of a list.

`fill_log_density` and `accumulate` are slots as they stand; their auxiliary table holds the position of a value in the
list, -1 where it is none. The others are copied into the slots that call them, and take from wherever a family has them

    values     ascending; those beyond the last weight are not looked at
    weights    one a value; they need not add up to 1
    possible   positive where a value can occur; often the weights themselves

as arrays, or as tuples where their number is known.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.numerics.jit import inlined, kernel
from bayesjpt.numerics.ordering import n_below


@kernel
def fill_positions(values, z, out):
    """Fill the position of each z among ascending values."""
    for i in range(out.size):
        at = n_below(values, z[i])
        out[i] = at if at < values.size and values[at] == z[i] else -1.0


@kernel
def fill_log_density(z, aux, coefficients, out):
    """Look up the log masses, that of position -1 first."""
    for i in range(out.size):
        out[i] = coefficients[int(aux[i]) + 1]


@kernel
def accumulate(z, aux, rows, constants, stats):
    """Count the rows of each value."""
    for j in range(rows.size):
        at = int(aux[rows[j]])
        if at >= 0:
            stats[at] += 1.0


@inlined
def weight_within(values, weights, possible, lo, hi):
    """Return the weight of what lies in [lo, hi], and that of all else."""
    inside, outside = 0.0, 0.0
    for k in range(len(weights)):
        if possible[k] > 0.0:
            if lo <= values[k] <= hi:
                inside += weights[k]
            else:
                outside += weights[k]
    return inside, outside


@kernel
def log_share(inside, outside):
    """Return log(inside / (inside + outside))."""
    if inside == 0.0:
        return -np.inf
    total = inside + outside
    # of the smaller share: a logarithm near 0 keeps its digits
    return math.log(inside / total) if inside < outside else math.log1p(-outside / total)


@inlined
def most_probable(values, weights, possible, lo, hi):
    """Return the value of [lo, hi] with the largest weight; of an interval without any, its end nearest to the mode."""
    best, best_anywhere = -1, -1
    for k in range(len(weights)):
        if possible[k] > 0.0:
            if best_anywhere < 0 or weights[k] > weights[best_anywhere]:
                best_anywhere = k
            if lo <= values[k] <= hi and (best < 0 or weights[k] > weights[best]):
                best = k
    return values[best] if best >= 0 else min(max(values[best_anywhere], lo), hi)


@inlined
def mean_or_variance(k, values, weights, lo, hi):
    """Return the mean (k = 1) or the variance (k = 2) given [lo, hi]; all values are possible, or have weight 0."""
    total, value = 0.0, 0.0
    for i in range(len(weights)):
        if lo <= values[i] <= hi:
            total += weights[i]
            value += weights[i] * values[i]
    if total == 0.0:
        return most_probable(values, weights, weights, lo, hi) if k == 1 else 0.0
    mean = min(max(value / total, lo), hi)
    if k == 1:
        return mean
    squares = 0.0
    for i in range(len(weights)):
        squares += weights[i] * (values[i] - mean) * (values[i] - mean) if lo <= values[i] <= hi else 0.0
    return squares / total


@inlined
def draw_value(values, weights, possible, lo, hi, rng):
    """Return a draw given [lo, hi]."""
    total, _ = weight_within(values, weights, possible, lo, hi)
    if total == 0.0:
        return most_probable(values, weights, possible, lo, hi)
    left = total * rng.random()
    last = 0
    for k in range(len(weights)):
        if lo <= values[k] <= hi and possible[k] > 0.0:
            # what rounding leaves over falls on the last possible value
            last = k
            left -= weights[k]
            if left < 0.0:
                break
    return values[last]
