"""Probabilities of types: which types a column may have, what speaks for each, and how it is told."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.queries.type_evidence import NOTHING, TypeEvidence
from bayesjpt.queries.type_features import DISCRETE, NAME, describe, least_number
from bayesjpt.queries.type_probability import (
    EVIDENCE,
    OF_LABELS,
    ORDER,
    REPEATED,
    WEIGHTS,
    column_features,
    judged,
    numeric_probability,
    type_probability,
)
from bayesjpt.queries.types import types
from bayesjpt.table.schema import Column
from tests import examples as ex

EXACT = 1e-12
N_ROW = 120


def integers(least: float, largest: float, n_distinct: int) -> Column:
    return Column("x", "integer", (-np.inf, np.inf), minimum=least, maximum=largest, n_distinct=n_distinct)


def labels(*names: str, dtype: str = "text") -> Column:
    support = (0.0, float(len(names)))
    return Column("x", "category", support, labels=names, n_distinct=len(names), dtype=dtype)


# --- which types a column may have


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (integers(0.0, 60.0, 50), {"real", "positive", "count", "ordinal", "nominal"}),
        (integers(-5.0, 60.0, 50), {"real", "ordinal", "nominal"}),
        (integers(0.0, 900.0, 500), {"real", "positive", "count"}),
        (integers(0.0, 1e10, 500), {"real", "positive"}),
        (integers(0.0, 1.0, 2), {"count", "ordinal", "nominal", "binary"}),
        (labels("a", "b", "c"), {"ordinal", "nominal"}),
        (labels("yes", "no"), {"nominal", "binary"}),
        (labels("1", "2", "7"), {"real", "positive", "count", "ordinal", "nominal"}),
        (labels("0.25", "0.5", "4", dtype="number"), {"real", "positive", "ordinal", "nominal"}),
        (
            Column("x", "real", (-np.inf, np.inf), resolution=0.1, minimum=-1.0, maximum=1.0, n_distinct=500),
            {"real"},
        ),
    ],
    ids=lambda value: value.reason if isinstance(value, Column) else "",
)
def test_values_decide_which_types_a_column_may_have(column, expected):
    assert set(describe(column).features) == expected


def test_numbers_that_repeat_little_are_less_likely_labels():
    rng = np.random.default_rng(1)
    few, many = (
        bj.as_table(pd.DataFrame({"x": np.tile(np.arange(1, 13), n), "y": rng.normal(size=12 * n)})) for n in (3, 16)
    )
    posts = [
        replace(bj.Posterior.from_circuit(bj.learn_mspn(table, rng), table.schema), reference=table)
        for table in (few, many)
    ]
    little, often = ({"ordinal": 0.0, "nominal": 0.0} | types(post)["x"].probabilities for post in posts)
    assert little["ordinal"] + little["nominal"] < often["ordinal"] + often["nominal"]


def test_two_values_called_binary_are_surely_so():
    frame = pd.DataFrame({"smokes": ["yes", "no", "no"] * 40, "side": ["left", "right"] * 60, "died": [0, 0, 1] * 40})
    table = bj.as_table(frame)
    found = types(bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema))
    assert [(column.type, column.certainty) for column in found] == [("binary", "sure")] * 3


def test_two_rows_make_no_column_sure_to_be_binary():
    table = bj.as_table(pd.DataFrame({"age": [40, 200], "segment": ["pro", "basic"], "x": [0.5, 1.5]}))
    post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
    found = types(replace(post, reference=table))
    assert found["age"].type in ("positive", "count", "real")
    assert found["segment"].certainty != "sure"


def test_a_few_amounts_in_one_notation_are_numbers_to_the_types():
    frame = pd.DataFrame({"discount": ["0 %", "2,5 %", "5 %", "10 %"] * 30})
    column = bj.as_table(frame).schema.columns[0]
    assert sorted(describe(column).numbers.tolist()) == [0.0, 2.5, 5.0, 10.0]
    assert "positive" in describe(column).features


def test_ratings_that_are_rare_at_both_ends_look_less_like_counts_than_numbers_that_begin_at_0():
    shares = (0.005, 0.035, 0.33, 0.44, 0.16, 0.029, 0.001)

    def thins_out(least: int, shares: tuple[float, ...]) -> float:
        levels = tuple(float(least + i) for i in range(len(shares)))
        ends = {"minimum": levels[0], "maximum": levels[-1], "n_distinct": len(levels)}
        column = Column("x", "integer", (0.0, math.inf), levels=levels, frequencies=shares, **ends)
        return describe(column).features["count"]["thins out"]

    assert thins_out(0, shares) == thins_out(1, shares) == 3.0
    assert thins_out(3, shares) == pytest.approx(1.5)
    assert thins_out(3, tuple(sorted(shares, reverse=True))) == 3.0
    assert thins_out(3, tuple(sorted(shares))) == 0.0


def test_the_least_number_is_that_of_labels_too_that_are_numbers():
    made = {"price": [9.99, 4.99, 14.99], "fee": [0.0, 3.99, 9.95], "kind": ["a", "b", "c"]}
    frame = pd.concat([pd.DataFrame(made)] * 30, ignore_index=True)
    columns = bj.as_table(frame, kinds=dict.fromkeys(("price", "fee"), "category")).schema.columns
    assert [least_number(column) for column in columns[:2]] == [4.99, 0.0]
    assert math.isnan(least_number(columns[2]))


def test_numbers_with_known_ends_are_intervals():
    share = Column("x", "real", (0.0, 1.0), resolution=0.01, minimum=0.1, maximum=0.9, n_distinct=80)
    assert set(describe(share).features) == {"interval", "ordinal", "nominal"}


def test_the_more_labels_lie_on_a_scale_the_more_it_says_and_codes_say_nothing():
    told = {
        name: describe(labels(*names)).features["ordinal"]["labels on a scale"]
        for name, names in {
            "sizes": ("small", "medium", "large"),
            "months": ("jan", "feb", "mar", "apr"),
            "numbered": ("2", "4", "5more"),
            "colours": ("red", "green", "blue"),
            "codes": ("A11", "A12", "A13"),
            "letters": ("A", "B", "C"),
        }.items()
    }
    three = 2.0 * math.log2(3)
    assert told == {"sizes": three, "months": 4.0, "numbered": three, "colours": 0.0, "codes": 0.0, "letters": 0.0}


def test_a_name_speaks_for_numbers_as_it_says_and_not_for_labels_or_two_values():
    def told(column: Column, name: str) -> set[str]:
        described = describe(replace(column, name=name)).features
        return {type_ for type_, own in described.items() if NAME in own}

    stars = integers(1.0, 5.0, 5)
    assert told(stars, "Number of rooms") == {"count"}
    assert told(stars, "Priorität") == {"ordinal"}
    assert told(stars, "Altura (cm)") == {"real", "positive"}
    assert told(stars, "x") == set()
    assert told(integers(-5.0, 5.0, 8), "number of rooms") == set()  # no count with numbers below zero
    assert told(integers(0.0, 1.0, 2), "rating") == set()
    assert told(labels("a", "b", "c"), "rating") == set()


def test_a_single_label_is_as_well_one_of_two_as_one_of_many():
    found = judged(labels("C"), describe(labels("C")).features, NOTHING)
    assert found.most_probable == "constant"
    assert found.probabilities == {"nominal": 0.5, "binary": 0.5}


def test_every_feature_has_a_weight_and_every_weight_a_feature():
    columns = (
        integers(0.0, 60.0, 50), integers(-5.0, 60.0, 50), integers(0.0, 1.0, 2), labels("a", "b", "c"),
    )  # fmt: skip
    named = {name for column in columns for own in describe(column).features.values() for name in own}
    assert named | {EVIDENCE, OF_LABELS, ORDER, REPEATED, NAME} == set(WEIGHTS)


# --- what becomes of features


def test_probabilities_are_those_of_the_sums_of_weighted_features():
    found = judged(
        labels("a", "b", "c"), {"ordinal": {"f": 2.0, "g": -1.0}, "nominal": {"f": 1.0}}, NOTHING, {"f": 0.7}
    )
    assert found.probabilities["ordinal"] == pytest.approx(math.exp(1.4) / (math.exp(1.4) + math.exp(0.7)), rel=EXACT)
    assert sum(found.probabilities.values()) == pytest.approx(1.0, rel=EXACT)
    assert found.because.startswith("ordinal over nominal by 0.7 nats (f +0.7)")


def test_other_types_that_are_close_are_not_said_together():
    found = judged(integers(0.0, 60.0, 50), {"count": {"f": 0.1}, "positive": {}}, NOTHING, {"f": 1.0})
    assert found.most_probable == "count"


@pytest.mark.parametrize(
    ("nats", "words"), [(40.0, "for it by 40 nats"), (-7.0, "against it by 7 nats"), (0.1, "neither")]
)
def test_reason_says_what_the_cells_speak_for(nats, words):
    evidence = TypeEvidence({"count": nats, "positive": 0.0}, math.nan, 200, 3.0)
    found = judged(integers(0.0, 60.0, 50), {"count": {"f": 1.0}, "positive": {}}, evidence, {"f": 1.0})
    assert words in found.because
    assert "200 cells in 3 sub-populations" in found.because


# --- from a posterior


@pytest.fixture(scope="module")
def fitted():
    """Return the estimate for two groups of rows, and levels that follow them or do not."""
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(6), N_ROW // 6)
    turned = np.array([3, 0, 5, 1, 4, 2])
    frame = pd.DataFrame(
        {
            "place": rng.normal(10.0 * group, 0.5).round(2),
            "ordered": 1 + np.clip(group + rng.integers(-1, 2, N_ROW), 0, 5),
            "coded": 1 + turned[np.clip(group + rng.integers(-1, 2, N_ROW), 0, 5)],
            "colour": np.array(["red", "green", "blue"])[rng.integers(0, 3, N_ROW)],
            "day": pd.date_range("2024-01-01", periods=N_ROW),
            "flag": rng.integers(0, 2, N_ROW),
            "same": 7,
        }
    )
    with pytest.warns(bj.errors.BayesjptWarning, match="constant"):
        table = bj.as_table(frame)
    circuit = bj.learn_mspn(table, np.random.default_rng(1), min_rows=20)
    post = bj.Posterior.from_circuit(circuit, table.schema)
    return replace(post, reference=table)


def test_levels_that_follow_other_columns_are_rather_ordinal_than_the_same_levels_out_of_order(fitted):
    result = types(fitted)
    ordered, coded = result["ordered"].probabilities, result["coded"].probabilities
    assert ordered["ordinal"] / ordered["nominal"] > 4.0 * coded["ordinal"] / coded["nominal"]
    assert result["ordered"].type == "ordinal"
    assert ORDER in result["ordered"].because


def test_dates_and_constants_are_set_apart_by_rule(fitted):
    result = types(fitted)
    assert (result["day"].type, result["day"].probabilities) == ("date", {})
    assert result["same"].type == "constant"
    assert result["flag"].type == "binary"


def test_probabilities_of_each_column_add_up_to_one(fitted):
    for column in types(fitted):
        if column.probabilities:
            assert sum(column.probabilities.values()) == pytest.approx(1.0, rel=EXACT)
            assert numeric_probability(column.probabilities) <= 1.0 + EXACT


def test_the_same_posterior_has_the_same_probabilities(fitted):
    assert type_probability(fitted, 1) == type_probability(fitted, 1)


def test_evidence_counts_by_the_logarithm_of_the_nats_behind(fitted):
    features, evidence = column_features(fitted, 1)
    best = max(evidence.nats.values())
    for name, nats in evidence.nats.items():
        evidence_of = OF_LABELS if name in DISCRETE else EVIDENCE
        assert features[name][evidence_of] == pytest.approx(-math.log1p(best - nats), rel=EXACT)


def test_numbers_that_hardly_repeat_are_no_labels(rng):
    n = 30
    frame = pd.DataFrame(
        {
            "length": np.sort(rng.normal(10.0, 2.0, n)).round(2) + 0.01 * np.arange(n),
            "age": rng.permutation(np.arange(20, 20 + n)),
            "stars": rng.integers(1, 6, n),
            "year": rng.permutation(np.arange(1990, 1990 + n)),
        }
    )
    table = bj.as_table(frame)
    estimate = bj.Posterior.from_circuit(bj.learn_mspn(table, rng), table.schema)
    result = types(replace(estimate, reference=table))
    labelled = {column.name: {"ordinal", "nominal"} <= set(column.probabilities) for column in result}
    assert labelled == {"length": False, "age": False, "stars": True, "year": True}


def test_codes_for_missing_cells_say_nothing_of_the_type(rng):
    count = rng.poisson(3.0, 200)
    frame = pd.DataFrame({"count": count, "coded": np.where(np.arange(200) % 40 == 0, -999, count)})
    table = bj.as_table(frame)
    estimate = bj.Posterior.from_circuit(bj.learn_mspn(table, rng), table.schema)
    plain, coded = types(replace(estimate, reference=table))
    assert list(coded.probabilities) == list(plain.probabilities)
    assert list(coded.probabilities.values()) == pytest.approx(list(plain.probabilities.values()), abs=0.1)


def test_two_numbers_beside_a_code_for_missing_have_the_types_of_two_values(rng):
    table = bj.as_table(pd.DataFrame({"x": [-999.0] * 16 + [np.nan] * 7 + [23.0, 30.0]}))
    estimate = bj.Posterior.from_circuit(bj.learn_mspn(table, rng), table.schema)
    (column,) = types(replace(estimate, reference=table))
    assert set(column.probabilities) == {"count", "ordinal", "nominal", "binary"}


def test_extreme_columns_have_finite_probabilities(rng):
    n = 60
    frame = pd.DataFrame(
        {
            "huge": rng.normal(size=n) * 1e150,
            "tiny": rng.gamma(2.0, size=n) * 1e-150,
            "large": 2**53 - rng.integers(0, 10**6, n),
            "far": np.append(rng.integers(0, 30, n - 1), 10**8),
            "zeros": np.append(np.zeros(n - 8), rng.gamma(2.0, size=8).round(2)),
            "halves": 0.5 * rng.integers(-4, 5, n),
            "holes": np.where(rng.random(n) < 0.95, np.nan, rng.integers(0, 40, n)),
            "codes": pd.Categorical(rng.choice(["-3", "7", "100", "2"], n)),
        }
    )
    table = bj.as_table(frame, kinds={"holes": "integer", "large": "integer"})
    estimate = bj.Posterior.from_circuit(bj.learn_mspn(table, rng, min_rows=20), table.schema)
    result = types(replace(estimate, reference=table))
    for column in result:
        assert np.isfinite(list(column.probabilities.values())).all(), column.name
        assert sum(column.probabilities.values()) == pytest.approx(1.0, rel=EXACT)


def test_structures_together_are_asked_too(rng):
    table = ex.make_table((ex.POSITIVE, ex.COUNT), 30, rng)
    one = ex.random_posterior(ex.mixture(table), table, rng, n_chain=1, n_draw=2)
    other = ex.random_posterior(ex.independent(table), table, rng, n_chain=1, n_draw=2)
    from bayesjpt.posterior.stacked import StackedPosterior

    both = StackedPosterior([one, other], [0.5, 0.5])
    found = [column_features(post, 0)[1] for post in (one, other, both)]
    assert found[2].n_part == pytest.approx(0.5 * (found[0].n_part + found[1].n_part))
