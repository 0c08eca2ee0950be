"""The slow twin of `bayesjpt.kernels.collapsed`: every row's path given all others, each time from the definition.

Nothing is kept up to date: counts and statistics are made anew, for every row, from the paths of all other rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.special

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.families import registry
from bayesjpt.numerics.counter_rng import uniform
from bayesjpt.table.table import Table
from tests import naive
from tests.kernels.runs import Hyper

SIMPLEX = ("categorical", "atom", "quantile")
CONJUGATE = ("normal", "exponential", "poisson", "geometric")


class Path(NamedTuple):
    """The edges of sums that a row takes, and the leaf of each of its observed cells, by column."""

    edges: tuple[int, ...]
    leaves: dict[int, int]


class Given(NamedTuple):
    """A table under a circuit and its priors, and the parameters of leaves that are held."""

    circuit: Circuit
    table: Table
    params: Params
    concentration: np.ndarray
    hyper: Hyper


def is_held(given: Given, leaf: int) -> bool:
    """Return whether a leaf's parameters are not integrated out."""
    circuit, table = given.circuit, given.table
    family, column = naive.leaf_family(circuit, leaf), naive.leaf_column(circuit, leaf)
    truncated = circuit.leaf_cell[leaf] >= 0
    if family in SIMPLEX:
        return False
    if truncated or family not in (*CONJUGATE, "gamma", "bernoulli"):
        return True
    kind = table.schema.columns[column]
    x = table.values[column, table.observed[column]]
    near_zero = x[~np.isin(x, kind.atoms)] < 0.5 * kind.resolution
    return family in ("exponential", "gamma") and bool(near_zero.any())


def log_predictive(given: Given, leaf: int, others: list[float], x: float) -> float:
    """Return the log density (user's units) of a cell under a leaf given the leaf's other cells."""
    circuit, schema = given.circuit, given.table.schema
    name, column = naive.leaf_family(circuit, leaf), schema.columns[naive.leaf_column(circuit, leaf)]
    at = slice(circuit.theta_at[leaf], circuit.theta_at[leaf] + circuit.theta_len[leaf])
    row = np.where(np.arange(len(schema)) == naive.leaf_column(circuit, leaf), x, np.nan)
    if is_held(given, leaf):
        return naive.leaf_score(circuit, schema, given.params, leaf, row, naive.family_log_density)
    prior = given.hyper.values[given.hyper.at[leaf] : given.hyper.at[leaf + 1]]
    stats = np.array(naive.leaf_statistics(circuit, schema, leaf, others))
    if name in SIMPLEX or name == "bernoulli":
        # linear in the parameters: the density at their posterior mean
        a = prior + (stats[::-1] if name == "bernoulli" else stats)
        theta = given.params.theta.copy()
        theta[at] = a[0] / a.sum() if name == "bernoulli" else a / a.sum()
        mean = given.params._replace(theta=theta)
        return naive.leaf_score(circuit, schema, mean, leaf, row, naive.family_log_density)
    if x in column.atoms:
        return -math.inf
    more = np.array(naive.leaf_statistics(circuit, schema, leaf, [*others, x]))
    jacobian = math.log(column.scale) if column.base == "real" else 0.0
    if name == "gamma":
        shape = given.params.theta[circuit.theta_at[leaf]]
        return _log_gamma_evidence(more, prior, shape) - _log_gamma_evidence(stats, prior, shape) - jacobian
    family, constants = registry.family(name), circuit.constants_of(leaf)
    assert family.log_evidence is not None
    theta = given.params.theta[at]
    return (
        family.log_evidence(more, prior, constants, theta)
        - family.log_evidence(stats, prior, constants, theta)
        - jacobian
    )


def _log_gamma_evidence(stats: np.ndarray, prior: np.ndarray, shape: float) -> float:
    """Return the log density of values given the shape, the rate, above its lowest, integrated out."""
    n, total, logs, _ = stats
    _, _, _, a0, b0, k, least = prior
    a, b0 = a0 + n * shape, b0 / shape**k
    level = a0 * math.log(b0) - a * math.log(b0 + total) + scipy.special.gammaln(a) - scipy.special.gammaln(a0)
    lowest = least * math.sqrt((shape + 1.0) * (shape + 2.0))
    share = scipy.special.gammaincc([a0, a], [b0 * lowest, (b0 + total) * lowest])
    level += math.log(share[1]) - math.log(share[0])
    return float(level + (shape - 1.0) * logs - n * scipy.special.gammaln(shape))


def scan(given: Given, paths: list[Path], key: np.uint64, order=None) -> list[Path]:
    """Return the paths after each row's was drawn anew, in order, given those of all others at that time."""
    paths = list(paths)
    for row in range(given.table.n_row) if order is None else order:
        paths[row] = _draw(given, paths[:row] + paths[row + 1 :], int(row), key)
    return paths


def _draw(given: Given, others: list[Path], row: int, key: np.uint64) -> Path:
    circuit, table = given.circuit, given.table
    x, observed = table.values[:, row], table.observed[:, row]
    held = [[] for _ in range(circuit.n_leaf)]
    number = [other for other in range(table.n_row) if other != row]
    weight = np.where(given.concentration > 0.0, given.concentration, 0.0)
    for other, path in zip(number, others, strict=True):
        for edge in path.edges:
            weight[edge] += 1.0
        for column, leaf in path.leaves.items():
            held[leaf].append(float(table.values[column, other]))
    value = np.zeros(circuit.n_node)
    for node in range(circuit.n_node):
        edges = naive.edges_of(circuit, node)
        children = circuit.child[edges.start : edges.stop]
        if circuit.kind[node] == arrays.LEAF:
            leaf = int(circuit.leaf_of[node])
            column = naive.leaf_column(circuit, leaf)
            value[node] = log_predictive(given, leaf, held[leaf], float(x[column])) if observed[column] else 0.0
        elif circuit.kind[node] == arrays.PRODUCT:
            value[node] = value[children].sum()
        else:
            share = weight[edges.start : edges.stop] / weight[edges.start : edges.stop].sum()
            value[node] = np.logaddexp.reduce(np.log(share) + value[children])
    taken: list[int] = []
    leaves: dict[int, int] = {}
    visited = [circuit.n_node - 1]
    while visited:
        node = visited.pop()
        if not naive.has_observed(circuit, observed, node):
            continue
        edges = naive.edges_of(circuit, node)
        if circuit.kind[node] == arrays.LEAF:
            leaf = int(circuit.leaf_of[node])
            leaves[naive.leaf_column(circuit, leaf)] = leaf
        elif circuit.kind[node] == arrays.PRODUCT:
            visited.extend(int(circuit.child[e]) for e in edges)
        else:
            terms = [math.log(weight[e]) + value[circuit.child[e]] for e in edges]
            reached = np.cumsum(np.exp(np.array(terms) - max(terms)))
            target = uniform(key, np.uint64(row), np.uint64(node)) * reached[-1]
            taken.append(edges[int(np.searchsorted(reached, target, side="right"))])
            visited.append(int(circuit.child[taken[-1]]))
    return Path(tuple(taken), leaves)
