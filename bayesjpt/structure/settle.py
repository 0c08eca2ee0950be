"""Rows of a learned tree, divided anew by the default likelihoods, for leaves whose shapes stay where rows put them.

A learner divides rows with hard edges. Sweeps over a circuit of normals blur these: rows move, means and variances
follow them, and sub-populations narrow. A leaf whose breaks were placed around its rows cannot follow. So where all
numbers are described by such leaves alone, a chain over the same tree moves the rows first, under the default
dictionary; breaks are placed in what it leaves:

      tree -> circuit of the default dictionary -> sweeps -> weights, parameters
                                                                 |
      tree with other rows <- each row is drawn a child at every sum that it comes to, parents first

That is one draw of the posterior allocations, so an ensemble of structures averages over several.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.build import ColumnLeaf, Dictionary, Node, Product, Sum, build_circuit
from bayesjpt.circuit.layout import Layout, weight_variables
from bayesjpt.circuit.plan import make_plan
from bayesjpt.circuit.priors import make_priors
from bayesjpt.defaults import ALPHA, ESS, GAMMA, MAX_DISTINCT_SHARE, MAX_TABLE_BYTES, MAX_WORK_BYTES, STRUCTURE_TUNE
from bayesjpt.families import registry
from bayesjpt.families.features import auxiliary, to_units
from bayesjpt.families.record import N_EXTRA_COEFFICIENTS, Family
from bayesjpt.kernels import chain
from bayesjpt.kernels.samplers import BLOCKED, arrange, make_sweeper
from bayesjpt.kernels.units import ArraySource
from bayesjpt.structure.base import Progress
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table

BLOCK_ROWS = 4_096
"""Rows whose log densities at all nodes are held at the same time; no effect on any row."""

_OF_LEVELS = frozenset(("atom", "bernoulli", "categorical", "label", "ordinal"))


def shapes_are_fixed(schema: Schema, dictionary: Dictionary) -> bool:
    """Return whether splines describe the numbers of a table, and nothing does that follows rows where they go."""
    named = [{family.name for family in dictionary(column)} - _OF_LEVELS for column in schema.columns]
    return {"spline"} in named and all(names <= {"spline"} for names in named)


def settled(root: Node, table: Table, rng: np.random.Generator, progress: Progress | None = None) -> Node:
    """Return a tree of the same form whose rows went from one sub-population to another.

    Parameters
    ----------
    root : ColumnLeaf, Product or Sum
        Without conditions or divisions: all its sums are latent.
    table : Table
        The rows that the leaves point into.
    rng : numpy.random.Generator
    progress : callable, optional
        Called behind each sweep, so that a learner may be stopped.

    Notes
    -----
    Cost: the `STRUCTURE_TUNE` discarded sweeps of a structure, and one log density of each row at each leaf.

    References
    ----------
    Diebolt and Robert (1994), Estimation of finite mixture distributions through Bayesian sampling.
    """
    if not _holds_sum(root):
        return root
    circuit = build_circuit(root, table, _default)
    params = _swept(circuit, table, rng, progress)
    rows_of: list[list[np.ndarray]] = [[] for _ in range(circuit.n_node)]
    for first in range(0, table.n_row, BLOCK_ROWS):
        rows = np.arange(first, min(first + BLOCK_ROWS, table.n_row))
        _route(circuit, params, _log_densities(circuit, params, table, rows), rows, rng, rows_of)
    return _rebuilt(root, circuit, rows_of)


def _default(column: Column) -> list[Family]:
    """Return what a dictionary holds where nothing is asked for, whatever the schema names."""
    return [family for family in registry.fitting(column) if not family.by_name(column)]


def _holds_sum(root: Node) -> bool:
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Sum):
            return True
        stack.extend(node.children if isinstance(node, Product) else ())
    return False


def _swept(circuit: Circuit, table: Table, rng: np.random.Generator, progress: Progress | None) -> Params:
    """Return weights and parameters behind the sweeps that a structure's chain discards."""
    plan = make_plan(circuit, table.schema)
    layout = Layout(weight_variables(circuit, table.schema), ())
    priors = make_priors(
        circuit, table.schema, layout, gamma=GAMMA, alpha=ALPHA, prior="default", type_prior="members", ess=ESS
    )
    source = ArraySource(table.values, table.observed)
    units = arrange(plan, source, BLOCKED, max_distinct_share=MAX_DISTINCT_SHARE, max_table_bytes=MAX_TABLE_BYTES)
    sweeper = make_sweeper(circuit, plan, priors, units, sampler=BLOCKED, max_work_bytes=MAX_WORK_BYTES)
    state = chain.init(sweeper, rng, chain.draw_key(rng), n_tune=STRUCTURE_TUNE)
    n_cell = table.n_row * table.n_column
    while state.sweep < STRUCTURE_TUNE:
        state = chain.steps(state, sweeper, rng, STRUCTURE_TUNE - state.sweep)[-1]
        if progress is not None:
            progress(n_cell, n_cell)
    return state.params


def _log_densities(circuit: Circuit, params: Params, table: Table, rows: np.ndarray) -> np.ndarray:
    """Return the log density of some rows at every node, float64 (n_node, n_row), in units of each column's family.

    All families of a column have the same units, so what they leave out is the same for all children of a sum.
    """
    out = np.zeros((circuit.n_node, rows.size))
    for node in range(circuit.n_node):  # children before parents
        if circuit.kind[node] == arrays.LEAF:
            out[node] = _log_density_of_leaf(circuit, params, table, rows, int(circuit.leaf_of[node]))
            continue
        edges = slice(circuit.child_ptr[node], circuit.child_ptr[node + 1])
        below = out[circuit.child[edges]]
        if circuit.kind[node] == arrays.PRODUCT:
            out[node] = below.sum(axis=0)
        else:
            out[node] = np.logaddexp.reduce(below + params.log_weight[edges, None], axis=0)
    return out


def _log_density_of_leaf(circuit: Circuit, params: Params, table: Table, rows: np.ndarray, leaf: int) -> np.ndarray:
    """Return the log density of some rows at one leaf, float64 (n_row,); 0 where the cell is missing."""
    family = registry.FAMILIES[circuit.leaf_family[leaf]]
    number = int(circuit.leaf_var[circuit.leaf_var_ptr[leaf]])
    column, seen = table.schema.columns[number], table.observed[number, rows]
    out = np.zeros(rows.size)
    if seen.any():
        x = table.values[number, rows[seen]]
        constants = _part(circuit.const, circuit.const_at[leaf], circuit.const_len[leaf])
        theta = _part(params.theta, circuit.theta_at[leaf], circuit.theta_len[leaf])
        z = to_units(family, column, x)
        coefficients, density = np.zeros(theta.size + constants.size + N_EXTRA_COEFFICIENTS), np.empty(z.size)
        family.coefficients(theta, constants, coefficients)
        family.fill_log_density(z, auxiliary(family, z, constants), coefficients, density)
        if family.name != "atom":
            density[np.isin(x, column.atoms)] = -np.inf
        out[seen] = density
    return out


def _part(values: np.ndarray, first: int, n: int) -> np.ndarray:
    return np.ascontiguousarray(values[first : first + n])


def _route(
    circuit: Circuit,
    params: Params,
    log_density: np.ndarray,
    rows: np.ndarray,
    rng: np.random.Generator,
    rows_of: list[list[np.ndarray]],
) -> None:
    """Add to each node of the structure those of some rows that come to it; positions count inside the block."""
    arrived: list[np.ndarray | None] = [None] * circuit.n_node
    arrived[-1] = np.arange(rows.size)
    for node in range(circuit.n_node - 1, -1, -1):  # parents before children
        here = arrived[node]
        if here is None:
            continue
        rows_of[node].append(rows[here])
        edges = slice(circuit.child_ptr[node], circuit.child_ptr[node + 1])
        children = circuit.child[edges]
        if circuit.kind[node] == arrays.PRODUCT:
            for child in children:
                arrived[child] = here
        elif circuit.kind[node] == arrays.LATENT:
            chosen = _drawn(log_density[np.ix_(children, here)] + params.log_weight[edges, None], rng)
            for place, child in enumerate(children):
                arrived[child] = here[chosen == place]


def _drawn(log_weight: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a child for each row, int64 (n_row,), given log weights up to a constant, float64 (n_child, n_row)."""
    share = np.exp(log_weight - log_weight.max(axis=0, initial=-np.inf))
    below = np.cumsum(share, axis=0)
    # rounding may leave a draw at the very end, which belongs to the last child
    return np.minimum((below < rng.random(share.shape[1]) * below[-1]).sum(axis=0), share.shape[0] - 1)


def _rebuilt(root: Node, circuit: Circuit, rows_of: list[list[np.ndarray]]) -> Node:
    """Return the tree with the rows of the circuit's nodes, whose children stand in the order of the tree's.

    A dictionary's likelihoods lie below the node of a column's leaf, which is where the tree ends.
    """
    made: dict[int, Node] = {}
    stack: list[tuple[Node, int, bool]] = [(root, circuit.n_node - 1, False)]
    while stack:
        node, number, expanded = stack.pop()
        children = circuit.child[circuit.child_ptr[number] : circuit.child_ptr[number + 1]].tolist()
        if isinstance(node, ColumnLeaf):
            made[number] = ColumnLeaf(node.column, np.concatenate(rows_of[number]))
            continue
        assert isinstance(node, Product | Sum)
        if not expanded:
            stack.append((node, number, True))
            stack.extend((child, below, False) for child, below in zip(node.children, children, strict=True))
        elif isinstance(node, Product):
            made[number] = Product(tuple(made[child] for child in children))
        else:
            n_rows = tuple(sum(part.size for part in rows_of[child]) for child in children)
            made[number] = Sum(tuple(made[child] for child in children), n_rows)
    return made[circuit.n_node - 1]
