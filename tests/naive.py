"""Slow twins, written from the definitions with SciPy and recursion: what the fast code must agree with."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.stats

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.families import registry
from bayesjpt.numerics.counter_rng import uniform
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table

REAL = ("normal", "student_t", "uniform")
POSITIVE = ("gamma", "exponential", "lognormal")
COUNT = ("poisson", "geometric", "negative_binomial")
ROUNDED = ("rounded_normal", "truncated_rounded_normal")

SMALLEST = 1e-250
"""Below it differences of probabilities lose digits to denormal numbers."""

Score = Callable[[str, Column, np.ndarray, float], float]
Path = tuple[tuple[int, ...], tuple[int, ...]]
"""An allocation of one row: edges of sums taken, leaves reached."""


# --- families


class Pieces(NamedTuple):
    """Parameters of a quantile leaf, and beside them what is its own: the ends of its pieces, in the user's units."""

    mass: np.ndarray
    ends: np.ndarray


def family_log_density(family: str, column: Column, theta: np.ndarray, x) -> float:
    """Return the log density (per user's unit) or log mass of one value under one family; counts may come as arrays.

    `theta` may hold arrays, one point of the parameter space an entry, but for simplexes.
    """
    s = column.scale
    if family == "atom":
        return math.log(theta[column.atoms.index(x)]) if x in column.atoms else -math.inf
    if x in column.atoms:
        return -math.inf
    if family in POSITIVE:
        half = 0.5 * column.resolution
        if x < 0.0:
            return -math.inf
        if x / s < half / s:
            return family_distribution(family, column, theta).logcdf(half) - math.log(column.resolution)
    if family in (*REAL, *POSITIVE):
        return family_distribution(family, column, theta).logpdf(x)
    if family in COUNT:
        return family_distribution(family, column, theta).logpmf(x)
    if family == "quantile" and column.base == "real":
        return family_distribution(family, column, theta).logpdf(x)
    if family in (*ROUNDED, "quantile"):
        whole = family_distribution(family, column, theta)
        kept = whole.logsf(-0.5) if family == "truncated_rounded_normal" else 0.0
        return log_between(whole, x - 0.5, x + 0.5) - kept
    if family == "bernoulli":
        other = column.frequencies[-1]
        return np.log(((1.0 - other) * (1.0 - theta[0]), (1.0 - other) * theta[0], other)[int(x)])
    if family == "ordinal":
        return np.log(ordinal_masses(column, theta).get(x, 0.0))
    if family == "label":
        share = (theta if len(theta) else column.frequencies)[int(x)]
        return math.log(share) if share > 0.0 else -math.inf
    if family == "categorical":
        values = tuple(range(column.n_label)) if column.base == "category" else column.levels
        share = theta[values.index(x)] if x in values else 0.0
        return math.log(share) if share > 0.0 else -math.inf
    raise AssertionError(family)


def ordinal_masses(column: Column, theta: np.ndarray) -> dict[float, np.ndarray]:
    """Return the mass of each level or code under a latent logistic, cut where it has the column's shares."""
    if any(np.ndim(value) for value in theta):
        return _ordinal_masses(column, theta)
    return _kept_ordinal_masses(column, tuple(float(value) for value in theta))


@functools.lru_cache(maxsize=5000)
def _kept_ordinal_masses(column: Column, theta: tuple[float, ...]) -> dict[float, np.ndarray]:
    return _ordinal_masses(column, theta)


def _ordinal_masses(column: Column, theta: Sequence) -> dict[float, np.ndarray]:
    scale, mu = theta
    *shares, other = (*column.frequencies, 0.0) if column.base == "integer" else column.frequencies
    cuts = scipy.stats.logistic.ppf(np.cumsum(shares)[:-1] / sum(shares))
    upto = [0.0 * mu, *(scipy.stats.logistic.cdf((cut - mu) / scale) for cut in cuts), 1.0 + 0.0 * mu]
    masses = [(1.0 - other) * (hi - lo) for lo, hi in itertools.pairwise(upto)]
    values = column.levels or range(len(masses))
    return dict(zip(map(float, values), masses, strict=True)) | ({float(len(masses)): other} if other else {})


def family_distribution(family: str, column: Column, theta: np.ndarray):
    """Return SciPy's distribution, in the user's units, of a family that SciPy has under this parametrisation.

    Making one takes longer than asking it: those of single points are kept.
    """
    units = column.location, column.scale, column.minimum, column.maximum
    if any(np.ndim(value) for value in theta):
        return _distribution(family, units, theta)
    return _kept_distribution(family, units, tuple(float(value) for value in theta))


@functools.lru_cache(maxsize=5000)
def _kept_distribution(family: str, units: tuple[float, ...], theta: tuple[float, ...]):
    return _distribution(family, units, theta)


def _distribution(family: str, units: tuple[float, ...], theta: Sequence):
    location, s, minimum, maximum = units
    if family == "quantile":
        return scipy.stats.rv_histogram(theta, density=False)()
    if family in ("normal", *ROUNDED):
        variance, mu = theta
        return scipy.stats.norm(mu * s + location, np.sqrt(variance) * s)
    if family == "student_t":
        variance, mu, nu = theta
        return scipy.stats.t(nu, mu * s + location, np.sqrt(variance) * s)
    if family == "uniform":
        reach = maximum - minimum or max(abs(minimum), 1.0)
        return scipy.stats.uniform(minimum - reach, maximum - minimum + 2.0 * reach)
    if family in ("gamma", "exponential"):
        shape, rate = theta if family == "gamma" else (1.0, theta[0])
        return scipy.stats.gamma(shape, scale=s / rate)
    if family == "lognormal":
        variance, mu = theta
        return scipy.stats.lognorm(np.sqrt(variance), scale=np.exp(mu) * s)
    if family == "negative_binomial":
        return scipy.stats.nbinom(*theta)
    if family == "poisson":
        return scipy.stats.poisson(theta[0])
    if family == "geometric":
        return scipy.stats.geom(theta[0], loc=-1)
    raise AssertionError(family)


def log_between(frozen, lo: float, hi: float) -> np.ndarray:
    """Return log P(lo < X <= hi): the smaller tail keeps its digits, and beyond float64 the normal's log tails do."""
    low = hi < frozen.median()
    mass = np.where(low, frozen.cdf(hi) - frozen.cdf(lo), frozen.sf(lo) - frozen.sf(hi))
    with np.errstate(divide="ignore", invalid="ignore"):
        log_mass = np.log(mass)
        if (mass > SMALLEST).all() or frozen.dist.name != "norm":
            return log_mass
        near, far = np.where(low, (frozen.logcdf(hi), frozen.logcdf(lo)), (frozen.logsf(lo), frozen.logsf(hi)))
        return np.where(mass > SMALLEST, log_mass, near + np.log1p(-np.exp(far - near)))


def family_cdf(family: str, column: Column, theta: np.ndarray, x: float) -> float:
    """Return the probability of (-inf, x], in the user's units."""
    if family == "atom":
        return float(sum(p for p, atom in zip(theta, column.atoms, strict=True) if atom <= x))
    if family in ("categorical", "label"):
        theta = theta if len(theta) else column.frequencies
        values = column.levels if column.levels else range(column.n_label)
        return float(sum(p for p, value in zip(theta, values, strict=True) if value <= x))
    if family == "ordinal":
        return math.fsum(mass for value, mass in ordinal_masses(column, theta).items() if value <= x)
    if family == "bernoulli":
        return math.fsum(math.exp(family_log_density(family, column, theta, code)) for code in (0, 1, 2) if code <= x)
    if family == "rounded_normal" or (family == "quantile" and column.base == "integer"):
        return float(family_distribution(family, column, theta).cdf(math.floor(x) + 0.5))
    if family == "truncated_rounded_normal":
        whole = family_distribution(family, column, theta)
        if x < 0.0:
            return 0.0
        return 1.0 - float(whole.sf(math.floor(x) + 0.5) / whole.sf(-0.5))  # cdfs cancel where the mean is far below 0
    if family == "negative_binomial" and x >= 0.0:  # nbinom.cdf is off by 1e-13 where the size is large, this by 2e-16
        return float(scipy.special.betaincc(math.floor(x) + 1.0, theta[0], 1.0 - theta[1]))
    return float(family_distribution(family, column, theta).cdf(x))


def family_log_mass(family: str, column: Column, theta: np.ndarray, x: float) -> float:
    """Return the log probability of the cell that a recorded value stands for."""
    if column.base != "real":
        return family_log_density(family, column, theta, x)
    lo, hi = x - 0.5 * column.resolution, x + 0.5 * column.resolution
    if family == "atom":
        inside = math.fsum(p for p, atom in zip(theta, column.atoms, strict=True) if lo <= atom <= hi)
        return math.log(inside) if inside > 0.0 else -math.inf
    return float(log_between(family_distribution(family, column, theta), lo, hi))


def family_log_interval(family: str, column: Column, theta: np.ndarray, lo: float, hi: float) -> float:
    """Return the log probability of the closed interval lo ... hi, in the user's units."""
    if family in ("atom", "categorical", "bernoulli", "ordinal", "label"):
        values = column.atoms or column.levels or range(column.n_label)
        scores = [family_log_density(family, column, theta, float(x)) for x in values if lo <= x <= hi]
        total = math.fsum(map(math.exp, scores))
        return math.log(total) if total > 0.0 else -math.inf
    frozen = family_distribution(family, column, theta)
    if column.base == "integer":
        shift = 0.5 if family in (*ROUNDED, "quantile") else 0.0
        lo, hi = np.ceil(lo) - 1.0 + shift, np.floor(hi) + shift
    if family == "truncated_rounded_normal":
        lo = max(lo, -0.5)
    if lo >= hi:
        return -math.inf
    kept = frozen.logsf(-0.5) if family == "truncated_rounded_normal" else 0.0
    return float(log_between(frozen, lo, hi)) - kept


def cell_score(family: str, column: Column, theta: np.ndarray, x: float, cell: tuple[float, float]) -> float:
    """Return the log density of one value (per user's unit) under a family given a cell; 0 at a known value."""
    lo, hi = cell
    if not lo <= x <= hi:
        return -math.inf
    if column.base == "real" and lo == hi and family != "atom":
        return 0.0
    log_cell = family_log_interval(family, column, theta, lo, hi)
    return within(family_log_density(family, column, theta, x), log_cell)


def cell_log_mass(family: str, column: Column, theta: np.ndarray, x: float, cell: tuple[float, float]) -> float:
    """Return the log probability, given a cell, of the cell that a recorded value stands for."""
    if column.base != "real":
        return cell_score(family, column, theta, x, cell)
    lo, hi = cell
    first, last = x - 0.5 * column.resolution, x + 0.5 * column.resolution
    if lo == hi and family != "atom":
        return 0.0 if first <= lo < last else -math.inf
    if max(lo, first) > min(hi, last):
        return -math.inf
    log_cell = family_log_interval(family, column, theta, lo, hi)
    return within(family_log_interval(family, column, theta, max(lo, first), min(hi, last)), log_cell)


def within(log_part: float, log_cell: float) -> float:
    """Return the log of a part over its cell; -inf where the cell has no mass, which makes its leaf impossible."""
    return log_part - log_cell if log_cell > -math.inf else -math.inf


def flat(family: str, column: Column, theta: np.ndarray, x: float) -> float:
    """Return 0: a score that ignores the data."""
    return 0.0


def family_statistics(family: str, column: Column, x: list[float]) -> list[float]:
    """Return the sufficient statistics of values in the user's units."""
    half = 0.5 * column.resolution / column.scale
    if family == "negative_binomial":
        return [len(x), math.fsum(x), math.fsum(value * value for value in x)]
    if family == "bernoulli":
        return [float(x.count(0.0)), float(x.count(1.0))]
    if family in ("normal", "student_t", *ROUNDED):
        z = [(value - column.location) / column.scale for value in x]
        return [len(z), math.fsum(z), math.fsum(value * value for value in z)]
    if family == "atom":
        return [float(x.count(atom)) for atom in column.atoms]
    if family in ("gamma", "exponential"):
        z = [value / column.scale for value in x if value / column.scale >= half]
        logs = [math.fsum(math.log(value) for value in z)] if family == "gamma" else []
        return [len(z), math.fsum(z), *logs, len(x) - len(z)]
    if family == "lognormal":
        logs = [math.log(value / column.scale) for value in x if value / column.scale >= half]
        return [len(logs), math.fsum(logs), math.fsum(value * value for value in logs), len(x) - len(logs)]
    if family in ("uniform", "label"):
        return [float(len(x))]
    if family in ("poisson", "geometric"):
        factorials = [math.fsum(math.lgamma(value + 1.0) for value in x)] if family == "poisson" else []
        return [len(x), math.fsum(x), *factorials]
    if family in ("categorical", "ordinal"):
        values = column.levels or range(column.n_label - (family == "ordinal"))
        return [float(x.count(float(value))) for value in values]
    raise AssertionError(family)


# --- circuits


def leaf_family(circuit: Circuit, leaf: int) -> str:
    """Return the name of a leaf's family."""
    return registry.FAMILIES[circuit.leaf_family[leaf]].name


def leaf_column(circuit: Circuit, leaf: int) -> int:
    """Return the column of a leaf."""
    return int(circuit.leaf_var[leaf])


def leaf_theta(circuit: Circuit, schema: Schema, params: Params, leaf: int) -> np.ndarray | Pieces:
    """Return the parameters of a leaf, with what its constants make of them."""
    theta = params.theta[circuit.theta_at[leaf] : circuit.theta_at[leaf] + circuit.theta_len[leaf]]
    if leaf_family(circuit, leaf) == "quantile":
        return Pieces(theta, piece_ends(circuit, schema, leaf))
    if leaf_family(circuit, leaf) == "label":
        return np.split(circuit.constants_of(leaf), 2)[1]
    if leaf_family(circuit, leaf) != "categorical":
        return theta
    inside = theta * circuit.const[circuit.const_at[leaf] + theta.size :][: theta.size]
    return inside / inside.sum()


def piece_ends(circuit: Circuit, schema: Schema, leaf: int) -> np.ndarray:
    """Return the ends of the pieces of a quantile leaf, float64 (n_piece + 1,), in the user's units."""
    column, knots = schema.columns[leaf_column(circuit, leaf)], circuit.constants_of(leaf)[1:]
    return knots if column.base == "integer" else column.location + column.scale * knots


def leaf_statistics(circuit: Circuit, schema: Schema, leaf: int, x: list[float]) -> list[float]:
    """Return the sufficient statistics of a leaf's values in the user's units."""
    if leaf_family(circuit, leaf) == "quantile":
        return np.histogram(x, piece_ends(circuit, schema, leaf))[0].astype(float).tolist()
    return family_statistics(leaf_family(circuit, leaf), schema.columns[leaf_column(circuit, leaf)], x)


def edges_of(circuit: Circuit, node: int) -> range:
    """Return the edges that a node owns."""
    return range(circuit.child_ptr[node], circuit.child_ptr[node + 1])


def has_observed(circuit: Circuit, observed: np.ndarray, node: int) -> bool:
    """Return whether a row has an observed cell in the scope of a node."""
    if circuit.kind[node] == arrays.LEAF:
        return bool(observed[leaf_column(circuit, circuit.leaf_of[node])])
    return any(has_observed(circuit, observed, circuit.child[e]) for e in edges_of(circuit, node))


def leaf_score(circuit: Circuit, schema: Schema, params: Params, leaf: int, x: np.ndarray, score: Score) -> float:
    """Return the score of a row's cell under a leaf, given the cell or the labels that the leaf is truncated to."""
    family, column = leaf_family(circuit, leaf), leaf_column(circuit, leaf)
    theta = leaf_theta(circuit, schema, params, leaf)
    if circuit.leaf_cell[leaf] >= 0:
        cut = {family_log_density: cell_score, family_log_mass: cell_log_mass}[score]
        return cut(family, schema.columns[column], theta, x[column], tuple(circuit.leaf_interval()[leaf]))
    return score(family, schema.columns[column], theta, x[column])


def log_value(
    circuit: Circuit,
    schema: Schema,
    params: Params,
    x: np.ndarray,
    observed: np.ndarray,
    score: Score | None = None,
    *,
    at: int = -1,
) -> float:
    """Return the log value of a node, by default the root, for one row: in the log domain, from the definition."""
    score = family_log_density if score is None else score

    def value(node: int) -> float:
        if circuit.kind[node] == arrays.LEAF:
            leaf = circuit.leaf_of[node]
            return leaf_score(circuit, schema, params, leaf, x, score) if observed[leaf_column(circuit, leaf)] else 0.0
        edges = edges_of(circuit, node)
        if circuit.kind[node] == arrays.PRODUCT:
            return sum(value(circuit.child[e]) for e in edges)
        return float(np.logaddexp.reduce([params.log_weight[e] + value(circuit.child[e]) for e in edges]))

    return value(at % circuit.n_node)


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
    return float(total + sum(leaf_score(circuit, schema, params, leaf, x, score) for leaf in leaves))


def leaf_values_log_value(circuit: Circuit, log_weight: np.ndarray, leaf_value: np.ndarray) -> float:
    """Return the log value of the root, given those of the leaves, float64 (n_leaf,): in the log domain."""

    def value(node: int) -> float:
        if circuit.kind[node] == arrays.LEAF:
            return float(leaf_value[circuit.leaf_of[node]])
        edges = edges_of(circuit, node)
        if circuit.kind[node] == arrays.PRODUCT:
            return sum(value(circuit.child[e]) for e in edges)
        return float(np.logaddexp.reduce([log_weight[e] + value(circuit.child[e]) for e in edges]))

    return value(circuit.n_node - 1)


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
    cells : list of lists of float
        Values that reached each leaf, in the order of their rows.
    """

    edge_count: np.ndarray
    stats: np.ndarray
    log_likelihood: float
    cells: list[list[float]]


def allocate(
    circuit: Circuit, params: Params, table: Table, key: np.uint64, score: Score = family_log_density
) -> Allocation:
    """Draw every row's path with the uniform numbers of (key, row, node), row by row."""
    schema = table.schema

    @functools.cache
    def leaf_score(leaf: int, x: float) -> float:
        column = schema.columns[leaf_column(circuit, leaf)]
        return score(leaf_family(circuit, leaf), column, leaf_theta(circuit, schema, params, leaf), x)

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
    stats = [leaf_statistics(circuit, schema, leaf, cells[leaf]) for leaf in range(circuit.n_leaf)]
    return Allocation(edge_count, np.concatenate(stats), math.fsum(log_likelihood), cells)
