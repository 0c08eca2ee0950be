"""Posteriors given events or values, and of fewer columns: laws against probabilities from the definition."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import hypothesis
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.check import check_circuit, check_leaves_fit
from bayesjpt.errors import EvidenceError, QueryError
from bayesjpt.kernels.flow import fill_marginal_cdf
from bayesjpt.kernels.sampling import sample_rows
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries import condition as verbs
from bayesjpt.queries.boxes import boxes, contains, intersections, why_null
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive_events, statistics, strategies
from tests.queries import events

EXACT = 1e-10  # relative, of probabilities and of log densities
ROUNDED = 1e-15  # absolute error of SciPy's probabilities
RARE = 1e-4  # probability below which SciPy's differences of cdfs have lost six digits
FAR = 1e-8  # probability of values beyond those that are integrated over
N_DRAWN = 3000
COLUMNS = (*ex.EVERY, ex.HEAPED)


def draws(post: Posterior) -> list[Params]:
    """Return the draws one by one."""
    flat = post.flat()
    return [Params(flat.log_weight[i], flat.theta[i]) for i in range(flat.theta.shape[0])]


def probabilities(post: Posterior, found) -> np.ndarray:
    """Return the probability of boxes under each draw, from the definition."""
    parts = [box.intervals for box in found]
    return np.array([naive_events.probability(post.circuit, post.schema, draw, parts) for draw in draws(post)])


def log_density(post: Posterior, table: Table) -> np.ndarray:
    """Return float64 (n_draw, n_row)."""
    return post.log_density(table).to_numpy().reshape(-1, table.n_row)  # type: ignore[attr-defined]


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=EXACT, atol=EXACT)


def with_cells(table: Table, *columns: int) -> Table:
    """Return the table with the cells of some columns, all others missing."""
    observed = np.zeros_like(table.observed)
    observed[list(columns)] = True
    return Table(table.schema, table.values, observed)


def part(table: Table, small: Posterior) -> Table:
    """Return the table's cells of a marginal's columns, under its schema."""
    index = [table.schema.names.index(name) for name in small.schema.names]
    return Table(small.schema, table.values[index], table.observed[index])


@st.composite
def posteriors(draw) -> tuple[Posterior, Table]:
    """Draw a posterior of two draws over some columns, and complete rows of them."""
    case = draw(strategies.cases(max_rows=6, offered=COLUMNS))
    table = Table(case.table.schema, case.table.values, np.ones_like(case.table.observed))
    rng = np.random.default_rng(draw(strategies.seeds))
    return ex.random_posterior(case.circuit, table, rng, n_chain=1, n_draw=2), table


def event_of(data: st.DataObject, post: Posterior):
    """Draw an event that is not rare under any draw, and its boxes."""
    event = data.draw(events.events(post.schema.columns, max_leaves=4))
    found = boxes(event, post.schema)
    hypothesis.assume(found and probabilities(post, found).min() > RARE)
    return event, found


# --- an event


@strategies.law(25)
@given(st.data())
def test_probability_given_an_event_is_a_ratio_of_probabilities(data):
    post, _ = data.draw(posteriors())
    event, found = event_of(data, post)
    asked = boxes(data.draw(events.events(post.schema.columns, max_leaves=4)), post.schema)
    conditional = post.condition(event)
    expected = probabilities(post, intersections(asked, found)) / probabilities(post, found)
    np.testing.assert_allclose(probabilities(conditional, asked), expected, rtol=EXACT, atol=ROUNDED / RARE)


@strategies.law(18)
@given(st.data())
def test_probability_given_an_event_is_that_under_the_conditional(data):
    post, _ = data.draw(posteriors())
    event, _ = event_of(data, post)
    asked = data.draw(events.events(post.schema.columns, max_leaves=4))
    hypothesis.assume(why_null(boxes(asked, post.schema), post.schema) is None)
    found = post.condition(event).probability(asked).to_numpy()
    np.testing.assert_allclose(found, post.probability(asked, given=event).to_numpy(), rtol=EXACT, atol=ROUNDED)


@strategies.law(15)
@given(st.data())
def test_expectation_given_values_is_that_under_the_conditional(data):
    post, table = data.draw(posteriors())
    known = data.draw(st.lists(st.integers(0, table.n_column - 1), min_size=1, unique=True))
    numbers = [column.name for column in post.schema if column.base != "category"]
    hypothesis.assume(numbers and np.isfinite(log_density(post, with_cells(table.rows(0), *known))).all())
    values = mapping(table, known)
    found = post.constrain(values).expectation(numbers).to_numpy()
    np.testing.assert_allclose(found, post.expectation(numbers, given=values).to_numpy(), rtol=EXACT, atol=EXACT)


@strategies.law(25)
@given(st.data())
def test_density_given_an_event_is_the_joint_over_its_probability_inside_and_none_outside(data):
    post, table = data.draw(posteriors())
    event, found = event_of(data, post)
    inside = np.any([contains(box, table.values) for box in found], axis=0)
    joint = log_density(post, table) - np.log(probabilities(post, found))[:, None]
    assert_same(log_density(post.condition(event), table), np.where(inside, joint, -np.inf))


@strategies.law(25)
@given(st.data())
def test_circuit_given_an_event_is_valid_and_its_weights_add_up_to_one(data):
    post, _ = data.draw(posteriors())
    event, _ = event_of(data, post)
    conditional = post.condition(event)
    check_circuit(conditional.circuit, len(post.schema))
    for draw in draws(conditional):
        check_circuit(conditional.circuit._replace(start_log_weight=draw.log_weight), len(post.schema))
    whole = conditional.circuit._replace(start_log_weight=conditional.circuit.start_log_weight)
    if all(not column.atoms for column in post.schema):
        check_leaves_fit(whole, post.schema)


@strategies.law(18)
@given(st.data())
def test_one_event_after_the_other_is_both_at_once(data):
    post, table = data.draw(posteriors())
    first, _ = event_of(data, post)
    second, _ = event_of(data, post)
    both = boxes(first & second, post.schema)
    hypothesis.assume(both and probabilities(post, both).min() > RARE)
    at_once = log_density(post.condition(first & second), table)
    assert_same(log_density(post.condition(first).condition(second), table), at_once)
    assert_same(log_density(post.condition(second).condition(first), table), at_once)


@strategies.law(18)
@given(st.data())
def test_marginal_of_a_conditional_is_the_conditional_of_the_marginal(data):
    post, table = data.draw(posteriors())
    kept = [column.name for column in post.schema][: data.draw(st.integers(1, len(post.schema)))]
    small = post.marginal(kept)
    event, _ = event_of(data, small)
    found = post.condition(event).marginal(kept)
    assert_same(log_density(found, part(table, found)), log_density(small.condition(event), part(table, found)))


# --- values


@strategies.law(25)
@given(st.data())
def test_density_given_values_is_the_joint_over_theirs(data):
    post, table = data.draw(posteriors())
    known = data.draw(st.lists(st.integers(0, table.n_column - 1), min_size=1, unique=True))
    row = table.rows(0)
    evidence = with_cells(row, *known)
    joint, density = log_density(post, row), log_density(post, evidence)
    hypothesis.assume(np.isfinite(density).all())
    conditional = post.constrain(mapping(row, known))
    assert_same(log_density(conditional, row), joint - density)
    rest = with_cells(row, *(c for c in range(table.n_column) if c not in known))
    assert_same(log_density(conditional, rest), joint - density)


@strategies.law(18)
@given(st.data())
def test_order_of_evidence_is_irrelevant(data):
    post, table = data.draw(posteriors())
    known = data.draw(st.lists(st.integers(0, table.n_column - 1), min_size=1, unique=True))
    evidence = with_cells(table.rows(0), *known)
    hypothesis.assume(np.isfinite(log_density(post, evidence)).all())
    at_once = log_density(post.constrain(mapping(table, known)), table)
    for order in (known, known[::-1]):
        one_by_one = post
        for column in order:
            one_by_one = one_by_one.constrain(mapping(table, [column]))
        assert_same(log_density(one_by_one, table), at_once)


@strategies.law(15)
@given(st.data())
def test_event_before_or_after_values_is_the_same(data):
    post, table = data.draw(posteriors())
    event, found = event_of(data, post)
    inside = np.flatnonzero(np.any([contains(box, table.values) for box in found], axis=0))
    hypothesis.assume(inside.size)
    known = data.draw(st.lists(st.integers(0, table.n_column - 1), min_size=1, unique=True))
    row = table.rows(int(inside[0]))
    hypothesis.assume(np.isfinite(log_density(post, row)).all())
    values = mapping(row, known)
    after = log_density(post.condition(event).constrain(values), row)
    assert np.isfinite(after).all()
    assert_same(after, log_density(post.constrain(values).condition(event), row))


def mapping(table: Table, columns: list[int]) -> Mapping[str, object]:
    """Return the first row's values of some columns as a user would write them."""
    facts = [table.schema.columns[column] for column in columns]
    values = [float(table.values[column, 0]) for column in columns]
    return {
        column.name: column.code_names[int(value)] if column.base == "category" else value
        for column, value in zip(facts, values, strict=True)
    }


@strategies.law(15)
@given(st.data())
def test_values_of_counted_columns_are_an_event(data):
    post, table = data.draw(posteriors())
    known = [c for c, column in enumerate(post.schema) if column.base != "real"]
    hypothesis.assume(known)
    hypothesis.assume(np.isfinite(log_density(post, with_cells(table.rows(0), *known))).all())
    given_values = post.constrain(mapping(table, known))
    given_event = post.condition(mapping(table, known))
    assert_same(log_density(given_values, table), log_density(given_event, table))


@strategies.law(18)
@given(st.data())
def test_density_of_a_marginal_is_that_of_rows_with_the_other_cells_missing(data):
    post, table = data.draw(posteriors())
    kept = data.draw(st.lists(st.integers(0, table.n_column - 1), min_size=1, unique=True))
    small = post.marginal([post.schema.columns[column].name for column in kept])
    check_circuit(small.circuit, len(kept))
    assert_same(log_density(small, part(table, small)), log_density(post, with_cells(table, *kept)))


# --- known answers


@pytest.fixture
def zeros(rng) -> Posterior:
    """Return two draws of a mixture over a column with an atom at 0 and labels.

    Positive families are left out: they score the cell at zero by its average density, of which half lies below zero.
    """
    table = ex.make_table((ex.ZEROS, ex.LABEL), 40, rng)
    circuit = ex.mixture(table, dictionary=ex.only("normal", "student_t", "uniform", "atom", "categorical"))
    return ex.random_posterior(circuit, table, rng, n_chain=1, n_draw=2)


def density_at(post: Posterior, zeros: float, label: int) -> np.ndarray:
    """Return the density of one row under each draw."""
    row = Table(post.schema, np.array([[zeros], [float(label)]]), np.ones((2, 1), bool))
    return np.exp(log_density(post, row)[:, 0])


@pytest.mark.parametrize(
    "event", ["zeros > 0.5 or label = 'a'", "zeros > 0", "zeros in (0, 2)", "zeros between 1 and 3"]
)
def test_densities_given_an_event_add_up_to_one(zeros, event):
    # between kinks: atoms, bounds of the events, the ends of the uniform
    ends = [-3e3, -60.0, -12.0, -3.0, -1e-12, 1e-12, 0.5, 1.0, 2.0 - 1e-12, 2.0 + 1e-12, 3.0, 24.0, 60.0, 3e3]
    node, weight = np.polynomial.legendre.leggauss(80)
    x = np.concatenate([0.5 * (lo + hi) + 0.5 * (hi - lo) * node for lo, hi in itertools.pairwise(ends)])
    dx = np.concatenate([0.5 * (hi - lo) * weight for lo, hi in itertools.pairwise(ends)])
    x, dx = np.append(x, ex.ZEROS.atoms), np.append(dx, [1.0, 1.0])
    values = np.array([np.repeat(x, 4), np.tile(np.arange(4.0), x.size)])
    density = np.exp(log_density(zeros.condition(event), Table(zeros.schema, values, np.ones_like(values, bool))))
    np.testing.assert_allclose((density * np.repeat(dx, 4)).sum(axis=1), 1.0, atol=FAR)


def test_open_bound_at_an_atom_leaves_it_out(zeros):
    assert (density_at(zeros.condition("zeros > 0"), 0.0, 0) == 0.0).all()
    assert (density_at(zeros.condition("zeros >= 0"), 0.0, 0) > 0.0).all()


def test_equality_at_an_atom_leaves_the_atom_alone(zeros):
    conditional = zeros.condition({"zeros": 0.0})
    assert_same(sum(density_at(conditional, 0.0, label) for label in range(4)), np.ones(2))
    assert (density_at(conditional, 0.1, 0) == 0.0).all()


@pytest.mark.parametrize("event", ["real > 1 and count < 4", "real < 0 or label in ('a', 'b')", "count in (0, 3, 4)"])
def test_rows_drawn_given_an_event_lie_in_it_and_follow_its_cdf(event, rng):
    table = ex.make_table((ex.REAL, ex.COUNT, ex.LABEL), 40, rng)
    post = ex.random_posterior(ex.two_level(table), table, rng, n_chain=1, n_draw=1).condition(event)
    flat, plan = post.flat(), post.plan()
    rows = np.empty((N_DRAWN, 3))
    sample_rows(plan, flat.log_weight[0], flat.theta[0], rng, rows)
    assert np.any([contains(box, rows.T) for box in boxes(event, post.schema)], axis=0).all()
    for column in range(2):

        def cdf(points: np.ndarray, column: int = column) -> np.ndarray:
            out = np.empty((1, points.size))
            columns = np.full(points.size, column)
            fill_marginal_cdf(plan, flat.log_weight, flat.theta, columns, points, out)
            return out[0]

        assert statistics.cdf_deviation(rows[:, column].copy(), cdf) < statistics.dkw_bound(N_DRAWN)


def test_cdf_given_an_event_agrees_with_probabilities(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 40, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng, n_chain=1, n_draw=2).condition("real > 0 or count = 2")
    points = np.array([-1.0, 0.5, 2.0])
    out = np.empty((2, 3))
    fill_marginal_cdf(post.plan(), *post.flat(), np.zeros(3, np.int64), points, out)
    expected = [probabilities(post, boxes(f"real <= {x}", post.schema)) for x in points]
    np.testing.assert_allclose(out, np.transpose(expected), rtol=EXACT, atol=ROUNDED / RARE)


def test_boxes_share_what_they_leave_alike_and_leaves_share_parameters(rng):
    table = ex.make_table((ex.REAL, ex.COUNT, ex.LABEL), 40, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng)
    conditional = post.condition("real < 0 and count < 3 or real > 1 and count > 4")
    n_leaf = {c: int((post.circuit.leaf_var == c).sum()) for c in range(3)}
    found = {c: int((conditional.circuit.leaf_var == c).sum()) for c in range(3)}
    assert found == {0: 2 * n_leaf[0], 1: 2 * n_leaf[1], 2: n_leaf[2]}
    assert conditional.circuit.n_theta == post.circuit.n_theta
    assert conditional.circuit.shares_parameters


def test_leaf_shared_by_components_is_summed_out_and_conditioned(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 30, rng)
    circuit = ex.shared_leaf(table)
    post = ex.random_posterior(circuit, table, rng)
    whole = Table(table.schema, table.values, np.ones_like(table.observed))
    small = post.marginal("count")
    assert_same(log_density(small, part(whole, small)), log_density(post, with_cells(whole, 1)))
    conditional = post.condition("count >= 2")
    expected = log_density(post, whole) - np.log(probabilities(post, boxes("count >= 2", post.schema)))[:, None]
    assert_same(log_density(conditional, whole), np.where(whole.values[1] >= 2, expected, -np.inf))


def test_children_that_become_one_are_one(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 30, rng)
    circuit = ex.merged(ex.mixture(table, dictionary=strategies.first_family), 1, 4)
    small = ex.random_posterior(circuit, table, rng).marginal("count")
    assert small.circuit.n_node == 1


def test_thousands_of_columns_of_evidence_do_not_underflow(rng):
    columns = tuple(replace(ex.REAL, name=f"c{i}") for i in range(2000))
    table = ex.make_table((*columns, ex.LABEL), 5, rng)
    post = ex.random_posterior(ex.mixture(table, dictionary=strategies.first_family), table, rng, n_chain=1, n_draw=2)
    row = Table(table.schema, table.values[:, :1], np.ones((2001, 1), bool))
    far = mapping(row, list(range(2000)))
    conditional = post.constrain(far)
    assert log_density(post, with_cells(row, *range(2000))).max() < -745.0  # exp of it is 0
    assert_same(
        log_density(conditional, row), log_density(post, row) - log_density(post, with_cells(row, *range(2000)))
    )


@pytest.mark.parametrize("bound", [1e2, 1e4, 1e6])
def test_an_event_far_out_is_certain_given_itself(bound, rng):
    table = ex.make_table((ex.REAL, ex.LABEL, ex.COUNT), 30, rng)
    post = ex.random_posterior(ex.two_level(table), table, rng)
    far = f"real > {bound}"
    assert post.log_probability(far).max() < -50.0
    assert_same(post.condition(far).log_probability(far).values, 0.0)


# --- impossible evidence


def test_impossible_evidence_names_the_first_column_that_makes_it_so(rng):
    table = ex.make_table((ex.REAL, ex.COUNT, ex.LABEL), 30, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng).condition("count < 3")
    with pytest.raises(EvidenceError, match="evidence of probability zero: column 'count' makes it so"):
        post.condition("real > 0 and count > 4 and label = 'a'")
    with pytest.raises(EvidenceError, match="column 'count'"):
        post.constrain({"label": "a", "count": 7, "real": 0.0})


def test_evidence_that_is_impossible_under_some_draws_alone_says_how_many(rng):
    table = ex.make_table((ex.POSITIVE, ex.LABEL), 30, rng)
    circuit = ex.independent(table, ex.only("exponential", "categorical"))
    post = ex.random_posterior(circuit, table, rng, n_chain=1, n_draw=4)
    post.params.theta[0, 1, circuit.theta_at[0]] = 1e6  # exp(-1e6) has no float64
    assert post.condition("positive > 1").n_draw == 4
    post.params.theta[0, 1, circuit.theta_at[0]] = np.inf
    with pytest.raises(EvidenceError, match="under 1 of 4 draws: column 'positive'"):
        post.condition("positive > 1 and label = 'a'")


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ("real > 1 and real < 0", "contradicts itself"),
        ("real = 1.5", "continuous.*post.constrain"),
        ({"real": 1.5}, "continuous.*post.constrain"),
        ({"no": 1}, "no column 'no'"),
        (pd.DataFrame({"real": [1.0]}), "an event of type DataFrame"),
        (3.0, "type float"),
    ],
    ids=str,
)
def test_what_is_no_possible_event_is_refused(rng, event, message):
    table = ex.make_table((ex.REAL, ex.LABEL), 30, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng)
    with pytest.raises(QueryError, match=message):
        post.condition(event)


@pytest.mark.parametrize("values", ["real", [1.0], None])
def test_values_that_are_no_mapping_are_refused(rng, values):
    table = ex.make_table((ex.REAL,), 30, rng)
    with pytest.raises(QueryError, match="a mapping such as"):
        ex.random_posterior(ex.mixture(table), table, rng).constrain(values)


@pytest.mark.parametrize(
    ("columns", "message"), [([], "none"), (["real", "real"], "each name once"), (["raal"], "no column 'raal'")]
)
def test_columns_of_a_marginal_are_checked(rng, columns, message):
    table = ex.make_table((ex.REAL, ex.LABEL), 30, rng)
    with pytest.raises(QueryError, match=message):
        ex.random_posterior(ex.mixture(table), table, rng).marginal(columns)


@pytest.mark.parametrize(("cap", "message"), [("MAX_EDITED_EDGES", "edges"), ("MAX_EDITED_BYTES", "GiB")])
def test_answers_too_large_are_refused(rng, monkeypatch, cap, message):
    monkeypatch.setattr(verbs, cap, 20)
    table = ex.make_table((ex.REAL, ex.COUNT), 30, rng)
    post = ex.random_posterior(ex.mixture(table, 3), table, rng)
    with pytest.raises(QueryError, match=message):
        post.condition("real > 0 or count > 3")
