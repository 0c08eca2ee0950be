"""Mixtures of experts of one column of a generated table given the others, and every question about them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import bayesjpt as bj
from bayesjpt.table.table import Table
from tests.fuzz.questions import ROUNDING, event_about, finite, inside, next_to

METHODS = ("gibbs", "em", "least_squares", "laplace", "mean_field")
SWEEPS = {"draws": 2, "tune": 2, "chains": 2}
N_SAMPLED = 3


def experts_outcome(table: Table, rng: np.random.Generator) -> str:
    """Return ``asked`` where the answers about a random target hold; an error of ours says why there is none."""
    target = table.names[int(rng.integers(table.n_column))]
    method = METHODS[int(rng.integers(len(METHODS)))]
    settings = SWEEPS if method == "gibbs" else {"passes": 5}
    covariates = [name for name in table.names if name != target]
    joint = None
    if covariates and not all(table.observed[table.schema.index(name)].all() for name in covariates):
        joint = bj.fit(table, n_structures=1, draws=2, tune=2, chains=2, cores=1, seed=1, progress=False)
    post = bj.fit_experts(
        table,
        target=target,
        given=covariates,
        depth=int(rng.integers(0, 3)),
        method=method,
        missing=joint,
        cores=1,
        rng=int(rng.integers(2**31)),
        **settings,
    )
    _ask(post, next_to(table, rng), target, rng)
    return f"asked ({method})"


def _ask(post: bj.ExpertPosterior, rows: Table, target: str, rng: np.random.Generator) -> None:
    finite("log density", post.log_density(rows))
    mass = finite("log mass", post.log_mass(rows))
    assert (mass <= ROUNDING).all(), f"log mass {mass.max()}"
    event = event_about(rows, target, rng)
    is_so, is_not = (finite("probability", post.probability(each, rows)) for each in (event, ~event))
    inside("probability", is_so)
    missing = float(np.abs(is_so + is_not - 1.0).max())
    assert missing <= ROUNDING, f"P(A) + P(not A) is off by {missing:.3g}"
    column = rows.schema.columns[rows.schema.index(target)]
    predicted = post.predict(rows)
    if column.base == "category":
        share = finite("prediction", predicted.to_numpy())
        inside("prediction", share)
        assert np.abs(share.sum(axis=1) - 1.0).max() <= ROUNDING, "predicted shares do not add up to 1"
    else:
        _ask_of_numbers(post, rows, rng)
    sampled = post.sample(N_SAMPLED, rows, rng=rng)
    assert not sampled.isna().to_numpy().any(), "a sampled cell is missing"
    assert post.explain()
    with tempfile.TemporaryDirectory() as folder:
        post.save(Path(folder) / "experts.nc")
        back = bj.load_experts(Path(folder) / "experts.nc")
    if post.missing is not None:
        back = back.with_missing(post.missing)  # a file of its own
    assert np.array_equal(post.log_density(rows), back.log_density(rows)), "a saved fit differs"


def _ask_of_numbers(post: bj.ExpertPosterior, rows: Table, rng: np.random.Generator) -> None:
    # of a count whose rate is the exponential of a covariate moments may go beyond the numbers that there are
    finite("expectation", post.expectation(rows), may_be_infinite=True)
    spread = finite("variance", post.variance(rows), may_be_infinite=True)
    assert (spread >= 0.0).all(), f"variance {spread.min()}"
    column = post.model.response.columns[0]
    with np.errstate(over="ignore"):
        points = np.unique(column.location + column.scale * rng.standard_cauchy(6))
    found = finite("cdf", post.cdf(points[np.isfinite(points)], rows))
    inside("cdf", found)
    steps = np.diff(found, axis=2)
    assert not steps.size or (steps >= -ROUNDING).all(), f"cdf falls by {-steps.min()}"
    ends = finite("quantile", post.quantile([0.05, 0.5, 0.95], rows), may_be_infinite=True)
    # a date beyond all dates is none
    fall = ends[:, :, 1:] < ends[:, :, :-1]
    assert not fall.any(), "quantiles fall"
