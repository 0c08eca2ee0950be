"""A fit whose rows lie in several units: one chain on several threads has the draws of one thread."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.kernels import samplers
from bayesjpt.sampler import workers


@pytest.mark.parametrize("options", [{"n_structures": 1, "chains": 1}, {"n_structures": 2, "learner": "jpt"}])
def test_threads_that_share_a_chain_change_no_draw(options, monkeypatch, rng):
    monkeypatch.setattr(samplers, "UNIT_ROWS", 512)
    monkeypatch.setattr(workers, "n_processor", lambda: 4)
    group = rng.integers(0, 2, 3_000)
    frame = pd.DataFrame({"x": rng.normal(3.0 * group, 1.0), "n": rng.poisson(2.0 + 5.0 * group)})
    found = [bj.fit(frame, draws=4, tune=3, seed=3, cores=cores, progress=False, **options) for cores in (1, 2, 4)]
    for post in found[1:]:
        for one, other in zip(found[0].by_structure(), post.by_structure(), strict=True):
            assert np.array_equal(one.params.theta, other.params.theta)
            assert np.array_equal(one.params.log_weight, other.params.log_weight)
    assert workers.n_helper(4, 1) == 4
    assert workers.n_helper(4, 3) == 1
