"""Cutset networks: what splits, when, and what becomes of tables that a network can hardly be learned from."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.circuit import arrays
from bayesjpt.circuit.paths import tree_nodes
from bayesjpt.circuit.recognised import recognise
from bayesjpt.errors import LearnerError
from bayesjpt.structure import cutset as module
from bayesjpt.structure.cutset import LEAVES, SELECTS, learn_cutset
from tests.structure import naive_cutset as naive

EQUAL = 1e-9


def binary(rng: np.random.Generator, n_row: int = 600, n_column: int = 6) -> pd.DataFrame:
    """Return columns that depend on each other in one way where the first is 1, and in another where it is 0."""
    first = rng.integers(2, size=n_row)
    x = rng.integers(2, size=(n_row, n_column - 1))
    noise = rng.random((n_row, n_column - 1)) < 0.1
    for k in range(1, n_column - 1):
        x[:, k] = (x[:, k - 1] ^ first) ^ noise[:, k]
    return pd.DataFrame(np.c_[first, x], columns=list("abcdefghij"[:n_column])).astype(str)


def mixed(rng: np.random.Generator, n_row: int = 600) -> pd.DataFrame:
    frame = binary(rng, n_row, 4)
    frame["colour"] = rng.choice(["red", "green", "blue"], n_row)
    frame["size"] = (rng.normal(size=n_row) + 4.0 * (frame["a"] == "1")).round(2)
    frame["n"] = rng.poisson(2.0, n_row) + 6 * (frame["colour"] == "red")
    return frame


def total(post: bj.Posterior) -> float:
    """Return the sum over all states of a table of labels."""
    columns = post.schema.columns
    every = pd.DataFrame(list(itertools.product(*(c.labels for c in columns))), columns=[c.name for c in columns])
    return float(np.exp(post.log_density(every)).sum())


@pytest.mark.parametrize("select", SELECTS)
@pytest.mark.parametrize("leaf", LEAVES)
def test_probabilities_of_all_states_add_up_to_one(rng, select, leaf):
    table = bj.as_table(binary(rng), other=False)
    circuit = learn_cutset(table, rng, select=select, leaf=leaf, min_rows=100, min_columns=2)
    assert (circuit.kind == arrays.HARD).any()
    assert total(bj.Posterior.from_circuit(circuit, table.schema)) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("select", ["entropy", "likelihood"])
def test_the_column_that_decides_is_split_first(rng, select):
    frame = binary(rng)
    if select == "entropy":  # the first column has to change the others by themselves
        frame["b"] = np.where(rng.random(600) < 0.9, frame["a"], frame["b"])
        frame["c"] = np.where(rng.random(600) < 0.9, frame["a"], frame["c"])
    table = bj.as_table(frame, other=False)
    root = tree_nodes(learn_cutset(table, rng, select=select, min_rows=300, min_columns=2))[0]
    assert root.column == 0


def test_likelihood_stops_where_splits_say_little(rng):
    table = bj.as_table(pd.DataFrame(rng.integers(2, size=(2000, 8)), columns=list("abcdefgh")).astype(str))
    sizes = [
        len(tree_nodes(learn_cutset(table, rng, select=select, leaf="bernoulli", min_rows=50, min_columns=2)))
        for select in ("likelihood", "random")
    ]
    assert sizes[0] < sizes[1] / 2


@pytest.mark.parametrize("select", SELECTS)
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_mixed_tables_are_fitted(rng, select, missing):
    frame = mixed(rng)
    frame = frame.mask(rng.random(frame.shape) < missing)
    post = bj.fit(
        frame,
        "cutset",
        n_structures=2,
        draws=3,
        tune=3,
        seed=1,
        progress=False,
        select=select,
        min_rows=150,
        min_columns=2,
    )
    assert np.isfinite(post.log_density(frame)).all()
    assert float(post.probability("colour = 'red' and n > 5").mean()) > 0.15
    # what size has to do with a: it is about 0 where a is 0, and 4 where a is 1
    if select != "random":
        assert float(post.probability("size > 2", given="a = '1'").mean()) > 0.9
        assert float(post.probability("size > 2", given="a = '0'").mean()) < 0.1


def with_number(rng: np.random.Generator, n_row: int, n_coin: int = 4) -> pd.DataFrame:
    """Return a label, a number that is 4 larger where it is "yes", and coins."""
    a = rng.integers(2, size=n_row)
    coins = {f"z{k}": rng.choice(["u", "v"], n_row) for k in range(n_coin)}
    return pd.DataFrame({"a": np.where(a == 1, "yes", "no"), "x": rng.normal(size=n_row) + 4.0 * a, **coins})


def fraction_above(circuit, table: bj.Table) -> float:
    post = bj.Posterior.from_circuit(circuit, table.schema)
    return float(post.probability("x > 2", given="a = 'yes'").mean())


@pytest.mark.parametrize("select", ["entropy", "likelihood"])
@pytest.mark.parametrize("leaf", LEAVES)
def test_splits_say_what_numbers_have_to_do_with_labels(rng, select, leaf):
    table = bj.as_table(with_number(rng, 3000), other=False)
    circuit = learn_cutset(table, 1, select=select, leaf=leaf, min_rows=100, min_columns=1)
    assert fraction_above(circuit, table) > 0.95
    # and no more than that: coins say nothing
    assert {node.column for node in tree_nodes(circuit) if node.children} <= {0, 1}


@pytest.mark.parametrize("select", SELECTS)
def test_numbers_depend_on_labels_in_a_default_network(rng, select):
    table = bj.as_table(with_number(rng, 1000, n_coin=1), other=False)
    assert fraction_above(learn_cutset(table, 1, select=select), table) > 0.9


def test_labels_alone_are_divided_as_published(rng):
    frame = with_number(rng, 250)
    labels = bj.as_table(frame.drop(columns="x"), other=False)
    found = recognise(learn_cutset(labels, 1), labels.schema)
    assert found is not None
    assert found.network.n_tree == 1
    splits = [node.column for node in tree_nodes(learn_cutset(bj.as_table(frame, other=False), 1)) if node.children]
    assert 1 in splits


@pytest.mark.parametrize("select", ["entropy", "likelihood"])
@pytest.mark.parametrize("n_label", [3, 5, 20])
def test_a_column_of_many_labels_that_says_nothing_is_not_split(rng, select, n_label):
    hidden = rng.integers(2, size=2000)
    frame = pd.DataFrame({f"b{k}": hidden ^ (rng.random(2000) < 0.2) for k in range(8)}).astype(int).astype(str)
    frame["g"] = [f"g{i}" for i in rng.integers(n_label, size=2000)]
    table = bj.as_table(frame, other=False)
    splits = [node for node in tree_nodes(learn_cutset(table, 1, select=select, min_rows=300)) if node.children]
    assert splits
    assert 8 not in {node.column for node in splits}


@pytest.mark.parametrize("select", ["entropy", "likelihood"])
def test_missing_cells_are_no_gain(rng, select):
    frame = pd.DataFrame(rng.integers(2, size=(1000, 5)), columns=list("abcde")).astype(str)
    frame["b"] = frame["a"].where(rng.random(1000) < 0.9, frame["b"])
    frame["e"] = frame["e"].where(rng.random(1000) < 0.3)
    root = tree_nodes(learn_cutset(bj.as_table(frame, other=False), 1, select=select, leaf="bernoulli"))[0]
    assert root.column in (0, 1)


def learner_of(table: bj.Table, select: str, leaf: str = "chow_liu") -> tuple[module._Learner, naive.Columns]:
    """Return a learner, and its columns as the slow twin takes them."""
    settings = module.Settings(select, leaf, 10, 1, 1.0)
    learner = module._Learner(table, settings, np.random.default_rng(1), None)
    columns = naive.Columns(learner.bins.code, learner.bins.n_bin.tolist(), learner.is_labels.tolist(), 1.0)
    return learner, columns


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("is_mixed", [False, True])
@pytest.mark.parametrize("leaf", ["chow_liu", "bernoulli"])
def test_gains_are_those_of_the_definition(rng, leaf, is_mixed, missing):
    frame = mixed(rng, 150) if is_mixed else binary(rng, 150, 4)
    frame = frame.mask(rng.random(frame.shape) < missing)
    learner, columns = learner_of(bj.as_table(frame, other=False), "likelihood", leaf)
    of_leaf = tuple(range(len(columns.n_bin)))
    part = module._Part(np.arange(150), of_leaf, {})
    n_seen = 0
    for split, sides in learner._candidates(part):
        ways = [np.flatnonzero(sides == side).tolist() for side in range(len(split.regions))]
        expected = naive.likelihood_gain(columns, of_leaf, split.column, ways, leaf == "chow_liu")
        assert learner._likelihood_gain(part, split, sides) == pytest.approx(expected, abs=EQUAL)
        expected = naive.entropy_gain(columns, of_leaf, split.column, ways)
        assert learner._entropy_gain(part, split, sides) == pytest.approx(expected, abs=EQUAL)
        n_seen += 1
    assert n_seen >= (15 if is_mixed else 4)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("is_mixed", [False, True])
def test_held_out_scores_are_those_of_the_definition(rng, is_mixed, missing):
    frame = mixed(rng, 300) if is_mixed else binary(rng, 300, 4)
    table = bj.as_table(frame.mask(rng.random(frame.shape) < missing), other=False)
    learner, columns = learner_of(table, "random")
    root = module._Part(np.arange(200), tuple(range(table.n_column)), {})
    parts = [(root, np.arange(200, 300))]
    # a threshold within a bin, and one within what is left of that bin
    for column, threshold in ((5, 0.2), (5, 0.3)) if is_mixed else ((0, np.nan), (1, np.nan)):
        part, held_out = parts[-1]
        split = learner._split_at(part, column, threshold)
        assert split is not None
        part.children = learner._children(part, split)
        ways = learner._divided(held_out, learner._sides(held_out, split), split)
        parts += zip(part.children, ways, strict=True)
    # of a handful of rows with missing cells several trees are equally good
    judged = [(part, held_out) for part, held_out in parts if missing == 0.0 or part.rows.size > 20]
    assert len(judged) > 2
    for part, held_out in judged:
        inside = table.observed.copy()
        for column, region in part.region.items():
            if not columns.is_label[column]:
                lo, hi = region
                inside[column] &= (table.values[column] >= lo) & (table.values[column] <= hi)
        expected = naive.held_out_score(columns, part.columns, part.rows.tolist(), held_out.tolist(), inside)
        found = learner.leaves.held_out_scores(part.columns, part.region, part.rows, held_out)
        assert found.sum() == pytest.approx(expected, abs=EQUAL)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_held_out_scores_are_probabilities_under_the_circuit_of_a_leaf(rng, missing):
    frame = binary(rng, 300, 4)
    table = bj.as_table(frame.mask(rng.random(frame.shape) < missing), other=False)
    learner, _ = learner_of(table, "random")
    rows, held_out = np.arange(200), np.arange(200, 300)
    post = bj.Posterior.from_circuit(learn_cutset(table.take(rows), rng, min_rows=200), table.schema)
    found = learner.leaves.held_out_scores(range(4), {}, rows, held_out)
    np.testing.assert_allclose(found, post.log_mass(table.take(held_out)).values.ravel(), atol=EQUAL)


def with_gaps(rng: np.random.Generator, missing: float, n_row: int = 3000) -> pd.DataFrame:
    """Return columns with missing cells: in three of four rows b is a where s is 0, and its opposite where s is 1."""
    s, a = rng.integers(2, size=(2, n_row))
    b = a ^ s ^ (rng.random(n_row) < 0.25)
    c, d = a ^ (rng.random(n_row) < 0.3), b ^ (rng.random(n_row) < 0.3)
    frame = pd.DataFrame({"s": s, "a": a, "b": b, "c": c, "d": d}).astype(str)
    return frame.mask(rng.random(frame.shape) < missing)


@pytest.mark.parametrize("missing", [0.3, 0.5])
def test_pruning_of_tables_with_missing_cells_keeps_what_makes_new_rows_more_probable(missing):
    gains = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        table = bj.as_table(with_gaps(rng, missing), other=False)
        fresh = bj.as_table(with_gaps(rng, missing), schema=table.schema)

        def density(prune: float, table=table, fresh=fresh, **options) -> float:
            options = {"select": "likelihood", "min_rows": 600, "min_columns": 1} | options
            circuit = learn_cutset(table, np.random.default_rng(1), prune=prune, **options)
            return float(bj.Posterior.from_circuit(circuit, table.schema).log_mass(fresh).mean())

        pruned = density(0.3)
        gains.append((pruned - density(0.0), pruned - density(0.0, min_rows=3000)))
    # over all splits, and over none
    assert (np.mean(gains, axis=0) > 0.0).all()


def test_scores_of_subtrees_sum_missing_cells_of_splits_out(rng):
    table = bj.as_table(with_gaps(rng, 0.3, 600), other=False)
    learner, _ = learner_of(table, "random")
    root = module._Part(np.arange(400), tuple(range(5)), {})
    split = learner._split_at(root, 0)
    assert split is not None
    root.children, held_out = learner._children(root, split), np.arange(400, 600)
    log_way = module._log_way(root, learner._sides(held_out, split))
    scores = {
        id(c): learner._scores(c, held_out[to]) for c, to in zip(root.children, np.isfinite(log_way), strict=True)
    }
    found = np.logaddexp.reduce(module._joint(log_way, root, scores), axis=0)
    n = np.array([child.rows.size + 1 for child in root.children])
    for row, value in zip(held_out, found, strict=True):
        code = learner.bins.code[0, row]
        own = [np.exp(learner._scores(child, np.array([row]))[0]) for child in root.children]
        labels = [int(next(iter(region[0]))) for region in split.regions]
        may = [code < 0 or table.values[0, row] == label for label in labels]
        assert np.exp(value) == pytest.approx(float((n / n.sum() * own)[may].sum()), abs=EQUAL)


def test_pruning_keeps_thresholds_that_labels_depend_on():
    def step(n_row: int, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        x = rng.normal(size=n_row)
        y = {f"y{k}": ((x > 0.1) ^ (rng.random(n_row) < 0.2)).astype(int).astype(str) for k in range(3)}
        return pd.DataFrame({"x": x, **y})

    table, fresh = bj.as_table(step(3000, 0), other=False), step(3000, 99)

    def density(seed: int, prune: float) -> float:
        circuit = learn_cutset(table, seed, min_rows=300, min_columns=1, prune=prune)
        return float(bj.Posterior.from_circuit(circuit, table.schema).log_density(fresh).mean())

    gains = [density(seed, 0.2) - density(seed, 0.0) for seed in range(6)]
    assert np.mean(gains) > -0.03
    assert min(gains) > -0.1


def test_pruning_that_holds_out_no_row_is_refused(rng):
    with pytest.raises(LearnerError, match=r"prune is 0.001, which holds out none of 600 rows"):
        learn_cutset(bj.as_table(binary(rng)), rng, prune=0.001)
    few = bj.as_table(pd.DataFrame({"a": ["0", "1", "0", "1"], "b": ["0", "0", "1", "1"]}))
    with pytest.raises(LearnerError, match=r"holds out none of 4 rows; .*Prune nothing: prune=0\."):
        learn_cutset(few, rng, prune=0.2)


def test_splits_that_no_held_out_row_comes_to_are_kept(rng):
    table = bj.as_table(binary(rng), other=False)
    learner, _ = learner_of(table, "random")
    root = learner.grown(np.arange(table.n_row))
    grown = [part.split for part in (root, *root.children)]
    learner.pruned(root, np.arange(0))
    assert all(split is not None for split in grown)
    assert [part.split for part in (root, *root.children)] == grown


def test_numbers_are_split_at_thresholds(rng):
    table = bj.as_table(pd.DataFrame({"x": rng.normal(size=900), "y": rng.normal(size=900)}))
    circuit = learn_cutset(table, rng, min_rows=200, min_columns=1)
    splits = [node for node in tree_nodes(circuit) if node.children]
    assert {node.column for node in splits} <= {0, 1}
    assert len(splits) > 2


def test_pruning_takes_back_splits_that_say_nothing(rng):
    table = bj.as_table(pd.DataFrame(rng.integers(2, size=(1000, 8)), columns=list("abcdefgh")).astype(str))
    grown = learn_cutset(table, np.random.default_rng(1), min_rows=30, min_columns=1)
    pruned = learn_cutset(table, np.random.default_rng(1), min_rows=30, min_columns=1, prune=0.3)
    assert len(tree_nodes(pruned)) < len(tree_nodes(grown)) / 2


def test_pruning_keeps_splits_that_say_much(rng):
    table = bj.as_table(binary(rng, 2000), other=False)
    pruned = learn_cutset(table, rng, select="likelihood", min_rows=200, min_columns=2, prune=0.3)
    assert tree_nodes(pruned)[0].column == 0


def test_same_generator_same_circuit(rng):
    table = bj.as_table(mixed(rng))
    circuits = [learn_cutset(table, np.random.default_rng(3), min_rows=100, min_columns=2) for _ in range(2)]
    assert circuits[0].digest() == circuits[1].digest()
    other = learn_cutset(table, np.random.default_rng(4), min_rows=100, min_columns=2)
    assert other.digest() != circuits[0].digest()


def test_constant_columns_and_columns_without_cells_in_a_part(rng):
    frame = binary(rng)
    frame["same"] = "yes"
    frame["seldom"] = np.where(frame["a"] == "1", frame["b"], None)
    table = bj.as_table(frame, kinds={"same": "category"}, other=False)
    for select in SELECTS:
        circuit = learn_cutset(table, rng, select=select, min_rows=50, min_columns=1)
        assert total(bj.Posterior.from_circuit(circuit, table.schema)) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"select": "best"}, "select is 'best'"),
        ({"leaf": "tree"}, "leaf is 'tree'"),
        ({"min_rows": 0}, "min_rows"),
        ({"min_columns": 0}, "min_columns"),
        ({"ess": -1.0}, "ess is -1.0"),
        ({"prune": 1.0}, "prune is 1.0"),
        ({"subspace": 0.5}, r"subspace = 0.5 with select = 'random'; expected 'entropy' or 'likelihood'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(rng, options, message):
    with pytest.raises(LearnerError, match=message):
        learn_cutset(bj.as_table(binary(rng)), rng, **options)


@pytest.mark.parametrize("learner", ["cutset", "tree_mixture", "hclt"])
def test_a_table_of_one_label_is_fitted_and_judged(learner):
    table = bj.as_table(pd.DataFrame({"a": ["x"] * 30}), kinds={"a": "category"}, other=False)
    post = bj.fit(table, learner=learner, n_structures=2, draws=4, tune=2, seed=1, progress=False)
    assert post.convergence().sentence().startswith("2 structures; no answer varies.")
    assert float(post.probability("a = 'x'").mean()) == pytest.approx(1.0, abs=1e-12)
    assert post.sample(3, rng=1).to_frame()["a"].tolist() == ["x"] * 3
