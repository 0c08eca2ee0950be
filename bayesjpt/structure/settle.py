"""Rows of a learned tree, divided anew by the default likelihoods, for leaves whose shapes stay where rows put them.

A learner divides rows with hard edges. Sweeps over a circuit of normals blur these: rows move, means and variances
follow them, and sub-populations narrow. A leaf whose breaks were placed around its rows cannot follow. So where all
numbers are described by such leaves alone, a chain over the same tree moves the rows first, under the default
dictionary; breaks are placed in the allocations that it ends with:

      tree -> circuit of the default dictionary -> sweeps -> paths of the rows -> tree with other rows

That is one draw of the posterior allocations, so an ensemble of structures averages over several.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.build import Dictionary, Node, build_circuit, offered_by
from bayesjpt.circuit.layout import Layout, weight_variables
from bayesjpt.circuit.plan import make_plan
from bayesjpt.circuit.priors import make_priors
from bayesjpt.circuit.scope import scopes
from bayesjpt.defaults import ALPHA, ESS, GAMMA, MAX_DISTINCT_SHARE, MAX_TABLE_BYTES, MAX_WORK_BYTES, STRUCTURE_TUNE
from bayesjpt.families import registry
from bayesjpt.families.record import Family
from bayesjpt.kernels import chain
from bayesjpt.kernels.samplers import BLOCKED, COLLAPSED, arrange, make_sweeper
from bayesjpt.kernels.units import ArraySource
from bayesjpt.structure import base
from bayesjpt.structure.base import Columns, Progress, Rows, Task
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table

_OF_LEVELS = frozenset(("atom", "bernoulli", "categorical", "label", "ordinal"))


def shapes_are_fixed(schema: Schema, dictionary: Dictionary) -> bool:
    """Return whether splines describe the numbers of a table, and nothing does that follows rows where they go.

    Constant columns do not count: no row is told from another by them.
    """
    varied = [column for column in schema.columns if column.minimum != column.maximum]
    named = [{family.name for family in offered_by(dictionary, column)} - _OF_LEVELS for column in varied]
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

    Raises
    ------
    SamplingError
        If the default likelihoods give a row probability zero.

    Notes
    -----
    A row without an observed cell below a sum comes to none of its children. Cost: the `STRUCTURE_TUNE` discarded
    sweeps of a structure, and one more.

    References
    ----------
    Diebolt and Robert (1994), Estimation of finite mixture distributions through Bayesian sampling.
    """
    circuit = build_circuit(root, table, _default)
    if not (circuit.kind == arrays.LATENT).any():
        return root
    plan = make_plan(circuit, table.schema)
    layout = Layout(weight_variables(circuit, table.schema), ())
    priors = make_priors(
        circuit, table.schema, layout, gamma=GAMMA, alpha=ALPHA, prior="default", type_prior="members", ess=ESS
    )
    source = ArraySource(table.values, table.observed)
    # one unit, whose paths are kept together
    units = arrange(plan, source, COLLAPSED, max_distinct_share=MAX_DISTINCT_SHARE, max_table_bytes=MAX_TABLE_BYTES)
    sweeper = make_sweeper(circuit, plan, priors, units, sampler=BLOCKED, max_work_bytes=MAX_WORK_BYTES)
    state = chain.init(sweeper, rng, chain.draw_key(rng))
    n_cell = table.n_row * table.n_column
    while state.sweep < STRUCTURE_TUNE:
        state = chain.steps(state, sweeper, rng, STRUCTURE_TUNE - state.sweep)[-1]
        if progress is not None:
            progress(n_cell, n_cell)
    taken = sweeper.paths(state.params, chain.draw_key(rng)).taken

    scope = [np.flatnonzero(columns) for columns in scopes(circuit, table.n_column)]
    # nodes of the tasks that `grow` has before it
    pending = [circuit.n_node - 1]

    def decide(task: Task) -> Columns | Rows | None:
        node = pending.pop()
        edges = np.arange(circuit.child_ptr[node], circuit.child_ptr[node + 1])
        children = circuit.child[edges]
        if circuit.kind[node] == arrays.LATENT:
            pending.extend(children[::-1])
            parts = [task.rows[(taken[task.rows] == edge).any(axis=1)] for edge in edges]
            return Rows(tuple(Task(rows, scope[child]) for rows, child in zip(parts, children, strict=True)))
        if circuit.kind[node] == arrays.PRODUCT:
            pending.extend(children[::-1])
            return Columns(tuple(Task(task.rows, scope[child]) for child in children))
        return None  # the leaf of one column, whose likelihoods lie below

    return base.grow(base.whole(table), decide)


def _default(column: Column) -> list[Family]:
    """Return what a dictionary holds where nothing is asked for, whatever the schema names."""
    return [family for family in registry.fitting(column) if not family.by_name(column)]
