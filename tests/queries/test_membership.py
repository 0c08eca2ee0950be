"""Responsibilities by enumeration over the choices of sums; co-membership by brute force over draws and pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesjpt as bj
from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit
from bayesjpt.circuit.paths import Condition
from bayesjpt.circuit.sub_populations import above, sub_populations
from bayesjpt.errors import EvidenceError, QueryError
from bayesjpt.kernels.flow import node_probabilities
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive
from tests.strategies import law

EXACT = 1e-10
LABEL = ex.FLAG


def nested(table: Table):
    """Return a mixture of a product and of a mixture of two products: three sub-populations on two levels."""
    rows = np.arange(table.n_row)

    def product() -> Product:
        return Product(tuple(ColumnLeaf(column, rows) for column in range(table.n_column)))

    inner = Sum((product(), product()), (table.n_row,) * 2)
    return build_circuit(Sum((product(), inner), (table.n_row,) * 2), table)


def beside(table: Table):
    """Return a product of one column and of a mixture over the rest: the mixture tells sub-populations apart."""
    rows = np.arange(table.n_row)
    mixture = Sum(
        tuple(Product(tuple(ColumnLeaf(c, rows) for c in range(1, table.n_column))) for _ in range(3)), (1, 1, 1)
    )
    return build_circuit(Product((ColumnLeaf(0, rows), mixture)), table)


def tree(table: Table):
    return ex.hard(table, Condition(0, 1.0), Condition(2, 3.0))


CIRCUITS = {
    "mixture": (lambda table: ex.mixture(table, 3), 3),
    "two levels": (ex.two_level, 2),
    "nested": (nested, 3),
    "beside a column": (beside, 3),
    "tree": (tree, 4),
    "independent": (ex.independent, 1),
}


def enumerated(post, table: Table, draw: int) -> np.ndarray:
    """Return float64 (n_row, n_sub_population): each choice's joint density over the sum of all, by recursion."""
    nodes = sub_populations(post.circuit, table.n_column)
    flat = post.flat()
    log_joint = []
    for node in nodes:
        log_weight = flat.log_weight[draw].copy()
        kept = set(above(post.circuit, [node]).tolist())
        for parent in kept - {node}:
            edges = range(post.circuit.child_ptr[parent], post.circuit.child_ptr[parent + 1])
            if post.circuit.kind[parent] in arrays.STRUCTURE_KINDS:
                for edge in edges:
                    if post.circuit.child[edge] not in kept:
                        log_weight[edge] = -np.inf
        log_joint.append(naive.log_values(post.circuit, Params(log_weight, flat.theta[draw]), table))
    joint = np.exp(np.array(log_joint).T)
    return joint / joint.sum(axis=1, keepdims=True)


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("name", CIRCUITS)
def test_responsibilities_are_those_of_enumeration(name, missing, rng):
    make, n_group = CIRCUITS[name]
    table = ex.make_table(ex.COLUMNS, 30, rng, missing=missing)
    post = ex.random_posterior(make(table), table, rng, n_draw=2)
    found = post.membership(table)
    assert found.dims == ("chain", "draw", "obs_id", "sub_population")
    assert found.sizes["sub_population"] == n_group
    assert np.abs(found.sum("sub_population") - 1.0).max() < EXACT
    for draw in range(4):
        expected = enumerated(post, table, draw)
        assert np.abs(found.to_numpy().reshape(4, 30, -1)[draw] - expected).max() < EXACT


def test_rows_of_a_tree_are_in_the_leaf_whose_conditions_they_meet(rng):
    table = ex.make_table((ex.REAL, ex.POSITIVE, ex.COUNT), 40, rng)
    post = ex.random_posterior(tree(table), table, rng)
    found = post.membership(table)
    for number, text in enumerate(found["conditions"].to_numpy()):
        meets = np.exp(post.log_probability(text, table).to_numpy())
        assert np.abs(found[..., number].to_numpy() - meets).max() < EXACT
    assert set(np.unique(found.to_numpy().round(9))) == {0.0, 1.0}


def test_a_row_without_cells_has_the_weights_of_the_sub_populations(rng):
    table = ex.make_table(ex.COLUMNS, 20, rng)
    post = ex.random_posterior(nested(table), table, rng)
    nothing = Table(table.schema, table.values[:, :1], np.zeros((5, 1), bool))
    nodes = sub_populations(post.circuit, 5)
    weights = node_probabilities(post.plan(), post.flat().log_weight, nodes)
    assert np.abs(post.membership(nothing).to_numpy().reshape(weights.shape) - weights).max() < EXACT
    assert np.abs(weights.sum(axis=1) - 1.0).max() < EXACT


def test_weights_are_the_mean_responsibilities_of_rows_that_the_draw_makes(rng):
    """The law of total probability, by simulation: E over rows of P(k given the row) = P(k)."""
    table = ex.make_table(ex.COLUMNS, 40, rng)
    post = ex.random_posterior(nested(table), table, rng, n_chain=1, n_draw=1)
    rows = post.sample(20_000, rng=rng, recorded=False, labels="all")
    found = post.membership(rows)[0, 0].to_numpy()
    nodes = sub_populations(post.circuit, 5)
    weights = node_probabilities(post.plan(), post.flat().log_weight, nodes)[0]
    error = found.std(axis=0) / np.sqrt(found.shape[0])
    assert (np.abs(found.mean(axis=0) - weights) < 5.0 * error).all()


@law(15)
@given(seed=st.integers(0, 2**31 - 1), n_component=st.integers(1, 4), missing=st.sampled_from([0.0, 0.5]))
def test_comembership_is_the_mean_over_draws_of_meeting_in_one_sub_population(seed, n_component, missing):
    rng = np.random.default_rng(seed)
    table = ex.make_table((ex.COUNT, ex.LABEL), 12, rng, missing=missing)
    post = ex.random_posterior(ex.mixture(table, n_component), table, rng, n_chain=2, n_draw=2)
    share = post.membership(table).to_numpy().reshape(4, 12, n_component)
    expected = np.zeros((12, 12))
    for i, j in np.ndindex(12, 12):
        expected[i, j] = 1.0 if i == j else sum((draw[i] * draw[j]).sum() for draw in share) / 4
    found = post.comembership(table)
    assert found.dims == ("obs_id", "obs_id_other")
    assert np.abs(found.to_numpy() - expected).max() < EXACT


def test_comembership_does_not_depend_on_the_names_of_sub_populations(rng):
    table = ex.make_table(ex.COLUMNS, 15, rng)
    post = ex.random_posterior(ex.two_level(table), table, rng, n_chain=1, n_draw=1)
    circuit = post.circuit
    first = circuit.child_ptr[-2]
    swapped = circuit._replace(child=np.append(circuit.child[:first], circuit.child[first:][::-1]))
    log_weight = post.params.log_weight.copy()
    log_weight[..., first:] = log_weight[..., first:][..., ::-1]
    other = bj.Posterior(swapped, table.schema, Params(log_weight, post.params.theta))
    assert np.abs(other.membership(table).to_numpy()[..., ::-1] - post.membership(table).to_numpy()).max() < EXACT
    assert np.abs(other.comembership(table) - post.comembership(table)).max() < EXACT


def test_several_structures_are_averaged_by_their_draws_and_have_no_common_names(rng, monkeypatch):
    monkeypatch.setattr("bayesjpt.queries.membership._BYTES_AT_ONCE", 8 * 15 * 3 * 2)  # two draws at once
    table = ex.make_table(ex.COLUMNS, 15, rng)
    parts = [ex.random_posterior(make(table), table, rng, n_draw=n) for make, n in ((nested, 4), (tree, 2))]
    whole = StackedPosterior(parts, [2 / 3, 1 / 3])
    expected = sum(weight * part.comembership(table) for weight, part in zip(whole.weights, parts, strict=True))
    assert np.abs(whole.comembership(table) - expected).max() < EXACT
    with pytest.raises(QueryError, match=r"2 structures.*comembership"):
        whole.membership(table)
    alone = StackedPosterior(parts[:1], [1.0])
    assert np.array_equal(alone.membership(table), parts[0].membership(table))


def test_impossible_rows_and_too_many_are_refused(rng, monkeypatch):
    frame = pd.DataFrame({"x": rng.normal(size=60).round(2), "g": ["a", "b"] * 30})
    table = bj.as_table(frame)
    circuit = ex.mixture(table, 2, ex.only("quantile", "categorical"))
    post = ex.random_posterior(circuit, table, rng)
    far = bj.as_table(pd.DataFrame({"x": [0.0, 1e3]}), schema=table.schema)
    with pytest.raises(EvidenceError, match=r"row 2 of the evidence.*column 'x'"):
        post.membership(far)
    with pytest.raises(EvidenceError, match="column 'x'"):
        post.comembership(far)
    monkeypatch.setattr("bayesjpt.queries.membership.MAX_PAIRED_ROWS", 59)
    with pytest.raises(QueryError, match="60 rows"):
        post.comembership(table)
