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

ABDA_SHAPE_SD = 0.01
"""The paper holds the gamma's shape at an estimate; its prior is narrow around it."""


LARGEST_SIZE = 1e6


def _log_prior_size(size):
    """Return the log density of a negative binomial's size: log-normal below its cap."""
    prior = scipy.stats.lognorm(1.5)
    return np.where(size <= LARGEST_SIZE, prior.logpdf(size) - prior.logcdf(LARGEST_SIZE), -np.inf)


def _log_prior_degrees(nu):
    """Return the log density of a t's degrees of freedom: inverse gamma above 1."""
    prior = scipy.stats.invgamma(1.0, scale=1.0)
    return np.where(nu >= 1.0, prior.logpdf(nu) - prior.logsf(1.0), -np.inf)


def _log_simplex(theta, concentration):
    """Return the log density of a Dirichlet; a single atom has probability 1."""
    return scipy.stats.dirichlet.logpdf(theta, concentration) if concentration.size > 1 else 0.0


def _log_prior_ordinal(theta, log_scale_mean: float, log_scale_sd: float, mu_sd: float):
    scale, mu = theta
    at_scale = scipy.stats.lognorm(log_scale_sd, scale=math.exp(log_scale_mean))
    return at_scale.logpdf(scale) - at_scale.logcdf(100.0) + scipy.stats.norm.logpdf(mu, 0.0, mu_sd)


def default_log_prior(family: str, column: Column, theta, start=None):
    """Return the log density of a leaf's parameters under the default prior; of many, where theta holds arrays."""
    if family == "student_t":
        return default_log_prior("normal", column, theta[:2]) + _log_prior_degrees(theta[2])
    if family in ("normal", "lognormal", "rounded_normal", "truncated_rounded_normal"):
        variance, mu = theta
        m0, v0, a0, b0, unit = 0.0, 100.0, 1.0, 0.05, column.scale
        if family == "lognormal":
            m0, v0, a0, b0, unit = math.log(column.location / column.scale), 10.0, 3.0, 0.15, column.maximum
        prior = scipy.stats.invgamma(a0, scale=b0)
        floor = (column.resolution / unit) ** 2 / 12.0
        at_variance = np.where(variance >= floor, prior.logpdf(variance) - prior.logsf(floor), -np.inf)
        return at_variance + scipy.stats.norm.logpdf(mu, m0, np.sqrt(v0 * variance))
    if family == "gamma":
        shape, rate = theta
        prior = scipy.stats.lognorm(1.5, scale=2.0)
        cap = max(12.0 * (column.maximum / column.resolution) ** 2, 1.0)
        at_shape = np.where(shape <= cap, prior.logpdf(shape) - prior.logcdf(cap), -np.inf)
        inverse_mean = scipy.stats.gamma.logpdf(rate / shape, 2.0, scale=1.0 / 2.0)
        return at_shape + inverse_mean - np.log(shape)
    if family == "exponential":
        return scipy.stats.gamma.logpdf(theta[0], 2.0, scale=1.0 / 2.0)
    if family == "poisson":
        return scipy.stats.gamma.logpdf(theta[0], 1.0, scale=column.mean)
    if family == "geometric":
        return scipy.stats.beta.logpdf(theta[0], 1.0, column.mean)
    if family == "negative_binomial":
        size, p = theta
        return _log_prior_size(size) + scipy.stats.beta.logpdf(p, 1.0, column.mean / size)
    if family == "ordinal":
        return _log_prior_ordinal(theta, -0.5, 0.8, 2.0)
    if family == "bernoulli":
        zero, one, _ = column.frequencies
        return scipy.stats.beta.logpdf(theta[0], 2.0 * one, 2.0 * zero)
    if family == "categorical":
        return scipy.stats.dirichlet.logpdf(theta, 2.0 * np.array(column.frequencies))
    if family == "atom":
        return _log_simplex(theta, 2.0 * np.array(column.atom_frequencies))
    if family == "quantile":
        return _log_simplex(theta, 2.0 * start)
    if family == "uniform":
        return 0.0
    raise AssertionError(family)


def abda_log_prior(family: str, column: Column, theta, start):
    """Return the log density of a leaf's parameters under the paper's priors, which are in raw units."""
    s = column.scale
    if family == "student_t":
        return abda_log_prior("normal", column, theta[:2], start) + _log_prior_degrees(theta[2])
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


def log_prior(
    circuit: Circuit, schema: Schema, params: Params, *, gamma: float, alpha: float, prior: str = "default"
) -> float:
    """Return the log density of all weights and parameters."""
    total = 0.0
    for node in range(circuit.n_node):
        edges = naive.edges_of(circuit, node)
        kind = int(circuit.kind[node])
        concentration = gamma if kind in arrays.STRUCTURE_KINDS else {arrays.LIKELIHOOD: alpha}.get(kind)
        if concentration is not None and len(edges) > 1:
            weights = np.exp(params.log_weight[edges.start : edges.stop])
            total += scipy.stats.dirichlet.logpdf(weights, np.full(len(edges), concentration))
    for leaf in range(circuit.n_leaf):
        at = slice(circuit.theta_at[leaf], circuit.theta_at[leaf] + circuit.theta_len[leaf])
        column = schema.columns[naive.leaf_column(circuit, leaf)]
        start = circuit.start_theta[at]
        total += PRIORS[prior](naive.leaf_family(circuit, leaf), column, params.theta[at], start)
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
    at = circuit.theta_at[leaf]
    prior = 2.0 * circuit.start_theta[at : at + circuit.theta_len[leaf]]
    return log_multivariate_beta(prior + counts) - log_multivariate_beta(prior) - float(counts @ np.log(np.diff(ends)))


def leaf_log_evidence(family: str, column: Column, x: list[float]) -> float:
    """Return the log probability of a leaf's values, its parameters integrated out under the default prior.

    In the user's units; for families that are conjugate there (an exponential without values near 0).
    """
    log_gamma = scipy.special.gammaln
    n = len(x)
    if any((value in column.atoms) != (family == "atom") for value in x):
        return -np.inf
    if family == "normal":
        z = (np.array(x) - column.location) / column.scale
        m0, v0, a0, b0 = 0.0, 100.0, 1.0, 0.05
        floor = (column.resolution / column.scale) ** 2 / 12.0
        v = 1.0 / (1.0 / v0 + n)
        m = v * (m0 / v0 + z.sum())
        a = a0 + 0.5 * n
        b = b0 + 0.5 * ((z**2).sum() + m0**2 / v0 - m**2 / v)
        above_floor = scipy.stats.invgamma.logsf(floor, a, scale=b) - scipy.stats.invgamma.logsf(floor, a0, scale=b0)
        value = 0.5 * np.log(v / v0) + a0 * np.log(b0) - a * np.log(b) + log_gamma(a) - log_gamma(a0) + above_floor
        return float(value - n * (0.5 * np.log(2.0 * np.pi) + np.log(column.scale)))
    if family in ("exponential", "poisson"):
        a0, b0 = (2.0, 2.0) if family == "exponential" else (1.0, 1.0 / column.mean)
        total, base = sum(x), float(log_gamma(np.array(x) + 1.0).sum())
        more_a, more_b = total, n
        if family == "exponential":
            assert all(value >= 0.5 * column.resolution for value in x)
            more_a, more_b, base = n, total / column.scale, n * np.log(column.scale)
        a, b = a0 + more_a, b0 + more_b
        return float(a0 * np.log(b0) - log_gamma(a0) + log_gamma(a) - a * np.log(b) - base)
    if family == "geometric":
        return float(scipy.special.betaln(1.0 + n, column.mean + sum(x)) - scipy.special.betaln(1.0, column.mean))
    if family == "bernoulli":
        zero, one, other = column.frequencies
        n_zero, n_one = x.count(0.0), x.count(1.0)
        beta = scipy.special.betaln
        known = beta(2.0 * one + n_one, 2.0 * zero + n_zero) - beta(2.0 * one, 2.0 * zero)
        return float(known + (n_zero + n_one) * np.log(1.0 - other) + x.count(2.0) * np.log(other))
    if family in ("categorical", "atom"):
        values = column.atoms or column.levels or range(column.n_label)
        prior = 2.0 * np.array(column.atom_frequencies or column.frequencies)
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
