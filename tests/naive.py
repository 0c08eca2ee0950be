"""Slow twins, written from the definitions with SciPy and recursion: what the fast code must agree with."""

from __future__ import annotations

import itertools
import math

import numpy as np
import scipy.stats

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.families import registry
from bayesjpt.table.schema import Column, Schema


def family_log_density(family: str, column: Column, theta: np.ndarray, x: float) -> float:
    """Return the log density (per user's unit) or log mass of one value under one family."""
    s = column.scale
    if family == "normal":
        variance, mu = theta
        return scipy.stats.norm.logpdf((x - column.location) / s, mu, math.sqrt(variance)) - math.log(s)
    if family in ("gamma", "exponential"):
        shape, rate = theta if family == "gamma" else (1.0, theta[0])
        z, half = x / s, 0.5 * column.resolution / s
        if z < 0.0:
            return -math.inf
        if z < half:
            return scipy.stats.gamma.logcdf(half, shape, scale=1.0 / rate) - math.log(column.resolution)
        return scipy.stats.gamma.logpdf(z, shape, scale=1.0 / rate) - math.log(s)
    if family == "poisson":
        return float(scipy.stats.poisson.logpmf(x, theta[0]))
    if family == "geometric":
        return float(scipy.stats.geom.logpmf(x + 1.0, theta[0]))
    if family == "categorical":
        if column.base == "category":
            return math.log(theta[int(x)])
        return math.log(theta[column.levels.index(x)]) if x in column.levels else -math.inf
    raise AssertionError(family)


def family_log_mass(family: str, column: Column, theta: np.ndarray, x: float) -> float:
    """Return the log probability of the cell that a recorded value stands for."""
    if column.base != "real":
        return family_log_density(family, column, theta, x)
    lo, hi = x - 0.5 * column.resolution, x + 0.5 * column.resolution
    s = column.scale
    if family == "normal":
        variance, mu = theta
        frozen = scipy.stats.norm(mu * s + column.location, math.sqrt(variance) * s)
    else:
        shape, rate = theta if family == "gamma" else (1.0, theta[0])
        frozen = scipy.stats.gamma(shape, scale=s / rate)
    return math.log(frozen.cdf(hi) - frozen.cdf(lo))


def log_value(
    circuit: Circuit, schema: Schema, params: Params, x: np.ndarray, observed: np.ndarray, score=None
) -> float:
    """Return the log value of the root for one row, in the log domain, by recursion from the definition."""
    score = family_log_density if score is None else score

    def value(node: int) -> float:
        if circuit.kind[node] == arrays.LEAF:
            leaf = circuit.leaf_of[node]
            column = circuit.leaf_var[circuit.leaf_var_ptr[leaf]]
            if not observed[column]:
                return 0.0
            family = registry.FAMILIES[circuit.leaf_family[leaf]].name
            theta = params.theta[circuit.theta_at[leaf] : circuit.theta_at[leaf] + circuit.theta_len[leaf]]
            return score(family, schema.columns[column], theta, x[column])
        edges = range(circuit.child_ptr[node], circuit.child_ptr[node + 1])
        if circuit.kind[node] == arrays.PRODUCT:
            return sum(value(circuit.child[e]) for e in edges)
        return float(np.logaddexp.reduce([params.log_weight[e] + value(circuit.child[e]) for e in edges]))

    return value(circuit.n_node - 1)


def induced_paths(circuit: Circuit, observed: np.ndarray) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return every allocation of one row as (edges of sums taken, leaves reached), unobserved scopes left out."""

    def has_observed(node: int) -> bool:
        if circuit.kind[node] == arrays.LEAF:
            return bool(observed[circuit.leaf_var[circuit.leaf_var_ptr[circuit.leaf_of[node]]]])
        return any(has_observed(c) for c in circuit.child[circuit.child_ptr[node] : circuit.child_ptr[node + 1]])

    def paths(node: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        if not has_observed(node):
            return [((), ())]
        if circuit.kind[node] == arrays.LEAF:
            return [((), (int(circuit.leaf_of[node]),))]
        edges = range(circuit.child_ptr[node], circuit.child_ptr[node + 1])
        if circuit.kind[node] == arrays.PRODUCT:
            parts = itertools.product(*(paths(circuit.child[e]) for e in edges))
            return [(sum((p[0] for p in part), ()), sum((p[1] for p in part), ())) for part in parts]
        return [((e, *taken), leaves) for e in edges for taken, leaves in paths(circuit.child[e])]

    return paths(circuit.n_node - 1)


def path_log_joint(
    circuit: Circuit, schema: Schema, params: Params, x: np.ndarray, path: tuple[tuple[int, ...], tuple[int, ...]]
) -> float:
    """Return log p(row, allocation | params): weights of the edges taken times densities of the leaves reached."""
    edges, leaves = path
    total = sum(params.log_weight[e] for e in edges)
    for leaf in leaves:
        column = circuit.leaf_var[circuit.leaf_var_ptr[leaf]]
        theta = params.theta[circuit.theta_at[leaf] : circuit.theta_at[leaf] + circuit.theta_len[leaf]]
        family = registry.FAMILIES[circuit.leaf_family[leaf]].name
        total += family_log_density(family, schema.columns[column], theta, x[column])
    return float(total)
