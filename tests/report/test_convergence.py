"""The battery flags chains that disagree, passes those that agree, and does not care how components are labelled."""

from __future__ import annotations

from dataclasses import replace

import arviz as az
import numpy as np
import pytest

import bayesjpt as bj
from bayesjpt.circuit.arrays import LATENT, Params
from bayesjpt.posterior.invariants import marginal_cdf
from tests import examples as ex
from tests import naive

EXACT = 1e-9
N_DRAW = 400


@pytest.fixture
def table(rng):
    return ex.make_table((ex.REAL, ex.POSITIVE, ex.LABEL), 60, rng, missing=0.1)


def jittered(circuit, schema, centre: Params, rng, n_draw: int = N_DRAW) -> Params:
    """Return draws around one point: weights and parameters that vary a little, and independently."""
    size = (n_draw, centre.theta.size)
    theta = centre.theta * np.exp(0.01 * rng.normal(size=size))
    log_weight = centre.log_weight + 0.01 * rng.normal(size=(n_draw, centre.log_weight.size))
    return normalised(circuit, schema, Params(log_weight, theta))


def normalised(circuit, schema, params: Params) -> Params:
    """Return the same draws with simplexes that add up to one."""
    from bayesjpt.circuit.layout import make_layout

    layout = make_layout(circuit, schema)
    log_weight, theta = np.zeros_like(params.log_weight), params.theta.copy()
    for variable in layout.weights:
        weights = np.exp(params.log_weight[..., variable.edges])
        log_weight[..., variable.edges] = np.log(shares(weights, variable.ptr))
    for variable in layout.parameters:
        if variable.parameter.constraint == "simplex":
            theta[..., variable.positions] = shares(theta[..., variable.positions], variable.ptr)
    return Params(log_weight, theta)


def shares(values: np.ndarray, ptr: np.ndarray) -> np.ndarray:
    return values / np.repeat(np.add.reduceat(values, ptr[:-1], axis=-1), np.diff(ptr), axis=-1)


def posterior(circuit, table, chains: list[Params]):
    params = Params(np.stack([c.log_weight for c in chains]), np.stack([c.theta for c in chains]))
    post = bj.Posterior(circuit, table.schema, params, reference=table)
    total = post.log_density(table).sum("obs_id").to_numpy()
    return replace(post, sample_stats={"log_likelihood": total})


@pytest.fixture
def circuit(table):
    return ex.mixture(table)


@pytest.fixture
def centre(circuit, table, rng):
    return ex.random_params(circuit, table.schema, rng)


@pytest.fixture
def agreeing(circuit, table, centre, rng):
    return posterior(circuit, table, [jittered(circuit, table.schema, centre, rng) for _ in range(2)])


@pytest.fixture
def disagreeing(circuit, table, centre, rng):
    other = ex.random_params(circuit, table.schema, rng)
    return posterior(circuit, table, [jittered(circuit, table.schema, c, rng) for c in (centre, other)])


def test_chains_around_one_point_agree(agreeing):
    judged = agreeing.convergence()
    assert judged.converged
    assert judged.sentence().startswith("Chains agree: R-hat up to 1.")


def test_chains_around_two_points_do_not_agree(disagreeing):
    judged = disagreeing.convergence()
    assert not judged.converged
    assert judged.sentence().startswith("Chains do not agree yet")


@pytest.mark.parametrize("quantity", ["log_likelihood", "log_density_of_rows", "marginal_cdf", "type_share"])
def test_every_quantity_notices_chains_around_two_points(disagreeing, quantity):
    assert float(disagreeing.convergence().table["rhat"].sel(quantity=quantity)) > 1.5


def test_identical_chains_agree_as_far_as_split_halves_do(circuit, table, centre, rng):
    chain = jittered(circuit, table.schema, centre, rng)
    assert posterior(circuit, table, [chain, chain]).convergence().converged


def test_chain_that_drifts_is_flagged(circuit, table, centre, rng):
    other = ex.random_params(circuit, table.schema, rng)
    path = np.linspace(0.0, 1.0, N_DRAW)[:, None]
    drift = Params(*((1.0 - path) * a + path * b for a, b in zip(centre, other, strict=True)))
    drift = normalised(circuit, table.schema, drift)
    assert not posterior(circuit, table, [drift, drift]).convergence().converged


def test_chains_that_stand_still_at_two_points_are_flagged(circuit, table, rng):
    points = [ex.random_params(circuit, table.schema, rng) for _ in range(2)]
    still = [Params(*(np.repeat(array[None], 10, axis=0) for array in point)) for point in points]
    judged = posterior(circuit, table, still).convergence()
    assert np.isinf(judged.table["rhat_q95"].sel(quantity="log_likelihood"))
    assert not judged.converged
    assert judged.sentence().startswith("Chains do not agree yet: R-hat up to inf")


def swapped(circuit, params: Params) -> Params:
    """Return the draws with the two components of the root exchanged."""
    root = circuit.n_node - 1
    assert circuit.kind[root] == LATENT
    first, last = circuit.child_ptr[root], circuit.child_ptr[root + 1]
    one, two = circuit.child[first:last]
    leaf_nodes = circuit.leaf_node()
    order_theta, order_edge = np.arange(circuit.n_theta), np.arange(circuit.n_edge)
    below = [np.flatnonzero(leaf_nodes <= one), np.flatnonzero((leaf_nodes > one) & (leaf_nodes <= two))]
    for a, b in zip(*below, strict=True):
        assert circuit.leaf_family[a] == circuit.leaf_family[b]
        at = [circuit.theta_at[leaf] + np.arange(circuit.theta_len[leaf]) for leaf in (a, b)]
        order_theta[at[0]], order_theta[at[1]] = at[1], at[0]
    parents = circuit.edge_parent()
    halves = [np.flatnonzero(parents <= one), np.flatnonzero((parents > one) & (parents <= two))]
    order_edge[halves[0]], order_edge[halves[1]] = halves[1], halves[0]
    order_edge[[first, first + 1]] = [first + 1, first]
    return Params(params.log_weight[..., order_edge], params.theta[..., order_theta])


def test_exchanged_components_leave_density_and_verdict_as_they_were(circuit, table, agreeing):
    first, second = (Params(*(array[chain] for array in agreeing.params)) for chain in range(2))
    turned = posterior(circuit, table, [first, swapped(circuit, second)])
    assert not np.array_equal(turned.params.theta, agreeing.params.theta)
    assert np.abs(turned.log_density(table) - agreeing.log_density(table)).max() < EXACT
    before, after = agreeing.convergence(), turned.convergence()
    assert after.converged == before.converged is True
    assert np.abs(after.table["rhat"] - before.table["rhat"]).max() < 1e-6
    assert after.undetermined == before.undetermined


def test_parameters_themselves_would_not_have_agreed(circuit, table, agreeing):
    """The reason why the battery looks at densities: R-hat of parameters is large after an exchange of components."""
    first, second = (Params(*(array[chain] for array in agreeing.params)) for chain in range(2))
    turned = posterior(circuit, table, [first, swapped(circuit, second)])
    assert max(az.rhat(turned.params.theta[..., k]) for k in range(circuit.n_theta)) > 1.5


def test_not_determined_types_are_named_and_prevent_a_verdict_of_agreement(disagreeing):
    shares = disagreeing.types().shares
    one = replace(shares.columns[0], type="not determined")
    judged = disagreeing.convergence(shares=replace(shares, columns=(one, *shares.columns[1:])))
    assert one.name in judged.undetermined
    assert f"Type not determined: {one.name}" in judged.sentence()
    assert not judged.converged


def test_a_single_chain_cannot_be_judged(circuit, table, centre, rng):
    judged = posterior(circuit, table, [jittered(circuit, table.schema, centre, rng)]).convergence()
    assert not judged.converged
    assert "cannot be judged" in judged.sentence()


def test_three_draws_cannot_be_judged(circuit, table, centre, rng):
    chains = [jittered(circuit, table.schema, centre, rng, n_draw=3) for _ in range(2)]
    assert "cannot be judged" in posterior(circuit, table, chains).convergence().sentence()


def test_rhat_and_ess_of_the_total_log_likelihood_are_those_of_arviz(agreeing):
    table = agreeing.convergence().table
    series = agreeing.sample_stats["log_likelihood"]
    assert float(table["rhat"].sel(quantity="log_likelihood")) == pytest.approx(az.rhat(series), rel=EXACT)
    assert float(table["ess"].sel(quantity="log_likelihood")) == pytest.approx(az.ess(series), rel=EXACT)


def test_rows_of_the_users_choice_are_followed(agreeing, table):
    judged = agreeing.convergence(table.take(range(7)))
    assert int(judged.table["n_entry"].sel(quantity="log_density_of_rows")) == 7


def test_fit_without_reference_rows_is_judged_by_what_there_is(agreeing):
    judged = replace(agreeing, reference=None).convergence()
    assert set(judged.table["quantity"].to_numpy()) == {"log_likelihood", "type_share"}


def test_text_holds_a_line_for_each_quantity_and_the_sentence(agreeing):
    judged = agreeing.convergence()
    lines = repr(judged).splitlines()
    assert len(lines) == judged.table.sizes["quantity"] + 2
    assert lines[-1] == judged.sentence()


def test_marginal_cdfs_are_those_of_the_slow_twin(agreeing, circuit, table):
    found = marginal_cdf(agreeing)[1, 3]
    params = Params(agreeing.params.log_weight[1, 3], agreeing.params.theta[1, 3])
    expected = []
    for position, column in enumerate(table.schema.columns[:2]):
        cells = table.values[position, table.observed[position]]
        for point in np.unique(np.quantile(cells, [0.25, 0.5, 0.75])):
            observed = np.arange(len(table.schema)) == position
            row = np.where(observed, point, 0.0)
            score = lambda family, column, theta, x: np.log(naive.family_cdf(family, column, theta, x))  # noqa: E731
            expected.append(np.exp(naive.log_value(circuit, table.schema, params, row, observed, score)))
    assert np.abs(found - expected).max() < EXACT
