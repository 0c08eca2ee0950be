"""Slow twins, written from the definitions with SciPy and recursion: what the fast code must agree with."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.stats

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.families import registry
from bayesjpt.numerics.counter_rng import uniform
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table

Score = Callable[[str, Column, np.ndarray, float], float]
Path = tuple[tuple[int, ...], tuple[int, ...]]
"""An allocation of one row: edges of sums taken, leaves reached."""


# --- families


def family_log_density(family: str, column: Column, theta: np.ndarray, x: float) -> float:
    """Return the log density (per user's unit) or log mass of one value under one family."""
    s = column.scale
    if family == "normal":
        variance, mu = theta
        return scipy.stats.norm.logpdf((x - column.location) / s, mu, np.sqrt(variance)) - math.log(s)
    if family in ("gamma", "exponential"):
        shape, rate = theta if family == "gamma" else (1.0, theta[0])
        z, half = x / s, 0.5 * column.resolution / s
        if z < 0.0:
            return -math.inf
        if z < half:
            return scipy.stats.gamma.logcdf(half, shape, scale=1.0 / rate) - math.log(column.resolution)
        return scipy.stats.gamma.logpdf(z, shape, scale=1.0 / rate) - math.log(s)
    if family == "poisson":
        return scipy.stats.poisson.logpmf(x, theta[0])
    if family == "geometric":
        return scipy.stats.geom.logpmf(x + 1.0, theta[0])
    if family == "categorical":
        values = tuple(range(column.n_label)) if column.base == "category" else column.levels
        return math.log(theta[values.index(x)]) if x in values else -math.inf
    raise AssertionError(family)


def family_distribution(family: str, column: Column, theta: np.ndarray):
    """Return SciPy's distribution, in the user's units, of a family that SciPy has under this parametrisation."""
    s = column.scale
    if family == "normal":
        variance, mu = theta
        return scipy.stats.norm(mu * s + column.location, math.sqrt(variance) * s)
    if family in ("gamma", "exponential"):
        shape, rate = theta if family == "gamma" else (1.0, theta[0])
        return scipy.stats.gamma(shape, scale=s / rate)
    if family == "poisson":
        return scipy.stats.poisson(theta[0])
    if family == "geometric":
        return scipy.stats.geom(theta[0], loc=-1)
    raise AssertionError(family)


def family_cdf(family: str, column: Column, theta: np.ndarray, x: float) -> float:
    """Return the probability of (-inf, x], in the user's units."""
    if family == "categorical":
        values = column.levels if column.levels else range(column.n_label)
        return float(sum(p for p, value in zip(theta, values, strict=True) if value <= x))
    return float(family_distribution(family, column, theta).cdf(x))


def family_log_mass(family: str, column: Column, theta: np.ndarray, x: float) -> float:
    """Return the log probability of the cell that a recorded value stands for."""
    if column.base != "real":
        return family_log_density(family, column, theta, x)
    lo, hi = x - 0.5 * column.resolution, x + 0.5 * column.resolution
    frozen = family_distribution(family, column, theta)
    lower, upper = frozen.cdf(hi) - frozen.cdf(lo), frozen.sf(lo) - frozen.sf(hi)
    return math.log(lower if lo < frozen.median() else upper)


def flat(family: str, column: Column, theta: np.ndarray, x: float) -> float:
    """Return 0: a score that ignores the data."""
    return 0.0


def family_statistics(family: str, column: Column, x: list[float]) -> list[float]:
    """Return the sufficient statistics of values in the user's units."""
    half = 0.5 * column.resolution / column.scale
    if family == "normal":
        z = [(value - column.location) / column.scale for value in x]
        return [len(z), math.fsum(z), math.fsum(value * value for value in z)]
    if family in ("gamma", "exponential"):
        z = [value / column.scale for value in x if value / column.scale >= half]
        logs = [math.fsum(math.log(value) for value in z)] if family == "gamma" else []
        return [len(z), math.fsum(z), *logs, len(x) - len(z)]
    if family in ("poisson", "geometric"):
        return [len(x), math.fsum(x)]
    if family == "categorical":
        values = column.levels if column.levels else range(column.n_label)
        return [float(x.count(float(value))) for value in values]
    raise AssertionError(family)


# --- circuits


def leaf_family(circuit: Circuit, leaf: int) -> str:
    """Return the name of a leaf's family."""
    return registry.FAMILIES[circuit.leaf_family[leaf]].name


def leaf_column(circuit: Circuit, leaf: int) -> int:
    """Return the column of a leaf."""
    return int(circuit.leaf_var[circuit.leaf_var_ptr[leaf]])


def leaf_theta(circuit: Circuit, params: Params, leaf: int) -> np.ndarray:
    """Return the parameters of a leaf."""
    return params.theta[circuit.theta_at[leaf] : circuit.theta_at[leaf] + circuit.theta_len[leaf]]


def edges_of(circuit: Circuit, node: int) -> range:
    """Return the edges that a node owns."""
    return range(circuit.child_ptr[node], circuit.child_ptr[node + 1])


def has_observed(circuit: Circuit, observed: np.ndarray, node: int) -> bool:
    """Return whether a row has an observed cell in the scope of a node."""
    if circuit.kind[node] == arrays.LEAF:
        return bool(observed[leaf_column(circuit, circuit.leaf_of[node])])
    return any(has_observed(circuit, observed, circuit.child[e]) for e in edges_of(circuit, node))


def log_value(
    circuit: Circuit, schema: Schema, params: Params, x: np.ndarray, observed: np.ndarray, score: Score | None = None
) -> float:
    """Return the log value of the root for one row, in the log domain, by recursion from the definition."""
    score = family_log_density if score is None else score

    def value(node: int) -> float:
        if circuit.kind[node] == arrays.LEAF:
            leaf = circuit.leaf_of[node]
            column = leaf_column(circuit, leaf)
            if not observed[column]:
                return 0.0
            theta = leaf_theta(circuit, params, leaf)
            return score(leaf_family(circuit, leaf), schema.columns[column], theta, x[column])
        edges = edges_of(circuit, node)
        if circuit.kind[node] == arrays.PRODUCT:
            return sum(value(circuit.child[e]) for e in edges)
        return float(np.logaddexp.reduce([params.log_weight[e] + value(circuit.child[e]) for e in edges]))

    return value(circuit.n_node - 1)


def log_values(circuit: Circuit, params: Params, table: Table, score: Score | None = None) -> np.ndarray:
    """Return `log_value` of every row of a table, float64 (n_row,)."""
    return np.array(
        [
            log_value(circuit, table.schema, params, table.values[:, row], table.observed[:, row], score)
            for row in range(table.n_row)
        ]
    )


def induced_paths(circuit: Circuit, observed: np.ndarray) -> list[Path]:
    """Return every allocation of one row as (edges of sums taken, leaves reached), unobserved scopes left out."""

    def paths(node: int) -> list[Path]:
        if not has_observed(circuit, observed, node):
            return [((), ())]
        if circuit.kind[node] == arrays.LEAF:
            return [((), (int(circuit.leaf_of[node]),))]
        edges = edges_of(circuit, node)
        if circuit.kind[node] == arrays.PRODUCT:
            parts = itertools.product(*(paths(circuit.child[e]) for e in edges))
            return [(sum((p[0] for p in part), ()), sum((p[1] for p in part), ())) for part in parts]
        return [((e, *taken), leaves) for e in edges for taken, leaves in paths(circuit.child[e])]

    return paths(circuit.n_node - 1)


def path_log_joint(
    circuit: Circuit, schema: Schema, params: Params, x: np.ndarray, path: Path, score: Score = family_log_density
) -> float:
    """Return log p(row, allocation | params): weights of the edges taken times densities of the leaves reached."""
    edges, leaves = path
    total = sum(params.log_weight[e] for e in edges)
    for leaf in leaves:
        column = leaf_column(circuit, leaf)
        theta = leaf_theta(circuit, params, leaf)
        total += score(leaf_family(circuit, leaf), schema.columns[column], theta, x[column])
    return float(total)


# --- allocations


class Allocation(NamedTuple):
    """What one sweep of allocations leaves behind.

    Attributes
    ----------
    edge_count : int64 (n_edge,)
        Rows that took each edge of a sum.
    stats : float64 (n_stats,)
        Sufficient statistics of all leaves, in the order of the leaf table.
    log_likelihood : float
        Of all rows, in the user's units.
    """

    edge_count: np.ndarray
    stats: np.ndarray
    log_likelihood: float


def allocate(
    circuit: Circuit, params: Params, table: Table, key: np.uint64, score: Score = family_log_density
) -> Allocation:
    """Draw every row's path with the uniform numbers of (key, row, node), row by row."""
    schema = table.schema

    @functools.cache
    def leaf_score(leaf: int, x: float) -> float:
        column = schema.columns[leaf_column(circuit, leaf)]
        return score(leaf_family(circuit, leaf), column, leaf_theta(circuit, params, leaf), x)

    edge_count = np.zeros(circuit.n_edge, np.int64)
    cells: list[list[float]] = [[] for _ in range(circuit.n_leaf)]
    log_likelihood = []
    for row in range(table.n_row):
        x, observed = table.values[:, row], table.observed[:, row]
        value = np.zeros(circuit.n_node)
        for node in range(circuit.n_node):
            edges = edges_of(circuit, node)
            children = circuit.child[edges.start : edges.stop]
            if circuit.kind[node] == arrays.LEAF:
                leaf = int(circuit.leaf_of[node])
                column = leaf_column(circuit, leaf)
                value[node] = leaf_score(leaf, float(x[column])) if observed[column] else 0.0
            elif circuit.kind[node] == arrays.PRODUCT:
                value[node] = value[children].sum()
            else:
                value[node] = np.logaddexp.reduce(params.log_weight[edges.start : edges.stop] + value[children])
        log_likelihood.append(value[-1])
        visited = [circuit.n_node - 1]
        while visited:
            node = visited.pop()
            if not has_observed(circuit, observed, node):
                continue
            edges = edges_of(circuit, node)
            if circuit.kind[node] == arrays.LEAF:
                leaf = int(circuit.leaf_of[node])
                cells[leaf].append(float(x[leaf_column(circuit, leaf)]))
            elif circuit.kind[node] == arrays.PRODUCT:
                visited.extend(int(circuit.child[e]) for e in edges)
            else:
                terms = [math.exp(params.log_weight[e] + value[circuit.child[e]] - value[node]) for e in edges]
                reached = np.cumsum(terms)
                target = uniform(key, np.uint64(row), np.uint64(node)) * reached[-1]
                edge = edges[int(np.searchsorted(reached, target, side="right"))]
                edge_count[edge] += 1
                visited.append(int(circuit.child[edge]))
    stats = [
        family_statistics(leaf_family(circuit, leaf), schema.columns[leaf_column(circuit, leaf)], cells[leaf])
        for leaf in range(circuit.n_leaf)
    ]
    return Allocation(edge_count, np.concatenate(stats), math.fsum(log_likelihood))
