"""What becomes of a column, and why."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from bayesjpt import defaults
from bayesjpt.errors import BayesjptWarning, SchemaError
from bayesjpt.table.numeric import MAX_ORDERED_LEVELS, MIN_CELLS_PER_LEVEL
from bayesjpt.table.table import as_table

RELATIVE = 1e-12


def column_of(values, **options):
    """Return the decided Column of one column beside a plain one."""
    frame = pd.DataFrame({"x": values, "plain": np.resize([0.5, 1.0, 1.5], len(values))})
    return as_table(frame, **options).schema.columns[0]


def set_aside_of(values, name="x"):
    """Return the reason why a column is set aside, None where it is not."""
    frame = pd.DataFrame({name: values, "plain": np.resize([0.5, 1.0, 1.5], len(values))})
    reasons = {column.name: column.reason for column in as_table(frame).schema.set_aside}
    return reasons.get(name)


def test_text_is_a_category_with_sorted_labels():
    column = column_of(["pear", "apple", "fig", "fig"])
    assert (column.base, column.labels, column.dtype) == ("category", ("apple", "fig", "pear"), "text")


def test_label_shares_are_smoothed_and_end_with_other():
    column = column_of(["b", "a", "b", "b"])
    total = 4 + 3 / 2
    assert column.frequencies == pytest.approx((1.5 / total, 3.5 / total, 0.5 / total), rel=RELATIVE)


def test_support_of_a_category_is_its_codes_with_other():
    column = column_of(["b", "a", "c"])
    assert column.support == (0.0, column.n_label - 1.0)


@pytest.mark.parametrize("values", [[True, False, True], ["true", "FALSE", "True"]])
def test_booleans_are_a_category_of_false_and_true(values):
    column = column_of(values)
    assert (column.base, column.labels, column.dtype) == ("category", ("False", "True"), "boolean")


def test_yes_and_no_are_two_labels_of_text():
    column = column_of(["yes", "no", "no"])
    assert (column.labels, column.dtype) == (("no", "yes"), "text")


@pytest.mark.parametrize("values", [[0, 3, 7, 7], [0.0, 3.0, 7.0, 7.0], ["0", "3.0", "7", "7e0"]])
def test_whole_numbers_from_zero_are_integers_however_stored(values):
    column = column_of(values)
    assert (column.base, column.support, column.resolution) == ("integer", (0.0, math.inf), 1.0)


def test_integers_with_few_levels_list_them_with_smoothed_shares():
    column = column_of([4, 1, 4, 9])
    assert column.levels == (1.0, 4.0, 9.0)
    assert column.frequencies == pytest.approx((1.5 / 5.5, 2.5 / 5.5, 1.5 / 5.5), rel=RELATIVE)


MANY = defaults.MAX_INTEGER_LEVELS + 1


def _integers(counts, rng):
    """Return the column of the whole numbers from 0, each as often as it says."""
    return column_of(rng.permutation(np.repeat(np.arange(len(counts)), counts)))


@pytest.mark.parametrize("counts", [[4] * MANY, [200] * (MAX_ORDERED_LEVELS + 1)], ids=["rare", "too many"])
def test_integers_with_many_levels_list_none(counts, rng):
    column = _integers(counts, rng)
    assert (column.levels, column.frequencies) == ((), ())


@pytest.mark.parametrize(
    "counts", [[int(MIN_CELLS_PER_LEVEL)] * MANY, [60, 3, 3, 3, 3] * 6], ids=["frequent", "favoured"]
)
def test_integers_with_many_levels_list_them_where_each_is_frequent_or_some_are_favoured(counts, rng):
    column = _integers(counts, rng)
    shares = (np.array(counts) + 0.5) / (sum(counts) + 0.5 * len(counts))
    assert column.levels == tuple(range(len(counts)))
    assert column.frequencies == pytest.approx(shares, rel=RELATIVE)


@pytest.mark.parametrize(("values", "base"), [([4, 1, 4, 9], "integer"), ([4.5, -1.0, 4.5, 9.0], "real")])
def test_numbers_know_their_mean_minimum_and_maximum(values, base):
    column = column_of(values)
    assert column.base == base
    assert (column.mean, column.minimum, column.maximum) == (np.mean(values), min(values), max(values))


@pytest.mark.parametrize("values", [[0, 1, 1, 0], [2, 4, 4, 2], [-1.0, 1.0, 1.0, -1.0], ["2", "4", "4", "2"]])
def test_exactly_two_whole_numbers_are_a_category(values):
    column = column_of(values)
    low, high = sorted({int(float(value)) for value in values})
    assert (column.base, column.labels) == ("category", (str(low), str(high)))
    assert "binary" in column.reason


def test_numeric_labels_are_in_numeric_order():
    assert column_of([10, 9, 9, 10]).labels == ("9", "10")


@pytest.mark.parametrize("kinds", [None, {"x": "integer"}])
def test_whole_numbers_below_zero_are_integers_on_the_whole_line(kinds):
    column = column_of([-20, 10, 30, 40], kinds=kinds)
    assert (column.base, column.resolution, column.support) == ("integer", 1.0, (-math.inf, math.inf))
    assert column.levels == (-20.0, 10.0, 30.0, 40.0)


def test_numbers_without_negatives_are_real_and_positive():
    column = column_of([0.0, 0.25, 1.5, 2.0])
    assert (column.base, column.support) == ("real", (0.0, math.inf))


def test_numbers_with_negatives_are_real_on_the_whole_line():
    assert column_of([-0.5, 0.25, 1.5]).support == (-math.inf, math.inf)


def test_location_and_scale_of_a_real_column_are_median_and_interquartile_range(rng):
    values = rng.normal(size=101)
    column = column_of(values)
    assert column.location == np.median(values)
    assert column.scale == pytest.approx(np.subtract(*np.quantile(values, [0.75, 0.25])), rel=RELATIVE)


def test_resolution_without_a_grid_is_a_thousandth_of_the_interquartile_range(rng):
    column = column_of(rng.normal(size=101))
    assert column.resolution == pytest.approx(column.scale / 1_000.0, rel=RELATIVE)


def test_location_and_scale_leave_an_atom_out(rng):
    continuous = rng.normal(50.0, 1.0, 301)
    column = column_of(np.append(np.zeros(600), continuous))
    assert column.location == np.median(continuous)


def test_scale_is_never_below_the_resolution():
    column = column_of([0.0] * 97 + [0.5, 1.0, -0.5])
    assert column.scale >= column.resolution == 0.5


@pytest.mark.parametrize("factor", [1e-300, 1e-150, 1e150, 1e300])
def test_extreme_magnitudes_are_standardised(rng, factor):
    column = column_of(factor * rng.normal(size=50))
    assert 0.0 < column.resolution < column.scale < math.inf
    assert 0.1 < column.scale / factor < 10.0


def test_values_whose_squares_overflow_in_scale_units_are_refused():
    with pytest.raises(SchemaError, match=r"'x' holds 1e\+300 in row 3"):
        column_of([0.5, 1.5, 1e300, 2.5, 0.5, 1.5, 2.5, 3.5])


def test_whole_floats_beyond_what_float64_counts_are_real():
    assert column_of([1e20, 2.5e20, 3e21]).base == "real"


def test_dates_are_days_since_1970_with_the_resolution_of_a_day():
    column = column_of(pd.to_datetime(["1970-01-02", "1970-01-05", "1970-01-11"]))
    assert (column.base, column.dtype, column.resolution, column.location) == ("real", "datetime", 1.0, 4.0)


def test_dates_have_no_least_one():
    assert column_of(pd.to_datetime(["2001-01-02", "2001-01-05", "2001-02-11"])).support == (-np.inf, np.inf)


def test_iso_dates_in_text_are_dates():
    column = column_of(["1970-01-02", "1970-01-05", "1970-01-11"])
    assert (column.dtype, column.location) == ("datetime", 4.0)


def test_text_that_only_looks_like_a_date_stays_text():
    assert column_of(["2021-02-30", "2021-02-28", "2021-02-28"]).dtype == "text"


@pytest.mark.filterwarnings("ignore:constant columns")
class TestConstant:
    def test_constant_columns_are_kept_with_one_warning_naming_all(self):
        frame = pd.DataFrame({"a": [3, 3], "b": ["x", None], "c": [0.5, 1.5]})
        with pytest.warns(BayesjptWarning, match="'a', 'b'") as caught:
            schema = as_table(frame).schema
        assert len(caught) == 1
        assert schema.names == ("a", "b", "c")

    @pytest.mark.parametrize(("value", "size"), [(7, 7.0), (0, 1.0), (-0.25, 1.0), (-80.5, 80.5), (1e300, 1e300)])
    def test_constant_number_is_an_atom_over_a_uniform_background_of_its_size(self, value, size):
        column = column_of([value] * 3)
        assert (column.base, column.atoms, column.atom_frequencies) == ("real", (float(value),), (1.0,))
        assert column.families == ("uniform",)
        assert column.support == (value - size, value + size)
        assert column.minimum == column.maximum == column.location == value
        assert 0.0 < column.resolution <= column.scale == size

    @pytest.mark.parametrize("values", [[1.7e308] * 3, [1.0, 2.5, -2e301]])
    def test_numbers_that_are_too_large_to_calculate_with_are_named(self, values):
        with pytest.raises(SchemaError, match=r"holds (1\.7e\+308 in row 1|-2e\+301 in row 3); expected numbers of at"):
            column_of(values)

    def test_numbers_that_are_too_close_to_each_other_are_refused(self):
        with pytest.raises(SchemaError, match=r"numbers that differ by .*; expected a spread of at least 1e-301"):
            column_of([1e-308, 5e-324, 3e-310])

    def test_constant_date_is_an_atom(self):
        column = column_of(["1970-01-11"] * 3)
        assert (column.base, column.dtype, column.atoms, column.support) == ("real", "datetime", (10.0,), (0.0, 20.0))

    @pytest.mark.parametrize(("value", "labels"), [("x", ("x",)), (True, ("True",))])
    def test_constant_text_or_boolean_is_a_category_with_one_label(self, value, labels):
        column = column_of([value] * 3)
        assert (column.base, column.labels) == ("category", labels)

    def test_constant_of_few_rows_with_missing_cells_is_kept(self):
        assert column_of([None, 2.5, None]).atoms == (2.5,)

    def test_constant_asked_for_as_an_integer_is_one_level(self):
        column = column_of([4, 4], kinds={"x": "integer"})
        assert (column.base, column.levels, column.atoms) == ("integer", (4.0,), ())

    @pytest.mark.parametrize("base", ["real", None])
    def test_constant_that_was_asked_for_is_an_atom_too(self, base):
        assert column_of([4, 4], kinds={"x": base} if base else None).atoms == (4.0,)


@pytest.mark.parametrize(("text", "label"), [("2020-01-05", "2020-01-05"), ("2020-01-05 06:30", "2020-01-05T06:30")])
def test_date_asked_for_as_a_label_is_written_without_trailing_zeros_and_comes_back(text, label):
    table = as_table(pd.DataFrame({"x": [text, text]}), kinds={"x": "category"})
    assert table.schema.columns[0].labels == (label,)
    assert table.to_frame()["x"].tolist() == [pd.Timestamp(text)] * 2
    for again in (pd.DataFrame({"x": [text]}), table.to_frame()):
        assert (as_table(again, schema=table.schema).values == 0.0).all()


def test_codes_with_leading_zeros_are_labels():
    assert column_of(["007", "010", "010"]).labels == ("007", "010")


def test_declared_categories_keep_their_order_and_unused_labels():
    column = column_of(pd.Categorical(["low", "high", "low"], categories=["low", "mid", "high"]))
    assert column.labels == ("low", "mid", "high")
    assert column.n_distinct == 2


@pytest.mark.parametrize("token", ["", "  ", "NA", "na", "NaN", "nan", "null", "NULL", "?", None, float("nan")])
def test_missing_tokens_of_text_are_missing(token):
    column = column_of(["a", token, "b"])
    assert (column.labels, column.n_missing) == (("a", "b"), 1)


@pytest.mark.parametrize("text", ["Na", "none", "-", "unknown"])
def test_texts_that_are_no_missing_token_are_labels(text):
    assert text in column_of(["a", text, "b"]).labels


def test_category_of_mostly_numbers_names_the_first_that_is_none():
    assert "'many' in row 31" in column_of([str(i) for i in range(15)] * 2 + ["many"]).reason


@pytest.mark.parametrize("token", ["None", "none", "-", "unknown", "#DIV/0!"])
def test_tokens_among_numbers_are_missing_with_one_warning(token):
    with pytest.warns(BayesjptWarning, match=f"{token!r} in column 'x'") as caught:
        column = column_of(["1.5", token, "2", "3"])
    assert len(caught) == 1
    assert (column.base, column.n_missing) == ("real", 1)


def test_token_among_codes_with_leading_zeros_is_a_label():
    assert column_of(["007", "010", "-"]).labels == ("-", "007", "010")


@pytest.mark.parametrize("texts", [["1.5", "None", "2"], ["None"]])
def test_tokens_among_numbers_of_new_rows_are_missing_with_one_warning(texts):
    schema = as_table(pd.DataFrame({"x": [1.5, 2.0, 3.0]})).schema
    with pytest.warns(BayesjptWarning, match="'None' in column 'x'"):
        table = as_table(pd.DataFrame({"x": texts}), schema=schema)
    assert table.observed[0].tolist() == [text != "None" for text in texts]


@pytest.mark.parametrize("token", ["-", "unknown", "None", "k. A."])
@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y"])
def test_rows_of_dates_with_tokens_are_read_again_under_their_own_schema(form, token):
    days = pd.Series(pd.date_range("2019-03-05", periods=40).strftime(form))
    frame = pd.DataFrame({"day": days.where(days.index % 3 > 0, token), "x": np.arange(40) / 7})
    with pytest.warns(BayesjptWarning, match="read as missing among numbers"):
        table = as_table(frame)
    with pytest.warns(BayesjptWarning, match=f"read as missing: '{token}' in column 'day'"):
        again = as_table(frame, schema=table.schema)
    assert np.array_equal(again.observed, table.observed)
    assert np.array_equal(again.values, table.values)


def test_every_column_has_a_reason():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "y"], "c": [0.5, 1.5, -2.0], "d": [True, False, True]})
    assert all(column.reason for column in as_table(frame).schema)


class TestSetAside:
    def test_texts_that_are_all_distinct_are_set_aside(self):
        assert "identifier" in set_aside_of([f"name {i}" for i in range(30)])

    def test_texts_that_are_nearly_all_distinct_are_set_aside(self):
        assert "identifier" in set_aside_of(["frog"] + [f"name {i}" for i in range(29)] + ["frog"])

    def test_texts_with_more_labels_than_a_category_are_set_aside_naming_the_counts(self):
        reason = set_aside_of([f"name {i % 101}" for i in range(500)])
        assert "101 labels" in reason
        assert str(defaults.MAX_LABELS) in reason

    def test_text_column_of_mostly_numbers_is_set_aside_naming_the_first_that_is_none(self):
        reason = set_aside_of([str(i % 200) for i in range(500)] + ["many"] * 50)
        assert "'many' in row 501" in reason

    @pytest.mark.parametrize("start", [0, 1, 1_000, -7])
    @pytest.mark.parametrize("step", [1, -1])
    def test_running_number_in_row_order_is_set_aside(self, start, step):
        assert "running number" in set_aside_of(np.arange(start, start + 50)[::step])

    def test_running_number_with_dropped_rows_is_set_aside(self, rng):
        assert "running number" in set_aside_of(np.sort(rng.permutation(1_000)[:700]))

    def test_running_number_in_any_order_is_set_aside_by_its_name(self, rng):
        assert "running number" in set_aside_of(rng.permutation(50), "id")

    def test_distinct_whole_numbers_out_of_order_are_kept(self, rng):
        assert set_aside_of(rng.permutation(50)) is None

    def test_distinct_texts_of_mostly_numbers_are_set_aside_naming_the_first_that_is_none(self):
        reason = set_aside_of([f"{i}.5" for i in range(50)] + ["many", "few", "none at all", "a lot"])
        assert "identifier" in reason
        assert "'many' in row 51" in reason

    @pytest.mark.parametrize(
        "name",
        ["id", "Patient ID", "sample_id", "customerId", "uuid", "id_number", "key", "__index_level_0__", "Unnamed: 0"]
        + ["Kundennummer", "Auftragsnr.", "MLS#", "N° dossier", "phone number"],
    )
    def test_distinct_whole_numbers_with_an_identifier_name_are_set_aside(self, rng, name):
        assert "identifier by its name" in set_aside_of(rng.choice(10**6, 60, replace=False), name)

    @pytest.mark.parametrize(
        "name", ["grid", "paid", "x", "keyboard_price", "No of inhabitants", "price_index", "number of rooms"]
    )
    def test_distinct_whole_numbers_with_another_name_are_kept(self, rng, name):
        assert set_aside_of(rng.choice(10**6, 60, replace=False), name) is None

    def test_repeated_whole_numbers_with_an_identifier_name_are_kept(self, rng):
        assert set_aside_of(rng.integers(0, 15, 60), "shop_id") is None

    def test_distinct_measurements_are_kept(self, rng):
        assert set_aside_of(rng.normal(size=200), "id") is None

    @pytest.mark.parametrize("values", [list(range(10)), [f"name {i}" for i in range(10)]])
    def test_few_rows_are_kept_though_distinct(self, values):
        assert set_aside_of(values) is None

    def test_column_that_kinds_names_is_kept(self):
        assert column_of(np.arange(50), kinds={"x": "integer"}).base == "integer"


class TestKinds:
    def test_category_of_numbers_has_their_labels_in_numeric_order(self):
        assert column_of([10, 9, 2, 9], kinds={"x": "category"}).labels == ("2", "9", "10")

    def test_real_of_whole_numbers_finds_their_grid(self):
        column = column_of([10, 20, 30, 40, 70], kinds={"x": "real"})
        assert (column.base, column.resolution) == ("real", 10.0)

    def test_integer_of_two_values_is_an_integer(self):
        assert column_of([0, 1, 1], kinds={"x": "integer"}).base == "integer"

    def test_integer_of_codes_with_leading_zeros_reads_them_as_numbers(self):
        assert column_of(["007", "010", "011"], kinds={"x": "integer"}).levels == (7.0, 10.0, 11.0)

    def test_real_of_a_constant_has_positive_resolution_and_scale(self):
        column = column_of([2.0, 2.0], kinds={"x": "real"})
        assert column.base == "real"
        assert 0.0 < column.resolution <= column.scale

    @pytest.mark.parametrize("kind", ["excluded", "aside"])
    def test_excluded_leaves_a_column_out_and_so_does_what_it_was_called_before(self, kind):
        frame = pd.DataFrame({"x": [1, 2, 3], "y": [0.5, 1.5, 2.5]})
        schema = as_table(frame, kinds={"x": kind}).schema
        assert (schema.names, schema.set_aside[0].name) == (("y",), "x")

    @pytest.mark.parametrize("kind", ["real", "integer"])
    def test_number_asked_of_text_names_the_text_and_its_row(self, kind):
        with pytest.raises(SchemaError, match=f"'{kind}' but column 'x' holds 'b' in row 2"):
            column_of(["1", "b", "3"], kinds={"x": kind})

    @pytest.mark.parametrize(("values", "shown"), [([1, 2.5, 3], "2.5 in row 2"), ([1, 2, -3.5], "-3.5 in row 3")])
    def test_integer_asked_of_other_numbers_names_the_value_and_its_row(self, values, shown):
        with pytest.raises(SchemaError, match=f"column 'x' holds {shown}"):
            column_of(values, kinds={"x": "integer"})

    def test_category_asked_of_many_labels_has_them_all(self):
        n = defaults.MAX_FORCED_LABELS
        assert column_of([f"name {i:04}" for i in range(n)], kinds={"x": "category"}).n_label == n + 1

    def test_category_asked_of_too_many_labels_names_the_counts_and_suggests_an_identifier(self):
        with pytest.raises(
            SchemaError, match="'x' has 1001 labels in 1001 observed cells; expected at most 1000"
        ) as error:
            column_of([f"name {i}" for i in range(1_001)], kinds={"x": "category"})
        assert "an identifier or a text" in str(error.value)
        assert "kinds={'x': 'excluded'}" in str(error.value)

    def test_category_asked_of_numbers_beyond_2_53_keeps_every_digit(self):
        texts = [str(2**53 + 1 + i % 3) for i in range(30)]
        assert column_of(texts, kinds={"x": "category"}).labels == tuple(sorted(set(texts)))

    def test_unknown_column_in_kinds_suggests_the_closest(self):
        with pytest.raises(SchemaError, match=r"'alchohol'.*'alcohol'"):
            as_table(pd.DataFrame({"alcohol": [1.5, 2.5], "color": ["a", "b"]}), kinds={"alchohol": "real"})

    def test_unknown_kind_lists_the_kinds(self):
        with pytest.raises(SchemaError, match=r"'cardinal'.*category, integer, real.*excluded"):
            column_of([1, 2, 3], kinds={"x": "cardinal"})


def test_row_order_does_not_change_the_schema(rng):
    n = 200
    frame = pd.DataFrame(
        {
            "text": rng.choice(["b", "a", None, "c"], n),
            "count": rng.poisson(3.0, n),
            "real": np.round(rng.normal(size=n), 2),
            "atom": np.where(rng.random(n) < 0.5, 0.0, rng.normal(size=n)),
            "row_id": np.arange(n),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )
    shuffled = frame.sample(frac=1.0, random_state=1)
    assert as_table(frame).schema == as_table(shuffled).schema


class TestCodes:
    def test_few_fractions_far_apart_are_a_code(self):
        column = column_of([0.25, 0.5, 1.0, 2.0, 4.0] * 30)
        assert column.base == "category"
        assert column.labels == ("0.25", "0.5", "1", "2", "4")

    def test_few_fractions_on_a_full_grid_are_a_measurement(self):
        assert column_of([0.5, 1.0, 1.5, 2.0, 2.5] * 30).base == "real"

    def test_fractions_that_hardly_repeat_are_a_measurement(self):
        assert column_of([0.25, 0.5, 1.0, 2.0, 4.0] * 3).base == "real"


def test_tokens_are_told_by_column_and_kept_among_labels():
    frame = pd.DataFrame({"size": ["1.5", "-", "2.5", "3"], "x": ["-", "1", ".", "2.5"], "kind": list("ab-a")})
    with pytest.warns(BayesjptWarning, match=r"among numbers: '-' in columns 'size', 'x'; '\.' in column 'x'"):
        table = as_table(frame)
    assert table.schema.columns[2].labels == ("-", "a", "b")  # it may say "not applicable"
    assert as_table(pd.DataFrame({"kind": ["-"]}), schema=table.schema).observed[2].all()


def test_a_token_that_training_does_not_have_is_missing_among_labels_of_new_rows():
    schema = as_table(pd.DataFrame({"kind": list("abab"), "x": [1.5, 2, 3, 4]})).schema
    with pytest.warns(BayesjptWarning, match="read as missing: '-' in column 'kind'"):
        assert not as_table(pd.DataFrame({"kind": ["-", "-"]}), schema=schema).observed[0].any()
    with pytest.raises(SchemaError, match="unseen label '-'"):
        as_table(pd.DataFrame({"kind": ["-"]}), schema=schema, unseen="error")


def test_numbers_in_several_units_are_left_out_for_that_reason():
    weights = [f"{n / 2} kg" for n in range(1, 30)] + [f"{n} g" for n in range(1, 30)]
    prices = [f"{sign}{n}.50" for n in range(29) for sign in ("$", "€")]
    table = as_table(pd.DataFrame({"weight": weights, "price": prices, "x": np.arange(58) / 3}))
    reasons = {column.name: column.reason for column in table.schema.set_aside}
    assert reasons["weight"].startswith("numbers in g and kg: 58 texts")
    assert reasons["price"].startswith("numbers in $ and €: 58 texts")


@pytest.mark.parametrize("values", [["true", "false", "true"], ["TRUE", "FALSE", "FALSE"]])
def test_true_and_false_of_one_spelling_keep_it(values):
    column = column_of(values)
    assert column.labels == tuple(sorted(set(values)))
    assert column.is_yes_no
