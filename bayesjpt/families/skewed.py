"""Whether positive numbers, such as failure times, ask for a gamma distribution rather than a normal one."""

from __future__ import annotations

import math

import numpy as np

_LEAST_GAIN_A_ROW = 0.05
"""Nats. A gamma distribution gains about its squared skewness / 12: numbers less skewed than .8, as heights and
weights are, stay normal, of which predictors are plain means."""
_LEAST_GAIN = 3.0
"""Nats in all: odds of 20 to 1 (Kass and Raftery 1995, "strong"), so that a few rows decide nothing."""


def is_skewed(values: np.ndarray) -> bool:
    """Return whether all numbers are positive, and a gamma distribution is clearly likelier than a normal one.

    Parameters
    ----------
    values : float64 (n,)
        Observed, of one column.

    Notes
    -----
    Both have two parameters, so that their largest log likelihoods compare as they are. That of the gamma distribution
    is taken at an approximation of its best shape (Minka 2002, within 1.5 %), hence never too large.

    References
    ----------
    Kass and Raftery (1995). Bayes Factors. JASA 90(430), section 3.2.
    Minka (2002). Estimating a Gamma distribution.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> is_skewed(rng.exponential(size=200)), is_skewed(rng.normal(20.0, 2.0, 200))
    (True, False)
    """
    if not values.size or not values.min() > 0.0:
        return False
    # the answer has no unit; next to the largest float their squares would be infinite
    unit = float(values.max())
    mean_log = float(np.log(values).mean()) - math.log(unit)
    values = values / unit
    mean, variance = float(values.mean()), float(values.var())
    s = math.log(mean) - mean_log
    # of a shape above 50, whose skewness is below .3; beyond, rounding errors would be most of the difference
    if s < 0.01 or not variance > 0.0:
        return False
    shape = (3.0 - s + math.sqrt((s - 3.0) ** 2 + 24.0 * s)) / (12.0 * s)
    gamma = shape * math.log(shape / mean) - math.lgamma(shape) + (shape - 1.0) * mean_log - shape
    normal = -0.5 * math.log(2.0 * math.pi * math.e * variance)
    return gamma - normal > max(_LEAST_GAIN_A_ROW, _LEAST_GAIN / values.size)
