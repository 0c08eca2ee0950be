"""Moments of columns against sums over their values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj


@pytest.mark.parametrize("families", [None, {"t": ["spline"]}], ids=["default", "spline"])
def test_variance_of_whole_numbers_far_from_0_is_that_of_their_masses(families):
    """Seconds since 1970 of one minute: a difference of squares has no digits there."""
    first = 1_700_000_000
    frame = pd.DataFrame({"t": first + np.random.default_rng(0).integers(0, 60, 200)})
    table = bj.as_table(frame, kinds={"t": "integer"})
    options: dict[str, Any] = {} if families is None else {"families": families}
    post = bj.fit(table, n_structures=1, chains=1, draws=3, tune=5, seed=1, progress=False, **options)
    far = np.arange(-3000, 3060)
    rows = bj.as_table(pd.DataFrame({"t": first + far}), schema=table.schema)
    for event, among in ((None, far < np.inf), (f"t between {first + 10} and {first + 19}", (far >= 10) & (far <= 19))):
        mass = np.exp(post.log_mass(rows).to_numpy().reshape(3, -1))[:, among]
        mean = (mass * far[among]).sum(axis=1) / mass.sum(axis=1)
        expected = (mass * (far[among] - mean[:, None]) ** 2).sum(axis=1) / mass.sum(axis=1)
        np.testing.assert_allclose(post.variance("t", given=event).to_numpy().ravel(), expected, rtol=1e-6)
