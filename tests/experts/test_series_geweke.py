"""The sweep over series draws from the posterior, by Geweke's joint test; wrong ones are found out."""

from __future__ import annotations

import numpy as np
import pytest

from tests.experts.geweke import N_ROW, make_prior, make_task, z_scores
from tests.experts.series_geweke import compare_series, make_steps
from tests.statistics import LARGEST_Z

N_DRAW = 20_000
N_WRONG = 6_000

CASES = [
    ("gaussian", 2, True, "leaf"),
    ("gaussian", 2, False, "decision"),
    ("logistic", 1, True, "decision"),
    ("gamma", 1, False, "leaf"),
]


@pytest.mark.parametrize(("kind", "depth", "gates", "transitions"), CASES)
def test_sweeps_and_direct_draws_have_the_same_joint_distribution(kind, depth, gates, transitions):
    steps, prior = make_steps(depth, transitions), make_prior()
    direct, chain = compare_series(make_task(kind, gates=gates), steps, steps, (prior, prior), N_DRAW, seed=3)
    assert np.abs(z_scores(direct, chain)).max() < LARGEST_Z


@pytest.mark.parametrize("error", ["one series", "no series", "prior"])
def test_a_planted_error_is_found(error):
    steps, prior = make_steps(2, "leaf"), make_prior()
    believed, swept = steps, prior
    if error == "one series":  # the second begins where the first ends
        believed = make_steps(2, "leaf", (0, N_ROW))
    elif error == "no series":  # the leaf before is forgotten
        believed = make_steps(2, "leaf", tuple(range(N_ROW + 1)))
    else:
        swept = make_prior(gate_rate=5.0)
    direct, chain = compare_series(make_task("gaussian"), steps, believed, (prior, swept), N_WRONG, seed=3)
    assert np.abs(z_scores(direct, chain)).max() > LARGEST_Z
