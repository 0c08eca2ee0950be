"""Leaves with constants of their own, knots for one: built, checked, named, asked, sampled and stored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

import bayesjpt as bj
from bayesjpt.circuit.build import ColumnLeaf, Sum, build_circuit
from bayesjpt.circuit.check import check_leaves_fit
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.plan import make_plan
from bayesjpt.circuit.restrict import restrict_families
from bayesjpt.errors import CircuitError
from bayesjpt.families import quantile, registry
from bayesjpt.table.schema import Schema
from tests import examples as ex
from tests import naive

PIECES = ex.only("quantile")
COLUMN = replace(ex.REAL, families=())
COUNT = replace(ex.COUNT, families=())
PROMISED = 1e-12


@pytest.fixture
def table(rng):
    return ex.make_table((COLUMN,), 120, rng)


@pytest.fixture
def circuit(table):
    return build_circuit(ex.leaf(0, table), table, PIECES)


def test_each_leaf_has_the_constants_that_its_own_rows_give(table):
    rows = np.argsort(table.values[0])
    parts = (rows[:70], rows[70:])
    circuit = build_circuit(Sum(tuple(ColumnLeaf(0, part) for part in parts), (70, 50)), table, PIECES)
    for leaf, part in enumerate(parts):
        expected = quantile.leaf_constants(COLUMN, table.values[0, part], -np.inf, np.inf)
        assert circuit.constants_of(leaf).tolist() == expected.tolist()
        counts = np.histogram((table.values[0, part] - COLUMN.location) / COLUMN.scale, expected[1:])[0]
        n = counts.size
        at = circuit.theta_at[leaf]
        np.testing.assert_allclose(
            circuit.start_theta[at : at + n], (counts + 2.0 / n) / (part.size + 2.0), rtol=PROMISED
        )


def test_atoms_have_no_part_in_the_knots(rng):
    table = ex.make_table((ex.HEAPED,), 200, rng)
    circuit = build_circuit(ex.leaf(0, table), table, ex.only("quantile", "atom"))
    values = table.values[0][~np.isin(table.values[0], ex.HEAPED.atoms)]
    leaf = [naive.leaf_family(circuit, leaf) for leaf in range(2)].index("quantile")
    expected = quantile.leaf_constants(ex.HEAPED, values, -np.inf, np.inf)
    assert circuit.constants_of(leaf).tolist() == expected.tolist()


def test_knots_of_a_hard_tree_lie_inside_the_cells_of_their_leaves(rng):
    table = ex.make_table((COLUMN, COUNT), 300, rng)
    circuit = bj.learn_jpt(table, rng, min_rows=30, dictionary=PIECES)
    assert (circuit.leaf_cell >= 0).any()
    cells = circuit.leaf_interval()
    for leaf in range(circuit.n_leaf):
        column = table.schema.columns[circuit.leaf_var[leaf]]
        reach = 0.5 if column.base == "integer" else 1e-12
        ends = naive.piece_ends(circuit, table.schema, leaf)
        assert cells[leaf, 0] - reach <= ends[0]
        assert ends[-1] <= cells[leaf, 1] + reach
    post = bj.Posterior.from_circuit(circuit, table.schema)
    assert np.isfinite(post.log_density(table)).all()
    assert post.probability("count >= 0").item() == pytest.approx(1.0, abs=PROMISED)


def test_families_with_the_same_units_share_a_feature(table):
    plan = make_plan(build_circuit(ex.leaf(0, table), table, ex.only("normal", "quantile")), table.schema)
    assert plan.feature_column.size == 1


@pytest.mark.parametrize(("position", "value"), [(0, 1.0), (1, 50.0), (-1, np.nan)])
def test_damaged_knots_are_refused_by_column(circuit, table, position, value):
    const = circuit.const.copy()
    const[position] = value
    with pytest.raises(CircuitError, match="a quantile leaf of the circuit does not fit column 'real'"):
        check_leaves_fit(circuit._replace(const=const), table.schema)


def test_more_parameters_than_pieces_are_refused(circuit, table):
    with pytest.raises(CircuitError, match="does not fit column 'real'"):
        check_leaves_fit(circuit._replace(theta_len=circuit.theta_len + 1), table.schema)


def test_pieces_are_labelled_by_slot_and_range(circuit, table):
    (variable,) = make_layout(circuit, table.schema).parameters
    ends = naive.piece_ends(circuit, table.schema, 0)
    assert variable.name == "quantile_probability"
    assert variable.labels[0] == f"real[0]={ends[0]:.15g}..{ends[1]:.15g}"
    assert len(set(variable.labels)) == circuit.n_theta


def test_family_that_has_to_be_named_is_in_no_other_dictionary():
    schema = Schema((COLUMN, COUNT))
    assert not any(family.by_name(column) for column in schema for family in registry.dictionary(column))
    named = restrict_families(schema, {"real": ["quantile"]})
    assert [family.name for family in registry.dictionary(named.columns[0])] == ["quantile"]
    everywhere = restrict_families(schema, ["quantile"])
    assert all(column.families == ("quantile",) for column in everywhere)


def test_answers_about_a_leaf_of_pieces_are_those_of_a_histogram(circuit, table, rng):
    post = bj.Posterior.from_circuit(circuit, table.schema)
    ends = naive.piece_ends(circuit, table.schema, 0)
    expected = scipy.stats.rv_histogram((circuit.start_theta, ends), density=False)
    np.testing.assert_allclose(
        post.log_density(table).values.ravel(), expected.logpdf(table.values[0]), rtol=0.0, atol=PROMISED
    )
    lo, hi = np.quantile(table.values[0], [0.2, 0.7]) + 0.013
    assert post.probability(bj.col("real").between(lo, hi)).item() == (
        pytest.approx(expected.cdf(hi) - expected.cdf(lo), abs=PROMISED)
    )
    assert post.expectation("real").item() == pytest.approx(expected.mean(), rel=PROMISED)
    assert post.variance("real").item() == pytest.approx(expected.var(), rel=1e-9)
    part = post.condition(bj.col("real").between(lo, hi))
    draws = part.sample(200, rng=rng).values[0]
    assert ((draws >= lo) & (draws <= hi)).all()
    assert post.quantile(0.4, "real").item() == pytest.approx(expected.ppf(0.4), abs=1e-6)


def test_log_joint_is_the_prior_of_the_masses_and_their_densities(circuit, table, rng):
    log_joint = bj.build_model(circuit, table).compile_logp(mode="FAST_COMPILE")
    theta = rng.dirichlet(np.ones(circuit.n_theta))
    ends = naive.piece_ends(circuit, table.schema, 0)
    expected = scipy.stats.dirichlet.logpdf(theta, 2.0 * circuit.start_theta)
    expected += scipy.stats.rv_histogram((theta, ends), density=False).logpdf(table.values[0]).sum()
    assert log_joint({"x_quantile_probability": theta}) == pytest.approx(expected, rel=PROMISED)


def test_fit_of_pieces_alone_is_saved_and_loaded_and_says_no_type(rng, tmp_path):
    table = ex.make_table((COLUMN, COUNT), 60, rng)
    post = bj.fit(table, n_structures=1, families=["quantile"], draws=6, tune=2, chains=2, seed=1, progress=False)
    post.save(tmp_path / "fit.nc")
    loaded = bj.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(loaded.log_density(table), post.log_density(table))
    assert np.isfinite(post.log_density(table)).all()
    assert [post.types().shares[name].type for name in table.schema.names] == ["not determined"] * 2
