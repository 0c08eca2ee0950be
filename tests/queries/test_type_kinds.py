"""What people call ratings, years, amounts in steps and counts is what columns of such numbers are said to be."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.fitting.for_types import estimate_for_types
from bayesjpt.queries.type_features import describe
from bayesjpt.queries.types import types
from bayesjpt.report.summary import words_of
from tests.papers.type_weights import MEANS, Example, fit_weights

SEEDS = range(3)


@pytest.fixture(scope="module")
def answers() -> list[bj.queries.types.Types]:
    """Return the types of made-up tables of some hundred rows, whose columns hang together in part."""
    return [_types(seed) for seed in SEEDS]


def _types(seed: int):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(200, 600))
    z = rng.normal(size=n)

    def rated(least: int, largest: int, load: float) -> np.ndarray:
        ends = np.linspace(-1.4, 1.4, largest - least)
        return least + np.searchsorted(ends, load * z + np.sqrt(1.0 - load**2) * rng.normal(size=n))

    frame = pd.DataFrame(
        {
            "stars": rng.choice([1, 2, 3, 4, 5], n, p=[0.05, 0.05, 0.1, 0.3, 0.5]),
            "x": rated(1, 5, 0.0),
            "q1": rated(1, 5, 0.7),
            "nps": rated(0, 10, 0.5),
            "year": rng.integers(1990, 2024, n),
            "vintage": rng.integers(2018, 2024, n),
            "discount": 5 * rng.integers(0, 11, n),
            "completion": 10 * rng.integers(0, 11, n),
            "share of": np.round(0.1 * rng.integers(0, 11, n), 1),
            "visits": rng.poisson(2.0, n),
            "goals": rng.poisson(np.exp(0.5 + 0.3 * z)),
            "size": np.round(np.exp(z + 3.0), 2),
            "branch": rng.choice([10115, 20095, 50667, 60311], n),
        }
    )
    table = bj.as_table(frame)
    return types(estimate_for_types(table, seed=seed), table)


EXPECTED = {
    "ordinal": ("stars", "x", "q1", "nps"),
    "year": ("year", "vintage"),
    "positive": ("discount", "completion", "share of", "size"),
    "count": ("visits", "goals"),
    "nominal": ("branch",),
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in EXPECTED.items() for name in names])
def test_a_kind_of_numbers_has_one_type_whatever_the_seed(answers, kind, name):
    assert [answer[name].type for answer in answers] == [kind] * len(answers)


def test_years_are_sure_and_said_to_be_whole_numbers(answers):
    for answer in answers:
        assert answer["year"].certainty == "sure"
        assert words_of(answer["year"]) == "number, whole (year)"
        assert answer["year"].values.startswith("19")


def test_a_fit_says_what_the_estimate_says():
    rng = np.random.default_rng(5)
    n = 240
    frame = pd.DataFrame(
        {
            "q1": rng.integers(1, 6, n),
            "year": rng.integers(1990, 2024, n),
            "discount": 5 * rng.integers(0, 11, n),
            "visits": rng.poisson(2.0, n),
        }
    )
    table = bj.as_table(frame)
    fitted = bj.fit(table, n_structures=2, draws=4, tune=4, seed=1, cores=1, progress=False)
    estimate = estimate_for_types(table, seed=2)
    assert [column.type for column in types(fitted, table)] == ["ordinal", "year", "positive", "count"]
    assert [column.type for column in types(estimate, table)] == ["ordinal", "year", "positive", "count"]


def test_numbers_called_a_measurement_or_of_other_centuries_are_no_years(rng):
    table = bj.as_table({"weight": rng.integers(1500, 2100, 300), "room": rng.integers(2200, 2230, 300)})
    assert "year" not in {column.type for column in types(estimate_for_types(table, seed=1), table)}


@pytest.mark.parametrize(
    ("values", "steps"),
    [([0, 5, 10, 15], 1), ([0.1, 0.2, 0.3, 0.4], 1), ([10, 20, 80, 400], 0), ([0, 2, 4, 6], 0), ([1, 2, 3, 4], 0)],
)
def test_round_steps_that_are_filled_speak_for_amounts(values, steps):
    column = bj.as_table({"x": np.tile(values, 30)}).schema.columns[0]
    assert describe(column).features["positive"]["in steps"] == 3.0 * steps


def test_a_scale_whose_end_is_rare_is_one_the_less():
    level, rare = ([0, 1, 2, 3, 4, 5] * 40, [0, 1, 2, 3, 4] * 40 + [5])
    scales = [describe(bj.as_table({"x": x}).schema.columns[0]).features["ordinal"]["scale"] for x in (level, rare)]
    assert scales[0] == pytest.approx(3.0, abs=0.1)
    assert scales[1] < 0.5


def test_weights_that_no_table_speaks_of_stay_at_the_means_of_their_priors():
    seen = Example({"a": {"is a": 1.0, "in steps": 0.0}, "b": {}}, (frozenset("a"),))
    assert fit_weights([[seen]])["in steps"] == pytest.approx(MEANS["in steps"], abs=1e-6)
