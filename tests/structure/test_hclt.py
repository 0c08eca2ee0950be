"""Hidden Chow-Liu trees: densities and draws against every hidden state, the circuit against the tree, its rows."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import bayesjpt as bj
from bayesjpt.circuit import arrays
from bayesjpt.errors import CircuitError, LearnerError
from bayesjpt.structure import hclt, hidden_gibbs, tree_messages
from bayesjpt.structure.bins import bins_of, shares_of_bins
from bayesjpt.structure.chow_liu import Bins, chow_liu
from bayesjpt.structure.distinct_rows import DistinctRows, distinct_rows, usual_bins
from bayesjpt.structure.hclt import learn_hclt
from bayesjpt.structure.hidden_gibbs import Tree
from tests import strategies
from tests.kernels import runs
from tests.kernels.test_allocate import assert_same_allocation, twin
from tests.structure import naive_mixtures as naive

ROUNDING = 1e-10
"""Relative."""
PARENTS = np.array([-1, 0, 0, 2])
N_BIN = [2, 3, 2, 2]


def some_bins(rng: np.random.Generator, n_row: int = 40, missing: float = 0.2) -> Bins:
    """Return columns of which each depends on its neighbour."""
    code = np.array([rng.integers(n, size=n_row) for n in N_BIN])
    code[3] = np.where(rng.random(n_row) < 0.8, code[2], code[3])
    code[1] = np.where(rng.random(n_row) < 0.8, code[0], code[1])
    return Bins(np.where(rng.random(code.shape) < missing, -1, code).astype(np.int16), np.array(N_BIN))


def chain(rng: np.random.Generator, n_row: int = 400) -> pd.DataFrame:
    """Return labels that follow each other, three of them in the last column."""
    a = rng.integers(2, size=n_row)
    b = a ^ (rng.random(n_row) < 0.1)
    c = b ^ (rng.random(n_row) < 0.2)
    d = np.where(rng.random(n_row) < 0.8, np.where(c, "yes", "no"), "never")
    return pd.DataFrame({"a": a, "b": b, "c": c}).astype(int).astype(str).assign(d=d)


def arranged(bins: Bins) -> DistinctRows:
    return distinct_rows(bins, usual_bins(bins))


def naive_parts(tree: Tree) -> tuple[list[int], list[np.ndarray], list[np.ndarray]]:
    """Return parents, transition and emission as the twin has them."""
    emission = [own.T for own in np.split(tree.emission, tree.bin_at[1:-1])]
    return tree.parents.tolist(), hclt.transitions(tree), emission


@pytest.mark.parametrize("n_state", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_densities_are_sums_over_all_hidden_states(rng, n_state, missing):
    bins = some_bins(rng, missing=missing)
    tree = hclt.started(PARENTS, bins, n_state, rng)
    parts = naive_parts(tree)
    want = [np.log(naive.hidden_tree_probability(row, *parts)) for row in bins.code.T.tolist()]
    for usual in (usual_bins(bins), np.zeros(4, np.int16)):  # what is usual is a matter of time alone
        found = hidden_gibbs.log_density(distinct_rows(bins, usual), tree)
        np.testing.assert_allclose(found, want, rtol=ROUNDING)


def test_several_trees_multiply(rng):
    bins = some_bins(rng, missing=0.1)
    tree = hclt.started(np.array([-1, 0, -1, 2]), bins, 2, rng)
    parts = naive_parts(tree)
    want = [np.log(naive.hidden_tree_probability(row, *parts)) for row in bins.code.T.tolist()]
    np.testing.assert_allclose(hidden_gibbs.log_density(arranged(bins), tree), want, rtol=ROUNDING)


def test_a_variable_with_hundreds_below_it_keeps_its_digits(rng):
    n, n_state, n_row = 1300, 8, 3
    bins = Bins(rng.integers(2, size=(n, n_row)).astype(np.int16), np.full(n, 2))
    tree = hclt.started(np.array([-1] + [0] * (n - 1)), bins, n_state, rng)
    _, transition, emission = naive_parts(tree)
    terms = np.log(transition[0]) + np.log(emission[0][:, bins.code[0]].T)
    for own, ways, code in zip(emission[1:], transition[1:], bins.code[1:], strict=True):
        terms += np.log(ways @ own[:, code]).T
    assert terms.max() < np.log(np.finfo(float).tiny)
    want = logsumexp(terms, axis=1)
    np.testing.assert_allclose(hidden_gibbs.log_density(arranged(bins), tree), want, rtol=ROUNDING)
    evidence = [own[:, code].T for own, code in zip(emission, bins.code, strict=True)]
    found = tree_messages.upward(tree.parents.tolist(), transition, evidence)
    np.testing.assert_allclose(found.log_value, want, rtol=ROUNDING)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_rows_draw_states_in_proportion_to_their_probability(rng, missing):
    bins, n = some_bins(rng, 12, missing), 4000
    tree = hclt.started(PARENTS, bins, 2, rng)
    repeated = arranged(Bins(np.repeat(bins.code, n, axis=1), bins.n_bin))
    counts, value = hidden_gibbs.draw_counts(repeated, tree, rng)
    parents, transition, emission = naive_parts(tree)
    pairs, cells, absent = np.zeros((4, 2, 2)), np.zeros((tree.bin_at[-1], 2)), np.zeros((4, 2))
    total = 0.0
    for row in bins.code.T.tolist():
        whole = naive.hidden_tree_probability(row, parents, transition, emission)
        total += n * np.log(whole)
        for z in naive.hidden_states(4, 2):
            share = n * naive.joint(row, z, parents, transition, emission) / whole
            for i, parent in enumerate(parents):
                pairs[i, z[parent] if parent >= 0 else 0, z[i]] += share
                if row[i] >= 0:
                    cells[tree.bin_at[i] + row[i], z[i]] += share
                else:
                    absent[i, z[i]] += share
    assert value == pytest.approx(total, rel=ROUNDING)
    for found, want in ((counts.pairs, pairs), (counts.cells, cells), (counts.missing, absent)):
        assert found.sum() == pytest.approx(want.sum())
        assert (np.abs(found - want) <= 5.0 * np.sqrt(want) + 1e-6).all()  # sums of Bernoulli draws vary less than that


def test_a_draw_of_another_tree_is_noticed(rng):
    bins = some_bins(rng, 12, 0.0)
    tree = hclt.started(PARENTS, bins, 2, rng)
    rows = arranged(Bins(np.repeat(bins.code, 4000, axis=1), bins.n_bin))
    right, _ = hidden_gibbs.draw_counts(rows, tree, rng)
    wrong, _ = hidden_gibbs.draw_counts(rows, tree._replace(emission=np.roll(tree.emission, 1, axis=1)), rng)
    assert (np.abs(right.cells - wrong.cells) > 5.0 * np.sqrt(right.cells)).any()


def test_sweeps_find_a_hidden_tree(rng):
    bins, _ = bins_of(bj.as_table(chain(rng, 4000), other=False))
    rows = arranged(bins)
    *_, last = hclt.run(rows, 3, rng, n_sweep=40)
    found = hidden_gibbs.log_density(rows, last).mean()
    apart = sum(np.log(share) @ share for share in shares_of_bins(bins))
    one = chow_liu(bins, np.arange(4000), np.arange(4), 1.0).log_likelihood / 4000
    assert found > one - 0.02 > apart + 0.2


def test_a_wrong_parent_is_caught(rng):
    bins = some_bins(rng)
    tree = hclt.started(PARENTS, bins, 2, rng)
    found = hidden_gibbs.log_density(arranged(bins), tree)
    _, transition, emission = naive_parts(tree)
    for parents, same in ((PARENTS.tolist(), True), ([-1, 0, 1, 2], False)):
        values = [naive.hidden_tree_probability(row, parents, transition, emission) for row in bins.code.T.tolist()]
        assert (np.abs(found - np.log(values)).max() < ROUNDING) == same


def test_states_are_drawn_in_proportion_to_their_probability(rng):
    bins = some_bins(rng, 1)
    tree = hclt.started(PARENTS, bins, 2, rng)
    row, n = bins.code[:, 0].tolist(), 20_000
    states = hclt.states_of(tree, Bins(np.repeat(bins.code, n, axis=1), bins.n_bin), rng)
    found = np.bincount(np.array([8, 4, 2, 1]) @ states, minlength=16) / n
    parts = naive_parts(tree)
    whole = naive.hidden_tree_probability(row, *parts)
    want = np.array([naive.joint(row, z, *parts) for z in naive.hidden_states(4, 2)]) / whole
    assert (np.abs(found - want) < 5.0 * np.sqrt(want / n) + 1e-3).all()


def rebuilt(circuit, table) -> tuple[list[int], list[np.ndarray], list[np.ndarray]]:
    """Return (parents, transition, emission) of a circuit that begins with the sums of its first column."""
    column_of = {}
    for node in range(circuit.n_node):
        children = circuit.child[circuit.child_ptr[node] : circuit.child_ptr[node + 1]].tolist()
        if circuit.kind[node] == arrays.LEAF:
            column_of[node] = int(circuit.leaf_var[circuit.leaf_of[node]])
        else:
            column_of[node] = column_of[children[0]]  # a product's first child is its own leaf
    parents, transition, emission = [-1] * table.n_column, [[] for _ in column_of], [[] for _ in column_of]
    edges = circuit.edge_parent()
    for node in range(circuit.n_node):
        own = slice(circuit.child_ptr[node], circuit.child_ptr[node + 1])
        if circuit.kind[node] == arrays.LATENT:
            transition[column_of[node]].append(np.exp(circuit.start_log_weight[own]))
            above = {column_of[int(up)] for up in edges[circuit.child == node]}
            parents[column_of[node]] = above.pop() if above else -1
        elif circuit.kind[node] == arrays.LEAF:
            leaf = circuit.leaf_of[node]
            at = circuit.theta_at[leaf]
            emission[column_of[node]].append(circuit.start_theta[at : at + circuit.theta_len[leaf]])
    n = table.n_column
    return parents, [np.array(t) for t in transition[:n]], [np.array(e) for e in emission[:n]]


def test_the_circuit_is_the_hidden_tree(rng):
    table = bj.as_table(chain(rng), other=False)
    circuit = learn_hclt(table, rng, n_states=3)
    tree = rebuilt(circuit, table)
    assert sorted(map(len, tree[1])) == [1, 3, 3, 3]
    labels = [column.labels for column in table.schema.columns]
    states = list(itertools.product(*map(range, map(len, labels))))
    frame = pd.DataFrame([[own[k] for own, k in zip(labels, z, strict=True)] for z in states], columns=list("abcd"))
    post = bj.Posterior.from_circuit(circuit, table.schema)
    found = np.exp(post.log_density(frame).values.ravel())
    want = [naive.hidden_tree_probability(z, *tree) for z in states]
    np.testing.assert_allclose(found, want, rtol=ROUNDING)
    assert found.sum() == pytest.approx(1.0, abs=ROUNDING)
    hidden = post.log_density(frame.assign(b=None).iloc[:1]).values.ravel()
    agree = (frame[["a", "c", "d"]] == frame[["a", "c", "d"]].iloc[0]).all(axis=1).to_numpy()
    assert np.exp(hidden)[0] == pytest.approx(found[agree].sum(), rel=ROUNDING)


def test_sums_of_a_column_share_their_children(rng):
    table = bj.as_table(chain(rng), other=False)
    circuit = learn_hclt(table, rng, n_states=4)
    latent = np.flatnonzero(circuit.kind == arrays.LATENT)
    assert latent.size == 1 + 3 * 4
    children = {tuple(circuit.child[circuit.child_ptr[n] : circuit.child_ptr[n + 1]].tolist()) for n in latent}
    assert len(children) == 4
    assert circuit.n_leaf == 4 * 4


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_sweep_sends_rows_as_the_slow_twin_does(rng, missing):
    frame = chain(rng, 120)
    table = bj.as_table(frame.mask(rng.random(frame.shape) < missing), other=False)
    circuit = learn_hclt(table, rng, n_states=3)
    case = strategies.Case(table, circuit, arrays.start_params(circuit))
    found = runs.allocate(runs.prepare(circuit, table, "coded"), case.params, 7)
    assert_same_allocation(found, twin(case, 7))


def test_a_row_sent_another_way_is_caught(rng):
    table = bj.as_table(chain(rng, 120), other=False)
    circuit = learn_hclt(table, rng, n_states=3)
    found = runs.allocate(runs.prepare(circuit, table, "coded"), arrays.start_params(circuit), 7)
    child = circuit.child.copy()
    node = int(np.flatnonzero(circuit.kind == arrays.LATENT)[-1])  # all rows come by
    child[circuit.child_ptr[node] : circuit.child_ptr[node + 1]] = child[
        circuit.child_ptr[node] : circuit.child_ptr[node + 1]
    ][::-1]
    wrong = strategies.Case(table, circuit._replace(child=child), arrays.start_params(circuit))
    assert twin(wrong, 7).edge_count.tolist() != found.edge_count.tolist()


def test_mixed_tables_with_missing_cells_are_fitted(rng):
    frame = chain(rng, 500)
    frame["size"] = (rng.normal(size=500) + 4.0 * (frame["a"] == "1")).round(2)
    frame["n"] = rng.poisson(2.0, 500) + 6 * (frame["c"] == "1")
    frame["same"] = "yes"
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    table = bj.as_table(frame, kinds={"same": "category"})
    post = bj.fit(table, "hclt", n_structures=2, draws=8, tune=8, seed=1, progress=False, n_states=3)
    assert np.isfinite(post.log_density(frame)).all()
    assert float(post.probability("size > 2", "b = '1'").mean()) > 2.0 * float(
        post.probability("size > 2", "b = '0'").mean()
    )


def test_sampling_finds_what_depends_on_what(rng):
    frame = chain(rng, 2000)
    post = bj.fit(bj.as_table(frame, other=False), "hclt", n_structures=2, seed=1, progress=False, n_states=3)
    for given in "01":
        share = (frame["c"][frame["a"] == given] == "1").mean()
        assert float(post.probability("c = '1'", f"a = '{given}'").mean()) == pytest.approx(share, abs=0.05)


def test_same_generator_same_circuit(rng):
    table = bj.as_table(chain(rng))
    first, again, other = (learn_hclt(table, np.random.default_rng(k), n_states=2).digest() for k in (3, 3, 4))
    assert first == again != other


def test_one_state_is_independence_and_one_column_a_mixture(rng):
    table = bj.as_table(chain(rng), other=False)
    assert (learn_hclt(table, rng, n_states=1).kind != arrays.LATENT).all()
    single = learn_hclt(bj.as_table(chain(rng)[["d"]], other=False), rng, n_states=4)
    assert (single.kind == arrays.LATENT).sum() == 1


def test_progress_is_told_to_the_end(rng):
    told = []
    learn_hclt(bj.as_table(chain(rng)), rng, n_states=2, sweeps=3, progress=lambda *cells: told.append(cells))
    assert told[-1] == (3 * 1600, 3 * 1600)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_states": 0}, LearnerError, "n_states is 0"),
        ({"sweeps": 1.5}, LearnerError, "sweeps is 1.5"),
        ({"dictionary": lambda column: ()}, CircuitError, "column 'a' has an empty likelihood dictionary"),
    ],
)
def test_settings_that_make_no_sense_are_refused(rng, options, error, message):
    with pytest.raises(error, match=message):
        learn_hclt(bj.as_table(chain(rng)), rng, **options)


def test_bins_of_numbers_hold_about_equally_many_rows(rng):
    bins, cuts = bins_of(bj.as_table(pd.DataFrame({"x": rng.normal(size=800), "y": ["u", "v"] * 400})))
    assert bins.n_bin.tolist() == [8, 2]
    assert np.bincount(bins.code[0]).tolist() == [100] * 8
    assert cuts[0].size == 7
    assert cuts[1].size == 0
