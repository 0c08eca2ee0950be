"""A posterior given an event, then values, then of fewer columns is a posterior like any other: saved, questioned."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import ModelError, QueryError
from bayesjpt.posterior.draws import Posterior
from bayesjpt.table.table import Table
from tests import examples as ex
from tests.queries.test_condition import assert_same, log_density


@pytest.fixture(scope="module")
def conditional() -> Posterior:
    """Return a fit given an event, then values, then of fewer columns."""
    rng = np.random.default_rng(3)
    table = ex.make_table(ex.COLUMNS, 80, rng, missing=0.1)
    stats = {"log_likelihood": rng.normal(size=(2, 6)), "n_active_edges": rng.integers(0, 9, (2, 6))}
    post = ex.random_posterior(ex.two_level(table), table, rng, sample_stats=stats)
    post = post.condition("real > 1 or count > 4 and label = 'a'").constrain({"positive": 1.5})
    return post.marginal(["label", "real", "positive", "count"])


def test_conditional_is_saved_and_loaded(conditional, tmp_path):
    conditional.save(tmp_path / "given.nc")
    back = bj.load(tmp_path / "given.nc")
    assert back.circuit.digest() == conditional.circuit.digest()
    assert back.params.log_weight.tobytes() == conditional.params.log_weight.tobytes()
    assert back.params.theta.tobytes() == conditional.params.theta.tobytes()
    assert repr(back) == repr(conditional)


def test_conditional_says_what_is_given(conditional):
    text = "real > 1 or count > 4 and label == 'a'; positive == 1.5"
    assert conditional.settings["given"] == text
    assert repr(conditional).endswith(f"given {text})")


def test_conditional_has_types_and_convergence(conditional):
    assert len(conditional.types()) == 4
    assert "log_density_of_rows" in conditional.convergence().table["quantity"].to_numpy()
    assert conditional.types()["label"].type == "nominal"


def test_known_value_has_mass_one_and_its_neighbours_none(conditional):
    frame = pd.DataFrame({"positive": [1.5, 1.6, np.nan]})
    mass = np.exp(conditional.log_mass(frame).to_numpy().reshape(-1, 3))
    assert_same(mass, np.broadcast_to([1.0, 0.0, 1.0], mass.shape))


def test_rows_of_the_whole_table_are_read_by_a_marginal(conditional):
    rows = pd.DataFrame({"real": [1.2, 3.0], "levels": [2, 5]})  # levels was summed out
    assert_same(conditional.log_density(rows).to_numpy(), conditional.log_density(rows[["real"]]).to_numpy())


def test_a_column_that_was_summed_out_is_named_as_such(conditional):
    with pytest.raises(QueryError, match=r"'levels' was summed out of this posterior.*post\.marginal"):
        conditional.probability("levels > 2")


def test_known_value_may_be_asked_for_again(conditional):
    again = conditional.condition("positive = 1.5").condition("positive > 1").constrain({"positive": 1.5})
    rows = pd.DataFrame({"real": [1.2, 3.0], "count": [2, 5]})
    assert_same(again.log_density(rows).to_numpy(), conditional.log_density(rows).to_numpy())


def test_reference_rows_stay_in_the_event(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 60, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng)
    kept = post.condition("real > 1").reference
    assert kept.values[0].min() > 1.0
    assert post.condition("real > 1e6").reference is None
    assert not post.constrain({"real": 0.3}).reference.observed[0].any()
    assert post.marginal("count").reference.values.tolist() == post.reference.values[1:].tolist()


def test_nothing_given_changes_no_density(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 20, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng)
    for same in (
        post.condition({}),
        post.constrain({"real": None}),
        post.condition("count >= 0"),
        post.marginal(["real", "count"]),
    ):
        assert log_density(same, table).tolist() == log_density(post, table).tolist()
        assert "given" not in same.settings or same.settings["given"] == "count >= 0"


def test_conditional_circuit_is_not_sampled(conditional):
    table = Table(conditional.schema, np.ones((4, 2)), np.ones((4, 2), bool))
    with pytest.raises(ModelError, match="leaves that share parameters"):
        bj.build_model(conditional.circuit, table)
