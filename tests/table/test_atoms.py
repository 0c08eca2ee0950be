"""Values that repeat far beyond chance: found where they are, not found where people round."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.table import atoms
from bayesjpt.table.atoms import MAX_ATOMS
from bayesjpt.table.table import as_table

N = 1_000


def found_in(values):
    """Return the atoms of a column of values."""
    distinct, counts = np.unique(np.asarray(values, float), return_counts=True)
    return distinct[atoms.find(distinct, counts)].tolist()


def column_of(values, **options):
    frame = pd.DataFrame({"x": values, "plain": np.resize([0.5, 1.0, 1.5], len(values))})
    return as_table(frame, **options).schema.columns[0]


class TestFound:
    @pytest.mark.parametrize("share", [0.03, 0.5, 0.97])
    def test_zeros_of_an_amount(self, rng, share):
        assert found_in(np.where(rng.random(N) < share, 0.0, rng.lognormal(7.0, 1.0, N).round(2))) == [0.0]

    def test_censored_maximum(self, rng):
        prices = np.minimum(rng.gamma(5.0, 5.5, 506).round(1), 50.0)
        assert 14 < (prices == 50.0).sum() < 40
        assert found_in(prices) == [50.0]

    def test_both_ends_of_a_scale(self, rng):
        assert found_in(np.clip(rng.normal(0.5, 0.5, N), 0.0, 1.0).round(3)) == [0.0, 1.0]

    @pytest.mark.parametrize("code", [-999.0, 99_999.0, 1e30])
    def test_code_far_from_all_measurements(self, rng, code):
        assert found_in(np.append(rng.gamma(9.0, 2.0, N).round(1), np.full(7, code))) == [code]

    def test_code_beside_few_different_measurements(self, rng):
        assert found_in(np.append(rng.integers(2, 10, N) / 2.0, np.full(30, -999.0))) == [-999.0]

    def test_several_codes_side_by_side(self, rng):
        codes = np.repeat([-99.0, 997.0, 998.0, 999.0], [9, 40, 6, 11])
        assert found_in(np.append(rng.gamma(9.0, 0.3, N).round(1), codes)) == [-99.0, 997.0, 998.0, 999.0]

    def test_value_between_the_others(self, rng):
        assert found_in(np.append(rng.normal(size=N), np.full(200, 0.125))) == [0.125]

    def test_several_values_far_ahead_of_the_rest(self, rng):
        limits = rng.choice([0.0, 10.0, 25.0], 300)
        assert found_in(np.append(rng.uniform(1.0, 50.0, N).round(2), limits)) == [0.0, 10.0, 25.0]

    def test_zeros_stored_as_a_millionth(self, rng):
        assert found_in(np.append(rng.gamma(3.0, 40.0, N).round(), np.full(80, 1e-6))) == [1e-6]

    @pytest.mark.parametrize("scale", [1e-300, 1e-5, 1e300])
    def test_at_every_magnitude(self, rng, scale):
        values = scale * rng.gamma(3.0, 1.0, N)
        assert found_in(np.append(values, np.zeros(300))) == [0.0]


class TestNotFound:
    @pytest.mark.parametrize("steps", [2, 5, 20, 100, 1_000, 30_000])
    @pytest.mark.parametrize(
        "draw",
        [
            lambda rng, n: rng.normal(size=n),
            lambda rng, n: rng.random(n),
            lambda rng, n: rng.exponential(size=n),
            lambda rng, n: rng.gamma(0.3, 1.0, n),
            lambda rng, n: rng.lognormal(0.0, 1.5, n),
            lambda rng, n: rng.standard_cauchy(n),
            lambda rng, n: rng.beta(0.5, 0.5, n),
            lambda rng, n: np.where(rng.random(n) < 0.9, rng.normal(size=n), rng.normal(30.0, 2.0, n)),
        ],
    )
    def test_rounding_a_continuous_column_makes_none(self, rng, draw, steps):
        for n in (60, 600, 6_000):
            values = draw(rng, n)
            width = np.subtract(*np.quantile(values, [0.75, 0.25])) / steps
            assert found_in(np.rint(values / width) * width) == []

    def test_round_numbers_that_people_prefer(self, rng):
        values = rng.normal(50.0, 15.0, 5_000).round(1)
        heaped = np.where(rng.random(5_000) < 0.7, 5.0 * np.rint(values / 5.0), values)
        assert found_in(heaped) == []

    def test_a_coarse_grid_with_some_finer_values(self, rng):
        values = np.append(rng.gamma(20.0, 0.5, 5_000).round(1), rng.gamma(20.0, 0.5, 200).round(4))
        assert found_in(values) == []

    @pytest.mark.parametrize("values", [[3.0], [1.0, 2.0], [0.0] * 50 + [1.0], list(range(12)) * 3 + [4] * 900])
    def test_few_different_values(self, values):
        assert found_in(values) == []

    def test_doublings(self, rng):
        assert found_in(2.0 ** rng.integers(0, 9, N)) == []

    def test_a_rare_repetition(self, rng):
        assert found_in(np.append(rng.normal(size=N), [0.5] * 4)) == []

    def test_more_values_than_atoms_may_be(self, rng):
        prices = np.arange(1.0, MAX_ATOMS + 2.0) * 7.0
        assert found_in(np.append(rng.uniform(0.0, 99.0, N), rng.choice(prices, 5 * N))) == []


class TestFewFractions:
    """Of few fractions each has a probability of its own: nobody means a density by working 0.8 of the hours."""

    def test_each_is_an_atom(self, rng):
        column = column_of(rng.choice([0.5, 0.8, 1.0], N))
        assert (column.base, column.atoms) == ("real", (0.5, 0.8, 1.0))
        assert "only 3 different ones: atoms" in column.reason

    def test_half_stars_too(self, rng):
        assert len(column_of(rng.choice(np.arange(2, 11) / 2.0, N)).atoms) == 9

    def test_their_probabilities_are_the_shares_and_nothing_lies_between_or_beyond(self, rng):
        share = np.array([0.3, 0.4, 0.3])
        hours = rng.choice([0.5, 0.8, 1.0], 400, p=share)
        table = as_table(pd.DataFrame({"hours": hours, "y": hours + rng.normal(size=400)}))
        post = bj.fit(table, seed=1, n_structures=1, chains=1, tune=30, draws=20, progress=False)
        found = [float(post.probability(f"hours = {value}").mean()) for value in (0.5, 0.8, 1.0)]
        np.testing.assert_allclose(found, [(hours == value).mean() for value in (0.5, 0.8, 1.0)], atol=0.03)
        assert float(post.probability("hours > 1 or hours < 0.5").mean()) < 0.02

    @pytest.mark.parametrize("values", [np.linspace(0.5, 4.5, 11), [0.5, 0.8, 1.0]])
    def test_more_of_them_or_of_few_rows_are_none(self, rng, values):
        assert column_of(rng.choice(values, 20 * len(values) - 1)).atoms == ()

    def test_who_asks_for_a_real_column_gets_a_density(self, rng):
        assert column_of(rng.choice([0.5, 0.8, 1.0], N), kinds={"x": "real"}).atoms == ()


class TestColumns:
    def test_real_column_lists_its_atoms_with_their_shares_among_each_other(self, rng):
        values = np.concatenate([rng.uniform(1.0, 49.0, N).round(2), np.zeros(300), np.full(100, 50.0)])
        column = column_of(values)
        assert column.atoms == (0.0, 50.0)
        assert column.atom_frequencies == pytest.approx((300.5 / 401.0, 100.5 / 401.0))

    def test_reason_names_the_atom_with_its_share_and_the_next(self, rng):
        values = np.append(np.arange(1.0, 101.0) * 1.5 + 0.1, np.zeros(900))
        assert "0 holds 90% of the cells, the next value 0.1%: an atom" in column_of(rng.permutation(values)).reason

    def test_resolution_location_and_scale_leave_atoms_out(self, rng):
        amounts = 5.0 * rng.integers(10, 400, N) + 0.0
        column = column_of(np.append(amounts / 100.0, np.full(900, 1e-6)))
        assert (column.resolution, column.location) == (0.05, np.median(amounts / 100.0))

    def test_whole_amounts_with_an_atom_are_real_on_their_grid(self, rng):
        column = column_of(np.append(rng.integers(100, 90_000, 300), np.zeros(3_000)))
        assert (column.base, column.resolution, column.atoms, column.support) == ("real", 1.0, (0.0,), (0.0, np.inf))
        assert "whole numbers from 0 to" in column.reason

    def test_counts_with_many_zeros_stay_integers(self, rng):
        assert column_of(rng.poisson(np.where(rng.random(N) < 0.8, 0.0, 30.0))).base == "integer"

    def test_years_of_age_with_a_far_code_are_real_with_it_as_atom(self, rng):
        column = column_of(np.append(rng.integers(18, 90, N), np.full(20, -999)))
        assert (column.base, column.atoms) == ("real", (-999.0,))

    def test_grades_with_a_far_code_stay_integers(self, rng):
        assert column_of(np.append(rng.integers(1, 11, N), np.full(20, 999))).base == "integer"

    def test_dates_may_have_an_atom(self, rng):
        days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), unit="D")
        column = column_of(days.append(pd.DatetimeIndex(["1900-01-01"] * 30)))
        assert column.atoms == (-25_567.0,)
        assert "1900-01-01 holds" in column.reason

    def test_real_column_on_request_has_its_atoms(self, rng):
        column = column_of(rng.poisson(np.where(rng.random(N) < 0.8, 0.0, 90.0)), kinds={"x": "real"})
        assert (column.base, column.atoms) == ("real", (0.0,))

    def test_integers_and_labels_have_none(self):
        for values in ([1, 2, 3], ["a", "b", "b"]):
            assert column_of(values).atoms == column_of(values).atom_frequencies == ()
