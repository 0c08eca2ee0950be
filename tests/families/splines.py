"""The slow twin of the spline family: SciPy's B-splines and their antiderivative, and exponential tails."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.integrate
import scipy.optimize
from scipy.interpolate import BSpline


class Spline(NamedTuple):
    """Weights of a spline leaf and, beside them, what is its own; in the units of the breaks."""

    weights: tuple[float, ...]
    order: int
    breaks: tuple[float, ...]
    sigma: float
    ends: tuple[float, float]


def m_splines(order: int, breaks: Sequence[float], weights: Sequence[float]) -> BSpline:
    """Return the mixture of M-splines with some weights, by SciPy: M_j = k / (t_{j+k} - t_j) B_j."""
    knots = np.array([breaks[0]] * (order - 1) + list(breaks) + [breaks[-1]] * (order - 1))
    n = knots.size - order
    scale = [order / (knots[j + order] - knots[j]) for j in range(n)]
    return BSpline(knots, np.array(scale) * np.asarray(weights)[:n], order - 1)


class SplineDistribution:
    """The distribution of a leaf on the line."""

    def __init__(self, leaf: Spline):
        self.leaf = leaf
        self.first, self.last = leaf.breaks[0], leaf.breaks[-1]
        lo, hi = leaf.ends
        n = len(leaf.breaks) + leaf.order - 2
        rest = list(leaf.weights[n:])
        self.lower = rest.pop(0) if lo < self.first else 0.0
        self.upper = rest.pop(0) if hi > self.last else 0.0
        assert not rest
        self.body = float(sum(leaf.weights[:n]))
        self.density = m_splines(leaf.order, leaf.breaks, leaf.weights)
        self.below = self.density.antiderivative()

    def _kept(self, reach: float) -> float:
        return -math.expm1(-reach / self.leaf.sigma)

    def logpdf(self, x):
        return np.vectorize(self._logpdf, otypes=[float])(x)

    def _logpdf(self, x: float) -> float:
        (lo, hi), sigma = self.leaf.ends, self.leaf.sigma
        if self.first <= x <= self.last:
            return math.log(max(float(self.density(x)), 1e-320))
        if lo <= x < self.first:
            return math.log(self.lower / sigma / self._kept(self.first - lo)) - (self.first - x) / sigma
        if self.last < x <= hi:
            return math.log(self.upper / sigma / self._kept(hi - self.last)) - (x - self.last) / sigma
        return -math.inf

    def pdf(self, x):
        return np.exp(self.logpdf(x))

    def logcdf(self, x):
        return np.vectorize(self._logcdf, otypes=[float])(x)

    def _log_tail(self, weight: float, near: float, reach: float) -> float:
        """Return the log probability of a tail beyond a distance."""
        sigma = self.leaf.sigma
        if not near < reach or weight == 0.0:
            return -math.inf
        rest = 0.0 if reach == math.inf else math.exp(-(reach - near) / sigma)
        return math.log(weight) - near / sigma + math.log1p(-rest) - math.log(self._kept(reach))

    def _logcdf(self, x: float) -> float:
        lo, hi = self.leaf.ends
        if x < self.first:
            return self._log_tail(self.lower, self.first - x, self.first - lo)
        if x <= self.last:
            return math.log(max(self.lower + float(self.below(x) - self.below(self.first)), 1e-320))
        beyond = self._log_tail(self.upper, x - self.last, hi - self.last)
        return math.log1p(-min(math.exp(beyond), 1.0)) if beyond < 0.0 else -math.inf

    def logsf(self, x):
        return np.vectorize(self._logsf, otypes=[float])(x)

    def _logsf(self, x: float) -> float:
        if x >= self.last:
            return self._log_tail(self.upper, x - self.last, self.leaf.ends[1] - self.last)
        if x >= self.first:
            return math.log(max(self.upper + float(self.below(self.last) - self.below(x)), 1e-320))
        return math.log1p(-math.exp(self._logcdf(x)))

    def cdf(self, x):
        return np.exp(self.logcdf(x))

    def sf(self, x):
        return np.exp(self.logsf(x))

    def ppf(self, q):
        return np.vectorize(lambda p: self._root(self._logcdf, math.log(p)), otypes=[float])(q)[()]

    def isf(self, q):
        return np.vectorize(lambda p: self._root(self._logsf, math.log(p)), otypes=[float])(q)[()]

    def _root(self, log_probability, wanted: float) -> float:
        far = 800.0 * self.leaf.sigma
        lo, hi = max(self.leaf.ends[0], self.first - far), min(self.leaf.ends[1], self.last + far)
        return scipy.optimize.brentq(lambda x: max(log_probability(x), -1e4) - wanted, lo, hi, xtol=1e-14, rtol=1e-14)

    def median(self) -> float:
        return float(self.ppf(0.5))

    def moment(self, k: int) -> float:
        far = 60.0 * self.leaf.sigma
        ends = [max(self.leaf.ends[0], self.first - far), *self.leaf.breaks, min(self.leaf.ends[1], self.last + far)]
        return math.fsum(
            scipy.integrate.quad(lambda x: x**k * self.pdf(x), a, c, epsabs=0.0, epsrel=1e-12)[0]
            for a, c in itertools.pairwise(ends)
            if a < c
        )

    def std(self) -> float:
        return math.sqrt(self.moment(2) - self.moment(1) ** 2)

    def rvs(self, size: int, random_state: np.random.Generator) -> np.ndarray:
        return np.array([float(self.ppf(p)) for p in random_state.uniform(1e-12, 1.0, size)])


class RoundedSpline:
    """Whole numbers, each with the mass of its cell."""

    def __init__(self, leaf: Spline):
        self.line = SplineDistribution(leaf)

    def logpmf(self, x):
        return np.vectorize(self._logpmf, otypes=[float])(x)

    def _logpmf(self, x: float) -> float:
        # on the side where the rest of the line is smaller, and digits are kept
        if x > self.line.leaf.breaks[0]:
            more, less = self.line._logsf(x - 0.5), self.line._logsf(x + 0.5)
        else:
            more, less = self.line._logcdf(x + 0.5), self.line._logcdf(x - 0.5)
        return more + math.log1p(-math.exp(less - more)) if more > less else -math.inf

    def logcdf(self, x):
        return self.line.logcdf(np.floor(x) + 0.5)

    def cdf(self, x):
        return np.exp(self.logcdf(x))

    def logsf(self, x):
        return self.line.logsf(np.floor(x) + 0.5)

    def ppf(self, q):
        return np.ceil(self.line.ppf(q) - 0.5)

    def isf(self, q):
        return np.ceil(self.line.isf(q) - 0.5)

    def moment(self, k: int) -> float:
        values = np.arange(self.ppf(1e-16), self.isf(1e-16) + 1.0)
        return math.fsum(values**k * np.exp(self.logpmf(values)))

    def std(self) -> float:
        return math.sqrt(self.moment(2) - self.moment(1) ** 2)

    def median(self) -> float:
        return float(self.ppf(0.5))

    def rvs(self, size: int, random_state: np.random.Generator) -> np.ndarray:
        return np.rint(self.line.rvs(size, random_state))
