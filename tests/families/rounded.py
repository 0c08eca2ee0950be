"""The slow twin of the rounded normals: SciPy's normal on cells, with the methods of a frozen SciPy distribution."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.special
import scipy.stats

from bayesjpt.table.schema import Column

_REACH = 39.0
"""Standard deviations beyond which nothing is summed."""


class RoundedNormal:
    """A normal recorded as a whole number, on z; truncated at the cell of 0 where the column does not go below.

    Parameters
    ----------
    variance, mu : float or array
        They broadcast in `logpmf`; the other methods take scalars.
    column : Column
    """

    def __init__(self, variance, mu, column: Column):
        self.mu, self.scale = mu, np.sqrt(variance)
        self.width, self.zero = 1.0 / column.scale, -column.location / column.scale
        self.edge = self.zero - 0.5 * self.width if column.support[0] == 0.0 else -np.inf

    @cached_property
    def log_normaliser(self):
        return self._log_between(self.edge, np.inf) if self.edge > -np.inf else 0.0

    def _log_between(self, lo, hi):
        """Return log P(lo < Z < hi) of the normal, in the nearer tail."""
        a, b = (lo - self.mu) / self.scale, (hi - self.mu) / self.scale
        swap = a > 0.0
        a, b = np.where(swap, -b, a), np.where(swap, -a, b)
        larger, smaller = scipy.special.log_ndtr(b), scipy.special.log_ndtr(a)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(b > a, larger + np.log1p(-np.exp(smaller - larger)), -np.inf)

    def _top(self, x):
        """Return the upper end of the last cell whose whole number is at most x."""
        return self.zero + self.width * (np.floor((x - self.zero) / self.width + 1e-9) + 0.5)

    def logpmf(self, z):
        inside = self._log_between(z - 0.5 * self.width, z + 0.5 * self.width) - self.log_normaliser
        return np.where(z > self.edge, inside, -np.inf)

    def logcdf(self, x):
        return self._log_between(self.edge, self._top(x)) - self.log_normaliser

    def logsf(self, x):
        return self._log_between(np.maximum(self._top(x), self.edge), np.inf) - self.log_normaliser

    def cdf(self, x):
        return np.exp(self.logcdf(x))

    def _normal(self):
        return scipy.stats.truncnorm((self.edge - self.mu) / self.scale, np.inf, self.mu, self.scale)

    def _rounded(self, x):
        return self.zero + self.width * np.rint((x - self.zero) / self.width)

    def ppf(self, probability):
        return self._rounded(self._normal().ppf(probability))

    def isf(self, probability):
        return self._rounded(self._normal().isf(probability))

    def rvs(self, size, random_state):
        return self._rounded(self._normal().rvs(size, random_state=random_state))

    def _values(self):
        lo = max(self.mu - _REACH * self.scale, self.edge)
        hi = max(self.mu, lo) + _REACH * self.scale
        return self._rounded(np.arange(self._rounded(lo + 0.5 * self.width), hi, self.width))

    def moment(self, k):
        values = self._values()
        return float((values**k * np.exp(self.logpmf(values))).sum())
