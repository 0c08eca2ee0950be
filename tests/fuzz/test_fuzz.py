"""A few of the generated tables in every run of the tests; more where there is time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesjpt as bj
from tests.fuzz.fits import EXPERTS, LEARNERS, SETTINGS, outcome
from tests.fuzz.questions import QUESTIONS, about, ask
from tests.fuzz.tables import frames
from tests.strategies import law, long_law

seeds = st.integers(0, 2**31 - 1)
learners = st.sampled_from(LEARNERS)
DECADES = [
    *(6785054.903910247, 1.2901751924680982e-08, 1.5185224608727105e-09, 1714218.771886273, 3154.6866858338717),
    *(16088.83497985762, 0.06502539112961642, 2.634591974064271e-05, 905654.7007579978, 4144970.767720018),
    *(2.636637699123569e-32, 95507440.77963509, 0.011142120843137704, 1.0903496631988439, 2007090909.0502005),
    *(862.4536230441286, 2.4742810922958625e-25, 8.061288113878134e-06, 2.8168484731404976e-06, 760.5089179493638),
    *(959134.7017335462, 0.00040295821993111425, 8.116015020224015e-13, 116705637.83646165, 1.9625570624241102e-05),
]


@law(40)
@given(frame=frames(), seed=seeds, learner=learners)
def test_generated_table_is_fitted_or_refused_with_an_error_of_ours(frame, seed, learner):
    assert outcome(frame, seed, learner)


@law(25)
@given(frame=frames(), seed=seeds)
def test_experts_of_a_column_of_a_generated_table_are_fitted_or_refused_with_an_error_of_ours(frame, seed):
    assert outcome(frame, seed, EXPERTS)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("n_structures", [1, 2])
def test_no_question_is_refused_about_an_ordinary_table(n_structures, question, rng):
    """Else the fuzzer would count refusals in place of answers."""
    x = rng.normal(size=60).round(2)
    frame = pd.DataFrame({"x": x, "n": rng.poisson(3.0 + (x > 0.0)), "kind": np.where(x > 0.3, "a", "b")})
    table = bj.as_table(frame)
    learner = "jpt" if question == "tree" else "mspn"
    post = bj.fit(table, learner, n_structures=n_structures, draws=15, seed=1, **SETTINGS)
    for k in range(3):
        assert ask(post, question, about(table, np.random.default_rng(k)))


@pytest.mark.parametrize("value", [5e-324, 1e-300, -1e-20, 1e300])
def test_a_column_of_one_extreme_number_is_fitted(value):
    assert outcome(pd.DataFrame({"same": [value] * 10}), 0, every_question=True) == "asked"


def test_a_column_of_numbers_next_to_zero_is_refused_with_an_error_of_ours():
    found = outcome(pd.DataFrame({"next": [0.0, 0.0, 5e-324, 0.0, 1e-308, 5e-324]}), 0)
    assert found.startswith("SchemaError")


@pytest.mark.parametrize(
    "values", [[0.0, 1.7e308, 5e-324, 1e-300, 1.7e308], [0.0, 1.0, -1e300, 1e-300, 1.7e308]], ids=["positive", "real"]
)
def test_a_column_as_wide_as_numbers_go_is_fitted_or_refused_with_an_error_of_ours(values):
    assert outcome(pd.DataFrame({"wide": values}), 0)


@pytest.mark.parametrize("spread", [1e-6, 1e-8, 1e-10, 1e-12])
@pytest.mark.parametrize("at", [3239.172339, 1.7e18])
def test_numbers_far_from_zero_and_close_together_answer_every_question_in_a_joint_tree(at, spread, rng):
    columns = {"a": 0.32 + 2e-4 * rng.normal(size=25), "far": at * (1.0 + spread * rng.normal(size=25))}
    assert outcome(pd.DataFrame(columns), 0, "jpt", every_question=True) == "asked"


def test_the_variance_of_numbers_next_to_zero_beside_an_atom_is_a_number(rng):
    values = np.where(rng.random(40) < 0.4, 0.0, -2.177166e-255 * (1.0 + 1e-7 * rng.normal(size=40)))
    assert outcome(pd.DataFrame({"tiny": values, "is": rng.random(40) < 0.5}), 0, every_question=True) == "asked"


def test_a_column_whose_mean_is_far_from_most_of_its_numbers_is_fitted():
    assert outcome(pd.DataFrame({"far": [-7e16, 0.0, 1e-39, 1.4, 1e-7]}), 0, every_question=True) == "asked"


@pytest.mark.parametrize(("n_column", "learner", "seed"), [(1, "mspn", 0), (2, "jpt", 2248)])
def test_columns_over_forty_decades_answer_every_question(n_column, learner, seed):
    frame = pd.DataFrame({f"x{k}": DECADES for k in range(n_column)})
    assert outcome(frame, seed, learner, every_question=True) == "asked"


def test_quantiles_that_are_infinite_on_both_sides_answer_every_question():
    wide = [2.8e16, -3.2e16, 2.7e159, -5.4e16, -4.9e70, 2.2e162, -1.9e-187, -4.7e15, -3.8e16, 2.2e-308, -5.7e15, 0.0]
    small = [2.8e8, 1.5e7, 1.4e8, 0.0, 1.8e8, 5.7e7, 4.5e7, 0.0, 2.5e7, 7.1e7, 1e7, 1.6e8]
    frame = pd.DataFrame({"none": np.nan, "id": wide, "x": wide, "y": small})
    for seed in range(4):
        assert outcome(frame, 35661880 + seed, "jpt", every_question=True) == "asked"


@pytest.mark.parametrize("top", [2**50, 2**51, 2**52, 2**53])
def test_a_tree_holds_whole_numbers_up_to_the_largest_that_are_told_apart(top, rng):
    assert outcome(pd.DataFrame({"whole": rng.integers(1, top, 60)}), 0, "jpt", every_question=True) == "asked"


@pytest.mark.parametrize("top", [2**50, 2**53, -(2**53)])
def test_splines_hold_whole_numbers_up_to_the_largest_that_are_told_apart(top, rng):
    whole = np.append(rng.integers(min(top, 1), max(top, 1), 24), top)
    frame = pd.DataFrame({"whole": whole})
    assert outcome(frame, 0, "wmispn", every_question=True) == "asked"
    post = bj.fit(frame, "wmispn", n_structures=1, draws=2, tune=2, chains=1, seed=1, progress=False)
    assert (post.probability(bj.col("whole") == top) > 0.0).all()


def test_a_tree_holds_whole_numbers_whose_cells_end_where_floats_have_no_halves():
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(25.64, 0.015, 40), "whole": rng.integers(1, 9 * 10**15, 40)}
    assert outcome(pd.DataFrame(columns), 0, "jpt", every_question=True) == "asked"


def test_a_tree_does_not_part_numbers_that_likelihoods_cannot_tell_apart(rng):
    x = rng.uniform(-300.0, -10.0, 60)
    assert outcome(pd.DataFrame({"x": x, "tiny": np.exp(x), "square": x**2}), 0, "jpt", every_question=True) == "asked"


@pytest.mark.slow
@long_law(300)
@given(frame=frames(), seed=seeds, learner=st.sampled_from((*LEARNERS, EXPERTS)))
def test_many_generated_tables_are_fitted_or_refused_with_an_error_of_ours(frame, seed, learner):
    assert outcome(frame, seed, learner)
