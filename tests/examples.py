"""Small circuits and tables that many tests share: every family, every base, missing cells, depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bayesjpt import Posterior  # and with it the query methods, so that each file of tests runs alone
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit, freeze
from bayesjpt.circuit.check import check_circuit
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.paths import Condition
from bayesjpt.families import registry
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table

REAL = Column(
    name="real",
    base="real",
    support=(-np.inf, np.inf),
    resolution=0.1,
    location=1.0,
    scale=2.0,
    mean=1.2,
    maximum=9.0,
    families=("normal",),
)
POSITIVE = Column(
    name="positive",
    base="real",
    support=(0.0, np.inf),
    resolution=0.1,
    location=2.0,
    scale=1.5,
    mean=2.5,
    maximum=12.0,
    families=("normal", "gamma", "exponential"),
)
COUNT = Column(
    name="count",
    base="integer",
    support=(0.0, np.inf),
    mean=3.0,
    maximum=15.0,
    location=3.0,
    scale=2.0,
    families=("poisson", "geometric"),
)
LEVELS = Column(
    name="levels",
    base="integer",
    support=(0.0, np.inf),
    levels=(0.0, 1.0, 2.0, 5.0),
    frequencies=(0.4, 0.3, 0.2, 0.1),
    families=("poisson", "geometric", "categorical"),
    mean=1.2,
    maximum=5.0,
)
LABEL = Column(
    name="label", base="category", support=(0.0, 2.0), labels=("a", "b", "c"), frequencies=(0.4, 0.3, 0.2, 0.1)
)
COLUMNS = (REAL, POSITIVE, COUNT, LEVELS, LABEL)
"""Columns of each base with small dictionaries, for tests that count members."""
CHANGE = Column(
    name="change",
    base="integer",
    support=(-np.inf, np.inf),
    location=1.0,
    scale=2.5,
    mean=0.5,
    minimum=-9.0,
    maximum=9.0,
)
FLAG = Column(name="flag", base="category", support=(0.0, 2.0), labels=("no", "yes"), frequencies=(0.6, 0.3, 0.1))
ZEROS = replace(POSITIVE, name="zeros", atoms=(0.0, 2.0), atom_frequencies=(0.8, 0.2), families=())
HEAPED = replace(REAL, name="heaped", atoms=(0.0, 2.5), atom_frequencies=(0.7, 0.3), families=())
FIXED = Column(
    name="fixed",
    base="real",
    support=(0.0, 8.0),
    resolution=0.5,
    location=4.0,
    scale=4.0,
    mean=4.0,
    minimum=4.0,
    maximum=4.0,
    families=("uniform",),
    atoms=(4.0,),
    atom_frequencies=(1.0,),
)
"""What a column of one number becomes; the rows drawn for it hold others too, as new rows may."""
SMALLEST_NU = 2.6
"""Of random parameters: above the floor of the default prior of Student's t."""
PLAIN = (*(replace(column, families=()) for column in COLUMNS), CHANGE, FLAG)
"""Columns without atoms, with all families that fit."""
EVERY = (*PLAIN, ZEROS, FIXED)
"""Columns that together have every built-in family in their dictionaries."""


def draw_column(column: Column, n_row: int, rng: np.random.Generator) -> np.ndarray:
    """Return plausible values of a column, rounded as they would be recorded; atoms and zeros among them."""
    if column.base == "category":
        return rng.integers(0, len(column.labels), n_row).astype(float)
    if column.levels:
        return rng.choice(column.levels, n_row)
    if column.base == "integer" and column.support[0] < 0.0:
        return np.rint(rng.normal(0.5, 3.0, n_row))
    if column.base == "integer":
        return rng.poisson(3.0, n_row).astype(float)
    if column.minimum == column.maximum > 0.0:
        return np.where(rng.random(n_row) < 0.6, column.maximum, rng.integers(0, 17, n_row) * column.resolution)
    if column.support[0] == 0.0:
        values = np.round(rng.gamma(2.0, 1.2, n_row), 1)
        values[rng.random(n_row) < 0.1] = 0.0
        return values
    values = np.round(rng.normal(1.0, 2.0, n_row), 1)
    if column.atoms:
        values = np.where(rng.random(n_row) < 0.4, rng.choice(column.atoms, n_row), values)
    return values


def make_table(
    columns: tuple[Column, ...], n_row: int, rng: np.random.Generator, missing: float = 0.0, continuous: bool = False
) -> Table:
    """Return a table of plausible rows; `continuous` takes the rounding off real columns (all values distinct)."""
    values = np.array([draw_column(column, n_row, rng) for column in columns])
    if continuous:
        for position, column in enumerate(columns):
            if column.base == "real":
                free = ~np.isin(values[position], column.atoms)
                values[position, free] += rng.uniform(0.0, column.resolution, n_row)[free]
    observed = rng.random(values.shape) >= missing
    return Table(Schema(columns), np.ascontiguousarray(values), observed)


def part(table: Table, *columns: int) -> Table:
    """Return the table of some columns."""
    index = list(columns)
    return Table(Schema(tuple(table.schema.columns[c] for c in index)), table.values[index], table.observed[index])


def joined(*tables: Table) -> Table:
    """Return the table of the columns of several tables over the same rows."""
    columns = tuple(column for table in tables for column in table.schema)
    return Table(
        Schema(columns), np.vstack([table.values for table in tables]), np.vstack([table.observed for table in tables])
    )


def column_of(family: str) -> Column:
    """Return a column that a family describes."""
    return next(column for column in EVERY if family in {member.name for member in registry.fitting(column)})


def leaf(column: int, table: Table) -> ColumnLeaf:
    """Return a leaf over all rows."""
    return ColumnLeaf(column, np.arange(table.n_row))


def independent(table: Table, dictionary=None) -> Circuit:
    """Return the product of all columns (or the one column's leaf)."""
    leaves = tuple(leaf(column, table) for column in range(table.n_column))
    return build_circuit(leaves[0] if len(leaves) == 1 else Product(leaves), table, dictionary)


def mixture(table: Table, n_component: int = 2, dictionary=None) -> Circuit:
    """Return a mixture of products of all columns."""
    components = tuple(
        Product(tuple(leaf(column, table) for column in range(table.n_column)))
        if table.n_column > 1
        else leaf(0, table)
        for _ in range(n_component)
    )
    return build_circuit(Sum(components, (table.n_row,) * n_component), table, dictionary)


def two_level(table: Table, dictionary=None) -> Circuit:
    """Return a mixture whose components factor into one column and a mixture over the rest (three columns at least)."""

    def component() -> Product:
        inner = Sum(
            tuple(Product(tuple(leaf(c, table) for c in range(1, table.n_column))) for _ in range(2)),
            (table.n_row,) * 2,
        )
        return Product((leaf(0, table), inner))

    return build_circuit(Sum((component(), component()), (table.n_row,) * 2), table, dictionary)


def hard(table: Table, *conditions: Condition, dictionary=None) -> Circuit:
    """Return a tree of hard sums, the k-th condition splitting every part of the k-th level, over products of columns.

    A missing cell meets the condition.
    """

    def grow(rows: np.ndarray, left: Sequence[Condition]) -> Sum | Product | ColumnLeaf:
        if not left:
            leaves = tuple(ColumnLeaf(column, rows) for column in range(table.n_column))
            return leaves[0] if len(leaves) == 1 else Product(leaves)
        condition = left[0]
        x = table.values[condition.column, rows]
        is_label = table.schema.columns[condition.column].base == "category"
        meets = np.isin(x, condition.labels) if is_label else x < condition.threshold
        meets |= ~table.observed[condition.column, rows]
        parts = rows[meets], rows[~meets]
        counts = parts[0].size, parts[1].size
        return Sum(tuple(grow(part, left[1:]) for part in parts), counts, condition)

    return build_circuit(grow(np.arange(table.n_row), conditions), table, dictionary)


def merged(circuit: Circuit, kept: int, dropped: int) -> Circuit:
    """Return the circuit in which the parents of one leaf's node point at another's: no tree any more."""
    row = circuit.leaf_of[dropped]
    child = np.where(circuit.child == dropped, kept, circuit.child)
    leaf_of = np.delete(circuit.leaf_of, dropped)
    leaf_table = ("leaf_family", "leaf_var", "leaf_cell", "theta_at", "theta_len", "const_at", "const_len")
    return freeze(
        circuit._replace(
            kind=np.delete(circuit.kind, dropped),
            child_ptr=np.delete(circuit.child_ptr, dropped),
            child=child - (child > dropped).astype(np.int32),
            leaf_of=leaf_of - (leaf_of > row).astype(np.int32),
            **{name: np.delete(getattr(circuit, name), row) for name in leaf_table},
        )
    )


def shared_leaf(table: Table, n_leaf: int = 2, position: int = 0) -> Circuit:
    """Return a mixture over two columns whose two components hold mixtures of the second column that share a leaf.

    It is the leaf at `position` of the first component's inner mixture, and the first leaf of the other's.
    """

    def component() -> Product:
        return Product((leaf(0, table), Sum(tuple(leaf(1, table) for _ in range(n_leaf)), (1,) * n_leaf)))

    tree = build_circuit(Sum((component(), component()), (1, 1)), table, lambda column: registry.dictionary(column)[:1])
    # nodes: leaf, n_leaf leaves, sum, product; the same again; sum
    circuit = merged(tree, 1 + position, n_leaf + 4)
    check_circuit(circuit, 2)
    return circuit


def truncated(circuit: Circuit, schema: Schema, rng: np.random.Generator, share: float = 0.7) -> Circuit:
    """Return the circuit with some leaves truncated: to intervals of plausible values, or one value (real columns)."""
    leaf_cell = np.full(circuit.n_leaf, -1, np.int32)
    cell: list[tuple[float, float]] = []
    for leaf in np.flatnonzero(rng.random(circuit.n_leaf) < share):
        column = schema.columns[circuit.leaf_var[leaf]]
        leaf_cell[leaf] = len(cell)
        cell.append(plausible_interval(column, rng))
    return freeze(circuit._replace(leaf_cell=leaf_cell, cell=np.array(cell, float).ravel()))


def plausible_interval(column: Column, rng: np.random.Generator) -> tuple[float, float]:
    """Return an interval that holds a plausible value: both ends, one, or (on real columns) one value alone."""
    lo, hi = np.sort(draw_column(column, 2, rng))
    if column.base == "real":
        if rng.random() < 0.2:
            return float(hi), float(hi)
        lo, hi = lo - 0.37 * column.resolution, hi + 1.21 * column.resolution  # no ends of recorded cells
        if column.atoms and rng.random() < 0.4:  # a bound at an atom, closed or open
            lo = rng.choice([column.atoms[0], np.nextafter(column.atoms[0], np.inf)])
            hi = max(hi, lo + column.resolution)  # the atom may lie above both values
    match rng.integers(3):
        case 0:
            return float(lo), float(hi)
        case 1:
            return -np.inf, float(hi)
        case _:
            return float(lo), np.inf


def only(*names: str):
    """Return a dictionary of the named families, for columns that they fit."""

    def members(column):
        fitting = registry.fitting(column)
        offered = registry.dictionary(column)
        if not column.families:  # those too that are implausible beside the column's spread
            offered = tuple(f for f in fitting if f in offered or f.shared_scale is not None)
        named = tuple(family for family in fitting if family not in offered)
        return tuple(family for family in (*offered, *named) if family.name in names) or offered[:1]

    return members


def start(circuit: Circuit) -> Params:
    """Return the learner's estimate as arrays of our own: read-only ones would make kernels compile once more."""
    return Params(circuit.start_log_weight.copy(), circuit.start_theta.copy())


def random_params(circuit: Circuit, schema: Schema, rng: np.random.Generator) -> Params:
    """Return weights and parameters drawn around the starting values: valid, distinct for every leaf."""
    layout = make_layout(circuit, schema)
    log_weight = np.zeros(circuit.n_edge)
    for variable in layout.weights:
        for lo, hi in zip(variable.ptr[:-1], variable.ptr[1:], strict=True):
            log_weight[variable.edges[lo:hi]] = np.log(rng.dirichlet(np.full(hi - lo, 2.0)))
    theta = circuit.start_theta.copy()
    for variable in layout.parameters:
        at = variable.positions
        match variable.parameter.constraint:
            case "real":
                theta[at] = theta[at] + rng.normal(0.0, 0.5, at.size)
            case "positive":
                theta[at] = theta[at] * np.exp(rng.normal(0.0, 0.3, at.size))
            case "unit":
                odds = theta[at] / (1.0 - theta[at]) * np.exp(rng.normal(0.0, 0.3, at.size))
                theta[at] = odds / (1.0 + odds)
            case _:
                for lo, hi in zip(variable.ptr[:-1], variable.ptr[1:], strict=True):
                    theta[at[lo:hi]] = rng.dirichlet(np.full(hi - lo, 3.0))
        if variable.parameter.name == "nu":
            theta[at] = np.maximum(theta[at], SMALLEST_NU)
    return Params(log_weight, theta)


def random_posterior(
    circuit: Circuit, table: Table, rng: np.random.Generator, *, n_chain: int = 2, n_draw: int = 6, **more
) -> Posterior:
    """Return a Posterior of unrelated valid draws, with the table's first rows as reference."""
    points = [random_params(circuit, table.schema, rng) for _ in range(n_chain * n_draw)]
    params = Params(
        np.array([point.log_weight for point in points]).reshape(n_chain, n_draw, -1),
        np.array([point.theta for point in points]).reshape(n_chain, n_draw, -1),
    )
    return Posterior(circuit, table.schema, params, reference=table.take(range(min(table.n_row, 20))), **more)


def with_resolution(column: Column, resolution: float) -> Column:
    """Return the column with another resolution."""
    return replace(column, resolution=resolution)


def named(column: Column, name: str) -> Column:
    """Return the column under another name."""
    return replace(column, name=name)
