"""Posterior of a leaf's one to three parameters on a grid, from SciPy's likelihoods and the priors told to PyMC."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.special
import scipy.stats

from bayesjpt.families import features, registry
from bayesjpt.families.record import Parameter
from tests.families.examples import reference
from tests.statistics import log_upper_gamma

_N_ONE = 20_001
_N_TWO = 401
_N_THREE = 81
_N_COARSE = 201
_N_ON_CELL = 201
_N_COARSE_THREE = 41
_RANGE = {"positive": (-40.0, 40.0), "unit": (-40.0, 40.0), "real": (-25.0, 25.0)}
_NEGLIGIBLE = 1e-10
_ABOVE = ("gamma_above", "beta_above")
_REAL_UNIT = 0.3
_LARGEST_UNIT = 1.0 - 1.2e-16


def _to_parameter(constraint: str, u: np.ndarray, centre: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the parameter at unconstrained u and the log Jacobian.

    A real one is fine around the data's centre and logarithmic far out: its marginal may have a heavy tail.
    """
    if constraint == "positive":
        return np.exp(u), u
    if constraint == "unit":
        return np.minimum(scipy.special.expit(u), _LARGEST_UNIT), scipy.special.log_expit(u) + scipy.special.log_expit(
            -u
        )
    return centre + _REAL_UNIT * np.sinh(u), np.log(_REAL_UNIT * np.cosh(u))


def log_prior(parameter: Parameter, value, arguments) -> np.ndarray:
    """Return the log prior density of a parameter's value, per unit of the parameter, normalised."""
    if parameter.prior == "normal":
        return scipy.stats.norm.logpdf(value, *arguments)
    if parameter.prior == "normal_below":
        mean, sd, cap = arguments
        plain = scipy.stats.norm(mean, sd)
        return np.where(value <= cap, plain.logpdf(value) - plain.logcdf(cap), -np.inf)
    if parameter.prior == "gamma":
        shape, rate = arguments
        return scipy.stats.gamma.logpdf(value, shape, scale=1.0 / rate)
    if parameter.prior == "gamma_above":
        shape, rate, floor = arguments
        plain = scipy.stats.gamma(shape, scale=1.0 / rate)
        return np.where(value >= floor, plain.logpdf(value) - log_upper_gamma(shape, rate * floor), -np.inf)
    if parameter.prior == "gamma_below":
        shape, rate, cap = arguments
        plain = scipy.stats.gamma(shape, scale=1.0 / rate)
        return np.where(value <= cap, plain.logpdf(value) - plain.logcdf(cap), -np.inf)
    if parameter.prior in ("beta", "beta_above"):
        a, b, *floor = arguments
        plain = scipy.special.xlogy(a - 1, value) + scipy.special.xlog1py(b - 1, -value) - scipy.special.betaln(a, b)
        if not floor:
            return plain
        return np.where(value >= floor[0], plain - np.log(scipy.special.betaincc(a, b, floor[0])), -np.inf)
    if parameter.prior == "inverse_gamma":
        shape, scale, floor = arguments
        plain = scipy.stats.invgamma(shape, scale=scale)
        return np.where(value >= floor, plain.logpdf(value) - plain.logsf(floor), -np.inf)
    mean, sd, cap = arguments
    plain = scipy.stats.norm(mean, sd)
    log_value = np.log(value)
    return np.where(value <= cap, plain.logpdf(log_value) - log_value - plain.logcdf(np.log(cap)), -np.inf)


@dataclass(frozen=True)
class GridPosterior:
    """Cells of equal size in the unconstrained parameters.

    `axes` holds the parameters at the middle of each cell, `mass` the normalised masses, `log_evidence` the log
    integral of likelihood times prior.
    """

    axes: tuple[np.ndarray, ...]
    edges: tuple[np.ndarray, ...]
    mass: np.ndarray
    log_evidence: float

    def _cumulative(self, j: int) -> np.ndarray:
        marginal = self.mass.sum(axis=tuple(i for i in range(self.mass.ndim) if i != j))
        return np.cumsum(marginal)

    def marginal_quantiles(self, j: int, probabilities) -> list[tuple[float, float]]:
        """Return (value, exact probability below it) at the cell edges nearest to the wanted probabilities."""
        cumulative = self._cumulative(j)
        at = [int(np.abs(cumulative - p).argmin()) for p in probabilities]
        return [(float(self.edges[j][i]), float(cumulative[i])) for i in at]

    def draws(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return float64 (n, n_parameter): the parameters in the middle of cells, drawn by their mass."""
        at = np.unravel_index(rng.choice(self.mass.size, n, p=self.mass.ravel() / self.mass.sum()), self.mass.shape)
        return np.column_stack([axis[index] for axis, index in zip(self.axes, at, strict=True)])

    def cdf(self, j: int, x: np.ndarray) -> np.ndarray:
        """Return the probability that parameter j is at most x, linear in its logarithm or itself within a cell."""
        return np.interp(x, self.edges[j], self._cumulative(j), left=0.0)

    def joint(self, first: float, second: float) -> float:
        """Return the probability that the first two parameters are below cell edges."""
        inside = (self.axes[0] <= first)[:, None] & (self.axes[1] <= second)[None, :]
        return float(self.mass[inside].sum())


@cache
def grid_posterior(case) -> GridPosterior:
    """Return the grid posterior of (family, column, prior, values): a coarse grid first, then where it has mass.

    A case may end with a cell, in the user's units, to which the family is truncated.
    """
    family = registry.family(case[0])
    n_parameter = len(family.parameters)
    n, n_coarse = (_N_THREE, _N_COARSE_THREE) if n_parameter == 3 else ((_N_ONE, _N_TWO)[n_parameter - 1], _N_COARSE)
    if len(case) > 4 and n_parameter > 1:  # masses of cells are slow
        n, n_coarse = _N_ON_CELL, _N_ON_CELL
    ranges = [_RANGE[parameter.constraint] for parameter in family.parameters]
    for _ in range(4):
        log_mass, middles, _, _ = _evaluate(case, ranges, n_coarse)
        mass = np.exp(log_mass - scipy.special.logsumexp(log_mass))
        for j, u in enumerate(middles):
            step = u[1] - u[0]
            others = tuple(i for i in range(n_parameter) if i != j)
            alive = u[mass.sum(axis=others) > _NEGLIGIBLE / n_coarse]
            ranges[j] = (max(alive[0] - 2 * step, ranges[j][0]), min(alive[-1] + 2 * step, ranges[j][1]))
    ranges = _at_bound(case, ranges)
    log_mass, _, axes, edges = _evaluate(case, ranges, n)
    log_evidence = float(scipy.special.logsumexp(log_mass))
    return GridPosterior(axes, edges, np.exp(log_mass - log_evidence), log_evidence)


def _hyper(case):
    name, column, prior, x, *_ = case
    family = registry.family(name)
    start = features.initial_theta(family, column, np.array(x))
    return dict(zip(family.hyper_names, family.priors[prior](column, start), strict=True))


def _at_bound(case, ranges):
    """Return the ranges with the lower or upper bounds of parameters as ends where they cut the grid."""
    hyper = _hyper(case)
    cut = []
    for parameter, (lo, hi) in zip(registry.family(case[0]).parameters, ranges, strict=True):
        bound = 0.0
        beside_others = parameter.prior in _ABOVE and len(ranges) > 1  # the bound depends on another parameter
        if parameter.prior in ("inverse_gamma", "log_normal", "gamma_below", *_ABOVE) and not beside_others:
            bound = parameter.arguments(hyper, {})[2]
        below = parameter.prior in ("log_normal", "gamma_below")
        end = scipy.special.logit(bound) if parameter.prior == "beta_above" else np.log(max(bound, 1e-300))
        floor, cap = (-np.inf, end) if below else (end if bound > 0.0 else -np.inf, np.inf)
        cut.append((max(lo, floor), min(hi, cap)))
    return cut


def _log_between(frozen, column, ends: np.ndarray) -> np.ndarray:
    """Return the log probability of a closed interval of z, by whichever tails keep their digits."""
    lo, hi = (np.ceil(ends[0]) - 1.0, np.floor(ends[1])) if column.base == "integer" else ends
    with np.errstate(divide="ignore", invalid="ignore"):
        below, above = (frozen.logcdf(lo), frozen.logcdf(hi)), (frozen.logsf(hi), frozen.logsf(lo))
        less, more = np.where(below[1] < above[1], below, above)
        return more + np.log1p(-np.exp(less - more))


def _evaluate(case, ranges, n: int):
    """Return log masses of the cells, their middles (unconstrained), and the parameters at middles and upper edges."""
    name, column, _, x, *cell = case
    family = registry.family(name)
    hyper = _hyper(case)
    steps = [(hi - lo) / n for lo, hi in ranges]
    middles = [lo + step * (np.arange(n) + 0.5) for (lo, _), step in zip(ranges, steps, strict=True)]
    edges = [lo + step * (np.arange(n) + 1.0) for (lo, _), step in zip(ranges, steps, strict=True)]
    constraints = [parameter.constraint for parameter in family.parameters]
    z = features.to_units(family, column, np.array(x))
    centre = float(np.median(z)) if z.size else 0.0
    axes = tuple(_to_parameter(c, u, centre)[0] for c, u in zip(constraints, middles, strict=True))
    mesh = np.meshgrid(*middles, indexing="ij", sparse=True)
    theta, log_mass = {}, np.log(np.prod(steps))
    for parameter, u in zip(family.parameters, mesh, strict=True):
        value, jacobian = _to_parameter(parameter.constraint, u, centre)
        arguments = parameter.arguments(hyper, theta)
        log_mass = log_mass + jacobian + log_prior(parameter, value, arguments)
        theta[parameter.name] = value
    frozen = reference(name, list(theta.values()), column)
    constants = family.constants(column)
    for value, count in zip(*np.unique(z, return_counts=True), strict=True):
        if column.base == "real" and constants.size and value < constants[0]:
            log_mass = log_mass + count * (frozen.logcdf(constants[0]) - np.log(2.0 * constants[0]))
        else:
            log_mass = log_mass + count * (frozen.logpmf if column.base == "integer" else frozen.logpdf)(value)
    if cell:
        log_cell = _log_between(frozen, column, features.to_units(family, column, np.array(cell[0])))
        log_mass = np.where(log_cell > -np.inf, log_mass - len(x) * np.maximum(log_cell, -1e300), -np.inf)
    upper = tuple(_to_parameter(c, u, centre)[0] for c, u in zip(constraints, edges, strict=True))
    return log_mass, middles, axes, upper
