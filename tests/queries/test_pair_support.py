"""Whether rows show that columns hang together, of tables in which some were drawn without the others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.queries.pair_support import nats_of, shown_by_rows
from bayesjpt.report.pairs import pairs_of

NAMES = ("near", "copy", "parts", "trend")


@pytest.fixture(scope="module")
def post():
    rng, n = np.random.default_rng(1), 400
    near = rng.uniform(0, 100, n).round(1)
    parts = np.where(rng.random(n) < 0.25, rng.lognormal(7.5, 0.4, n), -rng.lognormal(3.6, 1.0, n)).round(2)
    columns = (near, (near + rng.normal(0, 1, n)).round(2), parts, (0.03 * near + rng.normal(size=n)).round(2))
    frame = pd.DataFrame(dict(zip(NAMES, columns, strict=True)))
    return bj.fit(frame, n_structures=4, draws=8, tune=10, cores=1, seed=1, progress=False)


def test_rows_show_what_was_made_to_hang_together_and_not_what_noise_joins(post):
    information = post.dependence().values.mean(axis=(0, 1))
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2)]
    nats = [float(information[pair]) for pair in pairs]
    assert min(nats[1], nats[3]) > 0.01  # a coefficient above .14 of columns that were drawn apart
    assert shown_by_rows(post, pairs, nats) == [True, False, True, False]


def test_a_report_says_so_in_a_word(post):
    pairs, _ = pairs_of(post)
    words = {(NAMES[pair.first], NAMES[pair.second]): pair.strength for pair in pairs}
    assert words["near", "copy"] == "strong"
    assert words["near", "parts"] == "no more than chance"
    assert words["near", "trend"] in ("clear", "strong")


def test_without_rows_or_with_few_nothing_is_denied(post):
    circuit = bj.Posterior.from_circuit(post.by_structure()[0].circuit, post.schema)
    assert shown_by_rows(circuit, [(0, 2)], [9.0]) == [True]
    assert shown_by_rows(post, [], []) == []


def test_information_of_coefficients():
    np.testing.assert_allclose(np.sqrt(-np.expm1(-2.0 * nats_of(np.array([0.0, 0.3, 0.9])))), [0.0, 0.3, 0.9])
    assert np.isfinite(nats_of(np.array([1.0]))).all()
