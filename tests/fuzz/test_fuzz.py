"""A few of the generated tables in every run of the tests; more where there is time."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.fits import outcome
from tests.fuzz.tables import frames
from tests.strategies import law

seeds = st.integers(0, 2**31 - 1)


@law(40)
@given(frame=frames(), seed=seeds)
def test_generated_table_is_fitted_or_refused_with_an_error_of_ours(frame, seed):
    assert outcome(frame, seed)


@pytest.mark.parametrize("value", [5e-324, 1e-300, -1e-20, 1e300])
def test_a_column_of_one_extreme_number_is_fitted(value):
    assert outcome(pd.DataFrame({"same": [value] * 10}), 0) == "fitted"


def test_a_column_of_numbers_next_to_zero_is_fitted():
    assert outcome(pd.DataFrame({"next": [0.0, 0.0, 5e-324, 0.0, 1e-308, 5e-324]}), 0) == "fitted"


@pytest.mark.parametrize(
    "values", [[0.0, 1.7e308, 5e-324, 1e-300, 1.7e308], [0.0, 1.0, -1e300, 1e-300, 1.7e308]], ids=["positive", "real"]
)
def test_a_column_as_wide_as_numbers_go_is_fitted_or_refused_with_an_error_of_ours(values):
    assert outcome(pd.DataFrame({"wide": values}), 0)


@pytest.mark.slow
@law(1_000)
@given(frame=frames(), seed=seeds)
def test_many_generated_tables_are_fitted_or_refused_with_an_error_of_ours(frame, seed):
    assert outcome(frame, seed)
