"""Texts of errors: one line of a few hundred characters, whatever a file or a user gave."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import BayesjptError, BayesjptWarning, QueryError

LONGEST = 1000


@pytest.mark.parametrize("n", [1, 299, 300, 301, 100_000])
def test_an_error_is_a_line_of_some_hundred_characters_with_both_ends_of_what_was_found(n):
    error = BayesjptError("first " + "x\n" * n + " last", "y" * n, "z" * n)
    assert len(str(error)) <= LONGEST
    assert "\n" not in str(error)
    assert str(error).startswith("first x")
    assert " last; expected y" in str(error)
    assert error.found.count("x") == n
    assert str(copy.copy(error)) == str(error)  # made anew from its parts, as where a worker process hands it on


def test_an_error_about_long_names_and_labels_is_short(tmp_path):
    name = "long " * 20_000
    with pytest.warns(BayesjptWarning) as warned:
        bj.as_table(pd.DataFrame([[1.0, 2.0], [2.0, 3.0], [5.0, 7.0]], columns=[name, name]))
    assert len(str(warned[0].message)) <= LONGEST
    table = bj.as_table(pd.DataFrame({"a": [0.5, 1.5, 2.5], name: ["x", "y", "x"]}))
    post = bj.fit(table, n_structures=1, draws=2, tune=2, chains=1, progress=False, seed=1)
    for event in (bj.col(name + "!") > 1, bj.col(name) == name):
        with pytest.raises(QueryError) as caught:
            post.probability(event)
        assert len(str(caught.value)) <= LONGEST


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1.0])
def test_no_warning_of_numpy_leaves_a_query_about_numbers_of_any_size(scale, rng):
    values = rng.normal(size=60) * scale
    table = bj.as_table(pd.DataFrame({"a": values, "b": rng.poisson(3.0, 60)}))
    post = bj.fit(table, n_structures=2, draws=3, tune=3, progress=False, seed=1)
    for answer in (post.variance("a"), post.expectation("a"), post.confidence_bounds("a")["upper"]):
        assert not np.isnan(answer.to_numpy()).any()
    assert post.convergence()
