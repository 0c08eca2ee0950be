"""What every family with the slot promises of the gradient of its log density, against central differences."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.families import features, registry
from tests.families.examples import EXAMPLES, Example, identify

STEP = 1e-5
DIFFERENCED = 1e-6

with_gradient = pytest.mark.parametrize(
    "example", [e for e in EXAMPLES if e.family.accumulate_gradient and e.theta], ids=identify
)


def _gradient(example: Example, z: np.ndarray, flow: np.ndarray) -> np.ndarray:
    out = np.zeros(len(example.theta))
    aux = features.auxiliary(example.family, z, example.constants)
    example.family.accumulate_gradient(z, aux, flow, example.parameters, example.constants, out)
    return out


def _flow_weighted(example: Example, theta: np.ndarray, z: np.ndarray, flow: np.ndarray) -> float:
    moved = Example(example.name, example.column, tuple(theta), example.lo, example.hi)
    return float(flow @ moved.log_density(z))


def _values(example: Example, rng: np.random.Generator) -> np.ndarray:
    """Return values with density: likely ones and, last, two at the edge, zeros of positive columns for one."""
    likely = example.reference().rvs(size=30, random_state=rng).astype(np.float64)
    if example.discrete:
        return np.concatenate([likely, example.values()[[-1, 0]]])
    values = np.concatenate([likely, [0.0, likely.max() + 3.0 * np.ptp(likely)]])
    return values[np.isfinite(example.log_density(values))]


def test_every_built_in_family_has_a_gradient():
    assert all(family.accumulate_gradient for family in registry.FAMILIES)


@with_gradient
def test_gradient_agrees_with_central_differences(example, rng):
    z = _values(example, rng)
    flow = rng.uniform(0.1, 1.0, z.size)
    got = _gradient(example, z, flow)
    for k, value in enumerate(example.theta):
        step = np.zeros(got.size)
        step[k] = STEP * max(abs(value), 1e-3)
        up, down = (_flow_weighted(example, example.parameters + side * step, z, flow) for side in (1.0, -1.0))
        expected = (up - down) / (2.0 * step[k])
        assert got[k] == pytest.approx(expected, rel=DIFFERENCED, abs=DIFFERENCED * abs(got).max())


@with_gradient
def test_values_without_flow_are_skipped_even_without_density(example):
    possible = example.values()[1] if example.discrete else example.reference().median()
    z = np.array([0.5, possible, -7.5]) if example.discrete else np.array([np.inf, possible, -np.inf])
    alone = _gradient(example, z[1:2], np.ones(1))
    assert np.isfinite(alone).all()
    np.testing.assert_array_equal(_gradient(example, z, np.array([0.0, 1.0, 0.0])), alone)


def test_gradient_without_parameters_is_empty():
    example = next(e for e in EXAMPLES if e.name == "uniform")
    assert _gradient(example, np.array([0.5]), np.ones(1)).size == 0
