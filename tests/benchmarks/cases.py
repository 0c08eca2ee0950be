"""Tables and circuits of the benchmarks: about 150 likelihood leaves, dictionaries of three."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import bayesjpt as bj
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.plan import Plan, make_plan
from bayesjpt.circuit.priors import Priors, make_priors
from bayesjpt.defaults import MAX_DISTINCT_SHARE, MAX_TABLE_BYTES, MAX_WORK_BYTES
from bayesjpt.kernels.cells import Cells, Work, make_cells
from bayesjpt.kernels.work import block_rows, make_work
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table

DATA = Path(__file__).parents[2] / "notebooks" / "data"


class Case(NamedTuple):
    """Everything that a sweep takes."""

    name: str
    table: Table
    circuit: Circuit
    plan: Plan
    cells: Cells
    work: Work
    priors: Priors

    @property
    def n_terms(self) -> int:
        """Rows times likelihood leaves."""
        return self.table.n_row * self.circuit.n_leaf


def three_member_abalone() -> Table:
    """Return abalone with every discrete column as integers with levels, so that each dictionary has three members."""
    table = bj.read_table(DATA / "abalone.csv")
    columns = []
    for column, values in zip(table.schema.columns, table.values, strict=True):
        if column.base != "real":
            levels, counts = np.unique(values, return_counts=True)
            column = replace(
                column,
                base="integer",
                support=(0.0, np.inf),
                labels=(),
                levels=tuple(levels),
                frequencies=tuple(counts / counts.sum()),
                mean=float(values.mean()),
                maximum=float(values.max()),
            )
        columns.append(column)
    return Table(Schema(tuple(columns)), table.values, table.observed)


def all_distinct(n_row: int = 100_000, n_column: int = 10) -> Table:
    """Return log-normal columns without a repeated value."""
    values = np.exp(np.random.default_rng(2).normal(size=(n_column, n_row)))
    columns = [
        Column(
            f"c{position}",
            "real",
            (0.0, np.inf),
            resolution=1e-6,
            location=float(np.median(x)),
            scale=float(np.subtract(*np.quantile(x, [0.75, 0.25]))),
            mean=float(x.mean()),
            maximum=float(x.max()),
        )
        for position, x in enumerate(values)
    ]
    return Table(Schema(tuple(columns)), values, np.ones(values.shape, bool))


def _rows(table: Table, rng: np.random.Generator) -> np.ndarray:
    return np.sort(rng.choice(table.n_row, max(30, table.n_row // 8), replace=False))


def deep(table: Table, rng: np.random.Generator) -> Circuit:
    """Return four sub-populations; in each, four columns split the rows once more and the others stand alone."""
    components = []
    for _ in range(4):
        order = [int(c) for c in rng.permutation(table.n_column)]
        inner = Sum(
            tuple(Product(tuple(ColumnLeaf(c, _rows(table, rng)) for c in order[:4])) for _ in range(2)),
            (table.n_row, table.n_row),
        )
        components.append(Product((*(ColumnLeaf(c, _rows(table, rng)) for c in order[4:]), inner)))
    return build_circuit(Sum(tuple(components), (table.n_row,) * 4), table)


def shallow(table: Table, n_component: int, rng: np.random.Generator) -> Circuit:
    """Return a mixture of products of all columns."""
    components = tuple(
        Product(tuple(ColumnLeaf(c, _rows(table, rng)) for c in range(table.n_column))) for _ in range(n_component)
    )
    return build_circuit(Sum(components, (table.n_row,) * n_component), table)


def make_case(name: str) -> Case:
    """Return a case by its name: ``abalone``, ``50 components x 9`` or ``100,000 x 10 all distinct``."""
    rng = np.random.default_rng(1)
    if name == "100,000 x 10 all distinct":
        table = all_distinct()
        circuit = deep(table, rng)
    else:
        table = three_member_abalone()
        circuit = deep(table, rng) if name == "abalone" else shallow(table, 50, rng)
    plan = make_plan(circuit, table.schema)
    cells = make_cells(
        plan,
        np.ascontiguousarray(table.values),
        table.observed,
        max_distinct_share=MAX_DISTINCT_SHARE,
        max_table_bytes=MAX_TABLE_BYTES,
    )
    priors = make_priors(
        circuit, table.schema, make_layout(circuit, table.schema), gamma=10.0, alpha=0.1, prior="default"
    )
    work = make_work(plan, cells, block_rows(plan, MAX_WORK_BYTES))
    return Case(name, table, circuit, plan, cells, work, priors)
