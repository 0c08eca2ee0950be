"""Mixtures of Chow-Liu trees: EM from its definition, trees of each component, and the circuit they become."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.circuit import arrays
from bayesjpt.errors import BayesjptWarning, CircuitError, LearnerError
from bayesjpt.structure import tree_mixture
from bayesjpt.structure.chow_liu import Bins, chow_liu
from bayesjpt.structure.tree_mixture import EDGES, PairCounter, TreeMixture, learn_tree_mixture
from tests.structure import naive_mixtures as naive
from tests.structure import naive_trees

ROUNDING = 1e-10
"""Relative."""
N_BIN = [2, 3, 2, 2]
ESS = 1.5
LABELS = np.ones(4, bool)


def some_bins(rng: np.random.Generator, n_row: int = 60, missing: float = 0.0) -> Bins:
    """Return two kinds of rows: in one the last columns depend on each other, in the other the first."""
    code = np.array([rng.integers(n, size=n_row) for n in N_BIN])
    kind = rng.random(n_row) < 0.5
    code[3] = np.where(kind, code[2], code[3])
    code[1] = np.where(~kind, code[0], code[1])
    return Bins(np.where(rng.random(code.shape) < missing, -1, code).astype(np.int16), np.array(N_BIN))


def two_kinds(rng: np.random.Generator, n_row: int = 600) -> pd.DataFrame:
    x = rng.integers(2, size=(n_row, 5))
    x[: n_row // 2, 0] = 0
    x[: n_row // 2, 2] = x[: n_row // 2, 1]
    x[n_row // 2 :, 0] = 1
    x[n_row // 2 :, 4] = x[n_row // 2 :, 1]
    return pd.DataFrame(x, columns=list("abcde")).astype(str)


def row_probability(row, mixture: TreeMixture) -> list[float]:
    """Return weight times probability of a row in each component, its missing cells summed out."""
    return [
        weight * sum(naive_trees.tree_probability(one, p.tolist(), t) for one in naive.missing_summed(row, N_BIN))
        for weight, p, t in zip(mixture.weights, mixture.parents, mixture.tables, strict=True)
    ]


def stepped(rng, missing: float, edges: str = "own") -> tuple[TreeMixture, Bins, PairCounter]:
    """Return a mixture after a step, so that it has edges."""
    bins = some_bins(rng, missing=missing)
    counter = PairCounter(bins, LABELS, ESS)
    mixture, _ = tree_mixture.em_step(tree_mixture.started(bins, 3, rng), bins, counter, edges)
    return mixture, bins, counter


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_scores_are_sums_over_what_is_missing(rng, missing):
    mixture, bins, _ = stepped(rng, missing)
    found = np.exp(tree_mixture.log_scores(mixture, bins))
    want = np.array([row_probability(row, mixture) for row in bins.code.T.tolist()]).T
    np.testing.assert_allclose(found, want, rtol=ROUNDING)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_step_of_em_is_that_of_the_definition(rng, missing):
    mixture, bins, counter = stepped(rng, missing)
    after, objective = tree_mixture.em_step(mixture, bins, counter, "own")
    rows = bins.code.T.tolist()
    score = np.array([row_probability(row, mixture) for row in rows])
    share = score / score.sum(axis=1, keepdims=True)
    weights = share.sum(axis=0) + tree_mixture.EM_STATE_ROWS
    np.testing.assert_allclose(after.weights, weights / weights.sum(), rtol=ROUNDING)
    prior = tree_mixture.EM_STATE_ROWS * np.log(mixture.weights).sum()
    prior += sum(ESS * np.log(table).mean() for own in mixture.tables for table in own)
    assert objective == pytest.approx(np.log(score.sum(axis=1)).sum() + prior, rel=ROUNDING)
    for k, (parents, tables) in enumerate(zip(after.parents, after.tables, strict=True)):
        counts = {
            (a, b): naive.weighted_counts(rows, share[:, k], a, b, N_BIN, ESS)
            for a, b in itertools.product(range(4), repeat=2)
            if a != b
        }
        weight = np.zeros((4, 4))
        for (a, b), table in counts.items():
            weight[a, b] = naive_trees.information(table, 0.0)
        edges = [(int(parents[b]), b) for b in range(4) if parents[b] >= 0]
        assert naive_trees.total_information(edges, weight) == pytest.approx(naive_trees.best_tree(weight), rel=1e-8)
        for parent, column in edges:
            table = counts[parent, column]
            np.testing.assert_allclose(tables[column], table / table.sum(axis=1, keepdims=True), rtol=ROUNDING)
        (root,) = np.flatnonzero(parents < 0)
        own = np.full(N_BIN[root], ESS / N_BIN[root])
        for row, part in zip(rows, share[:, k], strict=True):
            if row[root] >= 0:
                own[row[root]] += part
        np.testing.assert_allclose(tables[root], [own / own.sum()], rtol=ROUNDING)


@pytest.mark.parametrize("edges", EDGES)
def test_no_step_of_em_makes_rows_less_probable(rng, edges):
    bins = some_bins(rng, 300)
    counter = PairCounter(bins, LABELS, ESS)
    mixture, before = tree_mixture.started(bins, 4, rng), -np.inf
    for _ in range(30):
        mixture, objective = tree_mixture.em_step(mixture, bins, counter, edges)
        assert objective >= before - ROUNDING * abs(before)
        before = objective


def test_a_wrong_parent_makes_a_step_worse(rng):
    mixture, bins, counter = stepped(rng, 0.0)
    for _ in range(20):
        mixture, objective = tree_mixture.em_step(mixture, bins, counter, "own")
    score = tree_mixture.log_scores(mixture, bins)
    share = np.exp(score - np.logaddexp.reduce(score, axis=0))
    parents, tables = list(mixture.parents), list(mixture.tables)
    parents[0] = counter.tree(-counter.information(counter.counts(share[0])))
    tables[0] = counter.tables(counter.counts(share[0]), parents[0])
    wrong = TreeMixture(mixture.weights, parents, tables)
    assert tree_mixture.em_step(wrong, bins, counter, "own")[1] < objective - 1.0


def test_one_component_is_the_chow_liu_tree(rng):
    bins = some_bins(rng, 400, missing=0.1)
    counter = PairCounter(bins, LABELS, ESS)
    mixture, _ = tree_mixture.em_step(tree_mixture.started(bins, 1, rng), bins, counter, "own")
    assert mixture.parents[0].tolist() == chow_liu(bins, np.arange(400), np.arange(4), ESS).parents.tolist()


def test_components_have_edges_of_their_own_unless_they_share_them(rng):
    table = bj.as_table(two_kinds(rng), other=False)
    for edges in EDGES:
        sizes = set()
        circuit = learn_tree_mixture(table, np.random.default_rng(2), n_components=2, edges=edges)
        post = bj.Posterior.from_circuit(circuit, table.schema)
        for value in "01":
            told = post.dependence(given=f"a = '{value}'").sel(feature="b")
            sizes.add(tuple(bool(told.sel(feature_other=other).item() > 0.3) for other in "ce"))
        assert sizes == {(True, False), (False, True)}


def test_probabilities_of_all_states_add_up_to_one(rng):
    table = bj.as_table(two_kinds(rng), other=False)
    circuit = learn_tree_mixture(table, rng, n_components=3)
    every = pd.DataFrame(list(itertools.product("01", repeat=5)), columns=list("abcde"))
    total = np.exp(bj.Posterior.from_circuit(circuit, table.schema).log_density(every)).sum()
    assert float(total) == pytest.approx(1.0, abs=ROUNDING)


def test_mixed_tables_with_missing_cells_are_fitted(rng):
    frame = two_kinds(rng)
    frame["size"] = (rng.normal(size=600) + 4.0 * (frame["a"] == "1")).round(2)
    frame["same"] = "yes"
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    table = bj.as_table(frame, kinds={"same": "category"})
    post = bj.fit(table, "tree_mixture", n_structures=2, draws=8, tune=8, seed=1, progress=False, n_components=3)
    assert np.isfinite(post.log_density(frame)).all()
    high, low = (float(post.probability("size > 2", f"a = '{value}'").mean()) for value in "10")
    assert high > 2.0 * low


def test_numbers_alone_are_a_mixture(rng):
    frame = pd.DataFrame({"x": rng.normal(size=300), "y": rng.normal(size=300)})
    circuit = learn_tree_mixture(bj.as_table(frame), rng, n_components=2)
    assert (circuit.kind == arrays.LATENT).sum() == 1
    assert (circuit.kind != arrays.HARD).all()


def test_more_components_than_rows_and_columns_without_cells(rng):
    frame = pd.DataFrame({"a": list("0011"), "b": list("0101"), "seldom": ["u", None, None, None]})
    table = bj.as_table(frame, kinds={"seldom": "category"}, other=False)
    circuit = learn_tree_mixture(table, rng, n_components=6)
    assert np.isfinite(bj.Posterior.from_circuit(circuit, table.schema).log_density(frame)).all()


def test_same_generator_same_circuit(rng):
    table = bj.as_table(two_kinds(rng))
    first, again, other = (learn_tree_mixture(table, np.random.default_rng(k), n_components=2) for k in (3, 3, 4))
    assert first.digest() == again.digest() != other.digest()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_components": 0}, LearnerError, "n_components is 0"),
        ({"edges": "all"}, LearnerError, "edges is 'all'"),
        ({"ess": 0.0}, LearnerError, "ess is 0.0"),
        ({"em_steps": 0}, LearnerError, "em_steps is 0"),
        ({"dictionary": lambda column: ()}, CircuitError, "column 'x' has an empty likelihood dictionary"),
    ],
)
def test_settings_that_make_no_sense_are_refused(rng, options, error, message):
    frame = two_kinds(rng).assign(x=rng.normal(size=600))
    with pytest.raises(error, match=message):
        learn_tree_mixture(bj.as_table(frame), rng, **options)


@pytest.mark.parametrize("other", [True, False])
def test_a_single_column_of_one_label_is_a_leaf(other):
    with pytest.warns(BayesjptWarning, match="constant"):
        table = bj.as_table(pd.DataFrame({"a": ["x"] * 20}), other=other)
    circuit = bj.learn_tree_mixture(table, np.random.default_rng(0), n_components=3)
    found = bj.Posterior.from_circuit(circuit, table.schema).log_density(table)
    np.testing.assert_allclose(found.values, 0.0, atol=0.1)
