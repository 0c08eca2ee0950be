"""The model's log joint density against its definition: rows enumerated over allocations, priors by SciPy."""

from __future__ import annotations

import numpy as np
import pytest

import bayesjpt as bj
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.paths import Condition
from tests import examples as ex
from tests.model import reference

TOLERANCE = 1e-9
GAMMA, ALPHA = 2.5, 0.3
N_POINT = 3

PAIRS = {
    "normal and the positive families": (ex.REAL, ex.POSITIVE),
    "the counts and categorical levels": (ex.COUNT, ex.LEVELS),
    "labels and normal": (ex.LABEL, ex.REAL),
    "two labels and whole numbers below zero": (ex.FLAG, ex.CHANGE),
    "atoms, one of them over a background": (ex.HEAPED, ex.FIXED),
}


def random_scales(circuit, schema, rng) -> dict[tuple[str, int], float]:
    """Return random factors of the default priors by family and column."""
    return {key: rng.gamma(3.0, 0.4) for key in reference.shared_scales(circuit, schema)}


def point_of(circuit, schema, params, scales, name="x"):
    """Return the values of a block's variables at flat parameters and factors."""
    point = {f"{name}_{key}": value for key, value in make_layout(circuit, schema).split(params).items()}
    families = {family for family, _ in scales}
    return point | {f"{name}_{f}_scale": np.array([at for key, at in scales.items() if key[0] == f]) for f in families}


@pytest.mark.parametrize("prior", ["default", "abda"])
@pytest.mark.parametrize("columns", PAIRS.values(), ids=PAIRS)
def test_log_joint_is_the_complete_data_joint_summed_over_allocations(columns, prior, rng):
    table = ex.make_table(columns, 4, rng, missing=0.3)
    circuit = ex.mixture(table)
    log_joint = bj.build_model(circuit, table, gamma=GAMMA, alpha=ALPHA, prior=prior).compile_logp()
    n_inside = 0
    for _ in range(20 * N_POINT):
        params = ex.random_params(circuit, table.schema, rng)
        scales = random_scales(circuit, table.schema, rng) if prior == "default" else {}
        expected = reference.log_prior(
            circuit, table.schema, params, gamma=GAMMA, alpha=ALPHA, prior=prior, scales=scales
        )
        expected += reference.log_likelihood_by_enumeration(circuit, params, table)
        # -inf where a parameter lies beyond the bound of its prior
        assert log_joint(point_of(circuit, table.schema, params, scales)) == pytest.approx(
            expected, rel=0.0, abs=TOLERANCE
        )
        n_inside += expected > -np.inf
        if n_inside == N_POINT:
            break
    assert n_inside == N_POINT


def test_log_joint_of_a_hard_tree_is_the_complete_data_joint_summed_over_allocations(rng):
    # split at a number that some rows have, and at labels: leaves in cells, atoms in cells, labels of a set
    table = ex.make_table((ex.HEAPED, ex.LABEL), 6, rng, missing=0.2)
    threshold = float(np.median(table.values[0]))
    conditions = Condition(0, threshold), Condition(1, 0.5, (1,))
    circuit = ex.hard(table, *conditions, dictionary=ex.only("normal", "atom"))
    assert (circuit.leaf_cell >= 0).any()
    log_joint = bj.build_model(circuit, table, gamma=1.5, alpha=0.7, ess=3.0).compile_logp()
    params = ex.random_params(circuit, table.schema, rng)
    scales = random_scales(circuit, table.schema, rng)
    concentrations = {"gamma": 1.5, "alpha": 0.7, "ess": 3.0}
    expected = reference.log_prior(circuit, table.schema, params, scales=scales, **concentrations)
    expected += reference.log_likelihood_by_enumeration(circuit, params, table)
    assert log_joint(point_of(circuit, table.schema, params, scales)) == pytest.approx(expected, rel=0.0, abs=TOLERANCE)


def test_log_joint_of_a_two_level_circuit_is_the_complete_data_joint_summed_over_allocations(rng):
    table = ex.make_table((ex.POSITIVE, ex.COUNT, ex.LABEL), 2, rng, missing=0.2)
    circuit = ex.two_level(table)
    log_joint = bj.build_model(circuit, table, gamma=1.5, alpha=0.7).compile_logp()
    params = ex.random_params(circuit, table.schema, rng)
    scales = random_scales(circuit, table.schema, rng)
    expected = reference.log_prior(circuit, table.schema, params, gamma=1.5, alpha=0.7, scales=scales)
    expected += reference.log_likelihood_by_enumeration(circuit, params, table)
    assert log_joint(point_of(circuit, table.schema, params, scales)) == pytest.approx(expected, rel=0.0, abs=TOLERANCE)


def test_log_joint_is_minus_infinity_below_the_floor_of_a_variance(rng):
    table = ex.make_table((ex.REAL,), 3, rng)
    circuit = ex.independent(table, ex.only("normal"))
    log_joint = bj.build_model(circuit, table).compile_logp()
    floor = (ex.REAL.resolution / ex.REAL.scale) ** 2 / 12.0
    point = {"x_normal_variance": np.array([0.999 * floor]), "x_normal_mu": np.zeros(1), "x_normal_scale": np.ones(1)}
    assert log_joint(point) == -np.inf
    assert np.isfinite(log_joint(point | {"x_normal_variance": np.array([1.001 * floor])}))
