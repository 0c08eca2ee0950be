"""Rows drawn from a circuit follow its own cdfs, column by column and jointly."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from bayesjpt.circuit.plan import make_plan
from bayesjpt.kernels.flow import fill_marginal_cdf
from bayesjpt.kernels.sampling import sample_rows
from bayesjpt.table.table import as_table
from tests import examples as ex
from tests import naive, strategies
from tests.statistics import cdf_deviation, dkw_bound

N_DRAW = 30_000


@pytest.fixture
def case(rng) -> strategies.Case:
    """Return every base under a circuit of two levels."""
    table = ex.make_table(ex.COLUMNS, 40, rng)
    circuit = ex.two_level(table)
    return strategies.Case(table, circuit, ex.random_params(circuit, table.schema, rng))


def sample(case, rng, n_row=N_DRAW):
    """Return float64 (n_row, n_column)."""
    out = np.full((n_row, case.table.n_column), np.nan)
    sample_rows(make_plan(case.circuit, case.table.schema), *case.params, rng, out)
    return out


def marginal_cdf(case, column):
    plan = make_plan(case.circuit, case.table.schema)

    def cdf(points):
        out = np.empty((1, points.size))
        which = np.full(points.size, column, np.int64)
        fill_marginal_cdf(plan, case.params.log_weight[None], case.params.theta[None], which, points, out)
        return out[0]

    return cdf


def joint_cdf(case, point):
    """Return the probability that every column is at most its entry, by recursion."""

    def log_cdf(family, column, theta, x):
        p = naive.family_cdf(family, column, theta, x)
        return math.log(p) if p > 0.0 else -math.inf

    return math.exp(
        naive.log_value(case.circuit, case.table.schema, case.params, point, np.ones(point.size, bool), log_cdf)
    )


def joint_deviation(case, rows):
    """Return the largest deviation of the empirical joint cdf at some of the rows."""
    return max(abs((rows <= point).all(axis=1).mean() - joint_cdf(case, point)) for point in rows[:50])


@pytest.mark.parametrize("column", range(len(ex.COLUMNS)), ids=[column.name for column in ex.COLUMNS])
def test_sampled_columns_follow_their_marginal_cdf(case, column, rng):
    assert cdf_deviation(sample(case, rng)[:, column], marginal_cdf(case, column)) < dkw_bound(N_DRAW)


def test_sampled_rows_follow_the_joint_cdf(case, rng):
    rows = sample(case, rng)
    assert joint_deviation(case, rows) < dkw_bound(N_DRAW)


def correlated(rng) -> strategies.Case:
    """Return two columns whose components lie far apart."""
    table = ex.make_table((ex.REAL, ex.COUNT), 20, rng)
    circuit = ex.mixture(table, 2, strategies.first_family)
    params = ex.start(circuit)
    params.theta[:] = [1.0, -2.0, 1.0, 1.0, 2.0, 9.0]  # variance, mu and rate of either component
    return strategies.Case(table, circuit, params)


def test_columns_of_a_row_come_from_one_component(rng):
    case = correlated(rng)
    assert joint_deviation(case, sample(case, rng)) < dkw_bound(N_DRAW)


def test_columns_drawn_from_components_of_their_own_are_caught(rng):
    case = correlated(rng)
    rows = sample(case, rng)
    rng.shuffle(rows[:, 0])
    assert joint_deviation(case, rows) > dkw_bound(N_DRAW)


def test_marginal_of_other_parameters_is_caught(case, rng):
    rows = sample(case, rng)
    other = case._replace(params=ex.random_params(case.circuit, case.table.schema, rng))
    assert cdf_deviation(rows[:, 0], marginal_cdf(other, 0)) > dkw_bound(N_DRAW)


@pytest.mark.parametrize("base", ["integer", "category"])
def test_sampled_counts_and_labels_are_whole_numbers_from_zero(case, base, rng):
    rows = sample(case, rng, 1000)
    for column, facts in enumerate(case.table.schema):
        if facts.base == base:
            assert (rows[:, column] == np.floor(rows[:, column])).all()
            assert rows[:, column].min() >= 0.0


def test_same_generator_gives_the_same_rows(case):
    first, second, third = (sample(case, np.random.default_rng(seed), 20).tolist() for seed in (1, 1, 2))
    assert first == second
    assert first != third


@pytest.mark.parametrize(("family", "least"), [("rounded_normal", -4), ("truncated_rounded_normal", 0)])
def test_whole_numbers_are_drawn_as_whole_numbers(family, least, rng):
    """In units of z they are none, and back in the user's beside them: ``astype("int64")`` took 3 for 2."""
    frame = pd.DataFrame({f"spread {n}": least + rng.permutation(60) % n for n in (7, 12, 21, 23, 45, 60)})
    table = as_table(frame, kinds=dict.fromkeys(frame.columns, "integer"))
    circuit = ex.mixture(table, dictionary=ex.only(family))
    rows = sample(strategies.Case(table, circuit, ex.random_params(circuit, table.schema, rng)), rng, 3000)
    np.testing.assert_array_equal(rows, np.rint(rows))
