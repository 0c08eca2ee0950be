"""A column as a shallow mixture is the column; modes and intervals are those of SciPy; it says whose they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import bayesjpt as bj
from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.paths import Condition
from bayesjpt.circuit.sub_populations import children, sub_populations
from bayesjpt.defaults import INTERVAL
from bayesjpt.errors import QueryError
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.queries.representative import representative
from bayesjpt.queries.shallow import leaf_masses, shallow
from tests import examples as ex
from tests.queries.test_membership import CIRCUITS
from tests.strategies import law

EXACT = 1e-10
QUANTILE = 1e-7
"""Relative to the scale of a column."""
TAIL = 0.5 - 0.5 * INTERVAL


@pytest.mark.parametrize("name", CIRCUITS)
@pytest.mark.parametrize("column", range(5))
def test_the_mixture_of_the_leaves_is_the_column(name, column, rng):
    table = ex.make_table(ex.COLUMNS, 30, rng)
    post = ex.random_posterior(CIRCUITS[name][0](table), table, rng, n_draw=2)
    mixture = shallow(post, column)
    assert np.abs(mixture.weight.sum(axis=1) - 1.0).max() < EXACT
    facts = table.schema.columns[column]
    codes = np.arange(float(facts.n_label))
    edges = np.array([-np.inf, 0.3, 1.2, 1.2, 2.7, 8.0])
    intervals = np.column_stack([codes, codes] if facts.base == "category" else [np.full(6, -np.inf), edges])
    together = np.einsum("dl,dil->di", mixture.weight, leaf_masses(post, column, intervals))
    if facts.base == "category":
        events = [f"{facts.name} = '{label}'" for label in facts.code_names]
        expected = np.array([post.probability(event).to_numpy().ravel() for event in events]).T
    else:
        expected = post.cdf(edges[1:], facts.name).to_numpy().reshape(4, -1)
        together = together[:, 1:]
    assert np.abs(together - expected).max() < EXACT


def reached(circuit, node: int) -> set[int]:
    """Return every node below a node, itself included."""
    return {node}.union(*(reached(circuit, child) for child in children(circuit, node)))


@pytest.mark.parametrize("name", CIRCUITS)
def test_a_component_is_of_the_sub_populations_above_it_or_of_all(name, rng):
    table = ex.make_table(ex.COLUMNS, 30, rng)
    post = ex.random_posterior(CIRCUITS[name][0](table), table, rng, n_chain=1, n_draw=1)
    below = [reached(post.circuit, node) for node in sub_populations(post.circuit, 5)]
    nodes = post.circuit.leaf_node()
    for column in range(5):
        mixture = shallow(post, column)
        for leaf, groups in zip(mixture.leaf, mixture.groups, strict=True):
            own = [number for number, part in enumerate(below) if nodes[leaf] in part]
            assert groups == tuple(own or range(len(below)))


def test_modes_intervals_and_weights_are_those_of_the_families(rng):
    table = ex.make_table((ex.POSITIVE, ex.COUNT), 40, rng)
    post = ex.random_posterior(ex.mixture(table, 1), table, rng, n_chain=1, n_draw=1)
    found = {part.family: part for part in post.components("positive").parts}
    mixture = shallow(post, 0)
    column = ex.POSITIVE
    for leaf, family, weight in zip(mixture.leaf, mixture.families, mixture.weight[0], strict=True):
        theta = post.params.theta[0, 0, post.circuit.theta_at[leaf] :]
        frozen, mode = {
            "normal": lambda t: (scipy.stats.norm(t[1], np.sqrt(t[0])), t[1]),
            "gamma": lambda t: (scipy.stats.gamma(t[0], scale=1.0 / t[1]), max(t[0] - 1.0, 0.0) / t[1]),
            "exponential": lambda t: (scipy.stats.expon(scale=1.0 / t[0]), 0.0),
        }[family.name](theta)
        offset = column.location if family.name == "normal" else 0.0
        part = found[family.name]
        recorded = 0.5 * column.resolution if mode == 0.0 else 0.0  # a recorded zero is a cell, beside the density
        assert part.mode == pytest.approx(mode * column.scale + offset, abs=QUANTILE + recorded)
        expected = frozen.ppf([TAIL, 1.0 - TAIL]) * column.scale + offset
        assert part.interval == pytest.approx(tuple(expected), abs=QUANTILE)
        assert part.weight == pytest.approx(weight, abs=EXACT)
        assert part.statistical_type == family.statistical_type


def test_labels_have_their_most_probable_one_and_its_probability(rng):
    frame = pd.DataFrame({"kind": rng.choice(["a", "b", "c"], 60), "size": rng.normal(size=60)})
    table = bj.as_table(frame)
    post = ex.random_posterior(ex.mixture(table, 2, ex.only("categorical", "normal")), table, rng)
    for part in post.components("kind").parts:
        leaf = shallow(representative(post, [0]).post, 0)
        assert part.mode in ("a", "b", "c", "other")
        assert 0.25 <= part.share <= 1.0
        assert np.isnan(part.interval).all()
        assert part.family == leaf.families[0].name == "categorical"


@law(20)
@given(seed=st.integers(0, 2**31 - 1), k=st.integers(1, 6))
def test_components_fall_in_weight_and_with_the_rest_add_up_to_one(seed, k):
    rng = np.random.default_rng(seed)
    table = ex.make_table(ex.COLUMNS, 20, rng)
    found = ex.random_posterior(ex.mixture(table, 2), table, rng, n_draw=2).components("positive", k=k)
    weights = [part.weight for part in found.parts]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) + found.rest == pytest.approx(1.0, abs=EXACT)
    assert len(weights) + found.n_rest == 6
    assert found.table.sizes["component"] == len(weights)
    assert len(repr(found).splitlines()) == 2 + len(weights) + (found.n_rest > 0)


def test_draws_in_which_a_component_describes_nothing_do_not_move_it(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 40, rng)
    post = ex.random_posterior(ex.mixture(table, 2), table, rng, n_chain=1, n_draw=5)
    top = slice(post.circuit.child_ptr[-2], None)
    post.params.log_weight[0, :, top] = np.log([0.5, 0.5])
    post.params.log_weight[0, :3, top] = [-800.0, 0.0]  # three draws of five leave the first one empty
    leaf = int(shallow(post, 0).leaf[0])
    at = post.circuit.theta_at[leaf]
    post.params.theta[0, :3, at + 1] = 1e6
    first = next(part for part in post.components("real").parts if part.sub_populations == (0,))
    assert abs(first.mode) < 1e3
    assert max(map(abs, first.interval)) < 1e3


def test_a_tree_names_sub_populations_by_their_conditions(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 60, rng)
    post = ex.random_posterior(ex.hard(table, Condition(0, 1.0)), table, rng)
    found = post.components("count")
    assert (found.structure, found.chain) == (None, None)
    assert "real < 1" in repr(found)
    assert "real < 1" in found._repr_html_().replace("&lt;", "<")
    assert found.table["member"].dims == ("component", "sub_population")


def test_shown_is_the_chain_nearest_to_all_and_it_is_named(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 60, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng, n_chain=1, n_draw=4)
    far = post.params.theta.copy()
    far[..., post.circuit.theta_at[shallow(post, 0).leaf] + 1] += 50.0  # both normals elsewhere
    chains = Params(
        np.concatenate([post.params.log_weight] * 3), np.concatenate([far, post.params.theta, post.params.theta])
    )
    three = bj.Posterior(post.circuit, table.schema, chains)
    assert three.components("real").chain == 1
    assert "chain 1" in repr(three.components("real"))
    stacked = StackedPosterior(
        [bj.Posterior(post.circuit, table.schema, Params(post.params.log_weight, far)), post, post], [1 / 3] * 3
    )
    found = stacked.components("real")
    assert (found.structure, found.chain) == (1, None)
    assert repr(found).startswith("real, components of structure 1")
    alone = post.components("real")
    assert [part.words for part in found.parts] == [part.words for part in alone.parts]


def test_unknown_columns_and_counts_below_one_are_refused(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 20, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng)
    with pytest.raises(QueryError, match="'rael'"):
        post.components("rael")
    with pytest.raises(QueryError, match="k=0"):
        post.components("real", k=0)
