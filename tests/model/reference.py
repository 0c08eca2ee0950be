"""The families' documented priors written with SciPy, and what they make of a whole model."""

from __future__ import annotations

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


def default_log_prior(family: str, column: Column, theta: np.ndarray, _start: np.ndarray) -> float:
    """Return the log density of a leaf's parameters under the default prior."""
    if family == "normal":
        variance, mu = theta
        prior = scipy.stats.invgamma(1.0, scale=0.05)
        floor = (column.resolution / column.scale) ** 2 / 12.0
        at_variance = prior.logpdf(variance) - prior.logsf(floor) if variance >= floor else -math.inf
        return at_variance + scipy.stats.norm.logpdf(mu, 0.0, math.sqrt(100.0 * variance))
    if family == "gamma":
        shape, rate = theta
        prior = scipy.stats.lognorm(1.5, scale=2.0)
        cap = max(12.0 * (column.maximum / column.resolution) ** 2, 1.0)
        at_shape = prior.logpdf(shape) - prior.logcdf(cap) if shape <= cap else -math.inf
        inverse_mean = scipy.stats.gamma.logpdf(rate / shape, 2.0, scale=1.0 / 2.0)
        return at_shape + inverse_mean - math.log(shape)
    if family == "exponential":
        return scipy.stats.gamma.logpdf(theta[0], 2.0, scale=1.0 / 2.0)
    if family == "poisson":
        return scipy.stats.gamma.logpdf(theta[0], 1.0, scale=column.mean)
    if family == "geometric":
        return scipy.stats.beta.logpdf(theta[0], 1.0, column.mean)
    if family == "categorical":
        return scipy.stats.dirichlet.logpdf(theta, 2.0 * np.array(column.frequencies))
    raise AssertionError(family)


def abda_log_prior(family: str, column: Column, theta: np.ndarray, start: np.ndarray) -> float:
    """Return the log density of a leaf's parameters under the paper's priors, which are in raw units."""
    s = column.scale
    if family == "normal":
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
    if family == "geometric":
        return scipy.stats.beta.logpdf(theta[0], 1.0, 1.0)
    if family == "categorical":
        return scipy.stats.dirichlet.logpdf(theta, np.ones(theta.size))
    raise AssertionError(family)


PRIORS = {"default": default_log_prior, "abda": abda_log_prior}


def log_prior(
    circuit: Circuit, schema: Schema, params: Params, *, gamma: float, alpha: float, prior: str = "default"
) -> float:
    """Return the log density of all weights and parameters."""
    total = 0.0
    for node in range(circuit.n_node):
        edges = naive.edges_of(circuit, node)
        concentration = {arrays.LATENT: gamma, arrays.LIKELIHOOD: alpha}.get(int(circuit.kind[node]))
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
