"""Gibbs sweeps over rows of groups: the repeated circuit by definition, draws against quadrature, planted errors."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

import bayesjpt as bj
from bayesjpt.circuit.arrays import LATENT, LEAF, Circuit, Params
from bayesjpt.circuit.build import freeze
from bayesjpt.circuit.check import check_circuit
from bayesjpt.circuit.grouped import SHARED, repeat_structure
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.priors import make_priors
from bayesjpt.errors import ModelError
from bayesjpt.families import registry
from bayesjpt.families.label import constants_of
from bayesjpt.model import group_step
from bayesjpt.model.gibbs_step import CircuitGibbs
from bayesjpt.model.group_step import GroupedGibbs, draw_tables
from bayesjpt.model.groups import Groups
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive
from tests.model.conftest import QUICK
from tests.model.test_groups import KAPPA, N_ERRORS, exact_means, make_case

GAMMA = 1.5
N_DRAW = 5_000


@pytest.fixture
def case(rng):
    """Return a table with missing cells, a two-level circuit, and the group of each row."""
    return make_case(rng)


def test_repeated_circuit_has_the_density_of_each_group_under_its_own_weights(case, rng):
    table, circuit, group = case
    groups = Groups(group, table.n_row)
    grouped = repeat_structure(circuit, table.schema, 3)
    check_circuit(grouped.circuit, table.n_column + 1)
    layout = make_layout(circuit, table.schema)
    original = make_priors(circuit, table.schema, layout, gamma=0.7, alpha=0.3, prior="default")
    own = make_priors(
        grouped.circuit,
        grouped.schema,
        make_layout(grouped.circuit, grouped.schema),
        gamma=0.7,
        alpha=0.3,
        prior="default",
    )
    mapped = grouped.priors(original)
    np.testing.assert_array_equal(mapped.hyper, own.hyper)
    np.testing.assert_array_equal(mapped.hyper_at, own.hyper_at)
    np.testing.assert_array_equal(mapped.concentration[:-3], own.concentration[:-3])

    weights = np.log(naive_weights(circuit, 3, rng))
    log_weight = np.where(grouped.edge_from >= 0, weights[np.maximum(grouped.edge_group, 0), grouped.edge_from], 0.0)
    theta = circuit.start_theta
    rows = Table(
        grouped.schema,
        np.vstack([table.values, groups.codes.astype(float)]),
        np.vstack([table.observed, np.ones(table.n_row, bool)]),
    )
    found = naive.log_values(grouped.circuit, Params(log_weight, theta), rows)
    for k in range(3):
        chosen = np.flatnonzero(groups.codes == k)
        expected = naive.log_values(circuit, Params(weights[k], theta), table.take(chosen))
        np.testing.assert_allclose(found[chosen], expected, rtol=1e-12)


def naive_weights(circuit, n_group: int, rng) -> np.ndarray:
    """Return weights (n_group, n_edge): of structure sums each group's own, of dictionaries the same for all."""
    parent = circuit.edge_parent()
    out = np.ones((n_group, circuit.n_edge))
    for node in np.unique(parent):
        edges = np.flatnonzero(parent == node)
        if circuit.kind[node] == LATENT:
            out[:, edges] = rng.dirichlet(np.ones(edges.size), n_group)
        elif circuit.kind[node] < 4:
            out[:, edges] = rng.dirichlet(np.ones(edges.size))
    return out


def test_edges_of_leaves_and_dictionaries_are_shared(case):
    table, circuit, _ = case
    grouped = repeat_structure(circuit, table.schema, 3)
    kinds = circuit.kind[circuit.edge_parent()]
    known = grouped.edge_from >= 0
    np.testing.assert_array_equal(
        np.bincount(grouped.edge_from[known], minlength=circuit.n_edge)[kinds == LATENT],
        np.full((kinds == LATENT).sum(), 3),
    )
    assert (grouped.edge_group[known & (kinds[grouped.edge_from] != LATENT)] == SHARED).all()


def two_labellings() -> tuple[Table, Circuit, np.ndarray]:
    """Return nine rows of a label, a mixture of two fixed distributions of it, and their probabilities (n_row, 2)."""
    column = ex.LABEL
    table = Table(bj.Schema((column,)), np.array([[0, 0, 2, 0, 0, 0, 0, 1, 0]], float), np.ones((1, 9), bool))
    constants = [constants_of(range(column.n_label), column), constants_of(range(column.n_label), column)]
    n = column.n_label
    shares = np.full((2, n), 0.05)
    shares[[0, 1], [0, 2]] = 1.0 - 0.05 * (n - 1)
    for constant, share in zip(constants, shares, strict=True):
        constant[n:] = share
    number = registry.number("label")
    circuit = Circuit(
        kind=np.array([LEAF, LEAF, LATENT], np.int8),
        child_ptr=np.array([0, 0, 0, 2], np.int32),
        child=np.array([0, 1], np.int32),
        leaf_of=np.array([0, 1, -1], np.int32),
        leaf_family=np.full(2, number, np.int16),
        leaf_var=np.zeros(2, np.int32),
        leaf_cell=np.full(2, -1, np.int32),
        cell=np.empty(0),
        theta_at=np.zeros(2, np.int32),
        theta_len=np.zeros(2, np.int32),
        const_at=np.array([0, 2 * n], np.int32),
        const_len=np.full(2, 2 * n, np.int32),
        const=np.concatenate(constants),
        start_log_weight=np.log([0.5, 0.5]),
        start_theta=np.empty(0),
    )
    return table, freeze(circuit), shares[:, table.values[0].astype(int)].T


def errors_of_draws() -> list[float]:
    """Return how many Monte Carlo errors the draws' means are from those of quadrature: of pi, and of each group."""
    import arviz_stats

    table, circuit, likelihood = two_labellings()
    group = np.array(["a", "b", "b"] * 3)
    with bj.build_model(circuit, table, group=group, kappa=KAPPA, gamma=GAMMA):
        idata = pm.sample(N_DRAW, tune=100, chains=2, cores=1, random_seed=3, **QUICK)
    expected = exact_means(likelihood, group, GAMMA, KAPPA)
    draws = idata["posterior"].to_dataset()
    error = arviz_stats.mcse(draws)
    names = [("x_sum_weights", ()), ("x_group_sum_weights", (0,)), ("x_group_sum_weights", (1,))]
    out = []
    for (name, at), mean in zip(names, expected, strict=True):
        own = float(error[name].to_numpy()[(*at, 0)])
        assert own < 0.008
        out.append(abs(float(draws[name].to_numpy()[(..., *at, 0)].mean()) - mean) / own)
    return out


def test_sweeps_draw_shared_and_own_weights_as_quadrature_has_them():
    assert max(errors_of_draws()) < N_ERRORS


def test_shared_weights_drawn_from_rows_in_place_of_tables_are_caught(monkeypatch):
    def by_rows(count, weight, kappa, concentration, ptr, out, rng):
        return group_step.draw_dirichlet(concentration + count.sum(axis=0), out, rng)

    monkeypatch.setattr(group_step, "fill_shared", by_rows)
    assert max(errors_of_draws()) > 3 * N_ERRORS


def test_tables_of_a_restaurant_have_their_mean_and_never_exceed_the_customers(rng):
    n, concentration = 7, 1.3
    drawn = np.array([draw_tables(n, concentration, rng) for _ in range(20_000)])
    probability = concentration / (concentration + np.arange(n))
    error = np.sqrt((probability * (1.0 - probability)).sum() / drawn.size)
    assert abs(drawn.mean() - probability.sum()) < N_ERRORS * error
    assert drawn.min() >= 1
    assert drawn.max() <= n
    assert draw_tables(0, concentration, rng) == 0


def test_a_block_of_every_base_is_sampled_and_its_groups_are_read_back(case):
    table, circuit, group = case
    with pm.Model() as model:
        kappa = pm.HalfNormal("kappa", 10.0)
        bj.CircuitMixture("x", circuit, table, group=group, kappa=kappa)
        assert type(CircuitGibbs(list(model.free_RVs[1:]))) is GroupedGibbs
        idata = pm.sample(6, tune=4, chains=2, cores=1, random_seed=1, **QUICK)
    draws = idata["posterior"]
    assert draws["x_group_sum_weights"].sizes["x_group"] == 3
    assert np.isfinite(draws.to_dataset().to_array().min())
    post = bj.Posterior.from_idata(idata, group="FR")
    assert np.isfinite(post.log_density(table).to_numpy()).all()
    np.testing.assert_allclose(
        make_layout(circuit, table.schema).split(post.params)["sum_weights"],
        draws["x_group_sum_weights"].sel(x_group="FR"),
        rtol=1e-12,
    )


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"type_prior": "columns"}, "type_prior"),
        ({"sampler": "collapsed"}, "sampler"),
        ({"alpha": "random"}, "expressions"),
    ],
)
def test_what_sweeps_over_groups_cannot_draw_is_refused(arguments, match, case):
    table, circuit, group = case
    with pm.Model():
        if "alpha" in arguments:
            arguments = {"alpha": pm.HalfNormal("alpha")}
        with pytest.raises(ModelError, match=match):
            bj.CircuitMixture("x", circuit, table, group=group, **arguments)


def test_a_part_of_a_grouped_block_is_refused_to_another_step(case):
    table, circuit, group = case
    with bj.build_model(circuit, table, group=group) as model, pytest.raises(ModelError, match="its rows have groups"):
        GroupedGibbs([model["x_sum_weights"]], model=model)
