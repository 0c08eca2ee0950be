"""Numbers of which many have a unit behind them and many have none, and what else their texts tell."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from bayesjpt.errors import BayesjptWarning
from bayesjpt.table.table import as_table
from bayesjpt.table.written_numbers import number_readings

N = 300
SIZES = np.random.default_rng(5).gamma(4.0, 5.0, N)
BARE = np.arange(N) % 2 == 0
SCALES = {"%": (100.0, "%"), "kg": (1_000.0, " kg"), "g": (1e-3, " g")}


def mixed(factor, unit, bare=BARE):
    """Return a frame whose `bare` cells have no unit, and numbers that are smaller by a factor."""
    cells = [f"{x / factor:.6f}" if is_bare else f"{x:.3f}{unit}" for x, is_bare in zip(SIZES, bare, strict=True)]
    return pd.DataFrame({"x": cells, "y": np.arange(N) % 7})


@pytest.mark.parametrize(("factor", "unit"), SCALES.values(), ids=SCALES)
def test_numbers_of_two_scales_are_not_read_as_of_one(factor, unit):
    (excluded,) = as_table(mixed(factor, unit)).schema.set_aside
    assert f"with and without {unit.strip()}, of two scales: 150 of 300 cells without" in excluded.reason


@pytest.mark.parametrize("unit", ["%", " kg"])
def test_numbers_of_one_scale_are_read_and_those_without_the_unit_are_counted(unit):
    with pytest.warns(BayesjptWarning, match=f"150 of 300 cells without {unit.strip()} in column 'x' are read as if"):
        table = as_table(mixed(1.0, unit))
    np.testing.assert_allclose(table.values[0], SIZES, atol=1e-3)


def test_numbers_of_two_scales_are_read_on_request_with_a_warning():
    with pytest.warns(BayesjptWarning, match="150 of 300 cells without %"):
        assert as_table(mixed(100.0, "%"), kinds={"x": "real"}).schema.columns[0].base == "real"


def test_few_numbers_without_the_unit_are_no_news():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert as_table(mixed(1.0, "%", np.arange(N) % 30 == 0)).schema.columns[0].base == "real"


def test_amounts_that_range_widely_are_recorded_as_they_are_written():
    rng = np.random.default_rng(8)
    amounts = np.round(rng.normal(0.0, 2e5, N), 2)
    written = [f"{x:,.2f}".translate(str.maketrans(",.", ".,")) for x in amounts]
    (column, _) = as_table({"x": written, "y": np.arange(N) % 7}).schema
    assert (column.has_grid, column.resolution) == (True, 0.01)
    assert "recorded to 0.01, as all are written; written with decimal comma" in column.reason


def test_many_digits_of_a_computation_are_no_grid():
    written = [f"{x:.8f} %" for x in np.random.default_rng(8).normal(0.0, 1e3, N)]
    (column, _) = as_table({"x": written, "y": np.arange(N) % 7}).schema
    assert not column.has_grid


def test_plain_numbers_with_another_minus_sign_have_nothing_to_tell():
    written = [f"{x:.1f}".replace("-", "\u2212") for x in np.random.default_rng(8).normal(0.0, 8.0, N)]
    (column, _) = as_table({"x": written, "y": np.arange(N) % 7}).schema
    assert column.reason == "numbers, not all whole; recorded to 0.1"


AMOUNTS = [
    (["10.229 TL", "5.018 TL", "20.111 TL"], 10_229.0),
    (["€12,345", "€45,678", "€7,100"], 12_345.0),
    (["1.459 €", "1.399 €", "1.501 €"], 1.459),
    (["12.345 kg", "45.678 kg", "7.100 kg"], 12.345),
]


@pytest.mark.filterwarnings("ignore:.*reads it otherwise")
@pytest.mark.parametrize(("texts", "expected"), AMOUNTS)
def test_large_amounts_of_money_have_no_three_decimals(texts, expected):
    assert (
        as_table(pd.DataFrame({"x": texts * 9, "y": np.arange(27) % 7}), kinds={"x": "real"}).values[0, 0] == expected
    )


def test_the_decimal_mark_of_other_columns_decides_about_amounts():
    frame = pd.DataFrame({"x": ["10.229 TL", "5.018 TL", "20.111 TL"] * 9, "y": np.arange(27) % 7 + 0.5})
    frame["y"] = frame["y"].astype(str)
    with pytest.warns(BayesjptWarning, match="is read as 10.229, as in column 'y'"):
        assert as_table(frame, kinds={"x": "real"}).values[0, 0] == 10.229


def test_footnotes_are_no_units():
    texts = [f"{1_000 + k:,}{'[a]' if k % 9 == 0 else '[12]' if k % 7 == 0 else ''}" for k in range(90)]
    table = as_table(pd.DataFrame({"x": texts, "y": np.arange(90) % 7}), decimal=".")
    np.testing.assert_array_equal(table.values[0], 1_000.0 + np.arange(90))
    assert table.schema.columns[0].text(1_009.0) == "1,009"


def test_amounts_may_be_told_for_a_time_or_a_thing():
    texts = [f"${240 + 7 * k:,}/mo" for k in range(200)]
    table = as_table(pd.DataFrame({"x": texts, "y": np.arange(200) % 7}), decimal=".")
    np.testing.assert_array_equal(table.values[0], 240.0 + 7.0 * np.arange(200))
    assert [table.schema.columns[0].text(value) for value in table.values[0]] == texts


@pytest.mark.parametrize("texts", [["1/2", "3/4"], ["5/A", "7/A"], ["10/10", "7/10"], ["[5]", "[7]"]])
def test_fractions_codes_and_brackets_are_no_numbers(texts):
    assert number_readings(texts) is None
