"""Hard trees of conjugate leaves: draws are independent, and those of sweeps and of the posterior by formula."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import bayesjpt as bj
from bayesjpt.circuit.layout import SPLIT_WEIGHTS, make_layout
from bayesjpt.circuit.paths import Condition
from bayesjpt.families import registry
from bayesjpt.sampler.target import Target, make_target
from bayesjpt.table.table import Table
from tests import examples as ex
from tests.kernels import runs
from tests.statistics import cdf_deviation, dkw_bound

N_DRAW = 3000
LARGEST_AUTOCORRELATION = 5.0 / np.sqrt(N_DRAW)
THIN = 3
"""Sweeps for each draw of a factor that is compared with independent ones."""
ESS = 4.0
"""Of which each side of a single split gets half."""
CONJUGATE = ex.only("normal", "atom", "poisson", "categorical")


BY_LABEL = Condition(2, 0.5, (1,))


def tree(table: Table, dictionary):
    """Return a tree of two leaves, split by label."""
    return ex.hard(table, BY_LABEL, dictionary=dictionary)


@pytest.fixture
def table(rng) -> Table:
    return ex.make_table((ex.REAL, ex.COUNT, ex.LABEL), 60, rng)


def independent(target: Target, rng: np.random.Generator) -> np.ndarray:
    """Return float64 (N_DRAW, n_edge + n_theta)."""
    sweeper, draws = target.sweeper(), []
    params = sweeper.learned()
    for _ in range(N_DRAW):
        sweeper.redraw(params, rng)
        draws.append(np.concatenate(params))
    return np.array(draws)


def swept(target: Target, rng: np.random.Generator) -> np.ndarray:
    sweeper, draws = target.sweeper(), []
    params = sweeper.learned()
    for number in range(N_DRAW):
        sweeper.sweep(params, rng, 1, number)
        draws.append(np.concatenate(params))
    return np.array(draws)


def single(column):
    """Return the first conjugate family of a column's dictionary."""
    return next((family,) for family in CONJUGATE(column) if family.is_conjugate and family.name != "atom")


def test_independent_draws_have_the_distribution_of_sweeps(table, rng):
    target = make_target(tree(table, single), table, ess=ESS, prior="abda")
    assert target.is_closed_form
    one, other = independent(target, rng), swept(target, rng)
    varies = one.std(axis=0) > 0.0
    assert varies.sum() > 10
    for j in np.flatnonzero(varies):
        assert scipy.stats.ks_2samp(one[:, j], other[:, j]).statistic < 2.0 * dkw_bound(N_DRAW)
        centred = one[:, j] - one[:, j].mean()
        assert abs((centred[1:] * centred[:-1]).mean() / centred.var()) < LARGEST_AUTOCORRELATION


def test_independent_draws_follow_the_posterior_by_formula(table, rng):
    circuit = tree(table, single)
    target = make_target(circuit, table, ess=ESS, prior="abda")
    draws = independent(target, rng)
    bound = dkw_bound(N_DRAW)
    first = circuit.child_ptr[-2]
    meets = table.values[2] == 1.0
    share = scipy.stats.beta(0.5 * ESS + meets.sum(), 0.5 * ESS + (~meets).sum())
    assert cdf_deviation(np.exp(draws[:, first]), share.cdf) < bound
    checked = 0
    hyper = runs.hyper_of(circuit, table.schema, "abda")
    for leaf in np.flatnonzero(circuit.leaf_family == registry.number("poisson")):
        labels = circuit.const[circuit.const_at[leaf + 1] + 4 :][:4] > 0.0  # of the slot of labels beside it
        rows = labels[table.values[2].astype(int)]
        a, b, _ = hyper.values[hyper.at[leaf] : hyper.at[leaf + 1]]
        posterior = scipy.stats.gamma(a + table.values[1, rows].sum(), scale=1.0 / (b + rows.sum()))
        assert cdf_deviation(draws[:, circuit.n_edge + circuit.theta_at[leaf]], posterior.cdf) < bound
        checked += 1
    assert checked == 2


CASES = {
    "a dictionary": (lambda t: tree(t, None), ex.POSITIVE, False),
    "atoms beside one family": (lambda t: tree(t, CONJUGATE), ex.HEAPED, True),
    "a latent sum": (lambda t: ex.mixture(t, 2, single), ex.REAL, False),
    "a leaf that is not conjugate on its cell": (
        lambda t: ex.hard(t, Condition(0, 1.0), dictionary=single),
        ex.REAL,
        False,
    ),
    "columns by themselves": (lambda t: ex.independent(t, single), ex.REAL, True),
}


@pytest.mark.parametrize("name", CASES)
def test_closed_form_is_told_from_what_needs_sweeps(name, rng):
    make, column, expected = CASES[name]
    table = ex.make_table((column, ex.COUNT, ex.LABEL), 60, rng)
    assert make_target(make(table), table, prior="abda").is_closed_form == expected


def test_row_without_the_cell_that_decides_needs_sweeps(table):
    for column, expected in ((0, True), (2, False)):
        observed = table.observed.copy()
        observed[column, 7] = False
        rows = Table(table.schema, table.values, observed)
        assert make_target(tree(table, single), rows, prior="abda").is_closed_form == expected


def test_fit_says_that_draws_are_independent_and_tunes_nothing(table):
    post = bj.fit(
        table,
        lambda t, rng: tree(t, single),
        n_structures=1,
        draws=20,
        tune=30,
        thin=3,
        chains=2,
        cores=1,
        seed=1,
        progress=False,
        prior="abda",
    )
    assert "closed form" in post.settings["draws"]
    assert (post.settings["tune"], post.settings["thin"]) == (0, 1)
    assert post.params.theta.shape[:2] == (2, 20)
    assert "log_likelihood" not in post.sample_stats
    weights = make_layout(post.circuit, post.schema).split(post.params)[SPLIT_WEIGHTS]
    assert np.unique(weights[..., 0]).size == 40


def test_interrupted_closed_form_goes_on_with_the_same_draws(table, tmp_path):
    def fit(**more):
        return bj.fit(
            table,
            lambda t, rng: tree(t, single),
            n_structures=1,
            draws=10,
            chains=2,
            cores=1,
            seed=1,
            progress=False,
            prior="abda",
            **more,
        )

    whole = fit(checkpoint=tmp_path / "state")
    again = fit(checkpoint=tmp_path / "state", resume=True)
    np.testing.assert_array_equal(again.params.theta, whole.params.theta)
    np.testing.assert_array_equal(fit().params.theta, whole.params.theta)


def test_bare_tree_of_quantile_leaves_is_in_closed_form(rng):
    table = ex.make_table((ex.PLAIN[0], ex.PLAIN[1], ex.LABEL), 200, rng, continuous=True)
    circuit = ex.hard(table, Condition(0, 1.0), BY_LABEL, dictionary=ex.only("quantile", "categorical"))
    target = make_target(circuit, table)
    assert (circuit.leaf_cell >= 0).any()
    assert target.is_closed_form
    params = target.sweeper().learned()
    target.sweeper().redraw(params, rng)
    assert (runs.log_scores(runs.Run(target.plan, target.units[0]), params) > -np.inf).all()


def test_independent_draws_of_factors_have_the_distribution_of_sweeps(rng):
    table = ex.make_table((ex.LABEL, ex.FLAG), 60, rng)
    target = make_target(ex.hard(table, Condition(0, 0.5, (1,)), dictionary=ex.only("categorical", "bernoulli")), table)
    assert target.is_closed_form
    n_group = target.priors.scales.n_group
    assert n_group == 2
    one, other = independent(target, rng)[:, -n_group:], swept(target, rng)[:, -n_group:]
    for j in range(n_group):
        assert scipy.stats.ks_2samp(one[:, j], other[::THIN, j]).statistic < 3.0 * dkw_bound(N_DRAW // THIN)
        logs = np.log(one[:, j]) - np.log(one[:, j]).mean()
        assert abs((logs[1:] * logs[:-1]).mean() / logs.var()) < LARGEST_AUTOCORRELATION
