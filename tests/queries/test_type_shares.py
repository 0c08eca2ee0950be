"""Types of columns: shares equal the sum over all paths; what chains do not agree about is not determined."""

from __future__ import annotations

import re
from dataclasses import replace

import arviz as az
import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.circuit.arrays import LIKELIHOOD, Params
from bayesjpt.errors import QueryError
from bayesjpt.families import registry
from bayesjpt.queries.type_shares import TYPES, UNDETERMINED, type_shares
from tests import examples as ex
from tests import naive

EXACT = 1e-12
N_DRAW = 200
LEVELS = (("few", 5, 0), ("many", 30, 0), ("below zero", 30, 9))
"""Name, number of levels, and how far below 0 they begin."""


def shares_by_paths(circuit, log_weight, n_column) -> np.ndarray:
    """Return float64 (n_column, n_family): weights of all allocations of a complete row that end in each family."""
    out = np.zeros((n_column, len(registry.FAMILIES)))
    for edges, leaves in naive.induced_paths(circuit, np.ones(n_column, bool)):
        weight = np.exp(sum(log_weight[edge] for edge in edges))
        for leaf in leaves:
            out[naive.leaf_column(circuit, leaf), circuit.leaf_family[leaf]] += weight
    return out


@pytest.fixture(params=[ex.independent, ex.mixture, ex.two_level], ids=lambda shape: shape.__name__)
def post(request, rng):
    table = ex.make_table((ex.POSITIVE, ex.COUNT, ex.LABEL), 30, rng)
    return ex.random_posterior(request.param(table), table, rng, n_draw=3)


def test_shares_equal_the_sum_over_all_paths_under_each_draw(post):
    found = type_shares(post).draws["likelihood_share"].to_numpy()
    for chain in range(post.n_chain):
        for draw in range(post.n_draw):
            expected = shares_by_paths(post.circuit, post.params.log_weight[chain, draw], len(post.schema))
            assert np.abs(found[chain, draw] - expected).max() < EXACT


def test_shares_of_likelihoods_and_of_types_add_up_to_one(post):
    draws = type_shares(post).draws
    assert np.abs(draws["likelihood_share"].sum("likelihood") - 1.0).max() < EXACT
    assert np.abs(draws["type_share"].sum("statistical_type") - 1.0).max() < EXACT


def test_share_of_a_type_is_the_sum_of_its_likelihoods(post):
    draws = type_shares(post).draws
    likelihoods = draws["likelihood_share"].sel(feature="positive", likelihood=["gamma", "exponential", "lognormal"])
    found = draws["type_share"].sel(feature="positive", statistical_type="positive")
    assert np.abs(found - likelihoods.sum("likelihood")).max() < EXACT


def test_draws_are_labelled_by_the_users_columns(post):
    draws = type_shares(post).draws
    assert draws["feature"].to_numpy().tolist() == list(post.schema.names)
    assert set(draws.sizes) == {"chain", "draw", "feature", "likelihood", "statistical_type"}


def test_answer_lists_only_what_the_dictionary_offers(post):
    result = type_shares(post)
    assert set(result["positive"].likelihoods) == {"normal", "gamma", "exponential"}
    assert set(result["positive"].types) == {"real", "positive"}
    assert set(result["label"].likelihoods) == {"categorical"}


def test_answer_leaves_out_what_the_circuits_own_dictionary_left_out(rng):
    table = ex.make_table((ex.POSITIVE, ex.COUNT), 30, rng)
    circuit = ex.mixture(table, dictionary=ex.only("gamma", "poisson"))
    result = type_shares(ex.random_posterior(circuit, table, rng))
    assert set(result["positive"].likelihoods) == {"gamma"}
    assert set(result["positive"].types) == {"positive"}
    assert set(result["count"].likelihoods) == {"poisson"}


def test_no_share_passes_one(post):
    result = type_shares(post)
    assert (result.draws["type_share"] <= 1.0).all()
    assert all(column.hi <= 1.0 for column in result.columns)


def test_means_of_the_answer_are_those_of_the_draws(post):
    result = type_shares(post)
    mean = result.draws["likelihood_share"].sel(feature="count").mean(("chain", "draw"))
    for name, share in result["count"].likelihoods.items():
        assert abs(share - float(mean.sel(likelihood=name))) < EXACT


@pytest.mark.parametrize("interval", [0.5, 0.9])
def test_interval_is_equal_tailed(post, interval):
    result = type_shares(post, interval=interval)["count"]
    leading = type_shares(post).draws["type_share"].sel(feature="count", statistical_type="count").to_numpy()
    assert abs(result.lo - np.quantile(leading, 0.5 - interval / 2)) < EXACT
    assert abs(result.hi - np.quantile(leading, 0.5 + interval / 2)) < EXACT


@pytest.mark.parametrize("interval", [0.0, 1.0, 2.0, -0.1, float("nan")])
def test_interval_that_is_no_probability_is_refused(post, interval):
    with pytest.raises(QueryError, match="between 0 and 1"):
        type_shares(post, interval=interval)


def test_unknown_column_is_an_error_that_lists_the_known_ones(post):
    with pytest.raises(KeyError, match=r"no column 'size' among positive, count, label"):
        type_shares(post)["size"]


def test_two_labels_are_binary_and_three_are_nominal():
    table = bj.as_table(pd.DataFrame({"two": ["a", "b"] * 15, "three": ["a", "b", "c"] * 10, "flag": [0, 1] * 15}))
    result = type_shares(bj.Posterior.from_circuit(ex.independent(table), table.schema))
    assert [result[name].type for name in ("two", "three", "flag")] == ["binary", "nominal", "binary"]


def test_few_levels_are_ordinal_and_many_are_what_whole_numbers_are():
    frame = pd.DataFrame({name: np.resize(np.arange(n) - shift, 3600) for name, n, shift in LEVELS})
    table = bj.as_table(frame)
    circuit = ex.independent(table, ex.only("ordinal"))
    result = type_shares(bj.Posterior.from_circuit(circuit, table.schema))
    assert [result[name].type for name, *_ in LEVELS] == ["ordinal", "count", "real"]


# --- chains that agree, and chains that do not


@pytest.fixture
def with_shares(rng):
    """Return a function that makes a Posterior of one positive column from shares of the normal, (n_chain, n_draw)."""
    table = ex.make_table((ex.POSITIVE,), 40, rng)
    circuit = ex.independent(table, ex.only("normal", "gamma", "exponential"))
    assert circuit.kind[-1] == LIKELIHOOD

    def make(normal: np.ndarray):
        rest = 1.0 - normal
        weights = np.stack([normal, 0.75 * rest, 0.25 * rest], axis=-1)
        theta = np.broadcast_to(circuit.start_theta, (*normal.shape, circuit.n_theta))
        return bj.Posterior(circuit, table.schema, Params(np.log(weights), theta.copy()))

    return make


def around(centres, rng, spread=0.02, n_draw=N_DRAW) -> np.ndarray:
    return np.clip(np.array(centres)[:, None] + spread * rng.normal(size=(len(centres), n_draw)), 0.01, 0.99)


def test_chains_that_settled_on_different_types_leave_it_not_determined(with_shares, rng):
    result = type_shares(with_shares(around([0.9, 0.1], rng)))["positive"]
    assert result.type == UNDETERMINED
    assert "chains" in result.reason


def test_chains_that_agree_determine_the_type(with_shares, rng):
    assert type_shares(with_shares(around([0.2, 0.2], rng)))["positive"].type == "positive"
    assert type_shares(with_shares(around([0.8, 0.8], rng)))["positive"].type == "real"


def test_one_dissenting_chain_of_four_leaves_it_not_determined(with_shares, rng):
    assert type_shares(with_shares(around([0.2, 0.2, 0.2, 0.9], rng)))["positive"].type == UNDETERMINED


def test_chains_that_mix_across_the_middle_determine_the_type(with_shares, rng):
    normal = around([0.5, 0.5], rng, spread=0.1)
    normal += np.array([[0.499], [0.501]]) - normal.mean(axis=1, keepdims=True)
    result = type_shares(with_shares(normal))["positive"]
    assert result.type != UNDETERMINED
    assert result.rhat < 1.1


def test_chains_apart_that_agree_about_the_leader_determine_the_type(with_shares, rng):
    result = type_shares(with_shares(around([0.1, 0.3], rng)))["positive"]
    assert result.type == "positive"
    assert result.rhat > 1.1


def test_two_draws_of_disagreeing_chains_leave_it_not_determined(with_shares):
    result = type_shares(with_shares(np.array([[0.9, 0.9], [0.1, 0.1]])))["positive"]
    assert result.type == UNDETERMINED
    assert np.isnan(result.rhat)


def test_ess_and_rhat_are_those_of_arviz(with_shares, rng):
    post = with_shares(around([0.2, 0.22], rng))
    result = type_shares(post)["positive"]
    series = type_shares(post).draws["type_share"].sel(feature="positive", statistical_type="positive").to_numpy()
    assert result.ess == pytest.approx(az.ess(series, method="bulk"), rel=EXACT)
    assert result.rhat == pytest.approx(az.rhat(series), rel=EXACT)


def test_share_that_cannot_vary_has_no_ess_and_no_rhat(rng):
    table = ex.make_table((ex.LABEL,), 40, rng)
    result = type_shares(ex.random_posterior(ex.independent(table), table, rng, n_draw=8))["label"]
    assert np.isnan(result.ess)
    assert np.isnan(result.rhat)
    assert result.type == "nominal"


def test_order_of_chains_does_not_change_the_answer(with_shares, rng):
    post = with_shares(around([0.9, 0.1, 0.2], rng))
    turned = replace(post, params=Params(*(array[::-1] for array in post.params)))
    assert type_shares(post)["positive"].type == type_shares(turned)["positive"].type
    assert type_shares(post)["positive"].share == pytest.approx(type_shares(turned)["positive"].share, rel=EXACT)


@pytest.mark.parametrize("disagree", [False, True])
def test_reasons_are_one_sentence(disagree, rng):
    frame = pd.DataFrame(
        {
            "size": np.round(np.linspace(0.1, 6.0, 60), 1),
            "below": np.linspace(-3.0, 3.0, 60),
            "rings": np.arange(60) % 30,
            "grade": np.arange(60) % 4,
            "flag": np.arange(60) % 2,
            "colour": ["red", "white", "none"] * 20,
            "day": pd.date_range("2024-01-01", periods=60),
            "below_whole": np.arange(60) % 11 - 5,
        }
    )
    table = bj.as_table(frame)
    post = ex.random_posterior(ex.independent(table), table, rng, n_draw=1)
    for chain, share in enumerate([0.9, 0.1 if disagree else 0.9]):
        for node in np.flatnonzero(post.circuit.kind == LIKELIHOOD):
            first, last = post.circuit.child_ptr[node], post.circuit.child_ptr[node + 1]
            post.params.log_weight[chain, 0, first:last] = np.log((1.0 - share) / (last - first - 1))
            post.params.log_weight[chain, 0, first] = np.log(share)
    answers = type_shares(post).columns
    assert disagree == any(answer.type == UNDETERMINED for answer in answers)
    for answer in answers:
        assert re.fullmatch(r"[^\n]*[^.]\.", answer.reason), answer.reason
        assert not re.search(r"[.!?]\s", answer.reason), answer.reason


def test_types_are_listed_once_and_cover_the_registry():
    assert len(set(TYPES)) == len(TYPES)
    # a spline's type is that of its column's support
    assert {family.statistical_type for family in registry.FAMILIES} - {"support"} <= set(TYPES)
