"""The learner of networks over intervals: its tests and clusters against twins, invariants, whole columns, fits."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.integrate
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesjpt as bj
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum
from bayesjpt.circuit.check import check_circuit
from bayesjpt.errors import LearnerError
from bayesjpt.families import registry
from bayesjpt.families.spline_choice import RULES, Rule
from bayesjpt.kernels.naive_bayes import assign_rows
from bayesjpt.structure.independence import g_test, p_values
from bayesjpt.structure.wmispn import Settings, binned, clusters, learn_wmispn, wmispn_tree
from tests.structure.tables import table_of, without_cells

EXACT = 1e-10
FEW = {"n_structures": 1, "draws": 6, "tune": 6, "chains": 2, "cores": 1, "progress": False}


def tree_of(table, seed=0, *, rule=None, p_value=0.001, min_rows=1, penalty=0.6):
    chosen = Settings(rule or Rule(), p_value, min_rows, penalty)
    return wmispn_tree(table, np.random.default_rng(seed), chosen)


def leaves_of(tree):
    """Return the leaves of a tree."""
    found, stack = [], [tree]
    while stack:
        node = stack.pop()
        found += [node] if isinstance(node, ColumnLeaf) else []
        stack.extend(getattr(node, "children", ()))
    return found


small_tables = st.lists(
    st.tuples(
        st.one_of(st.just(np.nan), st.integers(-3, 3)),
        st.one_of(st.just(np.nan), st.integers(0, 2)),
        st.one_of(st.just(np.nan), st.integers(0, 1)),
    ),
    min_size=1,
    max_size=40,
).map(lambda cells: table_of(*np.array(cells, float).T, bases="ric"))


# --- the G-test


def test_g_is_that_of_scipy(rng):
    for n_first, n_second in ((2, 2), (3, 5), (4, 2)):
        first = rng.integers(0, n_first, 300)
        second = np.where(rng.random(300) < 0.2, first % n_second, rng.integers(0, n_second, 300))
        counts = np.zeros((n_first, n_second))
        np.add.at(counts, (first, second), 1.0)
        expected = scipy.stats.chi2_contingency(counts, correction=False, lambda_="log-likelihood")
        statistic, freedom = g_test(first, second)
        assert (statistic, freedom) == (pytest.approx(expected.statistic, rel=EXACT), expected.dof)
        found = p_values(np.column_stack([first, second]).astype(np.int32))
        assert found[0, 1] == pytest.approx(expected.pvalue, rel=1e-8)


def test_codes_that_do_not_occur_and_missing_cells_do_not_count():
    first, second = np.array([0, 2, 0, 2, 1, -1]), np.array([0, 3, 0, 3, -1, 1])
    assert g_test(first, second) == (pytest.approx(2.0 * 4.0 * math.log(2.0)), 1)
    assert g_test(np.array([-1, 0]), np.array([0, -1])) == (0.0, 0)


def test_independent_columns_are_found_dependent_as_often_as_the_p_value_says(rng):
    found = [p_values(rng.integers(0, 3, (400, 2)).astype(np.int32))[0, 1] for _ in range(400)]
    assert 8 <= (np.array(found) < 0.05).sum() <= 36  # 20 expected


# --- clusters


def naive_assign(codes, order, smoothing, penalty, most):
    """Return clusters by the definition: every count from scratch for every row and cluster."""
    n_row, n_column = codes.shape
    n_code = codes.max(axis=0) + 1
    cluster = np.full(n_row, -1)
    for rows in order:
        before = cluster.copy()
        for row in rows:
            cluster[row] = -1
            scores, opened = {}, False
            for own in range(most):
                members = np.flatnonzero(cluster == own)
                if members.size == 0:
                    if opened:
                        continue
                    opened = True
                score = math.log(members.size) if members.size else -penalty
                for column in range(n_column):
                    if codes[row, column] >= 0:
                        seen = codes[members, column]
                        share = (seen == codes[row, column]).sum() + smoothing
                        score += math.log(share / ((seen >= 0).sum() + smoothing * n_code[column]))
                scores[own] = score
            cluster[row] = first_of_the_best(scores)
        if np.array_equal(before, cluster):
            break
    return cluster


def first_of_the_best(scores):
    """Return the first that none after it beats by more than rounding."""
    best = None
    for own, score in scores.items():
        best = own if best is None or score > scores[best] + 1e-9 else best
    return best


@pytest.mark.parametrize("penalty", [0.5, 3.0])
def test_clusters_are_those_of_the_slow_twin(penalty, rng):
    group = rng.integers(0, 3, 60)
    codes = np.where(rng.random((60, 4)) < 0.7, group[:, None], rng.integers(0, 3, (60, 4))).astype(np.int32)
    codes[rng.random(codes.shape) < 0.1] = -1
    codes[0] = 2
    order = np.stack([rng.permutation(60) for _ in range(4)])
    cluster = np.full(60, -1, np.int64)
    ptr = np.array([0, 3, 6, 9, 12], np.int32)
    assign_rows(codes, ptr, order, (0.1, penalty, 6), cluster)
    assert cluster.tolist() == naive_assign(codes, order, 0.1, penalty, 6).tolist()


def test_planted_clusters_are_found_and_a_high_penalty_finds_one(rng):
    group = np.repeat([0, 1, 2], 60)
    codes = np.where(rng.random((180, 6)) < 0.97, group[:, None], rng.integers(0, 3, (180, 6))).astype(np.int32)
    found = clusters(codes, 0.6, rng)
    assert len(set(zip(group.tolist(), found.tolist(), strict=True))) == np.unique(found).size == 3
    assert np.unique(clusters(codes, 1e6, rng)).size == 1


# --- codes


@pytest.mark.parametrize("rule", RULES)
def test_codes_count_the_breaks_below(rule, rng):
    table = table_of(rng.normal(size=200), rng.poisson(9.0, 200).astype(float), bases="ri")
    codes = binned(table, Rule(rule, 4))
    for column in range(2):
        order = np.argsort(table.values[column])
        assert (np.diff(codes[order, column]) >= 0).all()
        assert set(codes[:, column].tolist()) == {0, 1, 2, 3}


def test_labels_atoms_and_missing_cells_have_codes_of_their_own():
    frame = pd.DataFrame({"x": [0.0] * 300 + (np.arange(200) * 0.37 + 1.0).tolist(), "k": ["a", "b"] * 250})
    table = without_cells(bj.as_table(frame, kinds={"x": "real"}), 0.1, np.random.default_rng(0))
    codes = binned(table, Rule(n_bins=2))
    assert table.schema.columns[0].atoms == (0.0,)
    zero = table.observed[0] & (table.values[0] == 0.0)
    assert set(codes[zero, 0].tolist()) == {0}
    assert set(codes[table.observed[0] & ~zero, 0].tolist()) == {1, 2}
    assert (codes[~table.observed.T] == -1).all()


# --- the tree


@settings(max_examples=15, deadline=None)
@given(small_tables, st.integers(1, 10), st.sampled_from([0.0, 0.05, 1.0]))
def test_every_cell_of_any_table_is_in_exactly_one_leaf(table, min_rows, p_value):
    times = np.zeros((table.n_column, table.n_row), int)
    for leaf in leaves_of(tree_of(table, min_rows=min_rows, p_value=p_value)):
        times[leaf.column, leaf.rows] += 1
    assert (times == 1).all()


def test_planted_blocks_of_columns_become_a_product(rng):
    first, second = rng.standard_normal((2, 2000))
    noise = 0.3 * rng.standard_normal((2, 2000))
    tree = tree_of(table_of(first, second, first + noise[0], second**2 + noise[1]), min_rows=1999)
    assert isinstance(tree, Product)
    scopes = {frozenset(leaf.column for leaf in leaves_of(child)) for child in tree.children}
    assert scopes == {frozenset({0, 2}), frozenset({1, 3})}


def test_planted_groups_of_rows_become_a_sum(rng):
    group = np.arange(500) % 25 < 12
    columns = [np.where(group, 6.0, -6.0) + rng.standard_normal(500) for _ in range(4)]
    tree = tree_of(table_of(*columns), rule=Rule(n_bins=2), min_rows=260)
    assert isinstance(tree, Sum)
    assert sorted(tree.n_rows) == [240, 260]


def test_same_generator_state_gives_the_same_circuit(rng):
    table = table_of(*rng.normal(size=(3, 300)), rng.integers(0, 3, 300), bases="rrrc")
    first, other = (learn_wmispn(table, np.random.default_rng(4)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    check_circuit(first, 4)


@pytest.mark.parametrize(
    "setting",
    [{"bins": "equal"}, {"n_bins": 0}, {"n_bins": 2.5}, {"n_bins": 101}, {"order": 0}, {"order": 7}, {"p_value": -1.0},
     {"min_rows": 0}, {"penalty": -1.0}],
)  # fmt: skip
def test_senseless_setting_is_refused_by_name(rng, setting):
    with pytest.raises(LearnerError, match=next(iter(setting))):
        learn_wmispn(table_of(rng.normal(size=30)), rng, **setting)


@pytest.mark.parametrize("order", [0, 7, 2.5])
def test_refused_order_says_which_orders_there_are(rng, order):
    with pytest.raises(LearnerError, match="expected a whole number from 1 to 6"):
        learn_wmispn(table_of(rng.normal(size=30)), rng, order=order)


def test_leaves_have_the_order_and_bins_that_were_asked_for(rng):
    table = table_of(rng.normal(size=400), rng.poisson(40.0, 400).astype(float), bases="ri")
    circuit = learn_wmispn(table, rng, n_bins=3, order=4, bins="frequency")
    for leaf in range(circuit.n_leaf):
        assert registry.FAMILIES[circuit.leaf_family[leaf]].name == "spline"
        assert circuit.constants_of(leaf)[:2].tolist() == [4.0, 3.0]


# --- codes


@pytest.mark.parametrize("bins", ["width", "frequency", "mean"])
def test_few_different_numbers_have_a_code_each(bins, rng):
    x = rng.choice([0.0, 1.0, 999.0], 300)
    y = np.where(x == 1.0, 5.5, 1.5) + (x == 999.0) * rng.choice([0.0, 4.0], 300)
    table = table_of(x, y)
    codes = binned(table, Rule(bins=bins, n_bins=5))
    assert [np.unique(codes[:, column]).size for column in (0, 1)] == [3, 2]
    assert learn_wmispn(table, rng, bins=bins).n_leaf > 2  # 0 and 1 fell into one bin, and y seemed independent


def test_a_single_bin_of_leaves_does_not_part_dependent_columns(rng):
    x = rng.normal(size=500)
    table = table_of(x, x + 0.05 * rng.normal(size=500))
    assert learn_wmispn(table, rng, n_bins=1, order=6).n_leaf > 2


# --- columns, never their bits


def test_bits_of_a_column_that_are_separated_give_mass_to_an_impossible_row(rng):
    """What the paper's abstraction may do, and a column that stays whole cannot."""
    table = table_of(rng.uniform(0.0, 1.0, 120))
    codes = binned(table, Rule(n_bins=10))[:, 0]
    bits = (codes[:, None] == np.arange(10)).astype(np.int32)
    found = p_values(bits)
    separated = [(i, j) for i, j in itertools.combinations(range(10), 2) if found[i, j] >= 0.001]
    assert separated  # the G-test calls most pairs of bins independent
    share = bits.mean(axis=0)
    i, j = max(separated, key=lambda pair: share[pair[0]] * share[pair[1]])
    assert share[i] * share[j] > 0.01  # "x is in bin i and in bin j", as a product of two leaves has it
    assert (bits[:, i] * bits[:, j]).sum() == 0
    post = bj.fit(table, "wmispn", seed=1, n_bins=10, **FEW)
    x, (low, high) = bj.col("x0"), (0.1 * i, 0.1 * j)
    both = (x > low) & (x < low + 0.1) & (x > high + 1e-9) & (x < high + 0.1)
    assert float(post.probability(both).max()) == 0.0
    ends = np.array([-np.inf, *np.linspace(0.1, 0.9, 9), np.inf])
    parts = [float(post.probability((x > a) & (x <= b)).mean()) for a, b in itertools.pairwise(ends)]
    assert math.fsum(parts) == pytest.approx(1.0, abs=EXACT)


# --- fits


@pytest.fixture(scope="module")
def post() -> bj.Posterior:
    """Return a fit with splines on real, positive and whole numbers, labels and missing cells."""
    rng = np.random.default_rng(0)
    side = rng.random(300) < 0.4
    frame = pd.DataFrame(
        {
            "x": rng.normal(np.where(side, -4.0, 3.0)).round(3),
            "wait": rng.gamma(np.where(side, 2.0, 6.0)).round(2),
            "visits": rng.poisson(np.where(side, 4.0, 30.0)),
            "side": np.where(side, "a", "b"),
        }
    )
    frame.loc[::17, "wait"] = np.nan
    kinds = {"x": "real", "wait": "real", "visits": "integer"}
    return bj.fit(bj.as_table(frame, kinds=kinds), "wmispn", seed=1, **FEW)


def test_density_integrates_to_the_probability_of_an_interval(post):
    rows = pd.DataFrame({"x": np.linspace(-6.0, 2.0, 40001), "wait": np.nan, "visits": np.nan, "side": None})
    density = np.exp(post.log_density(rows).to_numpy())
    area = scipy.integrate.simpson(density, x=rows["x"], axis=-1)
    np.testing.assert_allclose(area, post.probability("-6 <= x <= 2").to_numpy(), rtol=1e-4)


def test_masses_of_whole_numbers_add_up(post):
    inside = sum(post.probability(f"visits = {k}") for k in range(3, 20))
    np.testing.assert_allclose(inside, post.probability("3 <= visits <= 19"), rtol=EXACT)


def test_an_event_and_its_negation_have_probability_one(post):
    event = "(x > 1 or wait < 2) and not visits > 20"
    total = post.probability(event) + post.probability(f"not ({event})")
    np.testing.assert_allclose(total, 1.0, rtol=EXACT)


def test_no_row_elsewhere_is_impossible(post):
    rows = pd.DataFrame({"x": [-1e4, 1e4], "wait": [0.0, 1e3], "visits": [0, 4000], "side": ["a", "b"]})
    assert np.isfinite(post.log_density(rows)).all()


def test_quantile_and_cdf_are_inverse(post):
    found = post.quantile([0.1, 0.5, 0.9], "x")
    for chain, draw in itertools.product(range(2), range(3)):
        at = found.isel(chain=chain, draw=draw).to_numpy().ravel()
        below = [float(post.cdf(value, "x").isel(chain=chain, draw=draw).squeeze()) for value in at]
        np.testing.assert_allclose(below, [0.1, 0.5, 0.9], atol=1e-6)


def test_saved_and_opened_it_answers_the_same(post, tmp_path):
    post.save(tmp_path / "fit.nc")
    other = bj.load(tmp_path / "fit.nc")
    event = "x > 1 and wait < 3"
    np.testing.assert_array_equal(other.probability(event), post.probability(event))


def test_types_follow_the_columns(post):
    found = {column.name: column.type for column in post.types().shares}
    assert (found["x"], found["wait"], found["visits"]) == ("real", "positive", "count")


def test_samples_look_like_rows(post):
    rows = post.sample(400, rng=np.random.default_rng(1))
    frame = rows.to_frame() if hasattr(rows, "to_frame") else rows
    assert (np.asarray(frame["wait"], float) >= 0.0).all()
    visits = np.asarray(frame["visits"], float)
    assert (visits == np.rint(visits)).all()


def test_dictionary_of_splines_has_three_where_the_default_has_numbers_and_keeps_labels(rng):
    frame = pd.DataFrame({"x": rng.gamma(0.5, size=300), "same": 4.5, "side": ["a", "b", "c"] * 100})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the constant column
        table = bj.as_table(frame)
    circuit = bj.learn_mspn(table, rng, dictionary=bj.spline_dictionary)
    check_circuit(circuit, 3)
    names = [registry.FAMILIES[k].name for k in circuit.leaf_family]
    assert set(np.array(names)[circuit.leaf_var == 0]) == {"spline"}
    assert not {"spline"}.intersection(np.array(names)[circuit.leaf_var != 0])
    own = [circuit.constants_of(leaf) for leaf in np.flatnonzero(circuit.leaf_var == 0)[:3]]
    assert len({constants.tobytes() for constants in own}) == 2  # two of them have bins of equal frequency


def test_splines_are_used_where_they_are_named():
    rng = np.random.default_rng(3)
    table = bj.as_table(pd.DataFrame({"x": rng.normal(size=200).round(3), "y": rng.normal(size=200).round(3)}))
    named = bj.fit(table, families={"x": ["spline"]}, seed=1, **FEW)
    names = {
        (int(named.circuit.leaf_var[leaf]), registry.FAMILIES[named.circuit.leaf_family[leaf]].name)
        for leaf in range(named.circuit.n_leaf)
    }
    assert {name for column, name in names if column == 0} == {"spline"}
    assert "spline" not in {name for column, name in names if column == 1}


def test_numbers_over_many_powers_of_ten_have_mass_where_they_are(rng):
    table = bj.as_table(pd.DataFrame({"x": 10.0 ** rng.uniform(-5.0, 5.0, 300), "y": rng.normal(size=300)}))
    post = bj.fit(table, learner="wmispn", seed=1, n_structures=1, chains=1, tune=20, draws=20, progress=False)
    assert float(post.probability("x between 1e-4 and 1e-1").mean()) > 0.1  # 0.3 of the rows; of splines alone 3e-5
