"""NUTS on a block with transforms against Gibbs sweeps of the same block: two samplers that share no update."""

from __future__ import annotations

import numpy as np
import pytest

from tests.statistical import nuts_and_gibbs

LARGEST_Z = 4.5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # of trajectories that NUTS then rejects
@pytest.mark.parametrize("name", nuts_and_gibbs.TABLES)
def test_nuts_and_gibbs_agree_on_what_does_not_depend_on_labels(name):
    found = nuts_and_gibbs.compare(name)
    assert min(ess.min() for ess in found.ess.values()) > nuts_and_gibbs.LEAST_ESS
    assert np.abs(found.z).max() < LARGEST_Z
