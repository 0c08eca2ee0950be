"""Every kind of invalid arrays is caught, by planting it into a valid circuit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.check import check_circuit, check_leaves_fit
from bayesjpt.errors import CircuitError
from bayesjpt.families import registry
from bayesjpt.table.schema import Schema
from tests import examples as ex
from tests import naive, strategies

N_COLUMN = 3


@pytest.fixture
def circuit(rng) -> Circuit:
    """Return a valid circuit of two levels over three columns, with dictionaries and bare leaves."""
    return ex.two_level(ex.make_table((ex.POSITIVE, ex.REAL, ex.COUNT), 20, rng))


def put(array, at, value):
    """Return a copy of an array with one entry replaced."""
    out = array.copy()
    out[at] = value
    return out


def first_node(c, kind):
    return int(np.flatnonzero(c.kind == kind)[0])


def first_edge(c, kind):
    return int(c.child_ptr[first_node(c, kind)])


def bare_leaf(c):
    """Return a leaf whose parent is a product, as (node, row of the leaf table)."""
    parent = c.edge_parent()
    node = next(int(n) for e, n in enumerate(c.child) if c.kind[parent[e]] == arrays.PRODUCT and c.leaf_of[n] >= 0)
    return node, int(c.leaf_of[node])


def dictionary_leaf(c):
    """Return the row of the leaf table of a member of a dictionary."""
    return int(c.leaf_of[c.child[first_edge(c, arrays.LIKELIHOOD)]])


DAMAGES = {
    # shapes
    "no nodes": (lambda c: c._replace(kind=c.kind[:0]), "no nodes"),
    "too few entries of leaf_of": (lambda c: c._replace(leaf_of=c.leaf_of[:-1]), "leaf_of has"),
    "too few offsets of edges": (lambda c: c._replace(child_ptr=c.child_ptr[:-1]), "child_ptr has"),
    "too few weights": (lambda c: c._replace(start_log_weight=c.start_log_weight[:-1]), "start_log_weight has"),
    "too few cells": (lambda c: c._replace(leaf_cell=c.leaf_cell[:-1]), "leaf_cell has"),
    "half a cell": (lambda c: c._replace(cell=np.zeros(3)), "cell has 3"),
    "a cell upside down": (lambda c: c._replace(cell=np.array([1.0, 0.0])), "ascending"),
    "a cell without a bound": (lambda c: c._replace(cell=np.array([np.nan, 0.0])), "ascending"),
    "a cell at infinity": (lambda c: c._replace(cell=np.array([np.inf, np.inf])), "at infinity"),
    "a cell that is not there": (lambda c: c._replace(leaf_cell=put(c.leaf_cell, 0, 0)), "in cell 0"),
    "a cell before the first": (lambda c: c._replace(leaf_cell=put(c.leaf_cell, 0, -2)), "in cell -2"),
    "too few parameter offsets": (lambda c: c._replace(theta_at=c.theta_at[:-1]), "theta_at has"),
    "too many parameter lengths": (lambda c: c._replace(theta_len=np.append(c.theta_len, 1)), "theta_len has"),
    "too few constant offsets": (lambda c: c._replace(const_at=c.const_at[:-1]), "const_at has"),
    "too few constant lengths": (lambda c: c._replace(const_len=c.const_len[:-1]), "const_len has"),
    "too few columns of leaves": (lambda c: c._replace(leaf_var=c.leaf_var[:-1]), "leaf_var has"),
    "a leaf over two columns": (lambda c: c._replace(leaf_var=np.append(c.leaf_var, 0)), "leaf_var has"),
    # offsets
    "edges that begin late": (lambda c: c._replace(child_ptr=put(c.child_ptr, 0, 1)), "child_ptr"),
    "edges that end early": (lambda c: c._replace(child_ptr=put(c.child_ptr, -1, c.n_edge - 1)), "child_ptr"),
    "edges that end late": (lambda c: c._replace(child_ptr=put(c.child_ptr, -1, c.n_edge + 1)), "child_ptr"),
    "edges out of order": (lambda c: c._replace(child_ptr=put(c.child_ptr, 3, c.n_edge)), "child_ptr"),
    "parameters that end late": (lambda c: c._replace(theta_at=put(c.theta_at, -1, c.n_theta)), "parameters or const"),
    "parameters that begin below 0": (lambda c: c._replace(theta_at=put(c.theta_at, 0, -1)), "parameters or const"),
    "parameters of negative length": (lambda c: c._replace(theta_len=put(c.theta_len, 0, -1)), "parameters or const"),
    "constants that end late": (
        lambda c: c._replace(const_len=put(c.const_len, 0, c.const.size + 1)),
        "parameters or const",
    ),
    "constants that begin below 0": (lambda c: c._replace(const_at=put(c.const_at, 0, -1)), "parameters or const"),
    # kinds and order
    "a kind above the last": (lambda c: c._replace(kind=put(c.kind, 0, arrays.LEAF + 1)), "of the unknown kind"),
    "a kind below the first": (lambda c: c._replace(kind=put(c.kind, 0, -1)), "of the unknown kind"),
    "a kind that no longer is": (lambda c: c._replace(kind=put(c.kind, 0, 3)), "of the unknown kind 3"),
    "a child after its parent": (lambda c: c._replace(child=put(c.child, 0, c.n_node - 1)), "edge 0 leads"),
    "a child that is its parent": (
        lambda c: c._replace(child=put(c.child, c.n_edge - 1, c.n_node - 1)),
        "leads from node",
    ),
    "a child below 0": (lambda c: c._replace(child=put(c.child, 0, -1)), "edge 0 leads"),
    "a node without parent": (lambda c: c._replace(child=put(c.child, 1, c.child[0])), "has no parent"),
    "an inner node without children": (
        lambda c: c._replace(kind=put(c.kind, bare_leaf(c)[0], arrays.PRODUCT)),
        "without children",
    ),
    "a leaf with children": (
        lambda c: c._replace(kind=put(c.kind, first_node(c, arrays.PRODUCT), arrays.LEAF)),
        "without children, or a leaf with some",
    ),
    # leaves
    "two nodes of one leaf": (
        lambda c: c._replace(leaf_of=put(c.leaf_of, np.flatnonzero(c.leaf_of == 1), 0)),
        "leaf_of does not number",
    ),
    "an inner node with a leaf": (lambda c: c._replace(leaf_of=put(c.leaf_of, -1, 0)), "leaf_of does not number"),
    "a column beyond the last": (lambda c: c._replace(leaf_var=put(c.leaf_var, 0, N_COLUMN)), "a leaf over column 3"),
    "a column below 0": (lambda c: c._replace(leaf_var=put(c.leaf_var, 0, -1)), "a leaf over column -1"),
    "a family that does not exist": (
        lambda c: c._replace(leaf_family=put(c.leaf_family, 0, len(registry.FAMILIES))),
        "unknown family",
    ),
    "a family below 0": (lambda c: c._replace(leaf_family=put(c.leaf_family, 0, -1)), "unknown family"),
    "a dictionary over two columns": (
        lambda c: c._replace(leaf_var=put(c.leaf_var, dictionary_leaf(c), 1)),
        "the dictionary at node",
    ),
    "a dictionary of sums": (
        lambda c: c._replace(kind=put(c.kind, -1, arrays.LIKELIHOOD)),
        "the dictionary at node",
    ),
    # scopes
    "a product with a column in common": (
        lambda c: c._replace(leaf_var=put(c.leaf_var, bare_leaf(c)[1], 2)),
        "children with a column in common",
    ),
    "a sum over different columns": (
        lambda c: c._replace(kind=put(c.kind, first_node(c, arrays.PRODUCT), arrays.HARD)),
        "children over different columns",
    ),
    # starting values
    "weights that add up to more than one": (
        lambda c: c._replace(start_log_weight=put(c.start_log_weight, first_edge(c, arrays.LATENT), 0.0)),
        "starting weights of sum",
    ),
    "a weight that is not a number": (
        lambda c: c._replace(start_log_weight=put(c.start_log_weight, first_edge(c, arrays.LATENT), np.nan)),
        "starting weights of sum",
    ),
    "a weighted edge of a product": (
        lambda c: c._replace(start_log_weight=put(c.start_log_weight, first_edge(c, arrays.PRODUCT), -0.1)),
        "an edge of a product has a weight",
    ),
    "a parameter that is not a number": (
        lambda c: c._replace(start_theta=put(c.start_theta, 0, np.nan)),
        "a starting parameter is not finite",
    ),
    "an infinite parameter": (
        lambda c: c._replace(start_theta=put(c.start_theta, -1, np.inf)),
        "a starting parameter is not finite",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_invalid_arrays_are_refused_by_name(circuit, damage):
    plant, message = DAMAGES[damage]
    check_circuit(circuit, N_COLUMN)
    with pytest.raises(CircuitError, match=message):
        check_circuit(plant(circuit), N_COLUMN)


def test_circuit_that_misses_a_column_is_refused(circuit):
    with pytest.raises(CircuitError, match="the root does not cover column 3"):
        check_circuit(circuit, N_COLUMN + 1)


def test_weight_of_exactly_zero_is_accepted(circuit):
    edges = list(naive.edges_of(circuit, circuit.n_node - 1))
    weights = put(put(circuit.start_log_weight, edges[0], -np.inf), edges[1], 0.0)
    check_circuit(circuit._replace(start_log_weight=weights), N_COLUMN)


@strategies.law(50)
@given(strategies.cases())
def test_built_circuits_are_accepted(case):
    check_circuit(case.circuit, case.table.n_column)


def with_child(circuit: Circuit, node: int, child: int) -> Circuit:
    """Return the circuit with one more edge, the last of a product."""
    at = circuit.child_ptr[node + 1]
    child_ptr = circuit.child_ptr.copy()
    child_ptr[node + 1 :] += 1
    return circuit._replace(
        child_ptr=child_ptr,
        child=np.insert(circuit.child, at, child),
        start_log_weight=np.insert(circuit.start_log_weight, at, 0.0),
    )


def test_leaf_of_a_dictionary_that_hangs_elsewhere_too_is_refused(circuit):
    product = int(np.flatnonzero(circuit.kind == arrays.PRODUCT)[-1])
    member = int(circuit.child[circuit.kind[circuit.edge_parent()] == arrays.LIKELIHOOD][0])
    with pytest.raises(CircuitError, match="in a dictionary and elsewhere"):
        check_circuit(with_child(circuit, product, member), N_COLUMN)


def test_one_child_twice_is_refused(circuit):
    product = int(np.flatnonzero(circuit.kind == arrays.PRODUCT)[-1])
    child = int(circuit.child[circuit.child_ptr[product]])
    with pytest.raises(CircuitError, match="one child twice"):
        check_circuit(with_child(circuit, product, child), N_COLUMN)


def test_leaves_that_are_about_other_levels_are_refused_by_column(rng):
    table = ex.make_table((ex.LEVELS, ex.REAL), 20, rng)
    circuit = ex.independent(table)
    check_leaves_fit(circuit, table.schema)
    other = replace(ex.LEVELS, levels=(10.0, 11.0, 12.0, 15.0))
    with pytest.raises(CircuitError, match="'levels'"):
        check_leaves_fit(circuit, Schema((other, ex.REAL)))
