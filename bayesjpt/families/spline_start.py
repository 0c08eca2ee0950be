"""The smooth distribution that the weights of a spline leaf begin at, and that their prior is centred on.

A leaf of 25 values says little beyond where they are, how far they spread and whether they are skew. So this is what a
further value of a normal sample has, a Student t distribution, or, where a column is not negative, that or the one of a
log-normal sample, in proportion to how probable they make the values; expressed in the leaf's splines and tails.

Reference: Gelman et al. (2013), Bayesian Data Analysis, third edition, section 3.2: a further value of n normal ones,
under a flat prior, has mean m, scale s sqrt(1 + 1 / n) and n - 1 degrees of freedom.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from bayesjpt.families.features import offset_and_scale
from bayesjpt.families.record import ColumnFacts, Scaling
from bayesjpt.families.spline_choice import fitted_weights
from bayesjpt.families.spline_layout import HIGH, LOW, ORDER, SIGMA, STEP, breaks_of, has_lower_tail, has_upper_tail

_POINTS = (np.arange(60) + 0.5) / 60.0
"""Probabilities of the quantiles that stand for a distribution; more change no weight by 0.01."""
_LEAST_SHARE = 1e-6
_FEW_FOR_SKEWNESS = 3
_LARGEST_EXCESS = 50.0
_LEAST_FREEDOM = 3.0
"""Degrees of freedom at least, for a variance."""


class _Predictive(NamedTuple):
    """The Student t distribution of a further x, or log x; over the column's scale."""

    mean: float
    scale: float
    freedom: float
    of_logarithm: bool

    def cdf(self, x: np.ndarray) -> np.ndarray:
        return stdtr(self.freedom, (self._on_line(x) - self.mean) / self.scale)

    def quantile(self, p: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            found = self.mean + self.scale * stdtrit(self.freedom, p)
            return np.exp(found) if self.of_logarithm else found

    def log_likelihood(self, x: np.ndarray) -> float:
        """Return that of the values, but for what does not depend on scale and mean."""
        on_line = self._on_line(x)
        square = ((on_line - self.mean) / self.scale) ** 2
        value = -0.5 * (self.freedom + 1.0) * np.log1p(square / self.freedom) - math.log(self.scale)
        return float((value - on_line if self.of_logarithm else value).sum())

    def _on_line(self, x: np.ndarray) -> np.ndarray:
        if not self.of_logarithm:
            return x
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(x, 0.0))


def smooth_weights(column: ColumnFacts, values: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """Return the weights of a leaf that come nearest to the smooth distribution of its values, float64 (n_weight,).

    Parameters
    ----------
    column : ColumnFacts
    values : float64 (n,)
        Of the leaf, in the user's units. Where there are none, all weights are alike.
    constants : float64 (n_constant,)
        Of the leaf.

    Notes
    -----
    Nearest is what maximises the likelihood of quantiles. The scale is at least a quarter of a cell's width, and there
    are at least three degrees of freedom.
    """
    n_tail = int(has_lower_tail(constants)) + int(has_upper_tail(constants))
    breaks = breaks_of(constants)
    n_weight = breaks.size + int(constants[ORDER]) - 2 + n_tail
    if not values.size:
        return np.full(n_weight, 1.0 / n_weight)
    offset, scale = offset_and_scale(Scaling.REAL_LOCATION_SCALE, column)
    x, half = values / scale, (0.5 if column.base == "integer" else 0.5 * column.resolution) / scale
    normal = _fitted(x, 0.5 * half, float(constants[SIGMA]))
    weights = _weights_of(normal, offset / scale, constants)
    mean = float(x.mean())
    if column.support[0] >= 0.0 and x.size >= _FEW_FOR_SKEWNESS and mean > 0.0:
        positive = np.maximum(x, max(half, _LEAST_SHARE * mean))
        logarithm = _fitted(np.log(positive), min(0.5 * half / mean, 1.0), 1.0)._replace(of_logarithm=True)
        excess = logarithm.log_likelihood(positive) - normal.log_likelihood(positive)
        share = 1.0 / (1.0 + math.exp(min(max(excess, -_LARGEST_EXCESS), _LARGEST_EXCESS)))
        weights = share * weights + (1.0 - share) * _weights_of(logarithm, offset / scale, constants)
    weights = np.maximum(weights, _LEAST_SHARE)
    return weights / weights.sum()


def _fitted(x: np.ndarray, least: float, alone: float) -> _Predictive:
    """Return the distribution of a further value, no narrower than `least`; the scale is `alone` for a single one."""
    n = x.size
    scale = math.sqrt(float(x.var()) * n / (n - 1.0) * (1.0 + 1.0 / n)) if n > 1 else alone
    scale = max(scale, least, np.finfo(np.float64).tiny)
    return _Predictive(float(x.mean()), scale, max(n - 1.0, _LEAST_FREEDOM), of_logarithm=False)


def _weights_of(found: _Predictive, shift: float, constants: np.ndarray) -> np.ndarray:
    """Return the weights of splines and tails that come nearest to a distribution between the ends of the leaf.

    `shift` is what the distribution's values have more than those of the leaf's units.
    """
    breaks, step = breaks_of(constants), float(constants[STEP])
    low, first, last, high = found.cdf(np.array([constants[LOW], breaks[0], breaks[-1], constants[HIGH]]) + shift)
    z = np.clip(found.quantile(first + (last - first) * _POINTS) - shift, breaks[0], breaks[-1])
    if step > 0.0:
        z = np.clip(np.rint(z), breaks[0] + 0.5, breaks[-1] - 0.5)
    inside, _ = fitted_weights(z, np.ones(z.size), breaks, int(constants[ORDER]), step)
    total = high - low
    tails = [(first - low) / total if total > 0.0 else 0.0] if has_lower_tail(constants) else []
    tails += [(high - last) / total if total > 0.0 else 0.0] if has_upper_tail(constants) else []
    return np.array([*(inside * max(1.0 - sum(tails), 0.0)), *tails])
