"""The slow twin of the ordinal family: differences of SciPy's logistic, as a frozen SciPy distribution."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.special
import scipy.stats

from bayesjpt.table.schema import Column


def ordered(scale, mu, column: Column):
    """Return the distribution of a column's levels or codes; scale and mu may be arrays that broadcast, for masses.

    Cuts are where the logistic has the column's cumulative shares.
    """
    other = column.frequencies[-1] if column.base == "category" else 0.0
    shares = np.array(column.frequencies[:-1] if column.base == "category" else column.frequencies)
    values = [*(range(shares.size) if column.base == "category" else column.levels)]
    cuts = scipy.special.logit(np.cumsum(shares)[:-1] / shares.sum())
    ends = [-np.inf, *cuts, np.inf]
    masses = [_between((lo - mu) / scale, (hi - mu) / scale) * (1.0 - other) for lo, hi in itertools.pairwise(ends)]
    if column.base == "category":
        values, masses = [*values, float(shares.size)], [*masses, np.full(np.shape(masses[0]), other)]
    if np.ndim(masses[0]):
        return Masses(np.array(values), masses)
    return scipy.stats.rv_discrete(values=(values, masses))


def _between(lo, hi):
    """Return the logistic's mass, in the nearer tail."""
    upper = lo > 0.0
    a, b = np.where(upper, -hi, lo), np.where(upper, -lo, hi)
    return scipy.special.expit(b) - scipy.special.expit(a)


class Masses:
    """Masses of values under many parameters at once."""

    def __init__(self, values: np.ndarray, masses: list[np.ndarray]):
        self.values, self.masses = values, masses

    def _log_sum(self, inside: np.ndarray):
        with np.errstate(divide="ignore"):
            return np.log(sum((m for m, kept in zip(self.masses, inside, strict=True) if kept), 0.0 * self.masses[0]))

    def logpmf(self, z):
        return self._log_sum(self.values == z)

    def logcdf(self, x):
        return self._log_sum(self.values <= x)

    def logsf(self, x):
        return self._log_sum(self.values > x)
