"""One leaf at a time against SciPy: masses, moments, modes, draws and densities given its cell and an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
import scipy.integrate
from hypothesis import given

from bayesjpt.circuit.plan import INTERVAL, POINT, WHOLE, Plan, make_plan
from bayesjpt.kernels import leaf as kernels
from bayesjpt.kernels.mixture import Components, fill_component_moments
from bayesjpt.table.schema import Column
from tests import examples as ex
from tests import naive, statistics, strategies

EXACT = 1e-10  # relative, of log values; absolute near 0
CANCELLED = 1e-8  # SciPy's mass of an interval is a difference of two cdfs
N_DRAWN = 4000
HEAVY = ("student_t", "lognormal")  # their far tails have moments that quadrature does not see
SEEN = -20.0  # log mass of an interval that quadrature integrates well
LAST_COUNT = 400  # P(X > 400) is below 1e-30 for every count of the example circuits


class Leaf(NamedTuple):
    """A leaf of a case, and what its twin needs."""

    plan: Plan
    number: int
    all_theta: np.ndarray
    family: str
    column: Column
    theta: np.ndarray
    cell: tuple[float, float]

    @property
    def arguments(self):
        return self.plan, self.all_theta, self.number

    @property
    def known(self) -> bool:
        return self.column.base == "real" and self.cell[0] == self.cell[1] and self.family != "atom"


def leaves_of(case: strategies.Case) -> list[Leaf]:
    """Return every leaf of a case."""
    circuit, plan = case.circuit, make_plan(case.circuit, case.table.schema)
    return [
        Leaf(
            plan,
            number,
            case.params.theta,
            naive.leaf_family(circuit, number),
            case.table.schema.columns[circuit.leaf_var[number]],
            naive.leaf_theta(circuit, case.table.schema, case.params, number),
            (float(circuit.leaf_interval()[number, 0]), float(circuit.leaf_interval()[number, 1])),
        )
        for number in range(circuit.n_leaf)
    ]


def log_mass(leaf: Leaf, lo: float, hi: float) -> float:
    """Return log P(lo ... hi | the leaf's cell) from SciPy's masses."""
    lower, upper = leaf.cell
    lo, hi = max(lo, lower), min(hi, upper)
    if lo > hi:
        return -math.inf
    if leaf.known:
        return 0.0
    inside = naive.family_log_interval(leaf.family, leaf.column, leaf.theta, lo, hi)
    return inside - naive.family_log_interval(leaf.family, leaf.column, leaf.theta, lower, upper)


def moment(leaf: Leaf, k: int, lo: float, hi: float) -> float:
    """Return the mean (k = 1) or the variance (k = 2) of the family given lo ... hi by quadrature or summation."""
    about = 0.0 if k == 1 else moment(leaf, 1, lo, hi)
    if leaf.column.base == "real" and leaf.family != "atom":
        frozen = naive.family_distribution(leaf.family, leaf.column, leaf.theta)
        lo, hi = max(lo, frozen.ppf(1e-15)), min(hi, frozen.isf(1e-15))
        middle = [x for x in (frozen.median(),) if lo < x < hi]
        total = scipy.integrate.quad(frozen.pdf, lo, hi, points=middle, epsabs=0.0)[0]
        powers = scipy.integrate.quad(lambda x: (x - about) ** k * frozen.pdf(x), lo, hi, points=middle, epsabs=0.0)
        return powers[0] / total
    values: Sequence[float] = range(-LAST_COUNT if leaf.family in ("rounded_normal", "quantile") else 0, LAST_COUNT)
    if leaf.family in ("atom", "categorical", "bernoulli"):
        values = leaf.column.atoms or leaf.column.levels or range(leaf.column.n_label)
    inside = [x for x in values if lo <= x <= hi]
    mass = [math.exp(naive.family_log_interval(leaf.family, leaf.column, leaf.theta, x, x)) for x in inside]
    return math.fsum((x - about) ** k * p for x, p in zip(inside, mass, strict=True)) / math.fsum(mass)


def moments_of(leaf: Leaf, lo: float, hi: float) -> tuple[float, float]:
    """Return mean and variance of the leaf's family given its cell and lo ... hi, as queries have them."""
    plan, at = leaf.plan, [leaf.number]
    feature = plan.leaf_value[at]
    whole = Components(
        ptr=np.array([0, 1], np.int32),
        place=np.zeros(1, np.int64),
        family=plan.leaf_family[at],
        theta_at=plan.theta_at[at],
        theta_len=plan.theta_len[at],
        const_at=plan.const_at[at],
        const_len=plan.const_len[at],
        lower=np.maximum(lo, plan.leaf_lower[at]),
        upper=np.minimum(hi, plan.leaf_upper[at]),
        offset=plan.feature_offset[feature],
        unit=plan.feature_scale[feature],
        resolution=plan.leaf_resolution[at],
        counts=np.zeros(1, bool),
        location=np.zeros(1),
        scale=np.ones(1),
        jump_ptr=np.zeros(2, np.int32),
        jump=np.empty(0),
    )
    mean, variance = np.empty(1), np.empty(1)
    fill_component_moments(whole, plan.const, leaf.all_theta, mean, variance)
    return float(mean[0]), float(variance[0])


def intervals(leaf: Leaf, rng: np.random.Generator) -> list[tuple[float, float]]:
    """Return the whole line and plausible intervals that meet the leaf's cell."""
    plausible = [ex.plausible_interval(leaf.column, rng) for _ in range(4)]
    lower, upper = leaf.cell
    return [(-np.inf, np.inf)] + [(lo, hi) for lo, hi in plausible if lo <= upper and hi >= lower and lo < hi]


@strategies.law(40)
@given(strategies.truncated_cases(), strategies.seeds)
def test_log_mass_and_cdf_agree_with_scipy(case, seed):
    rng = np.random.default_rng(seed)
    for leaf in leaves_of(case):
        if log_mass(leaf._replace(cell=(-np.inf, np.inf)), *leaf.cell) == -np.inf and not leaf.known:
            continue  # nothing is asked of a leaf whose cell has no mass
        for lo, hi in [ex.plausible_interval(leaf.column, rng) for _ in range(4)]:
            assert kernels.leaf_log_mass(*leaf.arguments, lo, hi) == pytest.approx(
                log_mass(leaf, lo, hi), rel=CANCELLED, abs=CANCELLED
            )
            assert kernels.leaf_cdf(*leaf.arguments, hi) == pytest.approx(
                math.exp(log_mass(leaf, -math.inf, hi)), abs=CANCELLED
            )


@strategies.law(40)
@given(strategies.truncated_cases(), strategies.seeds)
def test_mass_of_the_cell_is_one_and_outside_there_is_none(case, seed):
    for leaf in leaves_of(case):
        lower, upper = leaf.cell
        assert kernels.leaf_log_mass(*leaf.arguments, lower, upper) == 0.0
        assert kernels.leaf_log_mass(*leaf.arguments, -np.inf, np.inf) == 0.0
        if upper < np.inf:
            assert kernels.leaf_log_mass(*leaf.arguments, upper + 1.0, np.inf) == -np.inf
            assert kernels.leaf_cdf(*leaf.arguments, upper + 1.0) == pytest.approx(1.0, abs=EXACT)


@strategies.law(20)
@given(strategies.truncated_cases(max_rows=3), strategies.seeds)
def test_moments_agree_with_quadrature(case, seed):
    rng = np.random.default_rng(seed)
    for leaf in leaves_of(case)[:4]:
        for lo, hi in intervals(leaf, rng)[:3]:
            lo, hi = max(lo, leaf.cell[0]), min(hi, leaf.cell[1])
            if leaf.known:
                assert moments_of(leaf, lo, hi) == (lo, 0.0)
            elif leaf.family in HEAVY and not np.isfinite([lo, hi]).all():
                continue
            elif lo < hi and naive.family_log_interval(leaf.family, leaf.column, leaf.theta, lo, hi) > SEEN:
                expected = [moment(leaf, k, lo, hi) for k in (1, 2)]
                assert moments_of(leaf, lo, hi) == pytest.approx(expected, rel=CANCELLED, abs=CANCELLED)


@strategies.law(40)
@given(strategies.truncated_cases(), strategies.seeds)
def test_log_density_agrees_with_scipy(case, seed):
    rng = np.random.default_rng(seed)
    for leaf in leaves_of(case):
        buffer = kernels.leaf_buffer(leaf.plan)
        for x in [*ex.draw_column(leaf.column, 4, rng), *(end for end in leaf.cell if math.isfinite(end))]:
            assert kernels.leaf_log_density(*leaf.arguments, float(x), buffer) == pytest.approx(
                naive.cell_score(leaf.family, leaf.column, leaf.theta, float(x), leaf.cell),
                rel=CANCELLED,
                abs=CANCELLED,
            )


@strategies.law(40)
@given(strategies.truncated_cases(), strategies.seeds)
def test_no_value_has_more_density_than_the_mode(case, seed):
    rng = np.random.default_rng(seed)
    for leaf in leaves_of(case):
        buffer = kernels.leaf_buffer(leaf.plan)
        for lo, hi in intervals(leaf, rng):
            x, score = kernels.leaf_mode(*leaf.arguments, lo, hi, buffer)
            assert max(lo, leaf.cell[0]) <= x <= min(hi, leaf.cell[1])
            if x not in leaf.column.atoms:  # where it is the limit
                assert score == kernels.leaf_log_density(*leaf.arguments, x, buffer)
            for other in ex.draw_column(leaf.column, 20, rng):
                if lo <= other <= hi:
                    assert kernels.leaf_log_density(*leaf.arguments, float(other), buffer) <= score + EXACT


def test_mode_where_the_cell_has_no_value_has_no_density(rng):
    leaf = one_leaf(ex.REAL, (0.0, 1.0), rng)
    assert kernels.leaf_mode(*leaf.arguments, 2.0, 3.0, kernels.leaf_buffer(leaf.plan))[1] == -np.inf


def one_leaf(column: Column, cell: tuple[float, float], rng: np.random.Generator, family: int = 0) -> Leaf:
    """Return a leaf of a column's dictionary, truncated to a cell."""
    table = ex.make_table((column,), 30, rng)
    circuit = ex.independent(table, lambda facts: (ex.registry.dictionary(facts)[family],))
    circuit = circuit._replace(leaf_cell=np.zeros(1, np.int32), cell=np.array(cell))
    return leaves_of(strategies.Case(table, circuit, ex.random_params(circuit, table.schema, rng)))[0]


@pytest.mark.parametrize(
    ("column", "cell", "family"),
    [
        (ex.REAL, (0.3, 2.2), 0),
        (ex.REAL, (-np.inf, -4.0), 0),
        (ex.POSITIVE, (2.0, 3.0), 0),
        (ex.POSITIVE, (1.0, np.inf), 1),
        (ex.COUNT, (2.0, 6.0), 0),
        (ex.COUNT, (1.0, np.inf), 1),
        (ex.LABEL, (1.0, 2.0), 0),
    ],
)
def test_draws_lie_in_the_cell_and_follow_its_cdf(column, cell, family, rng):
    leaf = one_leaf(column, cell, rng, family)
    drawn = np.array([kernels.leaf_sample(*leaf.arguments, -np.inf, np.inf, rng) for _ in range(N_DRAWN)])
    assert drawn.min() >= cell[0]
    assert drawn.max() <= cell[1]
    cdf = np.vectorize(lambda x: kernels.leaf_cdf(*leaf.arguments, x))
    assert statistics.cdf_deviation(drawn, cdf) < statistics.dkw_bound(N_DRAWN)


def test_draws_of_a_known_value_are_that_value(rng):
    leaf = one_leaf(ex.REAL, (0.7, 0.7), rng)
    assert kernels.leaf_sample(*leaf.arguments, -np.inf, np.inf, rng) == 0.7


@pytest.mark.parametrize(
    ("column", "cell", "cut"),
    [
        (ex.REAL, (-np.inf, np.inf), WHOLE),
        (ex.REAL, (0.0, np.inf), INTERVAL),
        (ex.REAL, (1.0, 1.0), POINT),
        (ex.COUNT, (1.0, 1.0), INTERVAL),
        (ex.LABEL, (1.0, 1.0), INTERVAL),
    ],
)
def test_a_cell_cuts_nothing_an_interval_or_all_but_a_value(column, cell, cut, rng):
    assert one_leaf(column, cell, rng).plan.leaf_cut.tolist() == [cut]


def test_interval_without_mass_has_finite_moments_no_mass_and_no_density(rng):
    leaf = one_leaf(ex.POSITIVE, (-9.0, -1.0), rng, family=1)
    assert kernels.leaf_log_mass(*leaf.arguments, -5.0, -3.0) == -np.inf
    assert np.isfinite(moments_of(leaf, -5.0, -3.0)).all()
    assert kernels.leaf_log_density(*leaf.arguments, -4.0, kernels.leaf_buffer(leaf.plan)) == -np.inf
