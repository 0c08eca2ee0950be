"""Slow twins of queries, from the definitions: recursion over the circuit, SciPy's distributions, quadrature, sums.

What a column is given evidence is found without any pass downward: the share of a leaf is the value of the circuit in
which that leaf alone keeps its density, over the value of the circuit as it is.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.build import build_circuit, freeze
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.boxes import Box
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive, strategies

ATOMIC = replace(ex.REAL, name="atomic", atoms=(0.0, 5.0), atom_frequencies=(0.7, 0.3))
CONSTANT = replace(
    ex.REAL, name="constant", minimum=2.0, maximum=2.0, location=2.0, atoms=(2.0,), atom_frequencies=(1.0,)
)
COLUMNS = (*ex.EVERY, ATOMIC, CONSTANT)

DEPTH = 5

LeafScore = Callable[[int], float]
Interval = tuple[float, float]


# --- cases


def share_parameters(circuit: Circuit, rng: np.random.Generator) -> Circuit:
    """Return the circuit in which some leaves read the parameters of another of their family and column."""
    theta_at = circuit.theta_at.copy()
    first: dict[tuple[int, int], int] = {}
    for leaf in range(circuit.n_leaf):
        kept = first.setdefault((int(circuit.leaf_var[leaf]), int(circuit.leaf_family[leaf])), leaf)
        if rng.random() < 0.3:
            theta_at[leaf] = theta_at[kept]
    return freeze(circuit._replace(theta_at=theta_at))


def without_empty_cells(circuit: Circuit, schema: Schema) -> Circuit:
    """Return the circuit in which leaves of atoms whose cell holds none are whole again."""
    leaf_cell = circuit.leaf_cell.copy()
    for leaf, (lo, hi) in enumerate(circuit.leaf_interval()):
        atoms = schema.columns[naive.leaf_column(circuit, leaf)].atoms
        if naive.leaf_family(circuit, leaf) == "atom" and not any(lo <= atom <= hi for atom in atoms):
            leaf_cell[leaf] = -1
    return freeze(circuit._replace(leaf_cell=leaf_cell))


@st.composite
def posteriors(draw, max_columns: int = 4, depth: int = DEPTH, n_draw: int = 2) -> tuple[Posterior, Table]:
    """Draw a posterior of unrelated draws: any column, atoms, hard sums or cells, shared parameters; and rows."""
    chosen = tuple(draw(st.permutations(COLUMNS))[: draw(st.integers(1, max_columns))])
    rng = np.random.default_rng(draw(strategies.seeds))
    table = table_of(chosen, 6, rng, missing=draw(st.sampled_from([0.0, 0.3, 0.8])))
    region = draw(st.sampled_from([None, {}]))
    tree = draw(strategies.trees(table, tuple(range(len(chosen))), depth, region))
    offered = [d for d in strategies.DICTIONARIES if region is None or d is not strategies.last_family]  # atoms alone
    circuit = build_circuit(tree, table, draw(st.sampled_from(offered)))
    if region is None and draw(st.booleans()):
        circuit = without_empty_cells(ex.truncated(circuit, table.schema, rng, share=0.3), table.schema)
    if draw(st.booleans()):
        circuit = share_parameters(circuit, rng)
    points = [ex.random_params(circuit, table.schema, rng) for _ in range(n_draw)]
    params = Params(*(np.array([point[k] for point in points])[None] for k in (0, 1)))
    return Posterior(circuit, table.schema, params), table


def table_of(columns: tuple[Column, ...], n_row: int, rng: np.random.Generator, missing: float = 0.0) -> Table:
    """Return a table of plausible rows in which some values are atoms."""
    table = ex.make_table(columns, n_row, rng, missing)
    values = table.values.copy()
    for position, column in enumerate(columns):
        if column.atoms:
            at_atom = rng.random(n_row) < (1.0 if column.name == "constant" else 0.4)
            values[position, at_atom] = rng.choice(column.atoms, int(at_atom.sum()))
    return Table(table.schema, values, table.observed)


def random_boxes(schema: Schema, rng: np.random.Generator, n_box: int) -> list[Box]:
    """Return disjoint boxes: each but the last excludes, in one column, what the next ones ask there."""
    boxes: list[Box] = []
    kept: dict[int, np.ndarray] = {}
    order = rng.permutation(len(schema))
    for number in range(n_box):
        position = int(order[number % len(schema)])
        if position in kept:
            break
        column = schema.columns[position]
        if column.base == "category":
            cut = float(rng.integers(0, column.n_label - 1))
            first, rest = [[0.0, cut]], [[cut + 1.0, column.n_label - 1.0]]
        else:
            cut = float(ex.draw_column(column, 1, rng)[0])
            step = 1.0 if column.base == "integer" else 0.0
            after = cut + step if step else float(np.nextafter(cut, np.inf))
            first, rest = [[-np.inf, cut]], [[after, after + 2.0], [after + 3.0, np.inf]]
            if rng.random() < 0.5:
                first, rest = rest, first
        boxes.append(Box({**kept, position: np.array(first, float)}))
        kept[position] = np.array(rest, float)
    return boxes


# --- values of circuits


def leaf_interval(circuit: Circuit, leaf: int) -> Interval:
    lo, hi = circuit.leaf_interval()[leaf]
    return float(lo), float(hi)


def log_value(circuit: Circuit, params: Params, score: LeafScore) -> float:
    """Return the log value of the root from each leaf's log score."""

    @functools.cache
    def value(node: int) -> float:
        if circuit.kind[node] == arrays.LEAF:
            return score(int(circuit.leaf_of[node]))
        edges = naive.edges_of(circuit, node)
        if circuit.kind[node] == arrays.PRODUCT:
            return sum(value(int(circuit.child[e])) for e in edges)
        return float(np.logaddexp.reduce([params.log_weight[e] + value(int(circuit.child[e])) for e in edges]))

    return value(circuit.n_node - 1)


class Twin(NamedTuple):
    """One draw of a posterior, to be asked slowly."""

    circuit: Circuit
    schema: Schema
    params: Params

    def parts(self, leaf: int) -> tuple[str, Column, np.ndarray]:
        column = self.schema.columns[naive.leaf_column(self.circuit, leaf)]
        return (
            naive.leaf_family(self.circuit, leaf),
            column,
            naive.leaf_theta(self.circuit, self.schema, self.params, leaf),
        )

    def log_interval(self, leaf: int, lo: float, hi: float) -> float:
        """Return the log probability of an interval under a leaf given its cell."""
        family, column, theta = self.parts(leaf)
        lower, upper = leaf_interval(self.circuit, leaf)
        if lo <= lower and hi >= upper:
            return 0.0
        lo, hi = max(lo, lower), min(hi, upper)
        if lo > hi or (lower == upper and column.base == "real" and family != "atom"):
            return -math.inf
        log_cell = naive.family_log_interval(family, column, theta, lower, upper)
        return naive.within(naive.family_log_interval(family, column, theta, lo, hi), log_cell)

    def box_score(self, box: Mapping[int, np.ndarray]) -> LeafScore:
        """Return the score of leaves by the mass of a box's intervals."""

        @functools.cache
        def score(leaf: int) -> float:
            column = naive.leaf_column(self.circuit, leaf)
            if column not in box:
                return 0.0
            masses = [math.exp(self.log_interval(leaf, lo, hi)) for lo, hi in box[column].tolist()]
            return math.log(math.fsum(masses)) if math.fsum(masses) > 0.0 else -math.inf

        return score

    def row_score(self, x: np.ndarray, observed: np.ndarray) -> LeafScore:
        """Return the score of leaves by the density of a row's observed cells."""

        @functools.cache
        def score(leaf: int) -> float:
            position = naive.leaf_column(self.circuit, leaf)
            if not observed[position]:
                return 0.0
            family, column, theta = self.parts(leaf)
            if self.circuit.leaf_cell[leaf] >= 0:
                return naive.cell_score(family, column, theta, float(x[position]), leaf_interval(self.circuit, leaf))
            return naive.family_log_density(family, column, theta, float(x[position]))

        return score

    def log_probability(self, boxes) -> float:
        """Return the log probability of a union of disjoint boxes."""
        values = [log_value(self.circuit, self.params, self.box_score(box.intervals)) for box in boxes]
        return float(np.logaddexp.reduce(values)) if values else -math.inf

    def log_probability_given_row(self, boxes, x: np.ndarray, observed: np.ndarray) -> float:
        """Return the log probability of a union of disjoint boxes given a row; NaN where the row has no density."""
        density = self.row_score(x, observed)
        evidence = log_value(self.circuit, self.params, density)
        values = []
        for box in boxes:
            mass = self.box_score(box.intervals)
            outside = any(
                observed[c] and not ((intervals[:, 0] <= x[c]) & (x[c] <= intervals[:, 1])).any()
                for c, intervals in box.intervals.items()
            )

            def score(leaf: int, mass: LeafScore = mass) -> float:
                return density(leaf) if observed[naive.leaf_column(self.circuit, leaf)] else mass(leaf)

            values.append(-math.inf if outside else log_value(self.circuit, self.params, score))
        return float(np.logaddexp.reduce(values)) - evidence if evidence > -math.inf else math.nan

    def components(self, position: int, boxes=None, row=None) -> list[tuple[float, int, Interval]]:
        """Return (share, leaf, interval) of every leaf and interval of a column given boxes, or given a row."""
        found: list[tuple[float, int, Interval]] = []
        if row is not None:
            score = self.row_score(*row)
            found = [(self._alone(leaf, position, score), leaf, (-math.inf, math.inf)) for leaf in self._own(position)]
        else:
            for box in boxes:
                for lo, hi in box.intervals.get(position, np.array([[-np.inf, np.inf]])).tolist():
                    score = self.box_score({**box.intervals, position: np.array([[lo, hi]])})
                    found += [(self._alone(leaf, position, score), leaf, (lo, hi)) for leaf in self._own(position)]
        top = max(share for share, _, _ in found)
        total = math.fsum(math.exp(share - top) for share, _, _ in found)
        return [(math.exp(share - top) / total, leaf, interval) for share, leaf, interval in found]

    def _own(self, position: int) -> list[int]:
        return [leaf for leaf in range(self.circuit.n_leaf) if naive.leaf_column(self.circuit, leaf) == position]

    def _alone(self, kept: int, position: int, score: LeafScore) -> float:
        """Return the log value of the circuit in which of a column's leaves one alone keeps its score."""

        def only(leaf: int) -> float:
            other = leaf != kept and naive.leaf_column(self.circuit, leaf) == position
            return -math.inf if other else score(leaf)

        return log_value(self.circuit, self.params, only)

    def cdf(self, components, x: float) -> float:
        """Return P(X <= x) of a column from its components."""
        total = 0.0
        for share, leaf, (lo, hi) in components:
            if share == 0.0 or x < lo:
                continue
            whole, below = self.log_interval(leaf, lo, hi), self.log_interval(leaf, lo, min(x, hi))
            total += share * math.exp(below - whole)
        return total

    def moments(self, components) -> tuple[float, float]:
        """Return mean and variance of a column from its components."""
        known = [(share, *self._component_moments(leaf, lo, hi)) for share, leaf, (lo, hi) in components if share > 0.0]
        mean = math.fsum(share * first for share, first, _ in known)
        if not math.isfinite(mean):
            return math.inf, math.inf
        return mean, math.fsum(share * (spread + (first - mean) ** 2) for share, first, spread in known)

    def _component_moments(self, leaf: int, lo: float, hi: float) -> tuple[float, float]:
        """Return mean and variance of a leaf given its cell and an interval, by sums or quadrature."""
        family, column, theta = self.parts(leaf)
        lower, upper = leaf_interval(self.circuit, leaf)
        lo, hi = max(lo, lower), min(hi, upper)
        if lo == hi:
            return lo, 0.0
        if family == "student_t" and math.isinf(lo) | math.isinf(hi) and theta[2] <= 1.0:
            return math.inf, math.inf
        if column.base != "real" or family == "atom":
            values = np.array(column.atoms or (column.levels if family == "categorical" else np.arange(-100.0, 800.0)))
            if family not in ("atom", "rounded_normal", "quantile"):
                values = values[values >= 0.0]
            values = values[(lo <= values) & (values <= hi)]
            if family in (*naive.COUNT, *naive.ROUNDED):
                weights = np.exp(naive.family_log_density(family, column, theta, values))
            else:
                weights = np.exp([naive.family_log_density(family, column, theta, float(v)) for v in values])
            mean = float(np.dot(weights, values) / weights.sum())
            return mean, float(np.dot(weights, (values - mean) ** 2) / weights.sum())
        return self._quadrature(naive.family_distribution(family, column, theta), lo, hi, family, theta)

    def _quadrature(self, frozen, lo: float, hi: float, family: str, theta: np.ndarray) -> tuple[float, float]:
        """Return mean and variance of a SciPy distribution on an interval."""
        lo, hi = max(lo, frozen.support()[0]), min(hi, frozen.support()[1])
        x, weight = nodes(lo, hi, min(max(frozen.median(), lo), hi), frozen.ppf(0.75) - frozen.ppf(0.25))
        weight = weight * frozen.pdf(x)
        mean = float(np.dot(weight, x) / weight.sum())
        if family == "student_t" and (math.isinf(lo) or math.isinf(hi)) and theta[2] <= 2.0:
            return mean, math.inf
        return mean, float(np.dot(weight, (x - mean) ** 2) / weight.sum())


def nodes(lo: float, hi: float, centre: float, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of Gauss-Legendre rules on panels that double in length away from centre and ends.

    The first are tiny: gammas of small shape have poles at 0.
    """
    steps = width * 2.0 ** np.arange(-200.0, 400.0)
    ends = np.concatenate([centre - steps, centre + steps, lo + steps, hi - steps, [lo, centre, hi]])
    ends = np.unique(ends[np.isfinite(ends) & (ends >= lo) & (ends <= hi)])
    points, weights = np.polynomial.legendre.leggauss(24)
    middle, half = 0.5 * (ends[1:] + ends[:-1]), 0.5 * np.diff(ends)
    return (middle[:, None] + half[:, None] * points).ravel(), (half[:, None] * weights).ravel()


def twins(post: Posterior) -> list[Twin]:
    """Return the draws of a posterior, chain by chain."""
    flat = post.flat()
    return [
        Twin(post.circuit, post.schema, Params(flat.log_weight[draw], flat.theta[draw]))
        for draw in range(flat.theta.shape[0])
    ]
