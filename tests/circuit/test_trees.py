"""Trees of labels: every state of small tables against probability tables written down by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.circuit import arrays
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit
from bayesjpt.circuit.paths import Condition, Division, tree_nodes
from bayesjpt.circuit.trees import Tree, label_parents, split_shares
from bayesjpt.errors import CircuitError
from bayesjpt.families.label import label_groups
from bayesjpt.table.table import Table
from tests.structure import naive_trees as naive

LABELS = ("xyz", "uv", "pqrs", "k")
PARENTS = (-1, 0, 0, 2)
ROUNDING = 1e-12


def make_table(rng: np.random.Generator, n_row: int = 200, *, missing: float = 0.0, other: bool = False) -> Table:
    frame = pd.DataFrame({name: rng.choice(list(labels), n_row) for name, labels in zip("abcd", LABELS, strict=True)})
    frame["c"] = np.where(rng.random(n_row) < 0.6, frame["a"].map({"x": "p", "y": "q", "z": "r"}), frame["c"])
    frame = frame.mask(rng.random(frame.shape) < missing)
    frame["size"] = rng.normal(size=n_row).round(2)
    return bj.as_table(frame, kinds={"d": "category"}, other=other)


def tree_of(table: Table, parents=PARENTS, rows: np.ndarray | None = None) -> Tree:
    return Tree(np.arange(4), np.array(parents), np.arange(table.n_row) if rows is None else rows)


def whole(table: Table, **options):
    return Product((tree_of(table, **options), ColumnLeaf(4, np.arange(table.n_row))))


def states() -> np.ndarray:
    """Return all rows of labels, int (n_state, 4)."""
    return np.array(list(itertools.product(*(range(len(labels)) for labels in LABELS))))


def probabilities(circuit, table: Table, rows: np.ndarray) -> np.ndarray:
    """Return the probability of rows of codes, -1 where missing, under the circuit's start; numbers are not known."""
    post = bj.Posterior.from_circuit(circuit, table.schema)
    values = np.vstack([np.maximum(rows.T, 0), np.zeros(len(rows))]).astype(float)
    observed = np.vstack([rows.T >= 0, np.zeros(len(rows), bool)])
    return np.exp(post.log_density(Table(table.schema, values, observed)).values.ravel())


def expected(table: Table, rows: np.ndarray, parents=PARENTS, ess: float = 1.0) -> np.ndarray:
    n_code = [len(labels) for labels in LABELS]
    codes = np.where(table.observed, table.values, -1.0)[:4].astype(int)
    tables = naive.smoothed_tables(codes, parents, n_code, ess)
    return np.array([naive.tree_probability(row, parents, tables) for row in rows])


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_every_state_has_the_product_of_its_conditional_probabilities(rng, missing):
    table = make_table(rng, missing=missing)
    circuit = build_circuit(whole(table), table)
    found = probabilities(circuit, table, states())
    np.testing.assert_allclose(found, expected(table, states()), rtol=ROUNDING)
    assert abs(found.sum() - 1.0) < ROUNDING


@pytest.mark.parametrize("absent", ["s", "rs"])
def test_labels_that_no_row_shows_are_not_taken_for_missing_cells(rng, absent):
    table = make_table(rng, missing=0.2)
    column = table.schema.columns[2]
    known = ~table.observed[2] | ~np.isin(table.values[2], [column.labels.index(label) for label in absent])
    part = table.take(np.flatnonzero(known))
    found = probabilities(build_circuit(whole(part), part), part, states())
    np.testing.assert_allclose(found, expected(part, states()), rtol=ROUNDING)


def test_another_parent_or_another_smoothing_is_caught(rng):
    table = make_table(rng)
    found = probabilities(build_circuit(whole(table), table), table, states())
    assert abs(found / expected(table, states(), parents=(-1, 0, 1, 2)) - 1.0).max() > 0.1
    assert abs(found / expected(table, states(), ess=1.5) - 1.0).max() > 1e-3


def test_a_tree_with_tables_starts_there(rng):
    table = make_table(rng)
    n_code = [len(labels) for labels in LABELS]
    tables = [rng.dirichlet(np.ones(n), n_code[p] if p >= 0 else 1) for n, p in zip(n_code, PARENTS, strict=True)]
    tree = Tree(np.arange(4), np.array(PARENTS), np.arange(table.n_row), tables)
    circuit = build_circuit(Product((tree, ColumnLeaf(4, np.arange(table.n_row)))), table)
    want = [naive.tree_probability(row, PARENTS, tables) for row in states()]
    np.testing.assert_allclose(probabilities(circuit, table, states()), want, rtol=ROUNDING)
    again = Tree(tree.columns, tree.parents, tree.rows, tables)
    above_a_split = Sum((tree, again), (1, 1), Division(0, ((0,), (1, 2))))
    circuit = build_circuit(Product((above_a_split, ColumnLeaf(4, np.arange(table.n_row)))), table)
    found = probabilities(circuit, table, states())
    of_a = tables[0][0] / np.where(np.arange(3) == 0, tables[0][0, 0], 1.0 - tables[0][0, 0])
    want = [w / tables[0][0, row[0]] * of_a[row[0]] * 0.5 for w, row in zip(want, states(), strict=True)]
    np.testing.assert_allclose(found, want, rtol=ROUNDING)


def test_edges_of_a_tree_are_read_from_its_circuit(rng):
    table = make_table(rng)
    for parents in (PARENTS, (1, 2, -1, 2), (-1, -1, 0, -1)):
        circuit = build_circuit(whole(table, parents=parents), table)
        want = {k: p for k, p in enumerate(parents) if p >= 0 and len(LABELS[k]) > 1}
        assert label_parents(circuit, circuit.n_node - 1) == want


def test_missing_cells_are_summed_out(rng):
    table = make_table(rng)
    circuit = build_circuit(whole(table), table)
    every = expected(table, states())
    for hidden in ([0], [2], [0, 1], [1, 2, 3]):
        rows = states()
        known = [column for column in range(4) if column not in hidden]
        sums = [every[(rows[:, known] == row[known]).all(axis=1)].sum() for row in rows]
        rows[:, hidden] = -1
        np.testing.assert_allclose(probabilities(circuit, table, rows), sums, rtol=ROUNDING)


def test_other_goes_with_the_most_frequent_label(rng):
    table = make_table(rng, other=True)
    circuit = build_circuit(whole(table), table)
    column = table.schema.columns[0]
    most = int(np.argmax(column.frequencies[:3]))
    rows = np.array([[most, 0, 0, 0], [3, 0, 0, 0]])
    likely, strange = probabilities(circuit, table, rows)
    assert strange / likely == pytest.approx(column.frequencies[3] / column.frequencies[most])
    n_state = [column.n_label for column in table.schema.columns[:4]]
    every = np.array(list(itertools.product(*map(range, n_state))))
    assert abs(probabilities(circuit, table, every).sum() - 1.0) < ROUNDING


def test_label_leaves_are_shared_and_have_no_parameters(rng):
    table = make_table(rng)
    rows = np.split(np.arange(200), [80])
    mixture = Sum(tuple(Product((tree_of(table, rows=own), ColumnLeaf(4, own))) for own in rows), (80, 120))
    circuit = build_circuit(mixture, table)
    of_labels = circuit.leaf_var < 4
    assert of_labels.sum() == sum(map(len, LABELS))
    assert (circuit.theta_len[of_labels] == 0).all()


def test_mixture_of_trees_is_the_mixture_of_their_tables(rng):
    table = make_table(rng)
    codes = table.values[:4].astype(int)
    rows, parents = np.split(np.arange(200), [80]), ((-1, 0, 0, 2), (1, -1, 1, 0))
    parts = [Product((tree_of(table, p, own), ColumnLeaf(4, own))) for p, own in zip(parents, rows, strict=True)]
    found = probabilities(build_circuit(Sum(tuple(parts), (79, 119)), table), table, states())
    n_code = [len(labels) for labels in LABELS]
    each = []
    for own, p in zip(rows, parents, strict=True):
        tables = naive.smoothed_tables(codes[:, own], p, n_code, 1.0)
        each.append([naive.tree_probability(row, p, tables) for row in states()])
    np.testing.assert_allclose(found, 0.4 * np.array(each[0]) + 0.6 * np.array(each[1]), rtol=ROUNDING)


def divided(table: Table):
    """Return a tree below a split of the first column into its three labels, which the tree below knows."""
    code = table.values[0].astype(int)
    parts = [np.flatnonzero(code == k) for k in range(3)]
    children = tuple(Product((tree_of(table, rows=own), ColumnLeaf(4, own))) for own in parts)
    return Sum(children, tuple(own.size for own in parts), Division(0, label_groups(table.schema.columns[0])))


def test_a_split_into_all_labels_leaves_each_tree_one(rng):
    table = make_table(rng)
    circuit = build_circuit(divided(table), table)
    root, *leaves = tree_nodes(circuit)
    assert root.column == 0
    assert [leaf.region for leaf in leaves] == [{0: (0,)}, {0: (1,)}, {0: (2,)}]
    found = probabilities(circuit, table, states())
    assert abs(found.sum() - 1.0) < ROUNDING
    codes = table.values[:4].astype(int)
    counts = np.bincount(codes[0], minlength=3) + 1.0 / 3.0
    for k in range(3):
        own = codes[:, codes[0] == k] * np.array([[0], [1], [1], [1]])
        tables = naive.smoothed_tables(own, (-1, -1, -1, 2), [1 if c == 0 else len(LABELS[c]) for c in range(4)], 1.0)
        tables[0] = np.eye(3)[[k]]
        here = states()[:, 0] == k
        want = [
            counts[k] / counts.sum() * naive.tree_probability(row, (-1, -1, -1, 2), tables) for row in states()[here]
        ]
        np.testing.assert_allclose(found[here], want, rtol=ROUNDING)


def test_imaginary_rows_of_a_split_are_divided_over_its_ways(rng):
    table = make_table(rng)
    circuit = build_circuit(divided(table), table)
    share, parent = split_shares(circuit), circuit.edge_parent()
    hard = circuit.kind[parent] == arrays.HARD
    assert (share[~hard] == 0.0).all()
    for node in np.unique(parent[hard]):
        np.testing.assert_allclose(share[parent == node], 1.0 / (parent == node).sum())


@pytest.mark.parametrize(
    ("parents", "columns", "message"),
    [
        ((1, 0, 0, 2), (0, 1, 2, 3), "go round in a circle"),
        ((-1, 0, 4, 2), (0, 1, 2, 3), "positions"),
        ((-1, 0, 0, 2), (0, 1, 2, 2), "each column once"),
        ((-1, 0, 0, 2), (0, 1, 2, 4), "'size' of numbers"),
        ((-1, 0, 0, 2), (0, 1, 2, 9), "column 9 in a tree of a table of 5; expected positions from 0 to 4"),
        ((-1, 0, 0, 2), (0, 1, 2, -1), "column -1 in a tree"),
    ],
)
def test_what_is_no_tree_of_labels_is_refused(rng, parents, columns, message):
    table = make_table(rng)
    with pytest.raises(CircuitError, match=message):
        build_circuit(Tree(np.array(columns), np.array(parents), np.arange(200)), table)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0, 200], "row 200 in a tree of a table of 200; expected positions from 0 to 199"),
        ([0, 10**9], "row 1000000000 in"),
        ([0, -1], "row -1 in"),
        ([True, False], "rows of type bool"),
        ([0.0, 1.5], "rows of type float64"),
    ],
)
def test_rows_that_the_table_does_not_have_are_refused(rng, rows, message):
    table = make_table(rng)
    with pytest.raises(CircuitError, match=message):
        build_circuit(whole(table, rows=np.array(rows)), table)


def test_a_tree_of_no_rows_has_weights_of_the_prior_alone(rng):
    table = make_table(rng)
    circuit = build_circuit(whole(table, rows=np.array([], int)), table)
    hard = circuit.kind[circuit.edge_parent()] == arrays.HARD
    np.testing.assert_allclose(np.exp(circuit.start_log_weight[hard]), split_shares(circuit)[hard])


def test_groups_that_leave_a_label_out_are_refused(rng):
    table = make_table(rng)
    leaf = whole(table)
    with pytest.raises(CircuitError, match="leaves one side empty"):
        build_circuit(Sum((leaf, leaf), (1, 1), Division(0, ((0,), (1,)))), table)


def test_tree_below_a_split_of_numbers(rng):
    table = make_table(rng)
    below = table.values[4] < 0.0
    parts = [np.flatnonzero(below), np.flatnonzero(~below)]
    children = tuple(Product((tree_of(table, rows=own), ColumnLeaf(4, own))) for own in parts)
    circuit = build_circuit(Sum(children, tuple(own.size for own in parts), Condition(4, 0.0)), table)
    post = bj.Posterior.from_circuit(circuit, table.schema)
    found = float(post.probability("size < 0 and a = 'x'").values.squeeze())
    codes = table.values[0, parts[0]].astype(int)
    share = ((codes == 0).sum() + 1 / 3) / (codes.size + 1.0)
    assert found == pytest.approx((below.sum() + 0.5) / 201.0 * share)


@pytest.mark.parametrize("hidden", [(), (0,), (1, 2), (0, 1, 2, 3)])
def test_trees_stand_under_sums_of_products_of_sums(rng, hidden):
    """Each half of the columns has a mixture of trees of its own, twice, below a latent root and a split of numbers."""
    table = make_table(rng, missing=0.1)
    codes = np.where(table.observed, table.values, -1.0)[:4].astype(int)
    n_code, rows = [len(labels) for labels in LABELS], np.arange(table.n_row)
    shapes = {(0, 1): ((-1, 0), (1, -1)), (2, 3): ((-1, 0), (-1, -1))}

    def halves(part: np.ndarray) -> tuple[list[Sum], list[np.ndarray]]:
        """Return a mixture of two trees for each half of the columns, and the probability of each state under it."""
        sums, each = [], []
        for columns, forests in shapes.items():
            parts = np.split(part, [part.size // 3])
            trees = [Tree(np.array(columns), np.array(p), own) for p, own in zip(forests, parts, strict=True)]
            sums.append(Sum(tuple(trees), (2, 4)))
            total = np.zeros(len(states()))
            for parents, own, weight in zip(forests, parts, (3.0 / 8.0, 5.0 / 8.0), strict=True):  # (2 + 1), (4 + 1)
                tables = naive.smoothed_tables(codes[:, own][list(columns)], parents, [n_code[c] for c in columns], 1.0)
                total += weight * np.array(
                    [naive.tree_probability(s[list(columns)], parents, tables) for s in states()]
                )
            each.append(total)
        return sums, each

    below = table.values[4] < 0.0
    built, want = [], np.zeros(len(states()))
    for part, weight in zip(np.split(rows, [70]), (0.25, 0.75), strict=True):
        sides, of_sides = [], np.zeros(len(states()))
        for side in (below, ~below):
            sums, (first, second) = halves(part[side[part]])
            sides.append(Product((*sums, ColumnLeaf(4, part[side[part]]))))
            of_sides += 0.5 * first * second
        built.append(Sum(tuple(sides), (5, 5), Condition(4, 0.0)))
        want += weight * of_sides
    circuit = build_circuit(Sum(tuple(built), (1, 5)), table)  # (1 + 1), (5 + 1)
    asked = states()
    known = [column for column in range(4) if column not in hidden]
    same = [(asked[:, known] == row[known]).all(axis=1) for row in asked]
    asked[:, list(hidden)] = -1
    found = probabilities(circuit, table, asked)
    np.testing.assert_allclose(found, [want[own].sum() for own in same], rtol=ROUNDING)
