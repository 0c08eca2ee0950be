"""Bounds for comparing draws with what they should be distributed as; all at the same small false-alarm rate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.special

FALSE_ALARM = 1e-6
LARGEST_Z = 5.5
"""Of a few dozen z-scores; normal tail probability 4e-8 each, more for the t of a hundred batches."""
N_BATCH = 100
N_COMPARED = 1000
"""Points at which two distribution functions are compared: between them an empirical one rises by a thousandth, a tenth
of the bound for thirty thousand draws or less."""
_JUST_BELOW = 1e-3
"""Of the smallest gap; the next float below a whole number counts as that number in scaled units."""


def dkw_bound(n: int) -> float:
    """Return the largest deviation of an empirical cdf of n independent draws (Dvoretzky, Kiefer and Wolfowitz)."""
    return float(np.sqrt(np.log(2.0 / FALSE_ALARM) / (2.0 * n)))


def cdf_deviation(draws: np.ndarray, cdf: Callable) -> float:
    """Return the largest distance of the draws' empirical cdf from the vectorised `cdf`, ties included.

    Of more than `N_COMPARED` distinct values as many are looked at, evenly by rank, the first and the last among them.
    """
    values, counts = np.unique(draws, return_counts=True)
    upto = np.cumsum(counts) / draws.size
    apart = np.diff(values).min() if values.size > 1 else 1.0
    if values.size > N_COMPARED:
        kept = np.linspace(0, values.size - 1, N_COMPARED).round().astype(np.intp)
        values, counts, upto = values[kept], counts[kept], upto[kept]
    expected = np.asarray(cdf(values))
    before = np.asarray(cdf(np.minimum(values - _JUST_BELOW * apart, np.nextafter(values, -np.inf))))
    return float(max(np.abs(upto - expected).max(), np.abs(upto - counts / draws.size - before).max()))


def batch_z(draws: np.ndarray, expected: float) -> float:
    """Return the z-score of a chain's mean against its expectation, its error from batch means."""
    batches = draws[: draws.size // N_BATCH * N_BATCH].reshape(N_BATCH, -1).mean(axis=1)
    error = batches.std(ddof=1) / np.sqrt(N_BATCH)
    return float((batches.mean() - expected) / max(error, 1e-12))


def log_upper_gamma(a: float, x):
    """Return the log probability that a Gamma(a, 1) variable exceeds x, by its asymptotic series far out."""
    far = np.maximum(x, 600.0)
    terms = sum(np.prod([(a - j) / far for j in range(1, k + 1)], axis=0) for k in range(8))
    series = (a - 1.0) * np.log(far) - far - scipy.special.gammaln(a) + np.log(terms)
    return np.where(x < 600.0, np.log(scipy.special.gammaincc(a, np.minimum(x, 600.0))), series)
