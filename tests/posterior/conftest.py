"""Fits that every test of this room may read; none may change them."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.posterior.draws import Posterior
from tests import examples as ex
from tests.conftest import SEED


@pytest.fixture(scope="session")
def post() -> Posterior:
    """Return unrelated draws of a circuit with every kind of column, family and node."""
    rng = np.random.default_rng([SEED, 1])
    table = ex.make_table(ex.COLUMNS, 60, rng, missing=0.1)
    stats = {"log_likelihood": rng.normal(size=(2, 6)), "n_active_edges": rng.integers(0, 9, (2, 6))}
    return ex.random_posterior(
        ex.two_level(table), table, rng, sample_stats=stats, settings={"seed": 7, "learner": "hand", "gamma": 0.1}
    )


@pytest.fixture(scope="session")
def saved(post, tmp_path_factory):
    """Return the path of its file."""
    path = tmp_path_factory.mktemp("fits") / "fit.nc"
    post.save(path)
    return path
