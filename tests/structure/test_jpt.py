"""The learner of joint probability trees: a search from the definition finds the same splits; limits; rows by paths."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import bayesjpt as bj
from bayesjpt import defaults
from bayesjpt.circuit import arrays
from bayesjpt.circuit.check import check_circuit
from bayesjpt.circuit.paths import tree_nodes
from bayesjpt.errors import LearnerError
from bayesjpt.families import quantile
from bayesjpt.structure.grow import Leaf, Settings, Split, between, grow_tree
from bayesjpt.structure.jpt import learn_jpt
from bayesjpt.structure.ranks import rank_codes
from bayesjpt.table.table import Table
from tests import examples as ex
from tests.strategies import law
from tests.structure import naive_jpt

SAME_SCORE = 1e-6
"""Numbers are kept in single precision, and both sides add them up in orders of their own."""


def make_table(rng: np.random.Generator, n_row: int = 120, *, missing: float = 0.0) -> Table:
    """Return numbers with and without ties, counts, labels of two and of five kinds, and a constant column."""
    group = rng.integers(0, 4, n_row)
    frame = pd.DataFrame(
        {
            "fine": rng.normal(group, 0.5),
            "rough": np.round(rng.normal(-group, 1.0), 0) + 0.5,
            "count": rng.poisson(1.0 + 2.0 * group),
            "letter": np.array(list("abcde"))[np.minimum(group + rng.integers(0, 2, n_row), 4)],
            "flag": np.where(rng.random(n_row) < 0.2 + 0.2 * group, "yes", "no"),
        }
    )
    hidden = rng.random(frame.shape) < missing
    table = bj.as_table(frame.assign(letter=frame["letter"].astype("category"), flag=frame["flag"].astype("category")))
    return Table(table.schema, table.values, table.observed & ~hidden.T)


def settings_of(table: Table, **changes) -> Settings:
    everything = tuple(range(table.n_column))
    return replace(Settings(everything, everything, 8, table.n_row, table.n_row, 1e-6), **changes)


CASES = {
    "all columns": {},
    "few rows to a leaf": {"min_rows": 2},
    "the Gini index": {"gini": True},
    "one target": {"targets": (0,), "features": (1, 2, 3, 4)},
    "a symbolic target": {"targets": (3,), "features": (0, 1, 2, 4)},
    "features that are no targets": {"targets": (0, 4), "features": (1, 3)},
}


@pytest.mark.parametrize("missing", [0.0, 0.25])
@pytest.mark.parametrize("case", CASES)
def test_every_split_is_the_best_by_definition_and_no_leaf_has_one(case, missing, rng):
    table = make_table(rng, 80, missing=missing)
    settings = settings_of(table, **CASES[case])
    tree = grow_tree(table, settings)
    assert len(tree.leaves()) > 2
    for position, rows in naive_jpt.rows_of_nodes(table, tree):
        node = tree.nodes[position]
        best = naive_jpt.best_score(table, rows, settings)
        if isinstance(node, Split):
            assert node.n_rows == len(rows)
            assert node.score == pytest.approx(best, abs=SAME_SCORE)
            assert naive_jpt.score(table, naive_jpt.condition(node), rows, settings) == pytest.approx(
                node.score, abs=SAME_SCORE
            )
        else:
            assert best <= settings.min_improvement + SAME_SCORE


def test_shared_codes_split_exactly_between_the_two_buckets_at_the_best_boundary(rng):
    table = make_table(rng, 150)
    settings = settings_of(table, max_codes=12, targets=(3, 4), features=(0,), max_leaves=2)
    rows = list(range(table.n_row))
    (root, *_) = grow_tree(table, settings).nodes
    found = naive_jpt.score(table, naive_jpt.condition(root), rows, settings)
    assert found == pytest.approx(root.score, abs=SAME_SCORE)
    ranks = rank_codes(table.values[0], table.observed[0], 12)
    assert not ranks.exact
    coarse = max(
        (naive_jpt.score(table, split, rows, settings), -number)
        for number, split in enumerate(naive_jpt.candidates(table, rows, settings))
        if naive_jpt.allowed(table, split, rows, settings)
    )
    at = -int(coarse[1])
    inside = table.values[0][(ranks.code == at) | (ranks.code == at + 1)]
    exact = max(
        naive_jpt.score(table, (0, lambda x, a=above: bool(x < a)), rows, settings)
        for _, above in naive_jpt.neighbours(inside)
    )
    assert found == pytest.approx(max(exact, coarse[0]), abs=SAME_SCORE)
    assert found > coarse[0]


@law(30)
@given(
    seed=st.integers(0, 2**31 - 1),
    missing=st.sampled_from([0.0, 0.3]),
    min_rows=st.integers(1, 20),
    max_leaves=st.integers(1, 9),
    max_depth=st.integers(1, 4),
)
def test_limits_are_kept_and_rows_are_found_again_by_the_conditions_of_their_path(
    seed, missing, min_rows, max_leaves, max_depth
):
    table = make_table(np.random.default_rng(seed), 60, missing=missing)
    settings = settings_of(table, min_rows=min_rows, max_leaves=max_leaves, max_depth=max_depth)
    tree = grow_tree(table, settings)
    leaves = tree.leaves()
    assert 1 <= len(leaves) <= max_leaves
    assert max(naive_jpt.depths(tree)) <= max_depth
    assert min(leaf.rows.size for leaf in leaves) >= min_rows
    np.testing.assert_array_equal(np.sort(np.concatenate([leaf.rows for leaf in leaves])), np.arange(table.n_row))
    for position, rows in naive_jpt.rows_of_nodes(table, tree):
        node = tree.nodes[position]
        if isinstance(node, Leaf):
            assert node.rows.tolist() == rows


def assert_same_splits(tree, cart, x) -> None:
    """The same columns divide the same rows; ours are divided at numbers of fewer digits."""
    assert sorted(n.column for n in tree.nodes if isinstance(n, Split)) == sorted(cart.feature[cart.feature >= 0])
    leaf = cart.apply(x.astype(np.float32))
    theirs = {tuple(np.flatnonzero(leaf == k).tolist()) for k in np.unique(leaf)}
    assert {tuple(leaf.rows.tolist()) for leaf in tree.leaves()} == theirs


def test_with_one_numeric_target_the_tree_is_that_of_scikit_learn(rng):
    x = rng.normal(size=(300, 3))
    y = np.sin(2.0 * x[:, 0]) + 0.5 * (x[:, 1] > 0.0) + 0.1 * rng.normal(size=300)
    table = bj.as_table(pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": y}))
    tree = grow_tree(table, settings_of(table, targets=(3,), features=(0, 1, 2), min_rows=10))
    cart = DecisionTreeRegressor(min_samples_leaf=10).fit(x, y).tree_
    assert_same_splits(tree, cart, x)


@pytest.mark.parametrize("criterion", ["entropy", "gini"])
def test_with_one_symbolic_target_the_tree_is_that_of_scikit_learn(criterion, rng):
    x = rng.normal(size=(600, 2))
    y = np.where(x[:, 0] + 0.5 * x[:, 1] + 0.3 * rng.normal(size=600) > 0.0, "yes", "no")
    table = bj.as_table(pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y}))
    settings = settings_of(table, targets=(2,), features=(0, 1), min_rows=15, max_leaves=6, gini=criterion == "gini")
    cart = DecisionTreeClassifier(min_samples_leaf=15, max_leaf_nodes=6, criterion=criterion).fit(x, y).tree_
    assert_same_splits(grow_tree(table, settings), cart, x)


def test_the_tree_grows_where_it_improves_most(rng):
    table = make_table(rng)
    whole = grow_tree(table, settings_of(table))
    gain = sorted((node.score * node.n_rows for node in whole.nodes if isinstance(node, Split)), reverse=True)
    few = grow_tree(table, settings_of(table, max_leaves=3))
    assert {node.score * node.n_rows for node in few.nodes if isinstance(node, Split)} <= set(gain)
    assert len(few.leaves()) == 3


def test_constant_columns_and_single_rows_make_one_leaf():
    table = ex.make_table((ex.REAL, ex.LABEL), 12, np.random.default_rng(0))
    same = Table(table.schema, np.repeat(table.values[:, :1], 12, axis=1), np.ones_like(table.observed))
    assert len(grow_tree(same, settings_of(same, min_rows=1)).leaves()) == 1


def test_a_column_without_a_cell_is_not_split(rng):
    table = make_table(rng, 60)
    observed = table.observed.copy()
    observed[0] = False
    table = Table(table.schema, table.values, observed)
    tree = grow_tree(table, settings_of(table))
    assert all(node.column != 0 for node in tree.nodes if isinstance(node, Split))


def test_extreme_numbers_are_split_without_overflow(rng):
    values = np.concatenate([rng.normal(size=40) * 1e-300, rng.normal(size=40) * 1e300])
    frame = pd.DataFrame({"x": values, "side": np.repeat(["a", "b"], 40)})
    table = bj.as_table(frame.assign(x=np.sign(values) * np.log1p(np.abs(values))))
    assert len(grow_tree(table, settings_of(table, min_rows=20)).leaves()) >= 2


# --- the circuit


def test_soft_circuit_is_one_sum_over_products_of_all_columns(rng):
    table = make_table(rng)
    circuit = learn_jpt(table, rng, min_rows=20, assignment="soft")
    n_leaf = len(grow_tree(table, settings_of(table, min_rows=20)).leaves())
    assert n_leaf > 1
    assert int((circuit.kind == arrays.PRODUCT).sum()) == n_leaf
    assert circuit.kind[-1] == arrays.LATENT
    assert circuit.child_ptr[-1] - circuit.child_ptr[-2] == n_leaf


def test_hard_circuit_is_the_tree(rng):
    table = make_table(rng)
    found = tree_nodes(learn_jpt(table, rng, min_rows=20))
    nodes = grow_tree(table, settings_of(table, min_rows=20)).nodes
    expected = [node.column if isinstance(node, Split) else -1 for node in nodes]
    assert sorted(node.column for node in found) == sorted(expected)
    assert found[0].column == expected[0]


@pytest.mark.parametrize("kind", ["real", "integer"])
def test_between_neighbouring_bare_leaves_no_number_is_impossible(kind, rng):
    x = np.repeat([0.0, 400.0, 1000.0], 40) + rng.integers(0, 30, 120)
    frame = pd.DataFrame({"x": x, "y": np.repeat(["a", "b", "c"], 40)})
    table = bj.as_table(frame, kinds={"x": kind})
    circuit = learn_jpt(table, rng, features=["x"], dictionary=ex.only("quantile", "categorical"))
    assert len([node for node in tree_nodes(circuit) if not node.children]) > 2
    post = bj.Posterior.from_circuit(circuit, table.schema)
    between = bj.as_table(pd.DataFrame({"x": np.arange(x.min(), x.max() + 1.0)}), schema=table.schema)
    assert np.isfinite(post.log_density(between)).all()
    beyond = bj.as_table(pd.DataFrame({"x": [x.max() + 5.0]}), schema=table.schema)
    assert np.isneginf(post.log_density(beyond)).all()


@pytest.mark.parametrize("assignment", ["hard", "soft"])
def test_epsilon_is_the_bound_of_every_histogram_at_the_leaves(assignment, rng):
    table = bj.as_table(pd.DataFrame({"x": rng.standard_t(3.0, 600), "y": rng.normal(size=600)}))

    def n_pieces(**options) -> int:
        circuit = learn_jpt(table, rng, assignment=assignment, dictionary=ex.only("quantile"), **options)
        cells = circuit.leaf_interval()
        for leaf in range(circuit.n_leaf if assignment == "hard" and options else 0):
            column = circuit.leaf_var[leaf]
            paths = [node for node in tree_nodes(circuit) if not node.children]
            rows = _rows_of(table, paths[_product_of(circuit, leaf, paths)].region)
            expected = quantile.leaf_constants(
                table.schema.columns[column], table.values[column, rows], *cells[leaf], **options
            )
            assert circuit.constants_of(leaf).tolist() == expected.tolist()
        return circuit.n_theta

    assert n_pieces(epsilon=0.01) < n_pieces() == n_pieces(epsilon=defaults.QUANTILE_EPSILON)


def _product_of(circuit, leaf: int, paths) -> int:
    """Return the position of the tree's leaf that holds a leaf of the circuit."""
    node = int(circuit.leaf_node()[leaf])
    below = [circuit.child[circuit.child_ptr[path.node] : circuit.child_ptr[path.node + 1]] for path in paths]
    return next(number for number, children in enumerate(below) if node in children)


def _rows_of(table, region) -> np.ndarray:
    """Return the rows that meet the conditions of a path, of numbers."""
    meets = np.ones(table.n_row, bool)
    for column, part in region.items():
        meets &= (table.values[column] >= part.lo) & (table.values[column] <= part.hi)
    return np.flatnonzero(meets)


def test_split_that_leaves_a_single_number_to_one_side_is_a_leaf(rng):
    x = np.repeat(1.0 + np.finfo(float).eps * np.arange(3), 40)
    frame = pd.DataFrame({"x": x, "y": np.repeat([0.0, 3.0, 9.0], 40) + rng.normal(size=120)})
    circuit = learn_jpt(bj.as_table(frame, kinds={"x": "real"}), rng, min_rows=10, max_leaves=3, features=["x"])
    check_circuit(circuit, 2)
    assert int((circuit.kind == arrays.PRODUCT).sum()) == 2


def test_same_table_gives_the_same_circuit_whatever_the_generator(rng):
    table = make_table(rng)
    one, other = (learn_jpt(table, np.random.default_rng(seed)) for seed in (1, 2))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_fit_takes_the_learner_by_name(rng):
    table = make_table(rng, 60)
    post = bj.fit(table, "jpt", n_structures=1, seed=1, chains=2, draws=10, tune=10, progress=False, assignment="soft")
    assert np.isfinite(post.log_density(table)).all()
    assert post.settings["learner"] == "jpt"


def test_progress_ends_with_all_cells(rng):
    table = make_table(rng, 60)
    seen = []
    learn_jpt(table, rng, progress=lambda n_done, n_total: seen.append((n_done, n_total)))
    assert seen[-1] == (table.n_row * table.n_column, table.n_row * table.n_column)
    assert [n for n, _ in seen] == sorted(n for n, _ in seen)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"targets": ["nobody"]}, "targets 'nobody'"),
        ({"features": []}, "features without a column"),
        ({"features": 3}, "features 3"),
        ({"min_rows": 1.5}, "min_rows"),
        ({"max_leaves": 0}, "max_leaves"),
        ({"max_depth": 2.5}, "max_depth"),
        ({"min_improvement": -1.0}, "min_improvement"),
        ({"symbolic_impurity": "error"}, "symbolic_impurity is 'error'"),
        ({"assignment": "firm"}, "assignment is 'firm'"),
        ({"epsilon": -1e-9}, "epsilon"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message, rng):
    with pytest.raises(LearnerError, match=message):
        learn_jpt(make_table(rng, 20), rng, **options)


# --- codes


def test_few_distinct_numbers_have_a_code_each():
    ranks = rank_codes(np.array([3.0, 1.0, 9.0, 3.0]), np.array([True, True, False, True]))
    assert ranks.code.tolist() == [1, 0, 65_535, 1]
    assert ranks.exact


def test_many_distinct_numbers_share_codes_of_about_equally_many_rows(rng):
    values = rng.normal(size=10_000)
    ranks = rank_codes(values, np.ones(10_000, bool), 50)
    sizes = np.bincount(ranks.code)
    assert sizes.size == 50
    assert sizes.min() == sizes.max() == 200
    for code in range(50):
        inside = values[ranks.code == code]
        assert (inside.min(), inside.max()) == (ranks.least[code], ranks.largest[code])


def test_repeated_numbers_are_never_divided_between_two_codes(rng):
    values = np.concatenate([np.zeros(5_000), rng.normal(size=5_000)])
    ranks = rank_codes(values, np.ones(10_000, bool), 20)
    assert np.unique(ranks.code[:5_000]).size == 1
    assert (np.diff(ranks.least) > 0.0).all()
    assert (ranks.least[1:] > ranks.largest[:-1]).all()


@pytest.mark.parametrize(
    ("below", "above"), [(1.0, 2.0), (1.0, np.nextafter(1.0, 2.0)), (-1.7e308, 1.7e308), (0.0, 5e-324), (0.0, 1.5e-323)]
)
def test_a_threshold_lies_above_the_one_and_not_above_the_other(below, above):
    assert below < between(below, above) <= above


def test_a_threshold_between_measurements_has_few_digits(rng):
    for below, above in np.sort(rng.normal(size=(200, 2)), axis=1):
        threshold = between(below, above)
        assert abs(threshold - 0.5 * (below + above)) <= 0.26 * (above - below)
        assert threshold == round(threshold, 1 - math.floor(math.log10(above - below)))
