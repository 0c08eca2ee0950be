"""Hypothesis strategies: random circuits over the example circuits's columns, with a table and parameters.

Shapes are drawn by hypothesis, so that failures shrink; cells and parameters come from seeds that it draws.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import NamedTuple

import hypothesis
import numpy as np
from hypothesis import strategies as st

from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.build import ColumnLeaf, Node, Product, Sum, build_circuit
from bayesjpt.circuit.paths import Condition, Region, halves
from bayesjpt.families import registry
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table
from tests import examples as ex
from tests.conftest import SEED

DEPTH = 4
MAX_ROWS = 8
EXAMPLES = float(os.environ.get("BAYESJPT_EXAMPLES", "0.35"))
"""Of the examples that a law names; 1 for all of them. Another `BAYESJPT_SEED` makes others."""
LEAST_EXAMPLES = 10


class Case(NamedTuple):
    """A table, a circuit over its columns, and a point of its parameter space."""

    table: Table
    circuit: Circuit
    params: Params


def law(n_examples: int) -> Callable:
    """Return a decorator: a share of so many examples, `EXAMPLES`, but `LEAST_EXAMPLES` where there are as many."""
    return long_law(max(round(EXAMPLES * n_examples), min(n_examples, LEAST_EXAMPLES)))


def long_law(n_examples: int) -> Callable:
    """Return a decorator: so many examples, drawn from the suite's seed, as slow as they like."""

    def decorate(test: Callable) -> Callable:
        settings = hypothesis.settings(
            max_examples=n_examples,
            deadline=None,
            database=None,
            suppress_health_check=[hypothesis.HealthCheck.too_slow],
        )
        return hypothesis.seed(SEED)(settings(test))

    return decorate


# --- dictionaries: one, two, three and more members


def _with_atoms(column: Column, members: tuple) -> tuple:
    """Return members of a dictionary, and the atom where the column has some: without it such rows are impossible."""
    atom = registry.family("atom")
    return (*members, atom) if column.atoms and atom not in members else members


def first_family(column: Column):
    """Offer the first family alone: bare leaves."""
    return _with_atoms(column, registry.dictionary(column)[:1])


def last_family(column: Column):
    """Offer the last family alone: other bare leaves."""
    return _with_atoms(column, registry.dictionary(column)[-1:])


def every_family_twice(column: Column):
    """Offer two leaves of each family: dictionaries of two to six members."""
    return 2 * registry.dictionary(column)


NAMED = (registry.dictionary, first_family, last_family)
"""Dictionaries whose members differ by name."""

DICTIONARIES = (*NAMED, every_family_twice)

seeds = st.integers(0, 2**32 - 1)


@st.composite
def tables(draw, max_rows: int = MAX_ROWS, offered: tuple[Column, ...] = ex.PLAIN) -> Table:
    """Draw a table over some of the offered columns in any order, with or without missing cells."""
    columns = draw(st.permutations(offered))[: draw(st.integers(1, len(offered)))]
    return ex.make_table(
        tuple(columns),
        draw(st.integers(1, max_rows)),
        np.random.default_rng(draw(seeds)),
        missing=draw(st.sampled_from([0.0, 0.3, 0.8])),
        continuous=draw(st.booleans()),
    )


@st.composite
def splits(
    draw, table: Table, scope: tuple[int, ...], region: Region
) -> tuple[Condition, tuple[Region, Region]] | None:
    """Draw a condition on one of some columns, and the regions of both sides; None where one of them is empty."""
    k = draw(st.sampled_from(scope))
    column = table.schema.columns[k]
    if column.base == "category":
        labels = draw(st.sets(st.integers(0, column.n_label - 1), min_size=1, max_size=column.n_label - 1))
        condition = Condition(k, math.nan, tuple(sorted(labels)))
    else:
        condition = Condition(k, draw(st.sampled_from(table.values[k].tolist())) + draw(st.sampled_from([0.0, 0.5])))
    sides = halves(region, condition, column)
    varies = column.base == "category" or (column.support[0] < condition.threshold and column.minimum < column.maximum)
    return (condition, sides) if sides is not None and varies else None


@st.composite
def trees(draw, table: Table, scope: tuple[int, ...], depth: int = DEPTH, region: Region | None = None) -> Node:
    """Draw a tree over some columns: sums of one to four children, products over any partition, leaves.

    With a region, sums may also be hard; it is what earlier conditions leave.
    """
    if depth == 0 or (len(scope) == 1 and draw(st.booleans())):
        leaves = tuple(ColumnLeaf(column, np.arange(table.n_row)) for column in scope)
        return leaves[0] if len(leaves) == 1 else Product(leaves)
    if len(scope) == 1 or draw(st.booleans()):
        split = None if region is None or draw(st.booleans()) else draw(splits(table, scope, region))
        if split is not None:
            condition, sides = split
            both = tuple(draw(trees(table, scope, depth - 1, side)) for side in sides)
            return Sum(both, (draw(st.integers(0, 9)), draw(st.integers(0, 9))), condition)
        n_children = draw(st.integers(1, 4 if depth > 2 else 2))
        children = tuple(draw(trees(table, scope, depth - 1, region)) for _ in range(n_children))
        return Sum(children, tuple(draw(st.integers(0, 9)) for _ in children))
    group = draw(st.lists(st.integers(0, len(scope) - 1), min_size=len(scope), max_size=len(scope)))
    parts = [tuple(c for c, g in zip(scope, group, strict=True) if g == label) for label in sorted(set(group))]
    return Product(tuple(draw(trees(table, part, depth - 1, region)) for part in parts))


@st.composite
def truncated_cases(draw, max_rows: int = MAX_ROWS, dictionaries: tuple[Callable, ...] = DICTIONARIES) -> Case:
    """Draw a case with leaves truncated to intervals and known values; rows may lie outside."""
    case = draw(cases(max_rows, dictionaries, ex.EVERY))
    rng = np.random.default_rng(draw(seeds))
    return case._replace(circuit=ex.truncated(case.circuit, case.table.schema, rng))


@st.composite
def cases(
    draw,
    max_rows: int = MAX_ROWS,
    dictionaries: tuple[Callable, ...] = DICTIONARIES,
    offered: tuple[Column, ...] = ex.PLAIN,
) -> Case:
    """Draw a table over some of the offered columns, a circuit over all its columns, and parameters."""
    table = draw(tables(max_rows, offered))
    tree = draw(trees(table, tuple(range(table.n_column))))
    circuit = build_circuit(tree, table, draw(st.sampled_from(dictionaries)))
    return Case(table, circuit, ex.random_params(circuit, table.schema, np.random.default_rng(draw(seeds))))
