"""One imaginary sample for all splits: what each has of it, and what only such a prior keeps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

import bayesjpt as bj
from bayesjpt.circuit import arrays
from bayesjpt.circuit.build import build_circuit
from bayesjpt.circuit.networks import expand
from bayesjpt.circuit.split_prior import imaginary_rows, shares_of_entries, shares_of_whole
from bayesjpt.circuit.trees import Tree
from bayesjpt.errors import ModelError
from bayesjpt.sampler.target import make_target
from tests.queries.test_networks import draws_of
from tests.structure.test_label_networks import ESS, grown, labels

EXACT = 1e-12


@pytest.fixture
def table(rng):
    a = rng.integers(3, size=120)
    frame = pd.DataFrame({"a": a, "b": (a + (rng.random(120) < 0.3)) % 3, "c": rng.integers(2, size=120)})
    return bj.as_table(frame, kinds=dict.fromkeys(frame, "category"), other=False)


def log_evidence(circuit, table, ess) -> float:
    """Return the log probability of the ways of all rows, weights integrated out."""
    sweeper = make_target(circuit, table, ess=ess).sweeper()
    sweeper.redraw(sweeper.learned(), np.random.default_rng(0))
    prior, total = imaginary_rows(circuit, ess), 0.0
    for node in np.flatnonzero(circuit.kind == arrays.HARD).tolist():
        edges = slice(circuit.child_ptr[node], circuit.child_ptr[node + 1])
        own, count = prior[edges], sweeper.edge_count[edges]
        total += (gammaln(own + count) - gammaln(own)).sum() - gammaln((own + count).sum()) + gammaln(own.sum())
    return total


def test_trees_that_say_the_same_are_as_probable_before_and_after_rows(table):
    columns, rows = np.arange(3), np.arange(table.n_row)
    one, other = (build_circuit(Tree(columns, np.array(parents), rows), table) for parents in ([-1, 0, 1], [1, 2, -1]))
    found = [log_evidence(circuit, table, bj.BDeu(5.0)) for circuit in (one, other)]
    assert found[0] == pytest.approx(found[1], rel=EXACT)
    # so many rows for each split prefer one of the two, which is what the other prior is for
    found = [log_evidence(circuit, table, 5.0) for circuit in (one, other)]
    assert abs(found[0] - found[1]) > 0.1


def test_rows_become_fewer_down_a_tree(table):
    circuit = build_circuit(Tree(np.arange(3), np.array([-1, 0, 1]), np.arange(table.n_row)), table)
    prior = imaginary_rows(circuit, bj.BDeu(18.0))
    # the root has 6 a label; a column below it 18 / 9, one of two labels below that 18 / 6
    assert sorted(prior[prior > 0.0].tolist()) == pytest.approx([2.0] * 9 + [3.0] * 6 + [6.0] * 3)


def test_shares_of_a_network_are_those_of_its_circuit(rng):
    table = labels(rng, other=True)
    network, count = grown(table)
    circuit, edge_of = expand(network, table.schema, count, ESS)
    has_edge = edge_of >= 0
    np.testing.assert_allclose(
        shares_of_entries(network)[has_edge], shares_of_whole(circuit)[edge_of[has_edge]], rtol=EXACT
    )
    assert network.way.size > 2  # some splits lie below others


def test_draws_have_the_prior_that_sweeps_have(rng, tmp_path):
    table = labels(rng)
    circuit = draws_of(table).posterior().circuit
    prior = bj.BDeu(50.0)
    fit = bj.fit(table, lambda rows, rng: circuit, n_structures=2, draws=600, ess=prior, seed=1, progress=False)
    weights = np.exp(fit.by_structure()[0].params.log_weight[0])
    target = make_target(circuit, table, ess=prior)
    concentration = target.priors.concentration
    sweeper = target.sweeper()
    sweeper.redraw(sweeper.learned(), rng)
    posterior = concentration + sweeper.edge_count
    parent = circuit.edge_parent()
    is_hard = circuit.kind[parent] == arrays.HARD
    total = np.bincount(parent, weights=posterior, minlength=circuit.n_node)
    mean = posterior[is_hard] / total[parent[is_hard]]
    error = np.maximum(np.sqrt(mean * (1.0 - mean) / (1.0 + total[parent[is_hard]]) / 600), EXACT)
    assert (abs(weights.mean(axis=0)[is_hard] - mean) / error).max() < 5.0
    fit.save(tmp_path / "fit.nc")
    np.testing.assert_array_equal(bj.load(tmp_path / "fit.nc").log_density(table).values, fit.log_density(table).values)


def test_models_take_it_and_no_number_of_rows_below_zero(table):
    circuit = build_circuit(Tree(np.arange(3), np.array([-1, 0, 1]), np.arange(table.n_row)), table)
    model = bj.build_model(circuit, table, ess=bj.BDeu(18.0))
    (weights,) = (rv for rv in model.free_RVs if rv.name == "x_split_weights")
    alpha = np.concatenate([np.atleast_1d(each.eval()) for each in weights.owner.inputs if each.owner is None][-1:])
    assert set(np.round(alpha.ravel(), 9)) >= {2.0, 3.0, 6.0}
    for rows in (0.0, -1.0, np.inf):
        with pytest.raises(ModelError, match="concentration ess"):
            bj.fit(table, "cutset", n_structures=2, ess=bj.BDeu(rows), seed=1, progress=False)
