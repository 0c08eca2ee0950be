"""Cutset networks: what splits, when, and what becomes of tables that a network can hardly be learned from."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.circuit import arrays
from bayesjpt.circuit.paths import tree_nodes
from bayesjpt.errors import LearnerError
from bayesjpt.structure.cutset import LEAVES, SELECTS, learn_cutset


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
    closed = ["draws" in one.settings for one in post.by_structure()]
    assert len(closed) == 2
    assert float(post.probability("colour = 'red' and n > 5").mean()) > 0.15


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
