"""The randomised dependence coefficient: laws, the slow twin, known answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesjpt as bj
from bayesjpt import defaults
from bayesjpt.errors import LearnerError
from bayesjpt.structure.dependence import (
    RDC_TOLERANCE,
    chance,
    coefficients,
    dependence,
    hold_together,
    subsample,
    whiten,
)
from bayesjpt.structure.features import RandomFeatures, column_features
from tests.structure import naive_rdc
from tests.structure.tables import table_of, without_cells

ROUNDING = 1e-9  # of sums over a few hundred rows and their whitening
BASIS = 1e-6  # two ways to the same basis differ by rounding over the dropped directions' singular values (1e-7)
ROWS = 400
NOISE = 0.35  # independent columns at 400 rows: mean .15-.2, never above .28 in 600 simulated pairs


def features_of(table, rng, n_features=defaults.RDC_N_FEATURES):
    scope = range(table.n_column)
    return column_features(table, np.arange(table.n_row), scope, RandomFeatures(n_features), rng)


def generator(seed=0):
    return np.random.default_rng(seed)


def mixed_table(rng, n_row=ROWS):
    x = rng.standard_normal(n_row)
    return table_of(
        x,
        np.abs(x) + 0.3 * rng.standard_normal(n_row),
        rng.poisson(np.exp(0.5 * x)),
        rng.integers(0, 5, n_row),
        (x + rng.standard_normal(n_row) > 0).astype(float),
        bases="rricc",
    )


# --- laws


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 3)), min_size=2, max_size=60),
    st.integers(0, 2**32 - 1),
)
def test_coefficients_are_symmetric_within_bounds_and_one_on_the_diagonal(cells, seed):
    table = table_of(*np.array(cells, float).T, bases="ric")
    found = coefficients(features_of(table, generator(seed)))
    assert np.array_equal(found, found.T)
    assert (np.diag(found) == 1.0).all()
    assert ((found >= 0.0) & (found <= 1.0)).all()


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.integers(-30, 30), st.integers(-30, 30)), min_size=2, max_size=60))
def test_increasing_transform_leaves_coefficients_as_they_are(cells):
    x, y = np.array(cells, float).T
    before = coefficients(features_of(table_of(x, y), generator()))
    after = coefficients(features_of(table_of(np.exp(x / 7.0), y**3 + y), generator()))
    assert np.array_equal(before, after)


def test_decreasing_transform_barely_matters(rng):
    x = rng.standard_normal(ROWS)
    y = x**2 + 0.3 * rng.standard_normal(ROWS)
    before = coefficients(features_of(table_of(x, y), generator()))[0, 1]
    after = coefficients(features_of(table_of(-x, -y), generator()))[0, 1]
    assert abs(before - after) < 0.02  # other functions of the same rank, hence other small directions


def test_order_of_rows_does_not_matter(rng):
    table = without_cells(mixed_table(rng), 0.1, rng)
    order = rng.permutation(ROWS)
    shuffled = column_features(table, order, range(5), RandomFeatures(), generator())
    before = coefficients(features_of(table, generator()))
    np.testing.assert_allclose(coefficients(shuffled), before, atol=BASIS)


def test_order_of_columns_permutes_the_matrix(rng):
    features = features_of(without_cells(mixed_table(rng), 0.1, rng), rng)
    order = [3, 0, 4, 2, 1]
    before = coefficients(features)
    after = coefficients([features[position] for position in order])
    np.testing.assert_allclose(after, before[np.ix_(order, order)], atol=ROUNDING)


def test_new_names_for_labels_do_not_matter(rng):
    a = rng.integers(0, 4, ROWS)
    b = np.where(rng.random(ROWS) < 0.5, a, rng.integers(0, 4, ROWS))
    before = dependence(table_of(a, b, bases="cc"), generator())
    after = dependence(table_of(np.array([2, 0, 3, 1])[a], b, bases="cc"), generator(1))
    np.testing.assert_allclose(after, before, atol=ROUNDING)


# --- the slow twin


@pytest.mark.parametrize("base", ["r", "i", "c"])
def test_features_equal_slow_twin_but_for_their_mean(rng, base):
    x = rng.integers(0, 6, 100)
    column = features_of(table_of(x, bases=base), generator())[0]
    expected = naive_rdc.features(x, base == "c", RandomFeatures(), generator())
    np.testing.assert_allclose(column.table[column.index], expected - expected.mean(axis=0), atol=ROUNDING)


@pytest.mark.parametrize("n_features", [1, 3, 10])
def test_matrix_equals_slow_twin_without_missing_cells(rng, n_features):
    table = mixed_table(rng)
    found = coefficients(features_of(table, generator(), n_features))
    expected = naive_rdc.dependence(table, RandomFeatures(n_features), RDC_TOLERANCE, generator())
    np.testing.assert_allclose(found, expected, atol=BASIS)


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_matrix_equals_slow_twin_on_common_rows_with_missing_cells(rng, share):
    table = without_cells(mixed_table(rng), share, rng)
    found = coefficients(features_of(table, generator()))
    expected = naive_rdc.dependence(table, RandomFeatures(), RDC_TOLERANCE, generator())
    np.testing.assert_allclose(found, expected, atol=BASIS)


# --- known answers


def test_one_feature_gives_the_correlation_of_the_features(rng):
    features = features_of(mixed_table(rng), rng, n_features=1)
    columns = [column.table[column.index, 0] for column in features]
    np.testing.assert_allclose(coefficients(features), np.abs(np.corrcoef(columns)), atol=ROUNDING)


def test_two_categories_give_the_largest_correlation_of_their_contingency_table(rng):
    a = rng.integers(0, 4, ROWS)
    b = np.where(rng.random(ROWS) < 0.3, a % 3, rng.integers(0, 3, ROWS))
    counts = np.zeros((4, 3))
    np.add.at(counts, (a, b), 1.0)
    margins = np.sqrt(np.outer(counts.sum(axis=1), counts.sum(axis=0)))
    second = np.linalg.svd(counts / margins, compute_uv=False)[1]
    found = dependence(table_of(a, b, bases="cc"), rng)[0, 1]
    assert found == pytest.approx(second, abs=BASIS)


@pytest.mark.parametrize("bases", ["rr", "ri", "cc", "ic"])
def test_two_binary_columns_give_phi_whatever_their_base(rng, bases):
    a = rng.integers(0, 2, ROWS)
    b = np.where(rng.random(ROWS) < 0.4, a, rng.integers(0, 2, ROWS))
    found = dependence(table_of(a, b, bases=bases), rng)[0, 1]
    assert found == pytest.approx(abs(np.corrcoef(a, b)[0, 1]), abs=ROUNDING)


@pytest.mark.parametrize("function", [np.exp, np.negative, np.square, np.abs, lambda x: (x - 1.0) ** 2])
def test_functional_dependence_is_near_one(rng, function):
    x = rng.uniform(-2.0, 2.0, ROWS)
    assert dependence(table_of(x, function(x)), rng)[0, 1] > 0.95


def test_category_that_decides_a_number_is_near_one(rng):
    label = rng.integers(0, 8, ROWS)
    number = np.array([5.0, 1.0, 7.0, 3.0, 8.0, 2.0, 6.0, 4.0])[label] + 0.01 * rng.standard_normal(ROWS)
    assert dependence(table_of(label, number, bases="cr"), rng)[0, 1] > 0.95


def test_label_order_matters_only_when_the_column_is_an_integer(rng):
    code = rng.integers(0, 8, 2000)
    other = np.array([0, 1, 1, 0, 1, 0, 0, 1])[code]
    as_category = dependence(table_of(code, other, bases="cc"), rng)[0, 1]
    as_integer = dependence(table_of(code, other, bases="ic"), rng)[0, 1]
    assert as_category > 0.99
    assert as_integer < 0.95


@pytest.mark.parametrize("bases", ["rr", "ri", "cr", "cc"])
def test_independent_columns_are_near_zero(rng, bases):
    columns = [rng.integers(0, 4, ROWS) if base in "ic" else rng.standard_normal(ROWS) for base in bases]
    assert dependence(table_of(*columns, bases=bases), rng)[0, 1] < NOISE


# --- missing cells, constants, few rows


def test_missing_cells_leave_a_strong_dependence_visible(rng):
    x = rng.standard_normal(2000)
    table = without_cells(table_of(x, x**2, rng.standard_normal(2000)), 0.4, rng)
    found = dependence(table, rng)
    assert found[0, 1] > 0.95
    assert found[0, 2] < NOISE


def test_filler_of_missing_cells_is_never_read(rng):
    table = without_cells(mixed_table(rng), 0.3, rng)
    values = np.where(table.observed, table.values, 1.0)
    other = type(table)(table.schema, values, table.observed)
    assert np.array_equal(dependence(table, generator()), dependence(other, generator()))


def test_columns_never_observed_together_have_coefficient_zero(rng):
    x = rng.standard_normal(ROWS)
    first = np.where(np.arange(ROWS) % 2 == 0, x, np.nan)
    second = np.where(np.arange(ROWS) % 2 == 1, x, np.nan)
    assert dependence(table_of(first, second), rng)[0, 1] == 0.0


@pytest.mark.parametrize("constant", [3.0, np.nan])
@pytest.mark.parametrize("base", ["r", "i", "c"])
def test_constant_or_unobserved_column_depends_on_nothing(rng, constant, base):
    table = table_of(rng.standard_normal(50), np.full(50, constant), rng.standard_normal(50), bases=f"r{base}r")
    found = dependence(table, rng)
    assert (found[1, [0, 2]] == 0.0).all()
    assert found[1, 1] == 1.0


def test_column_constant_on_the_common_rows_has_coefficient_zero(rng):
    x = rng.standard_normal(ROWS)
    switch = (np.arange(ROWS) < ROWS // 2).astype(float)
    table = table_of(np.where(switch == 1.0, x, np.nan), switch)
    assert dependence(table, rng)[0, 1] == pytest.approx(0.0, abs=ROUNDING)


def test_single_row_gives_the_identity(rng):
    assert np.array_equal(dependence(table_of([1.0], [2.0], bases="rc"), rng), np.eye(2))


def test_single_column_gives_one(rng):
    assert np.array_equal(dependence(table_of(rng.standard_normal(9)), rng), [[1.0]])


# --- whitening and sampling


def test_whitened_features_are_orthonormal_and_centred_over_the_chosen_rows(rng):
    table = without_cells(mixed_table(rng), 0.2, rng)
    rows = np.sort(rng.choice(ROWS, 150, replace=False))
    for column in features_of(table, rng):
        white = whiten(column, rows)
        block = white.table[white.index]
        np.testing.assert_allclose(block.T @ block, np.eye(block.shape[1]), atol=BASIS)
        np.testing.assert_allclose(block.sum(axis=0), 0.0, atol=BASIS)


def test_whitened_features_of_missing_cells_are_zero(rng):
    table = without_cells(mixed_table(rng), 0.2, rng)
    for position, column in enumerate(features_of(table, rng)):
        white = whiten(column)
        assert (white.table[white.index[~table.observed[position]]] == 0.0).all()


def test_features_have_mean_zero_over_observed_cells_and_are_zero_elsewhere(rng):
    table = without_cells(mixed_table(rng), 0.2, rng)
    for position, column in enumerate(features_of(table, rng)):
        block = column.table[column.index]
        np.testing.assert_allclose(block.sum(axis=0), 0.0, atol=ROUNDING)
        assert (block[~table.observed[position]] == 0.0).all()
        assert (block[table.observed[position]] != 0.0).any()


def test_coefficients_from_a_subsample_are_close_to_those_from_all_rows(rng):
    table = mixed_table(rng, 20_000)
    features = features_of(table, rng)
    part = coefficients(features, subsample(20_000, 5_000, rng))
    assert np.abs(part - coefficients(features)).max() < 0.07  # five standard errors of a correlation


def test_subsample_draws_distinct_ascending_positions(rng):
    chosen = subsample(1000, 300, rng)
    assert chosen.size == 300
    assert (np.diff(chosen) > 0).all()
    assert chosen[0] >= 0
    assert chosen[-1] < 1000


def test_subsample_takes_all_rows_up_to_the_maximum(rng):
    assert subsample(300, 300, rng) is None


def test_same_generator_state_gives_the_same_matrix(rng):
    table = mixed_table(rng)
    assert np.array_equal(dependence(table, generator(), max_rows=100), dependence(table, generator(), max_rows=100))


# --- refusals


@pytest.mark.parametrize(
    "setting", [{"n_features": 0}, {"n_features": 2.5}, {"scale": 0.0}, {"scale": np.inf}, {"max_rows": True}]
)
def test_senseless_setting_is_refused_by_name(rng, setting):
    with pytest.raises(LearnerError, match=next(iter(setting))):
        dependence(table_of([1.0, 2.0]), rng, **setting)


@pytest.mark.parametrize("ask", [dependence, bj.learn_mspn, bj.learn_jpt, bj.learn_wmispn, bj.learn_cutset])
def test_a_seed_stands_for_its_generator(ask, rng):
    table = table_of(rng.normal(size=60), rng.integers(0, 2, 60).astype(float), bases="rc")
    by_seed, by_generator = ask(table, 7), ask(table, np.random.default_rng(7))
    for one, other in zip(by_seed, by_generator, strict=True):
        assert np.array_equal(one, other)


# --- chance


@pytest.mark.parametrize("n_label", [0, 2, 5, 12], ids="{} labels".format)
@pytest.mark.parametrize("n_row", [100, 1000])
def test_independent_columns_of_any_kind_seldom_exceed_chance_and_come_near(rng, n_row, n_label):
    values = rng.integers(0, n_label, (30, n_row)) if n_label else rng.standard_normal((30, n_row))
    features = features_of(table_of(*values, bases=("c" if n_label else "r") * 30), rng)
    above = (coefficients(features) / chance([whiten(column) for column in features]))[np.triu_indices(30, 1)]
    assert (above > 1.0).mean() < 0.02  # of 435 pairs, which share columns
    assert above.max() > 0.7


@pytest.mark.parametrize("n_label", [0, 3], ids="{} labels".format)
def test_no_two_of_many_independent_columns_are_held_together(rng, n_label):
    n_joined = 0
    for _ in range(8):
        values = rng.integers(0, n_label, (70, 150)) if n_label else rng.standard_normal((70, 150))
        features = features_of(table_of(*values, bases=("c" if n_label else "r") * 70), rng)
        white = [whiten(column) for column in features]
        n_joined += np.unique(hold_together(white, chance(white))).size < 70
    # a tenth of the tables; at one in a thousand, all of them: each has 2,415 pairs
    assert n_joined <= 3


def test_chance_is_that_of_the_rows_that_hold_both_columns(rng):
    x = rng.standard_normal((2, 1000))
    x[0, 550:], x[1, :450] = np.nan, np.nan
    white = [whiten(column) for column in features_of(table_of(*x), rng)]
    first, second = (np.sqrt(column.table.shape[1]) for column in white)
    assert chance(white)[0, 1] == pytest.approx((first + second + 1.0) / 10.0)  # 100 rows in common
    assert chance(white)[0, 0] == pytest.approx((2.0 * first + 1.0) / np.sqrt(550))
