"""The families' documented priors written with SciPy, and what they make of a whole model."""

from __future__ import annotations

import collections
import functools
import itertools
import math

import numpy as np
import scipy.special
import scipy.stats

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table
from tests import naive
from tests.statistics import log_upper_gamma

ABDA_SHAPE_SD = 0.01
"""The paper holds the gamma's shape at an estimate; its prior is narrow around it."""


LARGEST_SIZE = 1e6


def _log_prior_size(size, median: float = 1.0):
    """Return the log density of a negative binomial's size: log-normal below its cap."""
    prior = scipy.stats.lognorm(1.5, scale=median)
    return np.where(size <= LARGEST_SIZE, prior.logpdf(size) - prior.logcdf(LARGEST_SIZE), -np.inf)


def _log_prior_degrees(nu, least: float):
    """Return the log density of a t's degrees of freedom: inverse gamma above the least."""
    prior = scipy.stats.invgamma(1.0, scale=1.0)
    return np.where(nu >= least, prior.logpdf(nu) - prior.logsf(least), -np.inf)


def _log_simplex(theta, concentration):
    """Return the log density of a Dirichlet; a single atom has probability 1."""
    return scipy.stats.dirichlet.logpdf(theta, concentration) if concentration.size > 1 else 0.0


def _widest(column: Column) -> float:
    """Return the scale at which an ordinal leaf that is not moved has 1.5 times the column's share of its rarer end.

    In the limit of a rare end, where that share is a power.
    """
    share = np.array(column.frequencies[:-1] if column.base == "category" else column.frequencies)
    rarer = min(share[0], share[-1]) / share.sum()
    return min(math.log(rarer) / math.log(1.5 * rarer), 100.0) if 1.5 * rarer < 1.0 else 100.0


def _log_prior_ordinal(theta, log_scale_mean: float, log_scale_sd: float, mu_sd: float, *, cap: float = 100.0):
    scale, mu = theta
    at_scale = scipy.stats.lognorm(log_scale_sd, scale=math.exp(log_scale_mean))
    at_mu = scipy.stats.norm.logpdf(mu, 0.0, mu_sd)
    return np.where(scale <= cap, at_scale.logpdf(scale) - at_scale.logcdf(cap) + at_mu, -np.inf)


def _moments(column: Column) -> tuple[float, float]:
    """Return mean and standard deviation of a column's values, of those that are no atoms where they are known."""
    if column.deviation_without_atoms > 0.0:
        return column.mean_without_atoms, column.deviation_without_atoms
    return column.mean, column.scale


def _log_normal_inverse_gamma(column: Column, theta, scale, *, lognormal: bool):
    """Return the log density of (variance, mu): means spread like the column, variances a tenth of its at scale 1.

    Floors are those of rounding, of whole numbers to halves.
    """
    variance, mu = theta
    mean, sd = (moment / column.scale for moment in _moments(column))
    whole, centre, unit = sd**2, 0.0, column.scale
    if lognormal:
        whole, unit = math.log(1.0 + (sd / mean) ** 2), column.maximum
        centre = math.log(mean) - 0.5 * whole
    prior = scipy.stats.invgamma(2.0, scale=0.1 * whole * scale)
    floor = (column.resolution / unit) ** 2 / (48.0 if column.base == "integer" else 12.0)
    at_variance = np.where(variance >= floor, prior.logpdf(variance) - prior.logsf(floor), -np.inf)
    at_mu = scipy.stats.norm(centre, np.sqrt(whole / (0.1 * whole + floor) / scale * variance))
    if not lognormal:
        return at_variance + at_mu.logpdf(mu)
    widest, largest = 2.0 * sd, max(column.maximum / column.scale, sd)
    wide = -np.expm1(-variance) * np.exp(-2.0 * variance) / widest**2
    highest = -2.0 * variance - 0.5 * np.log(np.maximum(wide, 1.0 / largest**2))
    return at_variance + np.where(mu <= highest, at_mu.logpdf(mu) - at_mu.logcdf(highest), -np.inf)


def _log_prior_negative_binomial(column: Column, theta, scale):
    size, p = theta
    mean, sd = _moments(column)
    variance = sd**2
    half = mean**2 / max(0.5 * variance - mean, 0.1 * variance)  # size of a part with half of the column's variance
    rows = mean / variance
    a, b = 3.0 + rows * size, rows * mean + 2.0 * mean / (size + (0.5 * mean / sd) ** 2)
    return _log_prior_size(size, min(max(half, 0.01), 1e4) / scale) + _log_beta_above(p, a, b, _least_p(column, size))


def _largest_count(column: Column) -> float:
    return max(column.maximum, _moments(column)[1], 3.0)


def _least_p(column: Column, size):
    """Return the p at which E z^3 / E z of a negative binomial is the squared largest count."""
    # the positive root of (size + 1) (size + 2) q^2 + 3 (size + 1) q + 1 - largest^2, q = (1 - p) / p
    half = 1.5 * (size + 1.0)
    square, rest = (size + 1.0) * (size + 2.0), _largest_count(column) ** 2 - 1.0
    odds = (np.sqrt(half**2 + square * rest) - half) / square
    return 1.0 / (1.0 + odds)


def _log_beta_above(p, a, b, least):
    above = np.log(scipy.special.betaincc(a, b, least))
    return np.where(p >= least, scipy.stats.beta.logpdf(p, a, b) - above, -np.inf)


SCALE_SHAPES = {
    **dict.fromkeys(("normal", "student_t", "lognormal", "rounded_normal", "truncated_rounded_normal"), 2.0),
    **dict.fromkeys(("gamma", "negative_binomial"), 2.0),
    **dict.fromkeys(("exponential", "poisson", "geometric")),
    **dict.fromkeys(("categorical", "bernoulli"), 1.0),
}
"""Shapes of the factors that leaves share, by family; None where it is that of the inverse gamma of means."""


def _mean_shape(column: Column) -> float:
    mean, sd = _moments(column)
    return 3.0 + (mean / sd) ** 2


def log_prior_scale(family: str, column: Column, scale: float) -> float:
    """Return the log density of the factor that a family's leaves of a column share."""
    shape = SCALE_SHAPES[family] or _mean_shape(column)
    return float(scipy.stats.gamma.logpdf(scale, shape, scale=1.0 / shape))


def default_log_prior(family: str, column: Column, theta, start=None, scale=1.0):
    """Return the log density of a leaf's parameters under the default prior; of many, where theta holds arrays.

    `scale` is the factor that leaves of the column and family share.
    """
    if family == "student_t":
        return default_log_prior("normal", column, theta[:2], scale=scale) + _log_prior_degrees(theta[2], 2.5)
    if family in ("normal", "lognormal", "rounded_normal", "truncated_rounded_normal"):
        return _log_normal_inverse_gamma(column, theta, scale, lognormal=family == "lognormal")
    if family == "negative_binomial":
        return _log_prior_negative_binomial(column, theta, scale)
    if family in ("gamma", "exponential", "poisson", "geometric"):
        mean, sd = _moments(column)
        a0 = _mean_shape(column)
        rate_of_rate = (a0 - 1.0) * mean / column.scale
    if family == "gamma":
        shape, rate = theta
        prior = scipy.stats.lognorm(1.5, scale=(mean / sd) ** 2 / 0.2 / scale)
        cap = max(12.0 * (column.maximum / column.resolution) ** 2, 1.0)
        at_shape = np.where(shape <= cap, prior.logpdf(shape) - prior.logcdf(cap), -np.inf)
        at_rate = scipy.stats.gamma.logpdf(rate / shape, a0, scale=1.0 / rate_of_rate) - np.log(shape)
        least = np.sqrt((shape + 1.0) * (shape + 2.0)) * column.scale / max(column.maximum, sd)
        at_rate -= log_upper_gamma(a0, rate_of_rate / shape * least)
        return at_shape + np.where(rate >= least, at_rate, -np.inf)
    if family == "exponential":
        prior = scipy.stats.gamma(a0, scale=1.0 / (rate_of_rate * scale))
        least = math.sqrt(6.0) * column.scale / max(column.maximum, sd)
        above = log_upper_gamma(a0, rate_of_rate * scale * least)
        return np.where(theta[0] >= least, prior.logpdf(theta[0]) - above, -np.inf)
    if family == "poisson":
        a0 = max((mean / sd) ** 2, 1.0)
        prior, largest = scipy.stats.gamma(a0, scale=mean / (a0 * scale)), _largest_count(column)
        return np.where(theta[0] <= largest, prior.logpdf(theta[0]) - prior.logcdf(largest), -np.inf)
    if family == "geometric":
        return _log_beta_above(theta[0], a0, (a0 - 1.0) * mean * scale, _least_p(column, 1.0))
    if family == "ordinal":
        return _log_prior_ordinal(theta, -0.5, 0.8, 2.0, cap=_widest(column))
    if family == "bernoulli":
        zero, one, _ = column.frequencies
        return scipy.stats.beta.logpdf(theta[0], 2.0 * one * scale, 2.0 * zero * scale)
    if family == "categorical":
        return scipy.stats.dirichlet.logpdf(theta, 2.0 * np.array(column.frequencies) * scale)
    if family == "atom":
        return _log_simplex(theta, 2.0 * np.array(column.atom_frequencies))
    if family == "quantile":
        return _log_simplex(theta, 2.0 * start)
    if family == "uniform":
        return 0.0
    raise AssertionError(family)


def abda_log_prior(family: str, column: Column, theta, start, scale=None):
    """Return the log density of a leaf's parameters under the paper's priors, which are in raw units."""
    assert scale is None, "the paper's priors have no factors"
    s = column.scale
    if family == "student_t":
        return abda_log_prior("normal", column, theta[:2], start) + _log_prior_degrees(theta[2], 1.0)
    if family == "lognormal":
        variance, mu = theta[0], theta[1] + math.log(s)
        return scipy.stats.invgamma.logpdf(variance, 1.0) + scipy.stats.norm.logpdf(mu, 1.0, math.sqrt(10.0 * variance))
    if family in ("normal", "rounded_normal", "truncated_rounded_normal"):
        variance, mu = theta[0] * s**2, theta[1] * s + column.location
        raw = scipy.stats.invgamma.logpdf(variance, 1.0) + scipy.stats.norm.logpdf(mu, 1.0, math.sqrt(10.0 * variance))
        return raw + 3.0 * math.log(s)
    if family == "gamma":
        shape, rate = theta
        return (
            scipy.stats.lognorm.logpdf(shape, ABDA_SHAPE_SD, scale=start[0])
            + scipy.stats.gamma.logpdf(rate / s, 1.0)
            - math.log(s)
        )
    if family == "exponential":
        return scipy.stats.gamma.logpdf(theta[0] / s, 1.0) - math.log(s)
    if family == "poisson":
        return scipy.stats.gamma.logpdf(theta[0], 1.0)
    if family in ("geometric", "bernoulli"):
        return scipy.stats.beta.logpdf(theta[0], 1.0, 1.0)
    if family == "negative_binomial":
        return _log_prior_size(theta[0]) + scipy.stats.beta.logpdf(theta[1], 1.0, 1.0)
    if family == "ordinal":
        return _log_prior_ordinal(theta, 0.0, 1.5, 10.0)
    if family == "categorical":
        return scipy.stats.dirichlet.logpdf(theta, np.ones(theta.size))
    if family in ("atom", "quantile"):
        return _log_simplex(theta, np.ones(theta.size))
    if family == "uniform":
        return 0.0
    raise AssertionError(family)


PRIORS = {"default": default_log_prior, "abda": abda_log_prior}


def shared_scales(circuit: Circuit, schema: Schema) -> list[tuple[str, int]]:
    """Return (family, column) of the factors of the default priors, by the order of families and columns."""
    leaves = {
        (int(circuit.leaf_family[leaf]), naive.leaf_column(circuit, leaf)): leaf for leaf in range(circuit.n_leaf)
    }
    named = [(naive.leaf_family(circuit, leaves[key]), key[1]) for key in sorted(leaves)]
    return [(family, column) for family, column in named if family in SCALE_SHAPES]


def log_prior(
    circuit: Circuit,
    schema: Schema,
    params: Params,
    *,
    gamma: float,
    alpha: float,
    ess: float = 1.0,
    prior: str = "default",
    scales: dict[tuple[str, int], float] | None = None,
) -> float:
    """Return the log density of all weights, parameters and factors, these by family and column.

    `ess` imaginary rows are divided evenly over the ways of each split.
    """
    scales = scales or {}
    total = 0.0
    for node in range(circuit.n_node):
        edges = naive.edges_of(circuit, node)
        kind = int(circuit.kind[node])
        of_kind = {arrays.LATENT: gamma, arrays.LIKELIHOOD: alpha, arrays.HARD: ess / max(len(edges), 1)}
        concentration = of_kind.get(kind)
        if concentration is not None and len(edges) > 1:
            weights = np.exp(params.log_weight[edges.start : edges.stop])
            total += scipy.stats.dirichlet.logpdf(weights, np.full(len(edges), concentration))
    for leaf in range(circuit.n_leaf):
        at = slice(circuit.theta_at[leaf], circuit.theta_at[leaf] + circuit.theta_len[leaf])
        column = schema.columns[naive.leaf_column(circuit, leaf)]
        start = circuit.start_theta[at]
        family = naive.leaf_family(circuit, leaf)
        more = {"scale": scales[family, naive.leaf_column(circuit, leaf)]} if scales and family in SCALE_SHAPES else {}
        total += PRIORS[prior](family, column, params.theta[at], start, **more)
    total += sum(log_prior_scale(family, schema.columns[column], at) for (family, column), at in scales.items())
    return float(total)


def log_likelihood_by_enumeration(circuit: Circuit, params: Params, table: Table) -> float:
    """Return the log probability of the rows, each summed over all its allocations one by one."""
    total = 0.0
    for row in range(table.n_row):
        x, observed = table.values[:, row], table.observed[:, row]
        paths = naive.induced_paths(circuit, observed)
        total += scipy.special.logsumexp(
            [naive.path_log_joint(circuit, table.schema, params, x, path) for path in paths]
        )
    return float(total)


def pieces_log_evidence(circuit: Circuit, schema: Schema, leaf: int, x: list[float]) -> float:
    """Return the log probability of the values of a leaf with uniform pieces, their masses integrated out."""
    ends = naive.piece_ends(circuit, schema, leaf)
    counts = np.array(naive.leaf_statistics(circuit, schema, leaf, x))
    if counts.sum() < len(x):
        return -np.inf
    prior = np.ones(circuit.theta_len[leaf])
    return log_multivariate_beta(prior + counts) - log_multivariate_beta(prior) - float(counts @ np.log(np.diff(ends)))


def leaf_log_evidence(family: str, column: Column, x: list[float]) -> float:
    """Return the log probability of a leaf's values, its parameters integrated out under the paper's prior.

    In the user's units; for families that are conjugate there (an exponential without values near 0). Default priors
    share factors between leaves, so that their evidence is no product over leaves.
    """
    log_gamma = scipy.special.gammaln
    n = len(x)
    if any((value in column.atoms) != (family == "atom") for value in x):
        return -np.inf
    if family == "normal":
        y = np.array(x)
        m0, v0, a0, b0 = 1.0, 10.0, 1.0, 1.0
        v = 1.0 / (1.0 / v0 + n)
        m = v * (m0 / v0 + y.sum())
        a = a0 + 0.5 * n
        b = b0 + 0.5 * ((y**2).sum() + m0**2 / v0 - m**2 / v)
        value = 0.5 * np.log(v / v0) + a0 * np.log(b0) - a * np.log(b) + log_gamma(a) - log_gamma(a0)
        return float(value - n * 0.5 * np.log(2.0 * np.pi))
    if family in ("exponential", "poisson"):
        total, base = sum(x), float(log_gamma(np.array(x) + 1.0).sum())
        a, b = 1.0 + total, 1.0 + n
        if family == "exponential":
            assert all(value >= 0.5 * column.resolution for value in x)
            a, b, base = 1.0 + n, 1.0 + total, 0.0
        return float(log_gamma(a) - a * np.log(b) - base)
    if family == "geometric":
        return float(scipy.special.betaln(1.0 + n, 1.0 + sum(x)))
    if family == "bernoulli":
        other = column.frequencies[-1]
        n_zero, n_one = x.count(0.0), x.count(1.0)
        beta = scipy.special.betaln
        known = beta(1.0 + n_one, 1.0 + n_zero)
        return float(known + (n_zero + n_one) * np.log(1.0 - other) + x.count(2.0) * np.log(other))
    if family in ("categorical", "atom"):
        values = column.atoms or column.levels or range(column.n_label)
        prior = np.ones(len(values))
        counts = np.array([x.count(float(value)) for value in values])
        return log_multivariate_beta(prior + counts) - log_multivariate_beta(prior)
    raise AssertionError(family)


def log_multivariate_beta(concentration: np.ndarray) -> float:
    """Return the log normaliser of a Dirichlet density."""
    return float(scipy.special.gammaln(concentration).sum() - scipy.special.gammaln(concentration.sum()))


def log_evidence(circuit: Circuit, table: Table, *, gamma: float, alpha: float | np.ndarray) -> float:
    """Return the log probability of a few rows, weights, parameters and, one by one, allocations integrated out.

    `alpha` may be float64 (n_edge,), of which the entries at dictionaries count.
    """
    by_edge = np.broadcast_to(alpha, circuit.n_edge)
    paths = [naive.induced_paths(circuit, table.observed[:, row]) for row in range(table.n_row)]
    sums = [n for n in range(circuit.n_node) if circuit.kind[n] in (arrays.LATENT, arrays.LIKELIHOOD)]
    columns = [naive.leaf_column(circuit, leaf) for leaf in range(circuit.n_leaf)]

    @functools.cache
    def at_leaf(leaf: int, rows: tuple[int, ...]) -> float:
        x = [float(table.values[columns[leaf], row]) for row in rows]
        family, column = naive.leaf_family(circuit, leaf), table.schema.columns[columns[leaf]]
        if family == "quantile":
            return pieces_log_evidence(circuit, table.schema, leaf, x)
        return leaf_log_evidence(family, column, x)

    @functools.cache
    def at_sum(node: int, counts: tuple[int, ...]) -> float:
        latent = circuit.kind[node] == arrays.LATENT
        prior = np.full(len(counts), gamma) if latent else by_edge[naive.edges_of(circuit, node)]
        return log_multivariate_beta(prior + np.array(counts)) - log_multivariate_beta(prior)

    terms = []
    for allocation in itertools.product(*paths):
        taken = collections.Counter(edge for edges, _ in allocation for edge in edges)
        total = sum(at_sum(node, tuple(taken[e] for e in naive.edges_of(circuit, node))) for node in sums)
        for leaf in range(circuit.n_leaf):
            rows = tuple(row for row, (_, leaves) in enumerate(allocation) if leaf in leaves)
            total += at_leaf(leaf, rows) if rows else 0.0
        terms.append(total)
    return float(scipy.special.logsumexp(terms))
