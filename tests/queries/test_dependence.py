"""Dependence: mutual information equal to enumeration and quadrature; its laws; shapes; errors."""

from __future__ import annotations

from dataclasses import replace

import arviz as az
import numpy as np
import pytest
from scipy import stats

from bayesjpt import Posterior
from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.build import Product, Sum, build_circuit
from bayesjpt.errors import EvidenceError, QueryError
from tests import examples as ex

EXACT = 1e-10
"""Nats, where every value is a cell."""

TAIL = 1e-7
"""Nats, where the far ends of a range are cells."""

NATS = 2e-4
"""For other columns: what the docstring promises, and as much for chance."""

ROUNDING = 1e-12

DISCRETE = (ex.LABEL, ex.FLAG, ex.named(ex.FLAG, "flag 2"))


def posterior(columns, rng, make=ex.mixture, n_draw=2, **more) -> Posterior:
    table = ex.make_table(columns, 40, rng)
    return ex.random_posterior(make(table, **more), table, rng, n_draw=n_draw)


def of(answer, first: str, second: str) -> np.ndarray:
    """Return float64 (n_draw,) for two columns."""
    return answer.sel(feature=first, feature_other=second).to_numpy().ravel()


def information(table: np.ndarray) -> float:
    """Return the mutual information of a table of probabilities, from the definition."""
    total = 0.0
    for a, row in enumerate(table):
        for b, p in enumerate(row):
            if p > 0.0:
                total += p * np.log(p / (table[a].sum() * table[:, b].sum()))
    return total


# --- against other programs


def test_labels_are_as_by_enumeration(rng):
    post = posterior(DISCRETE, rng, make=ex.two_level)
    found = post.dependence()
    names = [*ex.LABEL.labels, "other"], [*ex.FLAG.labels, "other"]
    joint = np.array([[post.probability(f"label = '{a}' and flag = '{b}'") for b in names[1]] for a in names[0]])
    expected = [information(table) for table in np.moveaxis(joint.reshape(4, 3, -1), 2, 0)]
    assert np.abs(of(found, "label", "flag") - expected).max() < EXACT
    assert (found["error_bound"].fillna(0.0) == 0.0).all()


def test_counts_of_a_short_range_are_as_by_enumeration(rng):
    post = posterior((replace(ex.COUNT, families=("poisson",)), ex.LABEL), rng, n_draw=1)
    points = [(a, k) for a in (*ex.LABEL.labels, "other") for k in range(80)]
    cells = [post.probability(f"label = '{a}' and count = {k}").to_numpy()[0, 0] for a, k in points]
    joint = np.reshape(cells, (4, 80))
    assert joint.sum() == pytest.approx(1.0, abs=1e-9)
    assert of(post.dependence(), "count", "label")[0] == pytest.approx(information(joint), abs=TAIL)


def normals(rng, components) -> Posterior:
    """Return a mixture of products of two normals; each component is (weight, means, standard deviations)."""
    columns = (ex.REAL, ex.named(ex.REAL, "other"))
    table = ex.make_table(columns, 30, rng)
    parts = tuple(Product((ex.leaf(0, table), ex.leaf(1, table))) for _ in components)
    circuit = build_circuit(Sum(parts, (30,) * len(components)), table)
    log_weight, theta = np.zeros(circuit.n_edge), np.empty(circuit.n_theta)
    log_weight[circuit.child_ptr[-2] :] = np.log([weight for weight, *_ in components])
    nodes = circuit.leaf_node()
    for number, (_, means, scales) in enumerate(components):
        product = circuit.child[circuit.child_ptr[-2] + number]
        below = circuit.child[circuit.child_ptr[product] : circuit.child_ptr[product + 1]]
        for column, slot in enumerate(below):
            node = slot if circuit.leaf_of[slot] >= 0 else circuit.child[circuit.child_ptr[slot]]
            leaf = int(np.flatnonzero(nodes == node)[0])
            facts = columns[circuit.leaf_var[leaf]]
            at = circuit.theta_at[leaf]
            theta[at] = (scales[column] / facts.scale) ** 2
            theta[at + 1] = (means[column] - facts.location) / facts.scale
    return Posterior(circuit, table.schema, Params(log_weight[None, None], theta[None, None]))


def by_quadrature(components) -> float:
    """Return the mutual information of a mixture of products of two normals, by the trapezoidal rule.

    It converges faster than any power of the step for integrands like this one.
    """
    weight = np.array([w for w, *_ in components])
    density, steps = [], []
    for mean, scale in zip(*(np.array([c[k] for c in components]).T for k in (1, 2)), strict=True):
        x = np.linspace((mean - 9 * scale).min(), (mean + 9 * scale).max(), 2000)
        density.append(stats.norm.pdf(x, mean[:, None], scale[:, None]))
        steps.append(x[1] - x[0])
    first, second = density
    p = np.einsum("k,kx,ky->xy", weight, first, second)
    apart = (weight @ first)[:, None] * (weight @ second)
    assert p.sum() * steps[0] * steps[1] == pytest.approx(1.0, abs=1e-9)
    return float((p * np.log(p / apart, where=p > 0.0, out=np.zeros_like(p))).sum() * steps[0] * steps[1])


@pytest.mark.parametrize(
    "components",
    [
        [(0.5, (0.0, 0.0), (1.0, 1.0)), (0.5, (1.5, 1.0), (1.0, 2.0))],
        [(0.2, (-3.0, 4.0), (0.5, 1.0)), (0.5, (0.0, 0.0), (2.0, 1.0)), (0.3, (3.0, -4.0), (1.0, 0.3))],
    ],
    ids=["overlapping", "apart"],
)
def test_mixtures_of_normals_are_as_by_quadrature(rng, components):
    found = normals(rng, components).dependence()
    expected = by_quadrature(components)
    assert expected > 0.04
    assert abs(of(found, "real", "other")[0] - expected) < NATS
    assert float(found["error_bound"].max()) < NATS


def test_components_far_apart_tell_which_of_them_it_is(rng):
    weight = np.array([0.3, 0.7])
    found = normals(rng, [(0.3, (-50.0, -50.0), (1.0, 1.0)), (0.7, (50.0, 50.0), (1.0, 1.0))]).dependence()
    assert of(found, "real", "other")[0] == pytest.approx(-(weight * np.log(weight)).sum(), abs=NATS)


def test_a_leaf_far_narrower_than_its_column_is_seen(rng):
    """Two components that differ in a spike: whether a row lies in it is all that the columns tell each other."""
    share, width = 0.01, 1e-6
    found = normals(rng, [(share, (0.123, 30.0), (width, 1.0)), (1.0 - share, (0.0, 0.0), (1.0, 1.0))]).dependence()
    entropy = -share * np.log(share) - (1.0 - share) * np.log1p(-share)
    assert of(found, "real", "other")[0] == pytest.approx(entropy, abs=NATS)


def test_densities_without_a_scale_near_zero_are_seen(rng):
    """Gammas of small shape: their logarithms spread over hundreds of octaves."""
    shapes, flags = np.array([0.02, 0.1]), np.array([0.2, 0.9])
    columns = (replace(ex.POSITIVE, families=("gamma",)), replace(ex.FLAG, families=("categorical",)))
    table = ex.make_table(columns, 30, rng)
    parts = tuple(Product((ex.leaf(0, table), ex.leaf(1, table))) for _ in shapes)
    circuit = build_circuit(Sum(parts, (15, 15)), table)
    theta, log_weight = np.empty(circuit.n_theta), np.zeros(circuit.n_edge)
    log_weight[circuit.child_ptr[-2] :] = np.log(0.5)
    number = [0, 0]
    for leaf in np.argsort(circuit.leaf_node()):
        column, at = circuit.leaf_var[leaf], circuit.theta_at[leaf]
        k = number[column]
        theta[at : at + circuit.theta_len[leaf]] = (
            (shapes[k], 1.0) if column == 0 else (flags[k], 1.0 - flags[k] - 1e-12, 1e-12)
        )
        number[column] += 1
    found = Posterior(circuit, table.schema, Params(log_weight[None, None], theta[None, None])).dependence()
    log_x = np.linspace(-900.0, 6.0, 200_001)
    density = np.array([stats.loggamma.pdf(log_x, shape) for shape in shapes])
    joint = 0.5 * np.array([flags @ density, (1.0 - flags) @ density])
    apart = joint.sum(axis=0) * (0.5 * np.array([flags.sum(), (1.0 - flags).sum()]))[:, None]
    expected = (joint * np.log(joint / apart, where=joint > 0.0, out=np.zeros_like(joint))).sum() * (
        log_x[1] - log_x[0]
    )
    assert of(found, "positive", "flag")[0] == pytest.approx(expected, abs=NATS)


# --- laws


@pytest.fixture
def post(rng) -> Posterior:
    """Return a posterior over columns of every base, atoms among them."""
    return posterior(ex.EVERY, rng, make=ex.two_level)


def test_is_symmetric_and_not_negative(post):
    found = post.dependence().to_numpy()
    assert np.array_equal(found, found.swapaxes(2, 3), equal_nan=True)
    assert (found[~np.isnan(found)] >= 0.0).all()
    assert np.isnan(found[..., np.eye(found.shape[2], dtype=bool)]).all()


def test_columns_that_the_structure_keeps_apart_have_exactly_none(rng):
    table = ex.make_table((ex.REAL, ex.LABEL, ex.COUNT), 40, rng)
    pair = Sum(tuple(Product((ex.leaf(0, table), ex.leaf(1, table))) for _ in range(2)), (40, 40))
    post = ex.random_posterior(build_circuit(Product((pair, ex.leaf(2, table))), table), table, rng)
    found = post.dependence()
    assert (of(found, "real", "count") == 0.0).all()
    assert (of(found, "label", "count") == 0.0).all()
    assert (of(found, "real", "label") > 0.0).all()
    assert found["error_bound"].sel(feature="real", feature_other="count") == 0.0


def test_equal_components_have_none(rng):
    component = (0.5, (0.0, 1.0), (1.0, 2.0))
    assert of(normals(rng, [component, component]).dependence(), "real", "other")[0] < EXACT


def test_units_do_not_matter(rng):
    table = ex.make_table((ex.REAL, ex.LABEL), 40, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng)
    real = replace(ex.REAL, location=3.0 - 2.5 * ex.REAL.location, scale=2.5 * ex.REAL.scale)
    other = replace(post, schema=replace(table.schema, columns=(real, ex.LABEL)), reference=None)
    assert np.abs(of(post.dependence(), "real", "label") - of(other.dependence(), "real", "label")).max() < NATS


def test_never_exceeds_the_entropy_of_labels(post):
    codes = [f"label = '{label}'" for label in (*ex.LABEL.labels, "other")]
    p = np.array([post.probability(code).to_numpy().ravel() for code in codes])
    entropy = -(p * np.log(p)).sum(axis=0)
    found = post.dependence().sel(feature="label").to_numpy().reshape(entropy.size, -1)
    assert (np.nanmax(found, axis=1) <= entropy).all()


def test_does_not_depend_on_the_other_columns_that_are_asked(post):
    every, two = post.dependence(), post.dependence(["real", "count"])
    assert np.abs(of(every, "real", "count") - of(two, "real", "count")).max() < EXACT
    marginal = post.marginal(["count", "real"]).dependence()
    assert np.abs(of(marginal, "real", "count") - of(two, "real", "count")).max() < EXACT


def test_normalised_is_the_coefficient_of_the_information(post):
    raw, scaled = post.dependence(), post.dependence(normalised=True)
    assert np.nanmax(np.abs(scaled - np.sqrt(1.0 - np.exp(-2.0 * raw)))) < ROUNDING
    assert scaled.name == "correlation"


def test_a_coarser_tolerance_stays_within_its_error_bound(rng):
    post = normals(rng, [(0.5, (-1.0, -1.0), (1.0, 1.0)), (0.5, (1.0, 1.0), (0.01, 1.0))])
    fine, coarse = post.dependence(["real", "other"]), post.dependence(["real", "other"], tolerance=0.01)
    off = np.abs(of(fine, "real", "other") - of(coarse, "real", "other")).max()
    assert 0.0 < off < coarse.error_bound.sel(feature="real", feature_other="other")


# --- evidence


def test_given_an_event_it_is_that_of_the_conditioned_posterior(post):
    found = post.dependence(["real", "label", "count"], given="count <= 3")
    expected = post.condition("count <= 3").dependence(["real", "label", "count"])
    assert np.array_equal(found, expected, equal_nan=True)


def test_given_the_component_nothing_is_left(rng):
    components = [(0.5, (-9.0, -9.0), (1.0, 1.0)), (0.5, (9.0, 9.0), (1.0, 1.0))]
    found = normals(rng, components).dependence(given="real > 0")
    assert of(found, "real", "other")[0] < EXACT


def test_a_column_that_is_given_tells_nothing(post):
    found = post.dependence(["label", "real", "positive"], given={"positive": 1.5})
    assert of(found, "label", "positive").max() < EXACT
    assert of(found, "label", "real").min() > 0.0


# --- shapes and mistakes


def test_some_draws_are_those_of_all(rng):
    post = posterior((ex.REAL, ex.LABEL), rng, n_draw=12)
    every, some = post.dependence(), post.dependence(max_draws=8)
    assert some.sizes["draw"] == 4
    assert np.abs(every.sel(draw=some["draw"]) - some).max() == 0.0


def test_arviz_summarises_it(rng):
    post = posterior((ex.REAL, ex.LABEL), rng, n_draw=20)
    row = az.summary(post.dependence().sel(feature="real", feature_other="label"))
    assert row["mean"].size == 1
    assert np.isfinite(float(row["mean"].iloc[0]))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"columns": ["real"]}, "two columns"),
        ({"columns": ["real", "reel"]}, "no column 'reel'"),
        ({"columns": ["real", "real"]}, "named twice"),
        ({"given": 3}, "evidence of type int"),
        ({"max_draws": 0}, "max_draws=0"),
        ({"tolerance": 0.0}, "tolerance = 0.0"),
    ],
)
def test_mistakes_are_told(post, arguments, text):
    with pytest.raises(QueryError, match=text):
        post.dependence(**arguments)


def test_impossible_evidence_is_refused(post):
    with pytest.raises(EvidenceError):
        post.dependence(given="count < 2 and count > 3")


def test_too_many_slots_are_refused(post, monkeypatch):
    monkeypatch.setattr("bayesjpt.queries.dependence.MAX_DEPENDENCE_BYTES", 100)
    with pytest.raises(QueryError, match="Name fewer columns"):
        post.dependence()
