"""Cutset networks as counts: rows by tables against the general pass, draws made again, fits of many networks."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

import bayesjpt as bj
from bayesjpt.circuit import arrays
from bayesjpt.circuit.networks import expand
from bayesjpt.errors import ModelError
from bayesjpt.fitting.stacking import weigh
from bayesjpt.kernels.networks import count_rows, fill_scores, mean_log_weights
from bayesjpt.posterior.networks import DRAWN_ESS, NetworkDraws, Structures, network_draws, rows_of
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.queries import density
from bayesjpt.sampler.target import make_target
from bayesjpt.table.table import Table
from tests.structure.test_label_networks import ESS, grown, labels

ROUNDING = 1e-12
FAR = 5.0
"""Standard errors."""


def general(post: bj.Posterior, table: Table) -> np.ndarray:
    """Return log densities by the pass over circuits."""
    return density._conditional_of_any(post, table, None, density._log_density).values


def draws_of(table: Table, n_draw: int = 2) -> NetworkDraws:
    network, count = grown(table)
    circuit = expand(network, table.schema, count, ESS).circuit
    kept = network_draws(circuit, table, ESS, 7, n_chain=1, n_draw=n_draw)
    assert kept is not None
    return kept


@pytest.mark.parametrize("other", [False, True])
def test_rows_by_tables_have_the_density_of_the_general_pass(rng, other):
    table = labels(rng, other=other)
    observed = rng.random(table.observed.shape) < 0.95
    for post in (draws_of(table).posterior(), StackedPosterior([draws_of(table)] * 2, [0.5, 0.5])):
        for rows in (table, Table(table.schema, table.values, observed)):
            np.testing.assert_allclose(post.log_density(rows).values, general(post, rows), atol=ROUNDING)
            np.testing.assert_allclose(post.log_mass(rows).values, general(post, rows), atol=ROUNDING)


def test_states_add_up_to_one(rng):
    table = labels(rng)
    columns = table.schema.columns
    states = pd.DataFrame(list(itertools.product(*(c.labels for c in columns))), columns=[c.name for c in columns])
    found = np.exp(StackedPosterior([draws_of(table)], [1.0]).log_density(states).values)
    np.testing.assert_allclose(found.sum(axis=-1), 1.0, atol=ROUNDING)


@pytest.mark.parametrize("planted", ["way", "parent", "ess"])
def test_a_wrong_way_parent_or_smoothing_is_caught(rng, planted):
    table = labels(rng)
    network, count = grown(table)
    post = bj.Posterior.from_circuit(expand(network, table.schema, count, ESS).circuit, table.schema)
    ess = 2.0 * ESS if planted == "ess" else ESS
    weights = mean_log_weights(network, count, ess)[None]
    if planted == "way":
        way = network.way.copy()
        trees = np.flatnonzero(network.split[way] < 0)[:2]
        way[trees] = way[trees[::-1]]
        network = network._replace(way=way)
    elif planted == "parent":
        first, parent = int(network.tree_ptr[-2]), network.parent.copy()  # the last part is a tree
        columns = network.column[first:]
        place = next(k for k in range(columns.size) if parent[first + k] >= 0)
        alike = network.n_group[columns] == network.n_group[columns[parent[first + place]]]
        alike[[place, parent[first + place]]] = False
        parent[first + place] = np.flatnonzero(alike)[0]
        network = network._replace(parent=parent)
    out = np.empty((1, table.n_row))
    fill_scores(network, weights, rows_of(table), out)
    assert abs(out - general(post, table)[0]).max() > 1e-3


def test_counts_are_those_of_the_sampler(rng):
    table = labels(rng, other=True)
    network, count = grown(table)
    circuit, edge_of = expand(network, table.schema, count, ESS)
    np.testing.assert_array_equal(count_rows(network, rows_of(table)), count)
    target = make_target(circuit, table, ess=ESS)
    assert target.is_closed_form
    sweeper = target.sweeper()
    sweeper.redraw(sweeper.learned(), rng)
    np.testing.assert_array_equal(sweeper.edge_count[edge_of[edge_of >= 0]], count[edge_of >= 0])


def test_draws_have_the_moments_of_sweeps_and_of_their_formula(rng):
    table = labels(rng)
    kept, n = draws_of(table, 400), 400
    post = kept.posterior()
    target = make_target(post.circuit, table, ess=ESS)
    sweeper = target.sweeper()
    params, swept = sweeper.learned(), []
    for _ in range(n):
        sweeper.redraw(params, rng)
        swept.append(np.exp(params.log_weight))
    weights, others = np.exp(post.params.log_weight[0]), np.array(swept)
    spread = np.maximum(np.sqrt((weights.var(axis=0) + others.var(axis=0)) / n), 1e-12)
    assert (abs(weights.mean(axis=0) - others.mean(axis=0)) / spread).max() < FAR
    mean = np.exp(post.circuit.start_log_weight)
    assert (abs(weights.mean(axis=0) - mean) / np.maximum(weights.std(axis=0) / np.sqrt(n), 1e-12)).max() < FAR


def test_draws_are_made_again_as_they_were(rng):
    kept = draws_of(labels(rng), 6)
    some = np.array([1, 4])
    np.testing.assert_array_equal(
        kept.table_weights(np.arange(6))[some], kept.take_draws(some).table_weights(np.arange(2))
    )
    whole = StackedPosterior([kept, kept], [0.5, 0.5]).take_draws(np.array([1, 8]))
    assert [one.draws.tolist() for one in whole.members()] == [[1], [2]]


def test_posteriors_are_kept_as_far_as_there_is_room(rng, monkeypatch):
    kept = draws_of(labels(rng))
    monkeypatch.setattr("bayesjpt.posterior.networks.MAX_KEPT_BYTES", kept.n_bytes)
    made = Structures([kept, kept])
    assert made[0] is made[0]
    assert made[1] is not made[1]
    assert [one.n_draw for one in made[:1]] == [2]


def test_many_networks_are_averaged_and_none_is_dropped(rng, tmp_path):
    table = labels(rng)
    options = {"n_structures": 60, "draws": 1, "seed": 1, "progress": False, "min_rows": 100, "min_columns": 2}
    post = bj.fit(table, "cutset", cores=1, **options)
    assert len(post.by_structure()) == 60
    assert all(isinstance(one, NetworkDraws) for one in post.members())
    again = bj.fit(table, "cutset", cores=2, **options)
    np.testing.assert_array_equal(post.log_density(table).values, again.log_density(table).values)
    post.save(tmp_path / "networks.nc")
    loaded = bj.load(tmp_path / "networks.nc")
    np.testing.assert_allclose(loaded.log_density(table).values, post.log_density(table).values, atol=ROUNDING)


def test_stacking_keeps_more_than_a_hundred_structures_that_are_alike(rng):
    scores = np.tile(rng.normal(size=20), (150, 1))
    assert (weigh(scores) > 0.0).all()


def test_independent_draws_are_called_so_and_paths_are_counted_in_words(rng, tmp_path):
    table = labels(rng)
    post = bj.fit(table, "cutset", n_structures=3, seed=1, cores=1, progress=False, min_rows=40, min_columns=1)
    post.save(tmp_path / "fit.nc")
    for one in (post, bj.load(tmp_path / "fit.nc")):
        found = one.convergence()
        assert "Draws are independent" in found.sentence()
        assert "nan" not in repr(found)
        assert "independent" in repr(found)
    single = bj.fit(table, "cutset", n_structures=1, draws=4, seed=1, cores=1, progress=False, min_rows=40)
    assert single.convergence().converged
    assert "nan" not in repr(single.convergence())
    words = [part.words[-1] for part in post.components(table.schema.names[0]).parts]
    assert max(map(len, words)) < 60
    view = post.tree(max_leaves=60)
    assert str(view).startswith("Cutset network of ")
    decided = [marginal.is_decided for node in view.data.nodes for marginal in node.marginals]
    assert any(decided)
    assert not all(decided)


def log_evidence_by_sums(post: bj.Posterior, table: Table, ess: float) -> float:
    """Return the log probability of the rows' ways, weights integrated out, by the circuit's sums one by one."""
    circuit = post.circuit
    sweeper = make_target(circuit, table, ess=ess).sweeper()
    sweeper.redraw(sweeper.learned(), np.random.default_rng(0))
    total = 0.0
    for node in np.flatnonzero(circuit.kind == arrays.HARD).tolist():
        count = sweeper.edge_count[circuit.child_ptr[node] : circuit.child_ptr[node + 1]]
        share = ess / count.size
        total += (gammaln(share + count) - gammaln(share)).sum() - gammaln(ess + count.sum()) + gammaln(ess)
    return total


def test_imaginary_rows_are_drawn_from_their_posterior(rng):
    table = labels(rng)
    kept = draws_of(table, 3)
    drawn = replace(kept, ess=None, draws=np.arange(2000))
    expected = np.array([log_evidence_by_sums(kept.posterior(), table, ess) for ess in DRAWN_ESS])
    weight = np.exp(expected - expected.max())
    weight /= weight.sum()
    np.testing.assert_allclose(drawn.ess_weights, weight, atol=1e-10)
    assert 0.01 < drawn.ess_weights.max() < 0.999  # a case in which several numbers are possible
    # the mean of a weight over draws is the mixture of its means given each number
    network = kept.network
    found = np.exp(drawn.table_weights(np.arange(2000)))
    mean = sum(w * np.exp(mean_log_weights(network, kept.count, e)) for w, e in zip(weight, DRAWN_ESS, strict=True))
    spread = np.maximum(found.std(axis=0) / np.sqrt(2000), 1e-12)
    assert (abs(found.mean(axis=0) - mean) / spread).max() < FAR


def test_imaginary_rows_are_drawn_by_fit_where_there_is_a_closed_form(rng):
    table = labels(rng)
    options = {"n_structures": 2, "seed": 1, "cores": 1, "progress": False, "min_rows": 100, "ess": "drawn"}
    post = bj.fit(table, "cutset", **options)
    assert post.settings["ess"] == "drawn"
    assert np.isfinite(post.log_density(table).values).all()
    for learner, more in (("mspn", {}), ("cutset", {"n_structures": 1}), ("cutset", {"ess": "learned"})):
        with pytest.raises(ModelError, match="several cutset networks"):
            bj.fit(table, learner, **options | more)
    holes = Table(table.schema, table.values, rng.random(table.observed.shape) < 0.9)
    with pytest.raises(ModelError, match="without missing cells"):
        bj.fit(holes, "cutset", **options)
