"""Conditions of trees: what is built from splits is read back, and decides what rows a leaf can hold."""

from __future__ import annotations

import hypothesis
import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

import bayesjpt as bj
from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import start_params
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit
from bayesjpt.circuit.check import check_circuit
from bayesjpt.circuit.edit import marginalised
from bayesjpt.circuit.paths import Condition, Interval, Region, halves, regions, tree_nodes
from bayesjpt.errors import CircuitError
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive, strategies
from tests.strategies import law

COUNT, LABEL, REAL = ex.COUNT, ex.LABEL, ex.REAL


def two_splits(table: Table):
    """Return a circuit that splits the count at 3.5, and those above by the labels a and c."""
    rows = np.arange(table.n_row)

    def leaf():
        return Product(tuple(ColumnLeaf(column, rows) for column in range(table.n_column)))

    above = Sum((leaf(), leaf()), (3, 1), Condition(1, np.nan, (0, 2)))
    return build_circuit(Sum((leaf(), above), (4, 4), Condition(0, 3.5)), table)


def holds(region: Region, row: np.ndarray) -> bool:
    """Return whether a complete row meets all conditions of a region."""
    return all(
        part.lo <= row[k] <= part.hi if isinstance(part, Interval) else row[k] in part for k, part in region.items()
    )


@pytest.fixture
def table(rng) -> Table:
    return ex.make_table((COUNT, LABEL, REAL), 8, rng)


def test_tree_is_read_back_from_the_circuit(table):
    root, below, above, some, others = tree_nodes(two_splits(table))
    assert (root.column, above.column) == (0, 1)
    assert (root.children, above.children, below.children) == ((1, 2), (3, 4), ())
    assert root.region == {}
    assert below.region == {0: Interval(-np.inf, 3.0)}
    assert above.region == {0: Interval(4.0, np.inf)}
    assert some.region == {0: Interval(4.0, np.inf), 1: (0, 2)}
    assert others.region == {0: Interval(4.0, np.inf), 1: (1, 3)}


def test_tree_without_splits_is_one_leaf(table):
    (root,) = tree_nodes(ex.mixture(table))
    assert (root.column, root.region, root.children) == (-1, {}, ())


@pytest.mark.parametrize(
    ("region", "condition", "column"),
    [
        ({0: Interval(4.0, 5.0)}, Condition(0, 3.5), COUNT),
        ({0: Interval(-np.inf, 3.0)}, Condition(0, 3.5), COUNT),
        ({0: (0, 2)}, Condition(0, np.nan, (1,)), LABEL),
        ({0: Interval(1.0, 2.0)}, Condition(0, 1.0), REAL),
        ({0: Interval(1.0, 2.0)}, Condition(0, float(np.nextafter(1.0, 2.0))), REAL),
        ({0: Interval(1e-320, 1.0)}, Condition(0, 7e-320), REAL),
    ],
    ids=["all above", "all below", "no label", "nothing below", "one number below", "few digits below"],
)
def test_condition_with_an_empty_side_has_no_halves(region, condition, column):
    assert halves(region, condition, column) is None


@law(60)
@hypothesis.given(data=st.data())
def test_complete_rows_have_a_density_under_one_child_of_every_hard_sum(data):
    table = data.draw(strategies.tables(offered=(COUNT, LABEL, REAL, ex.LEVELS)))
    scope = tuple(range(table.n_column))
    table = Table(table.schema, table.values, np.ones_like(table.observed))
    circuit = build_circuit(data.draw(strategies.trees(table, scope, region={})), table)
    region = regions(circuit, range(circuit.n_node))
    params = start_params(circuit)
    seen = np.ones(table.n_column, bool)
    for row in table.values.T:
        for node in np.flatnonzero(circuit.kind == arrays.HARD):
            children = circuit.child[circuit.child_ptr[node] : circuit.child_ptr[node + 1]]
            possible = [child for child in children if holds(region[child], row)]
            assert len(possible) <= 1
            for child in children:
                value = naive.log_value(circuit, table.schema, params, row, seen, at=int(child))
                assert child in possible or value == -np.inf


def test_leaf_of_some_labels_has_their_shares_of_the_whole_column(table):
    circuit = two_splits(table)
    post = bj.Posterior.from_circuit(circuit, table.schema)
    found = [post.probability(f"label == '{label}'", "count == 5").item() for label in "abc"]
    node = tree_nodes(circuit)[2]
    weights = np.exp(circuit.start_log_weight[list(node.edges)])
    leaf = int(np.flatnonzero((circuit.leaf_var == 1) & (circuit.leaf_cell < 0))[-1])
    theta = circuit.start_theta[circuit.theta_at[leaf] :][:4]
    assert found[1] == pytest.approx(weights[1] * theta[1] / (theta[1] + theta[3]), rel=1e-12)
    assert found[0] + found[2] == pytest.approx(weights[0], rel=1e-12)


def test_hard_sum_that_loses_its_column_is_latent(table):
    circuit = two_splits(table)
    assert marginalised(circuit, [2], max_edges=99).circuit.kind[-1] == arrays.LATENT
    kept = marginalised(circuit, [0, 2], max_edges=99).circuit
    assert [int((kept.kind == kind).sum()) for kind in (arrays.HARD, arrays.LATENT)] == [1, 1]


def test_hard_sum_whose_children_overlap_is_no_circuit(table):
    circuit = ex.mixture(table)
    kind = circuit.kind.copy()
    kind[-1] = arrays.HARD
    with pytest.raises(CircuitError, match="no column tells the children"):
        check_circuit(circuit._replace(kind=kind), table.n_column)


def test_learned_leaves_hold_the_rows_of_their_region(rng):
    frame = pd.DataFrame({"x": rng.normal(size=300), "kind": rng.choice(list("abc"), 300)})
    frame["y"] = frame["x"] + (frame["kind"] == "b")
    table = bj.as_table(frame)
    nodes = tree_nodes(bj.learn_jpt(table, rng, min_rows=30))
    leaves = [node for node in nodes if not node.children]
    assert len(leaves) > 3
    inside = np.array([[holds(leaf.region, row) for row in table.values.T] for leaf in leaves])
    assert (inside.sum(axis=0) == 1).all()
    assert inside.sum(axis=1).min() >= 30
